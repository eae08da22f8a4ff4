//! Verified responses, compared with their requests. \[MS-SMB2\] 3.2.5.4 to 3.2.5.18
//!
//! The server may lie, so a malformed response fails its request, and so does one with more than
//! the request asked for.

use alloc::boxed::Box;
use alloc::vec::Vec;

use wire::access::AccessMask;
use wire::create_context::{
    self, DurableResponseV2, Lease, LeaseFlags, MaximalAccessResponse, name,
};
use wire::lock::LockFlags;
use wire::posix::PosixCreateResponse;
use wire::{
    DecodeError, FileId, Status, change_notify, close, create, echo, error_response, flush, ioctl,
    lock, logoff, oplock_break, query_directory, query_info, read, set_info, tree_connect,
    tree_disconnect, write,
};

use super::message::Message;
use super::request::{
    Attributes, Create, Created, Durability, DurableGrant, Failure, ReadData, Reply, Request, Step,
};

/// Largest error data in bytes that a failure carries: limits of a copy, the target of a link.
const ERROR_DATA_MAX: usize = 64 * 1024;

/// The successful reply to a request that was sent again after its channel was lost, if the refusal
/// shows that the server executed the first one.
pub(super) fn was_done_before(request: &Request, step: &Step, status: Status) -> Option<Reply> {
    let is_alone = request.steps.len() == 1 && request.resent > 0;
    match (step, status) {
        (Step::Close { .. }, Status::FILE_CLOSED) if is_alone => Some(Reply::Closed(None)),
        (Step::TreeDisconnect, Status::NETWORK_NAME_DELETED) if is_alone => Some(Reply::Done),
        (Step::Lock { locks, .. }, Status::RANGE_NOT_LOCKED) if is_alone => {
            let mut locks = locks.iter();
            let are_released = locks.all(|lock| lock.flags == LockFlags::UNLOCK);
            are_released.then_some(Reply::Done)
        }
        _ => None,
    }
}

/// The result of a step. `is_remote`: whether memory was registered for its data.
pub(super) fn reply(
    step: &Step,
    is_remote: bool,
    message: &Message<'_>,
    is_cancelled: bool,
) -> Result<Reply, Failure> {
    let status = message.header.status;
    let has_more = status == Status::BUFFER_OVERFLOW;
    if status != Status::SUCCESS && !(has_more && may_have_more(step)) {
        return Err(failure(status, step, message.bytes, is_cancelled));
    }
    let bytes = message.bytes;
    match step {
        Step::TreeConnect(_) => tree_connected(message),
        Step::Create(create) => created(create, bytes),
        Step::Close { query, .. } => closed(*query, bytes),
        Step::Read { length, .. } => read(*length, is_remote, message),
        Step::Write { length, .. } => written(*length, bytes),
        Step::QueryDirectory { length, .. } => {
            let output = query_directory::Response::decode(bytes)?.output;
            self::output(*length, output, has_more)
        }
        Step::QueryInfo { length, .. } => {
            let output = query_info::Response::decode(bytes)?.output;
            self::output(*length, output, has_more)
        }
        Step::ChangeNotify { length, .. } => {
            let output = change_notify::Response::decode(bytes)?.output;
            self::output(*length, output, has_more)
        }
        Step::Ioctl { max_output, .. } => {
            let output = ioctl::Response::decode(bytes)?.output;
            match self::output(*max_output, output, has_more)? {
                Reply::Output(output, has_more) => Ok(Reply::Ioctl(output, has_more)),
                other => Ok(other),
            }
        }
        _ => done(step, bytes).map_err(Failure::Malformed),
    }
}

/// Whether the response to a step may be truncated (BUFFER_OVERFLOW).
/// \[MS-SMB2\] 3.2.5.11, 3.2.5.14, 3.2.5.17
fn may_have_more(step: &Step) -> bool {
    matches!(
        step,
        Step::Read { .. }
            | Step::QueryInfo { .. }
            | Step::QueryDirectory { .. }
            | Step::Ioctl { .. }
    )
}

