//! Memory of open files: without a lease, with one, and after the loss of their connection.

use std::time::Duration;

use anyhow::{Result, ensure};
use wire::access::{AccessMask, CreateDisposition, OplockLevel};
use wire::create_context::{DurableFlags, DurableRequestV2, LeaseState, RawContext, name};
use wire::{Command, Guid, Status, create, text};

use super::connection::{Connection, expect};
use super::lease_holders::lease_request;
use super::metadata;
use crate::environment::{Running, Storage};
use crate::sample::{Metric, Row};

/// Opens that the server has at a time, as it reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Without caching rights.
    Plain,
    /// Each with a lease.
    Leased,
    /// Each with a lease and durable, after the loss of the connection.
    Disconnected,
}

/// Time for the server to free memory that it does not need.
const SETTLE: Duration = Duration::from_secs(1);
/// Time that the server keeps durable opens, in milliseconds.
const DURABLE_MS: u32 = 60_000;

/// Opens `count` files. Returns the memory of each open.
pub(crate) fn run(
    running: &Running<'_>,
    storage: Storage,
    kind: Kind,
    count: u32,
) -> Result<Vec<Row>> {
    let mut connection = super::connect(running.server, storage)?;
    // The structures that the first open needs are not part of an open.
    open(&mut connection, kind, count)?;
    std::thread::sleep(SETTLE);
    let before = running.memory();
    for index in 0..count {
        open(&mut connection, kind, index)?;
    }
    let connection = (kind != Kind::Disconnected).then_some(connection);
    std::thread::sleep(SETTLE);
    let after = running.memory();
    drop(connection);
    let each = (after.pss_kib as f64 - before.pss_kib as f64) / f64::from(count);
    let title = match kind {
        Kind::Plain => "open file",
        Kind::Leased => "open file with a lease",
        Kind::Disconnected => "disconnected open file with a lease",
    };
    Ok(vec![Row {
        title: title.into(),
        metrics: vec![(Metric::PssKib, each)],
    }])
}

fn open(connection: &mut Connection, kind: Kind, index: u32) -> Result<()> {
    let path = text::utf16(&format!("open{index:06}.dat"));
    let mut request = metadata::request(&path);
    request.desired_access = AccessMask::FILE_READ_DATA | AccessMask::FILE_WRITE_DATA;
    request.create_disposition = CreateDisposition::OPEN_IF;
    let key = metadata::lease_key(index);
    let rights = LeaseState::READ_CACHING | LeaseState::HANDLE_CACHING;
    let (lease, durable) = (lease_request(key, rights), durable_request(key));
    if kind != Kind::Plain {
        request.oplock_level = OplockLevel::LEASE;
        request.contexts.push(RawContext {
            name: name::LEASE,
            data: &lease,
        });
    }
    if kind == Kind::Disconnected {
        request.contexts.push(RawContext {
            name: name::DURABLE_REQUEST_V2,
            data: &durable,
        });
    }
    connection.put(Command::CREATE, 0, |message| request.encode(message))?;
    connection.flush()?;
    let answer = connection.receive()?;
    expect(&answer, Status::SUCCESS)?;
    let response = create::Response::decode(answer.message)?;
    let has = |name: &[u8]| response.contexts.iter().any(|context| context.name == name);
    ensure!(kind == Kind::Plain || has(name::LEASE), "no lease");
    let must_be_durable = kind == Kind::Disconnected;
    ensure!(
        !must_be_durable || has(name::DURABLE_REQUEST_V2),
        "no durable open"
    );
    Ok(())
}

fn durable_request(create_guid: Guid) -> Vec<u8> {
    let request = DurableRequestV2 {
        timeout_ms: DURABLE_MS,
        flags: DurableFlags::NONE,
        create_guid,
    };
    request.encode()
}
