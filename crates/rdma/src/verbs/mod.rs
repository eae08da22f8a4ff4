//! RDMA devices, by way of librdmacm and libibverbs.
//!
//! The libraries are loaded when this provider is made; where they are not installed the program
//! runs without it. Everything of theirs is wrapped by an owner here: `channel.rs` has RDMA-CM's
//! identifiers and reports, `device.rs` what is shared by the connections of a device,
//! `completions.rs`, `posting.rs` and `queue_pair/` one connection.

mod address;
mod channel;
mod completions;
mod device;
mod errands;
mod failure;
mod ffi;
mod library;
mod listener;
mod posting;
mod queue_pair;
mod raw_address;
mod readiness;
mod removal;
mod watch;
mod work;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use self::device::Devices;
use self::listener::VerbsListener;
use self::queue_pair::VerbsQueuePair;
use crate::provider::{Attributes, Listener, Network, Provider, QueuePair};

pub use self::library::LoadError;

/// The provider that has the devices of this machine.
pub struct Verbs {
    devices: Arc<Devices>,
}

impl Verbs {
    /// Loads the libraries. Whether there is a device is seen when one is used: it may come later.
    ///
    /// # Errors
    /// A library is not there, or is not what it should be.
    pub fn load() -> Result<Self, LoadError> {
        let library = library::Library::load()?;
        lift_limit_of_locked_memory();
        let devices = Arc::new(Devices::new(library));
        watch::start(&devices).map_err(|error| LoadError::Thread(error.to_string()))?;
        Ok(Self { devices })
    }
}

/// What a device knows is locked in memory. Root may lock as much as it likes; the threads of a
/// server have the rights of a session's user at times, and what counts then is the limit.
fn lift_limit_of_locked_memory() {
    let limit = |current, most| libc::rlimit {
        rlim_cur: current,
        rlim_max: most,
    };
    let set = |limit: libc::rlimit| {
        // SAFETY: the limit is readable during the call.
        unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit) == 0 }
    };
    if set(limit(libc::RLIM_INFINITY, libc::RLIM_INFINITY)) {
        return;
    }
    let mut now = limit(0, 0);
    // SAFETY: the limit is writable during the call.
    let is_known = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut now) == 0 };
    if is_known && set(limit(now.rlim_max, now.rlim_max)) {
        tracing::debug!(bytes = now.rlim_max, "limit of locked memory");
    }
}

impl Provider for Verbs {
    fn name(&self) -> &'static str {
        "verbs"
    }

    fn addresses(&self) -> io::Result<Vec<(IpAddr, Network)>> {
        address::of_devices(self.devices.library())
    }

    fn to_listen(&self, addresses: &[IpAddr]) -> Vec<IpAddr> {
        // RDMA-CM listens on the unspecified address for all devices, also those that come later.
        addresses.to_vec()
    }

    fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn Listener>> {
        let devices = Arc::clone(&self.devices);
        Ok(Box::new(VerbsListener::new(devices, address)?))
    }

    fn connect(
        &self,
        address: SocketAddr,
        attributes: &Attributes,
    ) -> io::Result<Box<dyn QueuePair>> {
        let devices = Arc::clone(&self.devices);
        let pair = VerbsQueuePair::connect(devices, address, attributes)?;
        Ok(Box::new(pair))
    }
}

impl fmt::Debug for Verbs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verbs")
    }
}
