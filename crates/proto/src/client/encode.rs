//! Encoding of steps as request messages. `send.rs` writes the header.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use wire::access::ImpersonationLevel;
use wire::change_notify::ChangeNotifyFlags;
use wire::close::CloseFlags;
use wire::create_context::{
    self, DURABLE_REQUEST_DATA, DurableFlags, DurableReconnect, DurableReconnectV2,
    DurableRequestV2, Lease, LeaseFlags, LeaseState, LeaseV2, PosixRequest, RawContext,
};
use wire::dialect::Dialect;
use wire::fscc::{FileInfoClass, InfoType};
use wire::header::HEADER_LEN;
use wire::ioctl::IoctlFlags;
use wire::oplock_break::{LeaseBreak, OplockBreak};
use wire::query_directory::QueryDirectoryFlags;
use wire::query_info::QueryInfoFlags;
use wire::read::{Channel, ReadFlags};
use wire::text::utf16;
use wire::write::WriteFlags;
use wire::{Command, FileId, Utf16};
use wire::{
    change_notify, close, create, echo, flush, ioctl, lock, logoff, oplock_break, query_directory,
    query_info, read, set_info, tree_connect, tree_disconnect, write,
};

use super::negotiated::Negotiated;
use super::registration::{self, Registration};
use super::request::{Create, Durability, FileRef, LeaseRequest, Step};

/// Longest name in bytes: its length field has 16 bits.
const NAME_MAX: usize = 65_534;
/// Largest count of locks in one request, so that the message stays short.
const LOCKS_MAX: usize = 1_024;
/// Largest overhead of a response in bytes: header, fixed part, contexts, and error data.
pub(super) const ANSWER_OVERHEAD: u32 = 4_096;

/// A message without its header.
pub(super) struct Body {
    /// Command.
    pub(super) command: Command,
    /// Space for the header (64 bytes), and the body.
    pub(super) head: Vec<u8>,
    /// Length of the payload in bytes, which the driver holds.
    pub(super) payload: Option<u32>,
}

impl FileRef {
    fn id(self) -> FileId {
        match self {
            Self::Id(id) => id,
            Self::Previous => FileId::RELATED,
        }
    }
}

/// The command of a step.
pub(super) fn command(step: &Step) -> Command {
    match step {
        Step::TreeConnect(_) => Command::TREE_CONNECT,
        Step::TreeDisconnect => Command::TREE_DISCONNECT,
        Step::Logoff => Command::LOGOFF,
        Step::Echo => Command::ECHO,
        Step::Create(_) => Command::CREATE,
        Step::Close { .. } => Command::CLOSE,
        Step::Flush(_) => Command::FLUSH,
        Step::Read { .. } => Command::READ,
        Step::Write { .. } => Command::WRITE,
        Step::QueryDirectory { .. } => Command::QUERY_DIRECTORY,
        Step::QueryInfo { .. } => Command::QUERY_INFO,
        Step::SetInfo { .. } => Command::SET_INFO,
        Step::ChangeNotify { .. } => Command::CHANGE_NOTIFY,
        Step::Lock { .. } => Command::LOCK,
        Step::Ioctl { .. } => Command::IOCTL,
        Step::AcknowledgeOplock { .. } | Step::AcknowledgeLease { .. } => Command::OPLOCK_BREAK,
    }
}

/// Largest buffer of the response in bytes.
pub(super) fn asked(step: &Step) -> u32 {
    match step {
        Step::Read { length, .. }
        | Step::QueryDirectory { length, .. }
        | Step::QueryInfo { length, .. }
        | Step::ChangeNotify { length, .. } => *length,
        Step::Ioctl { max_output, .. } => *max_output,
        _ => 0,
    }
}

