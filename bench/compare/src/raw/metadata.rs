//! Metadata benches: create, open, list and unlink many files in one directory.

use std::time::Instant;

use anyhow::{Result, ensure};
use wire::access::{
    AccessMask, CreateDisposition, CreateOptions, FileAttributes, ImpersonationLevel, OplockLevel,
    ShareAccess,
};
use wire::close::{self, CloseFlags};
use wire::create_context::{LeaseState, RawContext, name};
use wire::query_directory::{self, QueryDirectoryFlags};
use wire::{Command, FileId, Guid, MessageId, Status, Utf16, create, text};

use super::connection::{Answer, Connection, expect};
use super::lease_holders::{LeaseHolders, lease_request};
use super::pipeline::{self, Jobs, Next};
use crate::environment::{Running, Storage};
use crate::sample::{Row, Work};

const DIRECTORY: &str = "many";
/// Requests in flight. Each pass uses a new directory, so that caches of the first do not help the
/// second.
const DEPTHS: [usize; 2] = [1, 16];
/// Output buffer of QUERY_DIRECTORY in bytes, as in smbclient and Windows 10.
const LISTING_BYTES: u32 = 1 << 20;
/// FileIdBothDirectoryInformation. [MS-FSCC] 2.4.22
const ID_BOTH_DIRECTORY_INFORMATION: u8 = 37;
/// Number of clients with a lease on the directory.
const HOLDERS: u8 = 2;
/// Rights of a lease that a client requests for a file.
const LEASE_WANTED: LeaseState = LeaseState(
    LeaseState::READ_CACHING.0 | LeaseState::WRITE_CACHING.0 | LeaseState::HANDLE_CACHING.0,
);
/// Number of listings, because a single one is short.
const LISTINGS: u64 = 10;

/// Creates, opens, lists and unlinks `count` files. Returns the rows of all steps.
pub(crate) fn run(running: &Running<'_>, storage: Storage, count: u32) -> Result<Vec<Row>> {
    let mut connection = super::connect(running.server, storage)?;
    let mut rows = Vec::new();
    for depth in DEPTHS {
        let directory = format!("{DIRECTORY}-{depth}");
        let mut row = |what: &str, work: Work| {
            rows.push(work.row(format!("{what}, depth {depth} {}", storage.name())));
        };
        let made = create_directory(&mut connection, &directory)?;
        close(&mut connection, made)?;
        let mut files =
            |touch| running.count(|| each(&mut connection, &directory, touch, count, depth));
        row("create+close", files(Touch::Create)?);
        row("open+close", files(Touch::Open)?);
        row("open+close with a lease", files(Touch::OpenWithLease)?);
        if depth == 1 {
            row(
                "list (entries)",
                running.count(|| list(&mut connection, &directory, count))?,
            );
        }
        let mut files =
            |touch| running.count(|| each(&mut connection, &directory, touch, count, depth));
        row("unlink", files(Touch::Unlink)?);
        let holders = LeaseHolders::start(running.server, storage, &directory, HOLDERS)?;
        row(
            "create+close, 2 leases on the directory",
            files(Touch::Create)?,
        );
        row("unlink, 2 leases on the directory", files(Touch::Unlink)?);
        let breaks = holders.stop()?;
        ensure!(breaks > 0, "no lease on the directory was broken");
        remove_directory(&mut connection, &directory)?;
    }
    Ok(rows)
}

/// Opens a file or directory.
pub(super) fn open(
    connection: &mut Connection,
    name: &str,
    desired_access: AccessMask,
    create_disposition: CreateDisposition,
    create_options: CreateOptions,
) -> Result<FileId> {
    let name = text::utf16(name);
    let request = create::Request {
        desired_access,
        create_disposition,
        create_options,
        ..request(&name)
    };
    let body = |message: &mut Vec<u8>| request.encode(message);
    let answer = connection.ask(Command::CREATE, 0, Status::SUCCESS, body)?;
    Ok(create::Response::decode(answer)?.file_id)
}

fn close(connection: &mut Connection, file_id: FileId) -> Result<()> {
    let body = |message: &mut Vec<u8>| close_request(file_id).encode(message);
    connection.ask(Command::CLOSE, 0, Status::SUCCESS, body)?;
    Ok(())
}

fn create_directory(connection: &mut Connection, name: &str) -> Result<FileId> {
    let access = AccessMask::FILE_LIST_DIRECTORY | AccessMask::SYNCHRONIZE;
    let options = CreateOptions::DIRECTORY_FILE;
    open(connection, name, access, CreateDisposition::CREATE, options)
}

fn remove_directory(connection: &mut Connection, name: &str) -> Result<()> {
    let options = CreateOptions::DIRECTORY_FILE | CreateOptions::DELETE_ON_CLOSE;
    let file_id = open(
        connection,
        name,
        AccessMask::DELETE,
        CreateDisposition::OPEN,
        options,
    )?;
    close(connection, file_id)
}

pub(super) fn request(name: &[u8]) -> create::Request<'_> {
    create::Request {
        oplock_level: OplockLevel::NONE,
        impersonation_level: ImpersonationLevel::IMPERSONATION,
        desired_access: AccessMask::NONE,
        file_attributes: FileAttributes::NONE,
        share_access: ShareAccess::READ | ShareAccess::WRITE | ShareAccess::DELETE,
        create_disposition: CreateDisposition::OPEN,
        create_options: CreateOptions::NONE,
        name: Utf16(name),
        contexts: Vec::new(),
    }
}

pub(super) fn close_request(file_id: FileId) -> close::Request {
    let flags = CloseFlags::NONE;
    close::Request { flags, file_id }
}

