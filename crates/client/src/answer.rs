//! Answers of the core, and where the data are that came with them.

use std::ops::Range;

use proto::client::request::{ReadData, Reply};
use proto::client::{Failure, RequestId};

use crate::calls::{Calls, Outcome};
use crate::error::Cause;

/// A frame that came in, opened by the core.
pub(crate) struct Frame<'a> {
    bytes: &'a [u8],
    may_stay: bool,
    kept: Option<(RequestId, Range<usize>)>,
}

impl<'a> Frame<'a> {
    /// `may_stay`: whether it has memory of its own, of which one request may keep a part.
    pub(crate) fn new(bytes: &'a [u8], may_stay: bool) -> Self {
        Self {
            bytes,
            may_stay,
            kept: None,
        }
    }

    /// What of it stays for which request.
    pub(crate) fn kept(self) -> Option<(RequestId, Range<usize>)> {
        self.kept
    }

    /// Brings data where they belong; tells how many bytes.
    fn place(&mut self, calls: &mut Calls, id: RequestId, range: Range<usize>) -> u32 {
        let bytes = self.bytes.get(range.clone());
        let bytes = bytes.expect("the core names a part of the frame");
        // A few bytes are not worth a whole buffer.
        let is_most = bytes.len() > self.bytes.len() / 2;
        if self.may_stay && is_most && calls.keeps_frame(id) {
            self.kept = Some((id, range));
            return u32::try_from(bytes.len()).expect("a frame is shorter than 4 GiB");
        }
        calls.copy_to_destination(id, bytes)
    }
}

/// Keeps the answer to a request, with data that came in the frame where they belong.
pub(crate) fn answer(
    calls: &mut Calls,
    mut frame: Option<&mut Frame<'_>>,
    id: RequestId,
    results: Vec<Result<Reply, Failure>>,
) {
    let place = |result: Result<Reply, Failure>| match result {
        Ok(Reply::Read(ReadData::Inbound(range))) => {
            let frame = frame.as_deref_mut().expect("data come in a frame");
            let len = frame.place(calls, id, range);
            Ok(Reply::Read(ReadData::Placed(len)))
        }
        // Its destination comes home before the call is told.
        Ok(Reply::Read(ReadData::Remote(len))) => Ok(Reply::Read(ReadData::Placed(len))),
        Ok(Reply::Read(ReadData::Held(bytes))) => {
            let len = calls.copy_to_destination(id, &bytes);
            Ok(Reply::Read(ReadData::Placed(len)))
        }
        Ok(reply) => Ok(reply),
        Err(failure) => Err(Cause::from(failure)),
    };
    let results = results.into_iter().map(place).collect();
    calls.settle(id, Outcome::Answer(results));
}
