//! The SMB file server: core, files and sockets on one ring a worker.
#![forbid(unsafe_code)]
