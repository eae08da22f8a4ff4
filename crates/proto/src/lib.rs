//! The SMB protocol as a sans-IO core.
//!
//! The core decides and the driver acts. This crate has no sockets, files, clock, threads or random
//! numbers. Time and entropy are arguments. Each action for the driver is an [`effect::Effect`].
//! The core handles the lengths of bulk data, never the bytes. Read [`effect`] first.
//!
//! [`server`] and [`client`] are the two sides of SMB2. [`smbd`] is SMB Direct, the layer below
//! them on RDMA connections: a separate core with separate types.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod account;
pub mod audit;
pub mod carrier;
pub mod client;
pub mod credit;
pub mod disk_quota;
pub mod ea;
pub mod effect;
pub mod encryption;
mod entropy;
pub mod file;
pub mod id;
pub mod login;
pub mod notice;
pub mod path;
pub mod pattern;
pub mod queue;
pub mod report;
pub mod server;
pub mod smbd;
pub mod store;
pub mod time;
pub mod token;
pub mod violation;
