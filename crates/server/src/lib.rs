//! The SMB file server: core, files and sockets on one ring a worker.
//!
//! [`Server::start`] takes a checked [`config::Config`] and runs a worker for each core. A worker
//! (`worker`) owns its listeners, its connections and its ring; a connection (`connection`) stays
//! on its worker. What the core asks for is done in `datapath`: at once where it cannot block, on
//! the ring or a thread where it would.
#![forbid(unsafe_code)]

mod account;
mod certificate;
pub mod config;
mod connection;
pub mod control;
mod datapath;
mod gate;
mod interfaces;
pub mod log;
mod login;
mod netlink;
mod observer;
mod personalities;
mod placement;
mod quic;
mod receive;
mod share;
mod smbdirect;
mod start;
pub mod status;
mod worker;

pub use account::{AccountError, account_name, may_assume_identities};
pub use certificate::Shown;
pub use login::Realms;
pub use observer::Observer;
pub use start::{Listening, Server, StartError, check, reachable};
