//! Bad input of a client over SMB Direct, or below it, ends at most the connection of that client.
//! The server logs the client and the reason.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::client::Client;
use smbeam_tests::direct::site::{FILE, Site};
use smbeam_tests::direct::smb::{Named, SMB_3_0_2, Session};
use smbeam_tests::direct::{
    ANSWER_LIMIT, Direct, Header, Heard, Negotiate, RECEIVES, Transfer, kind,
};
use smbeam_tests::raw::{self, header, negotiate_body};
use smbeam_tests::{scale, tests, wait};

tests!(
    every_field_of_the_negotiation_is_checked,
    every_field_of_a_transfer_is_checked,
    lies_about_fragments_are_found_out,
    a_peer_without_credits_must_not_send,
    a_peer_that_grants_no_credits_is_disconnected,
    a_peer_without_posted_receives_is_disconnected,
    a_message_that_does_not_end_is_refused,
    garbage_below_smb_direct_is_refused,
    memory_of_others_is_out_of_reach,
    closed_connections_leave_nothing_behind,
    killed_clients_leave_nothing_behind,
);

/// Time without a message after which the server is considered waiting.
const SILENCE: Duration = Duration::from_millis(300);

/// The outcome of a message.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// It is taken.
    Taken,
    /// It is taken, and there is nothing to answer.
    Silent,
    /// The connection ends, and the log contains this text.
    Ended(&'static str),
}
use Fate::{Ended, Silent, Taken};

fn smb_negotiate() -> Vec<u8> {
    [
        &header(raw::command::NEGOTIATE, 0)[..],
        &negotiate_body()[..],
    ]
    .concat()
}

/// `direct` meets its fate.
fn meets(site: &mut Site, what: &str, direct: &mut Direct, fate: Fate) -> Result<()> {
    match fate {
        Taken => {
            let heard = direct.hear_message(ANSWER_LIMIT)?;
            ensure!(matches!(heard, Heard::Sent(_)), "{what}: {heard:?}");
        }
        Silent => {
            let heard = direct.hear_message(SILENCE)?;
            ensure!(heard == Heard::Nothing, "{what}: {heard:?}");
        }
        Ended(reason) => {
            ensure!(
                direct.is_closed(ANSWER_LIMIT)?,
                "{what}: the server goes on"
            );
            let peer = format!("peer={}", direct.name());
            site.wait_for_log(&[&peer, reason])
                .with_context(|| what.to_owned())?;
        }
    }
    site.check().with_context(|| what.to_owned())
}

