//! Clients of QUIC that break its rules or those of SMB lose their connection, and no other client
//! notices.

use std::fs;
use std::net::UdpSocket;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use quinn_proto::{ConnectionError, Dir, TransportErrorCode};
use smbeam_tests::lab::Missing;
use smbeam_tests::quic::{Manner, Peer};
use smbeam_tests::random::Random;
use smbeam_tests::raw::{Raw, Reaction, command, frame, header, negotiate_body};
use smbeam_tests::scratch::Scratch;
use smbeam_tests::session::Connection;
use smbeam_tests::subject::{ALICE, Plan, Server, Subject};
use smbeam_tests::{tests, wait};

tests!(
    a_client_without_smb_is_refused_in_the_handshake,
    a_second_stream_ends_the_connection,
    a_datagram_ends_the_connection,
    more_than_the_window_ends_the_connection,
    a_stream_that_is_given_up_ends_the_connection,
    a_connection_without_a_stream_ends_in_time,
    garbage_closes_the_connection,
    a_large_frame_is_not_awaited,
    a_frame_that_trickles_in_is_not_awaited,
    a_client_that_never_reads_is_disconnected_and_costs_little,
    a_client_that_moves_is_not_followed,
);

/// How long a frame may take to arrive, or an answer to be taken in.
const FRAME_TIME_MS: u64 = 2000;
/// Every client may stay without a login for as long as a test takes.
const LOGIN_TIME_MS: u64 = 300_000;
/// How long a log line may take after its event.
const LOG_LIMIT: Duration = Duration::from_secs(15);
/// The log line of a failed handshake.
const FAILED: &str = "QUIC handshakes failed";
/// Transport parameters. RFC 9000 18.2, RFC 9221 3
mod parameter {
    pub(crate) const MAX_DATA: u64 = 4;
    pub(crate) const MAX_STREAM_DATA_BIDI_REMOTE: u64 = 6;
    pub(crate) const MAX_STREAMS_BIDI: u64 = 8;
    pub(crate) const MAX_STREAMS_UNI: u64 = 9;
    pub(crate) const MAX_STREAM_DATA_UNI: u64 = 7;
    pub(crate) const MAX_DATAGRAM_FRAME_SIZE: u64 = 0x20;
}

/// A server, and connections that must not notice anything.
struct Site {
    by_tcp: Raw,
    by_quic: Raw,
    server: Server,
    _scratch: Scratch,
}

impl Site {
    fn new() -> Result<Site> {
        Site::with_frame_time(FRAME_TIME_MS)
    }

    /// A server that waits `frame_time` milliseconds for a frame, and for a client that reads
    /// nothing.
    fn with_frame_time(frame_time: u64) -> Result<Site> {
        if Subject::chosen() == Subject::Samba {
            return Err(Missing("smbd needs a module of the kernel for QUIC".into()).into());
        }
        let scratch = Scratch::new("misbehave")?;
        let mut plan = Plan::sharing(&scratch.open_directory("share")?);
        let limits = [
            ("frame_timeout_ms", frame_time),
            ("login_timeout_ms", LOGIN_TIME_MS),
        ];
        plan.limits = limits.map(|(name, value)| (name.into(), value)).into();
        let server = Server::start_alone(plan)?;
        let mut by_quic = Raw::over_quic(server.address("quic"))?;
        by_quic.negotiate()?;
        Ok(Site {
            by_tcp: Raw::negotiated(server.tcp)?,
            by_quic,
            server,
            _scratch: scratch,
        })
    }

    fn start(&self, manner: &Manner) -> Result<Peer> {
        Peer::start(self.server.address("quic"), manner)
    }

    /// A hostile client with a connection and no stream.
    fn connect(&self, manner: &Manner) -> Result<Peer> {
        Peer::connect(self.server.address("quic"), manner)
    }

    fn raw(&self) -> Result<Raw> {
        Raw::over_quic(self.server.address("quic"))
    }

