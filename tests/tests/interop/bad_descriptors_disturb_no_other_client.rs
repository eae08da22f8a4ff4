//! READ and WRITE with wrong descriptors of memory: the server refuses the request, or the device
//! ends the connection, and no byte is read from or written to another place.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::direct::kind;
use smbeam_tests::direct::site::{FILE, Site, contents};
use smbeam_tests::direct::smb::{Named, Piece, SMB_3_0, SMB_3_0_2, Session};
use smbeam_tests::tests;

tests!(
    memory_is_checked_before_it_is_reached,
    by_tcp_there_is_no_memory,
    keys_are_given_back_once,
);

const READ: u16 = 8;
const WRITE: u16 = 9;
/// Bytes of the memory that the server may reach.
const MEMORY: usize = 8192;
/// Its key, and that of memory which may be reached in the other way only.
const KEY: u32 = 0x1234;
const OTHER_KEY: u32 = 0x5678;
/// Bytes of a request, unless a case has another length.
const LENGTH: u32 = 4096;
const INVALID_PARAMETER: u32 = 0xc000_000d;

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It is done.
    Done,
    /// It is refused, and the connection stays.
    Refused,
    /// It is done or refused: there is nothing to do.
    Either,
    /// The connection ends.
    Ended,
}
use Fate::{Done, Either, Ended, Refused};

