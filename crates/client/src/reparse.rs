//! Reparse points and symbolic links. \[MS-FSCC\] 2.1.2, 2.3.25

use wire::access::{AccessMask, FileAttributes};
use wire::fsctl::CtlCode;
use wire::reparse::{self, NfsFile, REPARSE_MAX, ReparseTag};
use wire::{Guid, Status};

use crate::error::{Cause, Error};
use crate::file::File;
use crate::open_options::OpenOptions;
use crate::share::Share;

/// Longest target of a symbolic link in bytes of UTF-8, so that each format of a link has room for
/// it.
const TARGET_MAX: usize = 4096;

/// A reparse point of a file or directory: a tag, and data in the format of the tag. A symbolic
/// link is one. \[MS-FSCC\] 2.1.2
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReparsePoint {
    /// The tag, which defines the format of the data.
    pub tag: ReparseTag,
    /// The owner of a tag that Microsoft does not define; zeros for the others.
    pub guid: Guid,
    /// The data, not decoded.
    pub data: Vec<u8>,
}

impl ReparsePoint {
    /// Makes the reparse point of a symbolic link with the tag SYMLINK. `target` has `/` or `\`
    /// between components; it is absolute if it starts with one of them.
    ///
    /// # Errors
    /// The target is empty or longer than 4,096 bytes.
    pub fn symlink(target: &str) -> Result<Self, Error> {
        check(target)?;
        Self::decode(&reparse::encode_unix_symlink(&target.replace('\\', "/")))
            .map_err(|cause| cause.of("encode the link", target))
    }

    /// Makes the reparse point of a symbolic link with the tag NFS. `target` has `/` between
    /// components.
    ///
    /// # Errors
    /// The target is empty or longer than 4,096 bytes.
    pub fn nfs_symlink(target: &str) -> Result<Self, Error> {
        check(target)?;
        Self::decode(&NfsFile::Symlink(target.to_owned()).encode())
            .map_err(|cause| cause.of("encode the link", target))
    }

    /// Returns the target of the symbolic link, with `/` between components; `None` if the reparse
    /// point is no symbolic link, or its data are not valid.
    pub fn symlink_target(&self) -> Option<String> {
        reparse::symlink_target(&self.view())
    }

    fn view(&self) -> reparse::ReparsePoint<'_> {
        reparse::ReparsePoint {
            tag: self.tag,
            guid: self.guid,
            data: &self.data,
        }
    }

    fn decode(bytes: &[u8]) -> Result<Self, Cause> {
        let reparse::ReparsePoint { tag, guid, data } = reparse::ReparsePoint::decode(bytes)?;
        Ok(Self {
            tag,
            guid,
            data: data.to_vec(),
        })
    }
}

fn check(target: &str) -> Result<(), Error> {
    let why = match target {
        "" => "the target of a link is not empty",
        target if target.contains('\0') => "the target of a link has no NUL character",
        target if target.len() > TARGET_MAX => "the target of a link has at most 4,096 bytes",
        _ => return Ok(()),
    };
    Err(Error::InvalidName(target.to_owned(), why))
}

impl File {
    /// Queries the reparse point of the file or directory; `None` if it has none. The file must be
    /// open without [following](OpenOptions::follow) links.
    ///
    /// # Errors
    /// The server has no reparse points, or the connection is lost.
    pub async fn reparse_point(&self) -> Result<Option<ReparsePoint>, Error> {
        let max = REPARSE_MAX as u32;
        let output = self.ioctl(CtlCode::GET_REPARSE_POINT, Vec::new(), max);
        let found = match output.await {
            Ok((bytes, _)) => ReparsePoint::decode(&bytes).map(Some),
            Err(cause) if cause.status() == Some(Status::NOT_A_REPARSE_POINT) => Ok(None),
            Err(cause) => Err(cause),
        };
        found.map_err(|cause| self.failed("query the reparse point of", cause))
    }

    /// Makes the file or directory a reparse point, or replaces the data of one with the same tag.
    /// The file must be open without [following](OpenOptions::follow) links.
    ///
    /// # Errors
    /// The server refuses the tag, the file has another tag, or a directory is not empty.
    pub async fn set_reparse_point(&self, point: &ReparsePoint) -> Result<(), Error> {
        let input = point.view().encode();
        let done = self.ioctl(CtlCode::SET_REPARSE_POINT, input, 0).await;
        done.map(drop)
            .map_err(|cause| self.failed("set the reparse point of", cause))
    }

    /// Removes the reparse point with the tag of `point` from the file or directory, which remains.
    /// The file must be open without [following](OpenOptions::follow) links.
    ///
    /// # Errors
    /// The file has no reparse point, or one with another tag.
    pub async fn remove_reparse_point(&self, point: &ReparsePoint) -> Result<(), Error> {
        let without_data = ReparsePoint {
            data: Vec::new(),
            ..*point
        };
        let input = without_data.view().encode();
        let done = self.ioctl(CtlCode::DELETE_REPARSE_POINT, input, 0).await;
        done.map(drop)
            .map_err(|cause| self.failed("remove the reparse point of", cause))
    }
}

