//! Files with rules for `--filter-from`: one rule in each line, as in the filter files of rclone
//! and rsync.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use smbeam_profile::input;

use super::{Pattern, Rule};
use crate::failure::{Failure, Outcome};
use crate::location::shown;

/// Maximum size of a file of rules in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// Adds the rules of a file to `rules`. `-` is standard input.
pub(super) fn read(path: &Path, rules: &mut Vec<Rule>) -> Outcome {
    let failed = |error: io::Error| Failure::local(&shown(path), &error);
    let file = match path.as_os_str() == "-" {
        true => input::open(),
        false => File::open(path),
    };
    let mut text = String::new();
    let taken = file.and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text));
    let length = taken.map_err(failed)?;
    if length as u64 > MAX_BYTES {
        return Err(Failure::usage(shown(path), "the file has more than 16 MiB"));
    }
    parse(&text, rules).map_err(|reason| Failure::usage(shown(path), reason))
}

/// Adds the rules in `text` to `rules`: `+ PATTERN` includes, `- PATTERN` excludes, and `!` removes
/// all rules before it. Empty lines, and lines with `#` or `;` at the start, are comments.
fn parse(text: &str, rules: &mut Vec<Rule>) -> Result<(), String> {
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if line == "!" {
            rules.clear();
            continue;
        }
        let at = |reason: &str| format!("line {}: {reason}", index + 1);
        let (is_include, pattern) = match line.split_once(char::is_whitespace) {
            Some(("+", pattern)) => (true, pattern),
            Some(("-", pattern)) => (false, pattern),
            _ => return Err(at("expected `+ PATTERN`, `- PATTERN` or `!`")),
        };
        let pattern = Pattern::parse(pattern.trim_start()).map_err(|reason| at(&reason))?;
        rules.push(Rule {
            is_include,
            pattern,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_rule_in_each_line() {
        let mut rules = Vec::new();
        let text = "# photos\n\n+ *.jpg\n-   /cache/\r\n; end\n";
        parse(text, &mut rules).expect("rules");
        let kinds: Vec<_> = rules.iter().map(|rule| rule.is_include).collect();
        assert_eq!(kinds, [true, false]);
        assert!(rules[1].pattern.matches(Path::new("cache"), true));
        parse("!\n- x\n", &mut rules).expect("rules");
        assert_eq!(rules.len(), 1);
    }

    #[test]
    fn a_mistake_has_a_line() {
        for (text, line) in [("+ a\n*.jpg", "line 2"), ("-", "line 1"), ("- [", "line 1")] {
            let reason = parse(text, &mut Vec::new()).expect_err("a mistake");
            assert!(reason.starts_with(line), "{reason}");
        }
    }
}