fn failure(status: Status, step: &Step, bytes: &[u8], is_cancelled: bool) -> Failure {
    if status == Status::CANCELLED && is_cancelled {
        return Failure::Cancelled;
    }
    // The limits of a copy are in a regular response. \[MS-SMB2\] 3.3.5.15.6
    if let (Step::Ioctl { max_output, .. }, Ok(response)) = (step, ioctl::Response::decode(bytes))
        && !response.output.is_empty()
        && response.output.len() <= *max_output as usize
    {
        return Failure::StatusWith(status, response.output.to_vec());
    }
    match error_response::Response::decode(bytes) {
        Ok(error) if error.error_data.is_empty() => Failure::Status(status),
        Ok(error) if error.error_data.len() <= ERROR_DATA_MAX => {
            Failure::StatusWith(status, error_data(&error))
        }
        // The status is valid even if the error data are malformed.
        _ => Failure::Status(status),
    }
}

/// The data of an error; in 3.1.1 they are in a context. \[MS-SMB2\] 2.2.2.1
fn error_data(error: &error_response::Response<'_>) -> Vec<u8> {
    let contexts = error_response::decode_contexts(error.error_data, error.context_count);
    match contexts.as_deref() {
        Ok([first, ..]) => first.data.to_vec(),
        _ => error.error_data.to_vec(),
    }
}

fn tree_connected(message: &Message<'_>) -> Result<Reply, Failure> {
    let response = tree_connect::Response::decode(message.bytes)?;
    let tree = message.header.tree_id().ok_or(DecodeError::Invalid {
        field: "Flags",
        value: message.header.flags.0.into(),
    })?;
    Ok(Reply::TreeConnected {
        tree,
        share_type: response.share_type,
        flags: response.share_flags,
        capabilities: response.capabilities,
        maximal_access: response.maximal_access,
    })
}

fn created(asked: &Create, bytes: &[u8]) -> Result<Reply, Failure> {
    let response = create::Response::decode(bytes)?;
    if response.file_id == FileId::RELATED {
        return Err(Failure::Malformed(DecodeError::Invalid {
            field: "FileId",
            value: response.file_id.volatile,
        }));
    }
    let lease = lease(asked, &response)?;
    Ok(Reply::Created(Created {
        file_id: response.file_id,
        oplock: response.oplock_level,
        lease_state: lease.map(|lease| lease.lease_state.0),
        lease_epoch: lease.and_then(|lease| lease.v2).map(|v2| v2.epoch),
        is_lease_breaking: lease.is_some_and(|lease| {
            let flags = lease.lease_flags;
            flags.contains(LeaseFlags::BREAK_IN_PROGRESS)
        }),
        durable: durable(asked, &response)?,
        action: response.create_action.0,
        attributes: Attributes {
            created: response.creation_time,
            accessed: response.last_access_time,
            written: response.last_write_time,
            changed: response.change_time,
            allocation: response.allocation_size,
            size: response.end_of_file,
            attributes: response.file_attributes,
        },
        maximal_access: maximal_access(asked, &response)?,
        posix: posix(asked, &response)?.map(Box::new),
    }))
}

/// The granted lease. It may have more rights than requested, from other opens.
fn lease(asked: &Create, response: &create::Response<'_>) -> Result<Option<Lease>, Failure> {
    let Some(request) = asked.lease else {
        return Ok(None);
    };
    let Some(data) = create_context::find(&response.contexts, name::LEASE) else {
        return Ok(None);
    };
    let lease = Lease::decode(data)?;
    if lease.lease_key != request.key {
        return Err(Failure::Excess("the response has another lease key"));
    }
    Ok(Some(lease))
}

/// The granted durable open. \[MS-SMB2\] 3.2.5.7.3, 3.2.5.7.4
fn durable(
    asked: &Create,
    response: &create::Response<'_>,
) -> Result<Option<DurableGrant>, Failure> {
    if asked.durable != Durability::Request {
        return Ok(None);
    }
    if let Some(data) = create_context::find(&response.contexts, name::DURABLE_REQUEST_V2) {
        let timeout_ms = DurableResponseV2::decode(data)?.timeout_ms;
        return Ok(Some(DurableGrant { timeout_ms }));
    }
    let v1 = create_context::find(&response.contexts, name::DURABLE_REQUEST);
    Ok(v1.map(|_| DurableGrant { timeout_ms: 0 }))
}

