//! A server of SMB Direct that lies, breaks the rules or stays silent: the client gives up within
//! its time limit, and reports the reason.

use std::path::Path;
use std::sync::mpsc;
use std::thread;

use anyhow::{Context as _, Result, bail, ensure};
use smbeam_tests::client::Client;
use smbeam_tests::direct::{ANSWER_LIMIT, Direct, Header, Heard, RECEIVES, Transfer, kind, port};
use smbeam_tests::scratch::Scratch;
use smbeam_tests::tests;
use socket2::{Domain, SockAddr, Socket, Type};

tests!(
    every_field_of_the_answer_is_checked,
    transfers_of_a_server_are_checked,
    garbage_of_a_server_ends_the_connection,
    silence_is_borne_for_as_long_as_was_said,
);

const PORT: u16 = 5445;
/// The exit code of a client that cannot connect or stay connected.
const CONNECTION_LOST: i32 = 3;

/// A server's negotiate response. \[MS-SMBD\] 2.2.2
#[derive(Clone, Copy)]
struct Response {
    short: [u16; 6],
    long: [u32; 5],
}

const GOOD: Response = Response {
    short: [0x0100, 0x0100, 0x0100, 0, 255, 255],
    long: [0, 1 << 20, 8192, 8192, 1 << 20],
};

impl Response {
    fn encode(&self) -> Vec<u8> {
        let short = self.short.iter().flat_map(|field| field.to_le_bytes());
        let long = self.long.iter().flat_map(|field| field.to_le_bytes());
        short.chain(long).collect()
    }
}

type Script = dyn Fn(&Direct) -> Result<()> + Send + Sync;

/// Runs a command against a server that executes `script`, and returns its output.
fn run(script: &'static Script, arguments: &[&str]) -> Result<smbeam_tests::client::Output> {
    let meeting = Scratch::new("rdma")?;
    let listener = listen(meeting.path())?;
    let (done, is_done) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let server = scope.spawn(move || -> Result<()> {
            listener.set_read_timeout(Some(ANSWER_LIMIT))?;
            let (socket, _) = listener.accept()?;
            let direct = Direct::on(socket, 0);
            let result = script(&direct);
            // It stays until the client has ended, unless the script is to leave.
            let _ = is_done.recv();
            result
        });
        let choice = format!("emulated:{}", meeting.path().display());
        let client = Client::of(&format!("127.0.0.1:{PORT}"))?
            .argument("--transports=smbdirect")
            .variable("SMBEAM_RDMA", Some(&choice));
        let output = client.try_run(arguments);
        drop(done);
        let result = server.join();
        let output = output?;
        match result {
            Ok(result) => result.with_context(|| format!("the client: {output}"))?,
            Err(_) => bail!("the server panicked"),
        }
        Ok(output)
    })
}

fn listen(directory: &Path) -> Result<Socket> {
    let socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None)?;
    socket.bind(&SockAddr::unix(port::path_in(directory, PORT))?)?;
    socket.listen(5)?;
    Ok(socket)
}

/// Checks that the client gives up at once and reports it.
fn fails(script: &'static Script, what: &str, words: &str) -> Result<()> {
    fails_within("--timeout=30", script, what, words)
}

/// Checks that the client gives up after its time limit and reports it.
fn waits_in_vain(script: &'static Script, what: &str, words: &str) -> Result<()> {
    fails_within("--timeout=2", script, what, words)
}

fn fails_within(limit: &str, script: &'static Script, what: &str, words: &str) -> Result<()> {
    let output = run(script, &["ls", limit, "{}"]).with_context(|| what.to_owned())?;
    ensure!(
        output.code == Some(CONNECTION_LOST) && output.errors.contains(words),
        "{what}: {output}"
    );
    Ok(())
}

/// Takes the negotiation in and answers.
fn negotiate(direct: &Direct, response: &Response) -> Result<()> {
    direct.hello(RECEIVES + 1)?;
    let heard = direct.hear_sent(ANSWER_LIMIT)?;
    ensure!(
        matches!(&heard, Heard::Sent(bytes) if bytes.len() == 20),
        "{heard:?}"
    );
    direct.send(&response.encode())
}

