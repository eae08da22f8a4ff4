//! What the SMB protocol does: a sans-IO core.
//!
//! The core decides, the driver does. There is no socket, file, clock, thread or random number in
//! this crate: time and entropy are arguments, and everything that the core wants done comes out
//! as an [`effect::Effect`]. It sees lengths, never bulk data. Read [`effect`] first.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod client;
pub mod credit;
pub mod effect;
mod entropy;
pub mod path;
pub mod pattern;
pub mod seal;
pub mod server;
pub mod token;
