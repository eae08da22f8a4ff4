//! READs and WRITEs with RDMA: with valid memory, with memory that is not registered, and with
//! invalid lists.
//!
//! An access to memory that is not registered ends the connection, unless the request fails before
//! the access. The server refuses an invalid list. In both cases it reads and writes no data. The
//! stamp of such a WRITE is in no ledger, so that a client that reads it has found a fault.

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

/// Content of the memory before a READ.
pub(super) const FILL: u8 = 0xEE;
/// More segments than the limit of [`crate::adapter::RDMA`].
const TOO_MANY: usize = 5;

/// The way in which a request names memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Valid memory.
    Honest,
    /// One segment is invalid.
    Lie,
    /// Valid memory in an encrypted session, where it is not permitted.
    Encrypted,
    /// The segments are shorter than the data.
    Short,
    /// More segments than negotiated.
    TooMany,
    /// No segment.
    Nothing,
    /// A segment beyond the last address.
    BeyondTheEnd,
    /// An unknown channel.
    UnknownChannel,
    /// The message contains data too, or would contain none.
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

/// The memory that a request names.
struct Named {
    channel: Channel,
    info: Vec<u8>,
    keys: Vec<u32>,
}

impl Client {
    /// Decides whether the next READ or WRITE names memory, and how.
    pub(super) fn way(&mut self, shared: &Shared<'_>) -> Option<Way> {
        let has_channels = self
            .agreed
            .is_some_and(|agreed| agreed.dialect >= Dialect::SMB_3_0);
        if self.carrier.rdma.is_none() || !has_channels {
            return None;
        }
        let is_invalid = self.choices.per_mille(shared.faults.invalid_memory);
        match self.protection {
            // A signature does not cover registered memory, so that the server may accept or refuse
            // it.
            Protection::Signed => None,
            Protection::Encrypted => is_invalid.then_some(Way::Encrypted),
            Protection::Plain if !is_invalid => self.choices.per_mille(700).then_some(Way::Honest),
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
        // A READ contains nothing that could contradict its list.
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

    /// Registers memory with these bytes.
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
            Way::BeyondTheEnd => {
                let length = u64::from(pieces[0].length);
                pieces[0].offset = u64::MAX - choices.below(256).min(length.saturating_sub(1));
            }
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

/// Returns the request with its memory. Unless the memory is valid, the request must fail.
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
