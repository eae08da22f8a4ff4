//! A BBR congestion controller: it sends at the measured delivery rate of the path.
//!
//! It follows BBR (draft-ietf-ccwg-bbr). The bandwidth-delay product is the highest recent delivery
//! rate times the shortest round-trip time: the path holds these bytes without a queue. The
//! congestion window is twice this product, plus the data that delayed acknowledgements cover. If
//! the path is not full with this window, it delivers twice as much in the next round trip. So the
//! same rule finds the rate at the start, and later increases. If the path is full, the queue is at
//! most as long as the path.
//!
//! Loss counts only above the usual loss of a path. The window then shrinks until the loss is below
//! it. From time to time the window is small for two round trips, to measure the shortest
//! round-trip time.
//!
//! quinn-proto has a BBR controller, too. It computes the rate as one packet per acknowledgement,
//! which is too low by the number of packets that an acknowledgement covers: 64 here. It stalls on
//! paths with a short round-trip time.

mod delivery;
mod filter;
#[cfg(test)]
mod simulator;

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory};

use delivery::{Delivery, Sample};
use filter::Most;

/// Congestion window in sixteenths of the bandwidth-delay product: until the rate is known, after
/// that, and while the shortest round-trip time is measured. The first lets the rate double in each
/// round trip, 2 / ln 2.
const GAIN_STARTUP: u64 = 46;
const GAIN_CRUISE: u64 = 32;
const GAIN_PROBE: u64 = 8;
/// Smallest window with high loss. A little more than the bandwidth-delay product finds the rate
/// again that the loss has hidden.
const GAIN_LOSSY: u64 = 17;
/// Number of round trips without growth by a quarter after which the rate is known.
const FLAT_ROUNDS: u32 = 3;
/// Number of rounds for which the highest rate is valid. A round has a minimum time, so that a
/// thread that waits for a processor does not make the path appear slow.
const ROUNDS_KEPT: u64 = 10;
const ROUND_LEAST: Duration = Duration::from_millis(10);
/// Time after which the shortest round-trip time is measured again.
const ROUND_TRIP_KEPT: Duration = Duration::from_secs(10);
/// Number of round trips of a measurement: one empties the queue, one measures.
const PROBE_ROUNDS: u32 = 2;
/// Loss above one byte in this number (5 %) counts as congestion, measured over at least this
/// number of datagrams.
const LOSS_PARTS: u64 = 20;
const LOSS_DATAGRAMS: u64 = 100;
/// Number of rounds with little loss after which the ceiling of the window rises twice as fast. In
/// each round it rises by 1/32.
const CALM_ROUNDS: u32 = 2;
/// Smallest window in datagrams, and the initial one. RFC 9002 7.2
const WINDOW_LEAST: u64 = 10;
const INITIAL_BYTES: u64 = 14_720;

/// Makes a sender for each connection.
#[derive(Debug)]
pub(crate) struct BbrFactory;

impl ControllerFactory for BbrFactory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(Bbr::new(now, current_mtu))
    }
}

/// The measured state of a path, and the congestion window.
#[derive(Clone, Debug)]
pub(crate) struct Bbr {
    /// Bytes of a datagram.
    datagram: u64,
    /// Congestion window in bytes, without the limits of `probe` and `ceiling`.
    window: u64,
    /// Ceiling of the window in bytes after loss.
    ceiling: Option<Ceiling>,
    delivery: Delivery,
    /// Bytes per second.
    rate: Most,
    /// Bytes that came acknowledged at once beyond the rate.
    burst: Most,
    epoch: Epoch,
    round_trip: Option<Duration>,
    round_trip_at: Instant,
    round: Round,
    startup: Option<Startup>,
    probe: Option<Probe>,
}

/// Acknowledgements since they were no faster than the rate.
#[derive(Clone, Debug)]
struct Epoch {
    began: Instant,
    bytes: u64,
}

/// A round trip: it ends when something is acknowledged that was sent after it began.
#[derive(Clone, Debug)]
struct Round {
    began: Instant,
    /// Of those that last [`ROUND_LEAST`], and had something to send.
    number: u64,
    numbered: Instant,
    delivered: u64,
    lost: u64,
    is_marked: bool,
}

