//! Senders on a simulated path: one bottleneck with a queue, one seed, no clock.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::{Duration, Instant};

use super::Bbr;

/// Number of datagrams that the receiver acknowledges at once, and the delay for fewer, as in
/// `link`.
const UNANSWERED: u32 = 64;
const UNANSWERED_FOR: Duration = Duration::from_millis(1);
/// quinn-proto's pacer: bytes refill a quarter faster than the window in each round trip.
const BURST_FOR: f64 = 0.002;

const MS: Duration = Duration::from_millis(1);

/// The congestion controller.
enum Pace {
    Bbr(Box<Bbr>),
    /// RFC 9002 7, to live with.
    Reno {
        window: u64,
        threshold: u64,
        recovery: Duration,
    },
}

struct Packet {
    sent: Duration,
    bytes: u64,
}

struct Sender {
    pace: Pace,
    is_limited: bool,
    /// Bytes that there are to send; `None`: always more.
    supply: Option<u64>,
    next: u64,
    flying: BTreeMap<u64, Packet>,
    in_flight: u64,
    round_trip: f64,
    tokens: f64,
    refilled: Duration,
    /// The receiver's: what has come since it answered.
    came: Vec<u64>,
    delivered: u64,
    lost: u64,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrive(usize, u64),
    Answer(usize),
    Answered(usize, Vec<u64>),
    Tick(usize),
}

struct Line {
    /// Bytes per second, bytes of the queue, and one way without it.
    rate: u64,
    queue: u64,
    delay: Duration,
    /// Of a million packets.
    loss: u64,
    datagram: u64,
    seed: u64,
    now: Duration,
    free_at: Duration,
    queue_most: u64,
    senders: Vec<Sender>,
    events: BinaryHeap<Reverse<(Duration, u64, Event)>>,
    serial: u64,
    epoch: Instant,
}

impl Line {
    fn new(rate: u64, round_trip: Duration, queue: u64, loss: u64) -> Self {
        Self {
            rate,
            queue,
            delay: round_trip / 2,
            loss,
            datagram: 1452,
            seed: 0x9E37_79B9_7F4A_7C15,
            now: Duration::ZERO,
            free_at: Duration::ZERO,
            queue_most: 0,
            senders: Vec::new(),
            events: BinaryHeap::new(),
            serial: 0,
            epoch: Instant::now(),
        }
    }

    fn add(&mut self, pace: Pace, supply: Option<u64>) {
        self.senders.push(Sender {
            pace,
            is_limited: false,
            supply,
            next: 0,
            flying: BTreeMap::new(),
            in_flight: 0,
            round_trip: 0.0,
            tokens: 0.0,
            refilled: Duration::ZERO,
            came: Vec::new(),
            delivered: 0,
            lost: 0,
        });
        self.at(Duration::ZERO, Event::Tick(self.senders.len() - 1));
    }

    fn bbr(&mut self) {
        let datagram = u16::try_from(self.datagram).expect("small");
        let bbr = Bbr::new(self.epoch, datagram);
        self.add(Pace::Bbr(Box::new(bbr)), None);
    }

    fn at(&mut self, after: Duration, event: Event) {
        self.serial += 1;
        let at = self.now + after;
        self.events.push(Reverse((at, self.serial, event)));
    }