/// Length of the buffer of the request in bytes.
pub(super) fn sent(step: &Step) -> u32 {
    let bytes = match step {
        Step::Write { length, .. } => *length as usize,
        Step::SetInfo { buffer, .. } => buffer.len(),
        Step::Ioctl { input, .. } => input.len(),
        _ => 0,
    };
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Checks whether a step can be sent at all.
pub(super) fn check(step: &Step, negotiated: &Negotiated) -> Result<(), &'static str> {
    let (limit, what) = match step {
        Step::Read { .. } => (
            negotiated.max_read,
            "the read is longer than the server allows",
        ),
        Step::Write { .. } => (
            negotiated.max_write,
            "the write is longer than the server allows",
        ),
        _ => (
            negotiated.max_transact,
            "the buffer is longer than the server allows",
        ),
    };
    if sent(step).max(asked(step)) > limit {
        return Err(what);
    }
    let name = match step {
        Step::TreeConnect(name) => name,
        Step::Create(create) => &create.name,
        Step::QueryDirectory { pattern, .. } => pattern,
        Step::Lock { locks, .. } if locks.is_empty() || locks.len() > LOCKS_MAX => {
            return Err("the request has no locks, or too many");
        }
        _ => return Ok(()),
    };
    // UTF-16 has no more units than UTF-8 has bytes.
    if 2 * name.encode_utf16().count() > NAME_MAX {
        return Err("the name is longer than a message allows");
    }
    Ok(())
}

/// Whether a shorter response than requested is acceptable.
pub(super) fn may_be_shorter(step: &Step) -> bool {
    matches!(
        step,
        Step::QueryDirectory { .. } | Step::ChangeNotify { .. }
    )
}

/// Whether a step transfers data.
pub(super) fn is_transfer(step: &Step) -> bool {
    matches!(step, Step::Read { .. } | Step::Write { .. })
}

/// Encodes a step. With `memory`, its data move by RDMA. `negotiated` is the result of this
/// channel:
/// a channel with shorter messages requests a shorter response where that is acceptable.
pub(super) fn body(
    step: &Step,
    memory: Option<&Registration>,
    server_name: &str,
    negotiated: &Negotiated,
) -> Body {
    let mut head = vec![0; HEADER_LEN];
    let memory = memory.filter(|_| is_transfer(step));
    let payload = match step {
        Step::Write { length, .. } if *length > 0 && memory.is_none() => Some(*length),
        _ => None,
    };
    put(step, memory, server_name, negotiated, &mut head);
    Body {
        command: command(step),
        head,
        payload,
    }
}

fn put(
    step: &Step,
    memory: Option<&Registration>,
    server_name: &str,
    negotiated: &Negotiated,
    out: &mut Vec<u8>,
) {
    match step {
        Step::TreeConnect(share) => put_tree_connect(server_name, share, out),
        Step::TreeDisconnect => tree_disconnect::Request.encode(out),
        Step::Logoff => logoff::Request.encode(out),
        Step::Echo => echo::Request.encode(out),
        Step::Create(create) => put_create(create, negotiated.dialect, out),
        Step::Close { file, query } => put_close(*file, *query, out),
        Step::Flush(file) => {
            let (reserved, file_id) = (0, file.id());
            flush::Request { reserved, file_id }.encode(out);
        }
        Step::Read { .. } | Step::Write { .. } => {
            put_transfer(step, memory, negotiated.dialect, out);
        }
        Step::QueryDirectory { .. } | Step::ChangeNotify { .. } => {
            put_directory(step, negotiated.max_transact, out);
        }
        Step::QueryInfo { .. } | Step::SetInfo { .. } => put_info(step, out),
        Step::Lock {
            file,
            sequence,
            locks,
        } => lock::Request {
            lock_sequence: *sequence,
            file_id: file.id(),
            locks: locks.clone(),
        }
        .encode(out),
        Step::Ioctl { .. } => put_ioctl(step, out),
        Step::AcknowledgeOplock { file, level } => oplock_break::Request::Oplock(OplockBreak {
            oplock_level: *level,
            file_id: *file,
        })
        .encode(out),
        Step::AcknowledgeLease { key, state } => oplock_break::Request::Lease(LeaseBreak {
            lease_key: *key,
            lease_state: LeaseState(*state),
        })
        .encode(out),
    }
}

fn put_tree_connect(server_name: &str, share: &str, out: &mut Vec<u8>) {
    let path = utf16(&format!("\\\\{server_name}\\{share}"));
    let request = tree_connect::Request {
        flags: tree_connect::RequestFlags::NONE,
        path: Utf16(&path),
    };
    request.encode(out);
}

fn put_close(file: FileRef, query: bool, out: &mut Vec<u8>) {
    let flags = match query {
        true => CloseFlags::POSTQUERY_ATTRIB,
        false => CloseFlags::NONE,
    };
    let file_id = file.id();
    close::Request { flags, file_id }.encode(out);
}

