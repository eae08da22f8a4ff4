//! What the SMB protocol does: a sans-IO core.
//!
//! The core decides, the driver does. There is no socket, file, clock, thread or random number in
//! this crate: time and entropy are arguments, and everything that the core wants done comes out
//! as an [`effect::Effect`]. It sees lengths, never bulk data. Read [`effect`] first.
//!
//! [`server`] and [`client`] are the two sides of SMB2. [`smbd`] is what lies below them where SMB
//! goes over RDMA: a core of its own, with a vocabulary of its own.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod carrier;
pub mod client;
pub mod credit;
pub mod effect;
mod entropy;
pub mod file;
pub mod id;
pub mod login;
pub mod notice;
pub mod path;
pub mod pattern;
pub mod queue;
pub mod seal;
pub mod server;
pub mod smbd;
pub mod store;
pub mod time;
pub mod token;
pub mod violation;
