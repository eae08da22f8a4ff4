//! Sending: frames as messages, and messages as SENDs of a header and slices of their parts.

use std::cell::{Cell, RefCell};
use std::io;
use std::ops::Range;
use std::rc::Rc;

use proto::smbd::{MessageToken, Outgoing, Refusal};
use rdma::{Piece, WorkId};
use ring::Part;

use crate::PREFIX_LEN;
use crate::smbdirect::driver::{State, TornGuard};
use crate::smbdirect::once::Once;
use crate::smbdirect::{KEY_LEN, PREFIX_INVALIDATES, Stream};

/// Bytes at the start of a SEND that are gathered: the header, and data up to this size. One piece
/// costs less than two, and most responses are as short.
pub(crate) const HEAD_BYTES: usize = 512;

/// A range of a part.
type Segment = (Rc<Part>, Range<usize>);

/// A message that is being sent.
pub(crate) struct Message {
    segments: Vec<Segment>,
    batch: Rc<Batch>,
}

impl Message {
    /// Releases the memory of the message.
    pub(crate) fn batch(self) -> Rc<Batch> {
        self.batch
    }

    /// The slices of `range` of the message.
    fn slices(&self, range: Range<usize>) -> impl Iterator<Item = Segment> {
        let mut start = 0;
        self.segments.iter().filter_map(move |(part, segment)| {
            let here = start..start + segment.len();
            start = here.end;
            let (from, to) = (range.start.max(here.start), range.end.min(here.end));
            let at = |place: usize| place - here.start + segment.start;
            (from < to).then(|| (Rc::clone(part), at(from)..at(to)))
        })
    }
}

/// The parts of one call of `send`.
pub(crate) struct Batch {
    parts: RefCell<Vec<Rc<Part>>>,
    /// Number of unsent messages.
    left: Cell<usize>,
    done: Once<(io::Result<()>, Vec<Part>)>,
}

impl Batch {
    /// Counts a sent message. Returns whether all are sent.
    pub(crate) fn message_sent(&self) -> bool {
        self.left.set(self.left.get() - 1);
        self.left.get() == 0
    }

    /// Returns the parts, unless an operation without a completion uses some of them.
    pub(crate) fn try_finish(&self) -> bool {
        let is_held = |part: &Rc<Part>| Rc::strong_count(part) > 1;
        if self.parts.borrow().iter().any(is_held) {
            return false;
        }
        self.finish(Ok(()));
        true
    }

    /// Returns the parts. Only the first call has an effect, because several messages may end
    /// together.
    pub(crate) fn finish(&self, result: io::Result<()>) {
        let parts = self.parts.take();
        if parts.is_empty() {
            return;
        }
        let parts = parts.into_iter().filter_map(Rc::into_inner).collect();
        self.done.set((result, parts));
    }
}

impl Stream {
    /// Sends all frames, and returns the parts when the queue pair does not need them any more.
    pub(crate) async fn send(&self, parts: Vec<Part>) -> (io::Result<()>, Vec<Part>) {
        if parts.is_empty() {
            return (Ok(()), parts);
        }
        let shared = self.shared();
        if shared.state.borrow().is_over() {
            return (Err(shared.state.borrow().error()), parts);
        }
        let guard = TornGuard::new(shared);
        let batch = shared.state.borrow_mut().queue(parts);
        shared.changed();
        let (result, parts) = batch.done.take().await;
        guard.complete();
        (result, parts)
    }
}

impl State {
    /// Passes the frames to the core.
    fn queue(&mut self, parts: Vec<Part>) -> Rc<Batch> {
        let parts: Vec<Rc<Part>> = parts.into_iter().map(Rc::new).collect();
        let frames = cut(&parts);
        let batch = Rc::new(Batch {
            parts: RefCell::new(parts),
            left: Cell::new(frames.len()),
            done: Once::new(),
        });
        for frame in frames {
            self.last_token += 1;
            let token = MessageToken(self.last_token);
            let message = Message {
                segments: frame.segments,
                batch: Rc::clone(&batch),
            };
            self.messages.insert(token, message);
            if let Err(refusal) = self.give(token, frame.length, frame.invalidate) {
                self.fail(io::ErrorKind::InvalidData, &refusal.to_string());
            }
        }
        if batch.left.get() == 0 {
            batch.finish(Ok(()));
        }
        self.pump();
        batch
    }

    fn give(
        &mut self,
        token: MessageToken,
        length: u32,
        invalidate: Option<u32>,
    ) -> Result<(), Refusal> {
        let now = self.now();
        let Self { core, effects, .. } = self;
        core.send(now, token, length, invalidate, effects)
    }

    /// Posts one SEND.
    pub(crate) fn post_send(&mut self, work: WorkId, outgoing: &Outgoing) {
        let header = outgoing.header.as_slice();
        let slices: Vec<Segment> = match &outgoing.piece {
            None => Vec::new(),
            Some(piece) => {
                let message = self.messages.get(&piece.token);
                let message = message.expect("a message stays until it is sent");
                let range = piece.range.start as usize..piece.range.end as usize;
                message.slices(range).collect()
            }
        };
        let mut pieces = self.gather(header, slices);
        if pieces.len() > self.pair.limits().pieces as usize {
            pieces = vec![in_one(&pieces)];
        }
        self.pair.post_send(work, pieces, outgoing.invalidate);
    }