fn every_field_of_the_negotiation_is_checked() -> Result<()> {
    const SHORT: [&str; 4] = ["MinVersion", "MaxVersion", "Reserved", "CreditsRequested"];
    const LONG: [&str; 3] = ["PreferredSendSize", "MaxReceiveSize", "MaxFragmentedSize"];
    const VERSIONS: &str = "are not supported";
    let table: [(&str, u32, Fate); 24] = [
        ("MinVersion", 0, Taken),
        ("MinVersion", 0x0101, Ended(VERSIONS)),
        ("MinVersion", 0xffff, Ended(VERSIONS)),
        ("MaxVersion", 0, Ended(VERSIONS)),
        ("MaxVersion", 0x00ff, Ended(VERSIONS)),
        ("MaxVersion", 0xffff, Taken),
        ("Reserved", 0, Taken),
        ("Reserved", 0xffff, Taken),
        ("CreditsRequested", 0, Ended("CreditsRequested is 0")),
        ("CreditsRequested", 1, Taken),
        ("CreditsRequested", 0xffff, Taken),
        ("PreferredSendSize", 0, Taken),
        ("PreferredSendSize", 127, Taken),
        ("PreferredSendSize", u32::MAX, Taken),
        ("MaxReceiveSize", 0, Ended("MaxReceiveSize is 0")),
        ("MaxReceiveSize", 127, Ended("MaxReceiveSize is 127")),
        ("MaxReceiveSize", 128, Taken),
        ("MaxReceiveSize", u32::MAX, Taken),
        ("MaxFragmentedSize", 0, Ended("MaxFragmentedSize is 0")),
        ("MaxFragmentedSize", 131_071, Ended("is 131071")),
        ("MaxFragmentedSize", 131_072, Taken),
        ("MaxFragmentedSize", (1 << 24) - 1, Taken),
        ("MaxFragmentedSize", 1 << 31, Taken),
        ("MaxFragmentedSize", u32::MAX, Taken),
    ];
    let mut site = Site::new(&[])?;
    for (field, value, fate) in table {
        let what = format!("{field} {value}");
        let mut request = Negotiate::default();
        match SHORT.iter().position(|name| *name == field) {
            Some(place) => request.short[place] = u16::try_from(value)?,
            None => {
                let place = LONG.iter().position(|name| *name == field);
                request.long[place.context("a field")?] = value;
            }
        }
        let mut direct = Direct::connect(&site.server)?;
        direct.hello(RECEIVES + 1)?;
        if matches!(fate, Taken) {
            direct.negotiate(&request).context(what.clone())?;
            direct.send_message(&smb_negotiate())?;
        } else {
            direct.send(&request.encode())?;
        }
        meets(&mut site, &what, &mut direct, fate)?;
    }
    let whole = Negotiate::default().encode();
    let longer = |length: usize| [&whole[..], &vec![0; length - whole.len()]].concat();
    let messages: [(Vec<u8>, Fate); 5] = [
        (Vec::new(), Ended("malformed SMB Direct message")),
        (whole[..1].to_vec(), Ended("malformed SMB Direct message")),
        (whole[..19].to_vec(), Ended("malformed SMB Direct message")),
        (longer(8193), Ended("longer than its receive")),
        (longer(60_000), Ended("longer than its receive")),
    ];
    for (message, fate) in messages {
        let what = format!("a request of {} bytes", message.len());
        let mut direct = Direct::connect(&site.server)?;
        direct.hello(RECEIVES + 1)?;
        direct.send(&message)?;
        meets(&mut site, &what, &mut direct, fate)?;
    }
    site.wait_until_alone()
}

fn every_field_of_a_transfer_is_checked() -> Result<()> {
    const SHORT: [&str; 4] = ["CreditsRequested", "CreditsGranted", "Flags", "Reserved"];
    const LONG: [&str; 3] = ["RemainingDataLength", "DataOffset", "DataLength"];
    const MALFORMED: &str = "malformed SMB Direct message";
    let data = smb_negotiate();
    let length = u32::try_from(data.len())?;
    let table: [(&str, u32, Fate); 25] = [
        ("CreditsRequested", 0, Ended("CreditsRequested is 0")),
        ("CreditsRequested", 1, Taken),
        ("CreditsRequested", 0xffff, Taken),
        ("CreditsGranted", 0, Taken),
        ("CreditsGranted", 0xffff, Ended("the peer granted")),
        ("Flags", 0, Taken),
        ("Flags", 1, Taken),
        ("Flags", 0xffff, Taken),
        ("Reserved", 0xffff, Taken),
        ("RemainingDataLength", 1, Silent),
        (
            "RemainingDataLength",
            (1 << 24) - 1 - length,
            Ended("at most 262144 are allowed now"),
        ),
        (
            "RemainingDataLength",
            (1 << 24) - length,
            Ended("a fragmented message of"),
        ),
        (
            "RemainingDataLength",
            u32::MAX,
            Ended("a fragmented message of"),
        ),
        ("DataOffset", 0, Ended(MALFORMED)),
        ("DataOffset", 16, Ended(MALFORMED)),
        ("DataOffset", 20, Ended(MALFORMED)),
        ("DataOffset", 25, Ended(MALFORMED)),
        ("DataOffset", 32, Ended(MALFORMED)),
        ("DataOffset", u32::MAX - 7, Ended(MALFORMED)),
        ("DataOffset", u32::MAX, Ended(MALFORMED)),
        ("DataLength", 0, Silent),
        ("DataLength", length + 1, Ended(MALFORMED)),
        ("DataLength", 8192, Ended(MALFORMED)),
        ("DataLength", u32::MAX - 24, Ended(MALFORMED)),
        ("DataLength", u32::MAX, Ended(MALFORMED)),
    ];
    let mut site = Site::new(&[])?;
    for (field, value, fate) in table {
        let what = format!("{field} {value}");
        let mut transfer = Transfer::of(length, 0);
        match SHORT.iter().position(|name| *name == field) {
            Some(place) => transfer.short[place] = u16::try_from(value)?,
            None => {
                let place = LONG.iter().position(|name| *name == field);
                transfer.long[place.context("a field")?] = value;
            }
        }
        let mut direct = Direct::negotiated(&site.server)?;
        direct.send(&transfer.encode(&data))?;
        meets(&mut site, &what, &mut direct, fate)?;
    }
    for length in [0, 1, 19] {
        let mut direct = Direct::negotiated(&site.server)?;
        direct.send(&Transfer::of(0, 0).encode(&[])[..length])?;
        let what = format!("a transfer of {length} bytes");
        meets(&mut site, &what, &mut direct, Ended(MALFORMED))?;
    }
    site.wait_until_alone()
}

