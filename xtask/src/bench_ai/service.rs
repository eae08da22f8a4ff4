//! The servers: smbeam, smbd and nfs-ganesha of the lab, or none. All of them run on this machine.

use std::path::Path;

use anyhow::{Context as _, Result};
use smbeam_tests::lab::Lab;
use smbeam_tests::namespace::Namespace;
use smbeam_tests::subject::{Plan, Server, Subject};

use super::ganesha::{self, Ganesha};
use super::options::{Options, Table};
use super::reader::Reader;
use super::running::Running;
use super::workload::Workload;

/// What serves the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    /// Programs open the files themselves.
    Local,
    /// smbeam with a number of workers.
    Smbeam(u32),
    /// smbd, which has a process for each client.
    Samba,
    /// nfs-ganesha with a number of threads.
    Ganesha(u32),
}

impl Service {
    /// The servers of a table, in the order of its rows.
    pub(crate) fn all(table: Table, options: &Options) -> Vec<Service> {
        let workers = || options.workers().iter().copied();
        let smbeam = workers().map(Service::Smbeam);
        let mut services = vec![Service::Local];
        if table == Table::Guest {
            let threads = workers().filter(|threads| *threads >= ganesha::THREADS_MIN);
            services.extend(threads.map(Service::Ganesha));
        }
        services.extend(smbeam);
        services.push(Service::Samba);
        services
    }

    /// The readers of this server that a table compares.
    pub(crate) fn readers(self, table: Table, workload: Workload) -> Vec<Reader> {
        let mut readers = match (self, table) {
            (Service::Local, _) => vec![Reader::Path],
            (Service::Ganesha(_), _) => vec![Reader::Nfs],
            (_, Table::Host) => vec![
                Reader::Url,
                Reader::Fuse,
                Reader::Package,
                Reader::Smbprotocol,
            ],
            (_, Table::Guest) => vec![Reader::Url, Reader::Cifs],
        };
        // The loops in Python train only.
        readers.retain(|reader| !reader.is_python() || workload != Workload::Checkpoint);
        readers
    }

    /// The name of the server without its number of workers.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Service::Local => "none",
            Service::Smbeam(_) => "smbeam",
            Service::Samba => "smbd",
            Service::Ganesha(_) => "ganesha",
        }
    }

    /// Workers or threads, if their number is chosen.
    pub(crate) fn workers(self) -> Option<u32> {
        match self {
            Service::Smbeam(workers) | Service::Ganesha(workers) => Some(workers),
            Service::Local | Service::Samba => None,
        }
    }

    /// Starts it for the files in `directory`, with a share `data`. With a network namespace, a
    /// guest reaches it.
    pub(crate) fn start(
        self,
        directory: &Path,
        lab: &Lab,
        namespace: Option<&Namespace>,
    ) -> Result<Running> {
        let mut plan = Plan::sharing(directory);
        plan.channels = true;
        let subject = match self {
            Service::Local => return Ok(Running::Local(directory.to_path_buf())),
            Service::Ganesha(threads) => {
                let namespace = namespace.context("NFS needs a guest")?;
                return Ganesha::start(lab, namespace, directory, threads).map(Running::Nfs);
            }
            Service::Samba => Subject::Samba,
            Service::Smbeam(workers) => {
                let workers = i64::from(workers).into();
                plan.server.insert("workers".into(), workers);
                Subject::Smbeam
            }
        };
        let holder = namespace.map(Namespace::holder);
        let server = Server::start_as(subject, Some(lab), holder, plan);
        let server = server.with_context(|| format!("cannot start {}", self.name()))?;
        Ok(Running::Smb(Box::new(server)))
    }
}

#[cfg(test)]
mod tests {
    use super::{Options, Service, Table};
    use crate::bench_ai::reader::Reader;
    use crate::bench_ai::workload::Workload;

    #[test]
    fn each_table_has_its_servers() {
        let options = Options::parse(&["--quick".into()]).expect("known arguments");
        let host = Service::all(Table::Host, &options);
        assert_eq!(host, [Service::Local, Service::Smbeam(2), Service::Samba],);
        let guest = Service::all(Table::Guest, &options);
        assert_eq!(
            guest,
            [
                Service::Local,
                Service::Ganesha(2),
                Service::Smbeam(2),
                Service::Samba
            ],
        );
    }

    #[test]
    fn python_writes_no_checkpoints() {
        let readers = |workload| Service::Samba.readers(Table::Host, workload);
        assert!(readers(Workload::Unet3d).contains(&Reader::Package));
        assert_eq!(readers(Workload::Checkpoint), [Reader::Url, Reader::Fuse]);
    }
}
