//! The server answers bad input with an error or closes that connection. Other clients continue.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::direct::smb::{SMB_3_0_2, Session};
use smbeam_tests::lab::Missing;
use smbeam_tests::random::Random;
use smbeam_tests::raw::{
    HEADER_BYTES, Raw, Reaction, command, frame, header, negotiate_body, session_setup_body, status,
};
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{Plan, Server, Share, Subject};
use smbeam_tests::tests;

tests!(
    garbage_closes_the_connection,
    a_frame_that_ends_early_closes_the_connection,
    a_message_cut_anywhere_is_refused,
    a_wrong_structure_size_is_refused,
    offsets_that_point_elsewhere_are_refused,
    a_compound_that_points_elsewhere_is_refused,
    commands_before_login_are_refused,
    a_large_frame_before_login_is_not_awaited,
    random_messages_are_refused,
    a_read_before_an_encrypted_refusal_is_answered,
);

/// How old a connection without a login may become before it is replaced.
const WITNESS_AGE: Duration = Duration::from_secs(5);

/// A server and a connection that must not notice anything.
struct Site {
    witness: Raw,
    witness_since: Instant,
    server: Server,
    _scratch: Scratch,
}

impl Site {
    fn new() -> Result<Site> {
        let scratch = Scratch::new("bad-input")?;
        let server = Server::start_alone(Plan::sharing(&scratch.open_directory("share")?))?;
        let witness = Raw::negotiated(server.tcp)?;
        Ok(Site {
            witness,
            witness_since: Instant::now(),
            server,
            _scratch: scratch,
        })
    }

    fn connect(&self) -> Result<Raw> {
        Raw::connect(self.server.tcp)
    }

    fn connect_and_negotiate(&self) -> Result<Raw> {
        Raw::negotiated(self.server.tcp)
    }

    /// Checks the earlier connection. It never logs in, so it is replaced before its time ends.
    fn check_witness(&mut self) -> Result<()> {
        if self.witness_since.elapsed() > WITNESS_AGE {
            self.witness = Raw::negotiated(self.server.tcp)?;
            self.witness_since = Instant::now();
        }
        self.witness
            .echo()
            .context("another connection was disturbed")
    }

    /// Checks the earlier connection, and makes a new one.
    fn check_others(&mut self) -> Result<()> {
        self.check_witness()?;
        Raw::negotiated(self.server.tcp).context("no new connection")?;
        Ok(())
    }
}

