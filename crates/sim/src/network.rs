//! The two byte streams of a connection: segments with delays, and the frames that they cut.

use std::collections::VecDeque;
use std::time::Duration;

use proto::time::Instant;
use wire::nbt::{DirectHeader, FRAME_HEADER_LEN};

use crate::choices::Choices;
use crate::scenario::Faults;

/// One direction of a connection. It neither loses nor reorders bytes.
#[derive(Debug, Default)]
pub(crate) struct Pipe {
    /// Segments in flight.
    segments: VecDeque<Vec<u8>>,
    /// Arrival time of the last segment: no later segment overtakes it.
    last: Instant,
    /// Bytes that have arrived and are not a whole frame yet.
    arrived: Vec<u8>,
    /// Whether later bytes are lost.
    is_cut: bool,
}

impl Pipe {
    /// Sends a frame in segments. Returns their arrival times.
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

    /// Returns the next whole frame that has arrived, without its length prefix.
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

    /// Returns the arrival time of the last byte in flight.
    pub(crate) fn last(&self) -> Instant {
        self.last
    }

    /// Cuts the connection: of the bytes in flight, only a prefix arrives.
    pub(crate) fn cut(&mut self, choices: &mut Choices) {
        self.is_cut = true;
        let in_flight = self.segments.iter().map(Vec::len).sum::<usize>();
        let mut left = choices.index(in_flight + 1);
        for segment in &mut self.segments {
            segment.truncate(left);
            left -= segment.len();
        }
    }

    /// Resets the connection: no byte in flight arrives.
    pub(crate) fn reset(&mut self) {
        self.segments.clear();
        self.arrived.clear();
    }
}

/// Returns a random time up to a limit, in microseconds.
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
