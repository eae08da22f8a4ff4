//! Reading whole files: many small ones in one message, a large one as a download.
//!
//! A related compound may open several files in sequence: CREATE, READ, CLOSE, and again. Each READ
//! is on the file that was opened last. \[MS-SMB2\] 3.2.4.1.4, 3.3.5.2.7.2 A message costs both
//! ends more than its requests: files of 150 kB that share a message of one mebibyte take less than
//! nine tenths of the time (bench/compare/LOG.md).
//!
//! The client requests a file that failed within such a message again in a separate message. After
//! one failure a server may fail the rest of the message, or it may accept no second CREATE at all.
//! If the responses suggest that, every further file has a separate message.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::vec;

use proto::client::Step;
use proto::client::request::{FileRef, Reply};
use ring::Region;

use crate::error::{Cause, Error, unexpected};
use crate::file::io::count;
use crate::io::call::{Done, Memory, Pending};
use crate::open_options::OpenOptions;
use crate::share::{Share, WHOLE_BYTES_MAX, first_created};
use crate::symlink::LinkWalk;
use crate::transfer::{TransferOptions, download};

/// Length of the READ in bytes that shares a message with CREATE and CLOSE, if the caller does not
/// know the length of the file.
const SMALL_BYTES: u32 = 64 << 10;
/// Maximum number of files that the client reads with one message. The message is a compound with a
/// CREATE, a READ and a CLOSE for each file.
pub const FILES_TOGETHER: usize = 8;
/// Count of readable files of one message, beside the first one, that failed within the message:
/// from this count on the client assumes that the server accepts one CREATE per message.
const PROOF: usize = 2;
/// Count of requests for one file.
const STEPS: usize = 3;

/// Data of READs, one part for each that succeeded.
type Parts = vec::IntoIter<Region>;
/// Results of steps.
type Replies = vec::IntoIter<Result<Reply, Cause>>;

impl Share {
    /// Reads the whole file `path`, relative to the root of the share. A file of up to 64 KiB takes
    /// one message.
    ///
    /// # Errors
    /// The file does not exist, the user may not read it, another open of it denies reading, or the
    /// connection is lost.
    pub async fn read(&self, path: &str) -> Result<Vec<u8>, Error> {
        let bytes = self.read_expecting(path, SMALL_BYTES).await?;
        Ok(bytes.into_vec().unwrap_or_else(|bytes| bytes.to_vec()))
    }

    async fn read_large(&self, path: &str, options: &OpenOptions) -> Result<Region, Error> {
        let file = self.open(path, options).await?;
        let end = file.len().await?;
        let mut bytes = Vec::new();
        // The vector grows as data arrive, because the server may lie about the length.
        let mut sink = |offset: u64, piece: &[u8]| {
            let start = offset as usize;
            let range = start..start + piece.len();
            bytes.resize(bytes.len().max(range.end), 0);
            bytes[range].copy_from_slice(piece);
            Ok(())
        };
        let options = TransferOptions::default();
        download(&file, 0..end, &mut sink, &options, &mut |_| {}).await?;
        file.close().await?;
        Ok(bytes.into())
    }

    /// Reads a whole file of about `expected` bytes, which the caller knows, for example, from a
    /// listing. Returns the bytes in memory that the client allocates. A file of up to 1 MiB takes
    /// one message if `expected` is right; otherwise the client sends further messages.
    ///
    /// # Errors
    /// The file does not exist, the user may not read it, another open of it denies reading, or the
    /// connection is lost.
    pub async fn read_expecting(&self, path: &str, expected: u32) -> Result<Region, Error> {
        match self.read_small(path, expected).await? {
            Some(bytes) => Ok(bytes),
            None => self.read_large(path, &how()).await,
        }
    }

    /// Reads a whole file of about `expected` bytes with exactly one message. Returns `None` if the
    /// file is longer than the client has requested in that message.
    ///
    /// # Errors
    /// The file does not exist, the user may not read it, another open of it denies reading, or the
    /// connection is lost.
    pub async fn read_small(&self, path: &str, expected: u32) -> Result<Option<Region>, Error> {
        let file = (path, expected);
        self.take_one(file, self.ask(&[file])).await
    }

    /// Reads many whole files, each given by path and expected length in bytes. Returns a result
    /// for each, in the order of `files`. Files of up to 1 MiB together share a message, and
    /// [`Options::depth`](crate::Options::depth) messages are in flight. After many files were
    /// [announced](Share::announce), a second session reads some of them.
    ///
    /// # Errors
    /// Each result has its own error: the file does not exist, the user may not read it, another
    /// open of it denies reading, or the connection is lost. An error of one file does not end the
    /// reads of the others.
    pub async fn read_each(&self, files: &[(&str, u32)]) -> Vec<Result<Region, Error>> {
        let mut results = Vec::with_capacity(files.len());
        for (read, (path, _)) in self.read_each_small(files).await.into_iter().zip(files) {
            results.push(match read {
                Ok(Some(bytes)) => Ok(bytes),
                Ok(None) => self.read_large(path, &how()).await,
                Err(error) => Err(error),
            });
        }
        results
    }

