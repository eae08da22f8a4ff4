use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::MetricType;
use proto::effect::AnsweredRequest;
use wire::{Command, Status};

use super::*;
use crate::accounts::Accounts;
use crate::config::Config;
use crate::counters::RefusedLogin;
use crate::share::Shares;
use crate::start;

/// A server with one share, and without workers.
fn observer() -> Observer {
    let text = "[server]\nworkers = 2\n[[share]]\nname = \"a b\"\npath = \"/\"\n";
    let config = Config::parse(Path::new("smbeam.toml"), text).expect("a good file");
    let accounts = Accounts::from_config(&config).expect("no accounts");
    let sids = accounts.sids_with(&config, wire::security::Sid::NULL);
    let sids = Arc::new(sids.expect("a server"));
    let known: Arc<dyn vfs::accounts::Accounts> = sids.clone();
    let shares = Shares::open(&config.shares, &known).expect("the root directory");
    let shared = start::shared(&config, shares, accounts, sids, Default::default());
    assert!(shared.mailboxes.set(Vec::new()).is_ok());
    Observer::new(Arc::new(shared))
}

/// The name of a family in expressions.
fn sample_name(family: &Family) -> String {
    let suffix = match family.kind {
        MetricType::Counter => "_total",
        MetricType::Info => "_info",
        _ => "",
    };
    family.full_name() + suffix
}

#[test]
fn the_text_has_each_family_once_with_type_and_unit() {
    let text = text(&observer(), &[]);
    for family in families::ALL {
        let (name, kind) = (family.full_name(), family.kind.as_str());
        let lines = [
            format!("# HELP {name} {}", family.help),
            format!("# TYPE {name} {kind}"),
        ];
        for line in lines {
            assert_eq!(
                text.lines().filter(|found| *found == line).count(),
                1,
                "{line}"
            );
        }
        if let Some(unit) = &family.unit {
            assert!(text.contains(&format!("# UNIT {name} {}\n", unit.as_str())));
        }
    }
    let types = text.lines().filter(|line| line.starts_with("# TYPE "));
    assert_eq!(types.count(), families::ALL.len());
    assert!(text.ends_with("\n# EOF\n"));
}

#[test]
fn counters_of_all_workers_are_in_the_text() {
    let observer = observer();
    let counters = &observer.shared().counters;
    assert_eq!(counters.len(), 2);
    for worker in counters {
        worker.count_answer(&AnsweredRequest {
            command: Command::READ,
            status: Status::SUCCESS,
            share: Some(ShareId(1)),
            bytes: 4096,
            duration: Duration::from_millis(3),
        });
        worker.count_refused_login(RefusedLogin::WrongPassword);
    }
    let share = ShareState {
        name: "a b".to_owned(),
        is_available: false,
        reason: None,
    };
    let text = text(&observer, &[share]);
    let share = "share=\"a b\"";
    let duration = format!("command=\"READ\",{share}");
    let expected = [
        "smbeam_requests_total{command=\"READ\",status=\"SUCCESS\"} 2".to_owned(),
        format!("smbeam_read_bytes_total{{{share}}} 8192"),
        format!("smbeam_share_available{{{share}}} 0"),
        format!("smbeam_request_duration_seconds_count{{{duration}}} 2"),
        format!("smbeam_request_duration_seconds_bucket{{le=\"0.002097152\",{duration}}} 0"),
        format!("smbeam_request_duration_seconds_bucket{{le=\"0.004194304\",{duration}}} 2"),
        format!("smbeam_request_duration_seconds_bucket{{le=\"+Inf\",{duration}}} 2"),
        "smbeam_refused_logins_total{reason=\"login-wrong-password\"} 2".to_owned(),
        "smbeam_refused_logins_total{reason=\"login-unknown-user\"} 0".to_owned(),
    ];
    for line in expected {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
}

/// The rows of the tables in docs/metrics.md: name, type, labels and meaning.
fn documented() -> BTreeSet<[String; 4]> {
    let text = include_str!("../../../../../docs/metrics.md");
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    let rows = rows.filter_map(|row| {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, kind, labels, meaning] = cells.as_slice() else {
            return None;
        };
        let cells = [*name, *kind, *labels, *meaning];
        Some(cells.map(|cell| cell.replace('`', "")))
    });
    rows.collect()
}

#[test]
fn the_documentation_has_the_same_metrics() {
    let exported = families::ALL.iter().map(|family| {
        [
            sample_name(family),
            family.kind.as_str().to_owned(),
            family.labels.join(", "),
            family.help.to_owned(),
        ]
    });
    let (exported, documented) = (exported.collect::<BTreeSet<_>>(), documented());
    let missing: Vec<_> = exported.difference(&documented).collect();
    let stale: Vec<_> = documented.difference(&exported).collect();
    assert!(
        missing.is_empty() && stale.is_empty(),
        "missing: {missing:#?}, stale: {stale:#?}"
    );
}
