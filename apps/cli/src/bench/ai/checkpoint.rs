//! Checkpoints: each rank writes and reads its files one after the other, all ranks at once.

use std::fmt;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Error, Result, anyhow, ensure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::live::Live;
use super::model::{CheckpointFile, Model};
use super::store::{Access, Reader, Store, Writer};
use super::usage::{CpuUse, Usage};
use crate::bench::pattern::Pattern;
use crate::bench::record::Record;
use crate::bench::test_files::drop_caches;
use crate::interrupt::Interrupt;

/// Bytes of the random values from which all content is made.
const CONTENT: usize = 8 << 20;
/// Every block of this many bytes starts with its own number, so that no two blocks are equal.
const BLOCK: usize = 4096;
/// Distance of the block numbers of two ranks: 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// The parameters of a run.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) model: Model,
    /// Number of ranks that take part: the first ones of the model.
    pub(crate) ranks: u64,
    /// Checkpoints to write, and to read.
    pub(crate) writes: u32,
    pub(crate) reads: u32,
    pub(crate) sync: bool,
    pub(crate) direct: bool,
    /// Pause before each checkpoint.
    pub(crate) pause: Duration,
    /// Whether the page cache of this host is emptied before the first read.
    pub(crate) drops_caches: bool,
    /// The directory of the checkpoints in the store.
    pub(crate) directory: String,
    /// Each rank ends before its next file when this is raised.
    pub(crate) interrupt: Interrupt,
}

/// The user interrupted the run.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// One checkpoint that was written or read.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Transfer {
    /// Seconds of the slowest rank.
    pub(crate) seconds: f64,
    /// Seconds of rank 0, which DLIO reports.
    pub(crate) seconds_of_rank_0: f64,
    /// 10^9 bytes per second of all ranks, by the slowest rank.
    pub(crate) gb_per_second: f64,
}

/// The checkpoints of one direction.
#[derive(Debug)]
pub(crate) struct Phase {
    pub(crate) transfers: Vec<Transfer>,
    /// Time of each file.
    pub(crate) files: Record,
    pub(crate) cpu: CpuUse,
}

/// The files of each rank that takes part.
pub(crate) fn files(setting: &Setting) -> Vec<Vec<CheckpointFile>> {
    (0..setting.ranks)
        .map(|rank| setting.model.files(rank))
        .collect()
}

/// Writes all checkpoints.
///
/// # Errors
/// The store is full, or fails.
pub(crate) fn write(store: &Store, setting: &Setting) -> Result<Phase> {
    let files = files(setting);
    let mut content = vec![0; CONTENT];
    Pattern::of(0).fill(0, &mut content);
    let mut writers = ranks(setting, |access| store.writer(access))?;
    phase(
        store,
        setting,
        setting.writes,
        "write",
        &mut |number, live| {
            let directory = directory(setting, number);
            store.create_dir(&directory)?;
            let write = |rank: usize, writer: &mut Box<dyn Writer>, file: &CheckpointFile| {
                let path = format!("{directory}/{}", file.name);
                let salt = (u64::from(number) << 32) + rank as u64;
                let mut fill = |offset: u64, piece: &mut [u8]| make(&content, salt, offset, piece);
                writer.write(&path, file.bytes, setting.sync, &mut fill)
            };
            let files = (&files[..], &setting.interrupt);
            all_ranks(&mut writers, files, live, &write)
        },
    )
}

/// Reads all checkpoints. If there are fewer than that, it starts again with the first one.
///
/// # Errors
/// A file is missing or has another length, or the store fails.
pub(crate) fn read(store: &Store, setting: &Setting) -> Result<Phase> {
    let files = files(setting);
    let existing = (0..setting.writes.max(setting.reads))
        .take_while(|number| is_complete(store, setting, *number).unwrap_or(false))
        .count() as u32;
    ensure!(
        existing > 0,
        "there is no checkpoint in {}",
        setting.directory
    );
    if setting.drops_caches {
        drop_caches()?;
    }
    let mut readers = ranks(setting, |access| store.reader(access))?;
    phase(
        store,
        setting,
        setting.reads,
        "read",
        &mut |number, live| {
            let directory = directory(setting, number % existing);
            let read = |_: usize, reader: &mut Box<dyn Reader>, file: &CheckpointFile| {
                let path = format!("{directory}/{}", file.name);
                let bytes = reader.stream(&path)?;
                ensure!(
                    bytes == file.bytes,
                    "{path} has {bytes} bytes, not {}",
                    file.bytes
                );
                Ok(())
            };
            let files = (&files[..], &setting.interrupt);
            all_ranks(&mut readers, files, live, &read)
        },
    )
}

/// Removes the checkpoints, also after a run that did not write all of them.
///
/// # Errors
/// The first error of the store. The rest is removed nevertheless.
pub(crate) fn remove(store: &Store, setting: &Setting) -> Result<()> {
    let directories = (0..setting.writes).map(|number| directory(setting, number));
    let directories = directories.chain([setting.directory.clone()]);
    let removed: Vec<_> = directories.map(|path| store.remove_dir(&path)).collect();
    removed.into_iter().collect()
}

fn directory(setting: &Setting, number: u32) -> String {
    format!("{}/global_epoch1_step{}", setting.directory, number + 1)
}

fn is_complete(store: &Store, setting: &Setting, number: u32) -> Result<bool> {
    let entries = store.list(&directory(setting, number))?;
    let mut wanted = files(setting).into_iter().flatten();
    Ok(wanted.all(|file| {
        let found = entries.iter().find(|entry| entry.name == file.name);
        found.is_some_and(|entry| entry.size == file.bytes)
    }))
}

