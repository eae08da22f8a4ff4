//! Totals of all connections since the start of the server.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::status::{ConnectionStatus, TotalsStatus};

/// Adds a connection.
fn add(totals: &mut TotalsStatus, connection: &ConnectionStatus) {
    totals.connections += 1;
    totals.received += connection.received;
    totals.sent += connection.sent;
    totals.answered += connection.answered;
    totals.errors += connection.errors;
}

/// The logins, and the totals of the closed connections.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    logins: AtomicU64,
    connections: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
    answered: AtomicU64,
    errors: AtomicU64,
}

impl Totals {
    pub(crate) fn count_login(&self) {
        self.logins.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds a connection that is closed.
    pub(crate) fn add_closed(&self, connection: &ConnectionStatus) {
        let mut one = TotalsStatus::default();
        add(&mut one, connection);
        let TotalsStatus {
            connections,
            logins: _,
            received,
            sent,
            answered,
            errors,
        } = one;
        for (total, more) in [
            (&self.connections, connections),
            (&self.received, received),
            (&self.sent, sent),
            (&self.answered, answered),
            (&self.errors, errors),
        ] {
            total.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// The totals of the closed connections and of these open ones.
    pub(crate) fn with_open(&self, open: &[ConnectionStatus]) -> TotalsStatus {
        let load = |total: &AtomicU64| total.load(Ordering::Relaxed);
        let mut totals = TotalsStatus {
            connections: load(&self.connections),
            logins: load(&self.logins),
            received: load(&self.received),
            sent: load(&self.sent),
            answered: load(&self.answered),
            errors: load(&self.errors),
        };
        open.iter()
            .for_each(|connection| add(&mut totals, connection));
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_have_closed_and_open_connections() {
        let connection = |received, errors| ConnectionStatus {
            received,
            sent: 2,
            answered: 7,
            errors,
            ..ConnectionStatus::default()
        };
        let totals = Totals::default();
        totals.count_login();
        totals.add_closed(&connection(10, 1));
        totals.add_closed(&connection(100, 0));
        let expected = TotalsStatus {
            connections: 3,
            logins: 1,
            received: 1110,
            sent: 6,
            answered: 21,
            errors: 1,
        };
        assert_eq!(totals.with_open(&[connection(1000, 0)]), expected);
    }
}
