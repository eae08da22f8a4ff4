//! Answers of the core, and where the data are that came with them.

use std::ops::Range;

use proto::client::request::{ReadData, Reply};
use proto::client::{Failure, RequestId};
use ring::Region;

use crate::error::Cause;
use crate::io::calls::{Calls, Outcome};

/// A frame that came in, opened by the core.
pub(crate) struct Frame<'a> {
    bytes: &'a [u8],
    may_stay: bool,
    kept: Option<Kept>,
}

/// What of a frame stays for which request.
pub(crate) enum Kept {
    /// The data of its READ.
    One(RequestId, Range<usize>),
    /// The data of each of its READs.
    Each(RequestId, Vec<Range<usize>>),
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
    pub(crate) fn kept(self) -> Option<Kept> {
        self.kept
    }

    /// Whether it may stay for the sake of so many bytes: a few are not worth a whole buffer.
    fn is_worth(&self, len: usize) -> bool {
        self.may_stay && len > self.bytes.len() / 2
    }

    fn part(&self, range: &Range<usize>) -> &'a [u8] {
        let bytes = self.bytes.get(range.clone());
        bytes.expect("the core names a part of the frame")
    }

    /// Brings data where they belong; tells how many bytes.
    fn place(&mut self, calls: &mut Calls, id: RequestId, range: Range<usize>) -> u32 {
        let bytes = self.part(&range);
        if self.is_worth(bytes.len()) && calls.keeps_frame(id) {
            self.kept = Some(Kept::One(id, range));
            return length(bytes);
        }
        calls.copy_to_destination(id, bytes)
    }
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("a frame is shorter than 4 GiB")
}

/// Keeps the answer to a request, with data that came in the frame where they belong.
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

/// Brings the data of many READs where they belong. They stay in the frame if all of them came
/// with it, in their order.
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
        frame.kept = Some(Kept::Each(id, ranges));
        return;
    }
    let copy = |data: &mut &mut ReadData| {
        let bytes = match std::mem::replace(*data, ReadData::Placed(0)) {
            ReadData::Inbound(range) => {
                let frame = frame.as_deref().expect("data come in a frame");
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

/// Where the data are in the frame, if all of them are there, one behind the other.
fn ranges(reads: &[&mut ReadData]) -> Option<Vec<Range<usize>>> {
    let range = |data: &&mut ReadData| match &**data {
        ReadData::Inbound(range) => Some(range.clone()),
        _ => None,
    };
    let ranges: Vec<_> = reads.iter().map(range).collect::<Option<_>>()?;
    let are_in_order = ranges.is_sorted_by(|one, next| one.end <= next.start);
    are_in_order.then_some(ranges)
}
