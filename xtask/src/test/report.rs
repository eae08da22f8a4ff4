//! The tables at the end of a run: its slowest cases and its steps.

use std::time::Duration;

use super::counts::Counts;
use crate::table;

/// How many of the slowest cases are shown.
const SLOWEST: usize = 25;

/// How long a case took, or a test program whose cases have no times.
#[derive(Clone, Debug)]
pub(crate) struct CaseTime {
    pub(crate) name: String,
    pub(crate) time: Duration,
}

/// What a step found.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) counts: Counts,
    pub(crate) cases: Vec<CaseTime>,
    pub(crate) note: String,
}

/// A step that has ended.
pub(crate) struct Outcome {
    pub(crate) name: &'static str,
    pub(crate) counts: Counts,
    pub(crate) time: Duration,
    pub(crate) note: String,
    pub(crate) cases: Vec<CaseTime>,
}

impl CaseTime {
    pub(crate) fn new(name: &str, time: Duration) -> CaseTime {
        CaseTime {
            name: name.into(),
            time,
        }
    }
}

/// Prints the slowest cases, the steps and the closing line `N passed, N failed, N skipped`.
pub(crate) fn print(outcomes: &[Outcome]) {
    let mut cases: Vec<&CaseTime> = outcomes.iter().flat_map(|outcome| &outcome.cases).collect();
    cases.sort_by_key(|case| std::cmp::Reverse(case.time));
    cases.truncate(SLOWEST);
    if !cases.is_empty() {
        let rows = cases
            .iter()
            .map(|case| vec![case.name.clone(), seconds(case.time)]);
        let rows: Vec<_> = rows.collect();
        println!("\n{}", table::render(&["slowest cases", "time"], &rows));
    }
    let mut sum = Counts::default();
    let mut rows = Vec::new();
    for outcome in outcomes {
        sum.add(outcome.counts);
        rows.push(row(outcome));
    }
    let total = outcomes.iter().map(|outcome| outcome.time).sum();
    rows.push(vec!["all".into(), seconds(total)]);
    let head = ["step", "time", "passed", "failed", "skipped", ""];
    println!("\n{}\n{sum}", table::render(&head, &rows));
}

fn row(outcome: &Outcome) -> Vec<String> {
    let Counts {
        passed,
        failed,
        skipped,
    } = outcome.counts;
    let note = outcome.note.lines().next().unwrap_or_default();
    vec![
        outcome.name.into(),
        seconds(outcome.time),
        passed.to_string(),
        failed.to_string(),
        skipped.to_string(),
        note.into(),
    ]
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
