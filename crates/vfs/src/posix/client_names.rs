//! Names and paths that clients send, before their use in a system call.

use std::borrow::Cow;

use proto::file::Existing;
use proto::path::SharePath;
use wire::Status;

use super::Posix;
use super::mapping::disk_path;
use super::streams::large::blob;
use crate::fold;

impl Posix {
    /// Returns a path of a client in the form of a listing. Fails with OBJECT_NAME_INVALID if no
    /// file can have the path, and with OBJECT_NAME_NOT_FOUND if it is hidden from clients.
    pub(super) fn canonical<'a>(&self, path: &'a SharePath) -> Result<Cow<'a, SharePath>, Status> {
        let canonical = self.listed_form(path)?;
        let first = canonical.components().next();
        match first.is_some_and(|first| self.hides_in_root(first)) {
            true => Err(Status::OBJECT_NAME_NOT_FOUND),
            false => Ok(canonical),
        }
    }

    /// Returns the path of an open in the form of a listing.
    pub(super) fn canonical_for<'a>(
        &self,
        path: &'a SharePath,
        existing: Existing,
    ) -> Result<Cow<'a, SharePath>, Status> {
        match existing {
            Existing::Open => self.canonical(path),
            Existing::OpenOrCreate | Existing::Create => self.canonical_new(path),
        }
    }

    /// Returns the path of a file that a client may create, in the form of a listing. Fails with
    /// ACCESS_DENIED if the path is hidden from clients.
    pub(super) fn canonical_new<'a>(
        &self,
        path: &'a SharePath,
    ) -> Result<Cow<'a, SharePath>, Status> {
        self.canonical(path).map_err(|status| match status {
            Status::OBJECT_NAME_NOT_FOUND => Status::ACCESS_DENIED,
            status => status,
        })
    }

    /// Whether clients do not see a name in the root of the share: the directory with the data of
    /// large streams.
    pub(super) fn hides_in_root(&self, name: &str) -> bool {
        self.options.large_streams && fold::same(name, blob::DIRECTORY)
    }

    fn listed_form<'a>(&self, path: &'a SharePath) -> Result<Cow<'a, SharePath>, Status> {
        let mapping = self.options.names;
        let is_canonical = |name| matches!(mapping.canonical(name), Some(Cow::Borrowed(_)));
        if path.components().all(is_canonical) {
            return Ok(Cow::Borrowed(path));
        }
        let mut canonical = SharePath::root();
        for name in path.components() {
            let name = mapping.canonical(name).ok_or(Status::OBJECT_NAME_INVALID)?;
            canonical = canonical.join(&name);
        }
        Ok(Cow::Owned(canonical))
    }

    /// Returns the name on the disk of a name of a client.
    pub(super) fn disk_name<'a>(&self, name: &'a str) -> Result<Cow<'a, [u8]>, Status> {
        let name = self.options.names.to_disk(name);
        name.ok_or(Status::OBJECT_NAME_INVALID)
    }

    /// Returns the path on the disk of a path of a client.
    pub(super) fn disk_path<'a>(&self, path: &'a SharePath) -> Result<Cow<'a, [u8]>, Status> {
        disk_path(self.options.names, path.as_str()).ok_or(Status::OBJECT_NAME_INVALID)
    }
}
