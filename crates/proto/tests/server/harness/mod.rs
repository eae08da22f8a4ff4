//! A world for the core: connections, a clock, a disk in memory, an authenticator that reads its
//! verdict from the token, and a client that says what a test tells it to.

mod channels;
mod client;
mod disk;
mod files;
mod locks;
mod memory;
mod oplocks;
mod pipes;
mod rig;

pub(crate) use channels::multichannel;
pub(crate) use client::{Answer, Client, Message, Options, bytes_of};
pub(crate) use files::{data, file_id};
pub(crate) use locks::{EXCLUSIVE, EXCLUSIVE_NOW, SHARED, SHARED_NOW, UNLOCK};
pub(crate) use memory::RDMA;
pub(crate) use oplocks::{Ask, Break, created, told};
pub(crate) use pipes::{Called, bind, fragment, output};
pub(crate) use rig::{Rig, Work, share};
