//! Cases in Python that start their servers themselves: faults that users of file servers reported
//! ([`FIELD`]), and attacks ([`ATTACKS`]).
//!
//! A case runs in separate mount, network and process namespaces, with a tmpfs for its files. So
//! its ports are free, its mounts are visible to itself only, and its processes end with it. The
//! interop tests and `cargo xtask lab` run the cases.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::background::Background;
use crate::lab::{Lab, Missing, is_root};
use crate::python::Python;
use crate::scale;
use crate::scratch::Scratch;
use crate::subject::{self, Subject};
use crate::wait;

/// The scripts with reported faults, without the ending of the file.
pub const FIELD: Group = Group {
    directory: "field",
    names: &[
        "disk_mounted_later",
        "full_disk",
        "link_local_address",
        "mount_below_share",
        "names_that_differ_in_case",
        "names_that_smb_forbids",
        "share_without_directory",
        "user_names_in_unicode",
    ],
};

/// The scripts that attack a server, without the ending of the file.
pub const ATTACKS: Group = Group {
    directory: "attacks",
    names: &[
        "blocked_log",
        "forged_log_lines",
        "part_file_symlink",
        "password_guesses",
        "quic_stream_gap",
        "signing_nonces",
        "silent_connections",
        "unread_listings",
        "unread_reads",
        "unsent_writes",
    ],
};

/// The figures that attacks measure, in the order of the columns of their table.
pub const COLUMNS: [&str; 6] = [
    "load",
    "memory before",
    "peak",
    "after 1 min",
    "rate",
    "slowest answer",
];

/// The exit code of a script that this machine cannot run.
const SKIPPED: i32 = 77;
/// Time limit of a script. A failing script may wait in vain several times.
const TIME_LIMIT: Duration = Duration::from_secs(900);
/// Brings the loopback device up, mounts the file system of the case, and runs it.
const ENTER: &str = "ip link set lo up && mount -t tmpfs -o mode=755,size=4G none \"$0\" \
                     && exec \"$@\"";

/// A directory of scripts below `src/python`.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    directory: &'static str,
    /// The names of the scripts.
    pub names: &'static [&'static str],
}

/// One script of a [`Group`].
#[derive(Clone, Copy, Debug)]
pub struct Script {
    directory: &'static str,
    /// The file without its ending.
    pub name: &'static str,
}

/// The figures of an attack, by the names of [`COLUMNS`].
pub type Figures = BTreeMap<String, String>;

/// The end of a script.
#[derive(Clone, Debug)]
pub struct Report {
    /// The exit code; none if it was killed.
    pub code: Option<i32>,
    /// Everything that it printed.
    pub text: String,
    /// The measured figures; empty unless they were wanted.
    pub figures: Figures,
}

impl Group {
    /// All scripts of the group.
    pub fn scripts(self) -> impl Iterator<Item = Script> {
        let directory = self.directory;
        self.names
            .iter()
            .map(move |&name| Script { directory, name })
    }
}

impl Script {
    /// Runs the script as a test case.
    ///
    /// # Errors
    /// A check fails, the script does not end, or ([`Missing`]) this machine cannot run it.
    pub fn check(self) -> Result<()> {
        if Subject::chosen() == Subject::Samba {
            return Err(Missing("the script starts servers of smbeam".into()).into());
        }
        let report = self.run(&subject::program()?, false, scale::is_full())?;
        match report.code {
            Some(0) => Ok(()),
            Some(SKIPPED) => Err(Missing(last_line(&report.text)).into()),
            Some(_) => bail!("{}", report.text),
            None => bail!(
                "the script does not end within {TIME_LIMIT:?}:\n{}",
                report.text
            ),
        }
    }

    /// Runs the script against the smbeam program `program`, at its full size if `is_full` is set.
    /// Figures are measured if `measures` is set, which takes a further minute.
    ///
    /// # Errors
    /// The script cannot be started, or ([`Missing`]) the lab is not built.
    pub fn run(self, program: &Path, measures: bool, is_full: bool) -> Result<Report> {
        if !is_root() {
            return Err(Missing("the script needs root, for its namespaces".into()).into());
        }
        let scratch = Scratch::new(self.name)?;
        let files = scratch.open_directory("files")?;
        let (output, figures) = (
            scratch.path().join("output"),
            scratch.path().join("figures"),
        );
        let mut command = self.command(program, &files)?;
        let (variable, scale) = scale::variable(is_full);
        command.env(variable, scale);
        if measures {
            command.env("SMBEAM_CASE_FIGURES", &figures);
        }
        let log = File::create(&output)?;
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let mut child = Background::start(&mut command).context("cannot run unshare")?;
        let status = wait::for_end(&mut child.0, TIME_LIMIT)?;
        Ok(Report {
            code: status.and_then(|status| status.code()),
            text: String::from_utf8_lossy(&fs::read(&output)?).into_owned(),
            figures: fs::read(&figures).map_or_else(
                |_| Ok(Figures::new()),
                |text| serde_json::from_slice(&text).context("the figures are no JSON"),
            )?,
        })
    }

    /// The script as a command that has not started.
    fn command(self, program: &Path, files: &Path) -> Result<Command> {
        let lab = Lab::find()?;
        let python = Python::find()?.interpreter();
        let program = fs::canonicalize(program)
            .with_context(|| format!("cannot find {}", program.display()))?;
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--propagation", "private", "--net", "--pid"])
            .args(["--fork", "--kill-child", "--mount-proc"])
            .args(["--", "/bin/sh", "-c", ENTER])
            .arg(files)
            .arg(python.get_program())
            .args(["-W", "ignore"])
            .arg(self.path())
            .current_dir("/")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("PYTHONPATH", scripts())
            .env("SMBEAM", program)
            .env("SMBEAM_CASE_DIRECTORY", files)
            .env("SMBEAM_SMBCLIENT", smbclient(&lab)?);
        Ok(command)
    }

    fn path(self) -> PathBuf {
        let directory = scripts().join(self.directory);
        directory.join(self.name).with_extension("py")
    }
}

/// The directory of the groups, which contains the modules that they share.
fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/python")
}

/// The command of the lab's smbclient as a JSON array.
fn smbclient(lab: &Lab) -> Result<String> {
    let command = lab.command("smbclient");
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    Ok(serde_json::to_string(&words)?)
}

fn last_line(text: &str) -> String {
    text.lines().last().unwrap_or("skipped").to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::{ATTACKS, FIELD, Group, scripts};

    /// The modules that scripts of a group share.
    const SHARED: [&str; 3] = ["fieldlib", "mini", "victim"];

    fn assert_complete(group: Group) {
        let directory = scripts().join(group.directory);
        let files = fs::read_dir(directory).expect("the scripts").flatten();
        let names = files.filter_map(|file| {
            let name = file.file_name().into_string().ok()?;
            name.strip_suffix(".py").map(str::to_owned)
        });
        let found: BTreeSet<String> = names.filter(|name| !SHARED.contains(&&**name)).collect();
        let listed: BTreeSet<String> = group.names.iter().map(ToString::to_string).collect();
        assert_eq!(found, listed);
    }

    #[test]
    fn every_script_is_a_case() {
        assert_complete(FIELD);
        assert_complete(ATTACKS);
    }
}
