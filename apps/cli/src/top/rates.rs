//! Rates from the counters of a server at two times.

use std::collections::HashMap;
use std::hash::Hash;

use serde::Serialize;
use smbeam_server::activity::{
    Activity, ActivityCounts, ClientActivity, CommandActivity, ShareActivity,
};
use smbeam_server::status::Protection;

/// The rates of a server between two times.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Rates {
    /// Name of the server.
    pub(super) name: String,
    /// Time of the second counters in milliseconds since 1970 (UTC).
    pub(super) at_ms: u64,
    /// Start time of the server in seconds since 1970 (UTC).
    pub(super) since: u64,
    /// Length of the interval in seconds.
    pub(super) seconds: f64,
    /// Numbers of objects at the second time.
    pub(super) now: ActivityCounts,
    pub(super) totals: Traffic,
    /// Refused logins, and refused connections to shares, per second.
    pub(super) refused: f64,
    /// The commands with requests in the interval; the most frequent first.
    pub(super) commands: Vec<CommandRates>,
    /// The shares with requests since the start of the server; the busiest first.
    pub(super) shares: Vec<ShareRates>,
    /// The open connections; the busiest first.
    pub(super) clients: Vec<ClientRates>,
}

/// Bytes and requests per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Traffic {
    /// Received bytes per second.
    pub(super) received: f64,
    /// Sent bytes per second.
    pub(super) sent: f64,
    /// Answered requests per second.
    pub(super) answered: f64,
    /// Answered requests with an error status per second.
    pub(super) errors: f64,
}

impl Traffic {
    /// Bytes per second in both directions.
    pub(super) fn bytes(&self) -> f64 {
        self.received + self.sent
    }
}

/// The rates of a command.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct CommandRates {
    pub(super) command: String,
    /// Answered requests per second.
    pub(super) answered: f64,
    /// Answered requests with an error status per second.
    pub(super) errors: f64,
    /// Mean time of a request in seconds.
    pub(super) mean: f64,
}

/// The rates of a share.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct ShareRates {
    pub(super) share: String,
    /// Answered requests per second.
    pub(super) answered: f64,
    /// Bytes per second that READ requests returned.
    pub(super) read: f64,
    /// Bytes per second that WRITE requests wrote.
    pub(super) written: f64,
    /// Mean time of a request in seconds; 0 without requests.
    pub(super) mean: f64,
}

/// The rates of a connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct ClientRates {
    pub(super) id: String,
    pub(super) peer: String,
    pub(super) users: Vec<String>,
    pub(super) transport: String,
    pub(super) protection: Option<Protection>,
    #[serde(flatten)]
    pub(super) traffic: Traffic,
    /// Number of requests without a final response.
    pub(super) requests: usize,
}

impl Rates {
    /// The rates between two times. All counters count from zero if the server started in between.
    pub(super) fn between(before: &Activity, after: &Activity) -> Self {
        let empty = Activity::default();
        let old = match before.since == after.since {
            true => before,
            false => &empty,
        };
        let seconds = after.at_ms.saturating_sub(before.at_ms) as f64 / 1000.0;
        let per_second = PerSecond(seconds.max(0.001));
        let refused = |of: &Activity| of.refused_logins + of.refused_shares;
        let mut rates = Self {
            name: after.name.clone(),
            at_ms: after.at_ms,
            since: after.since,
            seconds,
            now: after.now,
            totals: Traffic {
                received: per_second.of(old.totals.received, after.totals.received),
                sent: per_second.of(old.totals.sent, after.totals.sent),
                answered: per_second.of(old.totals.answered, after.totals.answered),
                errors: per_second.of(old.totals.errors, after.totals.errors),
            },
            refused: per_second.of(refused(old), refused(after)),
            commands: per_second.commands(&old.commands, &after.commands),
            shares: per_second.shares(&old.shares, &after.shares),
            clients: per_second.clients(&old.clients, &after.clients),
        };
        let busier = |one: f64, other: f64| other.total_cmp(&one);
        (rates.commands).sort_by(|one, other| busier(one.answered, other.answered));
        (rates.shares).sort_by(|one, other| {
            let bytes = |share: &ShareRates| share.read + share.written;
            busier(bytes(one), bytes(other)).then(busier(one.answered, other.answered))
        });
        (rates.clients).sort_by(|one, other| {
            let (one, other) = (one.traffic, other.traffic);
            busier(one.bytes(), other.bytes()).then(busier(one.answered, other.answered))
        });
        rates
    }
}

/// Computes rates over a number of seconds.
struct PerSecond(f64);

impl PerSecond {
    fn of(&self, before: u64, after: u64) -> f64 {
        after.saturating_sub(before) as f64 / self.0
    }

