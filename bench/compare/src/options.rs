//! What the command line asks for.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context as _, Result, bail, ensure};
use smbeam_tests::subject::Subject;

use crate::environment::Storage;
use crate::transports::Congestion;

/// What to print when asked for help.
pub(crate) const USAGE: &str = "\
usage: cargo xtask bench-compare [OPTION]...

  --rounds N           how often A and B take turns (3)
  --subjects A,B       samba, smbeam or the path of another smbeam; A is what B is divided by
                       (samba,smbeam); samba,samba shows the noise. Of the rows `client-...`
                       these are the clients, and smbd is the server of both
  --rows LIST          the benches to run, by name or the start of it (all), as in client-get,quic;
                       see --list
  --storage LIST       tmpfs, disk (tmpfs,disk)
  --disk DIR           a directory of the file system that `disk` means (/tmp)
  --seconds N          how long each smbtorture bench and each bench of a transport runs (4)
  --congestion NAME    of QUIC, smbeam's and bare quinn's: bbr, cubic, newreno (bbr)
  --quinn-threads N    threads of tokio's at each end of bare quinn (2)
  --window-mb N        MiB of the windows of QUIC at both ends, and READs of smbeam's in flight
                       (32, over the bad link 64)
  --link-mbit N        Mbit/s of the bad link; 0: as fast as the machine forwards (0)
  --connections N      connections of the smbtorture benches (1)
  --depth N            requests in flight for each of them (4)
  --smb-conf LINE      a line more for the global section of smbd's configuration; may be repeated,
                       as in --smb-conf 'use sendfile = yes'
  --quick              one round of one second each, small files, tmpfs only
  --json FILE          write everything that was measured
  --list               print the benches and end";

/// What is to be done.
pub(crate) enum Action {
    /// Print how to ask.
    Help,
    /// Print what can be run.
    List,
    /// Run.
    Compare(Box<Options>),
}

/// A server or a client that takes part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contender {
    /// Which one it is.
    pub(crate) subject: Subject,
    /// The program of smbeam, where it is not the usual one.
    pub(crate) binary: Option<PathBuf>,
}

impl Contender {
    /// What tables and JSON call it.
    pub(crate) fn name(&self) -> &'static str {
        match self.subject {
            Subject::Samba => "samba",
            Subject::Smbeam => "smbeam",
        }
    }

    /// What they call it where it is the client.
    pub(crate) fn client_name(&self) -> &'static str {
        match self.subject {
            Subject::Samba => "smbclient",
            Subject::Smbeam => "smbeam",
        }
    }

    fn parse(name: &str) -> Result<Contender> {
        let (subject, binary) = match name {
            "samba" => (Subject::Samba, None),
            "smbeam" => (Subject::Smbeam, None),
            _ if name.contains('/') => (Subject::Smbeam, Some(std::path::absolute(name)?)),
            _ => bail!("{name} is neither samba nor smbeam nor a path"),
        };
        Ok(Contender { subject, binary })
    }
}

/// What to run, and how long.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// How often A and B take turns.
    pub(crate) rounds: u32,
    /// A and B.
    pub(crate) subjects: [Contender; 2],
    /// The benches, by name or the start of it; empty: all.
    pub(crate) rows: Vec<String>,
    /// Where the files lie.
    pub(crate) storages: Vec<Storage>,
    /// A directory of the file system that [`Storage::Disk`] means.
    pub(crate) disk: PathBuf,
    /// How long a bench of smbtorture or of a transport runs.
    pub(crate) seconds: u32,
    /// Connections of the benches of smbtorture.
    pub(crate) connections: u32,
    /// Requests in flight for each of the connections.
    pub(crate) depth: u32,
    /// Where to write everything that was measured.
    pub(crate) json: Option<PathBuf>,
    /// Bytes of the large file.
    pub(crate) large_bytes: u64,
    /// Files of the directory that the metadata benches fill.
    pub(crate) files: u32,
    /// Connections that do nothing.
    pub(crate) idle_connections: u32,
    /// What servers of QUIC are told about congestion.
    pub(crate) congestion: Congestion,
    /// Threads of tokio's at each end of bare quinn.
    pub(crate) quinn_threads: u32,
    /// MiB that a receiver of QUIC lets the sender be ahead, and that a sender keeps.
    window_mb: Option<u32>,
    /// Mbit/s of the bad link; 0: as fast as the machine forwards.
    pub(crate) link_mbit: u32,
    /// Lines of the global section of smbd's configuration.
    pub(crate) smb_conf: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            rounds: 3,
            subjects: [Subject::Samba, Subject::Smbeam].map(|subject| Contender {
                subject,
                binary: None,
            }),
            rows: Vec::new(),
            storages: vec![Storage::Tmpfs, Storage::Disk],
            disk: "/tmp".into(),
            seconds: 4,
            connections: 1,
            depth: 4,
            json: None,
            large_bytes: 2 << 30,
            files: 10_000,
            idle_connections: 1000,
            congestion: Congestion::Bbr,
            quinn_threads: 2,
            window_mb: None,
            link_mbit: 0,
            // As without a configuration; the tests ask for more.
            smb_conf: vec!["log level = 0".into()],
        }
    }
}

