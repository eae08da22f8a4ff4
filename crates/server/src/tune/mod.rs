//! `smbeam tune` on the server: what limits its speed, and what to change.
//!
//! [`Facts`] holds what [`gather`] reads from the machine and the configuration. [`advise`] makes
//! findings of the facts without any further input, so tests pass recorded facts. [`Sample`] holds
//! the counters of a running server and its machine at one time, and [`limit`](Interval::limits)
//! names what limits a load between two samples.

mod cgroup;
mod crypto_speed;
mod facts;
mod files;
mod finding;
mod limit;
mod profile;
mod rules;

pub use crypto_speed::{CryptoSpeed, measure as measure_crypto};
pub use facts::{
    BlockFacts, ClientFacts, ConfigFacts, Facts, FlushTimes, InterfaceFacts, InterruptFacts,
    KernelFacts, MountFacts, RaidFacts, StoreFacts, XfsFacts, gather,
};
pub use finding::{Change, Evidence, Finding};
pub use limit::{
    DiskSample, Interval, LIMITS, Limit, LinkSample, ProcessSample, Sample, SocketTimes, ThreadTime,
};
pub use profile::Profile;
pub use rules::{CODES, advise, mount_options};
