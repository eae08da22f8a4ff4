use super::counters::COUNTERS_MAX;
use super::known::PREFIXES_MAX;
use super::*;
use crate::client_address::client;

const NO_LOCKOUT: Lockout = Lockout {
    threshold: 0,
    duration: Duration::ZERO,
};

struct Site {
    attempts: LoginAttempts,
    now: Instant,
}

impl Site {
    fn new(lockout: Lockout) -> Self {
        Self {
            attempts: LoginAttempts::new(lockout),
            now: Instant::now(),
        }
    }

    fn admit(&self, name: &str, from: &str) -> Admission {
        self.attempts.admit(name, client(from), self.now)
    }

    fn is_free(&self, name: &str, from: &str) -> bool {
        self.admit(name, from) == Admission::After(Duration::ZERO)
    }

    fn log_in(&self, name: &str, from: &str) {
        self.attempts.note_success(name, client(from), self.now);
    }

    /// Checks one wrong password, once the server checks it. Returns whether it does.
    fn guess(&mut self, name: &str, from: &str) -> bool {
        let Admission::After(wait) = self.admit(name, from) else {
            return false;
        };
        self.now += wait;
        self.attempts.note_failure(name, client(from), self.now);
        true
    }

    /// Makes this number of wrong guesses, and returns the time that they take.
    fn guesses(&mut self, count: usize, name: impl Fn(usize) -> String, from: &str) -> Duration {
        let start = self.now;
        for number in 0..count {
            assert!(self.guess(&name(number), from));
        }
        self.now - start
    }
}

/// Bug: one address had 116 guesses each second, without an end.
#[test]
fn guesses_of_one_address_slow_down() {
    let mut site = Site::new(NO_LOCKOUT);
    assert_eq!(
        site.guesses(10, |_| "alice".into(), "10.0.0.1"),
        Duration::ZERO
    );
    let time = site.guesses(40, |_| "alice".into(), "10.0.0.1");
    assert!(time > Duration::from_secs(60), "{time:?}");
    let time = site.guesses(100, |_| "alice".into(), "10.0.0.1");
    assert!(time > Duration::from_secs(700), "{time:?}");
}

#[test]
fn guesses_for_many_names_slow_down_too() {
    let mut site = Site::new(NO_LOCKOUT);
    let name = |number| format!("user{number}");
    assert_eq!(site.guesses(20, name, "10.0.0.1"), Duration::ZERO);
    let time = site.guesses(100, name, "10.0.0.1");
    assert!(time > Duration::from_secs(50), "{time:?}");
    assert!(site.is_free("user1", "10.0.0.2"));
}

#[test]
fn many_guesses_at_a_time_do_not_help() {
    let mut site = Site::new(NO_LOCKOUT);
    for _ in 0..20 {
        site.guess("alice", "10.0.0.1");
    }
    let admitted =
        (0..1000).filter(|_| matches!(site.admit("alice", "10.0.0.1"), Admission::After(_)));
    let admitted = admitted.count();
    assert!(admitted < 30, "{admitted} logins wait at a time");
    assert_eq!(site.admit("alice", "10.0.0.1"), Admission::TooMany);
    site.now += Duration::from_secs(600);
    assert!(site.is_free("alice", "10.0.0.1"), "failures are forgotten");
}

#[test]
fn spellings_of_a_name_count_together() {
    let mut site = Site::new(NO_LOCKOUT);
    for number in 0..12 {
        let name = ["alice", "ALICE", "Alice@example.org"][number % 3];
        site.guess(name, "10.0.0.1");
    }
    assert!(!site.is_free("aLice@elsewhere", "10.0.0.1"));
}

#[test]
fn other_machines_cannot_lock_a_user_out() {
    let mut site = Site::new(Lockout {
        threshold: 30,
        duration: Duration::from_secs(900),
    });
    site.log_in("alice", "10.0.0.1");
    for number in 0..400 {
        let from = format!("10.1.{}.{}", number / 200, number % 200);
        if !site.guess("alice", &from) {
            break;
        }
    }
    assert!(site.is_free("alice", "10.0.0.1"));
    assert_eq!(site.admit("alice", "10.0.0.2"), Admission::LockedOut);
    site.now += Duration::from_secs(901);
    assert!(site.is_free("alice", "10.0.0.2"));
}

#[test]
fn guesses_of_many_machines_slow_down_for_strangers() {
    let mut site = Site::new(NO_LOCKOUT);
    site.log_in("alice", "10.0.0.1");
    let start = site.now;
    for number in 0..200 {
        assert!(site.guess("alice", &format!("10.1.0.{number}")));
    }
    let time = site.now - start;
    assert!(time > Duration::from_secs(400), "{time:?}");
    assert!(site.is_free("alice", "10.0.0.1"));
}

#[test]
fn users_of_an_address_do_not_wait_for_another_that_guesses() {
    let mut site = Site::new(NO_LOCKOUT);
    site.log_in("alice", "10.0.0.1");
    site.guesses(60, |number| format!("user{number}"), "10.0.0.1");
    assert!(site.is_free("alice", "10.0.0.1"));
    assert!(!site.is_free("bob", "10.0.0.1"));
    // The exception ends with the first failure of the account.
    site.guess("alice", "10.0.0.1");
    site.guess("bob", "10.0.0.1");
    assert!(!site.is_free("alice", "10.0.0.1"));
}

