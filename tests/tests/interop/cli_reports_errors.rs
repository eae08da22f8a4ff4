//! Every error message of the client names the problem, the path and the server's status. The exit
//! code is that of docs/cli.md.

use std::fs::{self, File, Permissions};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, UdpSocket};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::thread;

use anyhow::{Result, ensure};
use smbeam_tests::client::Client;
use smbeam_tests::direct::port;
use smbeam_tests::lab::Lab;
use smbeam_tests::ports::ReservedPort;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::session::{ACCESS_READ, Connection, Request};
use smbeam_tests::stage::Stage;
use smbeam_tests::subject::{ALICE, Plan, Server, Subject};
use smbeam_tests::tests_over_transports;

tests_over_transports!(
    each: [
        a_port_that_refuses,
        a_server_that_says_nothing,
        a_wrong_password,
        a_missing_share,
        a_missing_file,
        no_permission,
        a_full_disk,
        a_full_disk_here,
        a_name_that_is_too_long,
        a_file_that_another_has_open,
        a_file_of_credentials_that_others_may_read,
        names_that_the_other_side_does_not_know,
        one_failure_among_many_files,
        a_directory_in_the_way_of_a_file,
    ],
    once: [
        an_unknown_host,
        an_expired_password,
        a_password_where_others_see_it,
        no_password_and_no_terminal,
        a_url_that_is_none,
        an_error_without_output_ends_with_its_code,
    ],
);

fn stage(transport: &str, name: &str) -> Result<Stage> {
    Stage::with(transport, name, |plan, _| {
        let mut locked = plan.shares[0].clone();
        locked.name = "readonly".into();
        locked.read_only = true;
        let mut bobs = plan.shares[0].clone();
        bobs.name = "bobs".into();
        bobs.users = vec!["bob".into()];
        plan.shares.extend([locked, bobs]);
        Ok(())
    })
}

fn an_unknown_host() -> Result<()> {
    let client = Client::of("no-such-host.invalid")?;
    client.fail(
        &["ls", "{}"],
        3,
        &[
            "smbeam: ls: smb://alice@no-such-host.invalid/data: ",
            "cannot resolve the host name no-such-host.invalid",
        ],
    )?;
    Ok(())
}

/// A full disk under standard error does not change the exit code.
fn an_error_without_output_ends_with_its_code() -> Result<()> {
    let client = Client::of("no-such-host.invalid")?;
    let full = File::options().write(true).open("/dev/full")?;
    let status = client.command(&["ls", "{}"]).stderr(full).status()?;
    ensure!(status.code() == Some(3), "it ends with {status}");
    Ok(())
}

fn a_port_that_refuses(transport: &str) -> Result<()> {
    let port = ReservedPort::new()?;
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port.number);
    let client = Client::at(transport, &address.to_string())?;
    let words = match transport {
        // Where it would be. The other port of SMB Direct is tried as well.
        "smbdirect" => port::path(address.port()).display().to_string(),
        _ => format!("cannot connect to {address}: Connection refused"),
    };
    client.fail(&["get", "{}file"], 3, &["smbeam: get: ", &words])?;
    Ok(())
}

/// The server accepts the connection and sends nothing.
fn a_server_that_says_nothing(transport: &str) -> Result<()> {
    // The connection stays open until the end of this test.
    let (_end, ended) = mpsc::channel::<()>();
    let (tcp, udp) = (
        TcpListener::bind("127.0.0.1:0")?,
        UdpSocket::bind("127.0.0.1:0")?,
    );
    let port = match transport {
        "quic" => udp.local_addr()?.port(),
        "smbdirect" => {
            let (socket, port) = port::listen()?;
            thread::spawn(move || keep_open(socket.accept(), &ended));
            port
        }
        _ => {
            let port = tcp.local_addr()?.port();
            thread::spawn(move || keep_open(tcp.accept(), &ended));
            port
        }
    };
    let client = Client::at(transport, &format!("127.0.0.1:{port}"))?;
    let (code, said) = match transport {
        "tcp" => (
            3,
            "does not speak SMB: no response to NEGOTIATE (timed out)",
        ),
        // Before the transport is connected.
        _ => (3, "timed out"),
    };
    let answer = client.fail(&["ls", "--timeout=2", "{}"], code, &[said]);
    if transport == "smbdirect" {
        fs::remove_file(port::path(port))?;
    }
    answer.map(drop)
}

