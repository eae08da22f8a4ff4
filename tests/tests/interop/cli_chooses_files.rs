//! Transfers have the habits of rsync and rclone: filters, a limit of removals, backups, a
//! comparison, lines of JSON for each action, and named remotes.

use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Result, ensure};
use serde_json::Value;
use smbeam_tests::client::Client;
use smbeam_tests::files::{assert_same_tree, paths, write_random};
use smbeam_tests::stage::Stage;
use smbeam_tests::tests_over_transports;

tests_over_transports!(
    each: [
        filters_choose_files,
        excluded_files_are_never_removed,
        replaced_and_removed_files_move_to_the_backup,
        two_trees_are_compared,
    ],
    once: [
        rules_come_from_files_in_order,
        a_limit_stops_removals,
        each_action_is_a_line_of_json,
        a_limited_transfer_is_whole,
        a_remote_has_a_name,
    ],
);

fn make_tree(root: &Path, names: &[&str]) -> Result<()> {
    for name in names {
        let path = root.join(name);
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        write_random(&path, 2000, name.len() as u64)?;
        fs::set_permissions(&path, Permissions::from_mode(0o666))?;
        // The user of the server may change the directories of a share.
        for directory in path.ancestors().skip(1).take_while(|path| *path != root) {
            fs::set_permissions(directory, Permissions::from_mode(0o777))?;
        }
    }
    fs::set_permissions(root, Permissions::from_mode(0o777))?;
    Ok(())
}

const NAMES: [&str; 7] = [
    "a.txt",
    "b.tmp",
    "keep.tmp",
    "cache/x",
    "sub/cache/y",
    "sub/c.tmp",
    "sub/deep/d.txt",
];

/// The files of a tree, without directories.
fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = paths(root)?;
    files.retain(|path| !root.join(path).is_dir());
    files.sort();
    Ok(files)
}

fn assert_files(root: &Path, expected: &[&str]) -> Result<()> {
    let found = files(root)?;
    let expected: Vec<_> = expected.iter().map(PathBuf::from).collect();
    ensure!(found == expected, "{found:?} instead of {expected:?}");
    Ok(())
}

fn filters_choose_files(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::new(transport, "filters")?;
    make_tree(&client.local("tree"), &NAMES)?;
    let filter = ["--include=keep.tmp", "--exclude=*.tmp", "--exclude=/cache/"];
    let chosen = ["a.txt", "keep.tmp", "sub/cache/y", "sub/deep/d.txt"];
    client.run(&[&["sync", "tree", "{}tree"], &filter[..]].concat())?;
    assert_files(&share.join("tree"), &chosen)?;
    // The root of put and get is the directory of the source.
    let filter = [
        "--include=keep.tmp",
        "--exclude=*.tmp",
        "--exclude=/tree/cache/",
    ];
    client.run(&["mkdir", "{}put"])?;
    client.run(&[&["put", "-r", "tree", "{}put"], &filter[..]].concat())?;
    assert_files(&share.join("put/tree"), &chosen)?;
    client.run(&["put", "-r", "tree", "{}all"])?;
    client.run(&["get", "-r", "{}all", "got", "--include=*.txt"])?;
    assert_files(&client.local("got"), &["a.txt", "sub/deep/d.txt"])?;
    client.run(&[
        "cp",
        "-r",
        "{}all",
        "{}copy",
        "--exclude=cache/",
        "--exclude=[ab].*",
    ])?;
    assert_files(
        &share.join("copy"),
        &["keep.tmp", "sub/c.tmp", "sub/deep/d.txt"],
    )
}

fn excluded_files_are_never_removed(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::new(transport, "protected")?;
    make_tree(&client.local("tree"), &["a", "sub/b"])?;
    make_tree(
        &share.join("tree"),
        &[
            "old",
            "old.keep",
            "gone/x",
            "gone/deep/y.keep",
            "cache/z",
            "other/w",
        ],
    )?;
    let filter = ["--exclude=*.keep", "--exclude=cache/"];
    let sync = [&["sync", "--delete", "tree", "{}tree"], &filter[..]].concat();
    let output = client.run(&[&sync[..], &["-n", "--json"]].concat())?;
    ensure!(output.paths("remove")?.len() == 4, "{output}");
    client.run(&sync)?;
    let left = ["a", "cache/z", "gone/deep/y.keep", "old.keep", "sub/b"];
    assert_files(&share.join("tree"), &left)?;
    ensure!(!share.join("tree/other").exists());
    // Here as well.
    make_tree(&client.local("here"), &["x.keep", "x", "d/y.keep", "d/y"])?;
    let sync = [&["sync", "--delete", "{}tree", "here"], &filter[..]].concat();
    client.run(&sync)?;
    assert_files(&client.local("here"), &["a", "d/y.keep", "sub/b", "x.keep"])
}

