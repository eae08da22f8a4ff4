//! nfs-ganesha of the lab, a server of NFS in user space.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::background::Background;
use smbeam_tests::lab::Lab;
use smbeam_tests::namespace::Namespace;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::wait;

/// The smallest number of threads that the server accepts.
pub(crate) const THREADS_MIN: u32 = 2;
/// The line of the log of a server that accepts connections.
const READY: &str = "NFS SERVER INITIALIZED";
const START_LIMIT: Duration = Duration::from_secs(30);

/// A running server. It is killed with the value.
#[derive(Debug)]
pub(crate) struct Ganesha {
    process: Background,
    _scratch: Scratch,
}

impl Ganesha {
    /// Starts it with a number of threads, in the network of `namespace`. Clients mount `files`
    /// as `/`.
    pub(crate) fn start(
        lab: &Lab,
        namespace: &Namespace,
        files: &Path,
        threads: u32,
    ) -> Result<Ganesha> {
        let scratch = Scratch::new("ganesha")?;
        let path = |name: &str| scratch.path().join(name);
        let (configuration, log) = (path("ganesha.conf"), path("log"));
        fs::write(&configuration, text(files, scratch.path(), threads))?;
        let mut command = lab.command_under(Some(namespace.holder()), "ganesha.nfsd");
        command
            .args(["-F", "-N", "NIV_EVENT", "-f"])
            .arg(&configuration)
            .arg("-L")
            .arg(&log)
            .arg("-p")
            .arg(path("pid"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut process = Background::start(&mut command).context("cannot start nfs-ganesha")?;
        let said = || fs::read_to_string(&log).unwrap_or_default();
        let mut ended = false;
        wait::until("nfs-ganesha", START_LIMIT, || {
            ended = process.0.try_wait().ok().flatten().is_some();
            ended || said().contains(READY)
        })
        .with_context(|| fatal(&said()))?;
        ensure!(!ended, "nfs-ganesha has ended: {}", fatal(&said()));
        Ok(Ganesha {
            process,
            _scratch: scratch,
        })
    }

    /// Number of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.process.0.id()
    }
}

/// The lines of a log with a reason for the end of the server.
fn fatal(log: &str) -> String {
    let lines = log
        .lines()
        .filter(|line| line.contains(":CRIT :") || line.contains(":FATAL :"));
    lines.collect::<Vec<_>>().join("; ")
}

/// The configuration: NFS 4.2 without a wait for clients of an earlier run.
fn text(files: &Path, state: &Path, threads: u32) -> String {
    format!(
        "NFS_CORE_PARAM {{\n\
         Protocols = 4;\n\
         NFS_Port = 2049;\n\
         Enable_UDP = false;\n\
         Enable_RQUOTA = false;\n\
         Enable_NLM = false;\n\
         Allow_Set_Io_Flusher_Fail = true;\n\
         RPC_Ioq_ThrdMax = {threads};\n\
         }}\n\
         NFSv4 {{\n\
         Graceless = true;\n\
         RecoveryBackend = fs;\n\
         RecoveryRoot = {};\n\
         Minor_Versions = 2;\n\
         Only_Numeric_Owners = true;\n\
         }}\n\
         EXPORT {{\n\
         Export_Id = 1;\n\
         Path = {};\n\
         Pseudo = /;\n\
         Access_Type = RW;\n\
         Squash = No_Root_Squash;\n\
         SecType = sys;\n\
         FSAL {{ Name = VFS; }}\n\
         }}\n",
        state.display(),
        files.display(),
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{fatal, text};

    #[test]
    fn the_number_of_threads_is_fixed() {
        let text = text(Path::new("/files"), Path::new("/state"), 4);
        assert!(text.contains("RPC_Ioq_ThrdMax = 4;"));
        assert!(text.contains("Path = /files;") && text.contains("RecoveryRoot = /state;"));
    }

    #[test]
    fn an_error_has_the_reason_only() {
        let log = "main :MAIN :EVENT :start\nmain :MAIN :FATAL :no port\n";
        assert_eq!(fatal(log), "main :MAIN :FATAL :no port");
    }
}