/// One reader or writer for each rank.
fn ranks<T>(setting: &Setting, make: impl Fn(Access) -> Result<T>) -> Result<Vec<T>> {
    let ranks = (0..setting.ranks as usize).map(|session| {
        make(Access {
            session,
            direct: setting.direct,
        })
    });
    ranks.collect()
}

/// Writes or reads the checkpoint with a number.
type One<'a> = dyn FnMut(u32, &Live) -> Result<(Transfer, Record)> + 'a;

/// Runs `count` checkpoints, and measures them.
fn phase(
    store: &Store,
    setting: &Setting,
    count: u32,
    verb: &'static str,
    one: &mut One<'_>,
) -> Result<Phase> {
    let live = Live::new(0, "files");
    let usage = Usage::start(store.server());
    let mut transfers = Vec::with_capacity(count as usize);
    let mut files = Record::new()?;
    thread::scope(|scope| -> Result<()> {
        let _shown = live.show(scope);
        for number in 0..count {
            live.title(format!("{verb} checkpoint {}/{count}  ", number + 1));
            thread::sleep(setting.pause);
            let (transfer, record) = one(number, &live)?;
            transfers.push(transfer);
            files.merge(&record)?;
        }
        Ok(())
    })?;
    let cpu = usage.finish();
    Ok(Phase {
        transfers,
        files,
        cpu,
    })
}

/// Processes the files of all ranks at once.
fn all_ranks<T: Send>(
    ranks: &mut [T],
    (files, interrupt): (&[Vec<CheckpointFile>], &Interrupt),
    live: &Live,
    one: &(impl Fn(usize, &mut T, &CheckpointFile) -> Result<()> + Sync),
) -> Result<(Transfer, Record)> {
    let start = Barrier::new(ranks.len());
    let results = thread::scope(|scope| {
        let threads = ranks.iter_mut().zip(files).enumerate();
        let threads = threads.map(|(number, (rank, files))| {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                one_rank((files, interrupt), live, |file| one(number, rank, file))
            })
        });
        let threads: Vec<_> = threads.collect();
        let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
        let joined = joined.map(|result| result.map_err(|_| anyhow!("a rank panicked"))?);
        joined.collect::<Result<Vec<(f64, Record)>>>()
    })?;
    let bytes: u64 = files.iter().flatten().map(|file| file.bytes).sum();
    let seconds = results
        .iter()
        .map(|(seconds, _)| *seconds)
        .fold(0.0, f64::max);
    let mut record = Record::new()?;
    for (_, one) in &results {
        record.merge(one)?;
    }
    let transfer = Transfer {
        seconds,
        seconds_of_rank_0: results.first().map_or(0.0, |(seconds, _)| *seconds),
        gb_per_second: bytes as f64 / 1e9 / seconds.max(f64::MIN_POSITIVE),
    };
    Ok((transfer, record))
}

fn one_rank(
    (files, interrupt): (&[CheckpointFile], &Interrupt),
    live: &Live,
    mut one: impl FnMut(&CheckpointFile) -> Result<()>,
) -> Result<(f64, Record)> {
    let started = Instant::now();
    let mut record = Record::new()?;
    for file in files {
        if interrupt.is_raised() {
            return Err(Error::new(Interrupted));
        }
        let file_started = Instant::now();
        one(file)?;
        record.add(file.bytes, file_started.elapsed());
        live.add(1, file.bytes);
    }
    Ok((started.elapsed().as_secs_f64(), record))
}

/// Makes the bytes at `offset` of a file: random ones, with a number in each block.
fn make(content: &[u8], salt: u64, offset: u64, piece: &mut [u8]) {
    let mut done = 0;
    while done < piece.len() {
        let at = offset + done as u64;
        let start = (at % content.len() as u64) as usize;
        let count = (content.len() - start).min(piece.len() - done);
        piece[done..done + count].copy_from_slice(&content[start..start + count]);
        done += count;
    }
    let first = (offset.next_multiple_of(BLOCK as u64) - offset) as usize;
    let number = offset.div_ceil(BLOCK as u64) + (salt.wrapping_mul(SPREAD) >> 1);
    let blocks = piece
        .get_mut(first..)
        .into_iter()
        .flat_map(|rest| rest.chunks_mut(BLOCK));
    for (block, number) in blocks.zip(number..) {
        if let Some(start) = block.first_chunk_mut::<8>() {
            *start = number.to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_depends_on_the_offset_only() {
        let content: Vec<u8> = (0..3 * BLOCK).map(|at| (at / 7) as u8).collect();
        let mut whole = vec![0; 10 * BLOCK + 5];
        make(&content, 3, 0, &mut whole);
        for (offset, len) in [(0, 100), (1000, 9000), (BLOCK, BLOCK), (4 * BLOCK + 1, 3)] {
            let mut part = vec![0; len];
            make(&content, 3, offset as u64, &mut part);
            // The number of a block that starts before the part is not in the part.
            let first = offset.next_multiple_of(BLOCK).min(offset + len) - offset;
            assert_eq!(
                part[first..],
                whole[offset + first..offset + len],
                "{offset}"
            );
        }
        let mut other = vec![0; 10 * BLOCK + 5];
        make(&content, 4, 0, &mut other);
        assert!(
            whole
                .chunks(BLOCK)
                .zip(other.chunks(BLOCK))
                .take(10)
                .all(|(a, b)| a != b)
        );
    }
}
