//! The place of the files of a benchmark: a directory that this machine has mounted, or a directory
//! on a server that the client of smbeam reaches without a mount.

mod access;
mod local;
mod remote;

use std::path::Path;

use anyhow::Result;

#[cfg(test)]
pub(crate) use access::Check;
pub(crate) use access::{Access, Entry, Extent, Reader, Writer};

use crate::bench::cpu;
use crate::bench::session_factory::SessionFactory;
use crate::connect::ConnectArguments;
use crate::failure::Outcome;
use crate::location::Location;
use local::LocalStore;
use remote::RemoteStore;

/// Files below a directory. Paths are relative to it, with `/`.
#[derive(Debug)]
pub(crate) enum Store {
    Local(LocalStore),
    Remote(Box<RemoteStore>),
}

impl Store {
    /// The store at a location. It connects to no server yet.
    pub(crate) fn open(location: &Location, connect: &ConnectArguments) -> Outcome<Self> {
        Ok(match location {
            Location::Local(path) => Self::local(path),
            Location::Remote(url) => {
                let factory = SessionFactory::new(connect, url, connect.channels.clone())?;
                Self::Remote(Box::new(RemoteStore::new(factory)))
            }
        })
    }

    /// The store in a directory of this machine.
    pub(crate) fn local(path: &Path) -> Self {
        Self::Local(LocalStore::new(path))
    }

    /// Creates a directory and its parents.
    pub(crate) fn create_dir(&self, path: &str) -> Result<()> {
        match self {
            Self::Local(store) => store.create_dir(path),
            Self::Remote(store) => store.create_dir(path),
        }
    }

    /// The entries of a directory, without order. A missing directory has none.
    pub(crate) fn list(&self, path: &str) -> Result<Vec<Entry>> {
        match self {
            Self::Local(store) => store.list(path),
            Self::Remote(store) => store.list(path),
        }
    }

    /// The content of a small file, or `None` if the file does not exist.
    pub(crate) fn read_small(&self, path: &str) -> Result<Option<Vec<u8>>> {
        match self {
            Self::Local(store) => store.read_small(path),
            Self::Remote(store) => store.read_small(path),
        }
    }

    /// Writes a whole file by the session with this number, and returns the buffer.
    pub(crate) fn write(&self, path: &str, bytes: Vec<u8>, session: usize) -> Result<Vec<u8>> {
        match self {
            Self::Local(store) => store.write(path, bytes),
            Self::Remote(store) => store.write(path, bytes, session),
        }
    }

    /// Removes a directory of files.
    pub(crate) fn remove_dir(&self, path: &str) -> Result<()> {
        match self {
            Self::Local(store) => store.remove_dir(path),
            Self::Remote(store) => store.remove_dir(path),
        }
    }

    /// A reader for one worker.
    pub(crate) fn reader(&self, access: Access) -> Result<Box<dyn Reader>> {
        Ok(match self {
            Self::Local(store) => Box::new(store.files(access.direct)),
            Self::Remote(store) => Box::new(store.files(access.session)?),
        })
    }

    /// A writer for one rank.
    pub(crate) fn writer(&self, access: Access) -> Result<Box<dyn Writer>> {
        Ok(match self {
            Self::Local(store) => Box::new(store.files(access.direct)),
            Self::Remote(store) => Box::new(store.files(access.session)?),
        })
    }

    /// The processes of the server, if they are on this host.
    pub(crate) fn server(&self) -> Option<cpu::Server> {
        match self {
            Self::Local(_) => None,
            Self::Remote(store) => store.server(),
        }
    }

    /// The transports, dialect and protection of the first session; `None` for a local store.
    pub(crate) fn session_line(&self) -> Option<String> {
        match self {
            Self::Local(_) => None,
            Self::Remote(store) => store.session_line(),
        }
    }

    /// The local directory; `None` for a store on a server.
    pub(crate) fn directory(&self) -> Option<&Path> {
        match self {
            Self::Local(store) => Some(store.root()),
            Self::Remote(_) => None,
        }
    }
}
