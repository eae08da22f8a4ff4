use super::*;
use crate::client_address::client;

const LIMITS: HalfOpenLimits = HalfOpenLimits {
    total: 4096,
    per_prefix: 256,
    memory: 1 << 30,
};

/// A table, and the connections that were added to it.
struct Site {
    table: HalfOpenTable,
    now: Instant,
    added: Vec<(ClientAddress, u64)>,
}

impl Site {
    fn new(limits: HalfOpenLimits) -> Self {
        Self {
            table: HalfOpenTable::new(limits, 1),
            now: Instant::now(),
            added: Vec::new(),
        }
    }

    fn add(&mut self, from: &str, is_known: bool) -> Result<u64, &'static str> {
        let from = client(from);
        let (number, _) = self.table.insert(from, is_known, self.now)?;
        self.added.push((from, number));
        self.check();
        Ok(number)
    }

    fn live(&self, from: ClientAddress, number: u64) -> bool {
        self.table.memory_of(from.prefix(), number).is_some()
    }

    fn live_of(&self, from: &str) -> usize {
        let from = client(from);
        let added = self.added.iter().filter(|(client, _)| *client == from);
        added
            .filter(|(client, number)| self.live(*client, *number))
            .count()
    }

    fn check(&self) {
        let table = &self.table;
        let counts = table.prefixes.values().map(|here| here.entries.len());
        assert_eq!(counts.sum::<usize>(), table.count);
        assert!(table.count <= table.limits.total);
        assert_eq!(
            table.prefixes.len(),
            table.known.len() + table.unknown.len()
        );
        let memory = table.prefixes.values().map(|here| here.memory);
        assert_eq!(memory.sum::<usize>(), table.memory);
        assert!(table.memory <= table.limits.memory);
    }
}

/// Bug: 17 addresses with 250 silent connections each kept every other client out.
#[test]
fn silent_connections_of_few_addresses_exclude_no_other_client() {
    let mut site = Site::new(LIMITS);
    for number in 0..4200 {
        let from = format!("127.0.1.{}", 1 + number / 250);
        site.add(&from, false).expect("a place");
    }
    for number in 0..200 {
        let from = format!("10.0.0.{number}");
        let number = site.add(&from, false).expect("a place");
        assert!(site.live(client(&from), number));
    }
    for number in 0..200 {
        assert_eq!(site.live_of(&format!("10.0.0.{number}")), 1);
    }
}

#[test]
fn a_newcomer_takes_the_place_of_the_oldest_silent_connection_of_the_largest_crowd() {
    let mut site = Site::new(HalfOpenLimits { total: 8, ..LIMITS });
    let one = site.add("10.0.0.1", false).expect("a place");
    let crowd: Vec<u64> = (0..7)
        .map(|_| site.add("10.0.0.2", false).expect("a place"))
        .collect();
    let talking = client("10.0.0.2");
    site.table.note_frame(talking.prefix(), crowd[0]);
    site.add("10.0.0.3", false).expect("a place");
    assert!(site.live(client("10.0.0.1"), one));
    assert!(site.live(talking, crowd[0]), "it has sent a frame");
    assert!(!site.live(talking, crowd[1]));
    assert_eq!(site.table.revoked(), 1);
}

#[test]
fn connections_that_have_sent_frames_hold_no_place_against_other_clients() {
    let mut site = Site::new(HalfOpenLimits { total: 8, ..LIMITS });
    for _ in 0..16 {
        let number = site.add("10.0.0.2", false).expect("a place");
        let prefix = client("10.0.0.2").prefix();
        site.table.note_frame(prefix, number);
    }
    let number = site.add("10.0.0.3", false).expect("a place");
    assert!(site.live(client("10.0.0.3"), number));
}

#[test]
fn prefixes_with_an_earlier_login_have_reserved_places() {
    let mut site = Site::new(HalfOpenLimits {
        total: 32,
        ..LIMITS
    });
    for number in 0..100 {
        site.add(&format!("10.0.1.{number}"), false)
            .expect("a place");
    }
    assert_eq!(site.table.count, 30);
    let revoked = site.table.revoked();
    for _ in 0..2 {
        site.add("10.0.0.1", true).expect("a reserved place");
    }
    assert_eq!(site.table.revoked(), revoked);
    // Clients without an earlier login never end those connections.
    for number in 0..100 {
        site.add(&format!("10.0.2.{number}"), false)
            .expect("a place");
    }
    assert_eq!(site.live_of("10.0.0.1"), 2);
}

