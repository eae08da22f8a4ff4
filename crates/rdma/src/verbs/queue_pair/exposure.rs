//! Regions that the peer may access.
//!
//! With memory windows, an exposed region has a separate key for the time of its exposure, and
//! either peer can invalidate the key. The memory behind the window is registered once, if it is
//! long-lived: memory of a pool, or separate pages. A few bytes of other memory are copied into a
//! slot, because two copies cost less than a registration. A larger region of other memory is
//! registered for the time of its exposure. A longer registration would cover memory that its owner
//! may free: the device would keep pages without an owner.
//!
//! Without windows, every region is registered for the time of its exposure. The key of a longer
//! registration would let the peer write late, into memory that has another use by then.

use std::ffi::c_int;
use std::io;
use std::sync::Arc;

use super::retained::Retained;
use super::{VerbsQueuePair, Work, length};
use crate::operand::{Exposed, RemoteRegion};
use crate::provider::{Event, QueuePair};
use crate::slots::{Slot, Slots};
use crate::verbs::device::{Device, Registration, Window};
use crate::verbs::ffi;
use crate::verbs::posting::Request;

/// Number of regions that may be exposed at one time: more than a client has requests in flight.
pub(super) const EXPOSED_MAX: u32 = 1024;

/// Largest region in bytes that is exposed through a slot.
const SLOT_BYTES: usize = 32 << 10;

/// Number of slots of a queue pair; further regions are registered.
const SLOTS: usize = 64;

/// A region that the peer may access. The order of the fields matters: the window ends before its
/// registration, and that ends before the memory is freed.
pub(super) struct Exposure {
    window: Option<Window>,
    registration: Option<Registration>,
    /// The memory that the peer accesses instead of the region.
    slot: Option<Slot>,
    /// `None` if the peer has invalidated the region while this side was about to.
    memory: Option<Exposed>,
    is_revoking: bool,
}

impl VerbsQueuePair {
    pub(super) fn expose_region(
        &mut self,
        mut memory: Exposed,
    ) -> Result<RemoteRegion, (io::Error, Exposed)> {
        match self.make_reachable(&mut memory) {
            Ok((remote, mut exposure)) => {
                exposure.memory = Some(memory);
                self.exposures.insert(remote.key, exposure);
                Ok(remote)
            }
            Err(error) => Err((error, memory)),
        }
    }

