//! Messages with any values survive encode and decode; a compound splits into its original
//! messages.

mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use smbeam_wire::access::*;
use smbeam_wire::compound::{Members, link};
use smbeam_wire::create_context::{self, Lease, LeaseFlags, LeaseState, LeaseV2};
use smbeam_wire::dialect::{Capabilities, Dialect, SecurityMode};
use smbeam_wire::error_response::{self, ErrorContext, ErrorId, SymlinkError, SymlinkFlags};
use smbeam_wire::fsctl::CtlCode;
use smbeam_wire::header::HEADER_LEN;
use smbeam_wire::negotiate_context::{self, ContextType};
use smbeam_wire::read::Channel;
use smbeam_wire::{
    FileId, FileTime, Guid, Utf16, create, ioctl, lock, negotiate, query_directory, query_info,
    read, session_setup, set_info, transform, tree_connect, write,
};

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..100)
}

fn file_id() -> impl Strategy<Value = FileId> {
    any::<(u64, u64)>().prop_map(|(persistent, volatile)| FileId {
        persistent,
        volatile,
    })
}

/// Names and data of create contexts.
fn create_contexts() -> impl Strategy<Value = Vec<(Vec<u8>, Vec<u8>)>> {
    vec((vec(any::<u8>(), 4..20), bytes()), 0..6)
}

/// A message: a header of zeros and the encoded body.
fn message(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    support::encoded(&[0; HEADER_LEN], encode)
}

