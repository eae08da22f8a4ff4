//! Each mistake in a configuration has a message with its key and its line.
//!
//! A case is a text, the line of the mistake (0: no single line), and the start of the message.

mod sources;
mod syntax;
mod values;

use std::path::Path;

use smbeam_server::config::{Config, ConfigError};

/// A text, the line of the mistake, and the start of the message.
type Case = (&'static str, usize, &'static str);

/// Fails unless each text has its mistake. Shows all differences at once.
fn check(cases: &[Case]) {
    let differences = cases.iter().filter_map(|(text, line, expected)| {
        let parsed = Config::parse(Path::new("/smbeam.toml"), text);
        difference(parsed, text, *line, expected)
    });
    let differences: Vec<String> = differences.collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

fn difference(
    parsed: Result<Config, ConfigError>,
    text: &str,
    line: usize,
    expected: &str,
) -> Option<String> {
    let Err(error) = parsed else {
        return Some(format!("no mistake in {text:?}"));
    };
    let found = error.line().unwrap_or(0);
    let is_right = found == line && error.reason().starts_with(expected);
    (!is_right).then(|| {
        let reason = error.reason();
        format!("{text:?}: line {found}: {reason:?}\n  instead of line {line}: {expected:?}")
    })
}

#[test]
fn the_tables_have_sixty_kinds_of_mistakes() {
    let of_texts = syntax::CASES.len() + values::CASES.len();
    assert!(of_texts + sources::COUNT >= 60);
}

#[test]
fn syntax_names_and_types() {
    check(syntax::CASES);
}

#[test]
fn ranges_contradictions_addresses_paths_and_names() {
    check(values::CASES);
}