#[test]
fn a_success_forgets_the_failures_of_the_account_alone() {
    let mut site = Site::new(NO_LOCKOUT);
    site.guesses(12, |_| "alice".into(), "10.0.0.1");
    assert!(!site.is_free("alice", "10.0.0.1"));
    site.log_in("alice", "10.0.0.1");
    assert!(site.is_free("alice", "10.0.0.1"));
    // An attacker with an account gains no guesses for other accounts.
    site.guesses(12, |_| "bob".into(), "10.0.0.1");
    site.log_in("alice", "10.0.0.1");
    assert!(!site.is_free("bob", "10.0.0.1"));
}

#[test]
fn a_network_is_delayed_after_failures_of_several_machines() {
    let mut site = Site::new(NO_LOCKOUT);
    site.guesses(30, |_| "alice".into(), "2001:db8::1");
    site.guess("alice", "2001:db8::2");
    assert!(
        site.is_free("alice", "2001:db8::3"),
        "two machines have failed"
    );
    site.guess("alice", "2001:db8::3");
    site.guess("alice", "2001:db8::4");
    assert!(!site.is_free("alice", "2001:db8::5"));
    assert!(site.is_free("alice", "2001:db8:0:1::4"));
}

#[test]
fn a_client_is_locked_out_for_a_time() {
    let mut site = Site::new(Lockout {
        threshold: 5,
        duration: Duration::from_secs(60),
    });
    for name in ["alice", "no-such-user"] {
        for _ in 0..5 {
            assert!(site.guess(name, "10.0.0.1"));
        }
        assert_eq!(site.admit(name, "10.0.0.1"), Admission::LockedOut);
    }
    site.now += Duration::from_secs(61);
    assert!(site.is_free("alice", "10.0.0.1"));
}

/// Bug: with the failures of one address, a user with a new address could not log in.
#[test]
fn a_user_with_a_new_address_waits_for_seconds_at_most() {
    let mut site = Site::new(NO_LOCKOUT);
    for number in 0..500 {
        site.guess("alice", &format!("10.1.{}.{}", number / 200, number % 200));
    }
    for number in 0..500 {
        site.admit("alice", &format!("10.2.{}.{}", number / 200, number % 200));
    }
    let Admission::After(wait) = site.admit("alice", "10.0.0.1") else {
        panic!("the user is locked out");
    };
    assert!(
        !wait.is_zero() && wait <= Duration::from_secs(4),
        "{wait:?}"
    );
    // A second login of that address waits for the first one.
    assert!(!matches!(site.admit("alice", "10.0.0.1"), Admission::After(second) if second <= wait));
}

#[test]
fn refusals_for_other_reasons_are_no_failures() {
    let site = Site::new(NO_LOCKOUT);
    for _ in 0..100 {
        assert!(site.is_free("alice", "2001:db8::1"));
        let client = client("2001:db8::1");
        site.attempts.note_other("alice", client, site.now);
    }
}

#[test]
fn a_lockout_counts_recent_failures() {
    let mut site = Site::new(Lockout {
        threshold: 3,
        duration: Duration::from_secs(60),
    });
    for _ in 0..10 {
        assert!(site.guess("alice", "10.0.0.1"));
        assert!(site.guess("alice", "10.0.0.1"));
        site.now += Duration::from_secs(61);
    }
    assert!(site.is_free("alice", "10.0.0.1"));
}

/// Bug: an attacker with many addresses made the server forget the failures of the first.
#[test]
fn a_full_table_keeps_the_counters_with_most_failures() {
    let mut site = Site::new(NO_LOCKOUT);
    for _ in 0..12 {
        site.guess("alice", "10.0.0.1");
    }
    for number in 0..COUNTERS_MAX {
        let from = format!("10.{}.{}.{}", number >> 14, number >> 7 & 127, number & 127);
        let from = client(&from);
        site.attempts
            .note_failure(&format!("user{number}"), from, site.now);
        site.attempts
            .admit(&format!("user{number}"), from, site.now);
    }
    assert!(!site.is_free("alice", "10.0.0.1"));
    let state = site.attempts.lock();
    assert_eq!(state.counters.len(), COUNTERS_MAX);
}

#[test]
fn a_user_with_many_prefixes_removes_only_own_prefixes() {
    let mut site = Site::new(NO_LOCKOUT);
    site.log_in("alice", "10.0.0.1");
    for number in 0..=PREFIXES_MAX {
        site.log_in("bob", &format!("10.0.1.{number}"));
    }
    for number in 0..200 {
        site.guess("alice", &format!("10.1.0.{number}"));
        site.guess("bob", &format!("10.1.0.{number}"));
    }
    assert!(site.is_free("alice", "10.0.0.1"));
    assert!(site.is_free("bob", "10.0.1.1"));
    assert!(
        !site.is_free("bob", "10.0.1.0"),
        "the oldest prefix is forgotten"
    );
}