fn put_create(create: &Create, dialect: Dialect, out: &mut Vec<u8>) {
    let name = utf16(&create.name);
    let data = create_contexts(create, dialect);
    let contexts = data.iter().map(|(name, data)| RawContext { name, data });
    let request = create::Request {
        oplock_level: create.oplock,
        impersonation_level: ImpersonationLevel::IMPERSONATION,
        desired_access: create.access,
        file_attributes: create.attributes,
        share_access: create.share,
        create_disposition: create.disposition,
        create_options: create.options,
        name: Utf16(&name),
        contexts: contexts.collect(),
    };
    request.encode(out);
}

/// The create contexts that the dialect supports.
fn create_contexts(create: &Create, dialect: Dialect) -> Vec<(&'static [u8], Vec<u8>)> {
    use create_context::name;
    let is_3 = dialect >= Dialect::SMB_3_0;
    let mut contexts = Vec::new();
    contexts.extend(durable_context(create, is_3));
    if let Some(lease) = create.lease {
        contexts.push((name::LEASE, lease_context(lease, is_3)));
    }
    if let Some(allocation_size) = create.allocation {
        let request = create_context::AllocationSize { allocation_size };
        contexts.push((name::ALLOCATION_SIZE, request.encode()));
    }
    if create.query_maximal_access {
        contexts.push((name::MAXIMAL_ACCESS, Vec::new()));
    }
    if let Some(mode) = create.posix_mode {
        contexts.push((name::POSIX, PosixRequest { mode }.encode()));
    }
    contexts
}

/// The context of a durable open. Version 2 needs a CreateGuid and a dialect 3.x.
/// \[MS-SMB2\] 3.2.4.3.5, 3.2.4.4
fn durable_context(create: &Create, is_3: bool) -> Option<(&'static [u8], Vec<u8>)> {
    use create_context::name;
    let flags = DurableFlags::NONE;
    match (create.durable, create.create_guid.filter(|_| is_3)) {
        (Durability::Reconnect(file_id), Some(create_guid)) => {
            let reconnect = DurableReconnectV2 {
                file_id,
                create_guid,
                flags,
            };
            Some((name::DURABLE_RECONNECT_V2, reconnect.encode()))
        }
        (Durability::Reconnect(file_id), None) => {
            let reconnect = DurableReconnect { file_id };
            Some((name::DURABLE_RECONNECT, reconnect.encode()))
        }
        (Durability::Request | Durability::None, Some(create_guid)) => {
            let request = DurableRequestV2 {
                timeout_ms: 0,
                flags,
                create_guid,
            };
            Some((name::DURABLE_REQUEST_V2, request.encode()))
        }
        (Durability::Request, None) => Some((name::DURABLE_REQUEST, DURABLE_REQUEST_DATA.to_vec())),
        (Durability::None, None) => None,
    }
}

/// The context of a lease, of version 2 in dialects 3.x. \[MS-SMB2\] 3.2.4.3.8
fn lease_context(request: LeaseRequest, is_3: bool) -> Vec<u8> {
    let LeaseRequest {
        key,
        state,
        parent,
        epoch,
    } = request;
    let parent = parent.filter(|_| is_3);
    let lease = Lease {
        lease_key: key,
        lease_state: LeaseState(state),
        lease_flags: match parent {
            Some(_) => LeaseFlags::PARENT_LEASE_KEY_SET,
            None => LeaseFlags::NONE,
        },
        v2: is_3.then_some(LeaseV2 {
            parent_lease_key: parent.unwrap_or_default(),
            epoch,
        }),
    };
    lease.encode()
}

