//! What the clients are sent for.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};
use smbeam_tests::files;
use smbeam_tests::smbclient::{Protection, Smbclient};
use smbeam_tests::subject::{ALICE, Subject, program};

use super::gate::{self, Cost, GATE};
use super::place::{LISTED, SHARE, SMALL, SMALL_COPY};
use super::{ENTRIES, Place, SMALL_FILE_BYTES, SMALL_FILES};
use crate::options::{Contender, Options};
use crate::sample::{Metric, Row, Work};
use crate::smbclient::{COPY, check_length};
use crate::stage::LARGE_FILE;

/// Something that both clients do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Errand {
    /// Its name on the command line, and the start of its row's title.
    pub(crate) name: &'static str,
    task: Task,
    protection: Protection,
}

#[derive(Clone, Copy, Debug)]
enum Task {
    /// The large file, to nowhere.
    Get,
    /// The large file, to a file.
    GetToFile,
    /// The large file, to the server.
    Put,
    /// All the small files.
    GetMany,
    /// All of them to the server.
    PutMany,
    /// The names and sizes of many files.
    List,
}

impl Errand {
    /// Every errand.
    pub(crate) const ALL: [Errand; 12] = [
        errand("client-get-plain", Task::Get, Protection::Off),
        errand("client-get-signed", Task::Get, Protection::Sign),
        errand("client-get-encrypted", Task::Get, Protection::Encrypt),
        errand("client-get-file-plain", Task::GetToFile, Protection::Off),
        errand("client-get-file-signed", Task::GetToFile, Protection::Sign),
        errand(
            "client-get-file-encrypted",
            Task::GetToFile,
            Protection::Encrypt,
        ),
        errand("client-put-plain", Task::Put, Protection::Off),
        errand("client-put-signed", Task::Put, Protection::Sign),
        errand("client-put-encrypted", Task::Put, Protection::Encrypt),
        errand("client-get-many", Task::GetMany, Protection::Off),
        errand("client-put-many", Task::PutMany, Protection::Off),
        errand("client-list", Task::List, Protection::Off),
    ];

