//! Servers that are neither Samba nor ours: the client works without the features that they lack.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Result, ensure};
use smbeam_tests::background::Background;
use smbeam_tests::client::Client;
use smbeam_tests::files::{assert_same_file, assert_same_tree, make_tree, write_random};
use smbeam_tests::ports::ReservedPort;
use smbeam_tests::python::Python;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::ALICE;
use smbeam_tests::{tests, wait};

tests!(
    files_move,
    trees_move,
    names_come_and_go,
    errors_are_reported
);

const IMPACKET: &str = include_str!("../../src/python/impacket_serves.py");
/// Python starts slowly on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(60);
const LARGE_BYTES: u64 = 5_000_003;

/// impacket's server, which speaks 2.0.2 and 2.1, has one thread for each connection, no file
/// numbers, no interfaces, and answers some queries wrongly.
struct Stage {
    _server: Background,
    client: Client,
    share: PathBuf,
    _scratch: Scratch,
}

impl Stage {
    fn new(name: &str) -> Result<Stage> {
        let scratch = Scratch::new(name)?;
        let share = scratch.open_directory("share")?;
        let port = ReservedPort::new()?.into_number();
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        let (port, directory) = (address.port().to_string(), share.display().to_string());
        let arguments = [&*port, "data", &directory, ALICE.name, ALICE.password];
        let mut server = Python::find()?.command(IMPACKET, &arguments);
        server.stdout(Stdio::null()).stderr(Stdio::null());
        let stage = Stage {
            _server: Background::start(&mut server)?,
            client: Client::of(&address.to_string())?,
            share,
            _scratch: scratch,
        };
        wait::until("the server to listen", START_LIMIT, || {
            TcpStream::connect(address).is_ok()
        })?;
        Ok(stage)
    }
}

fn files_move() -> Result<()> {
    let Stage { client, share, .. } = &Stage::new("impacket-files")?;
    for (name, length) in [("empty", 0), ("small", 12_345), ("large", LARGE_BYTES)] {
        let local = client.local(name);
        write_random(&local, length, length)?;
        client.run(&["put", "--verify", name, "{}"])?;
        assert_same_file(&local, &share.join(name))?;
        client.run(&["put", "--atomic", name, "{}"])?;
        client.run(&["get", "--verify", &client.url(name), "back"])?;
        assert_same_file(&local, &client.local("back"))?;
    }
    let listed = client.run(&["ls", "-l", "{}"])?.text;
    ensure!(
        listed.lines().count() == 3 && listed.contains(" 5000003  "),
        "{listed}"
    );
    fs::write(share.join("text"), "some\ntext\n")?;
    let text = client.run(&["cat", "{}text"])?.text;
    ensure!(text == "some\ntext\n", "{text:?}");
    Ok(())
}

fn trees_move() -> Result<()> {
    let Stage { client, share, .. } = &Stage::new("impacket-trees")?;
    make_tree(&client.local("tree"), 6)?;
    client.run(&["put", "-r", "tree", "{}"])?;
    assert_same_tree(&client.local("tree"), &share.join("tree"))?;
    client.run(&["get", "-r", "{}tree", "back"])?;
    assert_same_tree(&client.local("tree"), &client.local("back"))?;
    client.run(&["sync", "--checksum", "--delete", "tree", "{}tree"])?;
    client.run(&["rm", "-r", "{}tree"])?;
    ensure!(!share.join("tree").exists(), "it is still there");
    Ok(())
}

fn names_come_and_go() -> Result<()> {
    let Stage { client, share, .. } = &Stage::new("impacket-names")?;
    client.run(&["mkdir", "-p", "{}a/b/c"])?;
    fs::write(share.join("a/file"), "text")?;
    client.run(&["mv", "{}a/file", "{}a/b"])?;
    ensure!(fs::read(share.join("a/b/file"))? == b"text");
    client.run(&["rm", "{}a/b/file"])?;
    client.run(&["rmdir", "{}a/b/c"])?;
    ensure!(fs::read_dir(share.join("a/b"))?.next().is_none());
    let root = client.url("");
    let server = root.trim_end_matches("/data/");
    let shares = client.run(&["shares", server])?.text;
    ensure!(shares.to_lowercase().contains("data "), "{shares}");
    Ok(())
}

fn errors_are_reported() -> Result<()> {
    let Stage { client, .. } = &Stage::new("impacket-wrong")?;
    let words = ["(STATUS_OBJECT_NAME_NOT_FOUND)"];
    client.fail(&["get", "{}none"], 5, &words)?;
    client.fail(&["ls", &client.url_in("none", "")], 5, &["none"])?;
    let wrong = ["--password-file", "wrong"];
    fs::write(client.local("wrong"), "not it\n")?;
    client.fail(&["ls", "{}", wrong[0], wrong[1]], 4, &["LOGON_FAILURE"])?;
    Ok(())
}