    fn negotiated(&self, manner: &Manner) -> Result<Raw> {
        let mut peer = self.connect(manner)?;
        peer.open(Dir::Bi)?;
        let mut raw = Raw::on_peer(peer);
        raw.negotiate()?;
        Ok(raw)
    }

    /// Checks the earlier connections, and makes new ones.
    fn check_others(&mut self) -> Result<()> {
        self.by_tcp.echo().context("the witness of TCP")?;
        self.by_quic.echo().context("the witness of QUIC")?;
        Raw::negotiated(self.server.tcp).context("no new connection by TCP")?;
        self.raw()?.negotiate().context("no new connection by QUIC")
    }

    /// The log has, or gets, a line with that address and all of these words.
    fn check_log(&self, peer: &Peer, words: &[&str]) -> Result<()> {
        let address = format!("peer={}", peer.address()?);
        let words = [&[&address[..]], words].concat();
        wait::for_line(|| self.server.log(), &words).map(drop)
    }

    /// Bytes of memory that the server has.
    fn memory(&self) -> Result<usize> {
        memory(self.server.pid())
    }
}

/// Bytes of memory that a process has.
fn memory(pid: u32) -> Result<usize> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(number.context("no VmRSS")?.trim().parse::<usize>()? << 10)
}

/// The QUIC client of a hostile client.
fn peer(raw: &mut Raw) -> &mut Peer {
    raw.peer().expect("a client of QUIC")
}

/// The server has closed the connection for a reason of QUIC's.
fn check_closed_for(peer: &mut Peer, code: TransportErrorCode) -> Result<()> {
    match peer.ended()? {
        ConnectionError::ConnectionClosed(close) if close.error_code == code => Ok(()),
        other => bail!("closed otherwise: {other:?}"),
    }
}

fn a_client_without_smb_is_refused_in_the_handshake() -> Result<()> {
    /// Of TLS. RFC 7301 3.2
    const NO_APPLICATION_PROTOCOL: u8 = 120;
    let mut site = Site::new()?;
    let others: [&[&[u8]]; 4] = [&[b"h3"], &[], &[b"h3", b"http/1.1"], &[b"smb2"]];
    for names in others {
        let manner = Manner {
            protocols: names.iter().map(|name| name.to_vec()).collect(),
            ..Manner::default()
        };
        let mut hostile = site.start(&manner)?;
        let alert = TransportErrorCode::crypto(NO_APPLICATION_PROTOCOL);
        check_closed_for(&mut hostile, alert).with_context(|| format!("{names:?}"))?;
        site.check_log(&hostile, &[FAILED, "protocol"])?;
        site.check_others()?;
    }
    Ok(())
}

fn a_second_stream_ends_the_connection() -> Result<()> {
    let mut site = Site::new()?;
    let manner = Manner {
        overrides: vec![
            (parameter::MAX_STREAMS_BIDI, 100),
            (parameter::MAX_STREAMS_UNI, 100),
            (parameter::MAX_STREAM_DATA_UNI, 1 << 20),
        ],
        ..Manner::default()
    };
    for (direction, has_first) in [(Dir::Bi, true), (Dir::Uni, true), (Dir::Uni, false)] {
        let mut hostile = if has_first {
            site.negotiated(&manner)?
        } else {
            Raw::on_peer(site.connect(&manner)?)
        };
        let peer = peer(&mut hostile);
        let second = peer.open(direction)?;
        peer.write(second, &frame(&negotiate_message()), LOG_LIMIT)?;
        check_closed_for(peer, TransportErrorCode::STREAM_LIMIT_ERROR)?;
        let words: &[&str] = if has_first {
            &["disconnecting", "stream"]
        } else {
            &[FAILED, "stream"]
        };
        site.check_log(peer, words)?;
        site.check_others()?;
    }
    Ok(())
}

