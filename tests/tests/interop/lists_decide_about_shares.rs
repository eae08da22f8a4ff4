//! The lists of a share decide which users and groups connect and write, and the lists of addresses
//! from where.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::lab::Lab;
use smbeam_tests::raw::Raw;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::session::Connection;
use smbeam_tests::smbclient::Smbclient;
use smbeam_tests::subject::{self, ALICE, BOB, Plan, Server, Share, Subject, User};
use smbeam_tests::{tests, wait};
use socket2::{Domain, Socket, Type};
use toml::{Table, Value};

tests!(
    groups_of_the_file_and_of_unix_decide,
    readers_read_and_writers_write,
    addresses_decide_about_shares,
    addresses_decide_about_the_server,
);

/// Time in which the server notices a change.
const TIME_LIMIT: Duration = Duration::from_secs(20);
const DENIED: &str = "NT_STATUS_ACCESS_DENIED";

fn list(entries: &[&str]) -> Value {
    let entries = entries.iter().map(|entry| Value::from(*entry));
    Value::Array(entries.collect())
}

/// A share of `directory` with lists.
fn share(name: &str, directory: &Path, lists: &[(&str, &[&str])]) -> Share {
    let lists = lists
        .iter()
        .map(|(key, entries)| ((*key).to_owned(), list(entries)));
    Share {
        keys: Table::from_iter(lists),
        ..Share::new(name, directory)
    }
}

fn start(lab: &Lab, shares: Vec<Share>, security: Table) -> Result<Server> {
    let plan = Plan {
        shares,
        security,
        ..Plan::default()
    };
    Server::start_as(Subject::Smbeam, Some(lab), None, plan)
}

/// Runs `smbeam user group` on the file of the server.
fn group(server: &Server, arguments: &[&str]) -> Result<()> {
    let users = server.directory().join("users.toml");
    let (command, names) = arguments.split_first().context("a command")?;
    let status = Command::new(subject::program()?)
        .args(["user", "group", command, "--file"])
        .arg(users)
        .args(names)
        .status()?;
    ensure!(status.success(), "smbeam user group {arguments:?}");
    Ok(())
}

/// Whether a user may list a share.
fn may_connect(lab: &Lab, server: &Server, user: User, share: &str) -> Result<bool> {
    let output = Smbclient::new(lab, server)
        .user(user)
        .share(share)
        .try_run("ls")?;
    ensure!(
        output.code == Some(0) || output.failed_with(DENIED),
        "{output}"
    );
    Ok(output.code == Some(0))
}

fn groups_of_the_file_and_of_unix_decide() -> Result<()> {
    let scratch = Scratch::new("groups")?;
    let lab = Lab::find()?.with_accounts(scratch.path(), "", "deputies:x:2100:bob\n")?;
    let directory = scratch.open_directory("share")?;
    let shares = vec![
        share("team", &directory, &[("valid_users", &["@staff"])]),
        share("unix", &directory, &[("valid_users", &["@Deputies"])]),
        share("primary", &directory, &[("users", &["@alice"])]),
        share(
            "others",
            &directory,
            &[
                ("valid_users", &["alice", "bob"]),
                ("invalid_users", &["@deputies"]),
            ],
        ),
    ];
    let server = start(&lab, shares, Table::new())?;
    for (user, share, expected) in [
        (ALICE, "team", false),
        (ALICE, "unix", false),
        (BOB, "unix", true),
        (ALICE, "primary", true),
        (BOB, "primary", false),
        (ALICE, "others", true),
        (BOB, "others", false),
    ] {
        let found = may_connect(&lab, &server, user, share)?;
        ensure!(found == expected, "{} {share}: {found}", user.name);
    }
    for key in ["key=share.valid_users", "key=share.invalid_users"] {
        wait::for_line(|| server.log(), &[key])?;
    }
    group(&server, &["add", "staff"])?;
    group(&server, &["join", "staff", "alice"])?;
    ensure!(may_connect(&lab, &server, ALICE, "team")?, "a member");
    ensure!(!may_connect(&lab, &server, BOB, "team")?, "no member");
    // A session of a member that leaves the group ends.
    let mut connection = Connection::open(server.tcp)?;
    connection.log_in(ALICE, "team")?;
    group(&server, &["leave", "staff", "alice"])?;
    wait::until("the end of the session", TIME_LIMIT, || {
        server.log().contains("the account left a group")
    })?;
    ensure!(
        !may_connect(&lab, &server, ALICE, "team")?,
        "a former member"
    );
    // A group of the file hides the one of Unix.
    group(&server, &["add", "deputies"])?;
    ensure!(
        !may_connect(&lab, &server, BOB, "unix")?,
        "the group of Unix"
    );
    Ok(())
}