    /// Reads many whole files, each given by path and expected length in bytes, and each with one
    /// message. Returns a result for each, in the order of `files`: the bytes, or `None` if the
    /// file is longer than the client has requested in its message.
    ///
    /// # Errors
    /// Each result has its own error: the file does not exist, the user may not read it, another
    /// open of it denies reading, or the connection is lost. An error of one file does not end the
    /// reads of the others.
    pub async fn read_each_small(
        &self,
        files: &[(&str, u32)],
    ) -> Vec<Result<Option<Region>, Error>> {
        if !self.session().dispatch().is_here() {
            let failed = |(path, _): &(&str, u32)| Err(Cause::Forked.of("read", path));
            return files.iter().map(failed).collect();
        }
        self.ask_for(files.len());
        let depth = self.session().depth();
        let mut asked = VecDeque::new();
        let mut left = files;
        let mut results = Vec::with_capacity(files.len());
        loop {
            while !left.is_empty() && asked.len() < depth {
                let (files, rest) = left.split_at(self.fitting(left));
                let by = self.less_busy();
                let answer = by.ask(files);
                asked.push_back((files, by, answer));
                left = rest;
            }
            let Some((files, by, answer)) = asked.pop_front() else {
                return results;
            };
            let first = results.len();
            match files {
                [file] => results.push(by.take_one(*file, answer).await),
                files => by.take_each(files, answer, &mut results).await,
            }
            if !Arc::ptr_eq(&by.inner, &self.inner) {
                self.make_good(files, &mut results[first..]).await;
            }
        }
    }

    /// Reads the files again that another session did not return because it was lost.
    async fn make_good(
        &self,
        files: &[(&str, u32)],
        results: &mut [Result<Option<Region>, Error>],
    ) {
        for ((path, expected), result) in files.iter().zip(results) {
            if matches!(result, Err(error) if error.is_lost()) {
                *result = self.read_small(path, *expected).await;
            }
        }
    }

    /// Count of files that fit into one message; at least one.
    fn fitting(&self, files: &[(&str, u32)]) -> usize {
        let takes_more = self.session().dispatch().takes_long_frames()
            && !self.inner.opens_one.load(Ordering::Relaxed);
        let mut free = WHOLE_BYTES_MAX.min(self.max_read());
        let mut fits = |expected: u32| {
            let rest = free.checked_sub(self.asked_of(expected));
            free = rest.unwrap_or(free);
            rest.is_some()
        };
        match takes_more {
            true => {
                let files = files.iter().take(FILES_TOGETHER);
                files
                    .take_while(|(_, expected)| fits(*expected))
                    .count()
                    .max(1)
            }
            false => 1,
        }
    }

    /// Length in bytes of the READ for a file of about `expected` bytes.
    fn asked_of(&self, expected: u32) -> u32 {
        expected.clamp(1, WHOLE_BYTES_MAX).min(self.max_read())
    }

    /// Requests files in one message.
    fn ask(&self, files: &[(&str, u32)]) -> Result<Pending, Error> {
        let mut steps = Vec::with_capacity(files.len() * STEPS);
        let mut total = 0;
        for &(path, expected) in files {
            let length = self.asked_of(match self.inner.is_fresh.swap(false, Ordering::Relaxed) {
                true => WHOLE_BYTES_MAX,
                false => expected,
            });
            let read = Step::Read {
                file: FileRef::Previous,
                offset: 0,
                length,
                minimum: 0,
            };
            steps.extend(self.compound(path, &how(), vec![read])?);
            total += length as usize;
        }
        let memory = match files {
            [_] => Memory::Wanted(total),
            _ => Memory::WantedEach(total),
        };
        Ok(self.start(steps, memory))
    }

    /// Takes the response to a message for one file.
    async fn take_one(
        &self,
        (path, expected): (&str, u32),
        mut answer: Result<Pending, Error>,
    ) -> Result<Option<Region>, Error> {
        let mut walk = LinkWalk::new(self.place(), path)?;
        loop {
            let Done {
                replies, memory, ..
            } = answer?.await;
            let mut parts = memory.into_parts().into_iter();
            let taken = replies.and_then(|replies| take(&mut replies.into_iter(), &mut parts));
            match taken {
                Err(cause) if walk.follow(&cause) => {
                    answer = self.ask(&[(walk.path(), expected)]);
                }
                taken => return taken.map_err(|cause| cause.of("read", path)),
            }
        }
    }