fn lies_about_fragments_are_found_out() -> Result<()> {
    let mut site = Site::new(&[])?;
    // The first announces 1000 more bytes. The second has 1000 bytes and announces them again.
    let lies = [
        (1000, 1),
        (999, 0),
        (1000, u32::MAX - 1000),
        (1001, 0),
        (1, 0),
        (1, 1000),
        (0, 1),
    ];
    for (length, remaining) in lies {
        let mut direct = Direct::negotiated(&site.server)?;
        direct.send(&Transfer::of(100, 1000).encode(&[7; 100]))?;
        let second = Transfer::of(length, remaining);
        direct.send(&second.encode(&vec![7; length as usize]))?;
        let what = format!("{length} bytes and {remaining}");
        let reason = match remaining {
            ..=1000 => "a fragment states",
            _ => "a fragmented message of",
        };
        meets(&mut site, &what, &mut direct, Ended(reason))?;
    }
    let mut direct = Direct::connect(&site.server)?;
    direct.hello(RECEIVES + 1)?;
    let mut request = Negotiate::default();
    request.long[0] = 1024;
    direct.negotiate(&request)?;
    direct.send(&Transfer::of(1001, 0).encode(&[7; 1001]))?;
    let fate = Ended("an RDMA SEND of 1025 bytes");
    meets(&mut site, "more than was agreed on", &mut direct, fate)
}

/// A connection that has granted no credits and has posted `posted` receives.
fn without_grants(site: &Site, posted: u32) -> Result<Direct> {
    let direct = Direct::connect(&site.server)?;
    direct.hello(posted)?;
    direct.send(&Negotiate::default().encode())?;
    let heard = direct.hear_sent(ANSWER_LIMIT)?;
    ensure!(matches!(heard, Heard::Sent(_)), "{heard:?}");
    Ok(direct)
}

fn a_peer_without_credits_must_not_send() -> Result<()> {
    let mut site = Site::new(&[])?;
    let mut direct = without_grants(&site, RECEIVES)?;
    for _ in 0..=RECEIVES {
        direct.send(&Transfer::of(0, 0).encode(&[]))?;
    }
    let fate = Ended("sent without an SMB Direct credit");
    meets(&mut site, "one too many", &mut direct, fate)
}