fn rules_come_from_files_in_order() -> Result<()> {
    let Stage { client, share, .. } = &Stage::new("tcp", "rules")?;
    make_tree(&client.local("tree"), &NAMES)?;
    fs::write(
        client.local("rules"),
        "# comments\n- /sub/**\n!\n+ /sub/cache/***\n- cache/\n\n- *.tmp\n",
    )?;
    client.run(&[
        "sync",
        "--include=b.*",
        "--filter-from=rules",
        "tree",
        "{}tree",
    ])?;
    let chosen = ["a.txt", "sub/cache/y", "sub/deep/d.txt"];
    assert_files(&share.join("tree"), &chosen)?;
    fs::write(client.local("wrong"), "- a\nb\n")?;
    let wrong = ["sync", "--filter-from=wrong", "tree", "{}tree"];
    client.fail(&wrong, 2, &["wrong: line 2"])?;
    client.fail(
        &["sync", "--exclude=[", "tree", "{}tree"],
        2,
        &["--exclude"],
    )?;
    Ok(())
}

fn a_limit_stops_removals() -> Result<()> {
    let Stage { client, share, .. } = &Stage::new("tcp", "limit")?;
    make_tree(&client.local("tree"), &["a"])?;
    make_tree(&share.join("tree"), &["a", "b", "c", "d/e", "d/f"])?;
    let sync = |most: &str| {
        ["sync", "--delete", "tree", "{}tree", "--max-delete", most].map(str::to_owned)
    };
    let few = sync("2");
    let few: Vec<_> = few.iter().map(String::as_str).collect();
    client.fail(
        &[&few[..], &["-n"]].concat(),
        13,
        &["--max-delete allows 2"],
    )?;
    assert_files(&share.join("tree"), &["a", "b", "c", "d/e", "d/f"])?;
    client.fail(&few, 13, &["--max-delete allows 2"])?;
    ensure!(
        files(&share.join("tree"))?.len() >= 3,
        "more than 2 were removed"
    );
    let enough = sync("5");
    let enough: Vec<_> = enough.iter().map(String::as_str).collect();
    client.run(&enough)?;
    assert_files(&share.join("tree"), &["a"])
}

fn replaced_and_removed_files_move_to_the_backup(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::new(transport, "backup")?;
    let (tree, there) = (client.local("tree"), share.join("tree"));
    make_tree(&tree, &["same", "small", "sub/small"])?;
    write_random(&tree.join("large"), 2_000_001, 1)?;
    client.run(&["sync", "tree", "{}tree"])?;
    for name in ["small", "sub/small", "large"] {
        write_random(&tree.join(name), 1_500_001, 2)?;
    }
    make_tree(&there, &["extra", "gone/extra"])?;
    symlink("extra", there.join("link"))?;
    let output = client.run(&[
        "sync",
        "--json",
        "--delete",
        "tree",
        "{}tree",
        "--backup-dir",
        "{}old/1",
    ])?;
    ensure!(output.paths("backup")?.len() == 6, "{output}");
    assert_same_tree(&tree, &there)?;
    let kept = share.join("old/1");
    assert_files(
        &kept,
        &["extra", "gone/extra", "large", "link", "small", "sub/small"],
    )?;
    ensure!(fs::metadata(kept.join("large"))?.len() == 2_000_001);
    ensure!(fs::metadata(kept.join("sub/small"))?.len() == 2000);
    // A relative path is below the target, and stays when the source does not have it.
    write_random(&tree.join("small"), 10, 3)?;
    let inside = ["sync", "--delete", "tree", "{}tree", "--backup-dir", ".old"];
    client.run(&inside)?;
    client.run(&inside)?;
    assert_files(&there.join(".old"), &["small"])?;
    // Downloads, and other transfers.
    client.run(&["get", "-r", "{}old/1", "here"])?;
    client.run(&["get", "{}tree/small", "here", "--backup-dir", "saved"])?;
    ensure!(fs::metadata(client.local("here/saved/small"))?.len() == 2000);
    client.run(&["cp", "{}tree/large", "{}old/1", "--backup-dir", "{}older"])?;
    ensure!(fs::metadata(share.join("older/large"))?.len() == 2_000_001);
    client.fail(
        &["sync", "tree", "{}tree", "--backup-dir", "/tmp/backup"],
        2,
        &["on the share of the target"],
    )?;
    Ok(())
}

