//! Memory of requests that the server uses by RDMA: who has it meanwhile, and how it comes home.
//!
//! The memory of a request is its caller's. While it is named the queue pair owns it, and a request
//! is not done before it is back: neither is its caller told, nor does another channel take it on.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use net::smbdirect::{Exposed, Exposure};
use proto::client::RequestId;
use tracing::debug;
use wire::smbd::BufferDescriptorV1;

use crate::io::call::Memory;
use crate::io::channel::{Channel, State};

/// Memory that the server may use, by the request that it belongs to.
#[derive(Default)]
pub(crate) struct Exposures {
    named: BTreeMap<RequestId, Exposure>,
    /// Requests whose memory is to be named once it is home from a first try.
    waiting: VecDeque<(RequestId, u32)>,
    /// Memory that is on its way home.
    coming: usize,
}

impl Channel {
    /// Names the memory of a request, and tells the core.
    pub(crate) fn expose(self: &Rc<Self>, state: &mut State, id: RequestId, length: u32) {
        if state.calls.is_away(id) {
            state.exposures.waiting.push_back((id, length));
            return;
        }
        let pieces = self.name(state, id, length);
        let now = self.thread.now();
        let State { core, effects, .. } = state;
        core.exposed(now, id, pieces, effects);
    }

    /// Names the memory of a request, if there is any and the adapter takes it.
    fn name(
        &self,
        state: &mut State,
        id: RequestId,
        length: u32,
    ) -> Option<Vec<BufferDescriptorV1>> {
        let remote = self.stream.remote()?;
        let memory = state.calls.lend(id, &self.io().pool())?;
        match remote.expose(memory) {
            Ok(exposure) => {
                let named = exposure.descriptor();
                assert!(named.length >= length, "memory is as long as its request");
                state.exposures.named.insert(id, exposure);
                Some(vec![BufferDescriptorV1 { length, ..named }])
            }
            Err((error, memory)) => {
                debug!(%error, "memory cannot be named");
                state.calls.come_home(id, home(memory));
                None
            }
        }
    }

    /// Takes the memory of a request out of the server's reach. It is home when that is so.
    pub(crate) fn withdraw(self: &Rc<Self>, state: &mut State, id: RequestId) {
        let Some(exposure) = state.exposures.named.remove(&id) else {
            return;
        };
        state.exposures.coming += 1;
        let channel = Rc::clone(self);
        self.io().spawn(async move {
            let memory = exposure.take_back().await;
            channel.come_home(id, memory);
        });
    }

    fn come_home(self: &Rc<Self>, id: RequestId, memory: Exposed) {
        {
            let mut state = self.state.borrow_mut();
            state.exposures.coming -= 1;
            state.calls.come_home(id, home(memory));
        }
        self.name_waiting();
        self.finish_calls();
        self.memory_home.raise();
    }

    /// Names the memory of requests that waited for it to be home, be it from a first try by RDMA
    /// or from a message.
    pub(crate) fn name_waiting(self: &Rc<Self>) {
        while let Some((id, length)) = self.next_waiting() {
            let pieces = self.name(&mut self.state.borrow_mut(), id, length);
            self.with_core(|core, now, effects| {
                core.exposed(now, id, pieces, effects);
            });
        }
    }

    fn next_waiting(&self) -> Option<(RequestId, u32)> {
        let mut state = self.state.borrow_mut();
        let State {
            calls, exposures, ..
        } = &mut *state;
        let mut waiting = exposures.waiting.iter();
        let index = waiting.position(|(id, _)| !calls.is_away(*id))?;
        exposures.waiting.remove(index)
    }

    /// Waits until nothing is out there any more. The connection has ended.
    pub(crate) async fn exposures_home(&self) {
        while self.state.borrow().exposures.coming > 0 {
            self.memory_home.lower();
            self.memory_home.raised().await;
        }
    }
}

/// What the queue pair gives back.
fn home(memory: Exposed) -> Memory {
    match memory {
        Exposed::ToRead(source) => Memory::Source(source),
        Exposed::ToWrite(region) => Memory::Destination(region),
        Exposed::BufferToWrite(_) => unreachable!("no request has a buffer of the pool"),
    }
}
