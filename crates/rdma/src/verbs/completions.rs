//! The completion queue of one queue pair, and the channel that reports its events.

use std::ffi::c_int;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::Duration;

use super::channel::set_nonblocking;
use super::device::Device;
use super::ffi;

/// Number of completions per poll.
const BATCH: usize = 32;

/// `drop` has the necessary order: the queue, its channel, then the device.
pub(super) struct Completions {
    cq: NonNull<ffi::Cq>,
    channel: NonNull<ffi::CompChannel>,
    /// An event is requested, or waits in the channel.
    is_armed: bool,
    device: Arc<Device>,
}

impl Completions {
    /// A queue for at least `entries` completions.
    pub(super) fn new(
        device: &Arc<Device>,
        entries: u32,
        moderation: Option<(u16, Duration)>,
    ) -> io::Result<Self> {
        let library = device.library();
        let context = device.context().as_ptr();
        // SAFETY: the device is open; returns null or a channel that the caller destroys.
        let channel = unsafe { (library.create_comp_channel)(context) };
        let channel = NonNull::new(channel).ok_or_else(io::Error::last_os_error)?;
        let entries = c_int::try_from(entries).unwrap_or(c_int::MAX);
        // SAFETY: device and channel are alive, and live longer than the queue; every device has
        // vector 0.
        let cq =
            unsafe { (library.create_cq)(context, entries, ptr::null_mut(), channel.as_ptr(), 0) };
        let Some(cq) = NonNull::new(cq) else {
            let error = io::Error::last_os_error();
            // SAFETY: destroyed once, and no queue uses it.
            unsafe { (library.destroy_comp_channel)(channel.as_ptr()) };
            return Err(error);
        };
        let completions = Self {
            cq,
            channel,
            is_armed: false,
            device: Arc::clone(device),
        };
        set_nonblocking(completions.fd())?;
        if let Some((count, period)) = moderation {
            completions.moderate(count, period);
        }
        Ok(completions)
    }

    pub(super) fn cq(&self) -> *mut ffi::Cq {
        self.cq.as_ptr()
    }

    pub(super) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    fn fd(&self) -> c_int {
        // SAFETY: the channel lives until `drop`, and its descriptor does not change.
        unsafe { (*self.channel.as_ptr()).fd }
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as the channel, which is borrowed.
        unsafe { BorrowedFd::borrow_raw(self.fd()) }
    }

    fn ops(&self) -> &ffi::ContextOps {
        // SAFETY: the device is open as long as `self.device`, and its table does not change.
        unsafe { &(*self.device.context().as_ptr()).ops }
    }

    /// Takes the next completions, up to a batch. An error means that the device is broken.
    pub(super) fn poll(&mut self) -> io::Result<Vec<ffi::Wc>> {
        let mut batch = [ffi::Wc::default(); BATCH];
        let poll = self.ops().poll_cq;
        // SAFETY: the queue is alive; the array has space for `BATCH` completions.
        let taken = unsafe { poll(self.cq.as_ptr(), BATCH as c_int, batch.as_mut_ptr()) };
        let taken = usize::try_from(taken)
            .map_err(|_| io::Error::other(format!("the completion queue fails: {taken}")))?;
        Ok(batch[..taken].to_vec())
    }

    /// Requests an event for the next completion. A completion that arrived before this call may
    /// have none, so the caller polls again.
    pub(super) fn arm(&mut self) -> io::Result<()> {
        if self.is_armed {
            return Ok(());
        }
        let arm = self.ops().req_notify_cq;
        // SAFETY: the queue is alive; 0 requests events for all completions.
        match unsafe { arm(self.cq.as_ptr(), 0) } {
            0 => self.is_armed = true,
            error => return Err(io::Error::from_raw_os_error(error.abs())),
        }
        Ok(())
    }

    /// Takes a waiting event, so that the descriptor is not readable any more, and requests the
    /// next one: one task may poll while another one waits. The caller polls after this.
    pub(super) fn take_event(&mut self) -> io::Result<()> {
        if !self.is_armed {
            return Ok(());
        }
        let (mut cq, mut context) = (ptr::null_mut(), ptr::null_mut());
        let channel = self.channel.as_ptr();
        let get = self.device.library().get_cq_event;
        // SAFETY: the channel is alive; both pointers are written on success.
        if unsafe { get(channel, &raw mut cq, &raw mut context) } != 0 {
            return Ok(());
        }
        self.is_armed = false;
        // SAFETY: the one queue of the channel, for the one event that was taken.
        unsafe { (self.device.library().ack_cq_events)(cq, 1) };
        self.arm()
    }

    /// Enables interrupt moderation. Devices without it raise an interrupt for each completion.
    fn moderate(&self, count: u16, period: Duration) {
        let Some(modify) = self.modify_cq() else {
            return;
        };
        let mut attributes = ffi::ModifyCqAttr {
            attr_mask: ffi::CQ_ATTR_MODERATE,
            count,
            period_us: u16::try_from(period.as_micros()).unwrap_or(u16::MAX),
        };
        // SAFETY: the queue is alive, and the attributes are readable during the call.
        let result = unsafe { modify(self.cq.as_ptr(), &raw mut attributes) };
        if result != 0 {
            tracing::debug!(result, "the device does not moderate completions");
        }
    }

    /// The `modify_cq` operation, which recent libraries store before the context.
    fn modify_cq(
        &self,
    ) -> Option<unsafe extern "C" fn(*mut ffi::Cq, *mut ffi::ModifyCqAttr) -> c_int> {
        let context = self.device.context();
        // SAFETY: the device is open.
        let marker = unsafe { context.as_ref() }.abi_compat;
        if marker.addr() != usize::MAX {
            return None;
        }
        let start = context.as_ptr().cast::<u8>();
        // SAFETY: the marker means that the context is the end of an extended one, which has its
        // size at that position.
        let size = unsafe { start.sub(ffi::EXTENDED_SIZE_BEFORE) };
        // SAFETY: as above; it is aligned as the context is.
        let size = unsafe { size.cast::<usize>().read() };
        if size < ffi::MODIFY_CQ_EXTENDED_SIZE {
            return None;
        }
        // SAFETY: by its size, the extended context starts before that position.
        let position = unsafe { start.sub(ffi::MODIFY_CQ_BEFORE) };
        // SAFETY: the value is a pointer to a function, or null if the device lacks the operation.
        unsafe { position.cast::<ffi::ModifyCq>().read() }
    }
}

impl Drop for Completions {
    fn drop(&mut self) {
        let library = self.device.library();
        // SAFETY: the queue pair is destroyed (its owner guarantees it), all events that were taken
        // are acknowledged; destroyed once.
        let result = unsafe { (library.destroy_cq)(self.cq.as_ptr()) };
        assert_eq!(result, 0, "a completion queue without a queue pair can go");
        // SAFETY: its one queue is destroyed; destroyed once.
        let result = unsafe { (library.destroy_comp_channel)(self.channel.as_ptr()) };
        assert_eq!(result, 0, "a channel without a queue can go");
    }
}
