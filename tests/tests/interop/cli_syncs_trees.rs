//! `smbeam sync` makes trees the same, bit for bit and with their times, and does nothing twice.

use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::client::Client;
use smbeam_tests::files::{assert_same_file, assert_same_tree, paths, write_random};
use smbeam_tests::stage::Stage;
use smbeam_tests::tests_over_transports;

tests_over_transports!(
    each: [
        thousands_of_files_go_there_and_come_back,
        only_differences_are_moved,
        names_that_change_in_case_only_are_renamed,
        missing_files_are_removed_on_request,
        nothing_is_done_in_a_dry_run,
        servers_are_made_the_same,
        read_only_files_are_updated_and_removed,
    ],
    once: [],
);

/// Files in directories, each with a separate time.
fn make_files(root: &Path, directories: u64, files: u64) -> Result<()> {
    for directory in 0..directories {
        let path = root
            .join(format!("dir {}", directory % 10))
            .join(format!("below-{directory}"));
        fs::create_dir_all(&path)?;
        for file in 0..files {
            let path = path.join(format!("file-{file} \u{e4}"));
            let number = directory * files + file;
            write_random(&path, number * 7919 % 20_000, number)?;
            set_time(&path, 1_000_000_000 + number, (number * 100) as u32)?;
        }
        set_time(&path, 900_000_000 + directory, 0)?;
    }
    Ok(())
}

fn set_time(path: &Path, seconds: u64, nanoseconds: u32) -> Result<()> {
    let time = UNIX_EPOCH + Duration::new(seconds, nanoseconds);
    File::open(path)?.set_times(FileTimes::new().set_modified(time))?;
    Ok(())
}

fn assert_same_times(one: &Path, other: &Path) -> Result<()> {
    for path in paths(one)? {
        // SMB counts steps of 100 ns.
        let time = |root: &Path| -> Result<_> {
            let since = fs::metadata(root.join(&path))?
                .modified()?
                .duration_since(UNIX_EPOCH)?;
            Ok(since.as_nanos() / 100)
        };
        let (left, right) = (time(one)?, time(other)?);
        ensure!(left == right, "{}: {left:?} and {right:?}", path.display());
    }
    Ok(())
}

/// Runs sync and returns its counts of `keys`.
fn sync<const N: usize>(client: &Client, more: &[&str], keys: [&str; N]) -> Result<[u64; N]> {
    let output = client.run(&[&["sync", "--json"], more].concat())?;
    let counted = output.total()?;
    let mut numbers = [0; N];
    for (number, key) in numbers.iter_mut().zip(keys) {
        *number = counted[key]
            .as_u64()
            .with_context(|| format!("{key} in {output}"))?;
    }
    Ok(numbers)
}

fn thousands_of_files_go_there_and_come_back(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::new(transport, "thousands")?;
    let tree = client.local("tree");
    let directories = if transport == "tcp" { 100 } else { 10 };
    let all = directories * 100;
    make_files(&tree, directories, 100)?;
    let [files] = sync(client, &["tree", "{}tree"], ["files"])?;
    ensure!(files == all, "{files} files");
    assert_same_tree(&tree, &share.join("tree"))?;
    assert_same_times(&tree, &share.join("tree"))?;
    let counted = sync(client, &["tree", "{}tree"], ["files", "unchanged", "bytes"])?;
    ensure!(counted == [0, all, 0], "{counted:?}");
    let [files] = sync(client, &["{}tree", "back"], ["files"])?;
    ensure!(files == all, "{files} files");
    assert_same_tree(&tree, &client.local("back"))?;
    assert_same_times(&tree, &client.local("back"))?;
    let counted = sync(client, &["{}tree", "back"], ["files", "unchanged", "bytes"])?;
    ensure!(counted == [0, all, 0], "{counted:?}");
    Ok(())
}

