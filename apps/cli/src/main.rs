//! An SMB 3.1.1 server and client for Linux in user space.
#![forbid(unsafe_code)]

fn main() {}
