//! SMB Direct: SMB messages over RDMA, for clients and servers. \[MS-SMBD\]
//!
//! A [`Connection`] is one queue pair of a reliable connection. It negotiates sizes, cuts messages
//! into SENDs, reassembles the messages of the peer, and ensures that neither peer sends without a
//! posted receive. RDMA READ and WRITE are not part of it: the layer above requests them from the
//! driver.
//!
//! # How a driver uses it
//!
//! - `started` when the queue pair is connected. A server calls it before it accepts, so that a
//!   receive is posted for the client's first message.
//! - `posted` when the driver has posted receives that [`Effect::PostReceives`] requested. It may
//!   do so later: a driver with much unread data posts none, and then the peer gets no credits.
//! - `received` with the bytes of each SEND of the peer, in order. Its receive counts as used.
//! - `sent` when SENDs are completed.
//! - `send` with a message to send, after [`Effect::Ready`].
//! - `timeout` when `next_timeout` has passed, `closed` when the queue pair has ended.
//!
//! Then it executes all of [`Effects`], in order. The core never sees bulk data: a message is a
//! [`MessageToken`] and a length, received data is a range of the bytes that the driver passed.
//!
//! # Credits
//!
//! A credit is the right to one SEND, and stands for a receive that the peer has posted. Credits
//! are difficult because a SEND is necessary to grant one. `credit` implements the two rules that
//! prevent both peers from waiting for each other forever. `sim::smbd` tests every order of events
//! with small numbers of credits.
//!
//! # Behavior of other implementations
//!
//! - Windows requests 255 credits and grants as many, sends 1,364 bytes at once, accepts 8,192,
//!   and reassembles messages of 1 MiB. \[MS-SMBD\] 7, note 2
//! - cifs.ko and ksmbd request 255 credits, send and accept 1,364 bytes. cifs.ko refuses a server
//!   with a PreferredSendSize above its receive size, as \[MS-SMBD\] 3.1.5.7 requires.
//! - ksmbd accepts messages of 255 times the half of its SEND size: 173,910 bytes, and with a
//!   PreferredSendSize below 1,029 less than the protocol allows.
//! - Both spend the last credit without a grant when they assume that the peer can still send.
//!   Two of them can do so at the same time, and then neither can grant. A connection between one
//!   of them and this core always continues.

mod config;
mod connection;
mod credit;
mod effect;
mod fragment;
mod negotiate;
mod reassembly;
mod receive;
mod send;
mod timers;

pub use config::{Config, Negotiated, Role};
pub use connection::{Connection, Snapshot};
pub use effect::{
    Effect, Effects, Header, MessageToken, Outgoing, Piece, Refusal, SendId, Violation,
};
