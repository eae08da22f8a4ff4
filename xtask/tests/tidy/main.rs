//! The rules of the project that a machine can check. See CONTRIBUTING.md.

mod map;
mod rings;
mod tree;
mod words;

use std::fs;
use std::path::Path;

use tree::{assert_none, files, root, texts};

/// Lines of the longest file.
const MAX_LINES: usize = 1000;
/// Columns of the longest line of code.
const MAX_COLUMNS: usize = 100;
/// Endings of files that hold code.
const CODE: [&str; 2] = ["rs", "sh"];

fn is_code(file: &str) -> bool {
    Path::new(file)
        .extension()
        .is_some_and(|ending| CODE.iter().any(|code| ending == *code))
}

#[test]
fn no_file_is_longer_than_a_thousand_lines() {
    let is_long = |(file, text): (String, String)| {
        let lines = text.lines().count();
        (is_code(&file) && lines > MAX_LINES).then(|| format!("{file}: {lines} lines"))
    };
    assert_none(
        "files that are too long",
        &texts().into_iter().filter_map(is_long).collect::<Vec<_>>(),
    );
}

#[test]
fn code_is_ascii_and_fits_in_a_hundred_columns() {
    let mut found = Vec::new();
    for (file, text) in texts().into_iter().filter(|(file, _)| is_code(file)) {
        for (index, line) in text.lines().enumerate() {
            if line.len() > MAX_COLUMNS && !line.contains("http") {
                found.push(format!("{file}:{}: {} columns", index + 1, line.len()));
            }
            if !line.is_ascii() {
                found.push(format!("{file}:{}: not ASCII", index + 1));
            }
        }
    }
    assert_none("lines", &found);
}

#[test]
fn nothing_is_left_to_be_fixed() {
    let word = concat!("FIX", "ME");
    let ignored = concat!("#[", "ignore");
    let mut found = Vec::new();
    for (file, text) in texts().into_iter().filter(|(file, _)| is_code(file)) {
        for (index, line) in text.lines().enumerate() {
            if line.contains(word) || line.trim_start().starts_with(ignored) {
                found.push(format!("{file}:{}: {}", index + 1, line.trim()));
            }
        }
    }
    assert_none("left to be fixed", &found);
}

#[test]
fn no_path_or_host_of_a_build_machine_is_named() {
    let home = std::env::var("HOME").unwrap_or_default();
    let here = root().display().to_string();
    let mut marks = vec![concat!("deb.debian", ".org").to_owned(), here];
    // A home such as `/root` stands in texts about any machine; a user's own does not.
    if home.matches('/').count() >= 2 {
        marks.push(home);
    }
    let mut found = Vec::new();
    for (file, text) in texts() {
        for mark in marks
            .iter()
            .filter(|mark| mark.len() > 6 && text.contains(mark.as_str()))
        {
            found.push(format!("{file}: {mark}"));
        }
    }
    assert_none("names of a build machine", &found);
}

#[test]
fn only_the_rooms_that_say_so_are_unsafe() {
    let allowed = [
        "crates/ring/",
        "crates/rdma/",
        "crates/crypto/src/sys.rs",
        // The interface of the interpreter, and values that no other process may touch.
        "apps/python/src/memory.rs",
        "apps/python/src/per_process.rs",
        // An allocator that counts.
        "crates/sim/tests/leases_and_disconnected_opens_use_little_memory.rs",
    ];
    let mark = concat!("un", "safe {");
    let mut found = Vec::new();
    for (file, text) in texts()
        .into_iter()
        .filter(|(file, _)| file.ends_with(".rs"))
    {
        if text.contains(mark) && !allowed.iter().any(|room| file.starts_with(room)) {
            found.push(file);
        }
    }
    assert_none("unsafe code in a crate that forbids it", &found);
}

/// The compiler ignores a file that no module declares, and the harness one that is not listed.
#[test]
fn every_interop_module_is_listed() {
    let main = "tests/tests/interop/main.rs";
    let declared = fs::read_to_string(root().join(main)).expect(main);
    let module = |file: &String| {
        let name = file
            .strip_prefix("tests/tests/interop/")?
            .strip_suffix(".rs")?;
        (!name.contains('/') && name != "main").then(|| name.to_owned())
    };
    let modules: Vec<_> = files().iter().filter_map(module).collect();
    assert!(modules.len() > 20, "{} modules only", modules.len());
    let is_undeclared = |name: &String| {
        let lines = [format!("\n    {name};\n"), format!("\n    {name}: ")];
        !lines.iter().any(|line| declared.contains(line))
    };
    let undeclared: Vec<_> = modules.into_iter().filter(is_undeclared).collect();
    assert_none(
        "modules that the interop program does not list",
        &undeclared,
    );
}
