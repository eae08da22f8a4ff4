//! Small files, written whole in one message.

use proto::client::Step;
use proto::client::request::{FileRef, Reply};
use ring::Source;
use wire::fscc::FileInfoClass;

use crate::buffer::IoSource;
use crate::error::{Cause, Error};
use crate::file::io::written;
use crate::io::call::Memory;
use crate::metadata::Changes;
use crate::open_options::OpenOptions;
use crate::share::{Share, WHOLE_BYTES_MAX, compound_at, set};
use crate::symlink::LinkWalk;

/// Options of [`Share::write`], which writes a whole file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteOptions {
    /// Timestamps and attributes that the client sets after the write. `None` (the default) leaves
    /// the values that the server chooses.
    pub changes: Option<Changes>,
    /// Whether the write fails if the file exists. If the data of the new file cannot be written,
    /// for example because the volume is full, the file is removed again. Default: no, the content
    /// of an existing file is replaced.
    pub create_new: bool,
    /// Whether the server responds only when the bytes are on stable storage. Default: no.
    pub write_through: bool,
}

/// Each method sets the field of its name.
impl WriteOptions {
    /// Sets the [timestamps and attributes](field@Self::changes) that the client sets after the
    /// write; `None` leaves those that the server chooses.
    #[must_use]
    pub fn changes(mut self, changes: Option<Changes>) -> Self {
        self.changes = changes;
        self
    }

    /// Sets whether the write [fails if the file exists](field@Self::create_new).
    #[must_use]
    pub fn create_new(mut self, create_new: bool) -> Self {
        self.create_new = create_new;
        self
    }

    /// Sets whether the server responds only when the bytes are [on stable
    /// storage](field@Self::write_through).
    #[must_use]
    pub fn write_through(mut self, write_through: bool) -> Self {
        self.write_through = write_through;
        self
    }
}

impl Share {
    /// Writes `bytes` as the whole content of the file `path`, relative to the root of the share.
    /// Creates the file or replaces its content. A file of up to 1 MiB takes one message.
    ///
    /// # Errors
    /// The file exists (with `create_new`), the user may not write it, another open denies writing,
    /// or the volume is full. A failed write without `create_new` can leave an existing file empty.
    pub async fn write(
        &self,
        path: &str,
        bytes: impl IoSource,
        options: &WriteOptions,
    ) -> Result<(), Error> {
        let bytes = bytes.into_source();
        let (is_created, result) =
            match bytes.len() > WHOLE_BYTES_MAX.min(self.max_write()) as usize {
                true => self.write_large(path, bytes, options).await,
                false => self.write_small(path, bytes, options).await,
            };
        if is_created && result.is_err() && options.create_new {
            // The error of the write counts.
            let _ = self.remove_file(path).await;
        }
        result
    }

    /// Writes a file in several messages. The flag says that the file exists, but lacks data.
    async fn write_large(
        &self,
        path: &str,
        bytes: Source,
        options: &WriteOptions,
    ) -> (bool, Result<(), Error>) {
        let file = match self.open(path, &open_options(options)).await {
            Ok(file) => file,
            Err(error) => return (false, Err(error)),
        };
        if let Err(error) = file.write_at(bytes, 0).await.0 {
            return (true, Err(error));
        }
        let changed = match &options.changes {
            Some(changes) => file.set_metadata(changes).await,
            None => Ok(()),
        };
        (false, changed.and(file.close().await))
    }

    /// Writes a file in one message. The flag says that the file exists, but lacks data.
    async fn write_small(
        &self,
        path: &str,
        bytes: Source,
        options: &WriteOptions,
    ) -> (bool, Result<(), Error>) {
        let length = u32::try_from(bytes.len()).expect("a small file is small");
        let write = (length > 0).then_some(Step::Write {
            file: FileRef::Previous,
            offset: 0,
            length,
            through: options.write_through,
        });
        let change = options
            .changes
            .map(|changes| set(FileInfoClass::BASIC.0, changes.encode()));
        let steps: Vec<Step> = write.into_iter().chain(change).collect();
        let mut walk = match LinkWalk::new(self.place(), path) {
            Ok(walk) => walk,
            Err(error) => return (false, Err(error)),
        };
        let mut memory = Memory::Source(bytes);
        loop {
            let wire = walk.path().to_owned();
            let compound = compound_at(wire, &open_options(options), steps.clone());
            let done = self.start(compound, memory).await;
            let (lacks_data, result) = match done.replies {
                Ok(replies) => outcome(replies, length as usize),
                Err(cause) => (false, Err(cause)),
            };
            memory = done.memory;
            match result {
                Err(cause) if !lacks_data && walk.follow(&cause) => {}
                result => return (lacks_data, result.map_err(|cause| cause.of("write", path))),
            }
        }
    }
}

fn open_options(options: &WriteOptions) -> OpenOptions {
    OpenOptions::new()
        .write(true)
        .directory(false)
        .create(true)
        .create_new(options.create_new)
        .truncate(true)
        .write_through(options.write_through)
}

/// The result of a compound that creates a file and writes `length` bytes. The flag says that the
/// CREATE succeeded and the WRITE failed.
fn outcome(replies: Vec<Result<Reply, Cause>>, length: usize) -> (bool, Result<(), Cause>) {
    let mut replies = replies.into_iter();
    if let Some(Err(cause)) = replies.next() {
        return (false, Err(cause));
    }
    if length > 0
        && let Some(reply) = replies.next()
        && let Err(cause) = written(reply, length)
    {
        return (true, Err(cause));
    }
    (false, replies.try_for_each(|reply| reply.map(drop)))
}

#[cfg(test)]
mod tests {
    use wire::Status;

    use super::*;

    fn full() -> Result<Reply, Cause> {
        Err(Cause::Status(Status::DISK_FULL))
    }

    #[test]
    fn only_a_created_file_without_its_data_lacks_data() {
        let created = || Ok(Reply::Done);
        let status = |(lacks_data, result): (bool, Result<(), Cause>)| {
            (lacks_data, result.err().and_then(|cause| cause.status()))
        };
        let is_full = Some(Status::DISK_FULL);
        for (replies, expected) in [
            (
                vec![created(), Ok(Reply::Written(9)), created()],
                (false, None),
            ),
            (vec![full(), full(), full()], (false, is_full)),
            (vec![created(), full(), created()], (true, is_full)),
            // Samba writes the bytes for which it has space.
            (
                vec![created(), Ok(Reply::Written(4)), created()],
                (true, is_full),
            ),
            (
                vec![created(), Ok(Reply::Written(9)), full()],
                (false, is_full),
            ),
        ] {
            assert_eq!(status(outcome(replies, 9)), expected);
        }
        assert_eq!(
            status(outcome(vec![created(), created()], 0)),
            (false, None)
        );
    }
}
