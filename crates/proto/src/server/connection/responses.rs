//! The number of sent responses, for status displays.

use wire::Status;

/// The number of final responses that a connection sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Responses {
    /// All final responses.
    pub all: u64,
    /// Responses with an error status. Many are no faults, such as OBJECT_NAME_NOT_FOUND for a
    /// client that looks for a file. MORE_PROCESSING_REQUIRED does not count.
    pub errors: u64,
}

impl Responses {
    /// Counts a response with this status.
    pub(super) fn count(&mut self, status: Status) {
        self.all += 1;
        if status.is_error() && status != Status::MORE_PROCESSING_REQUIRED {
            self.errors += 1;
        }
    }
}