    /// What it is, for people.
    pub(crate) fn about(&self) -> &'static str {
        match self.task {
            Task::Get => "a large file from smbd to /dev/null",
            Task::GetToFile => "a large file from smbd to a file",
            Task::Put => "a large file to smbd",
            Task::GetMany => "1,000 files of 150 kB: get -r beside mget",
            Task::PutMany => "1,000 files of 150 kB: put -r beside mput",
            Task::List => "100,000 entries: ls -l beside ls",
        }
    }

    /// Those that `options` choose.
    pub(crate) fn chosen(options: &Options) -> impl Iterator<Item = Errand> + '_ {
        let all = Errand::ALL.into_iter();
        all.filter(|errand| options.is_chosen(errand.name))
    }

    /// Sends one of the clients: smbclient for Samba.
    pub(crate) fn run(&self, place: &Place, client: &Contender) -> Result<Vec<Row>> {
        let output = place.output();
        let mut command = match client.subject {
            Subject::Samba => self.smbclient(place, &output),
            Subject::Smbeam => {
                let program = client.binary.clone().map_or_else(program, Ok)?;
                self.smbeam(place, &program, &output)
            }
        };
        place.clear()?;
        let mut before = 0.0;
        let cost = gate::run(&mut command, &output, || {
            before = place.server_cpu()?;
            Ok(())
        })?;
        let cpu_seconds = place.server_cpu()? - before;
        self.check(place, &output)?;
        Ok(vec![self.row(place, cost, cpu_seconds)])
    }

    fn smbclient(&self, place: &Place, output: &Path) -> Command {
        let commands = match self.task {
            Task::Get => format!("get {LARGE_FILE} /dev/null"),
            Task::GetToFile => format!("get {LARGE_FILE} {COPY}"),
            Task::Put => format!("put {LARGE_FILE} {COPY}"),
            Task::GetMany => format!("cd {SMALL}; prompt off; mget *"),
            Task::PutMany => format!("cd {SMALL_COPY}; prompt off; mput *"),
            Task::List => format!("cd {LISTED}; ls"),
        };
        let arguments = Smbclient::new(place.lab(), place.server())
            .share(SHARE)
            .protection(self.protection)
            .arguments();
        let folder = match self.task {
            Task::GetMany => place.local(SMALL_COPY),
            Task::PutMany => place.local(SMALL),
            _ => place.local(""),
        };
        let mut command = place.lab().command_under(None, "sh");
        command.args(["-c", GATE]).arg(output);
        command.arg("smbclient").args(arguments);
        command.args(["-c", &commands]).current_dir(folder);
        command
    }

    fn smbeam(&self, place: &Place, program: &Path, output: &Path) -> Command {
        let url = |name: &str| {
            let address = place.server().tcp;
            format!("smb://{}@{address}/{SHARE}/{name}", ALICE.name)
        };
        let local = |name: &str| place.local(name).display().to_string();
        let arguments = match self.task {
            Task::Get => ["get".into(), url(LARGE_FILE), "/dev/null".into()].to_vec(),
            Task::GetToFile => ["get".into(), url(LARGE_FILE), local(COPY)].to_vec(),
            Task::Put => ["put".into(), local(LARGE_FILE), url(COPY)].to_vec(),
            Task::GetMany => ["get".into(), "-r".into(), url(SMALL), local(SMALL_COPY)].to_vec(),
            Task::PutMany => ["put".into(), "-r".into(), local(SMALL), url(SMALL_COPY)].to_vec(),
            Task::List => ["ls".into(), "-l".into(), url(LISTED)].to_vec(),
        };
        let mut command = Command::new("sh");
        command.args(["-c", GATE]).arg(output).arg(program);
        command.args(arguments).args(match self.protection {
            Protection::Off => None,
            Protection::Sign => Some("--sign"),
            Protection::Encrypt => Some("--encrypt"),
        });
        command
            .env("SMBEAM_PASSWORD", ALICE.password)
            .env("HOME", place.home())
            .env_remove("XDG_CONFIG_HOME");
        command
    }

    /// Whether everything came where it belongs.
    fn check(&self, place: &Place, output: &Path) -> Result<()> {
        match self.task {
            Task::Get => Ok(()),
            Task::GetToFile => check_length(&place.local(COPY), place.large_bytes()),
            Task::Put => check_length(&place.shared(COPY), place.large_bytes()),
            Task::GetMany => check_small(&place.local(SMALL_COPY)),
            Task::PutMany => check_small(&place.shared(SMALL_COPY)),
            Task::List => {
                let text = fs::read_to_string(output)?;
                let count = text.matches("entry-").count();
                ensure!(count == ENTRIES as usize, "{count} entries are listed");
                Ok(())
            }
        }
    }

    fn row(&self, place: &Place, cost: Cost, cpu_seconds: f64) -> Row {
        let (bytes, ops) = match self.task {
            Task::Get | Task::GetToFile | Task::Put => (place.large_bytes(), 0),
            Task::GetMany | Task::PutMany => {
                (u64::from(SMALL_FILES) * SMALL_FILE_BYTES, SMALL_FILES)
            }
            Task::List => (0, ENTRIES),
        };
        let work = Work {
            bytes,
            ops: ops.into(),
            seconds: cost.seconds,
            cpu_seconds,
        };
        // The blank tells the titles apart whose names begin alike.
        let mut row = work.row(format!("{} ", self.name));
        if bytes > 0 {
            let cpu = cost.cpu / (bytes as f64 / 1e9);
            row.metrics.push((Metric::ClientCpuSecondsPerGb, cpu));
        }
        row
    }
}

/// Fails unless all the small files are somewhere below `folder`.
fn check_small(folder: &Path) -> Result<()> {
    let is_whole = |path: &PathBuf| {
        let metadata = fs::metadata(folder.join(path));
        metadata.is_ok_and(|metadata| metadata.is_file() && metadata.len() == SMALL_FILE_BYTES)
    };
    let paths = files::paths(folder)?;
    let count = paths.iter().filter(|path| is_whole(path)).count();
    ensure!(
        count == SMALL_FILES as usize,
        "{count} of {SMALL_FILES} files arrived"
    );
    Ok(())
}

const fn errand(name: &'static str, task: Task, protection: Protection) -> Errand {
    Errand {
        name,
        task,
        protection,
    }
}
