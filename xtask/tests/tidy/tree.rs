//! The files of the project as git lists them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The root directory of the project.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask is a directory of the project")
        .into()
}

/// The files of the project, by their path from its root.
pub(crate) fn files() -> Vec<String> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git lists the files");
    let listed = String::from_utf8(listed.stdout).expect("paths are UTF-8");
    let files: Vec<_> = listed
        .lines()
        .filter(|file| root().join(file).is_file())
        .map(str::to_owned)
        .collect();
    assert!(files.len() > 50, "git lists {} files only", files.len());
    files
}

/// The text files among them, with their text. The corpora of the fuzzers are no text.
pub(crate) fn texts() -> Vec<(String, String)> {
    let read = |file: String| {
        let text = String::from_utf8(fs::read(root().join(&file)).ok()?).ok()?;
        Some((file, text))
    };
    files()
        .into_iter()
        .filter(|file| !file.contains("corpus/"))
        .filter_map(read)
        .collect()
}

/// Fails with the list of what breaks the rule.
#[track_caller]
pub(crate) fn assert_none(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{what}:\n{}", found.join("\n"));
}
