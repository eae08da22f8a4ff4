//! The SMB file server: core, files and sockets on one ring a worker.
//!
//! [`Server::start`] takes a checked [`config::Config`] and runs a worker for each core. A worker
//! (`worker`) owns its listeners, its connections and its ring. A connection (`connection`) stays
//! on its worker. The data path (`datapath`) does what the core asks for: at once if it does not
//! block, else on the ring or on a thread.
#![forbid(unsafe_code)]

mod accounts;
pub mod activity;
mod administrator;
mod audit;
mod certificate;
mod change_listeners;
mod client_address;
mod codes;
pub mod config;
mod connection;
mod connection_id;
pub mod control;
mod core_config;
mod counters;
mod datapath;
pub mod doctor;
mod error;
mod findings;
mod gate;
mod half_open;
mod host_name;
mod inherited;
mod interfaces;
mod journal;
mod last_use;
mod listeners;
mod listening;
mod live;
pub mod log;
mod login_attempts;
mod login_threads;
mod memory;
mod message;
pub mod metrics;
mod observer;
mod output_queue;
mod personalities;
mod placement;
mod ports;
mod quic;
mod recent_map;
mod reload;
mod reserve;
mod rights;
mod share;
mod shared;
mod sids;
mod smbdirect;
mod start;
pub mod status;
mod store;
pub mod tune;
mod unix_account;
mod worker;
mod worker_context;

pub use accounts::Accounts;
pub use administrator::Administrator;
pub use certificate::Shown;
pub use codes::{Reason, RefusedConfig, codes};
pub use counters::RefusedLogin;
pub use error::StartError;
pub use findings::{Finding, findings, log_findings, unix_account_warning};
pub use inherited::InheritedSockets;
pub use last_use::{AppPasswordUses, app_password_uses};
pub use listening::Listening;
pub use observer::Observer;
pub use reload::{ReloadError, Reloaded, Reloader, ShareStateError};
pub use sids::{AccountName, Domain, MappingError};
pub use start::{Server, check};
pub use unix_account::{AccountError, account_name, may_assume_identities};
/// The extended attribute in which Samba stores DOS attributes and the time of creation.
pub use vfs::dosattrib;
