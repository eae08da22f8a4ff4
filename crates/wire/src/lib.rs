//! The wire format of SMB: messages, contexts, information classes, tokens, frames.
//!
//! Each SMB2 command has a module with its name, with a `Request` and a `Response` that decode and
//! encode themselves. All modules follow these conventions:
//!
//! - A *message* is one SMB2 message, from the first byte of its header to its end. The caller
//!   splits a compound into messages first. Every offset of \[MS-SMB2\] is relative to the start of
//!   the message.
//! - `decode(message: &[u8]) -> Result<Self, DecodeError>` borrows from the message. It checks
//!   bounds and structure sizes, not policy.
//! - `encode(&self, message: &mut Vec<u8>)` appends the body to a vector that starts with the 64
//!   bytes of its header. Padding is zero.
//! - Enumerations and flags are open: a newtype with constants. An unknown value survives a decode
//!   and encode round trip.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod aapl;
pub mod access;
pub mod cancel;
pub mod change_notify;
pub mod close;
pub mod compound;
pub mod create;
pub mod create_context;
pub mod cursor;
pub mod dialect;
pub mod echo;
pub mod error;
pub mod error_response;
pub mod file_name;
pub mod flush;
pub mod fscc;
pub mod fsctl;
pub mod header;
pub mod ids;
pub mod ioctl;
mod layout;
pub mod lock;
pub mod logoff;
pub mod nbt;
pub mod negotiate;
pub mod negotiate_context;
mod open_enum;
pub mod oplock_break;
pub mod posix;
pub mod posix_name;
pub mod query_directory;
pub mod query_info;
pub mod read;
pub mod reparse;
pub mod rpc;
pub mod security;
pub mod server_to_client_notification;
pub mod session_setup;
pub mod set_info;
pub mod smb1;
pub mod smbd;
pub mod status;
pub mod text;
pub mod time;
pub mod transform;
pub mod tree_connect;
pub mod tree_disconnect;
pub mod upcase;
pub mod write;

pub use error::DecodeError;
pub use header::{Command, Flags, Header};
pub use ids::{AsyncId, FileId, Guid, MessageId, SessionId, TreeId};
pub use status::Status;
pub use text::Utf16;
pub use time::FileTime;
pub mod ntlmssp;
pub mod spnego;