proptest! {
    #[test]
    fn negotiate_request(
        (mode, capabilities, guid) in any::<(u16, u32, [u8; 16])>(),
        mut dialects in vec(any::<u16>(), 0..10),
        has_contexts: bool,
        data in vec((any::<u16>(), bytes()), 0..6),
    ) {
        dialects.retain(|dialect| *dialect != 0x0311);
        dialects.extend(has_contexts.then_some(0x0311));
        let data = if has_contexts { &data[..] } else { &[] };
        let contexts = data.iter().map(|(context_type, data)| negotiate_context::RawContext {
            context_type: ContextType(*context_type),
            data,
        });
        let request = negotiate::Request {
            security_mode: SecurityMode(mode),
            capabilities: Capabilities(capabilities),
            client_guid: Guid(guid),
            dialects: dialects.iter().copied().map(Dialect).collect(),
            contexts: contexts.collect(),
        };
        let message = message(|bytes| request.encode(bytes));
        prop_assert_eq!(negotiate::Request::decode(&message), Ok(request));
    }

    #[test]
    fn negotiate_response(
        (mode, dialect, guid, capabilities) in any::<(u16, u16, [u8; 16], u32)>(),
        (transact, read, write, now, start) in any::<(u32, u32, u32, u64, u64)>(),
        (token, data) in (bytes(), vec((any::<u16>(), bytes()), 0..6)),
    ) {
        let has_contexts = dialect % 2 == 1;
        let dialect = if has_contexts { 0x0311 } else { dialect };
        let data = if has_contexts { &data[..] } else { &[] };
        let contexts = data.iter().map(|(context_type, data)| negotiate_context::RawContext {
            context_type: ContextType(*context_type),
            data,
        });
        let response = negotiate::Response {
            security_mode: SecurityMode(mode),
            dialect: Dialect(dialect),
            server_guid: Guid(guid),
            capabilities: Capabilities(capabilities),
            max_transact_size: transact,
            max_read_size: read,
            max_write_size: write,
            system_time: FileTime(now),
            server_start_time: FileTime(start),
            security_buffer: &token,
            contexts: contexts.collect(),
        };
        let message = message(|bytes| response.encode(bytes));
        prop_assert_eq!(negotiate::Response::decode(&message), Ok(response));
    }

    #[test]
    fn session_setup(
        (flags, mode, capabilities, channel, previous) in any::<(u8, u8, u32, u32, u64)>(),
        token in bytes(),
    ) {
        let request = session_setup::Request {
            flags: session_setup::RequestFlags(flags),
            security_mode: SecurityMode(mode.into()),
            capabilities: Capabilities(capabilities),
            channel,
            previous_session_id: smbeam_wire::SessionId(previous),
            security_buffer: &token,
        };
        let sent = message(|bytes| request.encode(bytes));
        prop_assert_eq!(session_setup::Request::decode(&sent), Ok(request));
        let response = session_setup::Response {
            flags: session_setup::SessionFlags(flags.into()),
            security_buffer: &token,
        };
        let sent = message(|bytes| response.encode(bytes));
        prop_assert_eq!(session_setup::Response::decode(&sent), Ok(response));
    }

    #[test]
    fn tree_connect(flags: u16, path in bytes(), share_type: u8, rest: (u32, u32, u32)) {
        let flags = tree_connect::RequestFlags(flags)
            .without(tree_connect::RequestFlags::EXTENSION_PRESENT);
        let request = tree_connect::Request { flags, path: Utf16(&path) };
        let sent = message(|bytes| request.encode(bytes));
        prop_assert_eq!(tree_connect::Request::decode(&sent), Ok(request));
        let response = tree_connect::Response {
            share_type: tree_connect::ShareType(share_type),
            share_flags: tree_connect::ShareFlags(rest.0),
            capabilities: tree_connect::ShareCapabilities(rest.1),
            maximal_access: AccessMask(rest.2),
        };
        let sent = message(|bytes| response.encode(bytes));
        prop_assert_eq!(tree_connect::Response::decode(&sent), Ok(response));
    }

    #[test]
    fn create_request(
        (oplock, level, access, attributes) in any::<(u8, u32, u32, u32)>(),
        (share, disposition, options) in any::<(u32, u32, u32)>(),
        (name, contexts) in (bytes(), create_contexts()),
    ) {
        let contexts = contexts.iter();
        let request = create::Request {
            oplock_level: OplockLevel(oplock),
            impersonation_level: ImpersonationLevel(level),
            desired_access: AccessMask(access),
            file_attributes: FileAttributes(attributes),
            share_access: ShareAccess(share),
            create_disposition: CreateDisposition(disposition),
            create_options: CreateOptions(options),
            name: Utf16(&name),
            contexts: contexts
                .map(|(name, data)| create_context::RawContext { name, data })
                .collect(),
        };
        let message = message(|bytes| request.encode(bytes));
        prop_assert_eq!(create::Request::decode(&message), Ok(request));
    }

    #[test]
    fn create_response(
        (oplock, flags, action, times) in any::<(u8, u8, u32, [u64; 4])>(),
        (allocation, end, attributes) in any::<(u64, u64, u32)>(),
        file_id in file_id(),
        contexts in create_contexts(),
    ) {
        let contexts = contexts.iter();
        let response = create::Response {
            oplock_level: OplockLevel(oplock),
            flags: create::ResponseFlags(flags),
            create_action: create::CreateAction(action),
            creation_time: FileTime(times[0]),
            last_access_time: FileTime(times[1]),
            last_write_time: FileTime(times[2]),
            change_time: FileTime(times[3]),
            allocation_size: allocation,
            end_of_file: end,
            file_attributes: FileAttributes(attributes),
            file_id,
            contexts: contexts
                .map(|(name, data)| create_context::RawContext { name, data })
                .collect(),
        };
        let message = message(|bytes| response.encode(bytes));
        prop_assert_eq!(create::Response::decode(&message), Ok(response));
    }

    #[test]
    fn lease((key, state, flags, epoch) in any::<([u8; 16], u32, u32, u16)>(), is_v2: bool) {
        let v2 = is_v2.then_some(LeaseV2 { parent_lease_key: Guid(key), epoch });
        let lease = Lease {
            lease_key: Guid(key),
            lease_state: LeaseState(state),
            lease_flags: LeaseFlags(flags),
            v2,
        };
        prop_assert_eq!(Lease::decode(&lease.encode()), Ok(lease));
    }

    #[test]
    fn read_and_write(
        (flags, length, offset, minimum) in any::<(u8, u32, u64, u32)>(),
        (channel, remaining, file_id) in (any::<u32>(), any::<u32>(), file_id()),
        (info, data) in (bytes(), bytes()),
    ) {
        // Without a channel, the channel info is empty.
        let info = if channel == 0 { Vec::new() } else { info };
        let request = read::Request {
            padding: read::DATA_OFFSET,
            flags: read::ReadFlags(flags),
            length,
            offset,
            file_id,
            minimum_count: minimum,
            channel: Channel(channel),
            remaining_bytes: remaining,
            channel_info: &info,
        };
        let sent = message(|bytes| request.encode(bytes));
        prop_assert_eq!(read::Request::decode(&sent), Ok(request));
        // The message does not contain data that RDMA transfers.
        let is_rdma = data.is_empty() && !info.is_empty();
        let data_offset = if is_rdma { 0 } else { write::HEAD_LEN + info.len() };
        let request = write::Request {
            offset,
            file_id,
            channel: Channel(channel),
            remaining_bytes: remaining,
            channel_info: &info,
            flags: write::WriteFlags(length),
            data_offset: u32::try_from(data_offset).expect("short"),
            data: &data,
        };
        let sent = message(|bytes| request.encode(bytes));
        prop_assert_eq!(write::Request::decode(&sent), Ok(request));
        prop_assert_eq!(&sent[request.data_range()], &data[..]);
    }

    #[test]
    fn lock(
        lock_sequence: u32,
        file_id in file_id(),
        locks in vec(any::<(u64, u64, u32)>(), 0..9),
    ) {
        let locks = locks.into_iter().map(|(offset, length, flags)| lock::LockElement {
            offset,
            length,
            flags: lock::LockFlags(flags),
        });
        let request = lock::Request { lock_sequence, file_id, locks: locks.collect() };
        let message = message(|bytes| request.encode(bytes));
        prop_assert_eq!(lock::Request::decode(&message), Ok(request));
    }

    #[test]
    fn ioctl(
        (code, max_input, max_output, flags) in any::<(u32, u32, u32, u32)>(),
        (file_id, input, output) in (file_id(), bytes(), bytes()),
    ) {
        let request = ioctl::Request {
            ctl_code: CtlCode(code),
            file_id,
            max_input_response: max_input,
            max_output_response: max_output,
            flags: ioctl::IoctlFlags(flags),
            input: &input,
            output: &[],
        };
        let sent = message(|bytes| request.encode(bytes));
        prop_assert_eq!(ioctl::Request::decode(&sent), Ok(request));
        let response = ioctl::Response {
            ctl_code: CtlCode(code),
            file_id,
            flags: ioctl::IoctlFlags(flags),
            input: &input,
            output: &output,
        };
        let sent = message(|bytes| response.encode(bytes));
        prop_assert_eq!(ioctl::Response::decode(&sent), Ok(response));
    }

    #[test]
    fn queries_and_changes(
        (class, flags, index, length) in any::<(u8, u8, u32, u32)>(),
        (file_id, buffer) in (file_id(), bytes()),
    ) {
        let request = query_directory::Request {
            file_information_class: class,
            flags: query_directory::QueryDirectoryFlags(flags),
            file_index: index,
            file_id,
            pattern: Utf16(&buffer),
            output_buffer_length: length,
        };
        let sent = message(|bytes| request.encode(bytes));
        prop_assert_eq!(query_directory::Request::decode(&sent), Ok(request));
        let request = query_info::Request {
            info_type: query_info::InfoType(flags),
            file_info_class: class,
            output_buffer_length: length,
            additional_information: index,
            flags: query_info::QueryInfoFlags(index),
            file_id,
            input: &buffer,
        };
        let sent = message(|bytes| request.encode(bytes));
        prop_assert_eq!(query_info::Request::decode(&sent), Ok(request));
        let request = set_info::Request {
            info_type: query_info::InfoType(flags),
            file_info_class: class,
            additional_information: index,
            file_id,
            buffer: &buffer,
        };
        let sent = message(|bytes| request.encode(bytes));
        prop_assert_eq!(set_info::Request::decode(&sent), Ok(request));
        let response = query_info::Response { output: &buffer };
        let sent = message(|bytes| response.encode(bytes));
        prop_assert_eq!(query_info::Response::decode(&sent), Ok(response));
    }

    #[test]
    fn errors(
        contexts in vec((any::<u32>(), bytes()), 0..4),
        names: (Vec<u8>, Vec<u8>),
        rest: (u16, u32),
    ) {
        let contexts = contexts.iter();
        let contexts: Vec<_> = contexts
            .map(|(id, data)| ErrorContext { error_id: ErrorId(*id), data })
            .collect();
        let response = error_response::Response {
            context_count: u8::try_from(contexts.len()).expect("few"),
            error_data: &error_response::encode_contexts(&contexts),
        };
        let sent = message(|bytes| response.encode(bytes));
        prop_assert_eq!(error_response::Response::decode(&sent), Ok(response));
        let (data, count) = (response.error_data, response.context_count);
        prop_assert_eq!(error_response::decode_contexts(data, count), Ok(contexts));
        let symlink = SymlinkError {
            unparsed_path_length: rest.0,
            flags: SymlinkFlags(rest.1),
            substitute_name: Utf16(&names.0),
            print_name: Utf16(&names.1),
        };
        let data = symlink.encode();
        prop_assert_eq!(SymlinkError::decode(&data), Ok(symlink));
    }

    #[test]
    fn transform_header(parts: ([u8; 16], [u8; 16], u32, u16, u64)) {
        let header = transform::Transform {
            signature: parts.0,
            nonce: parts.1,
            original_message_size: parts.2,
            flags: parts.3,
            session_id: smbeam_wire::SessionId(parts.4),
        };
        prop_assert_eq!(transform::Transform::decode(&header.encode()), Ok(header));
    }

    #[test]
    fn members_of_a_compound(bodies in vec(bytes(), 1..6)) {
        let count = bodies.len();
        let mut frame = Vec::new();
        let mut members = Vec::new();
        for (index, body) in bodies.into_iter().enumerate() {
            let mut member = vec![0; HEADER_LEN];
            member.extend(body);
            if index + 1 < count {
                link(&mut member);
            }
            frame.extend(&member);
            members.push(member);
        }
        let apart: Result<Vec<_>, _> = Members::new(&frame).collect();
        let expected: Vec<&[u8]> = members.iter().map(Vec::as_slice).collect();
        prop_assert_eq!(apart, Ok(expected));
    }
}
