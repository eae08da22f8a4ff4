//! Answers that the kernel sends from the page cache stay right if other clients truncate or remove
//! the file.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::lab::Missing;
use smbeam_tests::raw::Raw;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::session::{ACCESS_READ, Connection, Request, Session};
use smbeam_tests::subject::{ALICE, Plan, Server, Subject};
use smbeam_tests::{tests, wait};
use socket2::{Domain, Socket, Type};

tests!(
    a_file_that_is_cut_under_its_answers,
    a_file_that_is_removed_goes_soon,
);

/// Bytes of a READ: as many as a credit pays for, and enough to be sent from the file.
const PIECE: u32 = 64 << 10;
/// READs at once: more than the sockets of both sides hold.
const READS: usize = 200;
/// Bytes of the truncated file: a part of a page.
const LEFT: usize = 4099;
const MARK: u8 = 0x5a;

struct Rig {
    server: Server,
    file: PathBuf,
    _scratch: Scratch,
}

impl Rig {
    fn new() -> Result<Self> {
        if Subject::chosen() == Subject::Samba {
            return Err(Missing("smbd reads a file before it answers".into()).into());
        }
        let scratch = Scratch::new("cut")?;
        let directory = scratch.open_directory("share")?;
        let file = directory.join("file");
        fs::write(&file, vec![MARK; 2 * PIECE as usize])?;
        let server = Server::start_alone(Plan::sharing(&directory))?;
        Ok(Self {
            server,
            file,
            _scratch: scratch,
        })
    }

    /// A client with a small receive buffer.
    fn connect(&self) -> Result<(Connection, Session)> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.set_recv_buffer_size(PIECE as usize)?;
        socket.connect(&self.server.tcp.into())?;
        let mut connection = Connection::on(Raw::on(socket.into())?, self.server.tcp)?;
        let session = connection.log_in(ALICE, "data")?;
        Ok((connection, session))
    }

    /// Lines of the server's mappings that name the file.
    fn mappings(&self) -> Result<String> {
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.server.pid()))?;
        let name = self.file.to_str().context("a name of ASCII")?;
        let lines = maps.lines().filter(|line| line.contains(name));
        Ok(lines.collect::<Vec<_>>().join("\n"))
    }
}

/// The whole announced answer arrives, with bytes of the file or zeros, and then the next answer.
fn a_file_that_is_cut_under_its_answers() -> Result<()> {
    let rig = Rig::new()?;
    let (mut connection, session) = rig.connect()?;
    let opened = connection.call(session, &Request::open("file", ACCESS_READ))?;
    let file = opened.file()?;
    for _ in 0..READS {
        connection.post(session, &[Request::read(file, PIECE)])?;
    }
    // The server has begun to answer, and the client's socket cannot hold all of it.
    connection.wait_for_data()?;
    let local = OpenOptions::new().write(true).open(&rig.file)?;
    local.set_len(LEFT as u64)?;
    let answers = connection.collect(READS)?;
    for (number, answer) in answers.iter().enumerate() {
        answer.expect("READ")?;
        let data = answer.data();
        let is_whole = data.len() == PIECE as usize;
        ensure!(is_whole || data.len() == LEFT, "{} bytes", data.len());
        let (kept, lost) = data.split_at(LEFT);
        let is_right = kept.iter().all(|byte| *byte == MARK)
            && lost.iter().all(|byte| *byte == MARK || *byte == 0);
        ensure!(is_right, "answer {number} has what was never in the file");
    }
    local.write_all_at(&[MARK + 1; 10], 0)?;
    let again = connection.call(session, &Request::read(file, PIECE))?;
    again.expect("READ")?;
    ensure!(again.data().len() == LEFT && again.data()[..10] == [MARK + 1; 10]);
    connection
        .call(session, &Request::close(file))?
        .expect("CLOSE")
}

/// A mapping keeps the blocks of a file that was removed, and a file system mounted.
fn a_file_that_is_removed_goes_soon() -> Result<()> {
    let rig = Rig::new()?;
    let (mut connection, session) = rig.connect()?;
    let opened = connection.call(session, &Request::open("file", ACCESS_READ))?;
    let file = opened.file()?;
    // A mapping that is not used for a second ends: on a busy machine before the test sees it.
    wait::until("a mapping", Duration::from_secs(20), || {
        let answer = connection.call(session, &Request::read(file, PIECE));
        answer.is_ok_and(|answer| answer.data() == vec![MARK; PIECE as usize])
            && rig.mappings().is_ok_and(|lines| !lines.is_empty())
    })?;
    connection
        .call(session, &Request::close(file))?
        .expect("CLOSE")?;
    fs::remove_file(&rig.file)?;
    let limit = Duration::from_secs(20);
    wait::until("the file to go", limit, || {
        rig.mappings().is_ok_and(|lines| lines.is_empty())
    })
}