    /// Takes the response to a message for many files.
    async fn take_each(
        &self,
        files: &[(&str, u32)],
        answer: Result<Pending, Error>,
        results: &mut Vec<Result<Option<Region>, Error>>,
    ) {
        let Response {
            mut replies,
            mut parts,
            is_refused,
            mut is_proof,
        } = match response(answer).await {
            Ok(response) => response,
            Err(cause) => {
                // The server may have closed the connection because of the message.
                self.inner.opens_one.store(true, Ordering::Relaxed);
                let failed = |(path, _): &(&str, u32)| Err(cause.clone().of("read", path));
                return results.extend(files.iter().map(failed));
            }
        };
        let (mut together, mut alone) = (0, 0);
        for (index, &(path, expected)) in files.iter().enumerate() {
            let taken = take(&mut replies, &mut parts);
            let was_taken = taken.is_ok();
            let result = match taken {
                Ok(bytes) => Ok(bytes),
                Err(_) => self.read_small(path, expected).await,
            };
            if index == 0 {
                is_proof &= was_taken || is_refused;
            } else {
                together += usize::from(was_taken);
                alone += usize::from(!was_taken && result.is_ok());
            }
            results.push(result);
        }
        if is_proof && together == 0 && alone >= PROOF {
            self.inner.opens_one.store(true, Ordering::Relaxed);
        }
    }
}

/// The response to a message for many files.
struct Response {
    replies: Replies,
    parts: Parts,
    /// Whether the server refused the whole message.
    is_refused: bool,
    /// Whether the response shows whether the server accepts several CREATEs.
    is_proof: bool,
}

/// Waits for the response to a message for many files.
///
/// # Errors
/// The connection failed, so separate requests would fail as well.
async fn response(answer: Result<Pending, Error>) -> Result<Response, Cause> {
    let Ok(pending) = answer else {
        // One of the names is not valid.
        return Ok(Response {
            replies: Replies::default(),
            parts: Parts::default(),
            is_refused: false,
            is_proof: false,
        });
    };
    let Done {
        replies, memory, ..
    } = pending.await;
    let replies = match replies {
        Err(cause) if cause.is_of_connection() => return Err(cause),
        replies => replies.unwrap_or_default(),
    };
    // A file that waits for an oplock break delays the others.
    let is_late = |reply: &Result<Reply, Cause>| matches!(reply, Err(Cause::TimedOut));
    Ok(Response {
        is_refused: replies.is_empty(),
        is_proof: !replies.iter().any(is_late),
        replies: replies.into_iter(),
        parts: memory.into_parts().into_iter(),
    })
}

/// Takes the results of one file; `None` if the file has more bytes than the response.
fn take(replies: &mut Replies, parts: &mut Parts) -> Result<Option<Region>, Cause> {
    let (created, read, _closed) = (replies.next(), replies.next(), replies.next());
    let part = match &read {
        Some(Ok(Reply::Read(_))) => parts.next(),
        _ => None,
    };
    let created = first_created(created)?;
    let count = count(read.ok_or_else(unexpected)?)?;
    if created.attributes.size > count as u64 {
        return Ok(None);
    }
    let mut bytes = part.unwrap_or_else(|| Vec::new().into());
    assert!(
        bytes.set_len(count),
        "a READ returns at most the requested bytes"
    );
    Ok(Some(bytes))
}

/// Options for reading a file.
fn how() -> OpenOptions {
    OpenOptions::new().read(true).directory(false)
}

#[cfg(test)]
mod tests {
    use proto::client::request::{Attributes, Created, ReadData};
    use wire::access::OplockLevel;
    use wire::{FileId, Status};

    use super::*;

    fn taken(size: u64, read: Result<u32, Status>) -> Result<Option<usize>, Cause> {
        let created = Created {
            file_id: FileId::default(),
            oplock: OplockLevel::NONE,
            lease_state: None,
            lease_epoch: None,
            is_lease_breaking: false,
            durable: None,
            action: 1,
            attributes: Attributes {
                size,
                ..Attributes::default()
            },
            maximal_access: None,
            posix: None,
        };
        let parts = read.map_or(Vec::new(), |count| vec![vec![0; count as usize].into()]);
        let read = match read {
            Ok(count) => Ok(Reply::Read(ReadData::Placed(count))),
            Err(status) => Err(Cause::Status(status)),
        };
        let replies = vec![Ok(Reply::Created(created)), read, Ok(Reply::Closed(None))];
        let bytes = take(&mut replies.into_iter(), &mut parts.into_iter());
        bytes.map(|bytes| bytes.map(|bytes| bytes.len()))
    }

    #[test]
    fn a_file_is_whole_or_read_again() {
        assert_eq!(taken(10, Ok(10)).expect("it is read"), Some(10));
        assert_eq!(taken(0, Err(Status::END_OF_FILE)).expect("empty"), Some(0));
        // The server has read less than it could, or the file has grown or was emptied meanwhile.
        assert_eq!(taken(10, Ok(9)).expect("there is more"), None);
        assert_eq!(
            taken(10, Err(Status::END_OF_FILE)).expect("so it says"),
            None
        );
        assert_eq!(taken(8, Ok(10)).expect("it is longer by now"), Some(10));
        assert!(taken(10, Err(Status::ACCESS_DENIED)).is_err());
    }
}
