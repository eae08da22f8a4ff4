//! Open directories: listings that the kernel reads piece by piece.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::sync::Arc;

use fuser::Errno;
use futures_util::lock::Mutex;
use smbeam_client::{Error, Metadata, ReadDir, Share};

use crate::errno::{Answer, errno};

use crate::names::Names;

/// Largest number of entries of a listing. A server could send one without an end.
const ENTRIES_MAX: u64 = 16 << 20;
/// Offset behind the entries `.` and `..`.
const DOTS: u64 = 2;

/// A directory that a program has open.
pub(crate) struct OpenDirectory {
    pub(crate) ino: u64,
    /// The listing; one request at a time uses it.
    pub(crate) listing: Mutex<Listing>,
}

/// An entry of a listing.
#[derive(Clone)]
pub(crate) struct Entry {
    /// The kernel asks for the next entry by this number.
    pub(crate) offset: u64,
    pub(crate) name: OsString,
    /// `None` for `.` and `..`.
    pub(crate) metadata: Option<Metadata>,
}

/// The state of a listing. Entries that the kernel has received stay until it asks for later ones,
/// because a program may have used only some of them.
pub(crate) struct Listing {
    names: Names,
    source: Option<ReadDir>,
    /// Entries in order of their offsets.
    window: VecDeque<Entry>,
    /// Offset of the last entry that the server sent.
    last: u64,
    has_ended: bool,
}

impl OpenDirectory {
    pub(crate) fn new(ino: u64, names: Names) -> Arc<Self> {
        let listing = Listing {
            names,
            source: None,
            window: VecDeque::new(),
            last: 0,
            has_ended: false,
        };
        Arc::new(Self {
            ino,
            listing: Mutex::new(listing),
        })
    }
}

impl Listing {
    /// Prepares the listing of a path so that [`Self::entry`] returns the one behind `offset`.
    pub(crate) async fn seek(&mut self, (share, path): (&Share, &str), offset: u64) -> Answer<()> {
        let first = self
            .window
            .front()
            .map_or(self.last + 1, |entry| entry.offset);
        if offset == 0 || offset + 1 < first {
            self.restart(share, path).await?;
        }
        loop {
            while self
                .window
                .front()
                .is_some_and(|entry| entry.offset <= offset)
            {
                self.window.pop_front();
            }
            if self.last >= offset || self.has_ended {
                return Ok(());
            }
            self.fetch().await?;
        }
    }

    async fn restart(&mut self, share: &Share, path: &str) -> Answer<()> {
        let source = share.read_dir(path, "*").await;
        let source = source.map_err(|error| errno(&error))?;
        let dots = [".", ".."]
            .into_iter()
            .zip(1..)
            .map(|(name, offset)| Entry {
                offset,
                name: name.into(),
                metadata: None,
            });
        *self = Self {
            names: self.names,
            source: Some(source),
            window: dots.collect(),
            last: DOTS,
            has_ended: false,
        };
        Ok(())
    }

    /// Returns the entry `index` behind the offset of [`Self::seek`]; `None` at the end.
    pub(crate) async fn entry(&mut self, index: usize) -> Answer<Option<&Entry>> {
        while self.window.len() <= index && !self.has_ended {
            self.fetch().await?;
        }
        Ok(self.window.get(index))
    }

    /// Whether the next entries need no request to the server.
    pub(crate) fn has_more_here(&self, index: usize) -> bool {
        let buffered = self.source.as_ref().map_or(0, ReadDir::buffered);
        self.window.len() > index || buffered > 0
    }

    /// Takes an entry of the server.
    async fn fetch(&mut self) -> Answer<()> {
        let Some(source) = &mut self.source else {
            self.has_ended = true;
            return Ok(());
        };
        match source.next().await {
            None => self.has_ended = true,
            // The name is none that Linux can use. Other clients see the file.
            Some(Err(Error::InvalidName(..))) => {}
            Some(Err(error)) => {
                self.has_ended = true;
                return Err(errno(&error));
            }
            Some(Ok(_)) if self.last >= ENTRIES_MAX => {
                self.has_ended = true;
                return Err(Errno::EOVERFLOW);
            }
            Some(Ok(found)) => {
                let is_removed = self.names.is_removed(&found.name);
                if let Some(name) = self.names.to_kernel(&found.name).filter(|_| !is_removed) {
                    self.last += 1;
                    self.window.push_back(Entry {
                        offset: self.last,
                        name,
                        metadata: Some(found.metadata),
                    });
                }
            }
        }
        Ok(())
    }
}