    fn random(&mut self) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.seed
    }

    /// Bytes that the line holds without a queue.
    fn held(&self) -> u64 {
        super::over(self.rate, self.delay * 2)
    }

    /// Runs for that time; bytes that each sender has delivered in it.
    fn run(&mut self, time: Duration) -> Vec<u64> {
        let before: Vec<_> = self.senders.iter().map(|one| one.delivered).collect();
        let end = self.now + time;
        self.queue_most = 0;
        while let Some(Reverse((at, _, _))) = self.events.peek()
            && *at <= end
        {
            let Some(Reverse((at, _, event))) = self.events.pop() else {
                break;
            };
            self.now = at;
            self.happen(event);
        }
        self.now = end;
        let after = self.senders.iter().map(|one| one.delivered);
        after.zip(before).map(|(now, then)| now - then).collect()
    }

    /// Of what the line could have carried in that time.
    fn share(&mut self, time: Duration) -> f64 {
        let bytes: u64 = self.run(time).iter().sum();
        bytes as f64 / (self.rate as f64 * time.as_secs_f64())
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive(from, number) => {
                let came = &mut self.senders[from].came;
                came.push(number);
                if came.len() == UNANSWERED as usize {
                    self.happen(Event::Answer(from));
                } else if came.len() == 1 {
                    self.at(UNANSWERED_FOR, Event::Answer(from));
                }
            }
            Event::Answer(from) => {
                let came = std::mem::take(&mut self.senders[from].came);
                if !came.is_empty() {
                    self.at(self.delay, Event::Answered(from, came));
                }
            }
            Event::Answered(from, numbers) => {
                self.answered(from, &numbers);
                self.send(from);
            }
            Event::Tick(from) => {
                self.give_up(from);
                self.send(from);
                self.at(MS, Event::Tick(from));
            }
        }
    }

    fn answered(&mut self, from: usize, numbers: &[u64]) {
        let (epoch, now) = (self.epoch, self.now);
        let sender = &mut self.senders[from];
        for number in numbers {
            let Some(packet) = sender.flying.remove(number) else {
                continue;
            };
            sender.in_flight -= packet.bytes;
            sender.delivered += packet.bytes;
            let sample = (now - packet.sent).as_secs_f64();
            sender.round_trip = match sender.round_trip {
                0.0 => sample,
                smooth => smooth + (sample - smooth) / 8.0,
            };
            match &mut sender.pace {
                Pace::Bbr(bbr) => bbr.acknowledged(epoch + packet.sent, packet.bytes),
                Pace::Reno {
                    window, threshold, ..
                } if *window < *threshold => *window += packet.bytes,
                Pace::Reno { window, .. } => *window += self.datagram * packet.bytes / *window,
            }
        }
        if let Pace::Bbr(bbr) = &mut sender.pace {
            bbr.settle(epoch + now, sender.in_flight, sender.is_limited);
        }
        let newest = numbers.last().copied().unwrap_or(0);
        if let Some(last) = newest.checked_sub(3) {
            self.lose(from, last);
        }
    }

    /// Nothing was heard for long: all is lost that is older.
    fn give_up(&mut self, from: usize) {
        let sender = &self.senders[from];
        let limit = Duration::from_secs_f64(3.0 * sender.round_trip.max(0.1));
        let oldest = self.now.saturating_sub(limit);
        let flying = &sender.flying;
        let last = flying.iter().rev().find(|(_, packet)| packet.sent < oldest);
        if let Some(last) = last.map(|(number, _)| *number) {
            self.lose(from, last);
        }
    }

    /// Packets in flight up to that number are lost.
    fn lose(&mut self, from: usize, last: u64) {
        let now = self.now;
        let sender = &mut self.senders[from];
        let lost: Vec<_> = sender.flying.range(..=last).map(|(key, _)| *key).collect();
        let mut bytes = 0;
        for number in lost {
            let packet = sender.flying.remove(&number).expect("it was there");
            bytes += packet.bytes;
            if let Pace::Reno {
                window,
                threshold,
                recovery,
            } = &mut sender.pace
                && packet.sent >= *recovery
            {
                *recovery = now;
                *threshold = (*window / 2).max(2 * packet.bytes);
                *window = *threshold;
            }
        }
        sender.in_flight -= bytes;
        sender.lost += bytes;
        if let (Pace::Bbr(bbr), 1..) = (&mut sender.pace, bytes) {
            bbr.lost(bytes, false);
        }
    }

    fn send(&mut self, from: usize) {
        let (now, datagram) = (self.now, self.datagram);
        loop {
            let sender = &mut self.senders[from];
            if sender.supply == Some(0) {
                sender.is_limited = true;
                return;
            }
            sender.is_limited = false;
            let window = match &sender.pace {
                Pace::Bbr(bbr) => bbr.allowed(),
                Pace::Reno { window, .. } => *window,
            };
            if sender.in_flight + datagram > window || !sender.may_send(window, now, datagram) {
                return;
            }
            if let Some(left) = &mut sender.supply {
                *left = left.saturating_sub(datagram);
            }
            let number = sender.next;
            sender.next += 1;
            sender.in_flight += datagram;
            let packet = Packet {
                sent: now,
                bytes: datagram,
            };
            sender.flying.insert(number, packet);
            if let Pace::Bbr(bbr) = &mut sender.pace {
                bbr.sent(self.epoch + now);
            }
            self.forward(from, number);
        }
    }

    /// Through the queue, unless it is full, and over the line, unless it is lost there.
    fn forward(&mut self, from: usize, number: u64) {
        let waits = self.free_at.saturating_sub(self.now);
        let queued = super::over(self.rate, waits);
        if queued + self.datagram > self.queue {
            return;
        }
        self.queue_most = self.queue_most.max(queued + self.datagram);
        let takes = Duration::from_secs_f64(self.datagram as f64 / self.rate as f64);
        self.free_at = self.now + waits + takes;
        if self.random() % 1_000_000 >= self.loss {
            self.at(waits + takes + self.delay, Event::Arrive(from, number));
        }
    }
}