fn garbage_closes_the_connection() -> Result<()> {
    let mut site = Site::new()?;
    let mut noise = [0; 300];
    Random::new(5).fill(&mut noise);
    noise[0] |= 1;
    let wrong_protocol = frame(&[&b"\xfaSMB"[..], &[0; 100]].concat());
    let first_bytes: [(&str, &[u8]); 6] = [
        ("HTTP", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
        ("SSH", b"SSH-2.0-client\r\n"),
        ("ones", &[0xff; 64]),
        ("noise", &noise),
        ("another protocol id", &wrong_protocol),
    ];
    for (name, bytes) in first_bytes {
        let mut hostile = site.connect()?;
        hostile.send(bytes)?;
        hostile.finish();
        let reaction = hostile.reaction()?;
        ensure!(reaction == Reaction::Closed, "{name}: {reaction:?}");
        site.check_others().context(name)?;
    }
    Ok(())
}

fn a_frame_that_ends_early_closes_the_connection() -> Result<()> {
    let mut site = Site::new()?;
    let whole = frame(&negotiate_message());
    for length in [1, 3, 4, 5, 67, 68, 69, 100, whole.len() - 1] {
        let mut hostile = site.connect()?;
        hostile.send(&whole[..length])?;
        hostile.finish();
        let reaction = hostile.reaction()?;
        ensure!(reaction == Reaction::Closed, "{length} bytes: {reaction:?}");
    }
    site.check_others()
}

fn a_message_cut_anywhere_is_refused() -> Result<()> {
    let mut site = Site::new()?;
    let whole = negotiate_message();
    // The last context may be cut where nothing of it is missing but padding.
    for length in (1..HEADER_BYTES + 36 + 10).chain([113, 120, whole.len() - 5, whole.len() - 1]) {
        let mut hostile = site.connect()?;
        let reaction = hostile.exchange(&whole[..length])?;
        ensure!(reaction.is_refusal(), "{length} bytes: {reaction:?}");
        site.check_witness()?;
    }
    site.check_others()
}

fn a_wrong_structure_size_is_refused() -> Result<()> {
    let mut site = Site::new()?;
    for (offset, sizes) in [(4, [0, 63, 65, 255]), (HEADER_BYTES, [0, 35, 37, 255])] {
        for size in sizes {
            let mut message = negotiate_message();
            message[offset] = size;
            let reaction = site.connect()?.exchange(&message)?;
            ensure!(
                reaction.is_refusal(),
                "size {size} at {offset}: {reaction:?}"
            );
        }
    }
    for size in [0, 24, 26, 255] {
        let mut body = session_setup_body(88, 4, &[0; 4]);
        body[0] = size;
        let reaction = site
            .connect_and_negotiate()?
            .request(command::SESSION_SETUP, &body)?;
        ensure!(
            reaction.is_refusal(),
            "SESSION_SETUP with size {size}: {reaction:?}"
        );
    }
    site.check_others()
}

fn offsets_that_point_elsewhere_are_refused() -> Result<()> {
    let mut site = Site::new()?;
    for (offset, length) in [
        (0xffff, 0xffff),
        (0, 0xffff),
        (88, 0xffff),
        (0xffff, 1),
        (89, 4),
        (92, 1),
    ] {
        let body = session_setup_body(offset, length, &[0; 4]);
        let reaction = site
            .connect_and_negotiate()?
            .request(command::SESSION_SETUP, &body)?;
        ensure!(
            reaction.is_refusal(),
            "token at {offset} + {length}: {reaction:?}"
        );
    }
    // The places of the contexts, their number, the number of dialects, and a context's length.
    let patches: [(usize, &[u8]); 7] = [
        (HEADER_BYTES + 28, &[0xff; 4]),
        (HEADER_BYTES + 28, &[0xf8, 0xff, 0xff, 0xff]),
        (HEADER_BYTES + 28, &[200, 1, 0, 0]),
        (HEADER_BYTES + 32, &[0xff; 2]),
        (HEADER_BYTES + 2, &[0xff; 2]),
        (HEADER_BYTES + 2, &[0; 2]),
        (114, &[0xff; 2]),
    ];
    for (offset, bytes) in patches {
        let mut message = negotiate_message();
        message[offset..offset + bytes.len()].copy_from_slice(bytes);
        let reaction = site.connect()?.exchange(&message)?;
        ensure!(reaction.is_refusal(), "{bytes:?} at {offset}: {reaction:?}");
    }
    site.check_others()
}

fn a_compound_that_points_elsewhere_is_refused() -> Result<()> {
    let mut site = Site::new()?;
    for next in [
        1_u32,
        4,
        63,
        65,
        68,
        72,
        4096,
        0x7fff_fff8,
        0xffff_fff8,
        0xffff_ffff,
    ] {
        let mut hostile = site.connect_and_negotiate()?;
        let mut message = header(command::ECHO, 1).to_vec();
        message.extend_from_slice(&[4, 0, 0, 0]);
        message[20..24].copy_from_slice(&next.to_le_bytes());
        let reaction = hostile.exchange(&message)?;
        ensure!(
            reaction != Reaction::Silence,
            "next command at {next}: {reaction:?}"
        );
        site.check_witness()?;
    }
    site.check_others()
}

fn commands_before_login_are_refused() -> Result<()> {
    let mut site = Site::new()?;
    for number in 2..=18_u16 {
        if number == command::ECHO || number == command::CANCEL {
            continue;
        }
        // A body with the size that the command should have; its contents do not matter.
        let mut body = vec![0; 64];
        body[0] = [
            4, 9, 4, 57, 24, 24, 49, 49, 48, 57, 4, 4, 33, 32, 41, 33, 24,
        ][usize::from(number) - 2];
        let reaction = site.connect_and_negotiate()?.request(number, &body)?;
        // CANCEL is never answered.
        let is_cancel = number == 12 && reaction == Reaction::Silence;
        ensure!(
            reaction.is_refusal() || is_cancel,
            "command {number}: {reaction:?}"
        );
    }
    let reaction = site
        .connect()?
        .request(command::SESSION_SETUP, &session_setup_body(88, 0, &[]));
    let reaction = reaction.context("SESSION_SETUP before NEGOTIATE")?;
    ensure!(
        reaction.is_refusal(),
        "SESSION_SETUP before NEGOTIATE: {reaction:?}"
    );
    let reaction = site
        .connect_and_negotiate()?
        .request(command::READ, &[49; 49])?;
    let statuses = [status::USER_SESSION_DELETED, status::INVALID_PARAMETER];
    let is_expected = reaction
        .status()
        .is_none_or(|status| statuses.contains(&status));
    ensure!(is_expected, "READ without a session: {reaction:?}");
    site.check_others()
}

fn a_large_frame_before_login_is_not_awaited() -> Result<()> {
    if Subject::chosen() == Subject::Samba {
        return Err(Missing("smbd has no such limit".into()).into());
    }
    let mut site = Site::new()?;
    for length in [0x00ff_ffff_u32, 0x0010_0000] {
        let mut hostile = site.connect()?;
        hostile.send(&length.to_be_bytes())?;
        hostile.send(&[0; 4096])?;
        let reaction = hostile.reaction()?;
        ensure!(
            reaction == Reaction::Closed,
            "a frame of {length} bytes: {reaction:?}"
        );
        site.check_others()?;
    }
    Ok(())
}

fn random_messages_are_refused() -> Result<()> {
    const MESSAGES: u64 = 200;
    let mut site = Site::new()?;
    for seed in 0..MESSAGES {
        let mut random = Random::new(seed);
        let mut hostile = site.connect_and_negotiate()?;
        let number = u16::try_from(random.below(19))?;
        let mut message = header(number, 1).to_vec();
        message.resize(HEADER_BYTES + usize::try_from(random.below(200))?, 0);
        random.fill(&mut message[HEADER_BYTES..]);
        for _ in 0..random.below(4) {
            let place = usize::try_from(random.below(message.len() as u64))?;
            message[place] = u8::try_from(random.below(256))?;
        }
        hostile.send(&frame(&message))?;
        hostile.finish();
        let reaction = hostile.reaction()?;
        ensure!(
            reaction != Reaction::Silence,
            "seed {seed}: the connection hangs"
        );
    }
    site.check_others()
}

fn negotiate_message() -> Vec<u8> {
    [&header(command::NEGOTIATE, 0)[..], &negotiate_body()].concat()
}

/// The server encrypts all answers of a frame if one of them needs encryption.
fn a_read_before_an_encrypted_refusal_is_answered() -> Result<()> {
    const LENGTH: u32 = 64 << 10;
    let scratch = Scratch::new("encrypted-late")?;
    let mut plan = Plan::sharing(&scratch.open_directory("share")?);
    let mut secret = Share::new("secret", &scratch.open_directory("secret")?);
    secret.encryption_required = true;
    plan.shares.push(secret);
    let file = scratch.path().join("share/file");
    fs::write(&file, vec![7; 1 << 20])?;
    fs::set_permissions(&file, Permissions::from_mode(0o666))?;
    let server = Server::start_alone(plan)?;
    let mut session = Session::tcp(&server, SMB_3_0_2, "file")?;
    let plain = session.enter(&format!(r"\\{}\secret", server.tcp.ip()))?;
    let secret = session.return_to(plain);
    let mut compound = session.read_at(0, LENGTH);
    compound.resize(compound.len().next_multiple_of(8), 0);
    let next = u32::try_from(compound.len())?;
    compound[20..24].copy_from_slice(&next.to_le_bytes());
    session.return_to(secret);
    let disconnect = session.request(4, &[4, 0, 0, 0]);
    compound.extend_from_slice(&disconnect);
    session.send(&compound)?;
    let answer = session.hear()?.context("the connection has ended")?;
    ensure!(answer.0.starts_with(b"\xfdSMB"), "it is not encrypted");
    ensure!(answer.0.len() > LENGTH as usize, "the bytes are not there");
    session.return_to(plain);
    session.echo()
}
