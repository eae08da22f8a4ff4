//! An SMB 3.1.1 client.

#![forbid(unsafe_code)]

mod buffer;
mod call;
mod calls;
mod channel;
mod client;
mod connect;
mod copy;
mod dispatch;
mod error;
mod file;
mod fork;
mod metadata;
mod open_options;
mod options;
mod path;
mod read_dir;
mod receive;
mod session;
mod share;
mod slot;
mod stream;
mod thread;
pub mod transfer;
mod wait;
mod watch;
mod window;

pub use buffer::{IoBuf, IoSource};
pub use client::Client;
pub use error::Error;
pub use file::{File, LockKind};
pub use metadata::{Changes, Metadata, Volume};
pub use open_options::OpenOptions;
pub use options::{CHANNELS_MAX, Channels, Credentials, Options, Protection};
pub use read_dir::{Blocking, Entry, ReadDir};
pub use session::{ChannelInfo, Interface, Session, SessionInfo};
pub use share::{Share, WriteOptions};
pub use stream::{FileReader, FileWriter};
pub use wait::Wait;
pub use watch::{Change, Watch};

pub use net::Transport;
pub use ring::Io;
pub use wire::access::{AccessMask, FileAttributes};
pub use wire::change_notify::CompletionFilter;
pub use wire::fscc::FileAction;
pub use wire::{FileTime, Status};
