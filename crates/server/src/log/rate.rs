//! A limit for the rate of log lines, so that strangers do not fill the log.
//!
//! Each place in the code that logs has two buckets of tokens: one for itself, one for each address
//! of a peer. A line without a token is left out and counted, and a later line has the sum.

use std::collections::HashMap;
use std::fmt::{Debug, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, error, info, warn};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::client_address::{ClientAddress, ClientPrefix};

/// Name of events that no rate limits: an administrator wants each of them, and no stranger causes
/// them.
pub(crate) const UNLIMITED: &str = "unlimited";

/// Lines of one place about one address: 10 at once, then one in two seconds.
const OF_ADDRESS: Rate = Rate {
    burst: 10,
    interval: Duration::from_secs(2),
};
/// Lines of one place: 100 at once, then five a second.
const OF_PLACE: Rate = Rate {
    burst: 100,
    interval: Duration::from_millis(200),
};
/// Time from the first left out line to the line with the sum.
const SUM_INTERVAL: Duration = Duration::from_secs(10);
/// Most buckets of addresses. Further addresses have the bucket of the place only.
const ADDRESSES_MAX: usize = 4096;

/// How many lines are allowed.
#[derive(Clone, Copy)]
struct Rate {
    /// Lines at once.
    burst: u32,
    /// Time in which one more line becomes allowed.
    interval: Duration,
}

/// A bucket of tokens: the time at which it is full again.
#[derive(Clone, Copy)]
struct Bucket {
    full_at: Instant,
}

impl Bucket {
    fn full(now: Instant) -> Self {
        Self { full_at: now }
    }

    fn has_token(&self, rate: Rate, now: Instant) -> bool {
        let missing = self.full_at.saturating_duration_since(now);
        missing + rate.interval <= rate.interval * rate.burst
    }

    fn take(&mut self, rate: Rate, now: Instant) {
        self.full_at = self.full_at.max(now) + rate.interval;
    }
}

/// A place in the code that logs.
struct Place {
    bucket: Bucket,
    level: Level,
    /// The message of its first left out line.
    message: String,
    /// Number of left out lines since the last sum.
    left_out: u64,
    /// Time of the first of them.
    since: Instant,
    /// The peer of the last of them.
    last_peer: String,
}

/// The buckets of all places and addresses.
#[derive(Default)]
pub(super) struct RateLimit(Mutex<Buckets>);

#[derive(Default)]
struct Buckets {
    places: HashMap<Identifier, Place>,
    addresses: HashMap<(Identifier, ClientPrefix), Bucket>,
}

/// How many lines of one place were left out.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sum {
    level: Level,
    message: String,
    count: u64,
    last_peer: String,
}

impl RateLimit {
    /// Takes a token for a line, or counts it as left out.
    fn allows(&self, now: Instant, metadata: &Metadata<'_>, line: &Line) -> bool {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let id = metadata.callsite();
        let of_address = buckets.of_address(now, &id, line.prefix());
        let has_own = of_address.is_none_or(|bucket| bucket.has_token(OF_ADDRESS, now));
        let place = buckets.places.entry(id.clone()).or_insert_with(|| Place {
            bucket: Bucket::full(now),
            level: *metadata.level(),
            message: String::new(),
            left_out: 0,
            since: now,
            last_peer: String::new(),
        });
        if has_own && place.bucket.has_token(OF_PLACE, now) {
            place.bucket.take(OF_PLACE, now);
            if let Some(bucket) = buckets.of_address(now, &id, line.prefix()) {
                bucket.take(OF_ADDRESS, now);
            }
            return true;
        }
        if place.left_out == 0 {
            place.since = now;
            place.message.clone_from(&line.message);
        }
        place.left_out += 1;
        place.last_peer.clone_from(&line.peer);
        false
    }

    /// The sums of the places that have left out lines for long enough. They start anew.
    pub(super) fn sums(&self, now: Instant) -> Vec<Sum> {
        let is_due = |place: &Place| now.saturating_duration_since(place.since) >= SUM_INTERVAL;
        self.take_sums(is_due)
    }

    /// The sums of all places that have left out lines.
    pub(super) fn all_sums(&self) -> Vec<Sum> {
        self.take_sums(|_| true)
    }

    fn take_sums(&self, is_due: impl Fn(&Place) -> bool) -> Vec<Sum> {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let places = buckets.places.values_mut();
        let due = places.filter(|place| place.left_out > 0 && is_due(place));
        due.map(|place| Sum {
            level: place.level,
            message: place.message.clone(),
            count: std::mem::take(&mut place.left_out),
            last_peer: std::mem::take(&mut place.last_peer),
        })
        .collect()
    }
}

impl Buckets {
    /// The bucket of an address at a place; `None` without an address, or if there are too many.
    fn of_address(
        &mut self,
        now: Instant,
        id: &Identifier,
        address: Option<ClientPrefix>,
    ) -> Option<&mut Bucket> {
        let key = (id.clone(), address?);
        if self.addresses.len() >= ADDRESSES_MAX && !self.addresses.contains_key(&key) {
            // A full bucket is as good as none.
            self.addresses.retain(|_, bucket| bucket.full_at > now);
            if self.addresses.len() >= ADDRESSES_MAX {
                return None;
            }
        }
        Some(self.addresses.entry(key).or_insert(Bucket::full(now)))
    }
}

