//! Tests of smbeam against peers that nobody here wrote.
#![forbid(unsafe_code)]