#[test]
fn known_prefixes_give_places_to_each_other_only() {
    let mut site = Site::new(HalfOpenLimits {
        total: 16,
        ..LIMITS
    });
    for _ in 0..16 {
        site.add("10.0.0.1", true).expect("a place");
    }
    assert_eq!(site.add("10.0.0.2", false), Err("limits.half_open"));
    site.add("10.0.0.3", true).expect("a place of the crowd");
    assert_eq!(site.live_of("10.0.0.1"), 15);
}

#[test]
fn a_network_is_limited_and_its_machines_share_the_places() {
    let mut site = Site::new(HalfOpenLimits {
        per_prefix: 4,
        ..LIMITS
    });
    let limit = Err("limits.half_open_per_address");
    for _ in 0..4 {
        site.add("2001:db8::1", false).expect("a place");
    }
    assert_eq!(site.add("2001:db8::1", false), limit);
    site.add("2001:db8::2", false)
        .expect("a place of the crowd");
    site.add("2001:db8::3", false)
        .expect("a place of the crowd");
    assert_eq!(site.live_of("2001:db8::1"), 2);
    assert_eq!(site.add("2001:db8::3", false), limit);
    // IPv4 addresses are machines.
    for _ in 0..4 {
        site.add("10.0.0.1", false).expect("a place");
    }
    assert_eq!(site.add("::ffff:10.0.0.1", false), limit);
    // Links are apart.
    for interface in 1..9 {
        site.add(&format!("fe80::1%{interface}"), false)
            .expect("a place");
    }
}

#[test]
fn few_free_places_end_silent_connections_at_random() {
    let mut site = Site::new(HalfOpenLimits {
        total: 1000,
        ..LIMITS
    });
    for number in 0..750 {
        site.add(&format!("10.0.{}.1", number / 200), false)
            .expect("a place");
    }
    site.now += Duration::from_secs(2);
    assert_eq!(site.table.revoked(), 0, "a quarter of the places is free");
    for number in 0..150 {
        site.add(&format!("10.1.0.{number}"), false)
            .expect("a place");
    }
    let revoked = site.table.revoked();
    assert!(
        revoked > 0 && revoked < 150,
        "{revoked} connections ended early"
    );
    for number in 0..150 {
        assert_eq!(site.live_of(&format!("10.1.0.{number}")), 1);
    }
}

#[test]
fn memory_has_a_limit_and_the_largest_prefix_pays() {
    let mut site = Site::new(HalfOpenLimits {
        memory: 100,
        ..LIMITS
    });
    let greedy: Vec<u64> = (0..4)
        .map(|_| site.add("10.0.0.1", false).expect("a place"))
        .collect();
    let prefix = client("10.0.0.1").prefix();
    for number in &greedy {
        assert!(site.table.set_memory(prefix, *number, 20));
    }
    assert!(site.table.is_memory_short());
    let other = site.add("10.0.0.2", false).expect("a place");
    let others = client("10.0.0.2").prefix();
    assert!(site.table.set_memory(others, other, 30));
    site.check();
    assert!(!site.live(client("10.0.0.1"), greedy[0]));
    assert!(site.live(client("10.0.0.1"), greedy[1]));
    // The largest connection does not take the memory of others.
    assert!(!site.table.set_memory(others, other, 101));
    site.check();
    site.table.remove(others, other);
    for number in greedy {
        site.table.remove(prefix, number);
    }
    assert_eq!((site.table.count, site.table.memory), (0, 0));
    assert!(site.table.prefixes.is_empty());
}

#[test]
fn a_revoked_connection_is_woken() {
    let mut table = HalfOpenTable::new(HalfOpenLimits { total: 1, ..LIMITS }, 1);
    let now = Instant::now();
    let (_, first) = table
        .insert(client("10.0.0.1"), false, now)
        .expect("a place");
    let (_, second) = table
        .insert(client("10.0.0.2"), false, now)
        .expect("a place");
    let mut context = std::task::Context::from_waker(Waker::noop());
    let mut wait = |revocation: &Revocation| {
        let waiting = std::pin::pin!(revocation.revoked());
        Future::poll(waiting, &mut context)
    };
    assert_eq!(wait(&first), Poll::Ready(()));
    assert_eq!(wait(&second), Poll::Pending);
}
