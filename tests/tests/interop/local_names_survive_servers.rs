//! Local files keep their names when they pass through a server, even names that SMB cannot carry.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use smbeam_tests::client::Client;
use smbeam_tests::files::{assert_same_file, assert_same_tree, give_tree_to, paths, write_random};
use smbeam_tests::lab::Lab;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::stage::Stage;
use smbeam_tests::subject::{ALICE, Plan, Server, Subject};
use smbeam_tests::tests_over_transports;

tests_over_transports!(
    each: [
        names_of_linux_programs_come_back_from_smbeam,
        names_that_are_not_mapped_are_reported,
    ],
    once: [
        local_names_come_back_from_smbd,
        a_name_that_smbd_cannot_carry_is_reported,
    ],
);

/// Reserved characters, control characters, dots and blanks at the end, bytes that are not UTF-8,
/// and names that hold the code points of the mapping.
const NAMES: [&[u8]; 31] = [
    b"cam_11:05:00.jpg",
    b"what?.txt",
    b"say \"x\"",
    b"star*",
    b"<lt> gt>",
    b"a|b",
    b"back\\slash",
    b"..\\up",
    b"tab\tx",
    b"line\nend",
    b"\x01\x1f\x7f",
    b"dot.",
    b"two..",
    b"...",
    b"blank ",
    b" ",
    b". .",
    b"CON",
    b"plain",
    b"\xe4.txt",
    b"\xff",
    b"\xc3\xa4\xc3",
    b"\xed\xa0\x80",
    b"-rf",
    b"%41",
    // Each differs from a name above, or from the next one, in mapped code points only.
    b"star\xef\x80\xa1",
    b"dot\xef\x80\xa9",
    b"blank\xef\x80\xa8",
    b"\xef\xbf\xbf",
    b"\xee\xbf\xbf",
    b"\xee\xbf\xa4.txt",
];

/// A name of 255 bytes. Mapped, it has 255 characters and 765 bytes of UTF-8.
const LONG: [u8; 255] = [b':'; 255];

/// Makes a file and a directory with a file for each name, and files of several requests.
fn make_tree(root: &Path, names: &[&[u8]]) -> Result<()> {
    let (files, directories) = (root.join("files"), root.join("directories"));
    fs::create_dir_all(&files)?;
    for (number, bytes) in names.iter().enumerate() {
        let name = OsStr::from_bytes(bytes);
        fs::write(files.join(name), bytes)?;
        fs::create_dir_all(directories.join(name))?;
        fs::write(directories.join(name).join(name), number.to_string())?;
    }
    let large = root.join("large");
    fs::create_dir(&large)?;
    for (name, seed) in [(&b"large?"[..], 1), (b"large.", 2), (b"large\xe4 ", 3)] {
        write_random(&large.join(OsStr::from_bytes(name)), 1_200_003, seed)?;
    }
    Ok(())
}

fn names_of_linux_programs_come_back_from_smbeam(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::with_second(transport, "linux-names")?;
    let tree = share.join("tree");
    make_tree(&tree, &[&NAMES[..], &[&LONG]].concat())?;
    give_tree_to(share, ALICE.id)?;
    client.run(&["get", "-r", "{}tree", "back"])?;
    assert_same_tree(&tree, &client.local("back"))?;
    let target = client.url_in("second", "");
    client.run(&["put", "-r", "back", &target])?;
    let copy = share.with_file_name("second").join("back");
    assert_same_tree(&tree, &copy)?;
    // They are replaced, compared and removed as well.
    client.run(&["put", "-r", "--verify", "back", &target])?;
    assert_same_tree(&tree, &copy)?;
    client.run(&["sync", "{}tree", "synced"])?;
    let again = client.run(&["sync", "--json", "--delete", "{}tree", "synced"])?;
    let counts = again.total()?;
    ensure!(counts["files"] == 0 && counts["removed"] == 0, "{again}");
    assert_same_tree(&tree, &client.local("synced"))?;
    fs::create_dir(client.local("empty"))?;
    client.run(&["sync", "--delete", "empty", "{}tree"])?;
    ensure!(paths(&tree)?.is_empty(), "{:?}", paths(&tree)?);
    client.run(&["rm", "-r", &format!("{target}back")])?;
    ensure!(!copy.exists(), "{:?}", paths(&copy)?);
    Ok(())
}