impl Share {
    /// Queries the reparse point of the file or directory `path`, relative to the root of the
    /// share; `None` if it has none.
    ///
    /// # Errors
    /// The path does not exist, or the server has no reparse points.
    pub async fn reparse_point(&self, path: &str) -> Result<Option<ReparsePoint>, Error> {
        let options = OpenOptions::new()
            .access(AccessMask::FILE_READ_ATTRIBUTES)
            .follow(false);
        let file = self.open(path, &options).await?;
        let point = file.reparse_point().await?;
        file.close().await?;
        Ok(point)
    }

    /// Reads the target of the symbolic link `path`, relative to the root of the share. The target
    /// has `/` between components. A relative target starts at the directory of the link.
    ///
    /// # Errors
    /// The path does not exist, or it is not a symbolic link.
    pub async fn read_link(&self, path: &str) -> Result<String, Error> {
        let point = self.reparse_point(path).await?;
        let target = point.and_then(|point| point.symlink_target());
        target.ok_or_else(|| Error::Status {
            operation: "read the link",
            path: path.to_owned(),
            status: Status::NOT_A_REPARSE_POINT,
        })
    }

    /// Creates the symbolic link `path`, relative to the root of the share, with a target as in
    /// [`read_link`](Self::read_link). `is_directory` says whether the target is a directory;
    /// Windows distinguishes links to directories from links to files.
    ///
    /// The link has the tag SYMLINK, or NFS if the server refuses SYMLINK. With the SMB3 POSIX
    /// extensions, a target with `\` in a name prefers the tag NFS, which keeps that character. On
    /// a server that accepts links as files only, a link to a directory is a file too, as on Unix.
    ///
    /// # Errors
    /// The path exists, the target is not valid, or the server refuses symbolic links.
    pub async fn symlink(&self, target: &str, path: &str, is_directory: bool) -> Result<(), Error> {
        let windows = (ReparsePoint::symlink(target)?, is_directory);
        let unix = (ReparsePoint::nfs_symlink(target)?, false);
        // smbd 4.25 refuses POSIX opens of links with the tag NFS (REPARSE_POINT_NOT_RESOLVED).
        let [first, second] = match self.uses_posix {
            true if target.contains('\\') => [unix, (windows.0, false)],
            true => [(windows.0, false), unix],
            false => [windows, unix],
        };
        let made = self.create_reparse_point(path, &first.0, first.1);
        match made.await {
            Err(error) if is_refusal(&error) => {
                let made = self.create_reparse_point(path, &second.0, second.1).await;
                // The reason for the usual tag says more.
                made.map_err(|_| error)
            }
            made => made,
        }
    }

    /// Creates the file or directory `path`, relative to the root of the share, and makes it a
    /// reparse point. On a server that accepts reparse points on files only, a directory becomes a
    /// file.
    ///
    /// # Errors
    /// The path exists, or the server refuses the reparse point. Then the path does not exist
    /// afterwards.
    pub async fn create_reparse_point(
        &self,
        path: &str,
        point: &ReparsePoint,
        is_directory: bool,
    ) -> Result<(), Error> {
        let made = self.try_reparse_point(path, point, is_directory).await;
        match made {
            Err(error) if is_directory && is_refusal(&error) => {
                let made = self.try_reparse_point(path, point, false).await;
                made.map_err(|_| error)
            }
            made => made,
        }
    }

    async fn try_reparse_point(
        &self,
        path: &str,
        point: &ReparsePoint,
        is_directory: bool,
    ) -> Result<(), Error> {
        let access = AccessMask::FILE_WRITE_ATTRIBUTES
            | AccessMask::FILE_READ_ATTRIBUTES
            | AccessMask::FILE_WRITE_DATA
            | AccessMask::DELETE
            | AccessMask::SYNCHRONIZE;
        let attributes = match is_directory {
            true => FileAttributes::DIRECTORY,
            false => FileAttributes::NORMAL,
        };
        let options = OpenOptions::new()
            .access(access)
            .attributes(attributes)
            .directory(is_directory)
            .create_new(true)
            .follow(false)
            .lease(wire::create_context::LeaseState::NONE);
        let file = self.open(path, &options).await?;
        let made = file.set_reparse_point(point).await;
        file.close().await?;
        if made.is_err() {
            // The error of the reparse point counts.
            let _ = match is_directory {
                true => self.remove_dir(path).await,
                false => self.remove_file(path).await,
            };
        }
        made
    }
}

/// Whether a server refused a reparse point, so that another form may be accepted.
fn is_refusal(error: &Error) -> bool {
    matches!(
        error.status(),
        Some(
            Status::NOT_SUPPORTED
                | Status::NOT_IMPLEMENTED
                | Status::INVALID_DEVICE_REQUEST
                | Status::INVALID_PARAMETER
                | Status::ACCESS_DENIED
                | Status::PRIVILEGE_NOT_HELD
                | Status::FILE_IS_A_DIRECTORY
                | Status::IO_REPARSE_TAG_INVALID
                | Status::IO_REPARSE_DATA_INVALID
                | Status::IO_REPARSE_TAG_NOT_HANDLED
        )
    )
}