impl Sender {
    fn may_send(&mut self, window: u64, now: Duration, bytes: u64) -> bool {
        if self.round_trip == 0.0 {
            return true;
        }
        let rate = 1.25 * window as f64 / self.round_trip;
        let (least, most) = (10.0 * bytes as f64, 256.0 * bytes as f64);
        let burst = (BURST_FOR * window as f64 / self.round_trip).clamp(least, most);
        let elapsed = (now - self.refilled).as_secs_f64();
        self.tokens = (self.tokens + rate * elapsed).min(burst);
        self.refilled = now;
        let may = self.tokens >= bytes as f64;
        if may {
            self.tokens -= bytes as f64;
        }
        may
    }
}

const MBIT: u64 = 125_000;

#[test]
fn lines_are_filled() {
    for (mbit, round_trip) in [(10, 40), (100, 20), (1000, 20), (100, 100), (1000, 2)] {
        let mut line = Line::new(mbit * MBIT, round_trip * MS, u64::MAX, 0);
        line.datagram = if mbit == 1000 { 8952 } else { 1452 };
        line.bbr();
        // Forty round trips and a bit for the start.
        line.run(round_trip * MS * 40 + 100 * MS);
        for second in 0..12 {
            // One of them has four round trips with little data in flight.
            let share = line.share(Duration::from_secs(1));
            assert!(share > 0.7, "{mbit} {round_trip} {second}: {share}");
        }
        let share = line.share(Duration::from_secs(12));
        assert!(share > 0.93, "{mbit} Mbit/s, {round_trip} ms: {share}");
    }
}

#[test]
fn random_loss_does_not_slow_it_down() {
    for (loss, least) in [(1_000, 0.93), (10_000, 0.92), (30_000, 0.88), (60_000, 0.6)] {
        let mut line = Line::new(200 * MBIT, 20 * MS, 2_000_000, loss);
        line.bbr();
        line.run(MS * 1000);
        let share = line.share(Duration::from_secs(11));
        assert!(share > least, "{loss}: {share}");
    }
}

#[test]
fn heavy_loss_does_not_stall_it() {
    let mut line = Line::new(50 * MBIT, 20 * MS, 2_000_000, 150_000);
    line.bbr();
    line.run(MS * 1000);
    // At this loss it is down to ten datagrams in a round trip, and no less.
    for second in 0..20 {
        let share = line.share(Duration::from_secs(1));
        assert!(share > 0.05, "{second}: {share}");
    }
}

#[test]
fn a_line_that_was_bad_for_a_while_is_filled_soon() {
    for bad in [300_000, 700_000, 900_000] {
        let mut line = Line::new(1300 * MBIT, 20 * MS, 2_000_000, 10_000);
        line.bbr();
        line.run(MS * 1000);
        line.loss += bad;
        line.run(MS * 400);
        line.loss -= bad;
        line.run(MS * 500);
        let share = line.share(MS * 1000);
        assert!(share > 0.9, "{bad}: {share}");
    }
}

/// Here the first hundred datagrams lose too many, before anything is known of the path.
#[test]
fn a_bad_start_is_made_up_for() {
    let mut line = Line::new(1300 * MBIT, 20 * MS, 2_000_000, 300_000);
    line.bbr();
    line.run(MS * 200);
    line.loss = 10_000;
    line.run(MS * 500);
    let share = line.share(MS * 1000);
    assert!(share > 0.9, "{share}");
}

