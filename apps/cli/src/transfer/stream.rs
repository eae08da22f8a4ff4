//! From standard input to a server: bytes that come once, and whose number nobody knows before
//! their end.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, SystemTime};

use smbeam_client::{FileAttributes, OpenOptions, Wait as _};

use super::{Transfer, part};
use crate::failure::{Failure, Outcome};
use crate::file_path::{FileInfo, FilePath, Kind, RemotePath};
use crate::input;

/// Bytes of one piece at most. A pipe has 64 KiB at a time.
const PIECE: usize = 256 * 1024;
/// Pieces that wait to be sent.
const WAITING: usize = 4;
/// How soon it is seen that somebody wants the work to end, while nothing comes.
const TICK: Duration = Duration::from_millis(100);
/// What failures call it.
const NAME: &str = "standard input";

/// A piece; none is the end.
type Piece = io::Result<Option<Vec<u8>>>;

impl Transfer<'_> {
    /// Writes all that standard input has. The file has its name when it is whole, unless it is
    /// written in path; what is there before an end by failure is removed.
    pub(crate) fn upload_standard_input(&self, target: &RemotePath) {
        self.progress.stream_found();
        let whole = FilePath::Remote(target.clone());
        let taken = self.write_stream(target, &whole);
        if taken.is_ok() {
            self.progress.file_done(&whole);
        }
        self.report.take(taken);
    }

    fn write_stream(&self, target: &RemotePath, whole: &FilePath) -> Outcome {
        let gathering = match self.policy.in_place {
            true => whole.clone(),
            false => {
                let name = whole.name().unwrap_or_default();
                whole.sibling(&part::name(&name, &FilePath::Local(NAME.into()), &info()))
            }
        };
        let FilePath::Remote(remote) = &gathering else {
            return Ok(());
        };
        let input = read_ahead().map_err(|error| Failure::local(NAME, &error))?;
        let options = OpenOptions::new().write(true).create(true).truncate(true);
        let file = remote.share.open(&remote.path, &options).wait();
        let file = file.map_err(target.failed())?;
        let sent = self.send_pieces(&input, &file, target);
        let closed = file.close().wait().map_err(target.failed());
        let done = match (sent.and(closed), self.policy.in_place) {
            (Ok(()), false) => gathering.rename_over(whole),
            (sent, _) => sent,
        };
        if done.is_err() && !self.policy.in_place {
            // Nothing can go on with it. If the connection is lost, it stays.
            let _ = gathering.remove(Kind::File);
        }
        done
    }

    fn send_pieces(
        &self,
        input: &Receiver<Piece>,
        file: &smbeam_client::File,
        target: &RemotePath,
    ) -> Outcome {
        let mut writer = file.writer().map_err(target.failed())?;
        while let Some(piece) = self.next_piece(input)? {
            let written = writer.write_all(&piece);
            written.map_err(|error| target.stream_failure(error))?;
            self.progress.add_bytes(piece.len() as u64);
        }
        writer.flush().map_err(|error| target.stream_failure(error))
    }

    /// Who ends a pipeline ends who writes into it as well: its end is then not that of the data.
    fn next_piece(&self, input: &Receiver<Piece>) -> Outcome<Option<Vec<u8>>> {
        loop {
            let piece = input.recv_timeout(TICK);
            if self.interrupt.is_raised() {
                return Err(Failure::interrupted(NAME));
            }
            match piece {
                Ok(piece) => return piece.map_err(|error| Failure::local(NAME, &error)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let error = io::Error::from(io::ErrorKind::UnexpectedEof);
                    return Err(Failure::local(NAME, &error));
                }
            }
        }
    }
}

/// Reads on a thread of its own, which nobody waits for: it may be waiting for a terminal.
fn read_ahead() -> io::Result<Receiver<Piece>> {
    let input = input::open()?;
    let (sender, receiver) = sync_channel(WAITING);
    let read = move || read_all(input, &sender);
    thread::Builder::new().name("input".into()).spawn(read)?;
    Ok(receiver)
}

fn read_all(mut input: File, pieces: &SyncSender<Piece>) {
    let mut is_over = false;
    while !is_over {
        let mut bytes = vec![0; PIECE];
        let piece = match input.read(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(0) => Ok(None),
            Ok(count) => {
                bytes.truncate(count);
                Ok(Some(bytes))
            }
            Err(error) => Err(error),
        };
        is_over = !matches!(piece, Ok(Some(_)));
        // Nobody wants more.
        is_over |= pieces.send(piece).is_err();
    }
}

/// What tells one stream from another: when it begins.
fn info() -> FileInfo {
    let now = SystemTime::now();
    FileInfo {
        kind: Kind::Other,
        size: 0,
        allocation: 0,
        created: None,
        accessed: now,
        written: now,
        changed: now,
        attributes: FileAttributes::NONE,
        file_id: None,
    }
}