impl Options {
    /// Reads the command line.
    pub(crate) fn parse(arguments: &[String]) -> Result<Action> {
        let mut options = Options::default();
        let mut arguments = arguments.iter();
        while let Some(name) = arguments.next() {
            match name.as_str() {
                "--help" | "-h" => return Ok(Action::Help),
                "--list" => return Ok(Action::List),
                "--quick" => options.hurry(),
                _ => {
                    let value = arguments.next();
                    let value = value.with_context(|| format!("{name} needs a value"))?;
                    let set = options.set(name, value);
                    set.with_context(|| format!("{name} {value}"))?;
                }
            }
        }
        Ok(Action::Compare(Box::new(options)))
    }

    /// Whether `--rows` names the bench, or nothing.
    pub(crate) fn is_chosen(&self, name: &str) -> bool {
        let mut rows = self.rows.iter();
        self.rows.is_empty() || rows.any(|row| name.starts_with(row.as_str()))
    }

    /// How long a bench over the bad link runs: few bytes come through.
    pub(crate) fn link_seconds(&self) -> u32 {
        2 * self.seconds
    }

    /// MiB of the windows of QUIC: smbeam's, or what the bad link takes to be filled.
    pub(crate) fn window_mb(&self, is_link: bool) -> u32 {
        self.window_mb.unwrap_or(if is_link { 64 } else { 32 })
    }

    fn hurry(&mut self) {
        self.rounds = 1;
        self.seconds = 1;
        self.storages = vec![Storage::Tmpfs];
        self.large_bytes = 256 << 20;
        self.files = 1000;
        self.idle_connections = 100;
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "--rounds" => self.rounds = positive(value)?,
            "--subjects" => self.subjects = subjects(value)?,
            "--rows" => self.rows = value.split(',').map(str::to_owned).collect(),
            "--storage" => {
                let storages = value.split(',').map(Storage::named);
                self.storages = storages.collect::<Result<_>>()?;
            }
            "--disk" => self.disk = value.into(),
            "--seconds" => self.seconds = positive(value)?,
            "--connections" => self.connections = positive(value)?,
            "--depth" => self.depth = positive(value)?,
            "--congestion" => self.congestion = value.parse()?,
            "--quinn-threads" => self.quinn_threads = positive(value)?,
            "--window-mb" => self.window_mb = Some(positive(value)?),
            "--link-mbit" => self.link_mbit = value.parse()?,
            "--smb-conf" => {
                ensure!(
                    !value.contains(['\n', '[']),
                    "one line of the global section"
                );
                self.smb_conf.push(value.into());
            }
            "--json" => self.json = Some(std::path::absolute(value)?),
            _ => bail!("no such option\n{USAGE}"),
        }
        Ok(())
    }
}

fn positive(value: &str) -> Result<u32> {
    let number = u32::from_str(value)?;
    ensure!(number > 0, "must be positive");
    Ok(number)
}

fn subjects(value: &str) -> Result<[Contender; 2]> {
    let (a, b) = value.split_once(',').context("two names, as in A,B")?;
    Ok([Contender::parse(a)?, Contender::parse(b)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        match Options::parse(&words)? {
            Action::Compare(options) => Ok(*options),
            Action::Help | Action::List => bail!("not a comparison"),
        }
    }

    #[test]
    fn values_are_taken_and_nonsense_is_refused() {
        let options =
            parse("--quick --rounds 2 --subjects samba,samba --storage disk").expect("ok");
        assert_eq!(options.rounds, 2);
        assert_eq!(options.subjects.map(|side| side.name()), ["samba"; 2]);

        assert_eq!(options.storages, [Storage::Disk]);
        let options = parse("--subjects smbeam,/usr/bin/smbeam").expect("ok");
        assert_eq!(options.subjects[1].subject, Subject::Smbeam);
        let options = parse("--smb-conf a=b --smb-conf c=d").expect("ok");
        assert_eq!(options.smb_conf[1..], ["a=b", "c=d"]);
        for line in [
            "--rounds 0",
            "--rounds",
            "--smb-conf [share]",
            "--subjects samba",
            "--storage floppy",
            "--x 1",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