    fn commands(&self, before: &[CommandActivity], after: &[CommandActivity]) -> Vec<CommandRates> {
        let former = by_key(before, |command| command.command.clone());
        let none = CommandActivity::default();
        let rates = after.iter().map(|now| {
            let old = former.get(&now.command).copied().unwrap_or(&none);
            CommandRates {
                command: now.command.clone(),
                answered: self.of(old.answered, now.answered),
                errors: self.of(old.errors, now.errors),
                mean: mean((old.seconds, old.answered), (now.seconds, now.answered)),
            }
        });
        rates.filter(|rates| rates.answered > 0.0).collect()
    }

    fn shares(&self, before: &[ShareActivity], after: &[ShareActivity]) -> Vec<ShareRates> {
        let former = by_key(before, |share| share.share.clone());
        let none = ShareActivity::default();
        let rates = after.iter().map(|now| {
            let old = former.get(&now.share).copied().unwrap_or(&none);
            ShareRates {
                share: now.share.clone(),
                answered: self.of(old.answered, now.answered),
                read: self.of(old.read, now.read),
                written: self.of(old.written, now.written),
                mean: mean((old.seconds, old.answered), (now.seconds, now.answered)),
            }
        });
        rates.collect()
    }

    fn clients(&self, before: &[ClientActivity], after: &[ClientActivity]) -> Vec<ClientRates> {
        let former = by_key(before, |client| (client.id.clone(), client.peer.clone()));
        let none = ClientActivity::default();
        let rates = after.iter().map(|now| {
            let key = (now.id.clone(), now.peer.clone());
            let old = former.get(&key).copied().unwrap_or(&none);
            ClientRates {
                id: now.id.clone(),
                peer: now.peer.clone(),
                users: now.users.clone(),
                transport: now.transport.clone(),
                protection: now.protection,
                traffic: Traffic {
                    received: self.of(old.received, now.received),
                    sent: self.of(old.sent, now.sent),
                    answered: self.of(old.answered, now.answered),
                    errors: self.of(old.errors, now.errors),
                },
                requests: now.requests,
            }
        });
        rates.collect()
    }
}

fn by_key<T, K: Eq + Hash>(items: &[T], key: impl Fn(&T) -> K) -> HashMap<K, &T> {
    items.iter().map(|item| (key(item), item)).collect()
}

/// The mean time of the requests between two sums of times and numbers of requests.
fn mean(before: (f64, u64), after: (f64, u64)) -> f64 {
    let requests = after.1.saturating_sub(before.1);
    match requests {
        0 => 0.0,
        requests => (after.0 - before.0).max(0.0) / requests as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn activity(at_ms: u64, times: u64) -> Activity {
        let command = |command: &str, answered| CommandActivity {
            command: command.to_owned(),
            answered,
            errors: answered / 10,
            seconds: answered as f64 / 1000.0,
        };
        let client = |id: &str, sent| ClientActivity {
            id: id.to_owned(),
            sent,
            answered: 10 * times,
            ..ClientActivity::default()
        };
        let mut activity = Activity {
            at_ms,
            since: 7,
            commands: vec![command("READ", 100 * times), command("WRITE", 400 * times)],
            shares: vec![ShareActivity {
                share: "data".to_owned(),
                answered: 500 * times,
                read: 1_000_000 * times,
                written: 0,
                seconds: times as f64,
            }],
            clients: vec![client("0.1", 10 * times), client("0.2", 20 * times)],
            ..Activity::default()
        };
        activity.commands.push(command("CLOSE", 5));
        activity.totals.sent = 30 * times;
        activity
    }

    #[test]
    fn rates_are_differences_by_time() {
        let rates = Rates::between(&activity(1000, 1), &activity(3000, 3));
        assert_eq!(rates.seconds, 2.0);
        assert_eq!(rates.totals.sent, 30.0);
        // Without a request in the interval there is no row.
        let commands: Vec<_> = rates
            .commands
            .iter()
            .map(|it| it.command.as_str())
            .collect();
        assert_eq!(commands, ["WRITE", "READ"]);
        assert_eq!(rates.commands[0].answered, 400.0);
        assert_eq!(rates.commands[0].errors, 40.0);
        assert!((rates.commands[0].mean - 0.001).abs() < 1e-9);
        assert_eq!(rates.shares[0].read, 1_000_000.0);
        let clients: Vec<_> = rates.clients.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(clients, ["0.2", "0.1"]);
        assert_eq!(rates.clients[0].traffic.sent, 20.0);
    }

    #[test]
    fn counters_of_a_new_server_count_from_zero() {
        let after = Activity {
            since: 8,
            ..activity(3000, 1)
        };
        let rates = Rates::between(&activity(1000, 9), &after);
        assert_eq!(rates.totals.sent, 15.0);
        assert_eq!(rates.commands[0].answered, 200.0);
    }

    #[test]
    fn equal_times_give_finite_rates() {
        let rates = Rates::between(&activity(1000, 1), &activity(1000, 2));
        assert!(rates.totals.sent.is_finite());
    }
}
