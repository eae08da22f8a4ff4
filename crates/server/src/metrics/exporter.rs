//! The metrics as OpenMetrics text.

use std::fmt;
use std::iter;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::registry::Registry;
use proto::file::ShareId;
use proto::server::Counts;
use proto::server::ledger::Resource;

use super::families::{self, Family};
use super::process::Process;
use super::share_state::ShareState;
use crate::counters::{
    ConnectionKind, Direction, HistogramTotal, ShareTotals, StoreOperation, Wait,
};
use crate::live::Live;
use crate::memory;
use crate::observer::{Observer, seconds};

/// Label of a value that a connection has not negotiated, or that it does not have.
const NONE: &str = "none";
/// Label of all shares together that have no own counters. It cannot be the name of a share.
const OTHER_SHARES: &str = "(other)";

/// Returns the metrics of a server as OpenMetrics text. Blocks the thread until the workers have
/// reported their load, for two seconds at most. `shares` are the states of the shares.
pub(super) fn text(observer: &Observer, shares: &[ShareState]) -> String {
    let mut registry = Registry::default();
    let exporter = Exporter {
        observer: observer.clone(),
        live: observer.shared().live.latest(),
        shares: shares.to_vec(),
    };
    registry.register_collector(Box::new(exporter));
    let mut text = String::new();
    let encoded = prometheus_client::encoding::text::encode(&mut text, &registry);
    encoded.expect("a string takes any text");
    text
}

/// Collects the metrics when the registry is encoded.
struct Exporter {
    observer: Observer,
    live: Arc<Live>,
    shares: Vec<ShareState>,
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter").finish_non_exhaustive()
    }
}

impl Collector for Exporter {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut out = Output(encoder);
        self.server(&mut out)?;
        self.requests(&mut out)?;
        self.refusals(&mut out)?;
        self.load(&mut out)?;
        self.objects(&mut out)?;
        self.memory(&mut out)?;
        process(&mut out)
    }
}

impl Exporter {
    fn server(&self, out: &mut Output<'_>) -> fmt::Result {
        let version = env!("CARGO_PKG_VERSION");
        out.info(&families::BUILD, &[version])?;
        let since = seconds(self.observer.since());
        out.gauge(&families::START_TIME, since)?;
        let workers = self.observer.shared().mailboxes().len() as u64;
        out.gauge(&families::WORKERS, workers)?;
        let available = self.shares.iter();
        let available = available.map(|share| ([share.name.as_str()], share.is_available.into()));
        out.gauges(&families::SHARE_AVAILABLE, available)
    }

    fn requests(&self, out: &mut Output<'_>) -> fmt::Result {
        let counters = self.observer.counters();
        let requests = counters.requests();
        let requests = requests.iter();
        let requests = requests.map(|(command, status, count)| ([*command, *status], *count));
        out.counters(&families::REQUESTS, requests)?;
        let shares = counters.shares();
        let mut durations = Vec::new();
        for (command, total) in counters.without_share() {
            durations.push(([command, ""], total));
        }
        for totals in &shares {
            let name = self.share_name(totals.share);
            for (command, total) in totals.durations() {
                durations.push(([command, name], total));
            }
        }
        out.histograms(&families::REQUEST_DURATION, &durations)?;
        let bytes = |count: fn(&ShareTotals) -> u64| {
            let shares = shares.iter();
            shares.map(move |totals| ([self.share_name(totals.share)], count(totals)))
        };
        out.counters(&families::READ, bytes(|totals| totals.read))?;
        out.counters(&families::WRITTEN, bytes(|totals| totals.written))?;
        let received = counters.sum(|worker| &worker.received);
        out.counter(&families::RECEIVED, received)?;
        out.counter(&families::SENT, counters.sum(|worker| &worker.sent))?;
        let operations = StoreOperation::ALL;
        let store = operations.map(|kind| ([kind.label()], counters.store(kind)));
        out.histograms(&families::STORE_DURATION, &store)?;
        let waits = Wait::ALL.map(|wait| ([wait.label()], counters.wait(wait)));
        out.histograms(&families::WAIT_DURATION, &waits)?;
        let crypto = Direction::ALL.map(|direction| (direction, counters.crypto(direction)));
        let seconds = crypto.map(|(direction, (seconds, _))| ([direction.label()], seconds));
        out.seconds(&families::CRYPTO_TIME, &seconds)?;
        let bytes = crypto.map(|(direction, (_, bytes))| ([direction.label()], bytes));
        out.counters(&families::CRYPTO_BYTES, bytes.into_iter())
    }

