//! Runs many jobs over one connection, with several in flight.

use anyhow::{Context as _, Result};
use wire::MessageId;

use super::connection::{Answer, Connection};

/// A sequence of jobs. Each job sends one or more requests in order.
pub(super) trait Jobs {
    /// Queues the first request of job `index`.
    fn start(&mut self, connection: &mut Connection, index: u32) -> Result<MessageId>;

    /// Handles a response, and decides whether the job needs another request.
    fn answered(&mut self, answer: &Answer<'_>) -> Result<Next>;

    /// Queues the next request of a job.
    fn continue_job(
        &mut self,
        connection: &mut Connection,
        next: wire::FileId,
    ) -> Result<MessageId>;
}

/// The next step of a job.
pub(super) enum Next {
    /// Another request for this open.
    Request(wire::FileId),
    /// The job is done.
    Done,
}

/// Runs `count` jobs, at most `depth` at the same time. The requests that follow available
/// responses are sent with one write.
pub(super) fn run(
    connection: &mut Connection,
    jobs: &mut dyn Jobs,
    count: u32,
    depth: usize,
) -> Result<()> {
    let mut waiting: Vec<MessageId> = Vec::with_capacity(depth);
    let mut next = 0;
    loop {
        while waiting.len() < depth && next < count {
            waiting.push(jobs.start(connection, next)?);
            next += 1;
        }
        if waiting.is_empty() {
            return Ok(());
        }
        connection.flush()?;
        loop {
            let answer = connection.receive()?;
            let message_id = answer.header.message_id;
            let place = waiting.iter().position(|waits| *waits == message_id);
            let place = place.context("a response without a request")?;
            match jobs.answered(&answer)? {
                Next::Request(file_id) => {
                    waiting[place] = jobs.continue_job(connection, file_id)?;
                }
                Next::Done => {
                    waiting.swap_remove(place);
                }
            }
            if !connection.has_answer() {
                break;
            }
        }
    }
}