fn a_datagram_ends_the_connection() -> Result<()> {
    let mut site = Site::new()?;
    let manner = Manner {
        overrides: vec![(parameter::MAX_DATAGRAM_FRAME_SIZE, 1000)],
        ..Manner::default()
    };
    let mut hostile = site.negotiated(&manner)?;
    peer(&mut hostile).send_datagram(b"an unreliable NEGOTIATE")?;
    check_closed_for(peer(&mut hostile), TransportErrorCode::PROTOCOL_VIOLATION)?;
    site.check_log(peer(&mut hostile), &["disconnecting", "DATAGRAM"])?;
    site.check_others()
}

/// The server takes nothing in while its answers are not taken in either.
fn more_than_the_window_ends_the_connection() -> Result<()> {
    const HUGE: u64 = 1 << 40;
    let mut site = Site::with_frame_time(60_000)?;
    let manner = Manner {
        window: 1000,
        overrides: vec![
            (parameter::MAX_DATA, HUGE),
            (parameter::MAX_STREAM_DATA_BIDI_REMOTE, HUGE),
        ],
        ..Manner::default()
    };
    let before = site.memory()?;
    let mut hostile = site.negotiated(&manner)?;
    let most = flood(peer(&mut hostile), || site.memory())?;
    ensure!(
        most < before + MEMORY_OF_ONE,
        "{before} bytes became {most}"
    );
    check_closed_for(peer(&mut hostile), TransportErrorCode::FLOW_CONTROL_ERROR)?;
    site.check_log(peer(&mut hostile), &["disconnecting"])?;
    site.check_others()
}

fn a_stream_that_is_given_up_ends_the_connection() -> Result<()> {
    type Way = fn(&mut Peer) -> Result<()>;
    let mut site = Site::new()?;
    let ways: [(&str, Way); 3] = [
        ("reset", Peer::reset),
        ("finished", |peer| {
            peer.finish();
            Ok(())
        }),
        // The answer to this is not wanted any more.
        ("stopped", |peer| {
            peer.stop()?;
            peer.send(&frame(&echo(1)), LOG_LIMIT)?;
            Ok(())
        }),
    ];
    for (name, give_up) in ways {
        let mut hostile = site.negotiated(&Manner::default())?;
        let peer = peer(&mut hostile);
        give_up(peer)?;
        let end = peer.ended().with_context(|| name.to_owned())?;
        ensure!(
            matches!(end, ConnectionError::ApplicationClosed(_)),
            "{name}: {end:?}"
        );
        site.check_others()?;
    }
    Ok(())
}

fn a_connection_without_a_stream_ends_in_time() -> Result<()> {
    let mut site = Site::new()?;
    let mut hostile = site.connect(&Manner::default())?;
    let end = hostile.ended()?;
    ensure!(
        matches!(end, ConnectionError::ApplicationClosed(_)),
        "{end:?}"
    );
    site.check_log(&hostile, &[FAILED, "too long"])?;
    site.check_others()
}