    /// Makes the memory accessible. The exposure has no memory yet; the caller stores it before it
    /// posts anything.
    fn make_reachable(&mut self, memory: &mut Exposed) -> io::Result<(RemoteRegion, Exposure)> {
        if self.exposures.len() >= self.limits().exposed as usize {
            return Err(io::Error::from(io::ErrorKind::QuotaExceeded));
        }
        if memory.is_empty() {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        let device = Arc::clone(self.connected_device()?);
        if device.capabilities().has_windows {
            self.expose_by_window(&device, memory)
        } else {
            expose_by_registration(&device, memory)
        }
    }

    fn expose_by_window(
        &mut self,
        device: &Arc<Device>,
        memory: &mut Exposed,
    ) -> io::Result<(RemoteRegion, Exposure)> {
        let bytes = memory.len();
        let (mut registration, mut slot) = (None, self.slot_for(memory));
        let mut start = memory.start();
        let keys = match (memory.memory(), &mut slot) {
            (Some(memory), _) => device.known(memory)?,
            (None, Some(slot)) => {
                start = slot.as_mut_ptr();
                device.known(slot.memory())?
            }
            (None, None) => {
                let access = device.window_access() | local_access(memory);
                // SAFETY: the exposure owns the memory, and drops the registration before it.
                let made = unsafe { Registration::new(device, start, bytes, access) }?;
                registration.insert(made).keys()
            }
        };
        let window = match self.windows.pop() {
            Some(window) => window,
            None => Window::new(device)?,
        };
        let key = window.next_key();
        let bind = Request::Bind {
            window: window.raw(),
            key,
            region: keys.raw,
            address: start.addr() as u64,
            length: bytes as u64,
            access: remote_access(memory),
        };
        self.start(Work::Bind, vec![bind], Retained::default());
        Ok((
            remote(start, key, bytes),
            Exposure {
                window: Some(window),
                registration,
                slot,
                memory: None,
                is_revoking: false,
            },
        ))
    }

    /// A slot with the bytes of a small region that the device has not registered.
    fn slot_for(&mut self, memory: &Exposed) -> Option<Slot> {
        if memory.memory().is_some() || memory.len() > SLOT_BYTES {
            return None;
        }
        if self.slots.is_none() {
            self.slots = Slots::new(SLOTS, SLOT_BYTES).ok();
        }
        let mut slot = self.slots.as_ref()?.take()?;
        // Also for a region that the peer writes: it does not have to write all of it.
        slot[..memory.len()].copy_from_slice(memory.bytes());
        Some(slot)
    }

    pub(super) fn revoke_region(&mut self, key: u32) {
        let Some(exposure) = self.exposures.get_mut(&key) else {
            return;
        };
        if exposure.is_revoking {
            return;
        }
        exposure.is_revoking = true;
        if exposure.window.is_some() {
            let request = Request::Invalidate(key);
            self.start(Work::Invalidate(key), vec![request], Retained::default());
        } else {
            self.invalidated(key);
        }
    }

    /// Handles the end of a window that this side has invalidated.
    pub(super) fn invalidated(&mut self, key: u32) {
        if let Some(exposure) = self.exposures.remove(&key) {
            self.take_back(key, exposure);
        }
    }

    /// Handles a window that the peer has invalidated. If this side was about to invalidate it as
    /// well, the window is reused after that, but its memory is free now.
    pub(super) fn invalidated_by_peer(&mut self, key: u32) {
        let Some(exposure) = self.exposures.get_mut(&key) else {
            return;
        };
        if !exposure.is_revoking {
            return self.invalidated(key);
        }
        if let Some(memory) = exposure.out_of_reach() {
            self.report(Event::Revoked(key, memory));
        }
    }

    fn take_back(&mut self, key: u32, mut exposure: Exposure) {
        self.windows.extend(exposure.window.take());
        exposure.registration = None;
        if let Some(memory) = exposure.out_of_reach() {
            self.report(Event::Revoked(key, memory));
        }
    }

    /// Invalidates all windows, for the end of the connection.
    pub(super) fn close_windows(&mut self) {
        self.windows.clear();
        for exposure in self.exposures.values_mut() {
            exposure.window = None;
        }
    }

    /// Returns all regions. The queue pair is destroyed.
    pub(super) fn free_exposures(&mut self) {
        for (key, exposure) in std::mem::take(&mut self.exposures) {
            assert!(
                exposure.window.is_none(),
                "a bound window keeps its region registered"
            );
            self.take_back(key, exposure);
        }
    }
}

impl Exposure {
    /// Returns the memory with the bytes that the peer has written. The peer cannot access it any
    /// more.
    fn out_of_reach(&mut self) -> Option<Exposed> {
        let mut memory = self.memory.take()?;
        if let Some(slot) = self.slot.take() {
            memory.fill(&slot);
        }
        Some(memory)
    }
}

/// Exposes a region by a registration, for devices without windows. The registration ends with the
/// exposure and invalidates the key. A longer one would leave memory accessible to the peer.
fn expose_by_registration(
    device: &Arc<Device>,
    memory: &mut Exposed,
) -> io::Result<(RemoteRegion, Exposure)> {
    let (start, bytes) = (memory.start(), memory.len());
    let access = local_access(memory) | remote_access(memory);
    // SAFETY: the exposure owns the memory, and drops the registration before it.
    let registration = unsafe { Registration::new(device, start, bytes, access) }?;
    Ok((
        remote(start, registration.keys().remote, bytes),
        Exposure {
            window: None,
            registration: Some(registration),
            slot: None,
            memory: None,
            is_revoking: false,
        },
    ))
}

fn remote(start: *const u8, key: u32, bytes: usize) -> RemoteRegion {
    RemoteRegion {
        address: start.addr() as u64,
        key,
        length: length(bytes),
    }
}

/// The access that the device itself needs so that the peer has access.
fn local_access(memory: &Exposed) -> c_int {
    if memory.is_to_write() {
        ffi::ACCESS_LOCAL_WRITE
    } else {
        0
    }
}

fn remote_access(memory: &Exposed) -> c_int {
    if memory.is_to_write() {
        ffi::ACCESS_REMOTE_WRITE
    } else {
        ffi::ACCESS_REMOTE_READ
    }
}
