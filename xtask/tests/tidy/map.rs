//! ARCHITECTURE.md against the tree: the map of crates and the index of behaviors.

use std::fs;

use crate::tree::{assert_none, files, root};

/// Behaviors that a maintainer must find through the index, by words of their row.
const INDEXED: [&[&str]; 10] = [
    &["lease", "break"],
    &["credits"],
    &["sequence window"],
    &["signing", "interim"],
    &["oplock downgrade"],
    &["copychunk limits"],
    &["share-mode conflict"],
    &["rename of an open directory"],
    &["quic", "certificate", "allow list"],
    &["rdma remote invalidation"],
];
/// Words of our own that the glossary explains.
const GLOSSARY: [&str; 5] = ["effect", "plan", "notice", "payload", "token"];

fn architecture() -> String {
    fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md")
}

/// The crates that the map names: the first column of its table.
fn rooms_of_the_map() -> Vec<String> {
    let room = |line: &str| {
        let cell = line.strip_prefix("| `")?;
        cell.split_once("` |").map(|(room, _)| room.to_owned())
    };
    architecture().lines().filter_map(room).collect()
}

/// The rows of the index: the behavior in lower case, and the file.
fn index() -> Vec<(String, String)> {
    let text = architecture();
    let (_, index) = text.split_once("| behavior | file |").expect("an index");
    let (index, _) = index.split_once("\n\n").unwrap_or((index, ""));
    let row = |line: &str| {
        let (behavior, file) = line.strip_prefix("| ")?.rsplit_once(" | `")?;
        let (file, _) = file.split_once('`')?;
        Some((behavior.to_lowercase(), file.to_owned()))
    };
    index.lines().filter_map(row).collect()
}

#[test]
fn the_map_is_the_tree() {
    let files = files();
    let rooms = rooms_of_the_map();
    assert!(rooms.len() > 10, "the map has {} rooms only", rooms.len());
    let is_empty = |room: &&String| {
        !files
            .iter()
            .any(|file| file.starts_with(&format!("{room}/")))
    };
    let empty: Vec<_> = rooms.iter().filter(is_empty).cloned().collect();
    assert_none("crates on the map that are not in the tree", &empty);
    let is_off_the_map = |file: &&String| {
        let is_hidden = file.starts_with('.');
        let is_in_a_room = rooms
            .iter()
            .any(|room| file.starts_with(&format!("{room}/")));
        file.contains('/') && !is_hidden && !is_in_a_room
    };
    let strays: Vec<_> = files.iter().filter(is_off_the_map).cloned().collect();
    assert_none("files in directories that are not on the map", &strays);
}

#[test]
fn the_index_names_files_of_the_tree() {
    let (index, files) = (index(), files());
    assert!(index.len() >= 30, "the index has {} rows only", index.len());
    let missing = index.iter().filter(|(_, file)| !files.contains(file));
    let missing: Vec<_> = missing
        .map(|(behavior, file)| format!("{behavior}: {file}"))
        .collect();
    assert_none("files of the index that are not in the tree", &missing);
}

#[test]
fn the_index_has_the_behaviors_that_maintainers_look_for() {
    let index = index();
    let is_missing = |words: &&&[&str]| {
        !index
            .iter()
            .any(|(behavior, _)| words.iter().all(|word| behavior.contains(word)))
    };
    let missing = INDEXED.iter().filter(is_missing);
    let missing: Vec<_> = missing.map(|words| words.join(" ")).collect();
    assert_none("behaviors that the index does not have", &missing);
}

#[test]
fn the_glossary_explains_our_own_words() {
    let text = architecture();
    let (_, glossary) = text.split_once("## Glossary").expect("a glossary");
    let is_missing = |word: &&&str| {
        let rows = [
            format!("| {word} |"),
            format!("| **{word}** |"),
            format!("**{word}**"),
        ];
        !rows.iter().any(|row| glossary.contains(row.as_str()))
    };
    let missing = GLOSSARY.iter().filter(is_missing);
    let missing: Vec<_> = missing.map(ToString::to_string).collect();
    assert_none("words that the glossary does not explain", &missing);
}
