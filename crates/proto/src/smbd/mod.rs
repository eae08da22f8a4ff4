//! SMB Direct: SMB messages over RDMA, both sides. \[MS-SMBD\]
//!
//! A [`Connection`] is one queue pair of a reliable connection. It negotiates sizes, cuts messages
//! into SENDs and puts those of the peer together again, and sees to it that nobody sends what
//! the other one has posted no receive for. RDMA READ and WRITE are none of its business: the
//! layer above asks the driver for them.
//!
//! # How a driver uses it
//!
//! - `started` when the queue pair is connected; for a server before it accepts, so that a receive
//!   is posted when the client's first word comes.
//! - `posted` when receives that [`Effect::PostReceives`] asked for are posted. That may be later:
//!   who is behind with what came in posts nothing, and so the peer gets no credits.
//! - `received` with the bytes of each SEND that came, in their order. Its receive counts as free.
//! - `sent` when SENDs are completed.
//! - `send` with a message to send, after [`Effect::Ready`].
//! - `timeout` when `next_timeout` has passed, `closed` when the queue pair is gone.
//!
//! Then it does what [`Effects`] holds, in order. Bulk data are never seen: a message is a
//! [`MessageToken`] and a length, what came in is a range of the bytes that were given.
//!
//! # Credits
//!
//! A credit is the right to do one SEND, and stands for a receive that the other side has posted.
//! What is hard about it is that a credit is itself granted by a SEND. `credit` keeps the
//! two rules by which nobody ever waits for the other one forever; `sim::smbd` tries every order
//! of events on small numbers of credits.
//!
//! # What others do
//!
//! - Windows asks for 255 credits and grants as many, sends 1,364 bytes at once, takes 8,192, and
//!   puts messages of 1 MiB together. \[MS-SMBD\] 7, note 2
//! - cifs.ko and ksmbd ask for 255, send and take 1,364 bytes. cifs.ko refuses a server whose
//!   PreferredSendSize is larger than what it takes, as \[MS-SMBD\] 3.1.5.7 says.
//! - ksmbd takes messages of 255 times the half of what one SEND holds: 173,910 bytes, and with
//!   a PreferredSendSize below 1,029 less than the protocol allows.
//! - Both spend the last credit without a grant where they believe that the peer can still send.
//!   Two of them can do so at the same time, and then neither can grant. One of them and this core
//!   always go on.

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