    fn share_name(&self, share: Option<ShareId>) -> &str {
        let name = share.and_then(|share| self.live.shares.find_name(share));
        name.unwrap_or(OTHER_SHARES)
    }

    fn refusals(&self, out: &mut Output<'_>) -> fmt::Result {
        let counters = self.observer.counters();
        let accepted = counters.accepted();
        let accepted = accepted
            .iter()
            .map(|(transport, count)| ([transport.name()], *count));
        out.counters(&families::ACCEPTED_CONNECTIONS, accepted)?;
        for (family, refused) in [
            (
                &families::REFUSED_CONNECTIONS,
                counters.refused_connections(),
            ),
            (&families::REFUSED_LOGINS, counters.refused_logins()),
            (&families::REFUSED_TREE_CONNECTS, counters.refused_shares()),
        ] {
            let refused = refused.iter().map(|(reason, count)| ([*reason], *count));
            out.counters(family, refused)?;
        }
        out.counter(&families::LOGINS, counters.sum(|worker| &worker.logins))?;
        let audit = self.observer.shared().audit.totals();
        out.counter(&families::AUDIT_RECORDS, audit.written)?;
        out.counter(&families::AUDIT_RECORDS_LOST, audit.lost)?;
        let denied = counters.sum(|worker| &worker.access_denied);
        out.counter(&families::ACCESS_DENIED, denied)
    }

    fn load(&self, out: &mut Output<'_>) -> fmt::Result {
        let (load, silent) = self.observer.load();
        out.gauge(&families::SILENT_WORKERS, silent as u64)?;
        let connections: Vec<_> = load
            .connections
            .iter()
            .map(|(kind, count)| (connection_labels(kind), *count))
            .collect();
        let connections = connections.iter().map(|(labels, count)| {
            let labels: [&str; 4] = std::array::from_fn(|index| labels[index].as_str());
            (labels, *count)
        });
        out.gauges(&families::CONNECTIONS, connections)?;
        out.gauge(&families::CREDITS, load.credits)?;
        out.gauge(&families::PENDING_REQUESTS, load.requests)?;
        out.gauge(&families::BLOCKING_JOBS, load.jobs)?;
        out.gauge(&families::WORKER_MESSAGES, load.messages)?;
        let dropped = &self.observer.shared().dropped_messages;
        out.counter(&families::DROPPED_MESSAGES, dropped.load(Ordering::Relaxed))?;
        out.gauge(&families::BUFFERS, load.buffers)?;
        out.gauge(&families::BUFFER_POOL, load.pool_bytes)
    }

    fn objects(&self, out: &mut Output<'_>) -> fmt::Result {
        let core = &self.observer.shared().core;
        let Counts {
            sessions,
            leases,
            disconnected,
            disconnected_totals,
        } = core.counts();
        out.gauge(&families::SESSIONS, sessions as u64)?;
        for (family, resource) in [
            (&families::OPENS, Resource::Opens),
            (&families::PIPES, Resource::Pipes),
            (&families::WATCHES, Resource::Watches),
            (&families::LOCKS, Resource::Locks),
            (&families::RESPONSE_MEMORY, Resource::ResponseBytes),
        ] {
            out.gauge(family, core.ledger().used(resource) as u64)?;
        }
        out.gauge(&families::LEASES, leases as u64)?;
        out.gauge(&families::DISCONNECTED_OPENS, disconnected as u64)?;
        let ended = [
            (["reclaimed"], disconnected_totals.reclaimed),
            (["expired"], disconnected_totals.expired),
            (["given_up"], disconnected_totals.given_up),
        ];
        out.counters(&families::ENDED_DISCONNECTED_OPENS, ended.into_iter())
    }

    fn memory(&self, out: &mut Output<'_>) -> fmt::Result {
        let used = memory::used().map(|used| used as u64);
        out.gauges(
            &families::MEMORY_USED,
            used.into_iter().map(|used| ([], used)),
        )?;
        let limit = self.live.memory_max as u64;
        out.gauge(&families::MEMORY_LIMIT, limit)
    }
}

