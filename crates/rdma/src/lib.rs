//! RDMA behind one trait: queue pairs of real devices, and an emulation for any machine.
//!
//! A [`Provider`] makes reliable connections of messages ([`QueuePair`]) between two processes
//! that read and write each other's memory without the other's processor. There are two: [`verbs`]
//! has the devices that librdmacm and libibverbs know, [`emulated`] has a unix socket and the
//! system calls with which one process reaches into another on the same machine.
//!
//! What an operation works on it owns until its completion, so no device and no peer ever touches
//! memory that was given to somebody else. Memory that is used again and again is made known to
//! the device once: [`ring::Memory`] says what it is part of, and a provider keeps it as long as
//! the device knows it.
//!
//! | what | where |
//! |---|---|
//! | [`Provider`], [`Listener`], [`Request`], [`QueuePair`], [`Event`] | the trait |
//! | [`Choice`] | which provider, as a configuration says it |
//! | [`Slots`], [`Slot`] | small pieces of memory for what is sent and received |
//! | [`verbs::Verbs`] | the provider that has devices |
//! | [`emulated::Emulated`] | the provider for any machine |
//! | [`Piece`], [`Sink`], [`Exposed`], [`Remote`] | what operations work on |

#![deny(unsafe_op_in_unsafe_fn)]

mod choice;
pub mod emulated;
mod operand;
mod provider;
mod slots;
pub mod verbs;

pub use choice::{Choice, ChoiceError};
pub use operand::{Exposed, Piece, Remote, Sink};
pub use provider::{
    Attributes, Event, Failure, Limits, Listener, Network, Provider, QueuePair, Request, Wait,
    WorkId,
};
pub use slots::{Slot, Slots, Stock};
