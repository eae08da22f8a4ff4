//! The key `include`: further files of a configuration.

use std::fs;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::ConfigError;
use super::paths::directory_of;
use super::read::read;
use super::sources::Sources;

/// Most included files.
const FILES_MAX: usize = 256;
/// Most entries of a directory that are read.
const ENTRIES_MAX: usize = 65_536;

/// Reads the files that the main file includes: those of the first pattern first, and those of one
/// pattern in the order of their names. The main file is the first text of `sources`. A main file
/// with a syntax error includes none.
///
/// # Errors
/// A file or directory cannot be read, or a file is included twice.
pub(super) fn files(sources: &Sources, main: &Path) -> Result<Vec<(PathBuf, String)>, ConfigError> {
    let text = sources.padded(0);
    let Ok(root) = DeTable::parse(&text) else {
        return Ok(Vec::new());
    };
    let Some(DeValue::Array(patterns)) = root.get_ref().get("include").map(Spanned::get_ref) else {
        return Ok(Vec::new());
    };
    let mut found: Vec<PathBuf> = Vec::new();
    for pattern in patterns {
        // The parser of the values reports other types.
        let Some(text) = pattern.get_ref().as_str() else {
            return Ok(Vec::new());
        };
        let failed =
            |what: String| ConfigError::at(sources, &pattern.span(), format!("include: {what}"));
        for file in matching(&directory_of(main), text).map_err(failed)? {
            let is_main = || same_file(&file, main);
            if found.contains(&file) || is_main() {
                return Err(failed(format!("{} is included twice", file.display())));
            }
            found.push(file);
            if found.len() > FILES_MAX {
                return Err(failed(format!("more than {FILES_MAX} files")));
            }
        }
    }
    let with_text = |file: PathBuf| read(&file).map(|text| (file, text));
    found.into_iter().map(with_text).collect()
}

fn same_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    real(one).is_some_and(|one| Some(one) == real(other))
}

/// The files of a pattern, sorted. A pattern has wildcards in the last part of its path only.
fn matching(directory: &Path, pattern: &str) -> Result<Vec<PathBuf>, String> {
    let path = directory.join(pattern);
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| format!("`{pattern}` names no file"))?;
    let parent = path.parent().unwrap_or(Path::new("/"));
    if has_wildcards(
        &parent
            .strip_prefix(directory)
            .unwrap_or(parent)
            .to_string_lossy(),
    ) {
        return Err(format!(
            "`{pattern}`: wildcards are for names of files, not of directories"
        ));
    }
    if !has_wildcards(name) {
        return match path.is_file() {
            true => Ok(vec![path]),
            false => Err(format!("{}: no such file", path.display())),
        };
    }
    let glob = GlobBuilder::new(name).literal_separator(true).build();
    let glob = glob.map_err(|error| format!("`{pattern}`: {}", error.kind()))?;
    let hidden = name.starts_with('.');
    list(parent, &glob.compile_matcher(), hidden)
}

fn has_wildcards(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}

/// The files of a directory with a matching name, sorted.
fn list(directory: &Path, glob: &GlobMatcher, hidden: bool) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(directory);
    let entries = entries.map_err(|error| format!("{}: {error}", directory.display()))?;
    let names = entries
        .take(ENTRIES_MAX)
        .filter_map(|entry| Some(entry.ok()?.file_name()));
    let is_wanted = |name: &std::ffi::OsString| {
        glob.is_match(Path::new(name)) && (hidden || !name.as_encoded_bytes().starts_with(b"."))
    };
    let files = names.filter(is_wanted).map(|name| directory.join(name));
    let mut files: Vec<PathBuf> = files.filter(|file| file.is_file()).collect();
    files.sort();
    Ok(files)
}
