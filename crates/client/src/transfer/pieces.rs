//! The pieces of the ranges that a transfer moves.

use std::ops::Range;

use proto::client::RequestId;

use crate::io::window::Window;
use crate::transfer::opens::Which;
use crate::transfer::options::Ranges;
use crate::transfer::plan::Plan;

/// A piece of a transfer that is in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) offset: u64,
    pub(crate) len: usize,
    pub(crate) which: Which,
}

impl Piece {
    pub(crate) fn end(&self) -> u64 {
        self.offset.saturating_add(self.len as u64)
    }
}

/// Cuts ranges into pieces, in order, and returns the missing parts of pieces again.
pub(crate) struct Pieces {
    /// Ranges that are not started.
    ranges: std::vec::IntoIter<Range<u64>>,
    /// Rest of the range before those.
    range: Range<u64>,
    /// End of the file, as far as it is known.
    end: u64,
    size: usize,
    /// Length of the first piece in bytes, until it is started.
    pub(crate) first: Option<usize>,
    /// As in `TransferOptions::span`.
    span: u64,
    /// Missing parts of pieces.
    pub(crate) again: Vec<Piece>,
}

impl Pieces {
    pub(crate) fn of(ranges: Ranges, plan: Plan, span: u64) -> Self {
        Self {
            ranges: ranges.0.into_iter(),
            range: 0..0,
            end: u64::MAX,
            size: plan.size,
            first: Some(plan.first),
            span,
            again: Vec::new(),
        }
    }

    /// Takes note that the READ of a piece returned `count` bytes. The rest is requested again; a
    /// READ without any bytes marks the end of the file.
    pub(crate) fn read(&mut self, piece: Piece, count: usize) {
        if count == 0 {
            self.end = self.end.min(piece.offset);
        } else if count < piece.len {
            self.again.push(Piece {
                offset: piece.offset + count as u64,
                len: piece.len - count,
                ..piece
            });
        }
    }

    /// The next piece that may be in flight while `first` is the lowest offset of one that is.
    pub(crate) fn next(&mut self, first: Option<u64>) -> Option<Piece> {
        // These parts are within pieces that were in flight, and they are the first to start.
        while let Some(piece) = self.again.pop() {
            if piece.offset < self.end {
                return Some(piece);
            }
        }
        while self.range.is_empty() {
            self.range = self.ranges.next()?;
        }
        let left = self.range.end.min(self.end);
        let left = left.saturating_sub(self.range.start);
        let size = self.first.unwrap_or(self.size);
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(size);
        let offset = self.range.start;
        let which = Which::default();
        let piece = Piece { offset, len, which };
        let is_far = first.is_some_and(|first| piece.end().saturating_sub(first) > self.span);
        if len == 0 || (self.span > 0 && is_far) {
            return None;
        }
        self.range.start += len as u64;
        self.first = None;
        Some(piece)
    }
}

/// Lowest offset in flight.
pub(crate) fn first<const N: usize>(windows: [&Window<Piece>; N]) -> Option<u64> {
    let pieces = windows.into_iter().flat_map(Window::keys);
    pieces.map(|piece| piece.offset).min()
}

/// The opens of the pieces in flight.
pub(crate) fn taken(window: &Window<Piece>) -> impl Iterator<Item = Which> {
    window.keys().map(|piece| piece.which)
}

/// The request of the same open behind which the next one waits, so that at most `most` execute.
pub(crate) fn behind(window: &Window<Piece>, which: Which, most: usize) -> Option<RequestId> {
    let by_it = window.numbered().filter(|(piece, _)| piece.which == which);
    let ids: Vec<_> = by_it.map(|(_, id)| id).collect();
    ids.len().checked_sub(most).map(|index| ids[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pieces: &mut Pieces) -> Vec<(u64, usize)> {
        let given = std::iter::from_fn(|| pieces.next(None));
        given.map(|piece| (piece.offset, piece.len)).collect()
    }

    fn piece(offset: u64, len: usize) -> Piece {
        let which = Which::default();
        Piece { offset, len, which }
    }

    #[test]
    fn what_came_short_is_asked_for_again_up_to_the_end() {
        let mut pieces = Pieces::of((10..35).into(), Plan::uniform(10, 1), 0);
        assert_eq!(all(&mut pieces), [(10, 10), (20, 10), (30, 5)]);
        pieces.read(piece(10, 10), 10);
        assert!(pieces.next(None).is_none());
        pieces.read(piece(20, 10), 4);
        let rest = pieces.next(None).expect("a rest");
        assert_eq!((rest.offset, rest.len), (24, 6));
        pieces.read(piece(30, 5), 1);
        pieces.read(rest, 0);
        assert!(pieces.next(None).is_none(), "nothing is behind the end");
    }

    #[test]
    fn ranges_follow_each_other_up_to_the_end() {
        let ranges = vec![0..15, 20..20, 30..40, 50..60];
        let mut pieces = Pieces::of(ranges.clone().into(), Plan::uniform(10, 1), 0);
        let given = [(0, 10), (10, 5), (30, 10), (50, 10)];
        assert_eq!(all(&mut pieces), given);
        let mut pieces = Pieces::of(ranges.into(), Plan::uniform(10, 1), 0);
        for _ in 0..3 {
            assert!(pieces.next(None).is_some());
        }
        pieces.read(piece(30, 10), 0);
        assert!(pieces.next(None).is_none(), "nothing is behind the end");
        let mut pieces = Pieces::of(Ranges::default(), Plan::uniform(10, 1), 0);
        assert!(pieces.next(None).is_none());
    }

    #[test]
    fn nothing_is_in_flight_further_from_the_first_than_the_span() {
        let mut pieces = Pieces::of(vec![0..30, 100..110].into(), Plan::uniform(10, 1), 25);
        assert!(pieces.next(None).is_some());
        assert!(pieces.next(Some(0)).is_some());
        assert!(
            pieces.next(Some(0)).is_none(),
            "30 bytes would be in flight"
        );
        assert!(pieces.next(Some(10)).is_some());
        assert!(pieces.next(Some(10)).is_none());
        assert!(pieces.next(Some(85)).is_some(), "holes count as well");
        // One that is larger than the span goes alone.
        let mut pieces = Pieces::of((0..60).into(), Plan::uniform(30, 1), 25);
        assert!(pieces.next(None).is_some());
        assert!(pieces.next(Some(0)).is_none());
        assert!(pieces.next(None).is_some());
    }
}
