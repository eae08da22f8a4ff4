//! What the SMB protocol does: a sans-IO core.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
