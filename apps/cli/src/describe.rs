//! What is known of a file, for programs: an object of JSON.

use serde::Serialize;

use crate::format::{self, SizeArguments};
use crate::place::{Facts, Kind};

/// A file in JSON. Times are of UTC, sizes in bytes.
#[derive(Debug, Serialize)]
pub(crate) struct Described {
    path: String,
    kind: &'static str,
    size: u64,
    allocation: u64,
    created: Option<String>,
    accessed: String,
    written: String,
    changed: String,
    attributes: Vec<&'static str>,
    file_id: Option<u64>,
}

impl Described {
    /// A file of this path.
    pub(crate) fn new(path: &str, facts: &Facts) -> Self {
        Self {
            path: path.to_owned(),
            kind: facts.kind.name(),
            size: facts.size,
            allocation: facts.allocation,
            created: facts.created.map(format::utc_time),
            accessed: format::utc_time(facts.accessed),
            written: format::utc_time(facts.written),
            changed: format::utc_time(facts.changed),
            attributes: format::attribute_names(facts.attributes),
            file_id: facts.file_id,
        }
    }

    /// In one line.
    pub(crate) fn line(&self) -> String {
        json(self)
    }
}

/// Something in one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> String {
    // No map with keys of another kind than text, no failing serializer: it cannot fail.
    serde_json::to_string(value).unwrap_or_default()
}

/// A line of a long listing.
pub(crate) fn long_line(name: &str, facts: &Facts, sizes: &SizeArguments) -> String {
    let size = match facts.kind {
        Kind::Folder => "-".to_owned(),
        _ => sizes.shown(facts.size),
    };
    format!(
        "{}  {size:>12}  {}  {}",
        format::attributes(facts.attributes),
        format::local_time(facts.written),
        short_line(name, facts)
    )
}

/// A name, with a `/` behind that of a folder.
pub(crate) fn short_line(name: &str, facts: &Facts) -> String {
    let slash = if facts.is_folder() { "/" } else { "" };
    format!("{}{slash}", format::name(name))
}