/// READ or WRITE. With `memory`, their data move by RDMA. \[MS-SMB2\] 3.2.4.6, 3.2.4.7
fn put_transfer(step: &Step, memory: Option<&Registration>, dialect: Dialect, out: &mut Vec<u8>) {
    let (channel, info) = match memory {
        Some(memory) => (registration::channel(dialect), memory.info()),
        None => (Channel::NONE, Vec::new()),
    };
    match step {
        Step::Read {
            file,
            offset,
            length,
            minimum,
        } => read::Request {
            // Preferred offset of the data in the response. \[MS-SMB2\] 2.2.19
            padding: read::DATA_OFFSET,
            flags: ReadFlags::NONE,
            length: *length,
            offset: *offset,
            file_id: file.id(),
            minimum_count: *minimum,
            channel,
            remaining_bytes: 0,
            channel_info: &info,
        }
        .encode(out),
        Step::Write {
            file,
            offset,
            length,
            through,
        } => {
            let flags = match through {
                true => WriteFlags::WRITE_THROUGH,
                false => WriteFlags::NONE,
            };
            if memory.is_none() {
                return put_inline(file.id(), *offset, *length, flags, out);
            }
            write::Request {
                offset: *offset,
                file_id: file.id(),
                channel,
                // Length counts the bytes in the message: none.
                remaining_bytes: *length,
                channel_info: &info,
                flags,
                data_offset: 0,
                data: &[],
            }
            .encode(out);
        }
        _ => unreachable!("the caller passes transfers only"),
    }
}

/// A WRITE whose data follow in the message.
fn put_inline(file: FileId, offset: u64, length: u32, flags: WriteFlags, out: &mut Vec<u8>) {
    write::encode_head(file, offset, length, flags, out);
    if length == 0 {
        // StructureSize counts a byte of the buffer.
        out.push(0);
    }
}

fn put_directory(step: &Step, room: u32, out: &mut Vec<u8>) {
    match step {
        Step::QueryDirectory {
            file,
            class,
            restart,
            pattern,
            length,
        } => {
            let pattern = utf16(pattern);
            let flags = match restart {
                true => QueryDirectoryFlags::RESTART_SCANS,
                false => QueryDirectoryFlags::NONE,
            };
            let request = query_directory::Request {
                file_information_class: *class,
                flags,
                file_index: 0,
                file_id: file.id(),
                pattern: Utf16(&pattern),
                output_buffer_length: (*length).min(room),
            };
            request.encode(out);
        }
        Step::ChangeNotify {
            file,
            recursive,
            filter,
            length,
        } => {
            let flags = match recursive {
                true => ChangeNotifyFlags::WATCH_TREE,
                false => ChangeNotifyFlags::NONE,
            };
            let request = change_notify::Request {
                flags,
                output_buffer_length: (*length).min(room),
                file_id: file.id(),
                completion_filter: *filter,
            };
            request.encode(out);
        }
        _ => unreachable!("the caller passes directory requests only"),
    }
}

/// The flags of a query. A list of extended attributes starts at the first one: without the flag,
/// it continues where the previous query of the open ended. \[MS-FSA\] 2.1.5.12.14
fn scan_flags(info_type: InfoType, class: u8) -> QueryInfoFlags {
    match info_type == InfoType::FILE && class == FileInfoClass::FULL_EA.0 {
        true => QueryInfoFlags::RESTART_SCAN,
        false => QueryInfoFlags::NONE,
    }
}

fn put_info(step: &Step, out: &mut Vec<u8>) {
    match step {
        Step::QueryInfo {
            file,
            info_type,
            class,
            additional,
            length,
        } => query_info::Request {
            info_type: *info_type,
            file_info_class: *class,
            output_buffer_length: *length,
            additional_information: *additional,
            flags: scan_flags(*info_type, *class),
            file_id: file.id(),
            input: &[],
        }
        .encode(out),
        Step::SetInfo {
            file,
            info_type,
            class,
            additional,
            buffer,
        } => set_info::Request {
            info_type: *info_type,
            file_info_class: *class,
            additional_information: *additional,
            file_id: file.id(),
            buffer,
        }
        .encode(out),
        _ => unreachable!("the caller passes information requests only"),
    }
}

fn put_ioctl(step: &Step, out: &mut Vec<u8>) {
    let Step::Ioctl {
        file,
        code,
        input,
        max_output,
    } = step
    else {
        unreachable!("the caller passes IOCTL only");
    };
    let request = ioctl::Request {
        ctl_code: *code,
        // A function of the server has no file. \[MS-SMB2\] 2.2.31
        file_id: file.map_or(FileId::RELATED, FileRef::id),
        max_input_response: 0,
        max_output_response: *max_output,
        flags: IoctlFlags::IS_FSCTL,
        input,
        output: &[],
    };
    request.encode(out);
}