fn maximal_access(
    asked: &Create,
    response: &create::Response<'_>,
) -> Result<Option<AccessMask>, Failure> {
    if !asked.query_maximal_access {
        return Ok(None);
    }
    let Some(data) = create_context::find(&response.contexts, name::MAXIMAL_ACCESS) else {
        return Ok(None);
    };
    let answer = MaximalAccessResponse::decode(data)?;
    let is_known = answer.query_status == Status::SUCCESS;
    Ok(is_known.then_some(answer.maximal_access))
}

/// The Unix attributes in the context of the SMB3 POSIX extensions.
fn posix(
    asked: &Create,
    response: &create::Response<'_>,
) -> Result<Option<PosixCreateResponse>, Failure> {
    if asked.posix_mode.is_none() {
        return Ok(None);
    }
    match create_context::find(&response.contexts, name::POSIX) {
        Some(data) => Ok(Some(PosixCreateResponse::decode(data)?)),
        None => Ok(None),
    }
}

fn closed(query: bool, bytes: &[u8]) -> Result<Reply, Failure> {
    let response = close::Response::decode(bytes)?;
    let is_told = query && response.flags.contains(close::CloseFlags::POSTQUERY_ATTRIB);
    Ok(Reply::Closed(is_told.then_some(Attributes {
        created: response.creation_time,
        accessed: response.last_access_time,
        written: response.last_write_time,
        changed: response.change_time,
        allocation: response.allocation_size,
        size: response.end_of_file,
        attributes: response.file_attributes,
    })))
}

fn read(length: u32, is_remote: bool, message: &Message<'_>) -> Result<Reply, Failure> {
    if let Some(placed) = message.placed {
        // `Connection::expect` has compared the head with the request.
        let length = u32::try_from(placed.len()).expect("a READ has a length of 32 bits");
        return Ok(Reply::Read(ReadData::Placed(length)));
    }
    let (response, data) = read::Response::decode(message.bytes)?;
    if data.len() > length as usize {
        return Err(Failure::Excess("the response has more data than requested"));
    }
    if is_remote && data.is_empty() {
        return Ok(Reply::Read(ReadData::Remote(response.data_remaining)));
    }
    if data.is_empty() {
        // The offset of empty data does not matter.
        return Ok(Reply::Read(ReadData::Inbound(message.start..message.start)));
    }
    if response.data_offset < read::DATA_OFFSET {
        return Err(Failure::Malformed(DecodeError::Invalid {
            field: "DataOffset",
            value: response.data_offset.into(),
        }));
    }
    let start = message.start + usize::from(response.data_offset);
    Ok(Reply::Read(ReadData::Inbound(start..start + data.len())))
}

fn written(length: u32, bytes: &[u8]) -> Result<Reply, Failure> {
    let response = write::Response::decode(bytes)?;
    if response.count > length {
        return Err(Failure::Excess(
            "the server reports more written bytes than were sent",
        ));
    }
    Ok(Reply::Written(response.count))
}

fn output(length: u32, output: &[u8], has_more: bool) -> Result<Reply, Failure> {
    if output.len() > length as usize {
        return Err(Failure::Excess(
            "the response has a longer buffer than requested",
        ));
    }
    Ok(Reply::Output(output.to_vec(), has_more))
}

/// Responses without further content.
fn done(step: &Step, bytes: &[u8]) -> Result<Reply, DecodeError> {
    match step {
        Step::TreeDisconnect => tree_disconnect::Response::decode(bytes).map(|_| Reply::Done),
        Step::Logoff => logoff::Response::decode(bytes).map(|_| Reply::Done),
        Step::Echo => echo::Response::decode(bytes).map(|_| Reply::Done),
        Step::Flush(_) => flush::Response::decode(bytes).map(|_| Reply::Done),
        Step::SetInfo { .. } => set_info::Response::decode(bytes).map(|_| Reply::Done),
        Step::Lock { .. } => lock::Response::decode(bytes).map(|_| Reply::Done),
        Step::AcknowledgeOplock { .. } | Step::AcknowledgeLease { .. } => {
            oplock_break::Response::decode(bytes).map(|_| Reply::Done)
        }
        _ => unreachable!("the other steps are handled before"),
    }
}
