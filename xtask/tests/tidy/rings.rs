//! Import rings: files of a crate that depend on each other in a circle.
//!
//! The compiler allows them; they keep files from being read or tested alone. The test computes
//! them from `use` declarations and paths in the code, and fails when one grows. Not counted: test
//! code, `mod` declarations, and re-exports, so that a `mod.rs` which only re-exports is in none.

mod graph;
mod module;

use crate::tree::{assert_none, files, root};

use graph::rings;
use module::Crate;

/// The size of the largest ring in a directory. A ring may shrink; the number follows it down.
const LIMITS: &[(&str, usize)] = &[
    ("apps/cli/src", 2),
    ("bench/compare/src", 9),
    ("crates/auth/src", 2),
    ("crates/net/src", 7),
    ("crates/proto/src", 8),
    ("crates/rdma/src", 3),
    ("crates/ring/src", 2),
    ("crates/sim/src", 5),
    ("crates/vfs/src", 2),
    ("crates/wire/src", 2),
    ("tests/src", 3),
];

/// The limit of a directory that the table does not name: no ring.
const NO_RING: usize = 1;

fn sources() -> Vec<String> {
    let mut sources: Vec<_> = files()
        .iter()
        .filter_map(|file| {
            let (directory, root) = file.split_once("/src/")?;
            (root == "lib.rs" || root == "main.rs").then(|| format!("{directory}/src"))
        })
        .collect();
    sources.sort();
    sources.dedup();
    sources
}

#[test]
fn no_import_ring_grows() {
    let mut found = Vec::new();
    for directory in sources() {
        let rings = rings(&Crate::read(&root(), &directory).edges());
        let sizes: Vec<_> = rings.iter().map(Vec::len).collect();
        println!("{directory}: {sizes:?}");
        let limit = LIMITS.iter().find(|(name, _)| *name == directory);
        let limit = limit.map_or(NO_RING, |(_, limit)| *limit);
        for ring in rings.iter().filter(|ring| ring.len() > limit) {
            let size = ring.len();
            found.push(format!(
                "{directory}: {size} files, limit {limit}: {}",
                ring.join(" ")
            ));
        }
    }
    assert_none("import rings that have grown", &found);
}

/// A ring over several directories would tie the commands of the server together.
#[test]
fn a_ring_of_the_server_core_is_inside_one_directory() {
    let rings = rings(&Crate::read(&root(), "crates/proto/src").edges());
    let directory = |file: &String| {
        let rest = file.strip_prefix("server/").unwrap_or_default();
        let first = rest.split('/').next().unwrap_or_default();
        first.trim_end_matches(".rs").to_owned()
    };
    let is_spread = |ring: &&Vec<String>| {
        let in_server = ring.iter().any(|file| file.starts_with("server/"));
        let first = ring.first().map(directory);
        in_server && ring.iter().any(|file| Some(directory(file)) != first)
    };
    let spread = rings.iter().filter(is_spread).map(|ring| ring.join(" "));
    assert_none(
        "rings over several directories",
        &spread.collect::<Vec<_>>(),
    );
}
