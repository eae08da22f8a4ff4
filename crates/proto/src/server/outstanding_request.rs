//! Requests that act on an open, counted by their ChannelSequence. \[MS-SMB2\] 3.3.5.2.10

use alloc::sync::Arc;

use wire::{Command, Flags, Header, Status};

use crate::server::open::Open;

/// A request that acts on an open. It counts in Open.OutstandingRequestCount, or after a change of
/// the ChannelSequence in Open.OutstandingPreRequestCount, until this value is dropped.
#[derive(Debug)]
pub(crate) struct OutstandingRequest {
    open: Arc<Open>,
    generation: u64,
}

/// Counts a request on its open. A request with an outdated ChannelSequence is not counted: it
/// fails with FILE_NOT_AVAILABLE where it would change the file, and runs uncounted elsewhere.
pub(crate) fn admit(
    open: &Arc<Open>,
    header: &Header,
) -> Result<Option<OutstandingRequest>, Status> {
    let number = channel_sequence(header);
    let is_replay = header.flags.contains(Flags::REPLAY_OPERATION);
    let admitted = open.sequence.lock().admit(number, is_replay);
    match admitted {
        Some(generation) => Ok(Some(OutstandingRequest {
            open: open.clone(),
            generation,
        })),
        None if changes(header.command) => Err(Status::FILE_NOT_AVAILABLE),
        None => Ok(None),
    }
}

/// The ChannelSequence of a request, which is where a response has its status.
/// \[MS-SMB2\] 2.2.1.2
pub(crate) fn channel_sequence(header: &Header) -> u16 {
    (header.status.0 & 0xFFFF) as u16
}

/// Whether an outdated request of this command does harm.
fn changes(command: Command) -> bool {
    matches!(command, Command::WRITE | Command::SET_INFO | Command::IOCTL)
}

impl Drop for OutstandingRequest {
    fn drop(&mut self) {
        self.open.sequence.lock().end(self.generation);
    }
}
