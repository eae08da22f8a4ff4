//! Names and paths that clients send, before their use in a system call.

use std::borrow::Cow;

use proto::path::SharePath;
use wire::Status;

use super::Posix;
use super::mapping::disk_path;

impl Posix {
    /// Returns a path of a client in the form of a listing. Fails if no file can have the path.
    pub(super) fn canonical<'a>(&self, path: &'a SharePath) -> Result<Cow<'a, SharePath>, Status> {
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