/// Holds a connection until the other end of the channel is dropped.
fn keep_open<T>(connection: T, ended: &mpsc::Receiver<()>) {
    let _ = ended.recv();
    drop(connection);
}

fn a_wrong_password(transport: &str) -> Result<()> {
    let stage = stage(transport, "password")?;
    let client = stage.client.variable("SMBEAM_PASSWORD", Some("wrong"));
    let words = ["refused the login", "(STATUS_LOGON_FAILURE)"];
    client.fail(&["ls", "{}"], 4, &words)?;
    Ok(())
}

/// No password expires on smbeam: this is about the statuses of other servers.
fn an_expired_password() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("expired")?;
    let share = scratch.open_directory("share")?;
    let server = Server::start_as(Subject::Samba, Some(&lab), None, Plan::sharing(&share))?;
    let expired = lab
        .command("net")
        .args(["-s"])
        .arg(server.directory().join("smb.conf"))
        .args(["sam", "set", "pwdmustchangenow", ALICE.name, "yes"])
        .output()?;
    ensure!(expired.status.success(), "{expired:?}");
    let client = Client::new(&server)?;
    let output = client.fail(
        &["ls", "{}"],
        4,
        &["refused the login", "password", "(STATUS_PASSWORD_"],
    )?;
    ensure!(!output.errors.contains("LOGON_FAILURE"), "{output}");
    Ok(())
}

fn a_missing_share(transport: &str) -> Result<()> {
    let Stage { client, .. } = &stage(transport, "missing")?;
    let url = client.url_in("nothing", "file");
    let words = ["/nothing: No such share (STATUS_BAD_NETWORK_NAME)"];
    client.fail(&["get", &url], 5, &words)?;
    let server = client.url("").replace("/data/", "");
    client.fail(&["ls", &server], 2, &["names no share"])?;
    Ok(())
}

fn a_missing_file(transport: &str) -> Result<()> {
    let Stage { client, .. } = &stage(transport, "nofile")?;
    let words = format!(
        "smbeam: get: {}: Object name not found (STATUS_OBJECT_NAME_NOT_FOUND)",
        client.url("a/b")
    );
    client.run(&["mkdir", "{}a"])?;
    client.fail(&["get", "{}a/b"], 5, &[&words])?;
    client.fail(&["stat", "{}a/b"], 5, &["(STATUS_OBJECT_NAME_NOT_FOUND)"])?;
    client.fail(&["cat", "{}a/b"], 5, &["(STATUS_OBJECT_NAME_NOT_FOUND)"])?;
    client.fail(
        &["put", "nothing", "{}"],
        5,
        &["nothing: No such file or directory"],
    )?;
    fs::write(client.local("file"), "x")?;
    client.fail(
        &["put", "file", "{}none/file"],
        5,
        &["(STATUS_OBJECT_PATH_NOT_FOUND)"],
    )?;
    Ok(())
}

fn no_permission(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &stage(transport, "permission")?;
    fs::write(share.join("secret"), "secret")?;
    fs::set_permissions(share.join("secret"), Permissions::from_mode(0o600))?;
    let words = ["/data/secret: Access denied (STATUS_ACCESS_DENIED)"];
    client.fail(&["get", "{}secret"], 6, &words)?;
    ensure!(!client.local("secret").exists());
    fs::write(client.local("file"), "x")?;
    let read_only = client.url_in("readonly", "");
    client.fail(
        &["put", "file", &read_only],
        6,
        &["/readonly/file: ", "(STATUS_"],
    )?;
    client.fail(
        &["ls", &client.url_in("bobs", "")],
        6,
        &["(STATUS_ACCESS_DENIED)"],
    )?;
    Ok(())
}

/// A file system of one mebibyte at `path`, until it is dropped.
struct Tiny(PathBuf);

