//! A sender of datagrams to the port of QUIC without a finished handshake gets little back, costs
//! little and blocks no other client.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use quinn_proto::Dir;
use smbeam_tests::lab::Missing;
use smbeam_tests::quic::initial::{Answer, Initial, SMALLEST, answer};
use smbeam_tests::quic::{Manner, Peer};
use smbeam_tests::random::Random;
use smbeam_tests::raw::Raw;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{Plan, Server, Subject};
use smbeam_tests::{tests, wait};

tests!(
    a_made_up_address_gets_at_most_three_times_the_sent_bytes,
    a_small_first_packet_gets_nothing,
    ten_thousand_unfinished_handshakes_block_no_other_client,
    one_address_cannot_take_all_places,
    garbage_gets_less_than_it_is,
);

/// Every witness may stay without a login for as long as a test takes.
const LOGIN_TIME_MS: u64 = 300_000;
/// How long the server waits for the end of a handshake, and more.
const HANDSHAKE_TIME: Duration = Duration::from_secs(12);
/// How long a server that is busy may take to answer a datagram.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// Time without an answer after which no answer is expected.
const SILENCE: Duration = Duration::from_secs(1);
/// Factor by which an answer to an address without validation may exceed the received bytes.
/// RFC 9000 8.1
const AMPLIFICATION: usize = 3;

/// A server, and connections that must not notice anything.
struct Site {
    by_tcp: Raw,
    by_quic: Raw,
    server: Server,
    _scratch: Scratch,
}

impl Site {
    fn new(limits: &[(&str, u64)]) -> Result<Site> {
        if Subject::chosen() == Subject::Samba {
            return Err(Missing("smbd needs a module of the kernel for QUIC".into()).into());
        }
        let scratch = Scratch::new("hostile")?;
        let mut plan = Plan::sharing(&scratch.open_directory("share")?);
        let all = [("login_timeout_ms", LOGIN_TIME_MS)];
        let all = all.iter().chain(limits);
        plan.limits = all.map(|(name, value)| ((*name).into(), *value)).collect();
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

    fn quic(&self) -> SocketAddrV4 {
        self.server.address("quic")
    }

    /// A socket of a hostile client.
    fn socket(&self, source: Ipv4Addr) -> Result<UdpSocket> {
        let socket = UdpSocket::bind((source, 0))?;
        socket.connect(self.quic())?;
        Ok(socket)
    }

    /// Checks that the earlier connections work, and that a client at `source` can make a new one.
    fn check_others(&mut self, source: Ipv4Addr) -> Result<()> {
        self.by_tcp.echo().context("the witness of TCP")?;
        self.by_quic.echo().context("the witness of QUIC")?;
        Raw::negotiated(self.server.tcp).context("no new connection by TCP")?;
        let manner = Manner {
            source: source.into(),
            ..Manner::default()
        };
        let mut peer = Peer::connect(self.quic(), &manner)?;
        peer.open(Dir::Bi)?;
        Raw::on_peer(peer)
            .negotiate()
            .context("no new connection by QUIC")
    }

    /// Bytes of memory that the server has.
    fn memory(&self) -> Result<usize> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.server.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
        Ok(number.context("no VmRSS")?.trim().parse::<usize>()? << 10)
    }

    /// The log has, or gets, a line with all of these words.
    fn check_log(&self, words: &[&str]) -> Result<()> {
        wait::for_line(|| self.server.log(), words).map(drop)
    }
}

/// The next datagram that comes within `limit`.
fn next(socket: &UdpSocket, limit: Duration) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 65_536];
    socket
        .set_read_timeout(Some(limit.max(Duration::from_millis(1))))
        .ok()?;
    let count = socket.recv(&mut bytes).ok()?;
    bytes.truncate(count);
    Some(bytes)
}

/// Lengths in bytes of the datagrams that have arrived.
fn there(socket: &UdpSocket) -> Result<Vec<usize>> {
    socket.set_nonblocking(true)?;
    let mut bytes = vec![0; 65_536];
    let all = std::iter::from_fn(|| socket.recv(&mut bytes).ok()).collect();
    socket.set_nonblocking(false)?;
    Ok(all)
}

/// Bytes of all datagrams that come until there are none for `pause`, and no longer than `limit`.
fn gathered(socket: &UdpSocket, pause: Duration, limit: Duration) -> Vec<usize> {
    let end = Instant::now() + limit;
    let mut all = Vec::new();
    while let Some(bytes) = next(socket, pause.min(end - Instant::now().min(end))) {
        all.push(bytes.len());
        if Instant::now() >= end {
            break;
        }
    }
    all
}

