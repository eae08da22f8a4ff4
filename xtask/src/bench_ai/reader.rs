//! The readers: how a program opens the files of a server.

use std::path::Path;

use anyhow::{Result, bail};
use smbeam_tests::fuse::FuseMount;
use smbeam_tests::namespace::HOST_ADDRESS;
use smbeam_tests::subject::ALICE;

use super::running::Running;

/// Connections of each mount and session: one for each processor of a small machine.
pub(crate) const CONNECTIONS: u32 = 2;
/// Options of cifs.ko: those of `smbeam tune` for training, and the same size for writes.
const CIFS_OPTIONS: &str = "vers=3.1.1,multichannel,serverino,rsize=4194304,wsize=4194304,\
    cache=none,actimeo=120";

/// How a program opens the files of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// The directory itself.
    Path,
    /// Our client, without a mount.
    Url,
    /// `smbeam mount`.
    Fuse,
    /// The client of the Linux kernel for SMB.
    Cifs,
    /// The client of the Linux kernel for NFS.
    Nfs,
    /// Our package for Python.
    Package,
    /// The package smbprotocol, through the class of fsspec.
    Smbprotocol,
}

/// The directory of mounts in the guest.
const GUEST_TARGET: &str = "/run/bench-ai";

/// A location that `smbeam bench ai` can measure. A mount ends with the value.
#[derive(Debug)]
pub(crate) struct Access {
    pub(crate) location: String,
    /// More arguments of `smbeam bench ai`.
    pub(crate) arguments: Vec<String>,
    _fuse: Option<FuseMount>,
}

impl Reader {
    /// The name in tables and in names of files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Reader::Path => "local",
            Reader::Url => "smb-url",
            Reader::Fuse => "fuse",
            Reader::Cifs => "cifs.ko",
            Reader::Nfs => "nfs",
            Reader::Package => "python-smbeam",
            Reader::Smbprotocol => "python-smbprotocol",
        }
    }

    /// Whether a loop in Python reads the files.
    pub(crate) fn is_python(self) -> bool {
        matches!(self, Reader::Package | Reader::Smbprotocol)
    }

    /// Opens the files of a server, with mounts in `directory`.
    pub(crate) fn open(self, server: &Running, directory: &Path) -> Result<Access> {
        match self {
            Reader::Url | Reader::Package | Reader::Smbprotocol => {
                let address = server.smb()?.tcp;
                Ok(Access {
                    location: format!("smb://{}@{address}/data", ALICE.name),
                    arguments: vec![format!("--channels={CONNECTIONS}")],
                    _fuse: None,
                })
            }
            Reader::Path => match server {
                Running::Local(path) => Ok(Access::path(path.display().to_string(), None)),
                Running::Smb(_) | Running::Nfs(_) => bail!("a server is in the way"),
            },
            Reader::Fuse => {
                let target = directory.join(self.name());
                let options = format!("channels={CONNECTIONS}");
                let mount = FuseMount::new(server.smb()?, ALICE, &target, &options)?;
                Ok(Access::path(target.display().to_string(), Some(mount)))
            }
            Reader::Cifs | Reader::Nfs => bail!("this machine may lack the client"),
        }
    }

    /// Opens the files of a server in a guest. Returns the access, and the commands that mount.
    pub(crate) fn open_in_guest(self, server: &Running) -> Result<(Access, String)> {
        let mount = |mount: String| {
            let commands = format!("mkdir -p {GUEST_TARGET}\nmount -t {mount}");
            Ok((Access::path(GUEST_TARGET.into(), None), commands))
        };
        match self {
            Reader::Cifs => {
                let address = server.smb()?.tcp;
                let login = format!("username={},password={}", ALICE.name, ALICE.password);
                let options = format!("{login},{CIFS_OPTIONS},max_channels={CONNECTIONS}");
                let (ip, port) = (address.ip(), address.port());
                mount(format!(
                    "cifs //{ip}/data {GUEST_TARGET} -o port={port},{options}"
                ))
            }
            Reader::Nfs => mount(format!(
                "nfs4 {HOST_ADDRESS}:/ {GUEST_TARGET} -o vers=4.2,nconnect={CONNECTIONS}"
            )),
            Reader::Path => mount(format!("tmpfs -o size=90% none {GUEST_TARGET}")),
            Reader::Url => Ok((self.open(server, Path::new(GUEST_TARGET))?, String::new())),
            Reader::Fuse | Reader::Package | Reader::Smbprotocol => bail!("not in the guest"),
        }
    }
}

impl Access {
    /// A path. The page cache is bypassed.
    fn path(location: String, fuse: Option<FuseMount>) -> Access {
        Access {
            location,
            arguments: vec!["--direct".into()],
            _fuse: fuse,
        }
    }
}