/// Window in bytes above which the loss was too high.
#[derive(Clone, Copy, Debug)]
struct Ceiling {
    bytes: u64,
    /// Rounds since then in which little was lost: the more of them, the faster it rises.
    calm_rounds: u32,
}

/// The rate is being found.
#[derive(Clone, Debug, Default)]
struct Startup {
    rate: u64,
    flat_rounds: u32,
}

/// The shortest round trip is being looked for.
#[derive(Clone, Debug, Default)]
struct Probe {
    rounds: u32,
    least: Option<Duration>,
}

impl Bbr {
    pub(crate) fn new(now: Instant, datagram: u16) -> Self {
        let datagram = u64::from(datagram);
        Self {
            datagram,
            window: INITIAL_BYTES.max(2 * datagram),
            ceiling: None,
            delivery: Delivery::new(now),
            rate: Most::default(),
            burst: Most::default(),
            epoch: Epoch {
                began: now,
                bytes: 0,
            },
            round_trip: None,
            round_trip_at: now,
            round: Round {
                began: now,
                number: 0,
                numbered: now,
                delivered: 0,
                lost: 0,
                is_marked: false,
            },
            startup: Some(Startup::default()),
            probe: None,
        }
    }

    fn sent(&mut self, now: Instant) {
        self.delivery.sent(now);
    }

    fn acknowledged(&mut self, sent: Instant, bytes: u64) {
        self.delivery.acknowledged(sent, bytes);
    }

    /// An acknowledgement was taken in as a whole.
    fn settle(&mut self, now: Instant, in_flight: u64, is_limited: bool) {
        let Some(sample) = self.delivery.settle(now, in_flight, is_limited) else {
            return;
        };
        self.round.delivered += sample.bytes;
        let is_round = sample.sent >= self.round.began;
        if is_round {
            self.round.began = now;
        }
        self.note_round_trip(now, sample.round_trip);
        self.note_rate(now, &sample, is_round);
        self.note_burst(now, sample.bytes);
        if is_round {
            self.judge_loss();
            self.judge_rate(sample.is_limited);
            self.step_probe(now);
        }
        self.resize(sample.bytes);
    }

    fn note_round_trip(&mut self, now: Instant, round_trip: Duration) {
        if let Some(probe) = &mut self.probe {
            probe.least = probe.least.into_iter().chain([round_trip]).min();
        }
        if self.round_trip.is_none_or(|least| round_trip <= least) {
            self.round_trip = Some(round_trip);
            self.round_trip_at = now;
        }
    }

    fn note_rate(&mut self, now: Instant, sample: &Sample, is_round: bool) {
        if is_round && !sample.is_limited && now - self.round.numbered >= ROUND_LEAST {
            self.round.number += 1;
            self.round.numbered = now;
        }
        let Some(rate) = sample.rate(self.round_trip) else {
            return;
        };
        // A sender without data shows only that the path is not slower.
        if !sample.is_limited || rate > self.rate.value() {
            self.rate.note(self.round.number, rate, ROUNDS_KEPT);
        }
    }

    fn note_burst(&mut self, now: Instant, bytes: u64) {
        let expected = over(self.rate.value(), now - self.epoch.began);
        if self.epoch.bytes <= expected {
            self.epoch = Epoch { began: now, bytes };
        } else {
            self.epoch.bytes += bytes;
        }
        let expected = over(self.rate.value(), now - self.epoch.began);
        let beyond = self.epoch.bytes.saturating_sub(expected);
        let beyond = beyond.min(self.window);
        self.burst.note(self.round.number, beyond, ROUNDS_KEPT);
    }

    /// Evaluates the loss. A few datagrams are not enough to detect too much loss, but the
    /// ceiling rises if it is not: else few would stay few.
    fn judge_loss(&mut self) {
        let all = self.round.delivered + self.round.lost;
        let is_much = self.round.is_marked || self.round.lost * LOSS_PARTS > all;
        let is_certain = self.round.is_marked || all >= LOSS_DATAGRAMS * self.datagram;
        if is_much && is_certain {
            self.lower();
        } else if !is_much {
            self.rise();
        }
        if is_certain {
            self.round.delivered = 0;
            self.round.lost = 0;
            self.round.is_marked = false;
        }
    }

