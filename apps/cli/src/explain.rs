//! `smbeam explain`: explains a reason code of the log.

use clap::Args;
use serde_json::json;

use crate::exit::Exit;
use crate::output::{self, Lines};

/// The page with a section for each code. A link, so that a package of this crate contains it.
const PAGE: &str = include_str!("explain/troubleshooting.md");
/// The heading before the first section.
const START: &str = "\n## Reason codes\n";
/// The start of the heading of a section.
const HEADING: &str = "\n### ";

/// Arguments of `smbeam explain`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The code, or a part of it; all codes without one.
    code: Option<String>,
    /// Print one JSON object per code.
    #[arg(long)]
    json: bool,
}

/// The section of a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Section {
    code: &'static str,
    /// The paragraphs, in Markdown.
    text: &'static str,
}

impl Section {
    /// All sections, in the order of the page.
    fn all() -> impl Iterator<Item = Self> {
        let codes = PAGE.split_once(START).map_or("", |(_, codes)| codes);
        let end = codes.find("\n## ").unwrap_or(codes.len());
        let sections = codes[..end].split(HEADING).skip(1);
        sections.filter_map(|section| {
            let (code, text) = section.split_once('\n')?;
            let text = text.trim();
            Some(Self { code, text })
        })
    }

    /// The first sentence.
    fn summary(&self) -> String {
        let first = self.text.split("\n\n").next().unwrap_or_default();
        let first = first.replace('\n', " ");
        first
            .split_inclusive(". ")
            .next()
            .map_or_else(String::new, |sentence| sentence.trim_end().to_owned())
    }
}

/// Runs `smbeam explain`.
pub(crate) fn run(arguments: &Arguments) -> Exit {
    let wanted = arguments.code.as_deref().unwrap_or_default();
    let wanted = wanted.trim().to_ascii_lowercase();
    let exact = Section::all().find(|section| section.code == wanted);
    let found: Vec<Section> = match exact {
        Some(section) => vec![section],
        None => Section::all()
            .filter(|section| section.code.contains(&wanted))
            .collect(),
    };
    if found.is_empty() {
        output::note(&format_args!(
            "smbeam: no reason code \"{wanted}\": smbeam explain without a code lists all"
        ));
        return Exit::NotFound;
    }
    print(&found, arguments.json);
    Exit::Success
}

fn print(sections: &[Section], is_json: bool) {
    let mut lines = Lines::new();
    for section in sections {
        let Section { code, text } = section;
        if is_json {
            lines.line(&json!({ "code": code, "text": text }));
        } else if sections.len() == 1 {
            lines.line(&format_args!("{code}\n\n{text}"));
        } else {
            lines.line(&format_args!("{code}: {}", section.summary()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_page_has_a_section_for_each_code() {
        let sections: Vec<Section> = Section::all().collect();
        let documented: BTreeSet<&str> = sections.iter().map(|section| section.code).collect();
        assert_eq!(documented.len(), sections.len(), "a code has one section");
        let codes: BTreeSet<&str> = crate::doctor::codes().into_iter().collect();
        let missing: Vec<_> = codes.difference(&documented).collect();
        let unknown: Vec<_> = documented.difference(&codes).collect();
        assert_eq!((missing, unknown), (Vec::new(), Vec::new()));
    }

    #[test]
    fn each_section_has_a_cause_and_a_remedy() {
        for section in Section::all() {
            let paragraphs = section.text.split("\n\n").count();
            assert!(paragraphs >= 2, "{section:?}");
            assert!(section.text.contains("\n\nTo mend it: "), "{section:?}");
            assert!(section.summary().ends_with('.'), "{section:?}");
        }
    }
}