type Case = (&'static str, Fate, Named);

/// A client that has exposed memory.
struct HostileClient {
    session: Session,
    memory: Vec<u8>,
    other: Vec<u8>,
    command: u16,
}

impl HostileClient {
    fn new(site: &Site, dialect: u16, command: u16) -> Result<Self> {
        let mut session = Session::direct(&site.server, dialect, FILE)?;
        let (memory, other) = (vec![0xaa; MEMORY], vec![0xbb; MEMORY]);
        let (right, wrong) = match command {
            READ => (kind::TO_WRITE, kind::TO_READ),
            _ => (kind::TO_READ, kind::TO_WRITE),
        };
        let direct = session.below()?;
        direct.announce(right, KEY, &memory)?;
        direct.announce(wrong, OTHER_KEY, &other)?;
        Ok(Self {
            session,
            memory,
            other,
            command,
        })
    }

    fn place(&self) -> u64 {
        self.memory.as_ptr() as u64
    }

    fn body(&self, named: &Named) -> Vec<u8> {
        match self.command {
            READ => self.session.read_body(named),
            _ => self.session.write_body(named),
        }
    }

    /// Sends the request and returns the outcome.
    fn ask(&mut self, named: &Named) -> Result<Fate> {
        let body = self.body(named);
        let Some(answer) = self.session.try_call(self.command, &body)? else {
            return Ok(Ended);
        };
        Ok(match answer.status() {
            0 => Done,
            INVALID_PARAMETER => Refused,
            status => anyhow::bail!("status {status:#010x}"),
        })
    }

    /// Wrong descriptors, and some correct ones.
    fn cases(&self) -> Vec<Case> {
        let at = self.place();
        let other = self.other.as_ptr() as u64;
        let piece = (at, KEY, LENGTH);
        let of = |pieces: &[Piece]| Named::new(LENGTH, pieces);
        let equal = |count: u32| -> Vec<Piece> {
            let each = LENGTH / count + 1;
            let piece = |index: u32| (at + u64::from(index), KEY, each);
            (0..count).map(piece).collect()
        };
        let end = at + MEMORY as u64;
        let good = of(&[piece]);
        let with = |change: &dyn Fn(&mut Named)| {
            let mut named = good.clone();
            change(&mut named);
            named
        };
        vec![
            ("as it should be", Done, good.clone()),
            ("one byte too far", Ended, of(&[(end - 4095, KEY, LENGTH)])),
            ("before it", Ended, of(&[(at - 1, KEY, LENGTH)])),
            ("behind it", Ended, of(&[(end, KEY, LENGTH)])),
            ("nowhere", Ended, of(&[(0, KEY, LENGTH)])),
            (
                "the kernel's",
                Ended,
                of(&[(0xffff_ffff_8100_0000, KEY, LENGTH)]),
            ),
            ("another's key", Ended, of(&[(at, OTHER_KEY, LENGTH)])),
            ("key 0", Ended, of(&[(at, 0, LENGTH)])),
            ("key of nothing", Ended, of(&[(at, u32::MAX, LENGTH)])),
            ("another right", Ended, of(&[(other, OTHER_KEY, LENGTH)])),
            (
                "the second is wrong",
                Ended,
                of(&[(at, KEY, 4000), (at, 1, 96)]),
            ),
            ("no pieces", Refused, of(&[])),
            ("an empty piece", Refused, of(&[(at, KEY, 0)])),
            ("empty pieces", Refused, of(&[(at, KEY, 0); 9])),
            (
                "an empty one beside",
                Done,
                of(&[(0, 9, 0), piece, (1, 1, 0)]),
            ),
            ("too short", Refused, of(&[(at, KEY, LENGTH - 1)])),
            (
                "overlapping",
                Done,
                of(&[(at, KEY, 2048), (at + 1024, KEY, 2048)]),
            ),
            (
                "twice the same",
                Done,
                of(&[(at, KEY, 2048), (at, KEY, 2048)]),
            ),
            ("many", Done, of(&equal(64))),
            ("too many", Refused, of(&equal(65))),
            ("far too many", Refused, of(&equal(4000))),
            ("4 GiB - 1", Done, of(&[(at, KEY, u32::MAX)])),
            ("4 GiB - 1, often", Done, of(&[(at, KEY, u32::MAX); 60])),
            (
                "beyond 64 bits",
                Refused,
                of(&[(u64::MAX - 4094, KEY, LENGTH)]),
            ),
            (
                "the last of them",
                Refused,
                of(&[piece, (u64::MAX, KEY, u32::MAX)]),
            ),
            ("nothing wanted", Either, Named::new(0, &[piece])),
            (
                "all wanted",
                Refused,
                Named::new(u32::MAX, &[(at, KEY, u32::MAX)]),
            ),
            (
                "2 GiB wanted",
                Refused,
                Named::new(1 << 31, &[(at, KEY, u32::MAX)]),
            ),
            (
                "16 MiB wanted",
                Refused,
                Named::new(1 << 24, &[(at, KEY, u32::MAX)]),
            ),
            (
                "half a piece",
                Refused,
                with(&|named| named.info_length = 8),
            ),
            (
                "a piece and a byte",
                Refused,
                with(&|named| {
                    named.info.push(0);
                    named.info_length = 17;
                }),
            ),
            (
                "info of nothing",
                Refused,
                with(&|named| named.info_length = 0),
            ),
            (
                "info is elsewhere",
                Refused,
                with(&|named| named.info_offset = 0xffff),
            ),
            (
                "info begins at 0",
                Refused,
                with(&|named| {
                    named.info_offset = 0;
                    named.info_length = 15;
                }),
            ),
            (
                "info is too long",
                Refused,
                with(&|named| named.info_length = 32),
            ),
            (
                "info is far too long",
                Refused,
                with(&|named| named.info_length = 0xfff0),
            ),
            (
                "info at its end",
                Refused,
                with(&|named| named.info_offset = 128),
            ),
            ("channel 3", Refused, with(&|named| named.channel = 3)),
            (
                "channel of 32 bits",
                Refused,
                with(&|named| named.channel = u32::MAX),
            ),
        ]
    }
}

fn memory_is_checked_before_it_is_reached() -> Result<()> {
    let mut site = Site::new(&[])?;
    let path = site.scratch.path().join("share").join(FILE);
    for command in [READ, WRITE] {
        for dialect in [SMB_3_0, SMB_3_0_2] {
            let count = HostileClient::new(&site, dialect, command)?.cases().len();
            let mut client = HostileClient::new(&site, dialect, command)?;
            for index in 0..count {
                let (name, fate, named) = client.cases().swap_remove(index);
                let what = format!("command {command}, {dialect:#x}, {name}");
                let found = client.ask(&named).context(what.clone())?;
                let is_as_expected = match fate {
                    Either => found != Ended,
                    _ => found == fate,
                };
                ensure!(is_as_expected, "{what}: {found:?}, not {fate:?}");
                check_bytes(&client, &path, found, named.length).context(what.clone())?;
                if found == Ended {
                    let peer = format!("peer={}", client.session.below()?.name());
                    site.wait_for_log(&[&peer, "the operation may not access the peer's memory"])
                        .context(what.clone())?;
                    client = HostileClient::new(&site, dialect, command)?;
                }
                fs::write(&path, contents())?;
                client.memory.fill(0xaa);
                site.check().context(what)?;
            }
            // A value that only 3.0.2 has.
            let mut named = Named::new(LENGTH, &[(client.place(), KEY, LENGTH)]);
            named.channel = 2;
            let found = client.ask(&named)?;
            let expected = match dialect {
                SMB_3_0 => Refused,
                _ => Done,
            };
            ensure!(
                found == expected,
                "V1_INVALIDATE in {dialect:#x}: {found:?}"
            );
            fs::write(&path, contents())?;
        }
    }
    site.wait_until_alone()
}

/// Checks that a refused request has changed nothing, and that no request has changed other memory.
fn check_bytes(
    client: &HostileClient,
    path: &std::path::Path,
    found: Fate,
    length: u32,
) -> Result<()> {
    // The server writes it, of which the compiler knows nothing.
    let memory = std::hint::black_box(&client.memory);
    let other = std::hint::black_box(&client.other);
    ensure!(
        other.iter().all(|byte| *byte == 0xbb),
        "other memory is changed"
    );
    let file = fs::read(path)?;
    if found != Done || client.command == READ {
        ensure!(file == contents(), "the file is changed");
    }
    if found == Done && length > 0 {
        let is_changed = match client.command {
            READ => memory.iter().any(|byte| *byte != 0xaa),
            _ => file[..4000].iter().all(|byte| *byte == 0xaa),
        };
        ensure!(is_changed, "nothing was done");
    }
    // A READ with a wrong second piece may have filled the first.
    if found == Refused {
        ensure!(memory.iter().all(|byte| *byte == 0xaa), "memory is changed");
    }
    Ok(())
}

fn by_tcp_there_is_no_memory() -> Result<()> {
    let mut site = Site::new(&[])?;
    let memory = vec![0xaa_u8; MEMORY];
    let mut session = Session::tcp(&site.server, SMB_3_0_2, FILE)?;
    for command in [READ, WRITE] {
        for channel in [1, 2, 3, u32::MAX] {
            let mut named = Named::new(LENGTH, &[(memory.as_ptr() as u64, KEY, LENGTH)]);
            named.channel = channel;
            let body = match command {
                READ => session.read_body(&named),
                _ => session.write_body(&named),
            };
            let answer = session.call(command, &body)?;
            let status = answer.status();
            let what = format!("command {command}, channel {channel}");
            ensure!(status == INVALID_PARAMETER, "{what}: {status:#010x}");
        }
    }
    session.echo()?;
    ensure!(
        std::hint::black_box(&memory)
            .iter()
            .all(|byte| *byte == 0xaa)
    );
    drop(session);
    site.check()
}

/// A key that the server was asked to give back is good no more; one that is not there ends the
/// connection that named it.
fn keys_are_given_back_once() -> Result<()> {
    let mut site = Site::new(&[])?;
    for command in [READ, WRITE] {
        let mut client = HostileClient::new(&site, SMB_3_0_2, command)?;
        let mut named = Named::new(LENGTH, &[(client.place(), KEY, LENGTH)]);
        named.channel = 2;
        ensure!(client.ask(&named)? == Done, "command {command}");
        ensure!(client.ask(&named)? == Ended, "command {command}, again");
        site.check()?;
        let mut client = HostileClient::new(&site, SMB_3_0_2, command)?;
        // The first piece is empty. Its key is released.
        let pieces = [(0, 99, 0), (client.place(), KEY, LENGTH)];
        let mut named = Named::new(LENGTH, &pieces);
        named.channel = 2;
        ensure!(
            client.ask(&named)? == Ended,
            "command {command}, a key of nothing"
        );
        let peer = format!("peer={}", client.session.below()?.name());
        site.wait_for_log(&[&peer, "disconnecting"])?;
        site.check()?;
    }
    site.wait_until_alone()
}