fn names_that_are_not_mapped_are_reported(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::new(transport, "literal")?;
    let tree = client.local("tree");
    fs::create_dir(&tree)?;
    for name in [
        &b"a:b"[..],
        b"dot.",
        b"\xe4",
        b"plain",
        "c\u{f022}d".as_bytes(),
    ] {
        fs::write(tree.join(OsStr::from_bytes(name)), name)?;
    }
    let put = ["put", "-r", "--map-names=no", "tree", "{}tree"];
    let output = client.fail(&put, 1, &["tree/a:b: ", "tree/dot.: ", "tree/\\xe4: "])?;
    ensure!(
        output.errors.matches("smbeam: put: ").count() == 3,
        "{output}"
    );
    let names: BTreeSet<_> = paths(&share.join("tree"))?.into_iter().collect();
    // For the server, the code point stands for a colon.
    ensure!(names == ["plain".into(), "c:d".into()].into(), "{names:?}");
    client.run(&["get", "-r", "--map-names=no", "{}tree", "back"])?;
    assert_same_file(&tree.join("c\u{f022}d"), &client.local("back/c\u{f022}d"))
}

/// smbd on a share, with its client.
struct Smbd {
    client: Client,
    share: PathBuf,
    _server: Server,
    _scratch: Scratch,
}

fn smbd(name: &str) -> Result<Smbd> {
    let lab = Lab::find()?;
    let scratch = Scratch::new(name)?;
    let share = scratch.open_directory("share")?;
    let server = Server::start_as(Subject::Samba, Some(&lab), None, Plan::sharing(&share))?;
    Ok(Smbd {
        client: Client::new(&server)?,
        share,
        _server: server,
        _scratch: scratch,
    })
}

fn local_names_come_back_from_smbd() -> Result<()> {
    let Smbd { client, share, .. } = &smbd("smbd-names")?;
    let tree = client.local("tree");
    // smbd lists the names of DOS devices as CSHOFG~F and the like.
    let names: Vec<_> = NAMES.into_iter().filter(|name| *name != b"CON").collect();
    make_tree(&tree, &names)?;
    client.run(&["put", "-r", "tree", "{}tree"])?;
    let there = share
        .join("tree/files")
        .join("cam_11\u{f022}05\u{f022}00.jpg");
    ensure!(there.exists(), "{:?}", paths(&share.join("tree/files"))?);
    client.run(&["get", "-r", "{}tree", "back"])?;
    assert_same_tree(&tree, &client.local("back"))?;
    client.run(&["rm", "-r", "{}tree"])?;
    ensure!(!share.join("tree").exists());
    Ok(())
}

fn a_name_that_smbd_cannot_carry_is_reported() -> Result<()> {
    let Smbd { client, share, .. } = &smbd("smbd-long")?;
    let tree = client.local("tree");
    fs::create_dir(&tree)?;
    fs::write(tree.join("plain"), "plain")?;
    fs::write(tree.join(OsStr::from_bytes(&LONG)), "long")?;
    client.fail(
        &["put", "-r", "tree", "{}tree"],
        1,
        &["tree/\u{f022}\u{f022}"],
    )?;
    assert_same_file(&tree.join("plain"), &share.join("tree/plain"))?;
    // No local name leads to this one.
    fs::write(share.join("tree").join("a\u{f028}b"), "literal")?;
    let output = client.fail(&["get", "-r", "{}tree", "back"], 1, &["--map-names=no"])?;
    ensure!(
        output.errors.matches("smbeam: get: ").count() == 1,
        "{output}"
    );
    assert_same_file(&tree.join("plain"), &client.local("back/plain"))?;
    client.run(&["get", "-r", "--map-names=no", "{}tree", "literal"])?;
    let literal = client.local("literal/a\u{f028}b");
    ensure!(fs::read(literal)? == b"literal");
    client.run(&["rm", "-r", "{}tree"])?;
    ensure!(!share.join("tree").exists());
    Ok(())
}