/// Logs sums of left out lines.
pub(super) fn report(sums: &[Sum]) {
    for Sum {
        level,
        message,
        count,
        last_peer,
    } in sums
    {
        const WHY: &str = "lines are left out: the same message was logged too often";
        match *level {
            Level::ERROR => error!(count, of = %message, %last_peer, "{WHY}"),
            Level::WARN => warn!(count, of = %message, %last_peer, "{WHY}"),
            _ => info!(count, of = %message, %last_peer, "{WHY}"),
        }
    }
}

/// The parts of an event that its limits depend on.
#[derive(Default)]
struct Line {
    message: String,
    /// Value of the field `peer` or `address`.
    peer: String,
}

impl Line {
    /// The prefix of the peer's address, by which the limits count clients.
    fn prefix(&self) -> Option<ClientPrefix> {
        let alone = || self.peer.parse().map(|ip: IpAddr| SocketAddr::new(ip, 0));
        let socket: SocketAddr = self.peer.parse().or_else(|_| alone()).ok()?;
        Some(ClientAddress::from(socket).prefix())
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let into = match field.name() {
            "message" => &mut self.message,
            "peer" | "address" => &mut self.peer,
            _ => return,
        };
        // Writing to a string does not fail.
        let _ = write!(into, "{value:?}");
    }
}

/// Leaves out events that exceed the limits. Events of the levels
/// `debug` and `trace` have no limit: an administrator enables them for a short time.
pub(super) struct RateLimitLayer {
    pub(super) limit: std::sync::Arc<RateLimit>,
    /// Whether the limits apply (`log.rate_limited`).
    pub(super) is_active: std::sync::Arc<AtomicBool>,
}

impl<S: Subscriber> Layer<S> for RateLimitLayer {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        let is_exempt = *metadata.level() > Level::INFO || metadata.name() == UNLIMITED;
        if is_exempt || !self.is_active.load(Ordering::Relaxed) {
            return true;
        }
        let mut line = Line::default();
        event.record(&mut line);
        self.limit.allows(Instant::now(), metadata, &line)
    }
}

#[cfg(test)]
mod tests {
    use tracing::Callsite as _;

    use super::*;

    /// Metadata of a place: each use is another place.
    macro_rules! place {
        () => {
            tracing::callsite! {
                name: "event",
                kind: tracing::metadata::Kind::EVENT,
                level: Level::WARN,
                fields: message, peer
            }
            .metadata()
        };
    }

    fn line(peer: &str) -> Line {
        Line {
            message: "disconnecting".to_owned(),
            peer: peer.to_owned(),
        }
    }

    #[test]
    fn one_address_has_few_lines_and_others_keep_theirs() {
        let (limit, start, place) = (RateLimit::default(), Instant::now(), place!());
        let count = |peer: &str, tries: usize, now| {
            (0..tries)
                .filter(|_| limit.allows(now, place, &line(peer)))
                .count()
        };
        assert_eq!(count("10.0.0.1:1", 1000, start), 10);
        assert_eq!(count("10.0.0.1:2", 1000, start), 0);
        assert_eq!(count("10.0.0.2:1", 1, start), 1);
        assert_eq!(count("[2001:db8::1]:1", 1000, start), 10);
        assert_eq!(count("[2001:db8::2]:1", 1000, start), 0);
        assert_eq!(count("[2001:db8:0:1::1]:1", 1, start), 1);
        assert_eq!(count("10.0.0.1:3", 10, start + Duration::from_secs(2)), 1);
        assert_eq!(count("10.0.0.1:3", 99, start + Duration::from_secs(60)), 10);
    }

    #[test]
    fn many_addresses_share_the_lines_of_a_place() {
        let (limit, start, place) = (RateLimit::default(), Instant::now(), place!());
        let peers = (0..20_000_u32).map(|n| format!("{}:1", std::net::Ipv4Addr::from(n)));
        let allowed = peers.filter(|peer| limit.allows(start, place, &line(peer)));
        assert_eq!(allowed.count(), 100);
        let addresses = limit.0.lock().expect("no panic").addresses.len();
        assert!(addresses <= ADDRESSES_MAX, "{addresses}");
        let other = place!();
        assert!(limit.allows(start, other, &line("10.0.0.1:1")));
    }

    #[test]
    fn left_out_lines_are_summed() {
        let (limit, start, place) = (RateLimit::default(), Instant::now(), place!());
        for _ in 0..25 {
            limit.allows(start, place, &line("10.0.0.1:7"));
        }
        assert_eq!(limit.sums(start + Duration::from_secs(9)), []);
        let sum = Sum {
            level: Level::WARN,
            message: "disconnecting".to_owned(),
            count: 15,
            last_peer: "10.0.0.1:7".to_owned(),
        };
        assert_eq!(limit.sums(start + Duration::from_secs(10)), [sum]);
        assert_eq!(limit.all_sums(), []);
    }
}
