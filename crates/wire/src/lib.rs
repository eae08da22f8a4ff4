//! What the bytes of SMB mean: messages, contexts, information classes, tokens, frames.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
