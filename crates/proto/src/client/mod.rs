//! The client's half of the protocol. \[MS-SMB2\] 3.2
//!
//! A [`Connection`] is one transport connection. It negotiates, logs in (or binds itself to a
//! session as a further channel), sends requests as far as the server's credits allow, and matches
//! responses to requests. A [`Session`] is the state that the channels of one login share: keys and
//! the counter of nonces. The driver chooses the channel of a request. It also chooses whether
//! another channel sends a request of a lost channel again, within the rules of [`replay`]. After
//! the loss of all channels, a connection with [`Role::Resuming`] logs in again.
//!
//! The driver passes received messages to a connection and performs its [`Effects`], as for the
//! server. The core never sees bulk data: the driver holds the source of a WRITE and the
//! destination of a READ under the [`RequestId`]. Over SMB Direct the driver registers its memory,
//! and the server moves the data.
//!
//! The server may lie about anything. An impossible message ends the connection with a
//! [`Violation`]. A response with more than the request asked for fails that request.

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
mod lease;
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
pub use effect::{Direction, Effect, Effects, Expect, Fate, LeaseBreak};
pub use lease::LeaseRecord;
pub use negotiate::IO_MAX;
pub use negotiated::Negotiated;
pub use request::{Failure, Request, RequestId, Step};
pub use session::Session;
pub use violation::Violation;
