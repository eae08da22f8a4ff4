//! A file as a stream: read ahead, written behind.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom, Write};

use ring::Region;

use crate::Wait;
use crate::error::Error;
use crate::file::File;
use crate::file::io::{count, written};
use crate::io::call::Pending;

/// READs ahead of the caller.
const READ_AHEAD: usize = 8;
/// WRITEs behind the caller.
const WRITE_BEHIND: usize = 8;

impl File {
    /// Reads with [`std::io::Read`] from the start on, ahead of its caller; blocks.
    pub fn reader(&self) -> FileReader {
        FileReader::new(self.clone())
    }

    /// Writes with [`std::io::Write`], behind its caller; blocks. Starts at the end of a file that
    /// was opened to append, else at the start.
    pub fn writer(&self) -> Result<FileWriter, Error> {
        FileWriter::new(self.clone())
    }
}

/// Reads a file from front to back, ahead of its caller. Made by [`File::reader`].
pub struct FileReader {
    file: File,
    /// What was read, of which the caller has got so many bytes.
    piece: Region,
    taken: usize,
    /// Where the next byte for the caller is in the file.
    position: u64,
    /// READs under way, in the order of the file.
    ahead: VecDeque<Pending>,
    /// Where the next READ starts.
    next: u64,
    is_at_end: bool,
}

impl FileReader {
    pub(crate) fn new(file: File) -> Self {
        Self {
            file,
            piece: nothing(),
            taken: 0,
            position: 0,
            ahead: VecDeque::new(),
            next: 0,
            is_at_end: false,
        }
    }

    fn refill(&mut self) -> Result<(), Error> {
        let size = self.file.read_size();
        // Its memory is for what comes now.
        self.piece = nothing();
        self.taken = 0;
        while self.ahead.len() < READ_AHEAD {
            let pending = self.file.start_read_wanted(size, self.next);
            self.ahead.push_back(pending);
            self.next += size as u64;
        }
        let first = self.ahead.pop_front().expect("at least one was started");
        let (reply, memory) = first.wait().only();
        let count = count(reply).map_err(|cause| {
            // Who goes on after it goes on from here.
            self.jump(self.position);
            self.file.failed("read", cause)
        })?;
        self.piece = memory.filled(count);
        if count < size {
            // The end, or a server that gives less than it was asked for: go on from here.
            self.ahead.clear();
            self.next = self.position + count as u64;
            self.is_at_end = count == 0;
        }
        Ok(())
    }

    fn jump(&mut self, position: u64) {
        self.ahead.clear();
        self.piece = nothing();
        self.taken = 0;
        self.position = position;
        self.next = position;
        self.is_at_end = false;
    }
}

/// A piece without bytes.
fn nothing() -> Region {
    Region::from(Vec::new())
}

impl Read for FileReader {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.piece.len() && !self.is_at_end && !target.is_empty() {
            self.refill()?;
        }
        let rest = &self.piece[self.taken..];
        let count = target.len().min(rest.len());
        target[..count].copy_from_slice(&rest[..count]);
        self.taken += count;
        self.position += count as u64;
        Ok(count)
    }
}

impl Seek for FileReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.file.len().wait()?.checked_add_signed(by),
        };
        let target = target.ok_or(io::ErrorKind::InvalidInput)?;
        if target != self.position {
            self.jump(target);
        }
        Ok(target)
    }
}

/// Writes a file from front to back, behind its caller. Made by [`File::writer`].
///
/// What went wrong shows with a later write or with `flush`. Dropping it waits for what is under
/// way and swallows its errors: flush before.
pub struct FileWriter {
    file: File,
    piece: Vec<u8>,
    /// Where the piece belongs.
    position: u64,
    /// WRITEs under way, in the order of the file, with their bytes.
    behind: VecDeque<(Pending, usize)>,
}

impl FileWriter {
    pub(crate) fn new(file: File) -> Result<Self, Error> {
        let position = match file.is_append() {
            true => file.len().wait()?,
            false => 0,
        };
        Ok(Self {
            file,
            piece: Vec::new(),
            position,
            behind: VecDeque::new(),
        })
    }

    fn send(&mut self) -> Result<(), Error> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let spare = self.settle(WRITE_BEHIND - 1)?;
        let piece = std::mem::replace(&mut self.piece, spare);
        let len = piece.len();
        let source = Region::from(piece).into();
        let pending = self.file.start_write(source, self.position);
        self.behind.push_back((pending, len));
        self.position += len as u64;
        Ok(())
    }

    /// Waits until at most `left` are under way; gives memory back.
    fn settle(&mut self, left: usize) -> Result<Vec<u8>, Error> {
        let mut spare = Vec::new();
        while self.behind.len() > left
            && let Some((pending, len)) = self.behind.pop_front()
        {
            let (reply, memory) = pending.wait().only();
            written(reply, len).map_err(|cause| self.file.failed("write", cause))?;
            let region = memory
                .into_source()
                .and_then(|source| source.into_region().ok());
            spare = region
                .and_then(|region| region.into_vec().ok())
                .unwrap_or_default();
            spare.clear();
        }
        Ok(spare)
    }
}

impl Write for FileWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let size = self.file.write_size();
        if self.piece.len() == size {
            self.send()?;
        }
        self.piece.reserve_exact(size - self.piece.len());
        let count = bytes.len().min(size - self.piece.len());
        self.piece.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send()?;
        self.settle(0)?;
        Ok(())
    }
}

impl Seek for FileWriter {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.send()?;
        let target = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => {
                self.settle(0)?;
                self.file.len().wait()?.checked_add_signed(by)
            }
        };
        self.position = target.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

impl fmt::Debug for FileReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileReader({} at {})", self.file.path(), self.position)
    }
}

impl fmt::Debug for FileWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileWriter({} at {})", self.file.path(), self.position)
    }
}