/// The operation on a file between its CREATE and its CLOSE.
#[derive(Clone, Copy)]
enum Touch {
    Create,
    Open,
    /// The same with a lease that the open does not share.
    OpenWithLease,
    Unlink,
}

/// The lease key of the file with this index.
pub(super) fn lease_key(index: u32) -> Guid {
    let mut key = [0xA5; 16];
    key[..4].copy_from_slice(&index.to_le_bytes());
    Guid(key)
}

struct Files<'a> {
    directory: &'a str,
    touch: Touch,
}

fn each(
    connection: &mut Connection,
    directory: &str,
    touch: Touch,
    count: u32,
    depth: usize,
) -> Result<Work> {
    let start = Instant::now();
    pipeline::run(connection, &mut Files { directory, touch }, count, depth)?;
    Ok(Work {
        bytes: 0,
        ops: count.into(),
        seconds: start.elapsed().as_secs_f64(),
        cpu_seconds: 0.0,
    })
}

impl Jobs for Files<'_> {
    fn start(&mut self, connection: &mut Connection, index: u32) -> Result<MessageId> {
        // Short names: smbd can compare each name with all others, and long names would slow it
        // down.
        let path = text::utf16(&format!(r"{}\file{index:06}.dat", self.directory));
        let read = AccessMask::FILE_READ_DATA | AccessMask::FILE_READ_ATTRIBUTES;
        let (desired_access, create_disposition, create_options) = match self.touch {
            Touch::Create => (
                read | AccessMask::FILE_WRITE_DATA,
                CreateDisposition::CREATE,
                CreateOptions::NON_DIRECTORY_FILE,
            ),
            Touch::Open | Touch::OpenWithLease => (
                read,
                CreateDisposition::OPEN,
                CreateOptions::NON_DIRECTORY_FILE,
            ),
            Touch::Unlink => (
                AccessMask::DELETE,
                CreateDisposition::OPEN,
                CreateOptions::NON_DIRECTORY_FILE | CreateOptions::DELETE_ON_CLOSE,
            ),
        };
        let mut request = create::Request {
            desired_access,
            create_disposition,
            create_options,
            ..request(&path)
        };
        let lease = lease_request(lease_key(index), LEASE_WANTED);
        if matches!(self.touch, Touch::OpenWithLease) {
            request.oplock_level = OplockLevel::LEASE;
            request.contexts.push(RawContext {
                name: name::LEASE,
                data: &lease,
            });
        }
        connection.put(Command::CREATE, 0, |message| request.encode(message))
    }

    fn answered(&mut self, answer: &Answer<'_>) -> Result<Next> {
        expect(answer, Status::SUCCESS)?;
        match answer.header.command {
            Command::CREATE => {
                let response = create::Response::decode(answer.message)?;
                Ok(Next::Request(response.file_id))
            }
            _ => Ok(Next::Done),
        }
    }

    fn continue_job(&mut self, connection: &mut Connection, file_id: FileId) -> Result<MessageId> {
        connection.put(Command::CLOSE, 0, |message| {
            close_request(file_id).encode(message);
        })
    }
}

/// Lists the directory several times. Each entry counts as an operation.
fn list(connection: &mut Connection, directory: &str, count: u32) -> Result<Work> {
    let start = Instant::now();
    let mut entries = 0;
    for _ in 0..LISTINGS {
        let access = AccessMask::FILE_LIST_DIRECTORY;
        let options = CreateOptions::DIRECTORY_FILE;
        let file_id = open(
            connection,
            directory,
            access,
            CreateDisposition::OPEN,
            options,
        )?;
        let found = list_once(connection, file_id)?;
        close(connection, file_id)?;
        // The listing includes "." and "..".
        ensure!(
            found == u64::from(count) + 2,
            "{found} entries for {count} files"
        );
        entries += found;
    }
    Ok(Work {
        bytes: 0,
        ops: entries,
        seconds: start.elapsed().as_secs_f64(),
        cpu_seconds: 0.0,
    })
}

fn list_once(connection: &mut Connection, file_id: FileId) -> Result<u64> {
    let pattern = text::utf16("*");
    let request = query_directory::Request {
        file_information_class: ID_BOTH_DIRECTORY_INFORMATION,
        flags: QueryDirectoryFlags::NONE,
        file_index: 0,
        file_id,
        pattern: Utf16(&pattern),
        output_buffer_length: LISTING_BYTES,
    };
    let mut entries = 0;
    loop {
        connection.put(Command::QUERY_DIRECTORY, LISTING_BYTES, |message| {
            request.encode(message);
        })?;
        connection.flush()?;
        let answer = connection.receive()?;
        if answer.header.status == Status::NO_MORE_FILES {
            return Ok(entries);
        }
        expect(&answer, Status::SUCCESS)?;
        entries += count_entries(query_directory::Response::decode(answer.message)?.output);
    }
}

/// Counts the entries. Each begins with the offset of the next one. [MS-FSCC] 2.4.22
fn count_entries(mut output: &[u8]) -> u64 {
    let mut entries = 0;
    while let Some(distance) = output.first_chunk() {
        entries += 1;
        let distance = u32::from_le_bytes(*distance) as usize;
        match output.get(distance..) {
            Some(rest) if distance > 0 => output = rest,
            _ => break,
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::count_entries;

    #[test]
    fn entries_are_counted_to_the_last() {
        let mut output = vec![0; 24];
        output[0] = 8;
        output[8] = 8;
        assert_eq!(count_entries(&output), 3);
        assert_eq!(count_entries(&[]), 0);
        assert_eq!(count_entries(&[200, 0, 0, 0]), 1);
    }
}