/// Waits for the first message of SMB.
fn hear_smb(direct: &Direct) -> Result<()> {
    loop {
        match direct.hear_sent(ANSWER_LIMIT)? {
            Heard::Sent(bytes) if bytes.get(24..28) == Some(b"\xfeSMB") => return Ok(()),
            Heard::Sent(_) => {}
            heard => bail!("no SMB: {heard:?}"),
        }
    }
}

fn every_field_of_the_answer_is_checked() -> Result<()> {
    const SHORT: [&str; 6] = [
        "MinVersion",
        "MaxVersion",
        "NegotiatedVersion",
        "Reserved",
        "CreditsRequested",
        "CreditsGranted",
    ];
    const LONG: [&str; 5] = [
        "Status",
        "MaxReadWriteSize",
        "PreferredSendSize",
        "MaxReceiveSize",
        "MaxFragmentedSize",
    ];
    const TAKEN: &str = "";
    let table: [(&str, u32, &str); 28] = [
        ("MinVersion", 0, TAKEN),
        ("MinVersion", 0xffff, TAKEN),
        ("MaxVersion", 0xffff, TAKEN),
        ("NegotiatedVersion", 0, "NegotiatedVersion is 0"),
        ("NegotiatedVersion", 0xffff, "NegotiatedVersion is 65535"),
        ("Reserved", 0xffff, TAKEN),
        ("CreditsRequested", 0, "CreditsRequested is 0"),
        ("CreditsRequested", 1, TAKEN),
        ("CreditsRequested", 0xffff, TAKEN),
        ("CreditsGranted", 0, "CreditsGranted is 0"),
        ("CreditsGranted", 1, TAKEN),
        ("CreditsGranted", 0xffff, TAKEN),
        ("Status", 1, "refused SMB Direct"),
        ("Status", 0xc000_00bb, "refused SMB Direct"),
        ("Status", u32::MAX, "refused SMB Direct"),
        ("MaxReadWriteSize", 0, TAKEN),
        ("MaxReadWriteSize", u32::MAX, TAKEN),
        ("PreferredSendSize", 0, TAKEN),
        ("PreferredSendSize", 8193, "PreferredSendSize is 8193"),
        ("PreferredSendSize", u32::MAX, "PreferredSendSize is"),
        ("MaxReceiveSize", 0, "MaxReceiveSize is 0"),
        ("MaxReceiveSize", 127, "MaxReceiveSize is 127"),
        ("MaxReceiveSize", 128, TAKEN),
        ("MaxReceiveSize", u32::MAX, TAKEN),
        ("MaxFragmentedSize", 0, "MaxFragmentedSize is 0"),
        ("MaxFragmentedSize", 131_071, "is 131071"),
        ("MaxFragmentedSize", 131_072, TAKEN),
        ("MaxFragmentedSize", u32::MAX, TAKEN),
    ];
    for (field, value, words) in table {
        let what = format!("{field} {value}");
        let mut response = GOOD;
        match SHORT.iter().position(|name| *name == field) {
            Some(place) => response.short[place] = u16::try_from(value)?,
            None => {
                let place = LONG.iter().position(|name| *name == field);
                response.long[place.context("a field")?] = value;
            }
        }
        let is_taken = words == TAKEN;
        let script: Box<Script> = Box::new(move |direct| {
            negotiate(direct, &response)?;
            if !is_taken {
                return Ok(());
            }
            hear_smb(direct)?;
            // It was enough.
            direct.raw(&[9; 24])
        });
        fails(Box::leak(script), &what, words)?;
    }
    for length in [0, 1, 31] {
        let script: Box<Script> = Box::new(move |direct| {
            direct.hello(RECEIVES + 1)?;
            direct.hear_sent(ANSWER_LIMIT)?;
            direct.send(&GOOD.encode()[..length])
        });
        let what = format!("an answer of {length} bytes");
        fails(Box::leak(script), &what, "malformed SMB Direct message")?;
    }
    Ok(())
}