fn set_time(path: &Path, seconds: u64) -> Result<()> {
    let time = UNIX_EPOCH + Duration::from_secs(seconds);
    File::open(path)?.set_times(FileTimes::new().set_modified(time))?;
    Ok(())
}

fn check(client: &Client, code: i32, more: &[&str]) -> Result<Vec<(String, String)>> {
    let output = client.try_run(&[&["check", "--json", "tree", "{}tree"], more].concat())?;
    ensure!(output.code == Some(code), "{output}");
    let mut lines = output.lines()?;
    lines.retain(|line| line["action"] != "total");
    let word = |line: &Value| {
        let (action, reason) = (line["action"].as_str(), line["reason"].as_str());
        reason.or(action).unwrap_or_default().to_owned()
    };
    let name = |line: &Value| {
        let path = line["path"].as_str().unwrap_or_default();
        path.rsplit("/tree/").next().unwrap_or_default().to_owned()
    };
    let mut found: Vec<_> = lines.iter().map(|line| (name(line), word(line))).collect();
    found.sort();
    Ok(found)
}

fn two_trees_are_compared(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::new(transport, "check")?;
    let (tree, there) = (client.local("tree"), share.join("tree"));
    make_tree(
        &tree,
        &["same", "bytes", "time", "size", "sub/missing", "kind"],
    )?;
    write_random(&tree.join("large"), 2_000_001, 5)?;
    client.run(&["sync", "tree", "{}tree"])?;
    ensure!(check(client, 0, &[])?.is_empty());
    ensure!(check(client, 0, &["--checksum"])?.is_empty());
    let time = fs::metadata(tree.join("bytes"))?.modified()?;
    write_random(&there.join("bytes"), 2000, 77)?;
    File::open(there.join("bytes"))?.set_times(FileTimes::new().set_modified(time))?;
    set_time(&there.join("time"), 1_000_000)?;
    write_random(&there.join("size"), 2001, 1)?;
    fs::remove_file(there.join("sub/missing"))?;
    fs::write(there.join("sub/extra"), "x")?;
    fs::remove_file(there.join("kind"))?;
    fs::create_dir(there.join("kind"))?;
    let pair = |name: &str, word: &str| (name.to_owned(), word.to_owned());
    let others = [
        pair("kind", "type"),
        pair("size", "size"),
        pair("sub/extra", "extra"),
        pair("sub/missing", "missing"),
    ];
    let found = check(client, 12, &[])?;
    ensure!(
        found == [&others[..], &[pair("time", "time")]].concat(),
        "{found:?}"
    );
    let found = check(client, 12, &["-c"])?;
    ensure!(
        found == [&[pair("bytes", "contents")], &others[..]].concat(),
        "{found:?}"
    );
    let filter = ["-c", "--one-way", "--exclude=kind", "--exclude=[bs]*"];
    ensure!(check(client, 0, &filter)?.is_empty());
    let output = client.try_run(&["check", "{}tree", "tree", "--include=/large", "--exclude=*"])?;
    ensure!(
        output.code == Some(0) && output.errors.contains("1 file equal"),
        "{output}"
    );
    client.fail(&["check", "tree", "{}none"], 5, &["none"])?;
    Ok(())
}

