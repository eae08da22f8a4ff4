//! The options of the command line.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context as _, Result, bail, ensure};
use smbeam_tests::smbclient::Protection;
use smbeam_tests::subject::Subject;

use crate::environment::Storage;
use crate::transports::Congestion;

/// Name of the bench of disconnected opens, which needs a higher limit of the server.
pub(crate) const DISCONNECTED_BENCH: &str = "opens-disconnected";

/// The help text.
pub(crate) const USAGE: &str = "\
usage: cargo xtask bench-compare [OPTION]...

  --rounds N           number of rounds; each runs A and B in turn (3)
  --subjects A,B       samba, smbeam or the path of another smbeam; the report shows B / A
                       (samba,smbeam); samba,samba shows the noise. `smbeam+metrics` (or a path
                       with +metrics) has metrics, which are scraped every second. In the rows
                       `client-...` these are the clients, and smbd is the server of both
  --rows LIST          the benches to run, by name or prefix, as in client-get,quic (all);
                       see --list
  --storage LIST       tmpfs, disk (tmpfs,disk)
  --disk DIR           a directory on the file system for `disk` (/tmp)
  --seconds N          duration of each smbtorture bench and each transport bench (4)
  --congestion NAME    congestion control of QUIC for smbeam and quinn: bbr, cubic, newreno (bbr)
  --quinn-threads N    tokio threads at each end of bare quinn (2)
  --window-mb N        QUIC windows at both ends in MiB, and READs of smbeam in flight
                       (32, over the lossy link 64)
  --link-mbit N        rate of the lossy link in Mbit/s; 0: as fast as the machine forwards (0)
  --connections N      connections of the smbtorture benches (1)
  --depth N            requests in flight for each of them (4)
  --protection WORD    off, sign or encrypt: the messages of the smbtorture benches (off)
  --smb-conf LINE      a line for the global section of the configuration of smbd; can be repeated,
                       as in --smb-conf 'use sendfile = yes'
  --quick              one round of one second each, small files, tmpfs only
  --json FILE          write all results as JSON
  --list               list the benches";

/// The action that the command line selects.
pub(crate) enum Action {
    /// Print the help text.
    Help,
    /// List the benches.
    List,
    /// Run the comparison.
    Compare(Box<Options>),
}

/// A server or client of the comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contender {
    /// Samba or smbeam.
    pub(crate) subject: Subject,
    /// The binary of smbeam, if it is not the default one.
    pub(crate) binary: Option<PathBuf>,
    /// Whether it serves metrics, and a client scrapes them every second.
    pub(crate) is_scraped: bool,
}

impl Contender {
    /// The name of the server in tables and JSON.
    pub(crate) fn name(&self) -> &'static str {
        match self.subject {
            Subject::Samba => "samba",
            Subject::Smbeam => "smbeam",
        }
    }

    /// The name of the client in tables and JSON.
    pub(crate) fn client_name(&self) -> &'static str {
        match self.subject {
            Subject::Samba => "smbclient",
            Subject::Smbeam => "smbeam",
        }
    }

    fn parse(name: &str) -> Result<Contender> {
        let (name, is_scraped) = match name.strip_suffix("+metrics") {
            Some(name) => (name, true),
            None => (name, false),
        };
        ensure!(!is_scraped || name != "samba", "smbd has no metrics");
        let (subject, binary) = match name {
            "samba" => (Subject::Samba, None),
            "smbeam" => (Subject::Smbeam, None),
            _ if name.contains('/') => (Subject::Smbeam, Some(std::path::absolute(name)?)),
            _ => bail!("{name} is neither samba nor smbeam nor a path"),
        };
        Ok(Contender {
            subject,
            binary,
            is_scraped,
        })
    }
}

