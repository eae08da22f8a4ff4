//! RDMA devices, through librdmacm and libibverbs.
//!
//! Creating this provider loads the libraries; a host without them runs the program without the
//! provider. An owner type wraps each object of the libraries: `channel.rs` the identifiers and
//! events of RDMA-CM, `device.rs` the state that all connections of a device share,
//! `completions.rs`, `posting.rs` and `queue_pair/` one connection.

mod address;
mod call_thread;
mod channel;
mod completions;
mod device;
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

/// The provider of RDMA connections over the devices of this machine, by librdmacm and libibverbs.
pub struct Verbs {
    devices: Arc<Devices>,
}

impl Verbs {
    /// Loads librdmacm and libibverbs. Devices may be added later, so this does not check for a
    /// device.
    ///
    /// # Errors
    /// A library is missing or has the wrong version.
    pub fn load() -> Result<Self, LoadError> {
        let library = library::Library::load()?;
        lift_limit_of_locked_memory();
        let devices = Arc::new(Devices::new(library));
        watch::start(&devices).map_err(|error| LoadError::Thread(error.to_string()))?;
        Ok(Self { devices })
    }
}

/// Raises the limit of locked memory. Registered memory is locked. Root has no limit, but the
/// threads of a server sometimes have the credentials of a session's user, and then the limit
/// applies.
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
        tracing::debug!(bytes = now.rlim_max, "raised the limit of locked memory");
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
        // RDMA-CM listens on the unspecified address for all devices, also for those added later.
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