fn a_peer_that_grants_no_credits_is_disconnected() -> Result<()> {
    // The server drops the pending messages at once, and does not wait for the end of a time limit.
    let limits = [("credit_timeout_ms", 1000), ("shutdown_ms", 600_000)];
    let mut site = Site::new(&limits)?;
    let mut direct = without_grants(&site, RECEIVES)?;
    let message = smb_negotiate();
    let transfer = Transfer::of(u32::try_from(message.len())?, 0);
    direct.send(&transfer.encode(&message))?;
    let fate = Ended("grants no SMB Direct credits");
    meets(&mut site, "no credits", &mut direct, fate)?;
    site.wait_until_alone()
}

fn a_peer_without_posted_receives_is_disconnected() -> Result<()> {
    let mut site = Site::new(&[])?;
    let fate = Ended("the peer has no receive posted");
    let mut direct = Direct::connect(&site.server)?;
    direct.hello(0)?;
    direct.send(&Negotiate::default().encode())?;
    meets(&mut site, "none at all", &mut direct, fate)?;
    // Credits that no receive stands for.
    let mut direct = without_grants(&site, 1)?;
    let message = smb_negotiate();
    let mut transfer = Transfer::of(u32::try_from(message.len())?, 0);
    transfer.short[1] = 255;
    direct.send(&transfer.encode(&message))?;
    meets(&mut site, "credits for nothing", &mut direct, fate)
}

fn a_message_that_does_not_end_is_refused() -> Result<()> {
    let mut site = Site::new(&[("frame_timeout_ms", 1000)])?;
    let mut direct = Direct::negotiated(&site.server)?;
    direct.send(&Transfer::of(100, 1000).encode(&[7; 100]))?;
    let fate = Ended("a frame arrives too slowly");
    meets(&mut site, "a tenth", &mut direct, fate)
}

fn garbage_below_smb_direct_is_refused() -> Result<()> {
    let mut site = Site::new(&[])?;
    let of = |kind: u8| Header {
        kind,
        ..Header::default()
    };
    let hello = Header {
        key: 1,
        ..of(kind::HELLO)
    };
    let region = Header {
        key: 5,
        address: 4096,
        length: 4096,
        ..of(kind::TO_WRITE)
    };
    let encoded = |headers: &[Header]| headers.iter().map(Header::encode).collect::<Vec<_>>();
    let rules = "the peer violates the protocol: ";
    let many: Vec<Header> = (0..5000).map(|key| Header { key, ..region }).collect();
    let cases: Vec<(&str, Vec<Vec<u8>>, &'static str)> = vec![
        (
            "another version",
            encoded(&[Header { key: 7, ..hello }]),
            "version 7, not 1",
        ),
        (
            "no version",
            encoded(&[of(kind::HELLO)]),
            "version 0, not 1",
        ),
        ("hello twice", encoded(&[hello, hello]), "hello twice"),
        (
            "no hello",
            encoded(&[of(kind::SEND)]),
            "a message before hello",
        ),
        (
            "nothing known",
            encoded(&[hello, of(0)]),
            "a message of kind 0",
        ),
        (
            "nothing known",
            encoded(&[hello, of(9)]),
            "a message of kind 9",
        ),
        (
            "nothing known",
            encoded(&[of(255)]),
            "a message of kind 255",
        ),
        ("a byte", vec![vec![1]], "a message without a header"),
        (
            "23 bytes",
            vec![hello.encode(), vec![2; 23]],
            "a message without a header",
        ),
        (
            "bytes behind",
            vec![hello.encode(), [of(2).encode(), vec![1]].concat()],
            "bytes after a header",
        ),
        (
            "much behind",
            vec![hello.encode(), [of(2).encode(), vec![1; 100_000]].concat()],
            "bytes",
        ),
        (
            "receives",
            encoded(&[Header {
                posted: u32::MAX,
                ..hello
            }]),
            "too many receives",
        ),
        (
            "receives",
            encoded(&[
                hello,
                Header {
                    posted: 1 << 20,
                    ..of(2)
                },
                Header { posted: 1, ..of(2) },
            ]),
            "too many receives",
        ),
        (
            "an unknown key",
            encoded(&[hello, of(kind::SEND_AND_INVALIDATE)]),
            "an unknown key is invalidated",
        ),
        (
            "an unknown key",
            encoded(&[hello, of(kind::WITHDRAWN)]),
            "a confirmation without a withdrawal",
        ),
        (
            "a key twice",
            encoded(&[hello, region, region]),
            "one key for two regions",
        ),
        (
            "beyond all",
            encoded(&[
                hello,
                Header {
                    address: u64::MAX - 7,
                    ..region
                },
            ]),
            "beyond the last address",
        ),
        (
            "regions",
            encoded(&[&[hello][..], &many].concat()),
            "too many regions",
        ),
    ];
    for (name, messages, reason) in cases {
        let mut direct = Direct::connect(&site.server)?;
        for message in messages {
            direct.raw(&message)?;
        }
        meets(&mut site, name, &mut direct, Ended(reason))?;
        site.wait_for_log(&[&direct.name(), rules, reason])?;
    }
    // The server answers a withdrawal without an announcement, any number of times.
    let mut direct = Direct::negotiated(&site.server)?;
    for key in 0..1000 {
        direct.say(Header {
            key,
            ..of(kind::WITHDRAW)
        })?;
        ensure!(direct.hear(ANSWER_LIMIT)? != Heard::Closed, "{key}");
    }
    direct.send_message(&smb_negotiate())?;
    meets(&mut site, "withdrawals", &mut direct, Taken)?;
    drop(direct);
    site.wait_until_alone()
}