    /// Gathers the header and as much data as fits into one piece. The rest stays in its parts.
    fn gather(&self, header: &[u8], slices: Vec<Segment>) -> Vec<Piece> {
        let Some(mut head) = self.heads.take() else {
            // All headers are in use by operations without a completion.
            let head = whole(Part::Bytes(header.to_vec()));
            let rest = slices.into_iter();
            let rest = rest.map(|(part, range)| Piece::Shared(part, range));
            return std::iter::once(head).chain(rest).collect();
        };
        head[..header.len()].copy_from_slice(header);
        let mut used = header.len();
        let mut pieces = Vec::with_capacity(1 + slices.len());
        for (part, range) in slices {
            match head.get_mut(used..used + range.len()) {
                Some(space) if pieces.is_empty() => {
                    used += range.len();
                    space.copy_from_slice(&part.bytes()[range]);
                }
                _ => pieces.push(Piece::Shared(part, range)),
            }
        }
        pieces.insert(0, Piece::Slot(head, 0..used));
        pieces
    }
}

fn in_one(pieces: &[Piece]) -> Piece {
    let bytes: Vec<u8> = pieces.iter().flat_map(Piece::bytes).copied().collect();
    whole(Part::Bytes(bytes))
}

pub(crate) fn whole(part: Part) -> Piece {
    let range = 0..part.bytes().len();
    Piece::Shared(Rc::new(part), range)
}

/// A frame without its prefix.
struct Frame {
    length: u32,
    invalidate: Option<u32>,
    segments: Vec<Segment>,
}

/// Splits the parts into frames, each after its prefix.
fn cut(parts: &[Rc<Part>]) -> Vec<Frame> {
    let mut cursor = Cursor {
        parts,
        index: 0,
        offset: 0,
    };
    let mut frames = Vec::new();
    while let Some([flags, high, middle, low]) = cursor.array::<PREFIX_LEN>() {
        let invalidate = (flags == PREFIX_INVALIDATES).then(|| {
            let key = cursor.array::<KEY_LEN>();
            u32::from_le_bytes(key.expect("a key follows"))
        });
        let length = u32::from_be_bytes([0, high, middle, low]);
        frames.push(Frame {
            length,
            invalidate,
            segments: cursor.segments(length as usize),
        });
    }
    frames
}

struct Cursor<'a> {
    parts: &'a [Rc<Part>],
    index: usize,
    offset: usize,
}

impl Cursor<'_> {
    /// The next segment of at most `len` bytes.
    fn segment(&mut self, len: usize) -> Option<Segment> {
        loop {
            let part = self.parts.get(self.index)?;
            let left = part.bytes().len() - self.offset;
            if left == 0 {
                self.index += 1;
                self.offset = 0;
                continue;
            }
            let start = self.offset;
            self.offset += left.min(len);
            return Some((Rc::clone(part), start..self.offset));
        }
    }

    fn segments(&mut self, len: usize) -> Vec<Segment> {
        let mut segments = Vec::new();
        let mut left = len;
        while left > 0 {
            let segment = self.segment(left).expect("whole frames are sent");
            left -= segment.1.len();
            segments.push(segment);
        }
        segments
    }

    /// The next bytes, or `None` at the end.
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        let mut done = 0;
        while done < N {
            let Some((part, range)) = self.segment(N - done) else {
                assert_eq!(done, 0, "whole frames are sent");
                return None;
            };
            bytes[done..done + range.len()].copy_from_slice(&part.bytes()[range.clone()]);
            done += range.len();
        }
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(segments: &[Segment]) -> Vec<u8> {
        let bytes = |(part, range): &Segment| part.bytes()[range.clone()].to_vec();
        segments.iter().flat_map(bytes).collect()
    }

    #[test]
    fn frames_are_cut_wherever_parts_end() {
        let stream = [
            &[0, 0, 0, 3, 1, 2, 3][..],
            &[0, 0, 0, 0],
            &[1, 0, 0, 2, 0x44, 0x33, 0x22, 0x11, 8, 9],
            &[0, 0, 1, 0],
            &[7; 256],
        ]
        .concat();
        for step in 1..stream.len() {
            let parts: Vec<_> = stream
                .chunks(step)
                .flat_map(|chunk| [Part::Bytes(chunk.to_vec()), Part::Bytes(Vec::new())])
                .map(Rc::new)
                .collect();
            let frames = cut(&parts);
            let seen: Vec<_> = frames
                .iter()
                .map(|frame| (frame.length, frame.invalidate, bytes_of(&frame.segments)))
                .collect();
            let expected = [
                (3, None, vec![1, 2, 3]),
                (0, None, vec![]),
                (2, Some(0x1122_3344), vec![8, 9]),
                (256, None, vec![7; 256]),
            ];
            assert_eq!(seen, expected, "in steps of {step}");
        }
    }

    #[test]
    fn slices_have_the_bytes_of_the_range() {
        let parts: Vec<_> = [&[9, 9, 1, 2, 3][..], &[4], &[5, 6, 7, 8]]
            .map(|bytes| Rc::new(Part::Bytes(bytes.to_vec())))
            .into();
        let message = Message {
            segments: vec![
                (Rc::clone(&parts[0]), 2..5),
                (Rc::clone(&parts[1]), 0..1),
                (Rc::clone(&parts[2]), 0..3),
            ],
            batch: Rc::new(Batch {
                parts: RefCell::default(),
                left: Cell::new(1),
                done: Once::new(),
            }),
        };
        let whole = [1, 2, 3, 4, 5, 6, 7];
        for start in 0..whole.len() {
            for end in start..=whole.len() {
                let slices: Vec<_> = message.slices(start..end).collect();
                assert_eq!(bytes_of(&slices), whole[start..end], "{start}..{end}");
            }
        }
    }
}
