//! A connection's two streams of bytes: segments that take their time and frames that they cut.

use std::collections::VecDeque;
use std::time::Duration;

use proto::time::Instant;
use wire::nbt::{DirectHeader, FRAME_HEADER_LEN};

use crate::choices::Choices;
use crate::scenario::Faults;

/// One direction of a connection. Nothing is lost or reordered within it.
#[derive(Debug, Default)]
pub(crate) struct Pipe {
    /// Under way.
    segments: VecDeque<Vec<u8>>,
    /// When the last of them arrives: none overtakes it.
    last: Instant,
    /// Arrived, and not yet a frame.
    arrived: Vec<u8>,
    /// Nothing that is sent from now on arrives.
    is_cut: bool,
}

impl Pipe {
    /// Sends a frame in segments; when each arrives.
    pub(crate) fn send(
        &mut self,
        frame: &[u8],
        now: Instant,
        faults: &Faults,
        choices: &mut Choices,
    ) -> Vec<Instant> {
        if self.is_cut {
            return Vec::new();
        }
        let length = u32::try_from(frame.len()).expect("a frame has a limit");
        let header = DirectHeader { length }.encode();
        let mut bytes = header.expect("a frame has a limit").to_vec();
        bytes.extend_from_slice(frame);
        let mut times = Vec::new();
        while !bytes.is_empty() {
            let end = match choices.per_mille(faults.segmented) {
                true => 1 + choices.index(bytes.len()),
                false => bytes.len(),
            };
            let rest = bytes.split_off(end);
            self.segments.push_back(std::mem::replace(&mut bytes, rest));
            self.last = self
                .last
                .max(now.after(delay(faults.network_delay, choices)));
            times.push(self.last);
        }
        times
    }

    /// The next segment arrives.
    pub(crate) fn arrive(&mut self) {
        if let Some(segment) = self.segments.pop_front() {
            self.arrived.extend(segment);
        }
    }

    /// The next whole frame that has arrived, without its prefix.
    pub(crate) fn frame(&mut self) -> Option<Vec<u8>> {
        let header = *self.arrived.first_chunk::<FRAME_HEADER_LEN>()?;
        let length = DirectHeader::decode(header).map(|header| header.length);
        let end = FRAME_HEADER_LEN + length.expect("both sides frame alike") as usize;
        if self.arrived.len() < end {
            return None;
        }
        let rest = self.arrived.split_off(end);
        let frame = std::mem::replace(&mut self.arrived, rest);
        Some(frame[FRAME_HEADER_LEN..].to_vec())
    }

    /// When the last byte that was sent arrives.
    pub(crate) fn last(&self) -> Instant {
        self.last
    }

    /// The connection is cut: of what is under way only the bytes before any one arrive.
    pub(crate) fn cut(&mut self, choices: &mut Choices) {
        self.is_cut = true;
        let under_way = self.segments.iter().map(Vec::len).sum::<usize>();
        let mut left = choices.index(under_way + 1);
        for segment in &mut self.segments {
            segment.truncate(left);
            left -= segment.len();
        }
    }

    /// The connection is reset: what is under way never arrives.
    pub(crate) fn reset(&mut self) {
        self.segments.clear();
        self.arrived.clear();
    }
}

/// Any time up to a limit, in microseconds.
pub(crate) fn delay(limit: Duration, choices: &mut Choices) -> Duration {
    let micros = u64::try_from(limit.as_micros()).unwrap_or(u64::MAX - 1);
    Duration::from_micros(50 + choices.below(micros + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_frames_are_put_together_again() {
        let faults = Faults {
            segmented: 900,
            ..Faults::default()
        };
        let mut choices = Choices::from_seed(1);
        let mut pipe = Pipe::default();
        let frames = [vec![1; 300], vec![], vec![2; 5]];
        let mut count = 0;
        for frame in &frames {
            let times = pipe.send(frame, Instant::default(), &faults, &mut choices);
            assert!(times.is_sorted());
            count += times.len();
        }
        let mut found = Vec::new();
        for _ in 0..count {
            pipe.arrive();
            found.extend(std::iter::from_fn(|| pipe.frame()));
        }
        assert_eq!(found, frames);
    }
}
