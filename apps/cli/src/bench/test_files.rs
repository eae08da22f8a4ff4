//! The sessions of a run, and their files in a new directory on the server.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use futures_util::future::try_join_all;
use smbeam_client::{File, OpenOptions, Session, Share, Wait as _};

use super::cpu::Ends;
use super::options::Arguments;
use super::pattern::Pattern;
use super::session_factory::SessionFactory;
use super::setting::Setting;
use crate::output::note;

/// Writes in flight while the files are filled.
const FILL_DEPTH: usize = 8;

/// The sessions and files of a run. Dropping the value removes the directory.
#[derive(Debug)]
pub(crate) struct TestFiles {
    /// The path of the directory within the share.
    pub(crate) directory: String,
    /// The sessions with their files.
    pub(crate) sessions: Vec<SessionFiles>,
    /// Bytes of all files of all sessions.
    pub(crate) working_set: u64,
}

/// A session with its files.
#[derive(Debug)]
pub(crate) struct SessionFiles {
    pub(crate) share: Share,
    pub(crate) files: Vec<File>,
    /// Number of operations that fit in each file.
    pub(crate) blocks_per_file: u64,
}

impl TestFiles {
    /// Creates the directory, opens the sessions and fills their files.
    pub(crate) fn set_up(
        arguments: &Arguments,
        setting: &Setting,
        factory: &SessionFactory,
    ) -> Result<Self> {
        let share = factory.share().wait()?;
        let mut test_files = Self {
            directory: directory_name(&factory.url.path)?,
            sessions: Vec::new(),
            working_set: 0,
        };
        share.create_dir(&test_files.directory).wait()?;
        let mut share = Some(share);
        for number in 0..arguments.connections {
            let share = match share.take() {
                Some(first) => first,
                None => factory.share().wait()?,
            };
            test_files.sessions.push(SessionFiles {
                share,
                files: Vec::new(),
                blocks_per_file: 1,
            });
            test_files.fill(usize::from(number), arguments, setting)?;
        }
        Ok(test_files)
    }

    fn fill(&mut self, number: usize, arguments: &Arguments, setting: &Setting) -> Result<()> {
        let session_files = &mut self.sessions[number];
        if arguments.torture {
            self.working_set += session_files.make_holes(&self.directory, number, setting)?;
        } else if arguments.workload().moves_data() {
            let io_size = u64::from(setting.io_size);
            let files = u64::from(arguments.files);
            session_files.blocks_per_file = (arguments.size / files / io_size).max(1);
            for file in 0..arguments.files {
                let file = session_files.make_file(&self.directory, number, file, io_size)?;
                session_files.files.push(file);
            }
            self.working_set += files * session_files.blocks_per_file * io_size;
        }
        Ok(())
    }

    /// The first session. Its properties stand for all.
    pub(crate) fn session(&self) -> &Session {
        let session_files = self
            .sessions
            .first()
            .expect("there is at least one session");
        session_files.share.session()
    }

    /// Both ends of the connections of all sessions.
    pub(crate) fn ends(&self) -> Vec<Ends> {
        let sessions = self.sessions.iter();
        ends_of(sessions.map(|session_files| session_files.share.session()))
    }

    /// Reads all files once.
    pub(crate) fn warm_up(&self, io_size: u32) -> Result<()> {
        for session_files in &self.sessions {
            let io_size = u64::from(io_size);
            for file in &session_files.files {
                for first in (0..session_files.blocks_per_file).step_by(FILL_DEPTH) {
                    let last = (first + FILL_DEPTH as u64).min(session_files.blocks_per_file);
                    let blocks = (first..last).map(|block| read(file, block * io_size, io_size));
                    try_join_all(blocks).wait()?;
                }
            }
        }
        Ok(())
    }
}

impl Drop for TestFiles {
    fn drop(&mut self) {
        let Some(session_files) = self.sessions.first() else {
            return;
        };
        let share = session_files.share.clone();
        for session_files in &mut self.sessions {
            for file in session_files.files.drain(..) {
                let _ = file.close().wait();
            }
        }
        if let Err(error) = remove_with_files(&share, &self.directory) {
            note(&format_args!(
                "smbeam: bench: cannot remove {}: {error:#}",
                self.directory
            ));
        }
    }
}