/// The heap of the server, where a client would find the keys of all others.
fn heap(site: &Site) -> Result<u64> {
    let maps = fs::read_to_string(format!("/proc/{}/maps", site.server.pid()))?;
    let line = maps.lines().find(|line| line.ends_with("[heap]"));
    let start = line.and_then(|line| line.split('-').next());
    Ok(u64::from_str_radix(start.context("no heap")?, 16)?)
}

fn memory_of_others_is_out_of_reach() -> Result<()> {
    let mut site = Site::new(&[])?;
    let path = site.scratch.path().join("share").join(FILE);
    let before = fs::read(&path)?;
    let places = [heap(&site)?, 0, 4096, 0xffff_ffff_8100_0000, 1 << 46];
    for address in places {
        for (command, kind) in [(8, kind::TO_WRITE), (9, kind::TO_READ)] {
            let mut session = Session::direct(&site.server, SMB_3_0_2, FILE)?;
            session.below()?.say(Header {
                kind,
                posted: 0,
                key: 3,
                length: 4096,
                address,
            })?;
            let named = Named::new(4096, &[(address, 3, 4096)]);
            let body = match command {
                8 => session.read_body(&named),
                _ => session.write_body(&named),
            };
            let message = session.request(command, &body);
            session.send(&message)?;
            let what = format!("command {command} at {address:#x}");
            let fate = Ended("the operation may not access the peer's memory");
            meets(&mut site, &what, session.below()?, fate)?;
        }
    }
    ensure!(fs::read(&path)? == before, "something was written");
    site.wait_until_alone()
}