    fn lower(&mut self) {
        let most = self.ceiling.map_or(u64::MAX, |ceiling| ceiling.bytes);
        let bytes = most.min(self.window) * 7 / 8;
        self.ceiling = Some(Ceiling {
            bytes: bytes.max(self.held(GAIN_LOSSY)).max(self.least()),
            calm_rounds: 0,
        });
        self.startup = None;
    }

    /// Slowly as long as a loss is fresh, for the path may be full; later it doubles in a round.
    fn rise(&mut self) {
        let Some(ceiling) = &mut self.ceiling else {
            return;
        };
        let steps = (ceiling.calm_rounds / CALM_ROUNDS).min(5);
        ceiling.bytes += ceiling.bytes >> (5 - steps);
        ceiling.calm_rounds += 1;
        let ceiling = *ceiling;
        self.ceiling = (ceiling.bytes < self.target()).then_some(ceiling);
    }

    fn judge_rate(&mut self, is_limited: bool) {
        let Some(startup) = self.startup.as_mut().filter(|_| !is_limited) else {
            return;
        };
        let rate = self.rate.value();
        if rate >= startup.rate + startup.rate / 4 {
            startup.rate = rate;
            startup.flat_rounds = 0;
            return;
        }
        startup.flat_rounds += 1;
        if startup.flat_rounds == FLAT_ROUNDS {
            self.startup = None;
        }
    }

    fn step_probe(&mut self, now: Instant) {
        let Some(probe) = &mut self.probe else {
            if now - self.round_trip_at > ROUND_TRIP_KEPT {
                self.probe = Some(Probe::default());
            }
            return;
        };
        probe.rounds += 1;
        if probe.rounds > PROBE_ROUNDS {
            self.round_trip = probe.least.or(self.round_trip);
            self.round_trip_at = now;
            self.probe = None;
        }
    }

    /// Bytes that the path holds without a queue, times `gain` / 16.
    fn held(&self, gain: u64) -> u64 {
        let round_trip = self.round_trip.unwrap_or_default();
        over(self.rate.value(), round_trip).saturating_mul(gain) / 16
    }

    fn target(&self) -> u64 {
        let gain = match self.startup {
            Some(_) => GAIN_STARTUP,
            None => GAIN_CRUISE,
        };
        self.held(gain) + self.burst.value()
    }

    fn resize(&mut self, acknowledged: u64) {
        let grown = self.window.saturating_add(acknowledged);
        let target = grown.min(self.target());
        self.window = match self.startup {
            Some(_) => target.max(self.window),
            None => target.max(self.least()),
        };
    }

    fn least(&self) -> u64 {
        WINDOW_LEAST * self.datagram
    }

    fn lost(&mut self, bytes: u64, is_persistent: bool) {
        self.round.lost += bytes;
        // None was lost: a queue has marked them. RFC 9002 7.1
        self.round.is_marked |= bytes == 0;
        if is_persistent {
            self.window = self.least();
        }
    }

    fn allowed(&self) -> u64 {
        let probe = self.probe.as_ref().map(|_| self.held(GAIN_PROBE));
        let ceiling = self.ceiling.map(|ceiling| ceiling.bytes);
        let most = ceiling.into_iter().chain(probe).min();
        most.map_or(self.window, |most| most.min(self.window).max(self.least()))
    }
}

impl Controller for Bbr {
    fn on_sent(&mut self, now: Instant, _bytes: u64, _last_packet_number: u64) {
        self.sent(now);
    }

    fn on_ack(
        &mut self,
        _now: Instant,
        sent: Instant,
        bytes: u64,
        _app_limited: bool,
        _rtt: &RttEstimator,
    ) {
        self.acknowledged(sent, bytes);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        self.settle(now, in_flight, app_limited);
    }

    fn on_congestion_event(
        &mut self,
        _now: Instant,
        _sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.lost(lost_bytes, is_persistent_congestion);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.datagram = u64::from(new_mtu);
    }

    fn window(&self) -> u64 {
        self.allowed()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        INITIAL_BYTES
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Bytes at `rate` bytes per second in that time.
fn over(rate: u64, time: Duration) -> u64 {
    let bytes = u128::from(rate) * time.as_nanos() / 1_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