fn process(out: &mut Output<'_>) -> fmt::Result {
    let Process {
        cpu_seconds,
        resident_bytes,
        open_descriptors,
        descriptors_max,
    } = Process::measure();
    let mut cpu = out.family(&families::PROCESS_CPU)?;
    if let Some(cpu_seconds) = cpu_seconds {
        cpu.encode_counter::<NoLabelSet, f64, u64>(&cpu_seconds, None)?;
    }
    for (family, value) in [
        (&families::PROCESS_RESIDENT_MEMORY, resident_bytes),
        (&families::PROCESS_OPEN_FDS, open_descriptors),
        (&families::PROCESS_MAX_FDS, descriptors_max),
    ] {
        out.gauges(family, value.into_iter().map(|value| ([], value)))?;
    }
    Ok(())
}

fn connection_labels(kind: &ConnectionKind) -> [String; 4] {
    let ConnectionKind {
        transport,
        dialect,
        cipher,
        signing,
    } = kind;
    [
        transport.name().to_owned(),
        dialect.map_or_else(|| NONE.to_owned(), |dialect| dialect.to_string()),
        cipher.map_or(NONE, |cipher| cipher.name()).to_owned(),
        signing.map_or(NONE, |signing| signing.name()).to_owned(),
    ]
}

/// Writes families, each with the labels that it declares.
struct Output<'a>(DescriptorEncoder<'a>);

impl Output<'_> {
    /// Writes the description of a family.
    fn family(&mut self, family: &'static Family) -> Result<MetricEncoder<'_>, fmt::Error> {
        let Family {
            name,
            unit,
            kind,
            help,
            ..
        } = family;
        self.0.encode_descriptor(name, help, unit.as_ref(), *kind)
    }

    fn info(&mut self, family: &'static Family, values: &[&str]) -> fmt::Result {
        let labels = labels(family, values);
        self.family(family)?.encode_info(&labels)
    }

    fn gauge(&mut self, family: &'static Family, value: u64) -> fmt::Result {
        self.gauges(family, iter::once(([], value)))
    }

    fn counter(&mut self, family: &'static Family, value: u64) -> fmt::Result {
        self.counters(family, iter::once(([], value)))
    }

    fn gauges<'l, const N: usize>(
        &mut self,
        family: &'static Family,
        rows: impl Iterator<Item = ([&'l str; N], u64)>,
    ) -> fmt::Result {
        let mut metric = self.family(family)?;
        for (values, value) in rows {
            let labels = labels(family, &values);
            metric.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    fn counters<'l, const N: usize>(
        &mut self,
        family: &'static Family,
        rows: impl Iterator<Item = ([&'l str; N], u64)>,
    ) -> fmt::Result {
        let mut metric = self.family(family)?;
        for (values, value) in rows {
            let labels = labels(family, &values);
            let mut row = metric.encode_family(&labels)?;
            row.encode_counter::<NoLabelSet, u64, u64>(&value, None)?;
        }
        Ok(())
    }

    /// Writes counters of seconds.
    fn seconds<const N: usize>(
        &mut self,
        family: &'static Family,
        rows: &[([&str; N], f64)],
    ) -> fmt::Result {
        let mut metric = self.family(family)?;
        for (values, seconds) in rows {
            let labels = labels(family, values);
            let mut row = metric.encode_family(&labels)?;
            row.encode_counter::<NoLabelSet, f64, u64>(seconds, None)?;
        }
        Ok(())
    }

    fn histograms<const N: usize>(
        &mut self,
        family: &'static Family,
        rows: &[([&str; N], HistogramTotal)],
    ) -> fmt::Result {
        let mut metric = self.family(family)?;
        for (values, total) in rows {
            let labels = labels(family, values);
            let mut row = metric.encode_family(&labels)?;
            let (seconds, count) = (total.seconds(), total.count());
            row.encode_histogram::<NoLabelSet>(seconds, count, &total.buckets(), None)?;
        }
        Ok(())
    }
}

/// The labels of a family with their values.
fn labels<'v>(family: &Family, values: &[&'v str]) -> Vec<(&'static str, &'v str)> {
    assert_eq!(family.labels.len(), values.len(), "a value for each label");
    let names = family.labels.iter().copied();
    names.zip(values.iter().copied()).collect()
}

#[cfg(test)]
mod tests;
