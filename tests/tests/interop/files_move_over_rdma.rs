//! SMB Direct between processes, over emulated RDMA: files come back unchanged, and clients with
//! other protocols disturb no other client.

use std::fs;
use std::io::{Read as _, Write as _};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::client::Client;
use smbeam_tests::direct::port;
use smbeam_tests::random::Random;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{Plan, Server, Subject};
use smbeam_tests::tests;
use smbeam_tests::wait;
use socket2::{Domain, SockAddr, Socket, Type};

/// Bytes of a file: more than one request has, and no round number.
const FILE_BYTES: usize = (9 << 20) + 4321;

tests!(
    files_come_back_unchanged,
    garbage_disturbs_no_other_client,
    silent_connections_are_counted,
    a_missing_device_is_reported,
);

struct Rig {
    server: Server,
    client: Client,
    scratch: Scratch,
}

impl Rig {
    fn new(limits: &[(&str, u64)]) -> Result<Self> {
        let scratch = Scratch::new("rdma")?;
        let mut plan = Plan::sharing(&scratch.open_directory("share")?);
        let limits = limits.iter();
        plan.limits = limits
            .map(|(name, value)| ((*name).into(), *value))
            .collect();
        let server = Server::start_as(Subject::Smbeam, None, None, plan)?;
        let address = server.address("smbdirect");
        let client = Client::of(&address.to_string())?.argument("--transports=smbdirect");
        Ok(Self {
            server,
            client,
            scratch,
        })
    }

    /// Connects as the provider of a client would, and sends nothing.
    fn connect(&self) -> Result<Socket> {
        let port = self.server.address("smbdirect").port();
        let socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None)?;
        socket.connect(&SockAddr::unix(port::path(port))?)?;
        socket.set_read_timeout(Some(Duration::from_secs(20)))?;
        Ok(socket)
    }
}

/// Whether the peer closes; messages before that are ignored.
fn is_closed(socket: &Socket) -> bool {
    let mut socket = socket;
    let mut bytes = [0; 1 << 16];
    loop {
        match socket.read(&mut bytes) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

fn files_come_back_unchanged() -> Result<()> {
    let rig = Rig::new(&[])?;
    let mut bytes = vec![0; FILE_BYTES];
    Random::new(1).fill(&mut bytes);
    fs::write(rig.client.local("file"), &bytes)?;
    for (index, options) in [
        &[][..],
        &["--encrypt"],
        &["--sign", "--io-size=8MiB"],
        &["--channels=3", "--io-size=64KiB"],
    ]
    .iter()
    .enumerate()
    {
        let (there, back) = (format!("{{}}file{index}"), format!("back{index}"));
        let run = |arguments: &[&str]| rig.client.run(&[arguments, options].concat());
        run(&["put", "file", &there])?;
        let share = rig.scratch.path().join("share");
        let on_disk = fs::read(share.join(format!("file{index}")))?;
        ensure!(on_disk == bytes, "{options:?}: other bytes were written");
        run(&["get", &there, &back])?;
        let read = fs::read(rig.client.local(&back))?;
        ensure!(read == bytes, "{options:?}: other bytes were read");
    }
    let log = rig.server.log();
    ensure!(!log.contains("disconnecting"), "{log}");
    Ok(())
}

fn garbage_disturbs_no_other_client() -> Result<()> {
    let rig = Rig::new(&[])?;
    let mut hello = vec![1, 0, 0, 0];
    hello.extend(10_u32.to_ne_bytes());
    hello.extend(1_u32.to_ne_bytes());
    hello.extend([0; 12]);
    let mut send = vec![3, 0, 0, 0];
    send.extend([0; 20]);
    send.extend(b"GET / HTTP/1.1\r\n\r\n");
    let peers: [(&str, &[&[u8]]); 3] = [
        ("rdma", &[b"GET / HTTP/1.1\r\n\r\n"]),
        ("smb direct", &[&hello, &send]),
        ("too long", &[&hello, &[3; 40_000]]),
    ];
    for (name, messages) in peers {
        let mut socket = rig.connect()?;
        for message in messages {
            socket.write_all(message)?;
        }
        ensure!(is_closed(&socket), "{name}: the server goes on");
        rig.client.run(&["ls", "{}"])?;
    }
    let is_logged = || rig.server.log().matches("disconnecting").count() >= 3;
    wait::until("three lines of the log", Duration::from_secs(10), is_logged)?;
    let log = rig.server.log();
    ensure!(log.contains("transport=smbdirect"), "{log}");
    ensure!(log.contains("malformed SMB Direct message"), "{log}");
    Ok(())
}

fn silent_connections_are_counted() -> Result<()> {
    let rig = Rig::new(&[("half_open_per_address", 3)])?;
    let silent: Vec<Socket> = (0..3).map(|_| rig.connect()).collect::<Result<_>>()?;
    let one_more = rig.connect()?;
    ensure!(is_closed(&one_more), "there is no limit");
    wait::for_line(|| rig.server.log(), &["connections refused"])?;
    // They have a few seconds to negotiate.
    for socket in &silent {
        ensure!(is_closed(socket), "silence is borne for ever");
    }
    rig.client.run(&["ls", "{}"])?;
    Ok(())
}

fn a_missing_device_is_reported() -> Result<()> {
    let rig = Rig::new(&[])?;
    let client = Client::of("127.0.0.1")?.variable("SMBEAM_RDMA", Some("rdma"));
    let arguments = ["ls", "--transports=smbdirect", "{}"];
    client.fail(&arguments, 2, &["neither `verbs` nor `emulated:DIRECTORY`"])?;
    let nowhere = rig.scratch.path().join("empty").display().to_string();
    let choice = format!("emulated:{nowhere}");
    let client = Client::of("127.0.0.1")?.variable("SMBEAM_RDMA", Some(&choice));
    client.fail(&arguments, 3, &["smbdirect:5445", "5445.sock"])?;
    fs::metadata(nowhere).context("the directory was made")?;
    Ok(())
}
