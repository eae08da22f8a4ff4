//! RDMA behind one trait: queue pairs of real devices, and an emulation that runs on any machine.
//!
//! A [`Provider`] makes reliable connections ([`QueuePair`]) between two processes, which exchange
//! messages and access each other's memory without the peer's processor. Two providers exist.
//! [`verbs`] uses the devices of librdmacm and libibverbs. [`emulated`] uses a Unix socket, and the
//! system calls that access the memory of another process on the same machine.
//!
//! An operation owns its memory until its completion, so no device and no peer ever accesses memory
//! that has another owner. Memory that is used many times is registered with the device once:
//! [`ring::Memory`] identifies it, and a provider holds it while the device has it registered.
//!
//! | item | purpose |
//! |---|---|
//! | [`Provider`], [`Listener`], [`Request`], [`QueuePair`], [`Event`] | the trait |
//! | [`Choice`] | selection of the provider in a configuration |
//! | [`Slots`], [`Slot`] | small pieces of memory for SENDs and receives |
//! | [`verbs::Verbs`] | the provider with devices |
//! | [`emulated::Emulated`] | the provider for any machine |
//! | [`Piece`], [`Sink`], [`Exposed`], [`RemoteRegion`] | the memory of operations |

#![deny(unsafe_op_in_unsafe_fn)]

mod choice;
pub mod emulated;
mod operand;
mod provider;
mod slots;
pub mod verbs;

pub use choice::{Choice, ChoiceError};
pub use operand::{Exposed, Piece, RemoteRegion, Sink};
pub use provider::{
    Attributes, Event, Failure, Limits, Listener, Network, Provider, QueuePair, Request, Wait,
    WorkId,
};
pub use slots::{Slot, Slots, Stock};
