//! The frames of a connection that wait, and the interim responses to their requests.
//! \[MS-SMB2\] 3.3.4.2

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use wire::{AsyncId, SessionId, TreeId};

use super::Connection;
use super::reply::Answer;
use super::task::{Pending, Task, TaskId};
use crate::effect::Effects;
use crate::time::{Instant, Now};

/// The frames of one connection that wait.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    waiting: BTreeMap<TaskId, Task>,
    /// Sum of [`Task::response_bytes`] of all of them.
    response_bytes: usize,
    /// When waiting requests get an interim response, the earliest first.
    interims: VecDeque<Interim>,
    /// Number of requests that got an interim response and still wait.
    pub(super) async_requests: usize,
}

/// The time of the interim response to a request that waits.
#[derive(Clone, Copy, Debug)]
struct Interim {
    at: Instant,
    task: TaskId,
    /// [`Request::number`](super::task::Request::number) of the request.
    number: u64,
}

impl Tasks {
    pub(super) fn insert(&mut self, task: Task) {
        self.response_bytes += task.response_bytes();
        self.waiting.insert(task.id, task);
    }

    pub(super) fn remove(&mut self, id: TaskId) -> Option<Task> {
        let task = self.waiting.remove(&id)?;
        self.response_bytes -= task.response_bytes();
        Some(task)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Task> {
        self.waiting.values()
    }

    /// Upper bound of the bytes of the responses to all of them.
    pub(super) fn response_bytes(&self) -> usize {
        self.response_bytes
    }

    /// Number of frames that wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The waiting requests that a CANCEL can mean: those that no member of their compound follows,
    /// and those with an interim response.
    pub(super) fn cancelable(&mut self) -> impl Iterator<Item = &mut Pending> {
        let tasks = self.waiting.values_mut();
        tasks.filter_map(|task| {
            let is_last = task.is_last();
            let pending = task.current.as_mut();
            pending.filter(|pending| is_last || pending.request.async_id.is_some())
        })
    }

    /// The frames that hold an answer to a CREATE back while another member waits for an event.
    pub(super) fn hiding_opens(&self) -> Vec<TaskId> {
        let hiding = self.iter().filter(|task| task.hides_an_open());
        hiding.map(|task| task.id).collect()
    }

    /// The frames with a waiting request of this session, and of this tree if one is given.
    pub(super) fn acting_on(
        &self,
        session: SessionId,
        tree: Option<TreeId>,
    ) -> impl Iterator<Item = &Task> {
        self.iter().filter(move |task| task.acts_on(session, tree))
    }

    /// Sends an interim response to a request at a time, if the request still waits then.
    pub(super) fn schedule_interim(&mut self, at: Instant, task: TaskId, number: u64) {
        self.interims.push_back(Interim { at, task, number });
    }

    /// When the next interim response is due.
    pub(super) fn next_interim(&self) -> Option<Instant> {
        self.interims.front().map(|interim| interim.at)
    }

    /// Sends no interim response any more.
    pub(super) fn stop_interims(&mut self) {
        self.interims.clear();
    }

    fn is_waiting(&self, interim: &Interim) -> bool {
        let task = self.waiting.get(&interim.task);
        let pending = task.and_then(|task| task.current.as_ref());
        pending.is_some_and(|pending| pending.request.number == Some(interim.number))
    }

    /// Drops the reminders of requests that are answered from the front of the queue, so that
    /// `next_timeout` names one that matters.
    pub(in crate::server) fn forget_stale_interims(&mut self) {
        while let Some(interim) = self.interims.front() {
            if self.is_waiting(interim) {
                return;
            }
            self.interims.pop_front();
        }
    }
}

impl Connection {
    /// Answers the requests that have waited for long with an interim response: the last member of
    /// a frame, or a CREATE, as Windows does. \[MS-SMB2\] 3.3.4.2, smbtorture
    /// smb2.compound_async.getinfo_middle
    pub(in crate::server) fn send_interims(&mut self, now: Now, effects: &mut Effects) {
        while let Some(interim) = self.tasks.interims.front().copied() {
            if interim.at > now.instant {
                return;
            }
            self.tasks.interims.pop_front();
            if self.tasks.async_requests < self.config.limits.async_requests
                && self.tasks.is_waiting(&interim)
            {
                self.send_interim(interim.task, effects);
            }
        }
    }

    fn send_interim(&mut self, id: TaskId, effects: &mut Effects) {
        let mut task = self.tasks.remove(id).expect("the task waits");
        if task.rest.is_empty() || task.awaits_create() {
            self.send(&mut task, effects);
            let async_id = AsyncId(self.number());
            let pending = task.current.as_mut().expect("the task waits");
            self.tasks.async_requests += 1;
            let answer = Answer::interim(&pending.request, async_id);
            pending.request.async_id = Some(async_id);
            task.answers.push(answer);
            self.send(&mut task, effects);
        }
        self.tasks.insert(task);
    }
}
