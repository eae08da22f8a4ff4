//! One of the two processes: it performs the operations that it reads from its standard input, one
//! in each line, and prints the answers.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::operation::{Answer, Operation, SLOTS, data, pages};

struct Worker {
    directory: PathBuf,
    slots: [Option<File>; SLOTS],
}

/// Performs operations in `directory` until the input ends.
pub(crate) fn run(directory: &Path) -> Result<()> {
    let mut worker = Worker {
        directory: directory.into(),
        slots: [const { None }; SLOTS],
    };
    for line in io::stdin().lock().lines() {
        let operation = serde_json::from_str(&line?)?;
        let answer = worker.perform(operation).or_else(|error| {
            let errno = error
                .downcast_ref::<io::Error>()
                .and_then(io::Error::raw_os_error);
            match errno {
                Some(_) => Ok(Answer {
                    errno,
                    ..Answer::default()
                }),
                None => Err(error),
            }
        })?;
        let mut output = io::stdout().lock();
        serde_json::to_writer(&mut output, &answer)?;
        output.write_all(b"\n")?;
        output.flush()?;
    }
    Ok(())
}

impl Worker {
    fn perform(&mut self, operation: Operation) -> Result<Answer> {
        let mut answer = Answer::default();
        match operation {
            Operation::Create { slot, path } => {
                let file = options().create_new(true).open(self.at(&path))?;
                answer.inode = Some(file.metadata()?.ino());
                self.slots[slot] = Some(file);
            }
            Operation::Open { slot, path } => {
                let file = options().open(self.at(&path))?;
                answer.inode = Some(file.metadata()?.ino());
                self.slots[slot] = Some(file);
            }
            Operation::Close { slot } => self.slots[slot] = None,
            Operation::Write {
                slot,
                offset,
                length,
                seed,
            } => {
                let file = self.file(slot)?;
                file.write_all_at(&data(length, seed), offset)?;
                file.sync_data()?;
            }
            Operation::Read {
                slot,
                offset,
                length,
            } => {
                answer = found(&read(self.file(slot)?, offset, length)?);
            }
            Operation::Truncate { slot, size } => self.file(slot)?.set_len(size)?,
            Operation::Sync { slot } => self.file(slot)?.sync_all()?,
            Operation::Size { slot } => answer.size = Some(self.file(slot)?.metadata()?.len()),
            Operation::Get { path } => {
                let mut file = File::open(self.at(&path))?;
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes)?;
                answer = found(&bytes);
                answer.inode = Some(file.metadata()?.ino());
            }
            Operation::Stat { path } => answer.size = Some(fs::metadata(self.at(&path))?.len()),
            Operation::Rename { from, to } => fs::rename(self.at(&from), self.at(&to))?,
            Operation::Unlink { path } => fs::remove_file(self.at(&path))?,
            Operation::MakeDirectory { path } => fs::create_dir(self.at(&path))?,
            Operation::RemoveDirectory { path } => fs::remove_dir(self.at(&path))?,
            Operation::List { path } => answer.names = list(&self.at(&path))?,
        }
        Ok(answer)
    }

    fn at(&self, path: &str) -> PathBuf {
        self.directory.join(path)
    }

    fn file(&self, slot: usize) -> Result<&File> {
        self.slots[slot].as_ref().context("the slot has no file")
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options
}

fn read(file: &File, offset: u64, length: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let mut count = 0;
    while count < length {
        match file.read_at(&mut bytes[count..], offset + count as u64)? {
            0 => break,
            more => count += more,
        }
    }
    bytes.truncate(count);
    Ok(bytes)
}

fn found(bytes: &[u8]) -> Answer {
    Answer {
        size: Some(bytes.len() as u64),
        pages: pages(bytes),
        ..Answer::default()
    }
}

fn list(directory: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}