impl Tiny {
    fn mount(path: &Path) -> Result<Tiny> {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1m,mode=777", "tmpfs"])
            .arg(path)
            .status()?;
        ensure!(mounted.success(), "cannot mount a tmpfs");
        Ok(Tiny(path.into()))
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

fn a_full_disk(transport: &str) -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("full")?;
    let share = scratch.open_directory("share")?;
    let _tiny = Tiny::mount(&share)?;
    let server = Server::start(&lab, Plan::sharing(&share))?;
    let client = Client::over(transport, &server)?;
    for (name, length) in [("large", 3 << 20), ("medium", 900 << 10)] {
        smbeam_tests::files::write_random(&client.local(name), length, 1)?;
    }
    let words = ["The disk is full (STATUS_DISK_FULL)"];
    client.fail(
        &["put", "large", "{}"],
        7,
        &["/data/large: The disk is full"],
    )?;
    client.run(&["rm", "-f", "{}*"])?;
    client.run(&["put", "medium", "{}"])?;
    client.fail(&["put", "medium", "{}again"], 7, &words)?;
    Ok(())
}

fn a_full_disk_here(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &stage(transport, "here")?;
    fs::create_dir(client.local("tiny"))?;
    let _tiny = Tiny::mount(&client.local("tiny"))?;
    for length in [3 << 20, 1_048_000] {
        smbeam_tests::files::write_random(&share.join("file"), length, 1)?;
        smbeam_tests::files::write_random(&client.local("tiny/ballast"), 500 << 10, 1)?;
        client.fail(&["get", "{}file", "tiny"], 7, &["tiny/file: No space left"])?;
        ensure!(
            !client.local("tiny/file").exists(),
            "half a file has the name"
        );
        for entry in fs::read_dir(client.local("tiny"))?.flatten() {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn a_name_that_is_too_long(transport: &str) -> Result<()> {
    let Stage { client, .. } = &stage(transport, "long")?;
    fs::write(client.local("file"), "x")?;
    let long = format!("{{}}{}", "x".repeat(300));
    client.fail(&["put", "file", &long], 11, &["longer than 255"])?;
    client.fail(&["mkdir", &long], 11, &["longer than 255"])?;
    // One that the protocol allows and the server's file system does not.
    let wide = format!("{{}}{}", "\u{e4}".repeat(200));
    client.fail(&["mkdir", &wide], 11, &["(STATUS_"])?;
    Ok(())
}

fn a_file_that_another_has_open(transport: &str) -> Result<()> {
    let Stage {
        server,
        client,
        share,
        ..
    } = &stage(transport, "open")?;
    fs::write(share.join("file"), "x")?;
    chown(share.join("file"), Some(ALICE.id), Some(ALICE.id))?;
    let mut other = Connection::open(server.tcp)?;
    let session = other.log_in(ALICE, "data")?;
    let alone = Request::open("file", ACCESS_READ).alone();
    other
        .call(session, &alone)?
        .expect("an open that denies all others")?;
    let words = ["/data/file: Another client has the file open (STATUS_SHARING_VIOLATION)"];
    client.fail(&["get", "{}file"], 8, &words)?;
    client.fail(&["cat", "{}file"], 8, &words)?;
    client.fail(&["rm", "{}file"], 8, &words)?;
    fs::write(client.local("file"), "y")?;
    client.fail(&["put", "file", "{}"], 8, &words)?;
    ensure!(fs::read(share.join("file"))? == b"x");
    Ok(())
}

fn a_password_where_others_see_it() -> Result<()> {
    let client = Client::of("127.0.0.1:1")?;
    let url = "smb://alice:secret@127.0.0.1:1/data";
    client.fail(&["ls", url], 2, &["password", "--password-file"])?;
    Ok(())
}

fn a_file_of_credentials_that_others_may_read(transport: &str) -> Result<()> {
    let stage = stage(transport, "credentials")?;
    let client = stage.client.variable("SMBEAM_PASSWORD", None);
    let directory = client.home().join(".config/smbeam");
    fs::create_dir_all(&directory)?;
    let file = directory.join("credentials.toml");
    let text = format!(
        "[[login]]\nhost = \"127.0.0.1\"\nuser = \"alice\"\npassword = \"{}\"\n",
        ALICE.password
    );
    fs::write(&file, text)?;
    fs::set_permissions(&file, Permissions::from_mode(0o644))?;
    let words = ["credentials.toml: other users can read", "chmod 600"];
    client.fail(&["ls", "{}"], 2, &words)?;
    fs::set_permissions(&file, Permissions::from_mode(0o600))?;
    client.run(&["ls", "{}"])?;
    // The user of the file is that of a URL without one.
    let anonymous = client.url("").replace("alice@", "");
    client.run(&["ls", &anonymous])?;
    fs::write(client.local("password"), format!("{}\n", ALICE.password))?;
    let other = client.variable("HOME", Some("/nowhere"));
    other.run(&["ls", "--password-file", "password", "{}"])?;
    Ok(())
}

fn no_password_and_no_terminal() -> Result<()> {
    let client = Client::of("127.0.0.1:1")?.variable("SMBEAM_PASSWORD", None);
    client.fail(
        &["ls", "{}"],
        2,
        &["no password for alice", "--password-file"],
    )?;
    client.fail(
        &["ls", "--password-file", "none", "{}"],
        5,
        &["none: No such file"],
    )?;
    Ok(())
}

fn names_that_the_other_side_does_not_know(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &stage(transport, "strange")?;
    let directory = client.local("strange");
    fs::create_dir(&directory)?;
    for name in ["a:b", "what?", "star*", "good", "dot."] {
        fs::write(directory.join(name), name)?;
    }
    fs::write(directory.join(std::ffi::OsStr::from_bytes(b"raw\xff")), "x")?;
    fs::write(directory.join("Same"), "one")?;
    fs::write(directory.join("SAME"), "other")?;
    let words = [
        "strange/a:b: SMB does not allow `:`",
        "strange/what?: SMB does not allow `?`",
        "strange/star*: SMB does not allow `*`",
        "strange/dot.: SMB does not allow a name that ends in `.`",
        "the name is not valid UTF-8",
        "differs from it in case only",
    ];
    client.fail(&["put", "-r", "--map-names=no", "strange", "{}"], 1, &words)?;
    let mut there: Vec<_> = fs::read_dir(share.join("strange"))?
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().to_lowercase())
        .collect();
    there.sort();
    ensure!(there == ["good", "same"], "{there:?}");
    client.fail(&["ls", "{}a:b"], 11, &["data/a:b: "])?;
    Ok(())
}

fn one_failure_among_many_files(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &stage(transport, "among")?;
    fs::create_dir(share.join("tree"))?;
    for number in 0..50 {
        fs::write(share.join(format!("tree/{number}")), "x")?;
    }
    fs::set_permissions(share.join("tree/7"), Permissions::from_mode(0o600))?;
    let output = client.fail(
        &["get", "-r", "{}tree"],
        1,
        &[
            "/data/tree/7: Access denied (STATUS_ACCESS_DENIED)",
            "49 files",
            "1 failed",
        ],
    )?;
    ensure!(output.errors.matches("STATUS").count() == 1, "{output}");
    ensure!(fs::read_dir(client.local("tree"))?.count() == 49);
    // All for the same reason: its own code.
    let words = ["/data/none: Object name", "/data/tree/none: Object name"];
    client.fail(&["rm", "{}none", "{}tree/none"], 5, &words)?;
    Ok(())
}

fn a_directory_in_the_way_of_a_file(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &stage(transport, "way")?;
    for (name, length) in [("small", 10), ("large", 33 << 20)] {
        let directories = [share.join("to").join(name), client.local("to").join(name)];
        for directory in &directories {
            fs::create_dir_all(directory)?;
        }
        for file in [share.join(name), client.local(name)] {
            File::create(file)?.set_len(length)?;
        }
        let (url, word) = (format!("{{}}{name}"), "a directory with this name exists");
        client.fail(&["put", name, "{}to"], 10, &[&format!("to/{name}: {word}")])?;
        client.fail(&["get", &url, "to"], 10, &[&format!("to/{name}: {word}")])?;
        for directory in directories {
            ensure!(directory.is_dir(), "{}", directory.display());
        }
    }
    Ok(())
}

fn a_url_that_is_none() -> Result<()> {
    let client = Client::of("127.0.0.1:1")?;
    for (arguments, word) in [
        (&["ls", "smb://"][..], "the host is missing"),
        (&["ls", "smb://host:x/data"], "the port is not valid"),
        (&["ls", "smb://host/data/%zz"], "hexadecimal"),
        (&["ls", "smb://host/data/../x"], "`..`"),
        (&["ls", "/tmp"], "not a location on a server"),
        (&["ls", "http://host/data"], "the scheme must be smb://"),
        (&["get", "a", "b"], "not on a server"),
        (&["put", "a", "b"], "not on a server"),
        (
            &["ls", "--channels", "0", "smb://host/data"],
            "from 1 to 32",
        ),
        (
            &["ls", "--io-size", "1", "smb://host/data"],
            "4KiB to 16MiB",
        ),
        (&["sync", "a", "b"], "neither"),
        (&["ls"], "required"),
    ] {
        client.fail(arguments, 2, &[word])?;
    }
    Ok(())
}