fn id_of(number: u64) -> [u8; 8] {
    // As random as a client's: workers are chosen by it.
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

fn a_made_up_address_gets_at_most_three_times_the_sent_bytes() -> Result<()> {
    let mut site = Site::new(&[])?;
    let initial = Initial::new()?;
    for (number, size) in [SMALLEST, 1252, 1400].into_iter().enumerate() {
        let victim = site.socket(Ipv4Addr::new(127, 0, 0, 9))?;
        victim.send(&initial.datagram(id_of(number as u64), &[], size))?;
        // The answer, its repetitions, and the close of the server.
        let answers = gathered(&victim, HANDSHAKE_TIME, HANDSHAKE_TIME);
        let bytes: usize = answers.iter().sum();
        ensure!(bytes > 0, "no answer to {size} bytes");
        ensure!(
            bytes <= AMPLIFICATION * size,
            "{answers:?} bytes for {size}"
        );
        site.check_others(Ipv4Addr::LOCALHOST)?;
    }
    site.check_log(&["QUIC handshakes failed", "peer=127.0.0.9:", "too long"])
}

fn a_small_first_packet_gets_nothing() -> Result<()> {
    let mut site = Site::new(&[])?;
    let initial = Initial::new()?;
    let hostile = site.socket(Ipv4Addr::LOCALHOST)?;
    for size in [600, 1000, SMALLEST - 1] {
        hostile.send(&initial.datagram(id_of(size as u64), &[], size))?;
        let bytes = next(&hostile, SILENCE);
        ensure!(bytes.is_none(), "{size} bytes are answered with {bytes:?}");
    }
    hostile.send(&initial.datagram(id_of(7), &[], SMALLEST))?;
    let bytes = next(&hostile, ANSWER_LIMIT).context("it was not for their size")?;
    ensure!(answer(&bytes) == Answer::Initial, "{:?}", answer(&bytes));
    site.check_others(Ipv4Addr::LOCALHOST)
}

fn ten_thousand_unfinished_handshakes_block_no_other_client() -> Result<()> {
    const HANDSHAKES: u64 = 10_000;
    const SOCKETS: u64 = 500;
    /// The limit of half-open connections. A quarter of them get an answer without an address
    /// validation.
    const HALF_OPEN: u64 = 4096;
    /// Bytes of one that does, and of everything else that the flood makes the server need.
    const MEMORY: usize = (HALF_OPEN as usize / 4) * (96 << 10) + (16 << 20);
    let mut site = Site::new(&[("half_open", HALF_OPEN)])?;
    let initial = Initial::new()?;
    let before = site.memory()?;
    let sockets: Result<Vec<_>> = (0..SOCKETS)
        .map(|number| {
            let number = u8::try_from(number / 2).unwrap_or(0);
            site.socket(Ipv4Addr::new(127, 0, 1, number))
        })
        .collect();
    let sockets = sockets?;
    let (mut accepted, mut asked, mut most) = (0, 0, before);
    for round in 0..HANDSHAKES / SOCKETS {
        for (number, socket) in sockets.iter().enumerate() {
            let id = id_of(1 + round * SOCKETS + number as u64);
            // Repetitions of an earlier answer.
            there(socket)?;
            socket.send(&initial.datagram(id, &[], SMALLEST))?;
            // Not faster than the server: a datagram that its socket drops tests nothing.
            match answer(&next(socket, ANSWER_LIMIT).context("no answer")?) {
                Answer::Initial => accepted += 1,
                Answer::Retry(..) => asked += 1,
                Answer::Other => {}
            }
        }
        most = most.max(site.memory()?);
        site.check_others(Ipv4Addr::new(127, 0, 0, 3))
            .with_context(|| format!("after {accepted} handshakes and {asked} retries"))?;
    }
    ensure!(
        accepted > 0 && asked > HANDSHAKES / 2,
        "{accepted} handshakes, {asked} retries"
    );
    println!("    {accepted} handshakes, {asked} retries, {before} bytes became {most}");
    ensure!(most < before + MEMORY, "{before} bytes became {most}");
    site.check_log(&["QUIC handshakes failed", "peer=127.0.1.", "too long"])?;
    // The places are free again: a new client gets no retry any more.
    let mut number = HANDSHAKES;
    let hostile = site.socket(Ipv4Addr::new(127, 0, 2, 1))?;
    wait::until("a place without a retry", 2 * HANDSHAKE_TIME, || {
        number += 1;
        let packet = initial.datagram(id_of(number), &[], SMALLEST);
        hostile.send(&packet).is_ok()
            && next(&hostile, ANSWER_LIMIT).is_some_and(|got| answer(&got) == Answer::Initial)
    })?;
    site.check_others(Ipv4Addr::new(127, 0, 0, 3))
}

/// Even one that shows that it is its own.
fn one_address_cannot_take_all_places() -> Result<()> {
    const PER_ADDRESS: u64 = 16;
    let mut site = Site::new(&[("half_open_per_address", PER_ADDRESS)])?;
    let initial = Initial::new()?;
    let source = Ipv4Addr::new(127, 0, 0, 9);
    let mut let_in = 0;
    for number in 0..4 * PER_ADDRESS {
        let hostile = site.socket(source)?;
        hostile.send(&initial.datagram(id_of(number), &[], SMALLEST))?;
        let first = next(&hostile, ANSWER_LIMIT).context("no answer")?;
        if let Answer::Retry(id, token) = answer(&first) {
            hostile.send(&initial.addressed(&id, &token, SMALLEST))?;
            let second = next(&hostile, ANSWER_LIMIT).context("no answer to the token")?;
            // A refused client gets a close in one short packet, the others a handshake.
            let_in += u64::from(second.len() >= SMALLEST);
        } else {
            let_in += 1;
        }
    }
    ensure!(let_in == PER_ADDRESS, "{let_in} of {PER_ADDRESS} came in");
    site.check_log(&[
        "connections refused",
        "address=127.0.0.9",
        "limits.half_open_per_address",
    ])?;
    site.check_others(Ipv4Addr::new(127, 0, 0, 3))?;
    // A token is good for one address only.
    let (here, there) = (
        site.socket(source)?,
        site.socket(Ipv4Addr::new(127, 0, 0, 10))?,
    );
    here.send(&initial.datagram(id_of(1000), &[], SMALLEST))?;
    let first = next(&here, ANSWER_LIMIT).context("no answer")?;
    let Answer::Retry(id, token) = answer(&first) else {
        anyhow::bail!("no retry: {:?}", answer(&first));
    };
    there.send(&initial.addressed(&id, &token, SMALLEST))?;
    let stolen = next(&there, ANSWER_LIMIT).context("no answer to the stolen token")?;
    ensure!(
        stolen.len() < SMALLEST,
        "the token of another address is taken: {} bytes",
        stolen.len()
    );
    site.check_others(Ipv4Addr::new(127, 0, 0, 3))
}

fn garbage_gets_less_than_it_is() -> Result<()> {
    const EACH: usize = 1000;
    /// Its name, its length in bytes, and the change of the random bytes.
    type Kind = (&'static str, usize, Box<dyn Fn(&mut Vec<u8>)>);
    let mut site = Site::new(&[])?;
    let mut random = Random::new(11);
    let long = |version: [u8; 4]| {
        move |bytes: &mut Vec<u8>| {
            bytes[0] |= 0xc0;
            bytes[1..5].copy_from_slice(&version);
            bytes[5] = 8;
            bytes[14] = 8;
        }
    };
    let short = |bytes: &mut Vec<u8>| bytes[0] = bytes[0] & 0x3f | 0x40;
    let kinds: [Kind; 7] = [
        ("noise", SMALLEST, Box::new(|_| ())),
        ("an unknown version", SMALLEST, Box::new(long(*b"!SMB"))),
        (
            "a negotiation of versions",
            SMALLEST,
            Box::new(long([0; 4])),
        ),
        (
            "a first packet of noise",
            SMALLEST,
            Box::new(long([0, 0, 0, 1])),
        ),
        ("a short header", SMALLEST, Box::new(short)),
        ("a small short header", 40, Box::new(short)),
        ("a tiny short header", 20, Box::new(short)),
    ];
    let before = site.memory()?;
    for (name, size, make) in kinds {
        let hostile = site.socket(Ipv4Addr::new(127, 0, 0, 9))?;
        let (mut sent, mut got) = (0, 0);
        for _ in 0..EACH {
            let mut bytes = vec![0; size];
            random.fill(&mut bytes);
            make(&mut bytes);
            sent += hostile.send(&bytes)?;
            for back in there(&hostile)? {
                ensure!(back < size, "{name}: {back} bytes");
                got += back;
            }
        }
        got += gathered(&hostile, SILENCE, ANSWER_LIMIT)
            .iter()
            .sum::<usize>();
        println!("    {name}: {sent} bytes were answered with {got}");
        ensure!(got <= sent, "{name}: {got} bytes for {sent}");
        site.check_others(Ipv4Addr::LOCALHOST).context(name)?;
    }
    let after = site.memory()?;
    ensure!(after < before + (16 << 20), "{before} bytes became {after}");
    // Nothing at all, and every short length.
    let hostile = site.socket(Ipv4Addr::new(127, 0, 0, 9))?;
    for size in 0..64 {
        let mut bytes = vec![0; size];
        random.fill(&mut bytes);
        hostile.send(&bytes)?;
    }
    site.check_others(Ipv4Addr::LOCALHOST)
}
