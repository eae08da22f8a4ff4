//! Plain English: words that the project does not use, counted per directory.
//!
//! The counts in `words.toml` are a ratchet: they may only fall. Texts for users have a count of
//! their own: README, docs/, and the strings of the crates, which are help texts, logs and errors.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::str::FromStr as _;

use proc_macro2::{TokenStream, TokenTree};
use serde::Deserialize;

use crate::tree::{assert_none, root, texts};

/// The file with the words and the counts.
const LIST: &str = "xtask/tests/tidy/words.toml";
/// "Seal" is the word of NTLM, so that files with this in their path may use it.
const NTLM: &str = "ntlm";
const SEAL: &str = "seal";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    /// Words and phrases in lower case.
    words: Vec<String>,
    /// How many of them the texts of a directory may have.
    counts: BTreeMap<String, usize>,
    /// Strings that are names in files and protocols, not texts.
    serialized: Vec<String>,
    /// How many the pages and messages for users may have.
    messages: usize,
    /// Files whose strings are data of other programs, with the reason in a comment.
    foreign_strings: Vec<String>,
}

fn list() -> List {
    let text = fs::read_to_string(root().join(LIST)).expect(LIST);
    toml::from_str(&text).expect(LIST)
}

/// The text in lower case, one blank between two words. Identifiers are cut at `_` and before a
/// capital letter.
fn normalized(text: &str) -> String {
    let mut words = String::with_capacity(text.len() + 2);
    words.push(' ');
    let mut previous = ' ';
    for character in text.chars() {
        let starts_word = character.is_ascii_uppercase() && previous.is_ascii_lowercase();
        let is_letter = character.is_alphanumeric();
        if (!is_letter || starts_word) && !words.ends_with(' ') {
            words.push(' ');
        }
        if is_letter {
            words.extend(character.to_lowercase());
        }
        previous = character;
    }
    if !words.ends_with(' ') {
        words.push(' ');
    }
    words
}

/// The words of the list in a text, each as often as it is there.
fn found(list: &List, file: &str, text: &str) -> Vec<String> {
    let text = normalized(text);
    let is_allowed = |word: &str| file.contains(NTLM) && word.starts_with(SEAL);
    let words = list.words.iter().filter(|word| !is_allowed(word));
    words
        .flat_map(|word| {
            let count = text.matches(&format!(" {word} ")).count();
            std::iter::repeat_n(word.clone(), count)
        })
        .collect()
}

/// The directory of the list that holds a file: the longest one.
fn room<'a>(list: &'a List, file: &str) -> Option<&'a str> {
    let rooms = list.counts.keys().map(String::as_str);
    let holding = rooms.filter(|room| file.starts_with(&format!("{room}/")));
    holding.max_by_key(|room| room.len())
}

fn is_read_by_users(file: &str) -> bool {
    let is_page = file.starts_with("docs/") || !file.contains('/');
    is_page && file.ends_with(".md")
}

/// The prose of a page: without code, which has the names of keys and fields. The tables of
/// CONTRIBUTING.md show the words that the project does not use.
fn prose(file: &str, text: &str) -> String {
    let is_shown = |line: &&str| file != "CONTRIBUTING.md" || !line.starts_with('|');
    let lines = text.lines().filter(is_shown);
    let without_code = lines.map(|line| {
        let parts = line.split('`').step_by(2);
        parts.collect::<Vec<_>>().join(" ")
    });
    without_code.collect::<Vec<_>>().join("\n")
}

/// Source code, not the list itself.
fn is_code(file: &str) -> bool {
    ["rs", "sh", "py", "toml"]
        .iter()
        .any(|ending| Path::new(file).extension().is_some_and(|e| e == *ending))
        && file != LIST
}

/// The string literals of a program outside of its tests.
fn strings(file: &str, text: &str) -> Vec<String> {
    let tokens = TokenStream::from_str(text).unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut strings = Vec::new();
    collect_strings(tokens, &mut strings);
    strings
}

fn collect_strings(tokens: TokenStream, strings: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut is_test = false;
    let mut is_doc = false;
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let text = group.stream().to_string().replace(' ', "");
                if text == "cfg(test)" {
                    is_test = true;
                } else if !is_test {
                    collect_strings(group.stream(), strings);
                } else if group.delimiter() == proc_macro2::Delimiter::Brace {
                    is_test = false;
                }
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => is_test = false,
            // A doc comment is an attribute `doc = "..."`: it counts as a comment.
            TokenTree::Ident(ident) => is_doc = ident == "doc",
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                let is_string =
                    text.starts_with('"') || text.starts_with("r\"") || text.starts_with("r#");
                if is_string && !is_doc && !is_test {
                    strings.push(text);
                }
            }
            TokenTree::Punct(_) => {}
        }
    }
}

/// Whether the strings of a file reach a user: sources of crates and commands, no tests.
fn has_messages(list: &List, file: &str) -> bool {
    let is_source = file.contains("/src/") && file.ends_with(".rs");
    let is_room = file.starts_with("crates/") || file.starts_with("apps/");
    let is_test =
        file.contains("/tests") || file.ends_with("tests.rs") || file.starts_with("crates/sim/");
    let is_foreign = list.foreign_strings.iter().any(|foreign| foreign == file);
    is_source && is_room && !is_test && !is_foreign
}

#[test]
fn pages_and_messages_are_plain() {
    let list = list();
    let mut bad = Vec::new();
    for (file, text) in texts() {
        if is_read_by_users(&file) {
            let words = found(&list, &file, &prose(&file, &text));
            bad.extend(words.iter().map(|word| format!("{file}: {word}")));
        } else if has_messages(&list, &file) {
            let texts = strings(&file, &text).into_iter();
            let is_name = |text: &String| {
                let text = text.trim_matches('"');
                list.serialized.iter().any(|name| name == text)
            };
            for string in texts.filter(|text| !is_name(text)) {
                let words = found(&list, &file, &string);
                bad.extend(words.iter().map(|word| format!("{file}: {word}: {string}")));
            }
        }
    }
    if bad.len() > list.messages {
        assert_none("words that a user should not read", &bad);
    }
}

#[test]
fn no_directory_has_more_banned_words_than_before() {
    let list = list();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (file, text) in texts().iter().filter(|(file, _)| is_code(file)) {
        if let Some(room) = room(&list, file) {
            *counts.entry(room).or_default() += found(&list, file, text).len();
        }
    }
    let mut bad = Vec::new();
    for (room, allowed) in &list.counts {
        let count = counts.get(room.as_str()).copied().unwrap_or_default();
        println!("{room} = {count}");
        if count > *allowed {
            bad.push(format!("{room}: {count}, and {LIST} allows {allowed}"));
        }
    }
    assert_none(
        "banned words; a table of better ones is in CONTRIBUTING.md",
        &bad,
    );
}

#[test]
fn every_directory_with_code_has_a_count() {
    let list = list();
    let texts = texts();
    let uncounted = texts.iter().map(|(file, _)| file);
    let uncounted = uncounted.filter(|file| file.ends_with(".rs") && room(&list, file).is_none());
    let uncounted: Vec<_> = uncounted.cloned().collect();
    assert_none("files that no count covers", &uncounted);
}

#[test]
fn identifiers_are_cut_into_words() {
    assert_eq!(
        normalized("fn is_under_way(UnderWay)"),
        " fn is under way under way "
    );
}
