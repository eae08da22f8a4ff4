//! Extended attributes: `user.NAME` is the extended attribute NAME of SMB.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use fuser::Errno;
use smbeam_client::{AccessMask, Error, ExtendedAttribute, File, OpenOptions, Status};

use super::{Answer, Volume};
use crate::errno::errno;

/// The namespace of Linux that SMB has.
const PREFIX: &[u8] = b"user.";
/// Longest name in SMB in bytes. \[MS-FSCC\] 2.4.16
const NAME_MAX: usize = 255;
/// The attribute must not exist. setxattr(2)
const XATTR_CREATE: i32 = 1;
/// The attribute must exist.
const XATTR_REPLACE: i32 = 2;

impl Volume {
    /// Returns the value of an attribute.
    pub(crate) async fn xattr(&self, ino: u64, name: &OsStr) -> Answer<Vec<u8>> {
        let name = in_smb(name)?;
        let found = self.xattrs_of(ino).await?;
        find(&found, name)
            .map(|attribute| attribute.value.clone())
            .ok_or(Errno::ENODATA)
    }

    /// Returns the names of all attributes, each with a NUL behind it.
    pub(crate) async fn xattr_names(&self, ino: u64) -> Answer<Vec<u8>> {
        let found = match self.xattrs_of(ino).await {
            Err(error) if error == Errno::EOPNOTSUPP => Vec::new(),
            found => found?,
        };
        let mut names = Vec::new();
        for attribute in &found {
            if !attribute.name.is_empty() && !attribute.name.contains(&0) {
                names.extend_from_slice(PREFIX);
                names.extend_from_slice(&attribute.name);
                names.push(0);
            }
        }
        Ok(names)
    }

    /// Sets an attribute.
    pub(crate) async fn set_xattr(
        &self,
        ino: u64,
        name: &OsStr,
        value: &[u8],
        flags: i32,
    ) -> Answer<()> {
        let name = in_smb(name)?;
        if value.is_empty() {
            // SMB has no attributes without a value: an empty one removes the attribute.
            return Err(Errno::EOPNOTSUPP);
        }
        if flags & (XATTR_CREATE | XATTR_REPLACE) != 0 {
            let exists = find(&self.xattrs_of(ino).await?, name).is_some();
            match exists {
                true if flags & XATTR_CREATE != 0 => return Err(Errno::EEXIST),
                false if flags & XATTR_REPLACE != 0 => return Err(Errno::ENODATA),
                _ => {}
            }
        }
        self.write_xattr(ino, name, value).await
    }

    /// Removes an attribute.
    pub(crate) async fn remove_xattr(&self, ino: u64, name: &OsStr) -> Answer<()> {
        let name = in_smb(name)?;
        if find(&self.xattrs_of(ino).await?, name).is_none() {
            return Err(Errno::ENODATA);
        }
        self.write_xattr(ino, name, &[]).await
    }

    async fn write_xattr(&self, ino: u64, name: &[u8], value: &[u8]) -> Answer<()> {
        let attributes = [ExtendedAttribute::new(name, value)];
        let writes = self.opens(ino)?.find(|open| open.is_writable);
        let written = match writes {
            Some(open) => open.file.set_extended_attributes(&attributes).await,
            None => {
                let path = self.path(ino)?;
                self.with(&path, AccessMask::FILE_WRITE_EA, async |file| {
                    file.set_extended_attributes(&attributes).await
                })
                .await
            }
        };
        written.map_err(|error| errno(&error))
    }

    async fn xattrs_of(&self, ino: u64) -> Answer<Vec<ExtendedAttribute>> {
        let reads = self.opens(ino)?.find(|open| open.is_readable);
        let found = match reads {
            Some(open) => open.file.extended_attributes().await,
            None => {
                let path = self.path(ino)?;
                let read = async |file: &File| file.extended_attributes().await;
                self.with(&path, AccessMask::FILE_READ_EA, read).await
            }
        };
        match found {
            // A server without attributes for this file, such as a link.
            Err(error) if error.status() == Some(Status::INVALID_PARAMETER) => Ok(Vec::new()),
            found => found.map_err(|error| errno(&error)),
        }
    }

    /// Opens a path without following links, uses it, and closes it.
    async fn with<T>(
        &self,
        path: &str,
        access: AccessMask,
        operation: impl AsyncFnOnce(&File) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let options = OpenOptions::new().access(access).follow(false);
        let file = self.share.open(path, &options).await?;
        let done = operation(&file).await;
        file.close().await?;
        done
    }
}

fn find<'a>(list: &'a [ExtendedAttribute], name: &[u8]) -> Option<&'a ExtendedAttribute> {
    // Servers ignore the case of names, and can store another one.
    list.iter().find(|it| it.name.eq_ignore_ascii_case(name))
}

/// The name in SMB.
fn in_smb(name: &OsStr) -> Answer<&[u8]> {
    let name = name
        .as_bytes()
        .strip_prefix(PREFIX)
        .ok_or(Errno::EOPNOTSUPP)?;
    match name.len() {
        0 => Err(Errno::EINVAL),
        length if length > NAME_MAX => Err(Errno::ERANGE),
        _ => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_attributes_of_users_exist_in_smb() {
        assert_eq!(in_smb("user.a b".as_ref()), Ok(&b"a b"[..]));
        for name in [
            "system.posix_acl_access",
            "security.selinux",
            "trusted.x",
            "user",
        ] {
            assert_eq!(in_smb(name.as_ref()), Err(Errno::EOPNOTSUPP), "{name}");
        }
        assert_eq!(in_smb("user.".as_ref()), Err(Errno::EINVAL));
    }
}
