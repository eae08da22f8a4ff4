//! Many jobs over one connection, some of them in flight.

use anyhow::{Context as _, Result};
use wire::MessageId;

use super::connection::{Answer, Connection};

/// Jobs of one or more requests each, one after the other within a job.
pub(super) trait Jobs {
    /// Puts the first request of job `index`.
    fn start(&mut self, connection: &mut Connection, index: u32) -> Result<MessageId>;

    /// What to do after an answer: go on, or be done.
    fn answered(&mut self, answer: &Answer<'_>) -> Result<Next>;

    /// Puts the request that an answer led to.
    fn continue_job(
        &mut self,
        connection: &mut Connection,
        next: wire::FileId,
    ) -> Result<MessageId>;
}

/// What follows an answer.
pub(super) enum Next {
    /// Another request, about this open.
    Request(wire::FileId),
    /// Nothing.
    Done,
}

/// Does `count` jobs, at most `depth` of them at a time. All requests that the answers at hand lead
/// to leave in one write.
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
            let place = place.context("an answer to nothing")?;
            match jobs.answered(&answer)? {
                Next::Request(file_id) => {
                    waiting[place] = jobs.continue_job(connection, file_id)?
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
