//! Symbolic links and other reparse points, as objects of a copy.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, symlink};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, major, makedev, minor, mknodat};
use smbeam_client::{ReparsePoint, Wait as _};
use wire::reparse::{NfsFile, ReparseTag};

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::{FileInfo, FilePath, Kind, LocalPath, RemotePath};
use crate::location::shown;

/// A link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// The target, with `/` between components; each has its name in SMB. `None` for a reparse
    /// point that is no symbolic link.
    target: Option<String>,
    /// The reparse point; `None` for a link of this machine.
    point: Option<ReparsePoint>,
    /// The special file: a device, FIFO or socket; `None` for a link.
    special: Option<NfsFile>,
    /// Whether the link is a directory, as links to directories are on Windows.
    is_directory: bool,
}

impl Link {
    /// Reads the link at `path`, which has the metadata `info`.
    pub(crate) fn read(path: &FilePath, info: &FileInfo) -> Outcome<Self> {
        match path {
            FilePath::Local(path) if info.kind == Kind::Other => Self::read_special(path),
            FilePath::Local(path) => Self::read_local(path),
            FilePath::Remote(remote) => Self::read_remote(remote, info),
        }
    }

    fn read_special(path: &LocalPath) -> Outcome<Self> {
        let metadata = fs::symlink_metadata(path).map_err(failed(path))?;
        let (kind, device) = (metadata.file_type(), metadata.rdev());
        let (major, minor) = (major(device), minor(device));
        let special = match kind {
            kind if kind.is_fifo() => NfsFile::Fifo,
            kind if kind.is_socket() => NfsFile::Socket,
            kind if kind.is_char_device() => NfsFile::CharacterDevice { major, minor },
            kind if kind.is_block_device() => NfsFile::BlockDevice { major, minor },
            _ => {
                let reason = "the special file was replaced during the copy";
                return Err(Failure::new(Exit::Differs, shown(path), reason));
            }
        };
        Ok(Self {
            target: None,
            point: None,
            special: Some(special),
            is_directory: false,
        })
    }

    fn read_local(path: &LocalPath) -> Outcome<Self> {
        let target = fs::read_link(path).map_err(failed(path))?;
        let not_text = || Failure::new(Exit::BadName, shown(path), "the target is not UTF-8");
        let target = target.to_str().ok_or_else(not_text)?;
        let components: Result<Vec<_>, _> = target
            .split('/')
            .map(|component| match component {
                "" | "." | ".." => Ok(component.to_owned()),
                name => path.smb_name(name.as_ref()),
            })
            .collect();
        let components = components.map_err(|error| Failure::name(&shown(path), error))?;
        Ok(Self {
            target: Some(components.join("/")),
            point: None,
            special: None,
            is_directory: fs::metadata(path).is_ok_and(|target| target.is_dir()),
        })
    }

    fn read_remote(remote: &RemotePath, info: &FileInfo) -> Outcome<Self> {
        let point = remote.share.reparse_point(&remote.path).wait();
        let point = point.map_err(remote.failed())?.ok_or_else(|| {
            let reason = "the link was replaced during the copy";
            Failure::new(Exit::Differs, remote, reason)
        })?;
        let directory = smbeam_client::FileAttributes::DIRECTORY;
        Ok(Self {
            target: point.symlink_target(),
            special: special_of(&point),
            point: Some(point),
            is_directory: info.attributes.contains(directory),
        })
    }

    /// The kind of the file: a link or a special file.
    pub(crate) fn kind(&self) -> Kind {
        match self.special {
            Some(_) => Kind::Other,
            None => Kind::Link,
        }
    }

    /// Whether both links lead to the same target.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (&self.target, &other.target) {
            (Some(one), Some(other)) => one == other,
            (None, None) if self.special.is_some() => self.special == other.special,
            (None, None) => self.point == other.point,
            _ => false,
        }
    }

    /// The reason why `target` cannot hold the link; `None` if it can.
    pub(crate) fn obstacle(&self, target: &FilePath) -> Option<String> {
        let point = self.point.as_ref()?;
        let is_known = self.target.is_some() || self.special.is_some();
        let is_foreign = !target.is_remote() && !is_known;
        is_foreign.then(|| {
            let tag = point.tag.0;
            format!("this machine has no reparse points, and the tag {tag:#x} is no symbolic link")
        })
    }

    /// Creates the link at `path`, which does not exist.
    pub(crate) fn create(&self, path: &FilePath) -> Outcome {
        match path {
            FilePath::Local(path) => match &self.special {
                Some(special) => create_special(special, path),
                None => self.create_local(path),
            },
            FilePath::Remote(remote) => self.create_remote(remote),
        }
    }

    fn create_local(&self, path: &LocalPath) -> Outcome {
        let target = self.target.as_deref().unwrap_or_default();
        let components: Result<Vec<_>, _> = target
            .split('/')
            .map(|component| match component {
                "" | "." | ".." => Ok(component.into()),
                name => path.local_name(name),
            })
            .collect();
        let components = components.map_err(|error| Failure::name(&shown(path), error))?;
        let target = components.join(std::ffi::OsStr::new("/"));
        symlink(target, path).map_err(failed(path))
    }

    fn create_remote(&self, remote: &RemotePath) -> Outcome {
        let RemotePath { share, path, .. } = remote;
        let is_directory = self.is_directory;
        let created = match (&self.point, &self.target) {
            (Some(point), target) => {
                let created = share.create_reparse_point(path, point, is_directory).wait();
                match (created, target) {
                    (Err(_), Some(target)) => share.symlink(target, path, is_directory).wait(),
                    (created, _) => created,
                }
            }
            (None, Some(target)) => share.symlink(target, path, is_directory).wait(),
            (None, None) => match self.special.as_ref().and_then(point_of) {
                Some(point) => share.create_reparse_point(path, &point, false).wait(),
                None => Ok(()),
            },
        };
        created.map_err(remote.failed())
    }
}

/// The special file that a reparse point stands for.
fn special_of(point: &ReparsePoint) -> Option<NfsFile> {
    let special = match point.tag {
        ReparseTag::NFS => NfsFile::decode(&point.data).ok()?,
        ReparseTag::AF_UNIX => NfsFile::Socket,
        ReparseTag::LX_FIFO => NfsFile::Fifo,
        _ => return None,
    };
    (!matches!(special, NfsFile::Symlink(_))).then_some(special)
}

/// The reparse point of a special file, in the format of the NFS service of Windows.
fn point_of(special: &NfsFile) -> Option<ReparsePoint> {
    let bytes = special.encode();
    let point = wire::reparse::ReparsePoint::decode(&bytes).ok()?;
    Some(ReparsePoint {
        tag: point.tag,
        guid: point.guid,
        data: point.data.to_vec(),
    })
}

/// Creates a special file. mknod(2)
fn create_special(special: &NfsFile, path: &LocalPath) -> Outcome {
    let (kind, device) = match special {
        NfsFile::Fifo => (FileType::Fifo, 0),
        NfsFile::Socket => (FileType::Socket, 0),
        NfsFile::CharacterDevice { major, minor } => {
            (FileType::CharacterDevice, makedev(*major, *minor))
        }
        NfsFile::BlockDevice { major, minor } => (FileType::BlockDevice, makedev(*major, *minor)),
        NfsFile::Symlink(_) => return Ok(()),
    };
    let mode = Mode::from_raw_mode(0o600);
    let created = mknodat(CWD, &**path, kind, mode, device);
    created.map_err(|errno| Failure::local(&shown(path), &errno.into()))
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> Failure + '_ {
    move |error| Failure::local(&shown(path), &error)
}
