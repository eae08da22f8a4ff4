//! Small files, written whole in one message.

use proto::client::Step;
use proto::client::request::{FileRef, Reply};
use ring::Region;
use wire::fscc::FileInfoClass;

use crate::error::{Cause, Error};
use crate::io::call::Memory;
use crate::metadata::Changes;
use crate::open_options::OpenOptions;
use crate::share::{Share, WHOLE_BYTES_MAX, set};

/// Options of [`Share::write`], which writes a whole file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteOptions {
    /// Timestamps and attributes that the client sets after the write. `None` (the default) leaves
    /// the values that the server chooses.
    pub changes: Option<Changes>,
    /// Whether the write fails if the file exists. Default: no, an existing file is replaced.
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
    /// or the volume is full.
    pub async fn write(
        &self,
        path: &str,
        bytes: Vec<u8>,
        options: &WriteOptions,
    ) -> Result<(), Error> {
        let open = OpenOptions::new()
            .write(true)
            .directory(false)
            .create(true)
            .create_new(options.create_new)
            .truncate(true)
            .write_through(options.write_through);
        let max_write = self.max_write();
        if bytes.len() > WHOLE_BYTES_MAX.min(max_write) as usize {
            let file = self.open(path, &open).await?;
            file.write_at(bytes, 0).await.0?;
            if let Some(changes) = &options.changes {
                file.set_metadata(changes).await?;
            }
            return file.close().await;
        }
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
        let steps = write.into_iter().chain(change).collect();
        let steps = self.compound(path, &open, steps)?;
        let memory = Memory::Source(Region::from(bytes).into());
        let (replies, _) = self.start(steps, memory).await.all();
        let replies = replies.map_err(|cause| cause.of("write", path))?;
        match replies.get(1) {
            Some(Reply::Written(count)) if *count != length => Err(Cause::Malformed(
                "the server wrote fewer bytes than requested".to_owned(),
            )
            .of("write", path)),
            _ => Ok(()),
        }
    }
}
