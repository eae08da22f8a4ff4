//! Descriptions of a file: an object of JSON, or a line of a listing.

use serde::Serialize;

use crate::file_path::{FileInfo, Kind};
use crate::format::{self, SizeArguments};

/// A file in JSON. Times are in UTC, sizes in bytes.
#[derive(Debug, Serialize)]
pub(crate) struct FileDescription {
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

impl FileDescription {
    /// Describes the file with this path or URL.
    pub(crate) fn new(path: &str, info: &FileInfo) -> Self {
        Self {
            path: path.to_owned(),
            kind: info.kind.json_name(),
            size: info.size,
            allocation: info.allocation,
            created: info.created.map(format::utc_time),
            accessed: format::utc_time(info.accessed),
            written: format::utc_time(info.written),
            changed: format::utc_time(info.changed),
            attributes: format::attribute_names(info.attributes),
            file_id: info.file_id,
        }
    }

    /// The JSON object on one line.
    pub(crate) fn line(&self) -> String {
        json(self)
    }
}

/// Converts a value to one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> String {
    // Serialization cannot fail: no map has keys that are not strings, and no serializer fails.
    serde_json::to_string(value).unwrap_or_default()
}

/// A line of a long listing: attributes, size, time of last write and name.
pub(crate) fn long_line(name: &str, info: &FileInfo, sizes: &SizeArguments) -> String {
    let size = match info.kind {
        Kind::Directory => "-".to_owned(),
        _ => sizes.shown(info.size),
    };
    format!(
        "{}  {size:>12}  {}  {}",
        format::attributes(info.attributes),
        format::local_time(info.written),
        short_line(name, info)
    )
}

/// The name, with a `/` at the end for directories.
pub(crate) fn short_line(name: &str, info: &FileInfo) -> String {
    let slash = if info.is_directory() { "/" } else { "" };
    format!("{}{slash}", format::name(name))
}
