//! The environment of the core in tests: connections, a clock, a disk in memory, an authenticator
//! with the outcome in the token, and a client that sends the requests of a test.

mod channels;
mod client;
mod disk;
mod durable;
mod files;
mod leases;
mod locks;
mod memory;
mod oplocks;
mod pipes;
mod rig;

pub(crate) use channels::multichannel;
pub(crate) use client::{Answer, Client, Message, Options, bytes_of};
pub(crate) use durable::{durable_timeout, is_durable};
pub(crate) use files::{data, file_id};
pub(crate) use leases::{R, RH, RWH, leased};
pub(crate) use locks::{EXCLUSIVE, EXCLUSIVE_NOW, SHARED, SHARED_NOW, UNLOCK};
pub(crate) use memory::RDMA;
pub(crate) use oplocks::{Ask, Break, broken_oplock, created};
pub(crate) use pipes::{Called, bind, fragment, output};
pub(crate) use rig::{Rig, Work, only, share};
