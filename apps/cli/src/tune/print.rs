//! Findings and limits as text and JSON.

use serde_json::{Value, json};
use smbeam_server::tune::{Evidence, Finding, Limit};

use crate::output::Lines;

/// Prints findings, and their number.
pub(super) fn findings(findings: &[Finding]) {
    let mut lines = Lines::new();
    for line in findings.iter().flat_map(text) {
        lines.line(&line);
    }
    let can_apply = findings
        .iter()
        .filter(|finding| !finding.changes.is_empty());
    lines.line(&format_args!(
        "{} findings; --apply makes the changes of {}",
        findings.len(),
        can_apply.count()
    ));
}

/// The lines of a finding. Names may contain control characters, which would change the terminal.
fn text(finding: &Finding) -> Vec<String> {
    let Finding {
        code,
        subject,
        message,
        evidence,
        advice,
        changes,
        source,
    } = finding;
    let mut lines = vec![format!("{subject}: {message} [{code}]")];
    lines.extend(
        evidence
            .iter()
            .map(|seen| format!("    seen:   {}", seen_text(seen))),
    );
    let word = match changes.is_empty() {
        true => "advice",
        false => "change",
    };
    lines.push(format!("    {word}: {advice}"));
    lines.push(format!("    source: {source}"));
    for line in &mut lines {
        *line = line.replace(char::is_control, "?");
    }
    lines
}

fn seen_text(Evidence { value, origin }: &Evidence) -> String {
    format!("{value} ({origin})")
}

/// Limits on one line: the first with its evidence and advice, and the name of the next one.
pub(super) fn limits_line(limits: &[Limit]) -> String {
    let Some(first) = limits.first() else {
        return String::new();
    };
    let finding = &first.finding;
    let seen: Vec<String> = finding.evidence.iter().map(seen_text).collect();
    let next = limits.get(1).map_or_else(String::new, |next| {
        format!("; next: {} {:.0} %", next.finding.code, next.share * 100.0)
    });
    let line = format!(
        "{} {:.0} %: {}; {}; advice: {}{next}",
        finding.code,
        first.share * 100.0,
        finding.message,
        seen.join(", "),
        finding.advice
    );
    line.replace(char::is_control, "?")
}

/// Limits as JSON: the first one, and the next one or null.
pub(super) fn limits_json(limits: &[Limit]) -> Value {
    json!({ "limit": limits.first(), "next": limits.get(1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_has_evidence_advice_and_source() {
        let finding = Finding::new("tune-a", "share a\u{1b}b", "slow")
            .seen("x = 1", "/proc/x")
            .advise("set x=2", "x(5)");
        let expected = [
            "share a?b: slow [tune-a]",
            "    seen:   x = 1 (/proc/x)",
            "    advice: set x=2",
            "    source: x(5)",
        ];
        assert_eq!(text(&finding), expected);
        let limit = |code, share| Limit {
            share,
            finding: Finding::new(code, "disk", "waits")
                .seen("a", "b")
                .advise("c", "d"),
        };
        let limits = [limit("limit-disk", 0.9), limit("limit-window", 0.4)];
        let line = limits_line(&limits);
        assert_eq!(
            line,
            "limit-disk 90 %: waits; a (b); advice: c; next: limit-window 40 %"
        );
        let json = limits_json(&limits);
        assert_eq!(json["limit"]["code"], "limit-disk");
        assert_eq!(json["next"]["share"], 0.4);
        assert_eq!(limits_line(&[]), "");
    }
}
