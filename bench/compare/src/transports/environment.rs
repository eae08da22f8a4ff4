//! The environment of transport benches: directories, and the networks.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process;

use anyhow::{Context as _, Result};
use smbeam_tests::scratch::{Scratch, open_directory};

use super::link::NetworkNamespace;
use super::{LOOPBACK_MTU, Link, free_port};
use crate::mount::Mount;
use crate::options::Options;

/// Size of the tmpfs for the files of a client, in bytes.
const TMPFS_BYTES: u64 = 1 << 30;

/// The network of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    /// The loopback device of the machine.
    Loopback,
    /// A loopback device with an MTU of [`LOOPBACK_MTU`].
    Narrow,
    /// The lossy link.
    Link,
}

/// The directories and the networks.
pub(crate) struct Environment {
    _tmpfs: Mount,
    scratch: Scratch,
    disk: PathBuf,
    link: Option<Link>,
    loopback: Option<NetworkNamespace>,
}

/// The network of a run: namespaces, addresses and directories.
pub(crate) struct Topology<'a> {
    /// Whether the network delays and loses packets.
    pub(crate) is_link: bool,
    /// The process with the network namespace of the server; `None` for the namespace of this
    /// program.
    pub(crate) server: Option<u32>,
    /// The process with the network namespace of the client; `None` for the namespace of this
    /// program.
    pub(crate) client: Option<u32>,
    /// The address of the server.
    pub(crate) address: Ipv4Addr,
    /// Two free ports.
    pub(crate) ports: [u16; 2],
    /// The directory for files that server and client share, apart from the shared directories.
    pub(crate) directory: &'a Path,
    /// The shared directory on a tmpfs.
    pub(crate) tmpfs: PathBuf,
    /// The shared directory on a disk.
    pub(crate) disk: PathBuf,
}

impl Environment {
    /// Creates the directories, and the networks that the benches need.
    pub(crate) fn set(options: &Options, needs: &[Network]) -> Result<Environment> {
        let scratch = Scratch::new("transports")?;
        let tmpfs = scratch.open_directory("tmpfs")?;
        let tmpfs = Mount::tmpfs(&tmpfs, TMPFS_BYTES)?;
        let disk = disk_directory()?;
        let link = match needs.contains(&Network::Link) {
            true => Some(Link::new(options.link_mbit)?),
            false => None,
        };
        let loopback = match needs.contains(&Network::Narrow) {
            true => Some(NetworkNamespace::new(LOOPBACK_MTU)?),
            false => None,
        };
        Ok(Environment {
            _tmpfs: tmpfs,
            scratch,
            disk,
            link,
            loopback,
        })
    }

    /// The topology of a run over `network`.
    pub(super) fn topology(&self, network: Network) -> Result<Topology<'_>> {
        let topology = Topology {
            is_link: false,
            server: None,
            client: None,
            address: Ipv4Addr::LOCALHOST,
            ports: [free_port()?, free_port()?],
            directory: self.scratch.path(),
            tmpfs: self.scratch.path().join("tmpfs"),
            disk: self.disk.clone(),
        };
        match network {
            Network::Loopback => return Ok(topology),
            Network::Narrow => {
                let end = self.loopback.as_ref().context("the loopback was made")?;
                return Ok(Topology {
                    server: Some(end.holder()),
                    client: Some(end.holder()),
                    ..topology
                });
            }
            Network::Link => {}
        }
        let link = self.link.as_ref().context("the link was made")?;
        let [server, client] = link.holders();
        Ok(Topology {
            is_link: true,
            server: Some(server),
            client: Some(client),
            address: super::link::SERVER,
            ..topology
        })
    }

    /// The packet counters of the link, for the report.
    pub(crate) fn link_report(&self) -> Option<String> {
        self.link.as_ref().map(Link::report)
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.disk);
    }
}

/// A directory for all users, most likely on a disk, because its files survive a restart.
fn disk_directory() -> Result<PathBuf> {
    let path = PathBuf::from(format!("/var/tmp/smbeam-transports-{}", process::id()));
    open_directory(&path)?;
    Ok(path)
}
