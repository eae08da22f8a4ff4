//! The client benches: tasks for smbclient and smbeam.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};
use smbeam_tests::files;
use smbeam_tests::smbclient::{Protection, Smbclient};
use smbeam_tests::subject::{ALICE, Subject, program};

use super::environment::{LISTED, SHARE, SMALL, SMALL_COPY};
use super::gate::{self, Cost, GATE};
use super::{ENTRIES, Environment, SMALL_FILE_BYTES, SMALL_FILES};
use crate::environment::LARGE_FILE;
use crate::options::{Contender, Options};
use crate::sample::{Metric, Row, Work};
use crate::smbclient::{COPY, check_length};

/// A task that both clients perform.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientBench {
    /// Name on the command line, and prefix of the title of its row.
    pub(crate) name: &'static str,
    task: Task,
    protection: Protection,
}

#[derive(Clone, Copy, Debug)]
enum Task {
    /// Download the large file to /dev/null.
    Get,
    /// Download the large file to a file.
    GetToFile,
    /// Upload the large file.
    Put,
    /// Download all small files.
    GetMany,
    /// Upload all small files.
    PutMany,
    /// List names and sizes of many files.
    List,
}

impl ClientBench {
    /// All client benches.
    pub(crate) const ALL: [ClientBench; 12] = [
        client_bench("client-get-plain", Task::Get, Protection::Off),
        client_bench("client-get-signed", Task::Get, Protection::Sign),
        client_bench("client-get-encrypted", Task::Get, Protection::Encrypt),
        client_bench("client-get-file-plain", Task::GetToFile, Protection::Off),
        client_bench("client-get-file-signed", Task::GetToFile, Protection::Sign),
        client_bench(
            "client-get-file-encrypted",
            Task::GetToFile,
            Protection::Encrypt,
        ),
        client_bench("client-put-plain", Task::Put, Protection::Off),
        client_bench("client-put-signed", Task::Put, Protection::Sign),
        client_bench("client-put-encrypted", Task::Put, Protection::Encrypt),
        client_bench("client-get-many", Task::GetMany, Protection::Off),
        client_bench("client-put-many", Task::PutMany, Protection::Off),
        client_bench("client-list", Task::List, Protection::Off),
    ];

    /// Description for `--list`.
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

    /// The selected client benches.
    pub(crate) fn chosen(options: &Options) -> impl Iterator<Item = ClientBench> + '_ {
        let all = ClientBench::ALL.into_iter();
        all.filter(|client_bench| options.is_chosen(client_bench.name))
    }

    /// Runs the task with one client.
    pub(crate) fn run(&self, environment: &Environment, client: &Contender) -> Result<Vec<Row>> {
        let output = environment.output();
        let mut command = match client.subject {
            Subject::Samba => self.smbclient(environment, &output),
            Subject::Smbeam => {
                let program = client.binary.clone().map_or_else(program, Ok)?;
                self.smbeam(environment, &program, &output)
            }
        };
        environment.clear()?;
        let mut before = 0.0;
        let cost = gate::run(&mut command, &output, || {
            before = environment.server_cpu()?;
            Ok(())
        })?;
        let cpu_seconds = environment.server_cpu()? - before;
        self.check(environment, &output)?;
        Ok(vec![self.row(environment, cost, cpu_seconds)])
    }

    fn smbclient(&self, environment: &Environment, output: &Path) -> Command {
        let commands = match self.task {
            Task::Get => format!("get {LARGE_FILE} /dev/null"),
            Task::GetToFile => format!("get {LARGE_FILE} {COPY}"),
            Task::Put => format!("put {LARGE_FILE} {COPY}"),
            Task::GetMany => format!("cd {SMALL}; prompt off; mget *"),
            Task::PutMany => format!("cd {SMALL_COPY}; prompt off; mput *"),
            Task::List => format!("cd {LISTED}; ls"),
        };
        let arguments = Smbclient::new(environment.lab(), environment.server())
            .share(SHARE)
            .protection(self.protection)
            .arguments();
        let directory = match self.task {
            Task::GetMany => environment.local(SMALL_COPY),
            Task::PutMany => environment.local(SMALL),
            _ => environment.local(""),
        };
        let mut command = environment.lab().command_under(None, "sh");
        command.args(["-c", GATE]).arg(output);
        command.arg("smbclient").args(arguments);
        command.args(["-c", &commands]).current_dir(directory);
        command
    }

    fn smbeam(&self, environment: &Environment, program: &Path, output: &Path) -> Command {
        let url = |name: &str| {
            let address = environment.server().tcp;
            format!("smb://{}@{address}/{SHARE}/{name}", ALICE.name)
        };
        let local = |name: &str| environment.local(name).display().to_string();
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
            .env("HOME", environment.home())
            .env_remove("XDG_CONFIG_HOME");
        command
    }

    /// Fails unless all data arrived.
    fn check(&self, environment: &Environment, output: &Path) -> Result<()> {
        match self.task {
            Task::Get => Ok(()),
            Task::GetToFile => check_length(&environment.local(COPY), environment.large_bytes()),
            Task::Put => check_length(&environment.shared(COPY), environment.large_bytes()),
            Task::GetMany => check_small(&environment.local(SMALL_COPY)),
            Task::PutMany => check_small(&environment.shared(SMALL_COPY)),
            Task::List => {
                let text = fs::read_to_string(output)?;
                let count = text.matches("entry-").count();
                ensure!(count == ENTRIES as usize, "{count} entries are listed");
                Ok(())
            }
        }
    }

    fn row(&self, environment: &Environment, cost: Cost, cpu_seconds: f64) -> Row {
        let (bytes, ops) = match self.task {
            Task::Get | Task::GetToFile | Task::Put => (environment.large_bytes(), 0),
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
        // The space distinguishes titles with a common prefix.
        let mut row = work.row(format!("{} ", self.name));
        if bytes > 0 {
            let cpu = cost.cpu / (bytes as f64 / 1e9);
            row.metrics.push((Metric::ClientCpuSecondsPerGb, cpu));
        }
        row
    }
}

/// Fails unless all small files are below `directory`.
fn check_small(directory: &Path) -> Result<()> {
    let is_whole = |path: &PathBuf| {
        let metadata = fs::metadata(directory.join(path));
        metadata.is_ok_and(|metadata| metadata.is_file() && metadata.len() == SMALL_FILE_BYTES)
    };
    let paths = files::paths(directory)?;
    let count = paths.iter().filter(|path| is_whole(path)).count();
    ensure!(
        count == SMALL_FILES as usize,
        "{count} of {SMALL_FILES} files arrived"
    );
    Ok(())
}

const fn client_bench(name: &'static str, task: Task, protection: Protection) -> ClientBench {
    ClientBench {
        name,
        task,
        protection,
    }
}
