//! Measures the rows of one table, in a mount namespace of this machine.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow};
use serde_json::Value;
use smbeam_tests::lab::Lab;
use smbeam_tests::namespace::Namespace;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{ALICE, program};
use smbeam_tests::volume::Volume;

use super::guest::{self, Steps};
use super::options::{Options, Table};
use super::python::Loop;
use super::reader::{Access, Reader};
use super::record::{Figures, Record};
use super::running::{Cpu, Running};
use super::service::Service;
use super::workload::Workload;
use crate::process::{one_line, quiet};

/// The part of the space for files that the file system takes itself.
const SPARE_PART: u64 = 8;
/// The directory of checkpoints that `smbeam bench ai` makes.
const CHECKPOINTS: &str = "checkpoints";
/// The variable with the password of the user.
const PASSWORD: &str = "SMBEAM_PASSWORD";

/// The files of a workload, and the place of its readers.
struct Site<'a> {
    options: &'a Options,
    table: Table,
    workload: Workload,
    lab: Lab,
    /// The network of the guest.
    namespace: Option<Namespace>,
    /// The smbeam that reads, where the guest sees it.
    program: PathBuf,
    /// The directory that servers share.
    files: PathBuf,
    _volume: Volume,
    scratch: Scratch,
}

/// Measures each workload for the first table of `options`.
pub(crate) fn run(options: &Options) -> Result<()> {
    let table = *options.tables.first().context("no table")?;
    for workload in &options.workloads {
        Site::new(options, table, *workload)?.measure()?;
    }
    Ok(())
}

impl<'a> Site<'a> {
    /// Mounts a file system and generates the files.
    fn new(options: &'a Options, table: Table, workload: Workload) -> Result<Site<'a>> {
        let scratch = Scratch::new("bench-ai")?;
        let space = workload.space_bytes(options.is_quick);
        let volume = Volume::new(table.file_system(), space + space / SPARE_PART)?;
        let files = volume.path().to_owned();
        fs::set_permissions(&files, Permissions::from_mode(0o777))?;
        let copy = scratch.path().join("smbeam");
        let program = program()?;
        fs::copy(&program, &copy).with_context(|| format!("cannot copy {}", program.display()))?;
        if let Some(arguments) = workload.generate(options.is_quick, &files.to_string_lossy()) {
            let generated = quiet(Command::new(&copy).args(arguments))?;
            println!("{}: {}", workload.name(), generated.trim());
        }
        let namespace = match table {
            Table::Host => None,
            Table::Guest => Some(Namespace::with_tap()?),
        };
        Ok(Site {
            options,
            table,
            workload,
            lab: Lab::find()?,
            namespace,
            program: copy,
            files,
            _volume: volume,
            scratch,
        })
    }

    /// Measures all rows. A row that fails does not end the others.
    fn measure(&self) -> Result<()> {
        let mut row = 0;
        for service in Service::all(self.table, self.options) {
            let running = service.start(&self.files, &self.lab, self.namespace.as_ref());
            let measured = service.readers(self.table, self.workload);
            // Rows have the same numbers under all workloads.
            for reader in service.readers(self.table, Workload::Unet3d) {
                row += 1;
                if measured.contains(&reader) {
                    let record = Record::new(self.table, self.workload, row, (service, reader));
                    self.record(record, reader, &running)?;
                }
            }
        }
        Ok(())
    }

    /// Measures a row and writes its record.
    fn record(&self, mut record: Record, reader: Reader, running: &Result<Running>) -> Result<()> {
        record.is_quick = self.options.is_quick;
        let start = Instant::now();
        let measured = match running {
            Ok(running) => self.row(&record, reader, running),
            Err(error) => Err(anyhow!("{error:#}")),
        };
        let seconds = start.elapsed().as_secs_f64();
        let (workload, label) = (self.workload.name(), record.label());
        match measured {
            Ok(figures) => {
                println!(
                    "{workload}, {label}: {:.2} GB/s ({seconds:.0} s)",
                    figures.read_gb
                );
                record.figures = Some(figures);
            }
            Err(error) => {
                let reason = one_line(&error);
                println!("{workload}, {label}: {reason}");
                record.failure = Some(reason);
            }
        }
        record.write(&self.options.directory)
    }

    fn row(&self, record: &Record, reader: Reader, running: &Running) -> Result<Figures> {
        // The directories of a reader belong to another user than those of the next one.
        let left_over = self.files.join(CHECKPOINTS);
        if left_over.exists() {
            fs::remove_dir_all(&left_over)?;
        }
        let output = record.result_in(&self.options.directory);
        let used = match &self.namespace {
            None => self.row_here(record, reader, running)?,
            Some(namespace) => self.row_in_guest(record, reader, running, namespace)?,
        };
        let result = fs::read_to_string(&output)
            .with_context(|| format!("cannot read {}", output.display()))?;
        let result: Value = serde_json::from_str(&result).context("the result is no JSON")?;
        Ok(Figures {
            server_s: used.server,
            others_s: used.others,
            ..Figures::of(&result)?
        })
    }

    /// Measures a reader on this machine.
    fn row_here(&self, record: &Record, reader: Reader, running: &Running) -> Result<Cpu> {
        let directory = self
            .scratch
            .open_directory(&format!("row-{}", record.row))?;
        let access = reader.open(running, &directory)?;
        let label = record.label();
        let output = record.result_in(&self.options.directory);
        let mut command = match reader.is_python() {
            true => Loop {
                reader,
                workload: self.workload,
                is_quick: self.options.is_quick,
                server: running.smb()?,
                url: &access.location,
                files: &self.files,
                label: &label,
                output: &output,
            }
            .command(&directory)?,
            false => {
                let mut command = Command::new(&self.program);
                command.args(self.bench(&access, &label));
                command.arg("--json").arg(&output);
                command
            }
        };
        let before = Cpu::now(running)?;
        quiet(command.env(PASSWORD, ALICE.password))?;
        Ok(Cpu::now(running)?.since(&before))
    }

    /// Measures a reader in a guest.
    fn row_in_guest(
        &self,
        record: &Record,
        reader: Reader,
        running: &Running,
        namespace: &Namespace,
    ) -> Result<Cpu> {
        let (access, mut prepare) = reader.open_in_guest(running)?;
        let mut file_bytes = 0;
        if let Running::Local(_) = running {
            file_bytes = self.workload.space_bytes(self.options.is_quick);
            let is_quick = self.options.is_quick;
            if let Some(arguments) = self.workload.generate(is_quick, &access.location) {
                let program = self.program.display();
                prepare.push_str(&format!("\n{program} {}", arguments.join(" ")));
            }
        }
        let steps = Steps {
            prepare,
            program: &self.program,
            arguments: self.bench(&access, &record.label()),
            file_bytes,
        };
        let output = record.result_in(&self.options.directory);
        guest::run((&self.lab, namespace), &steps, running, &output)
    }

    /// The arguments of `smbeam bench ai`, without the file of the result.
    fn bench(&self, access: &Access, label: &str) -> Vec<String> {
        let is_quick = self.options.is_quick;
        let epochs = self.table.epochs(is_quick);
        let mut arguments = self.workload.measure(is_quick, epochs, &access.location);
        arguments.extend(access.arguments.iter().cloned());
        arguments.extend(["--label".into(), label.into()]);
        arguments
    }
}