/// Goes as far as `stage`, and away.
fn leave_at(site: &Site, stage: usize) -> Result<()> {
    if stage == 0 {
        return Direct::connect(&site.server).map(drop);
    }
    if stage <= 3 {
        let direct = Direct::connect(&site.server)?;
        direct.hello(RECEIVES + 1)?;
        if stage >= 2 {
            direct.send(&Negotiate::default().encode())?;
        }
        if stage == 3 {
            direct.hear_sent(ANSWER_LIMIT)?;
        }
        return Ok(());
    }
    if stage <= 5 {
        let mut direct = Direct::negotiated(&site.server)?;
        match stage {
            4 => direct.send(&Transfer::of(5000, 10_000_000).encode(&[7; 5000]))?,
            _ => direct.send_message(&smb_negotiate())?,
        }
        return Ok(());
    }
    let mut session = Session::direct(&site.server, SMB_3_0_2, FILE)?;
    let memory = vec![0; 65_536];
    let place = memory.as_ptr() as u64;
    let named = Named::new(65_536, &[(place, 4, 65_536)]);
    for _ in 0..8 {
        let (command, body) = match stage {
            6 => (8, session.read_body(&named)),
            _ => (9, session.write_body(&named)),
        };
        let right = [kind::TO_WRITE, kind::TO_READ][usize::from(command == 9)];
        let request = session.request(command, &body);
        let direct = session.below()?;
        if direct.credits() > 1 {
            let _ = direct.say(Header {
                kind: kind::WITHDRAW,
                key: 4,
                ..Header::default()
            });
            direct.announce(right, 4, &memory)?;
            session.send(&request)?;
        }
    }
    drop(session);
    // The server may still access the announced memory: it must stay allocated.
    std::mem::forget(memory);
    Ok(())
}

fn closed_connections_leave_nothing_behind() -> Result<()> {
    const ROUNDS: usize = 200;
    const STAGES: usize = 8;
    /// Bytes. A connection needs 2 MiB or more, and 150 connections follow the first measurement.
    const GROWTH_MAX: u64 = 64 << 20;
    let mut site = Site::new(&[])?;
    let mut early = 0;
    for round in 0..ROUNDS {
        leave_at(&site, round % STAGES).with_context(|| format!("round {round}"))?;
        if round % 10 == 0 {
            site.check().with_context(|| format!("round {round}"))?;
        }
        if round == 50 {
            site.wait_until_alone()?;
            early = site.resident()?;
        }
    }
    site.wait_until_alone()?;
    site.check()?;
    let late = site.resident()?;
    ensure!(
        late < early + GROWTH_MAX,
        "{early} bytes, then {late} bytes are resident"
    );
    let descriptors = fs::read_dir(format!("/proc/{}/fd", site.server.pid()))?.count();
    ensure!(descriptors < 150, "{descriptors} descriptors are open");
    round_trip(&site)
}

/// A correct client transfers more bytes than a leaking pool would have left.
fn round_trip(site: &Site) -> Result<()> {
    let client = direct_client(site)?;
    let bytes: Vec<u8> = (0..40_000_000_u32).map(|index| (index / 7) as u8).collect();
    fs::write(client.local("whole"), &bytes)?;
    client.run(&["put", "whole", "{}whole"])?;
    client.run(&["get", "{}whole", "back"])?;
    ensure!(fs::read(client.local("back"))? == bytes, "other bytes");
    Ok(())
}

fn direct_client(site: &Site) -> Result<Client> {
    let address = site.server.address("smbdirect").to_string();
    Ok(Client::of(&address)?.argument("--transports=smbdirect"))
}

fn killed_clients_leave_nothing_behind() -> Result<()> {
    const LARGE_BYTES: usize = 64 << 20;
    let rounds = scale::choose(10, 20);
    let mut site = Site::new(&[])?;
    let client = direct_client(&site)?;
    fs::write(client.local("large"), vec![5; LARGE_BYTES])?;
    let mut early = 0;
    for round in 0..rounds {
        let name = format!("{{}}killed{}", round % 3);
        let mut child = client.spawn(&["put", "large", &name])?;
        let wanted = LARGE_BYTES as u64 / 10 * (round % 10);
        wait::until("a part of the file", ANSWER_LIMIT, || {
            site.largest_part() > wanted || child.try_wait().is_ok_and(|ended| ended.is_some())
        })?;
        child.kill()?;
        child.wait()?;
        site.check().with_context(|| format!("round {round}"))?;
        if round == 5 {
            site.wait_until_alone()?;
            early = site.resident()?;
        }
    }
    site.wait_until_alone()?;
    let late = site.resident()?;
    ensure!(
        late < early + (96 << 20),
        "{early} bytes, then {late} bytes are resident"
    );
    round_trip(&site)
}