fn readers_read_and_writers_write() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("readers")?;
    let directory = scratch.open_directory("share")?;
    fs::write(scratch.path().join("file"), "text")?;
    let published = Share {
        read_only: true,
        ..share("published", &directory, &[("write_users", &["alice"])])
    };
    let shares = vec![
        share(
            "team",
            &directory,
            &[
                ("read_users", &["alice", "bob"]),
                ("write_users", &["alice"]),
            ],
        ),
        published,
    ];
    let server = start(&lab, shares, Table::new())?;
    for share in ["team", "published"] {
        let client = |user| {
            let client = Smbclient::new(&lab, &server).user(user).share(share);
            client.directory(scratch.path())
        };
        let path = directory.join(share);
        client(ALICE).run(&format!("put file {share}\nmkdir {share}-dir"))?;
        ensure!(fs::read_to_string(&path)? == "text");
        let before = fs::metadata(&path)?.modified()?;
        for command in [
            format!("put file {share}"),
            format!("put file {share}-new"),
            format!("del {share}"),
            format!("rename {share} other"),
            format!("rmdir {share}-dir"),
            "mkdir other".to_owned(),
            format!("setmode {share} +h"),
        ] {
            let refused = client(BOB).try_run(&command)?;
            ensure!(refused.text.contains("NT_STATUS_"), "{command}: {refused}");
        }
        client(BOB).run(&format!("get {share} got"))?;
        ensure!(fs::read_to_string(scratch.path().join("got"))? == "text");
        ensure!(
            fs::metadata(&path)?.modified()? == before,
            "bob changed {share}"
        );
        client(ALICE).run(&format!("del {share}\nrmdir {share}-dir"))?;
        ensure!(
            fs::read_dir(&directory)?.count() == 0,
            "something stays in {share}"
        );
    }
    Ok(())
}

fn addresses_decide_about_shares() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("addresses")?;
    let directory = scratch.open_directory("share")?;
    let loopback = &["127.0.0.0/8", "::1"][..];
    let shares = vec![
        share("closed", &directory, &[("hosts_deny", loopback)]),
        share(
            "elsewhere",
            &directory,
            &[("hosts_allow", &["192.0.2.0/24"])],
        ),
        share(
            "some",
            &directory,
            &[("hosts_deny", loopback), ("hosts_allow", &["127.0.0.2"])],
        ),
    ];
    let server = start(&lab, shares, Table::new())?;
    for (share, expected) in [("closed", false), ("elsewhere", true), ("some", false)] {
        let found = may_connect(&lab, &server, ALICE, share)?;
        ensure!(found == expected, "{share}: {found}");
    }
    wait::for_line(|| server.log(), &["key=share.hosts_deny"])?;
    let raw = Raw::on(connect_from(Ipv4Addr::new(127, 0, 0, 2), server.tcp)?)?;
    let mut connection = Connection::on(raw, server.tcp)?;
    connection.log_in(ALICE, "some")?;
    connection
        .log_in(ALICE, "closed")
        .err()
        .context("a refusal")?;
    Ok(())
}

fn addresses_decide_about_the_server() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("server-addresses")?;
    let directory = scratch.open_directory("share")?;
    let security = Table::from_iter([("hosts_deny".to_owned(), list(&["127.0.0.2/31"]))]);
    let server = start(&lab, vec![Share::new("data", &directory)], security)?;
    let from = |last| -> Result<bool> {
        let stream = connect_from(Ipv4Addr::new(127, 0, 0, last), server.tcp)?;
        let connected = Connection::on(Raw::on(stream)?, server.tcp);
        Ok(connected.is_ok_and(|mut connection| connection.log_in(ALICE, "data").is_ok()))
    };
    for (last, expected) in [(1, true), (2, false), (3, false), (4, true)] {
        ensure!(from(last)? == expected, "127.0.0.{last}");
    }
    wait::for_line(|| server.log(), &["key=", "security.hosts_deny"])?;
    // A reload applies other rules to later connections.
    let path = server.configuration();
    let text = fs::read_to_string(&path)?;
    ensure!(text.contains("127.0.0.2/31"), "{text}");
    fs::write(&path, text.replace("127.0.0.2/31", "127.0.0.4"))?;
    let status = Command::new(subject::program()?)
        .arg("reload")
        .arg("--socket")
        .arg(server.control())
        .status()?;
    ensure!(status.success(), "smbeam reload");
    ensure!(from(2)? && !from(4)?, "the former rules");
    Ok(())
}

/// A connection from another address of the machine.
fn connect_from(source: Ipv4Addr, server: SocketAddrV4) -> Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddrV4::new(source, 0).into())?;
    socket.connect(&server.into())?;
    Ok(socket.into())
}
