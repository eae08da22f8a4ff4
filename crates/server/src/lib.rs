//! The SMB file server: core, files and sockets on one ring a worker.
//!
//! [`Server::start`] takes a checked [`config::Config`] and runs a worker for each core. A worker
//! (`worker`) owns its listeners, its connections and its ring; a connection (`connection`) stays
//! on its worker. What the core asks for is done in `datapath`: at once where it cannot block, on
//! the ring or a thread where it would.
#![forbid(unsafe_code)]

mod accounts;
mod certificate;
pub mod config;
mod connection;
pub mod control;
mod datapath;
mod gate;
mod interfaces;
pub mod log;
mod observer;
mod personalities;
mod placement;
mod quic;
mod share;
mod smbdirect;
mod start;
pub mod status;
mod store;
mod unix_account;
mod worker;

pub use accounts::Realms;
pub use certificate::Shown;
pub use observer::Observer;
pub use start::{Listening, Server, StartError, check, reachable};
pub use unix_account::{AccountError, account_name, may_assume_identities};
