//! The environment of client benches: a tmpfs, the server, and the files.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use smbeam_tests::files::{give_tree_to, write_random};
use smbeam_tests::lab::Lab;
use smbeam_tests::scratch::{Scratch, open_directory};
use smbeam_tests::subject::{ALICE, Plan, Server, Share, Subject};

use super::{ENTRIES, SMALL_FILE_BYTES, SMALL_FILES};
use crate::accounting::Accounting;
use crate::environment::{self, LARGE_FILE};
use crate::mount::Mount;
use crate::options::Options;
use crate::smbclient::COPY;

/// Name of the share and of its tmpfs.
pub(super) const SHARE: &str = "tmpfs";
/// The directory of small files, on the share and locally.
pub(super) const SMALL: &str = "small";
/// The directory for copies of the small files.
pub(super) const SMALL_COPY: &str = "small-copy";
/// The directory that is listed.
pub(super) const LISTED: &str = "listed";

/// Space on the tmpfs besides the large files, in bytes.
const SPARE_BYTES: u64 = 2 << 30;
const CHUNK_BYTES: usize = 4 << 20;
/// The kernel reports free memory to the host two seconds after it becomes free.
/// mm/page_reporting.c
const REPORTING: Duration = Duration::from_millis(2500);
/// Time for the process of a connection to end after its client.
const SETTLE: Duration = Duration::from_millis(50);

/// The directories, the files and the server.
pub(crate) struct Environment {
    // The order of fields matters: the server is dropped before its directories.
    server: Server,
    accounting: Accounting,
    lab: Lab,
    large_bytes: u64,
    _hosts: Vec<Mount>,
    _tmpfs: Mount,
    scratch: Scratch,
}

impl Environment {
    /// Creates the files and starts the server.
    pub(crate) fn set(options: &Options) -> Result<Environment> {
        let lab = Lab::find()?;
        let scratch = Scratch::new("clients")?;
        let tmpfs = scratch.open_directory(SHARE)?;
        // The originals on both sides, the copy of a run, and the reserve of [`Self::clear`].
        let bytes = 4 * options.large_bytes + SPARE_BYTES;
        let mount = Mount::tmpfs(&tmpfs, bytes)?;
        let hosts = environment::disable_name_lookups(&scratch, &lab)?;
        let (shared, local) = (tmpfs.join("shared"), tmpfs.join("local"));
        for side in [&shared, &local] {
            open_directory(side)?;
            open_directory(&side.join(SMALL))?;
            println!("writing {}", side.display());
            write_random(&side.join(LARGE_FILE), options.large_bytes, 1)?;
            for number in 0..SMALL_FILES {
                let path = side.join(SMALL).join(format!("file-{number:04}.bin"));
                write_random(&path, SMALL_FILE_BYTES, number.into())?;
            }
        }
        open_directory(&shared.join(LISTED))?;
        for number in 0..ENTRIES {
            let path = shared.join(LISTED).join(format!("entry-{number:06}.txt"));
            File::create(path)?.set_len(number.into())?;
        }
        // The files belong to the user, as on most shares. smbd must check permissions of other
        // files.
        give_tree_to(&shared, ALICE.id)?;
        let plan = Plan {
            shares: vec![Share::new(SHARE, &shared)],
            samba_globals: options.smb_conf.clone(),
            ..Plan::default()
        };
        let accounting = Accounting::new("clients");
        let server =
            accounting.around(|| Server::start_as(Subject::Samba, Some(&lab), None, plan))?;
        Ok(Environment {
            server,
            accounting,
            lab,
            large_bytes: options.large_bytes,
            _hosts: hosts,
            _tmpfs: mount,
            scratch,
        })
    }

    /// The server.
    pub(super) fn server(&self) -> &Server {
        &self.server
    }

    /// The lab that contains smbclient.
    pub(super) fn lab(&self) -> &Lab {
        &self.lab
    }

    /// Length of the large file in bytes.
    pub(super) fn large_bytes(&self) -> u64 {
        self.large_bytes
    }

    /// The path of a shared file.
    pub(super) fn shared(&self, name: &str) -> PathBuf {
        self.tmpfs().join("shared").join(name)
    }

    /// The path of a local file.
    pub(super) fn local(&self, name: &str) -> PathBuf {
        self.tmpfs().join("local").join(name)
    }

    /// The file for the output of a client.
    pub(super) fn output(&self) -> PathBuf {
        self.scratch.path().join("output")
    }

    /// A home directory without configuration files.
    pub(super) fn home(&self) -> &Path {
        self.scratch.path()
    }

    /// Removes the files of the last run, and prepares free memory for the next one.
    ///
    /// A virtual machine can return free memory to its host, and getting it back is slow: a write
    /// to tmpfs takes five times as long. So this function allocates the memory of a run, waits
    /// until the kernel has reported free memory, and frees it just before the run.
    pub(super) fn clear(&self) -> Result<()> {
        for path in [self.shared(COPY), self.local(COPY)] {
            if path.exists() {
                fs::remove_file(path)?;
            }
        }
        for path in [self.shared(SMALL_COPY), self.local(SMALL_COPY)] {
            if path.exists() {
                fs::remove_dir_all(&path)?;
            }
            open_directory(&path)?;
        }
        let path = self.local("reserve");
        let mut file = File::create(&path)?;
        let chunk = vec![0; CHUNK_BYTES];
        for _ in 0..self.large_bytes.div_ceil(CHUNK_BYTES as u64) {
            file.write_all(&chunk)?;
        }
        thread::sleep(REPORTING);
        fs::remove_file(path)?;
        Ok(())
    }

    /// CPU seconds of the server so far.
    pub(super) fn server_cpu(&self) -> Result<f64> {
        thread::sleep(SETTLE);
        self.accounting.cpu_seconds(self.server.pid())
    }

    fn tmpfs(&self) -> PathBuf {
        self.scratch.path().join(SHARE)
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        let _ = self.server.stop().or_else(|_| self.server.kill());
    }
}
