//! Running servers, and the CPU time that a measurement takes.

use std::path::PathBuf;

use anyhow::{Result, bail};
use smbeam_tests::subject::Server;

use super::cpu;
use super::ganesha::Ganesha;

/// A running server of a directory.
#[derive(Debug)]
pub(crate) enum Running {
    Local(PathBuf),
    Smb(Box<Server>),
    Nfs(Ganesha),
}

/// CPU time in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cpu {
    pub(crate) server: f64,
    /// All processors of this machine, without the server.
    pub(crate) others: f64,
}

impl Running {
    /// The server of SMB.
    pub(crate) fn smb(&self) -> Result<&Server> {
        match self {
            Running::Smb(server) => Ok(server),
            Running::Local(_) | Running::Nfs(_) => bail!("not a server of SMB"),
        }
    }

    /// CPU time of the server so far, in seconds.
    fn cpu_seconds(&self) -> f64 {
        match self {
            Running::Local(_) => 0.0,
            Running::Smb(server) => cpu::tree_seconds(server.pid()),
            Running::Nfs(server) => cpu::tree_seconds(server.pid()),
        }
    }
}

impl Cpu {
    /// The times so far.
    pub(crate) fn now(server: &Running) -> Result<Cpu> {
        let busy = cpu::busy_seconds()?;
        let server = server.cpu_seconds();
        Ok(Cpu {
            server,
            others: busy - server,
        })
    }

    /// The times since `before`.
    pub(crate) fn since(&self, before: &Cpu) -> Cpu {
        Cpu {
            server: self.server - before.server,
            others: self.others - before.others,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Cpu;

    #[test]
    fn times_are_differences() {
        let at = |server, others| Cpu { server, others };
        let used = at(5.0, 9.0).since(&at(2.0, 3.0));
        assert_eq!((used.server, used.others), (3.0, 6.0));
    }
}
