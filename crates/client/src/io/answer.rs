//! Answers of the core, and the location of their data.

use std::ops::Range;

use proto::client::request::{ReadData, Reply};
use proto::client::{Failure, RequestId};
use ring::Region;

use crate::error::Cause;
use crate::io::calls::{Calls, Outcome};

/// A received frame, decrypted by the core.
pub(crate) struct Frame<'a> {
    bytes: &'a [u8],
    may_stay: bool,
    retained: Option<Retained>,
}

/// The part of a frame that becomes the memory of a request.
pub(crate) enum Retained {
    /// The data of its READ.
    One(RequestId, Range<usize>),
    /// The data of each of its READs.
    Each(RequestId, Vec<Range<usize>>),
}

impl<'a> Frame<'a> {
    /// `may_stay`: whether the frame has a separate buffer, which one request may take.
    pub(crate) fn new(bytes: &'a [u8], may_stay: bool) -> Self {
        Self {
            bytes,
            may_stay,
            retained: None,
        }
    }

    /// The part that becomes the memory of a request.
    pub(crate) fn retained(self) -> Option<Retained> {
        self.retained
    }

    /// Whether a request takes the buffer for `len` bytes. A few bytes do not justify a whole
    /// buffer.
    fn is_worth(&self, len: usize) -> bool {
        self.may_stay && len > self.bytes.len() / 2
    }

    fn part(&self, range: &Range<usize>) -> &'a [u8] {
        let bytes = self.bytes.get(range.clone());
        bytes.expect("the core names a part of the frame")
    }

    /// Moves data to their request. Returns the count of bytes.
    fn place(&mut self, calls: &mut Calls, id: RequestId, range: Range<usize>) -> u32 {
        let bytes = self.part(&range);
        if self.is_worth(bytes.len()) && calls.keeps_frame(id) {
            self.retained = Some(Retained::One(id, range));
            return length(bytes);
        }
        calls.copy_to_destination(id, bytes)
    }
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("a frame is shorter than 4 GiB")
}

/// Sets the outcome of a request, and moves the data of the frame to it.
pub(crate) fn answer(
    calls: &mut Calls,
    mut frame: Option<&mut Frame<'_>>,
    id: RequestId,
    mut results: Vec<Result<Reply, Failure>>,
) {
    if calls.wants_each(id) {
        place_each(calls, frame.as_deref_mut(), id, &mut results);
    }
    let place = |result: Result<Reply, Failure>| match result {
        Ok(Reply::Read(ReadData::Inbound(range))) => {
            let frame = frame.as_deref_mut().expect("the data are in a frame");
            let len = frame.place(calls, id, range);
            Ok(Reply::Read(ReadData::Placed(len)))
        }
        // The destination is released before the call completes.
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

/// Moves the data of several READs to their request. The request takes the frame if it has all the
/// data, in their order.
fn place_each(
    calls: &mut Calls,
    mut frame: Option<&mut Frame<'_>>,
    id: RequestId,
    results: &mut [Result<Reply, Failure>],
) {
    let reads = results.iter_mut().filter_map(|result| match result {
        Ok(Reply::Read(data)) => Some(data),
        _ => None,
    });
    let mut reads: Vec<&mut ReadData> = reads.collect();
    if let Some(ranges) = ranges(&reads)
        && let Some(frame) = &mut frame
        && frame.is_worth(ranges.iter().map(Range::len).sum())
        && calls.keeps_frame(id)
    {
        for (data, range) in reads.iter_mut().zip(&ranges) {
            **data = ReadData::Placed(length(frame.part(range)));
        }
        frame.retained = Some(Retained::Each(id, ranges));
        return;
    }
    let copy = |data: &mut &mut ReadData| {
        let bytes = match std::mem::replace(*data, ReadData::Placed(0)) {
            ReadData::Inbound(range) => {
                let frame = frame.as_deref().expect("the data are in a frame");
                frame.part(&range).to_vec()
            }
            ReadData::Held(bytes) => bytes,
            ReadData::Placed(_) | ReadData::Remote(_) => Vec::new(),
        };
        **data = ReadData::Placed(length(&bytes));
        Region::from(bytes)
    };
    let parts = reads.iter_mut().map(copy).collect();
    calls.bring_each(id, parts);
}

/// The ranges of the data in the frame, if it has all of them, in ascending order.
fn ranges(reads: &[&mut ReadData]) -> Option<Vec<Range<usize>>> {
    let range = |data: &&mut ReadData| match &**data {
        ReadData::Inbound(range) => Some(range.clone()),
        _ => None,
    };
    let ranges: Vec<_> = reads.iter().map(range).collect::<Option<_>>()?;
    let are_in_order = ranges.is_sorted_by(|one, next| one.end <= next.start);
    are_in_order.then_some(ranges)
}