fn only_differences_are_moved(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::new(transport, "differs")?;
    let tree = client.local("tree");
    make_files(&tree, 3, 10)?;
    sync(client, &["tree", "{}tree"], [])?;
    let there = share.join("tree");
    let file = |number: u32| format!("dir 0/below-0/file-{number} \u{e4}");
    // Another size; another time; other bytes of the same size and time.
    fs::write(there.join(file(1)), "other size")?;
    set_time(&there.join(file(2)), 5, 0)?;
    let path = there.join(file(3));
    let time = fs::metadata(&path)?.modified()?;
    let mut bytes = fs::read(&path)?;
    bytes[0] ^= 1;
    fs::write(&path, bytes)?;
    File::open(&path)?.set_times(FileTimes::new().set_modified(time))?;
    let counted = sync(client, &["tree", "{}tree"], ["files", "unchanged"])?;
    ensure!(counted == [2, 28], "{counted:?}");
    let counted = sync(
        client,
        &["--checksum", "tree", "{}tree"],
        ["files", "unchanged"],
    )?;
    ensure!(counted == [1, 29], "{counted:?}");
    assert_same_tree(&tree, &there)?;
    assert_same_times(&tree, &there)?;
    // One file alone.
    let one = format!("tree/{}", file(4));
    let counted = sync(client, &[&one, "{}one"], ["files"])?;
    ensure!(counted == [1], "{counted:?}");
    let counted = sync(client, &[&one, "{}one"], ["files", "unchanged"])?;
    ensure!(counted == [0, 1], "{counted:?}");
    assert_same_file(&client.local(&one), &share.join("one"))
}

fn names_that_change_in_case_only_are_renamed(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::new(transport, "case")?;
    let (tree, there) = (client.local("tree"), share.join("tree"));
    fs::create_dir_all(tree.join("Docs"))?;
    for name in ["Readme", "Docs/x", "same"] {
        write_random(&tree.join(name), 1000, 7)?;
    }
    let counts = |more: &[&str]| sync(client, more, ["files", "renamed", "removed"]);
    sync(client, &["tree", "{}tree"], [])?;
    let number = |path: &Path| -> Result<u64> { Ok(fs::metadata(path)?.ino()) };
    let numbers = (
        number(&there.join("Readme"))?,
        number(&there.join("Docs/x"))?,
    );
    fs::rename(tree.join("Readme"), tree.join("README"))?;
    fs::rename(tree.join("Docs"), tree.join("DOCS"))?;
    let output = client.run(&["sync", "-n", "tree", "{}tree"])?;
    ensure!(
        output.errors.matches("would rename ").count() == 2,
        "{output}"
    );
    ensure!(there.join("Readme").exists() && there.join("Docs").exists());
    for delete in [&[][..], &["--delete"]] {
        let counted = counts(&[&["tree", "{}tree"], delete].concat())?;
        let renamed = if delete.is_empty() { 2 } else { 0 };
        ensure!(counted == [0, renamed, 0], "{counted:?}");
        assert_same_tree(&tree, &there)?;
    }
    ensure!(
        numbers
            == (
                number(&there.join("README"))?,
                number(&there.join("DOCS/x"))?
            )
    );
    // The other direction.
    client.run(&["mv", "{}tree/README", "{}tree/ReadMe"])?;
    client.run(&["mv", "{}tree/DOCS", "{}tree/docs"])?;
    let numbers = (number(&tree.join("README"))?, number(&tree.join("DOCS/x"))?);
    let counted = counts(&["{}tree", "tree"])?;
    ensure!(counted == [0, 2, 0], "{counted:?}");
    assert_same_tree(&there, &tree)?;
    ensure!(numbers == (number(&tree.join("ReadMe"))?, number(&tree.join("docs/x"))?));
    // Another local file is no copy: it stays, or --delete replaces it.
    fs::rename(tree.join("ReadMe"), tree.join("README"))?;
    fs::write(tree.join("README"), "other")?;
    let counted = counts(&["{}tree", "tree"])?;
    ensure!(counted == [1, 0, 0], "{counted:?}");
    ensure!(fs::read(tree.join("README"))? == b"other");
    let counted = counts(&["--delete", "{}tree", "tree"])?;
    ensure!(counted == [0, 0, 1], "{counted:?}");
    assert_same_tree(&there, &tree)
}

