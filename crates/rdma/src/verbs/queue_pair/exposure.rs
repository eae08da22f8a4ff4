//! Regions in the peer's reach.
//!
//! With memory windows a region has a key of its own for the time in which it is exposed, and
//! either side can end it. What the window opens into is registered once where that can be: the
//! memory of a pool or pages of their own, as they are; a few bytes of others by way of a slot of
//! ours, because two copies cost less than to register and to forget. Larger memory of others is
//! registered for the time in which it is exposed. A registration that outlives that would be of
//! memory that its owner may free: the device would go on with pages that are nobody's any more.
//!
//! Without windows a region is registered for that time, wherever it is. The key of a registration
//! that stays would let the peer write late: into memory that has another use by then.

use std::ffi::c_int;
use std::io;
use std::sync::Arc;

use super::kept::Kept;
use super::{VerbsQueuePair, Work, length};
use crate::operand::{Exposed, Remote};
use crate::provider::{Event, QueuePair};
use crate::slots::{Slot, Slots};
use crate::verbs::device::{Device, Registration, Window};
use crate::verbs::ffi;
use crate::verbs::posting::Request;

/// Regions that may be exposed at one time: more than a client has requests under way.
pub(super) const EXPOSED_MAX: u32 = 1024;

/// Bytes of a region up to which it is exposed by way of a slot.
const SLOT_BYTES: usize = 32 << 10;

/// Slots of a queue pair for that; beyond them regions are registered.
const SLOTS: usize = 64;

/// A region in the peer's reach. The order of the fields matters: a window ends before what it
/// is in, and that before the memory does.
pub(super) struct Exposure {
    window: Option<Window>,
    registration: Option<Registration>,
    /// What the peer reaches in place of the memory.
    slot: Option<Slot>,
    /// `None` after the peer has ended it itself while we were about to.
    memory: Option<Exposed>,
    is_revoking: bool,
}

impl VerbsQueuePair {
    pub(super) fn expose_region(
        &mut self,
        mut memory: Exposed,
    ) -> Result<Remote, (io::Error, Exposed)> {
        match self.make_reachable(&mut memory) {
            Ok((remote, mut exposure)) => {
                exposure.memory = Some(memory);
                self.exposures.insert(remote.key, exposure);
                Ok(remote)
            }
            Err(error) => Err((error, memory)),
        }
    }

    /// The exposure has no memory yet; its maker puts it in before anything is posted.
    fn make_reachable(&mut self, memory: &mut Exposed) -> io::Result<(Remote, Exposure)> {
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
    ) -> io::Result<(Remote, Exposure)> {
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
                // SAFETY: the exposure keeps the memory, and drops the registration before it.
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
        self.start(Work::Bind, vec![bind], Kept::default());
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

    /// A slot with the bytes of a region that the device does not know, if they are few.
    fn slot_for(&mut self, memory: &Exposed) -> Option<Slot> {
        if memory.memory().is_some() || memory.len() > SLOT_BYTES {
            return None;
        }
        if self.slots.is_none() {
            self.slots = Slots::new(SLOTS, SLOT_BYTES).ok();
        }
        let mut slot = self.slots.as_ref()?.take()?;
        // Also where the peer is to write: it need not write all of them.
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
            self.start(Work::Invalidate(key), vec![request], Kept::default());
        } else {
            self.invalidated(key);
        }
    }

    /// A window is closed by us.
    pub(super) fn invalidated(&mut self, key: u32) {
        if let Some(exposure) = self.exposures.remove(&key) {
            self.take_back(key, exposure);
        }
    }

    /// A window is closed by the peer. One that we were about to close ourselves is used again
    /// when that is done, but its memory is free now.
    pub(super) fn invalidated_by_peer(&mut self, key: u32) {
        let Some(exposure) = self.exposures.get_mut(&key) else {
            return;
        };
        if !exposure.is_revoking {
            return self.invalidated(key);
        }
        if let Some(memory) = exposure.out_of_reach() {
            self.tell(Event::Revoked(key, memory));
        }
    }

    fn take_back(&mut self, key: u32, mut exposure: Exposure) {
        self.windows.extend(exposure.window.take());
        exposure.registration = None;
        if let Some(memory) = exposure.out_of_reach() {
            self.tell(Event::Revoked(key, memory));
        }
    }

    /// Closes all windows, for the end of the connection.
    pub(super) fn close_windows(&mut self) {
        self.windows.clear();
        for exposure in self.exposures.values_mut() {
            exposure.window = None;
        }
    }

    /// Brings all regions back. The queue pair is gone.
    pub(super) fn free_exposures(&mut self) {
        for (key, exposure) in std::mem::take(&mut self.exposures) {
            assert!(
                exposure.window.is_none(),
                "an open window keeps its region registered"
            );
            self.take_back(key, exposure);
        }
    }
}

impl Exposure {
    /// The memory, as the peer has left it. The peer reaches it no more.
    fn out_of_reach(&mut self) -> Option<Exposed> {
        let mut memory = self.memory.take()?;
        if let Some(slot) = self.slot.take() {
            memory.fill(&slot);
        }
        Some(memory)
    }
}

/// Where there are no windows a region is registered for the time in which it is exposed: its
/// key can be ended without a trace. Keys that live on would leave memory in the peer's reach.
fn expose_by_registration(
    device: &Arc<Device>,
    memory: &mut Exposed,
) -> io::Result<(Remote, Exposure)> {
    let (start, bytes) = (memory.start(), memory.len());
    let access = local_access(memory) | remote_access(memory);
    // SAFETY: the exposure keeps the memory, and drops the registration before it.
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

fn remote(start: *const u8, key: u32, bytes: usize) -> Remote {
    Remote {
        address: start.addr() as u64,
        key,
        length: length(bytes),
    }
}

/// What the device itself must be able to do, for the peer to do it.
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
