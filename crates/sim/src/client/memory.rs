//! READs and WRITEs whose data go by RDMA: with memory as it should be named, with memory that is
//! not there, and with lists that no server may take.
//!
//! A lie ends the connection, unless the request fails before anybody reaches for it, and a list
//! that cannot be is refused: nothing is ever read or written for either. The stamp of such a WRITE
//! is in no book, so that whoever sees it has found a file that it has changed.

use std::ops::Range;

use proto::client::Direction;
use wire::FileId;
use wire::dialect::Dialect;
use wire::read::Channel;
use wire::smbd::BufferDescriptorV1;

use super::call::{Call, Intent};
use super::{Client, Shared};
use crate::check::contents::{CELL, Stamp};
use crate::scenario::Protection;

/// What is in memory that a READ is to fill.
pub(super) const FILL: u8 = 0xEE;
/// More than the limit of [`crate::adapter::RDMA`].
const TOO_MANY: usize = 5;

/// How memory is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// As it should be.
    Honest,
    /// One piece is not what it is said to be.
    Lie,
    /// Well, where it must not be: in a session that is sealed.
    Sealed,
    /// The pieces have room for less than all.
    Short,
    /// More pieces than were agreed on.
    TooMany,
    /// None at all.
    Nothing,
    /// A piece beyond the last address.
    BeyondTheEnd,
    /// A channel that there is not.
    UnknownChannel,
    /// The message has data besides, or would have none at all.
    Ambiguous,
}

const IMPOSSIBLE: [Way; 6] = [
    Way::Short,
    Way::TooMany,
    Way::Nothing,
    Way::BeyondTheEnd,
    Way::UnknownChannel,
    Way::Ambiguous,
];

/// What a request says of memory.
struct Named {
    channel: Channel,
    info: Vec<u8>,
    keys: Vec<u32>,
}

impl Client {
    /// Whether the next READ or WRITE names memory, and how.
    pub(super) fn way(&mut self, shared: &Shared<'_>) -> Option<Way> {
        let has_channels = self
            .agreed
            .is_some_and(|agreed| agreed.dialect >= Dialect::SMB_3_0);
        if self.carrier.rdma.is_none() || !has_channels {
            return None;
        }
        let lies = self.choices.per_mille(shared.faults.lies);
        match self.protection {
            // What a server makes of a signature, which covers no memory, is its own affair.
            Protection::Signed => None,
            Protection::Sealed => lies.then_some(Way::Sealed),
            Protection::Plain if !lies => self.choices.per_mille(700).then_some(Way::Honest),
            Protection::Plain => Some(match self.choices.per_mille(200) {
                true => Way::Lie,
                false => self.choices.pick(&IMPOSSIBLE),
            }),
        }
    }

    pub(super) fn read_by_rdma(
        &mut self,
        way: Way,
        (slot, file_id): (u64, FileId),
        cells: Range<u32>,
        shared: &mut Shared<'_>,
    ) -> Call {
        // A READ has nothing that could contradict its list.
        let way = if way == Way::Ambiguous {
            Way::Short
        } else {
            way
        };
        let bytes = vec![FILL; (cells.end - cells.start) as usize * CELL];
        let named = self.name(way, Direction::Read, &bytes, shared);
        let read = Call::read_to(slot, file_id, cells, (named.channel, &named.info));
        judged(read, way, named)
    }

    pub(super) fn write_by_rdma(
        &mut self,
        way: Way,
        (slot, file_id): (u64, FileId),
        (cells, stamp): (Range<u32>, Stamp),
        shared: &mut Shared<'_>,
    ) -> Call {
        let bytes = stamp.fill(cells.end - cells.start);
        let named = self.name(way, Direction::Write, &bytes, shared);
        let length = u32::try_from(bytes.len()).expect("files are small");
        let data = match way {
            Way::Ambiguous if self.choices.per_mille(500) => (length, &bytes[..]),
            Way::Ambiguous => (0, &[][..]),
            _ => (length, &[][..]),
        };
        let channel = (named.channel, &named.info[..]);
        let write = Call::write_from(slot, file_id, (cells, stamp), channel, data);
        judged(write, way, named)
    }

    /// Names memory that holds `bytes`.
    fn name(
        &mut self,
        way: Way,
        direction: Direction,
        bytes: &[u8],
        shared: &mut Shared<'_>,
    ) -> Named {
        let choices = &mut self.choices;
        let mut pieces = shared.adapter.expose(direction, bytes, choices);
        let keys: Vec<u32> = pieces.iter().map(|piece| piece.token).collect();
        match way {
            Way::Honest => {}
            Way::Lie => shared.adapter.pretend(&mut pieces, choices),
            _ => shared.adapter.forbid(&keys),
        }
        match way {
            Way::Short => {
                let last = pieces.last_mut().expect("there are bytes");
                last.length -= 1;
            }
            Way::TooMany => {
                let last = *pieces.last().expect("there are bytes");
                pieces.resize(TOO_MANY, last);
            }
            Way::Nothing => pieces.clear(),
            Way::BeyondTheEnd => pieces[0].offset = u64::MAX - choices.below(256),
            _ => {}
        }
        let may_invalidate = self
            .agreed
            .is_some_and(|agreed| agreed.dialect >= Dialect::SMB_3_0_2);
        let channel = match way {
            Way::UnknownChannel => Channel(3 + choices.below(200) as u32),
            _ if may_invalidate && choices.per_mille(500) => Channel::RDMA_V1_INVALIDATE,
            _ => Channel::RDMA_V1,
        };
        let mut info = Vec::new();
        pieces
            .iter()
            .for_each(|piece: &BufferDescriptorV1| piece.encode(&mut info));
        Named {
            channel,
            info,
            keys,
        }
    }
}

/// The request with its memory: unless that was named as it should be, it must fail.
fn judged(call: Call, way: Way, named: Named) -> Call {
    let intent = match way {
        Way::Honest => call.intent,
        _ => Intent::Impossible,
    };
    Call {
        intent,
        memory: named.keys,
        ..call
    }
}
