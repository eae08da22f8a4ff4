//! A watching client receives each change by another process once, or the report of a loss.

use std::collections::BTreeSet;
use std::fs;

use proto::file::{LocalChange, LocalEvent};
use wire::change_notify::CompletionFilter;
use wire::fscc::FileAction;

use crate::watched::{Watched, in_short, is_mark_name, path_of};

#[test]
fn names_are_added_changed_and_removed() {
    let mut watched = Watched::new(&["d", "d/sub"]);
    watched.watch("d", false);
    watched.elsewhere("touch d/A\nrename d/A d/b\nwrite d/b\nrename d/b c\nrename c d/e\nrm d/e");
    watched.elsewhere("mkdir d/new\ntouch d/sub/x\nrmdir d/new\ntouch d/with\\slash");
    let reported = in_short(&watched.reported("d"));
    let wanted = [
        "+A",
        "<A",
        ">b",
        "*b",
        "-b",
        "+e",
        "-e",
        "+new",
        "-new",
        "+with\u{f026}slash",
    ];
    assert_eq!(reported, wanted);
}

#[test]
fn filters_match_the_change_as_far_as_the_kernel_reports_it() {
    let mut watched = Watched::new(&["d"]);
    watched.watch("d", false);
    let mut filters = Vec::new();
    for line in ["touch d/a", "write d/a", "chmod d/a", "mkdir d/b"] {
        watched.elsewhere(line);
        match &watched.reported("d")[..] {
            [LocalEvent::Change(LocalChange { filter, .. })] => filters.push(*filter),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(filters[0], CompletionFilter::FILE_NAME);
    assert!(filters[1].contains(CompletionFilter::SIZE));
    assert!(!filters[1].intersects(CompletionFilter::ATTRIBUTES));
    let of_chmod = CompletionFilter::ATTRIBUTES | CompletionFilter::SECURITY;
    assert!(filters[2].contains(of_chmod));
    assert!(!filters[2].intersects(CompletionFilter::SIZE));
    assert_eq!(filters[3], CompletionFilter::DIR_NAME);
}

#[test]
fn a_tree_is_reported_completely_however_fast_it_grows() {
    let mut watched = Watched::new(&["d", "d/old"]);
    watched.watch("", true);
    let mut script = String::new();
    let mut path = "d/old".to_owned();
    let mut wanted = BTreeSet::new();
    for depth in 0..30 {
        path = format!("{path}/n{depth}");
        script += &format!("mkdir {path}\ntouch {path}/file\n");
        wanted.extend([format!("+{path}"), format!("+{path}/file")]);
    }
    watched.elsewhere(script.trim_end());
    let reported = in_short(&watched.reported("d"));
    assert_eq!(reported.len(), wanted.len(), "nothing twice: {reported:?}");
    assert_eq!(reported.into_iter().collect::<BTreeSet<_>>(), wanted);
    watched.elsewhere("chmod d/old/n0/n1");
    assert_eq!(in_short(&watched.reported("d")), ["*d/old/n0/n1"]);
    // All of it is deleted.
    watched.elsewhere("rmdir d/old/n0");
    let reported = in_short(&watched.reported("d"));
    let removed = wanted.iter().map(|added| added.replacen('+', "-", 1));
    assert_eq!(
        reported.into_iter().collect::<BTreeSet<_>>(),
        removed.collect()
    );
}

#[test]
fn changes_by_the_server_are_not_reported() {
    let mut watched = Watched::new(&["d"]);
    watched.watch("", true);
    let share = &watched.local.share;
    for round in 0..50 {
        let directory = format!("d/own{round}");
        let open = share.directory(&directory);
        let file = share.file(&format!("{directory}/file"), b"bytes");
        share.write(file, Some(0), b"others").expect("a write");
        share
            .rename(file, &format!("{directory}/renamed"), false)
            .expect("a rename");
        share.close(file);
        share.close(open);
    }
    watched.elsewhere("touch d/own7/theirs\nwrite d/own7/renamed");
    let reported = in_short(&watched.reported("d"));
    assert_eq!(reported, ["+d/own7/theirs", "*d/own7/renamed"]);
}

#[test]
fn directories_are_followed_wherever_they_go() {
    let mut watched = Watched::new(&["t", "t/a", "t/a/deep", "t/b", "out", "out/in"]);
    watched.watch("t", true);
    watched
        .elsewhere("rename t/a t/b/a\ntouch t/b/a/deep/x\nrename t/b/a out/a\ntouch out/a/deep/y");
    let reported = in_short(&watched.reported("t"));
    assert_eq!(reported, ["-a", "+b/a", "+b/a/deep/x", "-b/a"]);
    // A directory from outside is new; its contents arrived with it.
    watched.elsewhere("touch out/in/before\nrename out/in t/in");
    assert_eq!(in_short(&watched.reported("t")), ["+in"]);
    watched.elsewhere("rm t/in/before\nrename t/in t/on\ntouch t/on/after");
    let reported = in_short(&watched.reported("t"));
    assert_eq!(reported, ["-in/before", "<in", ">on", "+on/after"]);
}

#[test]
fn several_watches_see_one_tree_from_their_directories() {
    let mut watched = Watched::new(&["t", "t/u", "t/u/v"]);
    let inner = watched.watch("t/u", true);
    let outer = watched.watch("t", true);
    let plain = watched.watch("t/u", false);
    watched.elsewhere("touch t/u/v/x\ntouch t/u/y");
    let mut reported = in_short(&watched.reported("t"));
    reported.sort();
    // Both watches of `t/u` receive the same changes; the server selects.
    assert_eq!(reported, ["+u/v/x", "+u/y", "+v/x", "+y"]);
    watched.local.share.close(inner);
    watched.local.share.close(plain);
    watched.elsewhere("touch t/u/v/z");
    assert_eq!(in_short(&watched.reported("t")), ["+u/v/z"]);
    watched.local.share.close(outer);
}

#[test]
fn a_watch_ends_with_its_open_and_leaves_nothing() {
    let mut watched = Watched::new(&["t", "t/u", "t/u/v", "other"]);
    let other = watched.watch("other", false);
    let open = watched.watch("t", true);
    watched.elsewhere("touch t/u/v/x");
    assert_eq!(in_short(&watched.reported("other")), ["+u/v/x"]);
    assert_eq!(watched.local.posix.usage().watched_directories, 5);
    watched.local.share.close(open);
    watched.elsewhere("touch t/u/v/y");
    assert_eq!(watched.reported("other"), []);
    assert_eq!(watched.local.posix.usage().watched_directories, 2);
    watched.local.share.close(other);
}

#[test]
fn a_directory_removed_by_others_is_reported() {
    let mut watched = Watched::new(&["t", "t/u", "other"]);
    watched.watch("other", false);
    watched.watch("t/u", false);
    watched.elsewhere("touch t/u/x\nrmdir t/u");
    let reported = in_short(&watched.reported("other"));
    assert_eq!(reported, ["+x", "-x", "!"]);
}

#[test]
fn ten_thousand_files_are_reported_one_by_one() {
    let mut watched = Watched::new(&["d"]);
    watched.watch("", true);
    watched.elsewhere("fill d 10000");
    let reported = in_short(&watched.reported("d"));
    if !reported.contains(&"?".to_owned()) {
        assert_eq!(reported.len(), 10_000);
        let names: BTreeSet<_> = reported.into_iter().collect();
        assert_eq!(names.len(), 10_000);
    }
}

#[test]
fn an_overflow_of_the_queue_is_reported_as_lost() {
    let mut watched = Watched::new(&["d"]);
    watched.watch("", true);
    let limit = fs::read_to_string("/proc/sys/fs/fanotify/max_queued_events");
    let limit: usize = limit.map_or(16_384, |it| it.trim().parse().expect("a number"));
    watched.while_it_waits(|| {
        watched.elsewhere("touch d/first");
        watched.elsewhere(&format!("fill d {}\nmkdir d/late", limit + 4096));
    });
    let reported = watched.reported_until(|event| *event == LocalEvent::Lost(None));
    assert!(reported.len() < 2 * limit);
    // The directory without a reported change has its mark by now.
    watched.reported("d");
    watched.elsewhere("touch d/late/x");
    assert_eq!(in_short(&watched.reported("d")), ["+d/late/x"]);
}

#[test]
fn the_reported_changes_reproduce_the_tree() {
    let mut exact = 0;
    for seed in 1..=3 {
        let mut watched = Watched::new(&["t", "t/d0", "t/d0/d1"]);
        watched.watch("t", true);
        let script = random_script(seed, 1500);
        for lines in script.lines().collect::<Vec<_>>().chunks(50) {
            watched.elsewhere(&lines.join("\n"));
        }
        // A loss found after the last event is reported after it.
        let reported = [watched.reported("t"), watched.reported("t")].concat();
        if reported.contains(&LocalEvent::Lost(None)) {
            continue;
        }
        exact += 1;
        let mut known = BTreeSet::from(["d0".to_owned(), "d0/d1".to_owned()]);
        for event in &reported {
            take_down(&mut known, event);
        }
        let mut there = walk(&watched.local.path("t"), "");
        there.retain(|name| !is_mark_name(name));
        assert_eq!(known, there, "seed {seed}");
    }
    assert!(exact > 0, "something was lost each time");
}

/// A script of creations, renames and removals with few names.
fn random_script(seed: u64, lines: usize) -> String {
    let mut state = seed;
    let mut number = |below: u64| {
        // The generator of Numerical Recipes; its upper bits are random enough.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % below
    };
    let mut script = String::new();
    for _ in 0..lines {
        let mut directory = "t".to_owned();
        for _ in 0..number(4) {
            directory += &format!("/d{}", number(3));
        }
        let line = match number(10) {
            0..3 => format!("~mkdir {directory}/d{}", number(3)),
            3..6 => format!("~touch {directory}/f{}", number(4)),
            // Within a directory, so that its contents move with it.
            6 => format!(
                "~rename {directory}/d{} {directory}/d{}",
                number(3),
                number(3)
            ),
            7 => {
                let to = format!("t/d{}", number(3));
                format!("~rename {directory}/f{} {to}/f{}", number(4), number(4))
            }
            8 => format!("~rm {directory}/f{}", number(4)),
            _ => format!("~rmdir {directory}/d{}", number(3)),
        };
        script += &(line + "\n");
    }
    script
}

fn take_down(known: &mut BTreeSet<String>, event: &LocalEvent) {
    let LocalEvent::Change(change) = event else {
        panic!("{event:?}");
    };
    let path = path_of(event).expect("a change has a name").to_owned();
    match change.action {
        // A directory that is renamed during its first scan may be reported twice.
        FileAction::ADDED => drop(known.insert(path)),
        FileAction::REMOVED => drop(known.remove(&path)),
        FileAction::RENAMED_OLD_NAME => {
            let below = format!("{path}/");
            let is_it = |name: &String| *name == path || name.starts_with(&below);
            let moved: Vec<_> = known.iter().filter(|name| is_it(name)).cloned().collect();
            for name in moved {
                known.remove(&name);
                known.insert(name.replacen(&path, "\0", 1));
            }
        }
        FileAction::RENAMED_NEW_NAME => {
            let moved: Vec<_> = known
                .iter()
                .filter(|it| it.starts_with('\0'))
                .cloned()
                .collect();
            for name in moved {
                known.remove(&name);
                known.insert(name.replacen('\0', &path, 1));
            }
        }
        _ => {}
    }
}

fn walk(local: &std::path::Path, prefix: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(local).expect("a directory") {
        let entry = entry.expect("an entry");
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type().expect("a type").is_dir() {
            names.extend(walk(&entry.path(), &format!("{name}/")));
        }
        names.insert(name);
    }
    names
}