#[test]
fn short_round_trips_do_not_stall_it() {
    for (rate, micros) in [
        (1_200_000_000, 50),
        (1_200_000_000, 300),
        (125_000_000, 100),
    ] {
        let mut line = Line::new(rate, Duration::from_micros(micros), u64::MAX, 0);
        line.datagram = 8952;
        line.bbr();
        line.run(MS * 200);
        for _ in 0..10 {
            let share = line.share(MS * 200);
            assert!(share > 0.85, "{rate} {micros}: {share}");
        }
    }
}

#[test]
fn the_queue_is_bounded() {
    let mut line = Line::new(100 * MBIT, 40 * MS, u64::MAX, 0);
    line.bbr();
    line.run(MS * 2000);
    line.run(MS * 20_000);
    let most = line.queue_most as f64 / line.held() as f64;
    assert!(most < 1.6, "{most} of what the line holds");
}

#[test]
fn a_short_queue_is_not_flooded() {
    let mut line = Line::new(100 * MBIT, 40 * MS, 125_000, 0);
    line.bbr();
    line.run(MS * 3000);
    let (lost, delivered) = (line.senders[0].lost, line.senders[0].delivered);
    let share = line.share(Duration::from_secs(20));
    assert!(share > 0.85, "{share}");
    let lost = (line.senders[0].lost - lost) as f64;
    let parts = lost / (line.senders[0].delivered - delivered) as f64;
    assert!(parts < 0.08, "{parts} lost");
}

#[test]
fn a_sender_that_had_little_to_send_fills_the_line_when_it_has() {
    let mut line = Line::new(100 * MBIT, 20 * MS, u64::MAX, 0);
    line.bbr();
    for _ in 0..1500 {
        line.senders[0].supply = Some(20_000);
        line.run(MS * 20);
    }
    line.senders[0].supply = None;
    line.run(MS * 20 * 20);
    let share = line.share(Duration::from_secs(5));
    assert!(share > 0.9, "{share}");
}

#[test]
fn a_line_that_changes_is_learnt() {
    let mut line = Line::new(100 * MBIT, 10 * MS, u64::MAX, 10_000);
    line.bbr();
    line.run(MS * 2000);
    line.rate = 400 * MBIT;
    line.run(MS * 500);
    assert!(line.share(MS * 2000) > 0.85);
    line.rate = 40 * MBIT;
    line.run(MS * 2000);
    assert!(line.share(MS * 2000) > 0.85);
    // The way has become longer: it is seen when the shortest round trip is looked for again.
    line.delay = 40 * MS;
    line.run(MS * 14_000);
    let share = line.share(MS * 5000);
    assert!(share > 0.85, "{share}");
}

#[test]
fn two_of_them_share_a_line() {
    let mut line = Line::new(100 * MBIT, 20 * MS, 1_000_000, 0);
    line.bbr();
    line.run(MS * 3000);
    line.bbr();
    line.run(MS * 30_000);
    let bytes = line.run(MS * 20_000);
    let least = *bytes.iter().min().expect("two") as f64;
    let all = bytes.iter().sum::<u64>() as f64;
    assert!(least / all > 0.2, "{bytes:?}");
    assert!(all > 0.9 * 20.0 * (100 * MBIT) as f64, "{bytes:?}");
}

#[test]
fn a_loss_based_sender_gets_a_share() {
    let mut line = Line::new(100 * MBIT, 20 * MS, 500_000, 0);
    line.bbr();
    line.add(
        Pace::Reno {
            window: 14_720,
            threshold: u64::MAX,
            recovery: Duration::ZERO,
        },
        None,
    );
    line.run(MS * 10_000);
    let bytes = line.run(MS * 30_000);
    let least = *bytes.iter().min().expect("two") as f64;
    let all = bytes.iter().sum::<u64>() as f64;
    assert!(least / all > 0.1, "{bytes:?}");
    assert!(all > 0.9 * 30.0 * (100 * MBIT) as f64, "{bytes:?}");
}