impl SessionFiles {
    fn make_file(
        &self,
        directory: &str,
        session_files: usize,
        number: u32,
        io_size: u64,
    ) -> Result<File> {
        let name = format!("{directory}/data-{session_files}-{number}");
        let options = OpenOptions::new().read(true).write(true).create_new(true);
        let file = self.share.open(&name, &options).wait()?;
        let pattern = Pattern::of(pattern_number(session_files, number));
        for first in (0..self.blocks_per_file).step_by(FILL_DEPTH) {
            let last = (first + FILL_DEPTH as u64).min(self.blocks_per_file);
            let blocks = (first..last).map(|block| write(&file, pattern, block * io_size, io_size));
            try_join_all(blocks).wait()?;
        }
        Ok(file)
    }

    /// Creates one file per request in flight, as smb2.bench.read does. The files have a length but
    /// no data, and the server deletes them when they are closed. Returns the sum of their lengths
    /// in bytes.
    fn make_holes(
        &mut self,
        directory: &str,
        session_files: usize,
        setting: &Setting,
    ) -> Result<u64> {
        for number in 0..setting.depth {
            let name = format!("{directory}/hole-{session_files}-{number}");
            let options = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .share(false, false, false)
                .delete_on_close(true);
            let file = self.share.open(&name, &options).wait()?;
            file.set_len(u64::from(setting.io_size)).wait()?;
            self.files.push(file);
        }
        Ok(setting.depth as u64 * u64::from(setting.io_size))
    }
}

/// Both ends of the connections of these sessions.
pub(crate) fn ends_of<'a>(sessions: impl Iterator<Item = &'a Session>) -> Vec<Ends> {
    let channels = sessions.flat_map(|session| session.info().channels);
    let ends = channels.map(|channel| Ends {
        transport: channel.transport,
        local: channel.local,
        peer: channel.peer,
        is_local: channel.is_local,
    });
    ends.collect()
}

/// The number of the data pattern of a file.
pub(crate) fn pattern_number(session_files: usize, file: u32) -> u64 {
    (session_files as u64) << 20 | u64::from(file)
}

async fn write(file: &File, pattern: Pattern, offset: u64, len: u64) -> Result<()> {
    let mut buffer = vec![0; usize::try_from(len)?];
    pattern.fill(offset, &mut buffer);
    let (result, _) = file.write_at(buffer, offset).await;
    let written = result?;
    ensure!(
        written as u64 == len,
        "a write accepted only {written} bytes"
    );
    Ok(())
}

async fn read(file: &File, offset: u64, len: u64) -> Result<()> {
    let (result, _) = file.read_at(vec![0; usize::try_from(len)?], offset).await;
    result.map(drop).map_err(Into::into)
}

/// A new random name below `parent`.
fn directory_name(parent: &str) -> Result<String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).context("random numbers")?;
    let name = format!("smbeam-bench-{:016x}", u64::from_le_bytes(bytes));
    Ok(if parent.is_empty() {
        name
    } else {
        format!("{parent}/{name}")
    })
}

/// Removes a directory that contains only files.
fn remove_with_files(share: &Share, directory: &str) -> Result<()> {
    let entries: Vec<_> = share
        .read_dir(directory, "*")
        .wait()?
        .blocking()
        .collect::<Result<_, _>>()?;
    for entry in entries {
        share
            .remove_file(&format!("{directory}/{}", entry.name))
            .wait()?;
    }
    share.remove_dir(directory).wait()?;
    Ok(())
}

/// Empties the page cache of this machine.
pub(crate) fn drop_caches() -> Result<()> {
    rustix::fs::sync();
    fs::write("/proc/sys/vm/drop_caches", "3").context(
        "--cold empties the page cache of this machine, which needs root \
             (/proc/sys/vm/drop_caches)",
    )
}