fn missing_files_are_removed_on_request(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::new(transport, "gone")?;
    let tree = client.local("tree");
    make_files(&tree, 3, 10)?;
    sync(client, &["tree", "{}tree"], [])?;
    fs::remove_dir_all(tree.join("dir 1"))?;
    fs::remove_file(tree.join("dir 0/below-0/file-1 \u{e4}"))?;
    // A directory replaces a file, and a file a directory.
    fs::remove_dir_all(tree.join("dir 2"))?;
    fs::write(tree.join("dir 2"), "a file now")?;
    let file = tree.join("dir 0/below-0/file-2 \u{e4}");
    fs::remove_file(&file)?;
    fs::create_dir(&file)?;
    client.fail(
        &["sync", "tree", "{}tree"],
        1,
        &["a directory with this name exists"],
    )?;
    ensure!(share.join("tree/dir 1").exists(), "it was removed unasked");
    let [removed] = sync(client, &["--delete", "tree", "{}tree"], ["removed"])?;
    ensure!(removed > 20, "{removed}");
    assert_same_tree(&tree, &share.join("tree"))?;
    // The other direction.
    fs::write(client.local("tree/extra"), "x")?;
    sync(client, &["--delete", "{}tree", "tree"], [])?;
    ensure!(!client.local("tree/extra").exists());
    assert_same_tree(&tree, &share.join("tree"))
}

fn nothing_is_done_in_a_dry_run(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::new(transport, "dry")?;
    make_files(&client.local("tree"), 2, 3)?;
    fs::create_dir(share.join("tree"))?;
    fs::write(share.join("tree/extra"), "x")?;
    let output = client.run(&["sync", "-n", "--delete", "tree", "{}tree"])?;
    ensure!(output.errors.contains("would remove "), "{output}");
    ensure!(
        output.errors.matches("would copy ").count() == 6,
        "{output}"
    );
    ensure!(output.errors.contains("would create "), "{output}");
    ensure!(
        paths(&share.join("tree"))? == [Path::new("extra")],
        "something was done"
    );
    let output = client.run(&["sync", "-n", "tree", "{}other"])?;
    ensure!(
        output.errors.matches("would copy ").count() == 6,
        "{output}"
    );
    ensure!(!share.join("other").exists());
    Ok(())
}

fn servers_are_made_the_same(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::with_second(transport, "servers")?;
    make_files(&client.local("tree"), 10, 20)?;
    sync(client, &["tree", "{}tree"], [])?;
    let target = client.url_in("second", "copy");
    let [files] = sync(client, &["{}tree", &target], ["files"])?;
    ensure!(files == 200, "{files}");
    let copy = share.with_file_name("second").join("copy");
    assert_same_tree(&share.join("tree"), &copy)?;
    assert_same_times(&share.join("tree"), &copy)?;
    let counted = sync(client, &["{}tree", &target], ["files", "unchanged"])?;
    ensure!(counted == [0, 200], "{counted:?}");
    let counted = sync(client, &["-c", "{}tree", &target], ["files", "unchanged"])?;
    ensure!(counted == [0, 200], "{counted:?}");
    client.fail(&["sync", "{}tree", "{}tree/below"], 2, &["in the other"])?;
    Ok(())
}

fn read_only_files_are_updated_and_removed(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::with_second(transport, "read-only")?;
    let (tree, there) = (client.local("tree"), share.join("tree"));
    let (second, other) = (client.url_in("second", ""), share.with_file_name("second"));
    fs::create_dir(&tree)?;
    for round in 0..2 {
        for (name, length) in [("small", 1000), ("large", 2_000_001)] {
            let path = tree.join(name);
            let _ = fs::remove_file(&path);
            write_random(&path, length, round)?;
            set_time(&path, 1_000_000_000 + round, 0)?;
            fs::set_permissions(&path, Permissions::from_mode(0o444))?;
        }
        sync(client, &["tree", "{}tree"], [])?;
        sync(client, &["{}tree", &second], [])?;
        sync(client, &["{}tree", "back"], [])?;
        assert_same_times(&tree, &there)?;
        for copy in [&there, &other, &client.local("back")] {
            assert_same_tree(&tree, copy)?;
        }
        for name in ["small", "large"] {
            let stat = client.run(&["stat", "--json", &format!("{{}}tree/{name}")])?;
            ensure!(stat.text.contains("\"readonly\""), "{stat}");
        }
    }
    client.run(&["put", "tree/small", "tree/large", "{}tree"])?;
    client.run(&["put", "--in-place", "tree/large", "{}tree"])?;
    sync(client, &["tree", "{}tree"], [])?;
    fs::remove_file(tree.join("small"))?;
    sync(client, &["--delete", "tree", "{}tree"], [])?;
    assert_same_tree(&tree, &there)?;
    client.run(&["rm", "-r", "{}tree"])?;
    ensure!(!there.exists());
    Ok(())
}