fn each_action_is_a_line_of_json() -> Result<()> {
    let Stage { client, share, .. } = &Stage::new("tcp", "lines")?;
    make_tree(&client.local("tree"), &["new", "sub/new", "old", "CASE"])?;
    make_tree(&share.join("tree"), &["old", "case", "extra"])?;
    write_random(&share.join("tree/old"), 5, 1)?;
    let sync = ["sync", "--delete", "--json", "tree", "{}tree"];
    let planned = client.run(&[&sync[..], &["-n"]].concat())?;
    let done = client.run(&sync)?;
    for (action, count) in [("create", 1), ("copy", 2), ("remove", 1), ("rename", 1)] {
        for output in [&planned, &done] {
            ensure!(output.paths(action)?.len() == count, "{action}: {output}");
        }
    }
    let update = done.lines()?.into_iter().find(|line| {
        line["path"]
            .as_str()
            .is_some_and(|path| path.ends_with("/old"))
    });
    let update = update.unwrap_or_default();
    ensure!(
        update["action"] == "update" && update["bytes"] == 2000,
        "{update}"
    );
    let total = done.total()?;
    ensure!(
        total["action"] == "total" && total["removed"] == 1,
        "{total}"
    );
    ensure!(total["is_dry_run"].is_null() && planned.total()?["is_dry_run"] == true);
    let failed = client.fail(&["get", "--json", "{}tree/none", "."], 5, &["none"])?;
    let lines = failed.lines()?;
    ensure!(
        lines[0]["action"] == "fail" && lines[0]["code"] == 5,
        "{failed}"
    );
    Ok(())
}

fn a_limited_transfer_is_whole() -> Result<()> {
    let Stage { client, share, .. } = &Stage::new("tcp", "limited")?;
    make_tree(&client.local("tree"), &NAMES)?;
    write_random(&client.local("tree/large"), 1_500_001, 1)?;
    client.run(&["sync", "--bwlimit=8M", "tree", "{}tree"])?;
    assert_same_tree(&client.local("tree"), &share.join("tree"))?;
    client.run(&["get", "-r", "--bwlimit=8M", "--verify", "{}tree", "back"])?;
    assert_same_tree(&client.local("tree"), &client.local("back"))?;
    client.fail(&["get", "--bwlimit=fast", "{}x"], 2, &["KiB per second"])?;
    Ok(())
}

fn a_remote_has_a_name() -> Result<()> {
    let stage = Stage::new("tcp", "remote")?;
    let share = &stage.share;
    let client = stage.client.variable("SMBEAM_PASSWORD", None);
    make_tree(share, &["photos/a", "photos/sub/b"])?;
    let password = smbeam_tests::subject::ALICE.password;
    fs::write(client.home().join("password"), format!("{password}\n"))?;
    let config = |arguments: &[&str]| -> Result<_> {
        let mut command = client.command(&[]);
        let program = command.get_program().to_owned();
        command = std::process::Command::new(program);
        command
            .env("HOME", client.home())
            .env_remove("XDG_CONFIG_HOME");
        Ok(command
            .args(["config", "remote"])
            .args(arguments)
            .output()?)
    };
    let url = client.url("photos");
    let added = config(&["add", "nas", &url, "--password-command", "cat ~/password"])?;
    ensure!(added.status.success(), "{added:?}");
    ensure!(config(&["add", "nas", &url])?.status.code() == Some(10));
    ensure!(
        config(&["add", "x", &url, "--option=--nothing"])?
            .status
            .code()
            == Some(2)
    );
    client.run(&["get", "-r", "nas:", "back"])?;
    assert_same_tree(&share.join("photos"), &client.local("back"))?;
    client.run(&["put", "back/a", "nas:sub/c"])?;
    ensure!(share.join("photos/sub/c").exists());
    ensure!(client.run(&["ls", "nas:s*"])?.text.contains('b'));
    // The options of the remote apply, and those of the command line override them.
    let file = client.home().join("password").display().to_string();
    let added = config(&[
        "add",
        "nas",
        &url,
        "--replace",
        "--password-file",
        &file,
        "--option=--max-protocol=2.1",
    ])?;
    ensure!(added.status.success(), "{added:?}");
    let output = client.run(&["ls", "-v", "nas:"])?;
    ensure!(output.errors.contains("dialect=2.1"), "{output}");
    let output = client.run(&["ls", "-v", "--max-protocol=3.0", "nas:"])?;
    ensure!(!output.errors.contains("dialect=2.1"), "{output}");
    let listed = config(&["ls", "--json"])?;
    let listed: Value = serde_json::from_slice(&listed.stdout)?;
    ensure!(
        listed["name"] == "nas" && listed["url"] == url.as_str(),
        "{listed}"
    );
    ensure!(config(&["rm", "nas"])?.status.success());
    ensure!(config(&["rm", "nas"])?.status.code() == Some(5));
    client.fail(&["ls", "nas:"], 2, &["nas:"])?;
    Ok(())
}