/// The options of a comparison.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Number of rounds. Each round runs A and B.
    pub(crate) rounds: u32,
    /// A and B.
    pub(crate) subjects: [Contender; 2],
    /// Names or prefixes of benches; empty selects all.
    pub(crate) rows: Vec<String>,
    /// The storage of the files.
    pub(crate) storages: Vec<Storage>,
    /// A directory on the file system of [`Storage::Disk`].
    pub(crate) disk: PathBuf,
    /// Duration of a smbtorture or transport bench in seconds.
    pub(crate) seconds: u32,
    /// Connections of the smbtorture benches.
    pub(crate) connections: u32,
    /// Requests in flight per connection.
    pub(crate) depth: u32,
    /// Protection of the messages of the smbtorture benches.
    pub(crate) protection: Protection,
    /// The file for the results as JSON.
    pub(crate) json: Option<PathBuf>,
    /// Length of the large file in bytes.
    pub(crate) large_bytes: u64,
    /// Number of files of the metadata benches.
    pub(crate) files: u32,
    /// Number of idle connections.
    pub(crate) idle_connections: u32,
    /// Number of open files whose memory is measured.
    pub(crate) open_files: u32,
    /// Congestion control of QUIC servers.
    pub(crate) congestion: Congestion,
    /// tokio threads at each end of bare quinn.
    pub(crate) quinn_threads: u32,
    /// Flow-control window of QUIC in MiB, for receiver and sender.
    window_mb: Option<u32>,
    /// Rate of the lossy link in Mbit/s; 0 is as fast as the machine forwards.
    pub(crate) link_mbit: u32,
    /// Lines for the global section of the configuration of smbd.
    pub(crate) smb_conf: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            rounds: 3,
            subjects: [Subject::Samba, Subject::Smbeam].map(|subject| Contender {
                subject,
                binary: None,
                is_scraped: false,
            }),
            rows: Vec::new(),
            storages: vec![Storage::Tmpfs, Storage::Disk],
            disk: "/tmp".into(),
            seconds: 4,
            connections: 1,
            depth: 4,
            protection: Protection::Off,
            json: None,
            large_bytes: 2 << 30,
            files: 10_000,
            idle_connections: 1000,
            open_files: 15_000,
            congestion: Congestion::Bbr,
            quinn_threads: 2,
            window_mb: None,
            link_mbit: 0,
            // The level of smbd without configuration. The tests use a higher one.
            smb_conf: vec!["log level = 0".into()],
        }
    }
}

impl Options {
    /// Parses the command line.
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

    /// Whether `--rows` selects the bench.
    pub(crate) fn is_chosen(&self, name: &str) -> bool {
        let mut rows = self.rows.iter();
        self.rows.is_empty() || rows.any(|row| name.starts_with(row.as_str()))
    }

    /// Duration of a bench over the lossy link in seconds.
    pub(crate) fn link_seconds(&self) -> u32 {
        2 * self.seconds
    }

    /// Flow-control window of QUIC in MiB. The lossy link needs a larger one.
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
        self.open_files = 1000;
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
            "--protection" => self.protection = protection(value)?,
            "--congestion" => self.congestion = value.parse()?,
            "--quinn-threads" => self.quinn_threads = positive(value)?,
            "--window-mb" => self.window_mb = Some(positive(value)?),
            "--link-mbit" => self.link_mbit = value.parse()?,
            "--smb-conf" => {
                ensure!(
                    !value.contains(['\n', '[']),
                    "expected one line of the global section"
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

fn protection(value: &str) -> Result<Protection> {
    let mut all = Protection::ALL.into_iter();
    let found = all.find(|protection| protection.word() == value);
    found.context("expected off, sign or encrypt")
}

fn subjects(value: &str) -> Result<[Contender; 2]> {
    let (a, b) = value
        .split_once(',')
        .context("expected two names, as in A,B")?;
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
    fn valid_values_are_accepted_and_others_refused() {
        let options =
            parse("--quick --rounds 2 --subjects samba,samba --storage disk").expect("ok");
        assert_eq!(options.rounds, 2);
        assert_eq!(options.subjects.map(|side| side.name()), ["samba"; 2]);

        assert_eq!(options.storages, [Storage::Disk]);
        let options = parse("--subjects smbeam,/usr/bin/smbeam").expect("ok");
        assert_eq!(options.subjects[1].subject, Subject::Smbeam);
        let options = parse("--subjects smbeam,smbeam+metrics").expect("ok");
        assert_eq!(options.subjects[1].subject, Subject::Smbeam);
        let is_scraped = options.subjects.map(|side| side.is_scraped);
        assert_eq!(is_scraped, [false, true]);
        let options = parse("--protection encrypt").expect("ok");
        assert_eq!(options.protection, Protection::Encrypt);
        let options = parse("--smb-conf a=b --smb-conf c=d").expect("ok");
        assert_eq!(options.smb_conf[1..], ["a=b", "c=d"]);
        for line in [
            "--rounds 0",
            "--rounds",
            "--smb-conf [share]",
            "--subjects samba",
            "--subjects samba,samba+metrics",
            "--storage floppy",
            "--protection none",
            "--x 1",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
