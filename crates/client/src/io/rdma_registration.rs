//! Memory of requests that the server reads and writes by RDMA.
//!
//! The memory of a request is its caller's. While it is registered the queue pair owns it. A
//! request is not done before its memory is back: until then its caller is not notified, and no
//! other channel takes the request over.

use std::collections::{BTreeMap, VecDeque};

use net::smbdirect::{Exposed, Exposure, RdmaMemory};
use proto::client::RequestId;
use ring::Pool;
use tracing::debug;
use wire::smbd::BufferDescriptorV1;

use crate::io::call::Memory;
use crate::io::calls::Calls;

/// The registrations of a channel.
#[derive(Default)]
pub(crate) struct Registrations {
    registered: BTreeMap<RequestId, Exposure>,
    /// Requests whose memory is registered once a first try has given it back, with the length in
    /// bytes.
    postponed: VecDeque<(RequestId, u32)>,
    /// Count of invalidations in progress.
    releasing: usize,
}

impl Registrations {
    /// Registers `length` bytes of the memory of a request; `None` if the request has none, or the
    /// adapter refuses.
    pub(crate) fn register(
        &mut self,
        rdma: &RdmaMemory,
        calls: &mut Calls,
        pool: &Pool,
        (id, length): (RequestId, u32),
    ) -> Option<Vec<BufferDescriptorV1>> {
        let memory = calls.lend(id, pool)?;
        match rdma.expose(memory) {
            Ok(exposure) => {
                let whole = exposure.descriptor();
                assert!(whole.length >= length, "memory is as long as its request");
                self.registered.insert(id, exposure);
                Some(vec![BufferDescriptorV1 { length, ..whole }])
            }
            Err((error, memory)) => {
                debug!(%error, "memory cannot be registered");
                calls.come_home(id, released(memory));
                None
            }
        }
    }

    /// The memory of a request is with a first try: registers it later.
    pub(crate) fn postpone(&mut self, id: RequestId, length: u32) {
        self.postponed.push_back((id, length));
    }

    /// The first postponed request whose memory is back.
    pub(crate) fn next_postponed(&mut self, calls: &Calls) -> Option<(RequestId, u32)> {
        let mut postponed = self.postponed.iter();
        let index = postponed.position(|(id, _)| !calls.is_away(*id))?;
        self.postponed.remove(index)
    }

    /// Begins to invalidate the registration of a request's memory. [`Self::released`] ends it.
    pub(crate) fn release(&mut self, id: RequestId) -> Option<Exposure> {
        let exposure = self.registered.remove(&id)?;
        self.releasing += 1;
        Some(exposure)
    }

    /// An invalidation is done.
    pub(crate) fn released(&mut self) {
        self.releasing -= 1;
    }

    /// Whether the server may still use memory whose invalidation has begun.
    pub(crate) fn is_releasing(&self) -> bool {
        self.releasing > 0
    }
}

/// The memory that the queue pair gives back.
pub(crate) fn released(memory: Exposed) -> Memory {
    match memory {
        Exposed::ToRead(source) => Memory::Source(source),
        Exposed::ToWrite(region) => Memory::Destination(region),
        Exposed::BufferToWrite(_) => unreachable!("no request has a buffer of the pool"),
    }
}