fn garbage_closes_the_connection() -> Result<()> {
    let mut site = Site::new()?;
    let mut noise = [0; 300];
    Random::new(5).fill(&mut noise);
    noise[0] |= 1;
    let other_protocol = frame(&[&b"\xfaSMB"[..], &[0; 100]].concat());
    let first_bytes: [(&str, &[u8]); 5] = [
        ("HTTP", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        ("a keep-alive of NetBIOS", &[0x85, 0, 0, 0]),
        ("ones", &[0xff; 64]),
        ("noise", &noise),
        ("another protocol id", &other_protocol),
    ];
    for (name, bytes) in first_bytes {
        let mut hostile = site.raw()?;
        hostile.send(bytes)?;
        let reaction = hostile.reaction()?;
        ensure!(reaction == Reaction::Closed, "{name}: {reaction:?}");
        let words = ["disconnecting", "reason="];
        site.check_log(peer(&mut hostile), &words)
            .with_context(|| name.to_owned())?;
        site.check_others().with_context(|| name.to_owned())?;
    }
    Ok(())
}

fn a_large_frame_is_not_awaited() -> Result<()> {
    let mut site = Site::new()?;
    let largest = [0, 0xff, 0xff, 0xff];
    let mut hostile = site.raw()?;
    hostile.send(&largest)?;
    let reaction = hostile.reaction()?;
    ensure!(reaction == Reaction::Closed, "at once: {reaction:?}");
    site.check_log(peer(&mut hostile), &["disconnecting", "reason="])?;
    let mut known = Connection::on(site.raw()?, site.server.address("quic"))?;
    known.log_in(ALICE, "data")?;
    let mut hostile = known.into_raw();
    hostile.send(&largest)?;
    let reaction = hostile.reaction()?;
    ensure!(reaction == Reaction::Closed, "logged in: {reaction:?}");
    site.check_log(peer(&mut hostile), &["disconnecting", "reason="])?;
    site.check_others()
}

fn a_frame_that_trickles_in_is_not_awaited() -> Result<()> {
    let mut site = Site::new()?;
    let mut hostile = site.raw()?;
    let message = frame(&negotiate_message());
    let pause = Duration::from_millis(FRAME_TIME_MS / 20);
    for byte in message.chunks(1) {
        hostile.send(byte)?;
        if hostile.reaction_within(pause)? == Reaction::Closed {
            break;
        }
    }
    site.check_log(peer(&mut hostile), &["a frame arrives too slowly"])?;
    let reaction = hostile.reaction()?;
    ensure!(reaction == Reaction::Closed, "it goes on: {reaction:?}");
    site.check_others()
}

/// Bytes of memory that the server may need for one client: the windows of both directions, and
/// as much again for the allocator.
const MEMORY_OF_ONE: usize = (2 * (16 + 16)) << 20;

fn a_client_that_never_reads_is_disconnected_and_costs_little() -> Result<()> {
    let mut site = Site::new()?;
    let manner = Manner {
        window: 1000,
        ..Manner::default()
    };
    let before = site.memory()?;
    let mut hostile = site.negotiated(&manner)?;
    let most = flood(peer(&mut hostile), || site.memory())?;
    ensure!(
        most < before + MEMORY_OF_ONE,
        "{before} bytes became {most}"
    );
    site.check_log(
        peer(&mut hostile),
        &["disconnecting: the client receives too slowly"],
    )?;
    site.check_others()
}

/// Sends requests until the server disconnects, and reads no answer. Returns the peak of its memory
/// in bytes.
fn flood(peer: &mut Peer, memory: impl Fn() -> Result<usize>) -> Result<usize> {
    /// Number of batches that fill every window many times: a request and its answer have 72 bytes.
    const BATCHES: u64 = 4000;
    const BATCH: u64 = 500;
    let mut most = memory()?;
    for number in 0..BATCHES {
        // Each asks for more credits than it costs.
        let ids = 1 + number * BATCH..=(number + 1) * BATCH;
        let batch: Vec<u8> = ids.flat_map(|id| frame(&echo(id))).collect();
        let sent = peer.send(&batch, LOG_LIMIT)?;
        most = most.max(memory()?);
        if sent < batch.len() {
            return Ok(most);
        }
    }
    bail!("the server never had enough")
}

fn a_client_that_moves_is_not_followed() -> Result<()> {
    let mut site = Site::new()?;
    let mut hostile = site.negotiated(&Manner::default())?;
    let elsewhere = UdpSocket::bind("127.0.0.5:0")?;
    let home = peer(&mut hostile).move_to(elsewhere);
    hostile.send(&frame(&echo(1)))?;
    let reaction = hostile.reaction_within(Duration::from_secs(3))?;
    ensure!(
        reaction == Reaction::Silence,
        "it was followed: {reaction:?}"
    );
    site.check_others()?;
    peer(&mut hostile).move_to(home);
    let reaction = hostile.reaction()?;
    ensure!(
        matches!(reaction, Reaction::Answer(_)),
        "the connection is gone: {reaction:?}"
    );
    site.check_others()
}

fn echo(id: u64) -> Vec<u8> {
    [&header(command::ECHO, id)[..], &[4, 0, 0, 0]].concat()
}

fn negotiate_message() -> Vec<u8> {
    [&header(command::NEGOTIATE, 0)[..], &negotiate_body()].concat()
}
