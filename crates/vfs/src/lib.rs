//! What a file is: a folder of the local system, or memory.
