//! The files for Grafana and Prometheus name only metrics and labels that the server exports.

use std::collections::BTreeSet;

use prometheus_client::metrics::MetricType;
use serde_json::Value;

use super::families;

const BOARD: &str = include_str!("../../../../contrib/grafana/smbeam.json");
const RULES: &str = include_str!("../../../../contrib/prometheus/smbeam.rules.yml");
const RULE_TESTS: &str = include_str!("../../../../contrib/prometheus/smbeam.test.yml");

/// Labels that Prometheus adds, and the one of buckets.
const FOREIGN_LABELS: [&str; 3] = ["instance", "job", "le"];

/// The samples of all families, each with its labels.
fn samples() -> Vec<(String, &'static [&'static str])> {
    let mut samples = Vec::new();
    for family in families::ALL {
        let suffixes: &[&str] = match family.kind {
            MetricType::Counter => &["_total"],
            MetricType::Info => &["_info"],
            MetricType::Histogram => &["_bucket", "_count", "_sum"],
            _ => &[""],
        };
        let name = family.full_name();
        let named = suffixes.iter().map(|suffix| format!("{name}{suffix}"));
        samples.extend(named.map(|name| (name, family.labels)));
    }
    samples
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

/// The names of metrics in an expression, each with the labels of its selector.
fn selectors(expression: &str) -> Vec<(&str, Vec<&str>)> {
    let mut found = Vec::new();
    let mut rest = expression;
    while let Some(start) = rest.find(is_word) {
        let word = &rest[start..];
        let end = word
            .find(|character| !is_word(character))
            .unwrap_or(word.len());
        let (name, after) = word.split_at(end);
        rest = after;
        if name.starts_with("smbeam_") || name.starts_with("process_") {
            let labels = after
                .strip_prefix('{')
                .and_then(|after| after.split_once('}'));
            let labels = labels.map_or("", |(labels, _)| labels).split("\",");
            let names = labels.filter_map(|label| label.split(['=', '!']).next());
            let names = names.map(str::trim).filter(|name| !name.is_empty());
            found.push((name, names.collect()));
        }
    }
    found
}

/// Checks all selectors of a text. Returns the names.
fn check(text: &str) -> BTreeSet<String> {
    let samples = samples();
    let mut names = BTreeSet::new();
    for (name, labels) in selectors(text) {
        let sample = samples.iter().find(|(sample, _)| sample == name);
        let (_, known) = sample.unwrap_or_else(|| panic!("the server does not export {name}"));
        for label in labels {
            let is_known = known.contains(&label) || FOREIGN_LABELS.contains(&label);
            assert!(is_known, "{name} has no label {label}");
        }
        names.insert(name.to_owned());
    }
    names
}

/// All strings of a JSON value below the keys `expr` and `query`.
fn expressions<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                match value {
                    Value::String(text) if key == "expr" || key == "query" => found.push(text),
                    other => expressions(other, found),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| expressions(value, found)),
        _ => {}
    }
}

#[test]
fn the_board_shows_exported_metrics() {
    let board: Value = serde_json::from_str(BOARD).expect("JSON");
    let mut texts = Vec::new();
    expressions(&board, &mut texts);
    assert!(texts.len() > 30, "{}", texts.len());
    let names: BTreeSet<String> = texts.iter().flat_map(|text| check(text)).collect();
    assert!(names.len() > 25, "{names:?}");
}

#[test]
fn the_alerts_watch_exported_metrics() {
    assert!(check(RULES).len() > 10);
    assert!(check(RULE_TESTS).len() > 3);
    let alerts = RULES.lines().filter(|line| line.contains("- alert: "));
    assert_eq!(alerts.count(), RULES.matches(" expr: ").count());
}

#[test]
fn selectors_are_found() {
    let expression = "sum by (a) (rate(smbeam_x_total{b=~\"1,2\",c!=\"3\"}[5m])) / process_y";
    let expected = [("smbeam_x_total", vec!["b", "c"]), ("process_y", vec![])];
    assert_eq!(selectors(expression), expected);
}
