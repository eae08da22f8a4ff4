//! Incoming connections.

use std::ffi::c_int;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

use super::channel::{Depths, Id};
use super::device::{Device, Devices};
use super::ffi;
use super::queue_pair::VerbsQueuePair;
use super::readiness::Readiness;
use crate::provider::{Attributes, Listener, QueuePair, Request};
use crate::slots::Slot;

/// Number of connection requests that wait in the kernel.
const BACKLOG: c_int = 128;

/// The order of the fields matters: the identifier is destroyed before the device is closed.
pub(super) struct VerbsListener {
    devices: Arc<Devices>,
    id: Id,
    /// The device of the listening address. `None` for the addresses of all devices.
    device: Option<Arc<Device>>,
    readiness: Readiness,
}

impl VerbsListener {
    pub(super) fn new(devices: Arc<Devices>, address: SocketAddr) -> io::Result<Self> {
        let id = Id::new(devices.library())?;
        id.listen(address, BACKLOG)?;
        let readiness = Readiness::new()?;
        readiness.watch(id.channel().descriptor())?;
        // SAFETY: the identifier is bound to the device.
        let device = id.context().map(|context| unsafe { devices.of(context) });
        let device = device.transpose()?;
        if let Some(device) = &device {
            readiness.watch(device.removal().as_fd())?;
        }
        Ok(Self {
            devices,
            id,
            device,
            readiness,
        })
    }
}

impl Listener for VerbsListener {
    fn accept(&self) -> io::Result<Option<Box<dyn Request>>> {
        let removed = || io::Error::other("the device is removed");
        if self
            .device
            .as_ref()
            .is_some_and(|it| it.removal().is_raised())
        {
            return Err(removed());
        }
        while let Some(event) = self.id.channel().next()? {
            match event.kind {
                ffi::EVENT_CONNECT_REQUEST => {
                    match Id::of_request(self.devices.library(), event.id) {
                        Ok(id) => return Ok(Some(self.request(id, event.peer))),
                        Err(error) => {
                            tracing::warn!(%error, "cannot take over a connection request");
                        }
                    }
                }
                ffi::EVENT_DEVICE_REMOVAL => return Err(removed()),
                _ => {}
            }
        }
        Ok(None)
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.readiness.as_fd()
    }

    fn local_addr(&self) -> SocketAddr {
        self.id.local_addr()
    }
}

impl VerbsListener {
    fn request(&self, id: Id, offered: Depths) -> Box<dyn Request> {
        Box::new(VerbsRequest {
            devices: Arc::clone(&self.devices),
            id: Some(id),
            offered,
        })
    }
}

impl fmt::Debug for VerbsListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerbsListener({})", self.local_addr())
    }
}

struct VerbsRequest {
    devices: Arc<Devices>,
    /// `None` after the accept.
    id: Option<Id>,
    /// READs in flight that the peer offers, in each direction.
    offered: Depths,
}

impl Request for VerbsRequest {
    fn peer_addr(&self) -> SocketAddr {
        self.id.as_ref().expect("not accepted yet").peer_addr()
    }

    fn accept(
        mut self: Box<Self>,
        attributes: &Attributes,
        receives: Vec<Slot>,
    ) -> io::Result<Box<dyn QueuePair>> {
        let id = self.id.take().expect("accepted once");
        let devices = Arc::clone(&self.devices);
        let pair = VerbsQueuePair::accept(devices, id, self.offered, attributes, receives)?;
        Ok(Box::new(pair))
    }
}

impl Drop for VerbsRequest {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            id.reject();
        }
    }
}

impl fmt::Debug for VerbsRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerbsRequest({:?})", self.id.as_ref().map(Id::peer_addr))
    }
}
