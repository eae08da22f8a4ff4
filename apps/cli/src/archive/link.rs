//! Symbolic links and other reparse points, as objects of a copy.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use smbeam_client::{ReparsePoint, Wait as _};

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::{FileInfo, FilePath, LocalPath, RemotePath};
use crate::location::shown;

/// A link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// The target, with `/` between components; each has its name in SMB. `None` for a reparse
    /// point that is no symbolic link.
    target: Option<String>,
    /// The reparse point; `None` for a link of this machine.
    point: Option<ReparsePoint>,
    /// Whether the link is a directory, as links to directories are on Windows.
    is_directory: bool,
}

impl Link {
    /// Reads the link at `path`, which has the metadata `info`.
    pub(crate) fn read(path: &FilePath, info: &FileInfo) -> Outcome<Self> {
        match path {
            FilePath::Local(path) => Self::read_local(path),
            FilePath::Remote(remote) => Self::read_remote(remote, info),
        }
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
            point: Some(point),
            is_directory: info.attributes.contains(directory),
        })
    }

    /// Whether both links lead to the same target.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (&self.target, &other.target) {
            (Some(one), Some(other)) => one == other,
            (None, None) => self.point == other.point,
            _ => false,
        }
    }

    /// The reason why `target` cannot hold the link; `None` if it can.
    pub(crate) fn obstacle(&self, target: &FilePath) -> Option<String> {
        let point = self.point.as_ref()?;
        let is_foreign = !target.is_remote() && self.target.is_none();
        is_foreign.then(|| {
            let tag = point.tag.0;
            format!("this machine has no reparse points, and the tag {tag:#x} is no symbolic link")
        })
    }

    /// Creates the link at `path`, which does not exist.
    pub(crate) fn create(&self, path: &FilePath) -> Outcome {
        match path {
            FilePath::Local(path) => self.create_local(path),
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
            (None, None) => Ok(()),
        };
        created.map_err(remote.failed())
    }
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> Failure + '_ {
    move |error| Failure::local(&shown(path), &error)
}
