//! The command line of `cargo xtask bench-ai`.

use std::env;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use smbeam_tests::volume::FileSystem;

use super::workload::Workload;
use crate::workspace;

const USAGE: &str = "\
usage: cargo xtask bench-ai [TABLE | WORKLOAD]... [--quick] [--show] [--directory DIR]
tables: host, guest; workloads: unet3d, retinanet, checkpoint (all unless some are named)
--quick takes smaller files and one number of workers; --show prints the results that exist";
/// The first argument of the program that measures.
pub(crate) const MEASURE: &str = "measure";
/// The directory of results in that of builds.
const RESULTS: &str = "bench-ai";

/// Where all rows of a table run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Table {
    /// This machine.
    Host,
    /// A guest of user-mode Linux.
    Guest,
}

impl Table {
    /// The file system with the files of the servers. nfs-ganesha shows its clients an empty
    /// directory if the files are on tmpfs.
    pub(crate) fn file_system(self) -> FileSystem {
        match self {
            Self::Host => FileSystem::Tmpfs,
            Self::Guest => FileSystem::Ext4,
        }
    }

    /// The name on the command line and in names of files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Table::Host => "host",
            Table::Guest => "guest",
        }
    }

    /// Epochs of a training without a search. The guest is slower.
    pub(crate) fn epochs(self, is_quick: bool) -> u32 {
        match (self, is_quick) {
            (Table::Host, false) => 2,
            (Table::Host, true) | (Table::Guest, _) => 1,
        }
    }
}

/// What to measure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) tables: Vec<Table>,
    pub(crate) workloads: Vec<Workload>,
    /// Smaller files, and one number of workers.
    pub(crate) is_quick: bool,
    /// Prints the results that exist, and measures nothing.
    pub(crate) only_shows: bool,
    /// The directory of the results.
    pub(crate) directory: PathBuf,
}

impl Options {
    /// Parses the arguments of the command.
    ///
    /// # Errors
    /// An argument is unknown, or `--directory` has no value.
    pub(crate) fn parse(arguments: &[String]) -> Result<Options> {
        let mut options = Options {
            tables: Vec::new(),
            workloads: Vec::new(),
            is_quick: false,
            only_shows: false,
            directory: workspace::target().join(RESULTS),
        };
        let mut rest = arguments.iter().map(String::as_str);
        while let Some(argument) = rest.next() {
            match argument {
                "host" => options.tables.push(Table::Host),
                "guest" => options.tables.push(Table::Guest),
                "--quick" => options.is_quick = true,
                "--show" => options.only_shows = true,
                "--directory" => {
                    let name = rest.next().context("--directory needs a value")?;
                    options.directory = env::current_dir()?.join(name);
                }
                name => match Workload::named(name) {
                    Some(workload) => options.workloads.push(workload),
                    None => bail!("unknown argument {name}\n{USAGE}"),
                },
            }
        }
        if options.tables.is_empty() {
            options.tables = vec![Table::Host, Table::Guest];
        }
        if options.workloads.is_empty() {
            options.workloads = Workload::ALL.to_vec();
        }
        Ok(options)
    }

    /// The arguments for the program that measures one table.
    pub(crate) fn to_measure(&self, table: Table) -> Vec<String> {
        let mut arguments = vec![table.name().to_owned()];
        arguments.extend(self.workloads.iter().map(|workload| workload.name().into()));
        if self.is_quick {
            arguments.push("--quick".into());
        }
        let directory = self.directory.to_string_lossy();
        arguments.extend(["--directory".into(), directory.into_owned()]);
        arguments
    }

    /// The numbers of workers or threads of the servers.
    pub(crate) fn workers(&self) -> &'static [u32] {
        match self.is_quick {
            true => &[2],
            false => &[1, 2, 4],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Options, Table};
    use crate::bench_ai::workload::Workload;

    fn parse(words: &str) -> Options {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words).expect("known arguments")
    }

    #[test]
    fn everything_is_measured_unless_something_is_named() {
        let all = parse("");
        assert_eq!(all.tables, [Table::Host, Table::Guest]);
        assert_eq!(all.workloads, Workload::ALL);
        assert_eq!(all.workers(), [1, 2, 4]);
        let part = parse("guest checkpoint --quick");
        assert_eq!(part.tables, [Table::Guest]);
        assert_eq!(part.workloads, [Workload::Checkpoint]);
        assert_eq!(part.workers(), [2]);
    }

    #[test]
    fn the_program_that_measures_gets_the_same_options() {
        let options = parse("host unet3d retinanet --quick --directory /results");
        let again = options.to_measure(Table::Host);
        assert_eq!(Options::parse(&again).expect("known arguments"), options);
    }

    #[test]
    fn unknown_arguments_are_refused() {
        assert!(Options::parse(&["--fast".into()]).is_err());
        assert!(Options::parse(&["--directory".into()]).is_err());
    }
}
