//! The client's half of the protocol. \[MS-SMB2\] 3.2
//!
//! A [`Connection`] is one transport connection: it negotiates, logs in (or binds itself to a
//! session as a further channel), sends requests as far as the server's credits go, and matches
//! what comes back to what was asked. A [`Session`] is what the channels of one login share: keys
//! and the counter of nonces. Which channel a request takes, and whether a request whose channel
//! was lost is sent again on another one, is the driver's to choose among what
//! [`replay`] allows.
//!
//! The driver gives a connection what came in and takes out of [`Effects`] what is to be done, as
//! on the server's side. Bulk data is never seen: the driver keeps the source of a WRITE and the
//! destination of a READ under the [`RequestId`] of the request. Over SMB Direct the driver names
//! its memory, and the server moves the data.
//!
//! The server may lie about anything. A message that cannot be ends the connection with a
//! [`Violation`]; an answer to a request that says more than was asked for fails that request.

mod answer;
mod breaks;
mod caching;
pub mod config;
mod connection;
mod credits;
pub mod effect;
mod encode;
mod expect;
mod flight;
mod login;
mod message;
mod negotiate;
mod negotiated;
mod rdma_buffers;
mod receive;
mod registration;
pub mod replay;
pub mod request;
mod retry;
mod send;
pub mod session;
mod session_setup;
mod timers;
mod validate;
mod violation;

pub use config::Config;
pub use connection::{Connection, Role};
pub use credits::BYTES_PER_CREDIT;
pub use effect::{Direction, Effect, Effects, Expect, Fate};
pub use negotiate::IO_MAX;
pub use negotiated::Negotiated;
pub use request::{Failure, Request, RequestId, Step};
pub use session::Session;
pub use violation::Violation;
