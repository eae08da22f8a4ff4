//! Uploads from standard input. Its length is not known in advance, and it cannot be read again.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, SystemTime};

use smbeam_client::{FileAttributes, OpenOptions, Wait as _};
use smbeam_profile::input;

use super::{Transfer, part};
use crate::failure::{Failure, Outcome};
use crate::file_path::{FileInfo, FilePath, Kind, RemotePath};
use crate::progress::Action;

/// Maximum bytes of a piece. A pipe holds 64 KiB.
const PIECE: usize = 256 * 1024;
/// Maximum number of pieces that wait for their upload.
const WAITING: usize = 4;
/// Interval of the check for an interrupt while no data arrive.
const TICK: Duration = Duration::from_millis(100);
/// The subject of failures of standard input.
const NAME: &str = "standard input";

/// A piece of data; `None` at the end.
type Piece = io::Result<Option<Vec<u8>>>;

impl Transfer<'_> {
    /// Uploads standard input to a file. The file gets its final name when it is complete, unless
    /// `--in-place` is given. After a failure the incomplete file is removed.
    pub(crate) fn upload_standard_input(&self, target: &RemotePath) {
        self.progress.stream_found();
        let whole = FilePath::Remote(target.clone());
        let taken = self.write_stream(target, &whole);
        if taken.is_ok() {
            self.progress.file_done(Action::Copy, &whole, 0);
        }
        self.report.take(taken);
    }

    fn write_stream(&self, target: &RemotePath, whole: &FilePath) -> Outcome {
        let gathering = match self.policy.in_place {
            true => whole.clone(),
            false => {
                let name = whole.name().unwrap_or_default();
                let from = FilePath::Local(NAME.into());
                let part = part::name(self.part_key(), &name, &from, &info());
                whole
                    .sibling(&part)
                    .map_err(|error| Failure::name(whole, error))?
            }
        };
        let FilePath::Remote(remote) = &gathering else {
            return Ok(());
        };
        let input = read_ahead().map_err(|error| Failure::local(NAME, &error))?;
        let options = OpenOptions::new().write(true).create(true).truncate(true);
        // Its name depends on the time, so no earlier upload has left a file with this name.
        let options = options.create_new(!self.policy.in_place);
        let file = remote.share.open(&remote.path, &options).wait();
        let file = file.map_err(target.failed())?;
        let sent = self.send_pieces(&input, &file, target);
        let closed = file.close().wait().map_err(target.failed());
        let done = match (sent.and(closed), self.policy.in_place) {
            (Ok(()), false) => self.put_in_place(&gathering, whole),
            (sent, _) => sent,
        };
        if done.is_err() && !self.policy.in_place {
            // The upload cannot be resumed. If the connection is lost, the file remains.
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
            self.add_bytes(piece.len() as u64);
        }
        writer.flush().map_err(|error| target.stream_failure(error))
    }

    /// Waits for the next piece. The interrupt is checked first: Ctrl-C also ends the writer of a
    /// pipeline, and the end of its data would look like the end of the input.
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

/// Reads on a separate thread. It can block on a terminal, so it is never joined.
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
        // The receiver has ended.
        is_over |= pieces.send(piece).is_err();
    }
}

/// Metadata that identify this upload: the time of its start.
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
        shared: None,
    }
}
