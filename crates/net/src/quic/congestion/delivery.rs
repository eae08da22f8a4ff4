//! The delivery rate of a path, measured from acknowledgements. draft-cheng-iccrg-delivery-rate
//!
//! The rate is the number of bytes delivered while a packet was in flight, divided by that time or
//! by the time of sending them, whichever is longer. quinn-proto reports the send time of packets
//! when they are sent and when they are acknowledged. So the state of a packet is stored by its
//! send time, once for all packets of one turn.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Most stored send times. With more packets in flight an earlier time is used, and the rate is
/// measured over a longer time.
const MARKS_MAX: usize = 2048;

/// Delivered bytes now, and at the time when packets were sent.
#[derive(Clone, Debug)]
pub(super) struct Delivery {
    /// Number of delivered bytes.
    bytes: u64,
    /// Time of the last acknowledgement, and send time of its newest packet.
    at: Instant,
    sent: Instant,
    /// No packet is in flight.
    is_idle: bool,
    /// Number of delivered bytes up to which the sender was limited by its data.
    limited_until: u64,
    marks: VecDeque<Mark>,
    /// Bytes of the acknowledgement in progress, and the send time of its newest packet.
    batch: Option<(u64, Instant)>,
}

/// A time of sending.
#[derive(Clone, Debug)]
struct Mark {
    at: Instant,
    /// The rest of [`Delivery`] at that time.
    delivered: u64,
    delivered_at: Instant,
    delivered_sent: Instant,
    is_limited: bool,
}

/// What an acknowledgement shows.
#[derive(Debug)]
pub(super) struct Sample {
    /// Bytes that it covers.
    pub(super) bytes: u64,
    /// When the newest packet that it covers was sent.
    pub(super) sent: Instant,
    /// Time that the packet was in flight.
    pub(super) round_trip: Duration,
    /// Bytes delivered meanwhile, and in what time.
    delivered: u64,
    time: Duration,
    /// The sender had less to send than it might.
    pub(super) is_limited: bool,
}

impl Sample {
    /// Bytes per second; `None` where it took less than a round trip, as by a clock that jumps.
    pub(super) fn rate(&self, round_trip: Option<Duration>) -> Option<u64> {
        if self.time.is_zero() || round_trip.is_some_and(|least| self.time < least) {
            return None;
        }
        let rate = u128::from(self.delivered) * 1_000_000_000 / self.time.as_nanos();
        u64::try_from(rate).ok()
    }
}

impl Delivery {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            bytes: 0,
            at: now,
            sent: now,
            is_idle: true,
            limited_until: 0,
            marks: VecDeque::new(),
            batch: None,
        }
    }

    /// Packets have been sent.
    pub(super) fn sent(&mut self, now: Instant) {
        if self.is_idle {
            self.is_idle = false;
            (self.at, self.sent) = (now, now);
        }
        let is_new = self.marks.back().is_none_or(|last| last.at < now);
        if is_new && self.marks.len() < MARKS_MAX {
            self.marks.push_back(Mark {
                at: now,
                delivered: self.bytes,
                delivered_at: self.at,
                delivered_sent: self.sent,
                is_limited: self.bytes < self.limited_until,
            });
        }
    }

    /// A packet has arrived.
    pub(super) fn acknowledged(&mut self, sent: Instant, bytes: u64) {
        let batch = self.batch.get_or_insert((0, sent));
        batch.0 += bytes;
        batch.1 = batch.1.max(sent);
    }

    /// The acknowledgement is taken in.
    pub(super) fn settle(
        &mut self,
        now: Instant,
        in_flight: u64,
        is_limited: bool,
    ) -> Option<Sample> {
        let (bytes, sent) = self.batch.take()?;
        self.bytes += bytes;
        self.at = now;
        self.is_idle = in_flight == 0;
        if is_limited {
            self.limited_until = self.bytes + in_flight.max(1);
        }
        while self.marks.get(1).is_some_and(|mark| mark.at <= sent) {
            self.marks.pop_front();
        }
        let mark = self.marks.front().filter(|mark| mark.at <= sent);
        let sample = mark.map(|mark| Sample {
            bytes,
            sent,
            round_trip: now.saturating_duration_since(sent),
            delivered: self.bytes - mark.delivered,
            time: now
                .saturating_duration_since(mark.delivered_at)
                .max(sent.saturating_duration_since(mark.delivered_sent)),
            is_limited: mark.is_limited,
        });
        self.sent = self.sent.max(sent);
        sample
    }
}
