//! Read bench: READ requests over a file with data, from start to end and again.

use std::time::Instant;

use anyhow::{Result, ensure};
use wire::access::{AccessMask, CreateDisposition, CreateOptions};
use wire::read::{Channel, ReadFlags};
use wire::{Command, FileId, MessageId, Status, read};

use super::connection::{Answer, Connection, expect};
use super::metadata::open;
use super::pipeline::{self, Jobs, Next};
use crate::environment::LARGE_FILE;
use crate::sample::Work;

/// Limit for small requests: as many as need a few seconds.
const READS_MAX: u64 = 200_000;
/// Limit for large requests, in bytes.
const BYTES_MAX: u64 = 4 << 30;

/// Reads the large file of `file_bytes` bytes, with `length` bytes per request.
pub(crate) fn run(
    connection: &mut Connection,
    file_bytes: u64,
    length: u32,
    depth: usize,
) -> Result<Work> {
    let access = AccessMask::FILE_READ_DATA | AccessMask::FILE_READ_ATTRIBUTES;
    let options = CreateOptions::NON_DIRECTORY_FILE;
    let file_id = open(
        connection,
        LARGE_FILE,
        access,
        CreateDisposition::OPEN,
        options,
    )?;
    let passes_bytes = BYTES_MAX.min(2 * file_bytes);
    let count = READS_MAX.min(passes_bytes / u64::from(length));
    let slots = file_bytes / u64::from(length);
    let mut reads = Reads {
        file_id,
        length,
        slots,
    };
    let start = Instant::now();
    pipeline::run(connection, &mut reads, u32::try_from(count)?, depth)?;
    Ok(Work {
        bytes: count * u64::from(length),
        ops: count,
        seconds: start.elapsed().as_secs_f64(),
        cpu_seconds: 0.0,
    })
}

struct Reads {
    file_id: FileId,
    length: u32,
    slots: u64,
}

impl Jobs for Reads {
    fn start(&mut self, connection: &mut Connection, index: u32) -> Result<MessageId> {
        let request = read::Request {
            padding: read::DATA_OFFSET,
            flags: ReadFlags::NONE,
            length: self.length,
            offset: u64::from(index) % self.slots * u64::from(self.length),
            file_id: self.file_id,
            minimum_count: 0,
            channel: Channel::NONE,
            remaining_bytes: 0,
            channel_info: &[],
        };
        connection.put(Command::READ, self.length, |message| {
            request.encode(message);
        })
    }

    fn answered(&mut self, answer: &Answer<'_>) -> Result<Next> {
        expect(answer, Status::SUCCESS)?;
        let (_, data) = read::Response::decode(answer.message)?;
        ensure!(
            data.len() == self.length as usize,
            "{} bytes read",
            data.len()
        );
        Ok(Next::Done)
    }

    fn continue_job(&mut self, _: &mut Connection, _: FileId) -> Result<MessageId> {
        anyhow::bail!("a READ is done with its answer")
    }
}