fn transfers_of_a_server_are_checked() -> Result<()> {
    let transfers: [(&str, Transfer, usize, &str); 8] = [
        (
            "no request",
            wants(Transfer::of(0, 0), 0),
            0,
            "CreditsRequested is 0",
        ),
        (
            "too long",
            Transfer::of(100, u32::MAX),
            100,
            "a fragmented message of",
        ),
        (
            "nothing, of much",
            Transfer::of(0, 5),
            0,
            "a fragment states 5 remaining bytes",
        ),
        (
            "offset",
            at(Transfer::of(100, 0), 25),
            100,
            "malformed SMB Direct message",
        ),
        (
            "offset",
            at(Transfer::of(100, 0), 0),
            100,
            "malformed SMB Direct message",
        ),
        (
            "offset",
            at(Transfer::of(100, 0), u32::MAX - 7),
            100,
            "malformed SMB Direct message",
        ),
        (
            "length",
            Transfer::of(101, 0),
            100,
            "malformed SMB Direct message",
        ),
        (
            "length",
            Transfer::of(u32::MAX, 0),
            100,
            "malformed SMB Direct message",
        ),
    ];
    for (name, transfer, length, words) in transfers {
        let script: Box<Script> = Box::new(move |direct| {
            negotiate(direct, &GOOD)?;
            hear_smb(direct)?;
            direct.send(&transfer.encode(&vec![7; length]))
        });
        fails(Box::leak(script), name, words)?;
    }
    // More SENDs than the client has granted credits: it received nothing that grants new ones.
    let script: &Script = &|direct| {
        negotiate(direct, &GOOD)?;
        for _ in 0..2000 {
            direct.send(&wants(Transfer::of(0, 0), 1).encode(&[]))?;
        }
        Ok(())
    };
    fails(script, "no credit", "")
}

fn wants(mut transfer: Transfer, credits: u16) -> Transfer {
    transfer.short[0] = credits;
    transfer
}

fn at(mut transfer: Transfer, offset: u32) -> Transfer {
    transfer.long[1] = offset;
    transfer
}

fn garbage_of_a_server_ends_the_connection() -> Result<()> {
    let of = |kind: u8| Header {
        kind,
        ..Header::default()
    };
    fails(
        &|direct| direct.raw(b"HTTP/1.1 400"),
        "HTTP",
        "a message without a header",
    )?;
    let cases = [
        (of(0), "a message of kind 0"),
        (of(kind::HELLO), "hello twice"),
        (of(kind::WITHDRAWN), "a confirmation without a withdrawal"),
        (
            of(kind::SEND_AND_INVALIDATE),
            "an unknown key is invalidated",
        ),
    ];
    for (header, words) in cases {
        let script: Box<Script> = Box::new(move |direct| {
            negotiate(direct, &GOOD)?;
            hear_smb(direct)?;
            direct.say(header)
        });
        fails(Box::leak(script), words, words)?;
    }
    let script: Box<Script> = Box::new(move |direct| direct.say(of(kind::HELLO)));
    fails(Box::leak(script), "another version", "version 0, not 1")
}

fn silence_is_borne_for_as_long_as_was_said() -> Result<()> {
    waits_in_vain(&|_| Ok(()), "no hello", "timed out")?;
    waits_in_vain(&|direct| direct.hello(RECEIVES), "no answer", "timed out")?;
    let one_credit: &Script = &|direct| {
        let mut response = GOOD;
        response.short[5] = 1;
        negotiate(direct, &response)?;
        hear_smb(direct)
    };
    // That takes as long as a login may.
    waits_in_vain(
        one_credit,
        "no NEGOTIATE response",
        "no response to NEGOTIATE",
    )?;
    fails(
        &|direct| direct.hello(0),
        "no receives",
        "the peer has no receive posted",
    )
}
