//! A decoder returns a message or an error for any bytes, and its result is bounded.

mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use smbeam_wire::compound::Members;
use smbeam_wire::fsctl::{self, NetworkInterface};
use smbeam_wire::header::HEADER_LEN;
use smbeam_wire::{
    DecodeError, Header, cancel, change_notify, close, create, create_context, echo,
    error_response, flush, ioctl, lock, logoff, negotiate, negotiate_context, oplock_break, posix,
    query_directory, query_info, read, server_to_client_notification, session_setup, set_info,
    smb1, transform, tree_connect, tree_disconnect, write,
};
use support::Decoder;

/// Maps the name of a decoder to a StructureSize that it accepts.
macro_rules! table {
    ($($size:literal $decode:path,)*) => {
        [$((stringify!($decode), $size, (|message| $decode(message).map(|_| ())) as Decoder),)*]
    };
}

/// Every message decoder.
const MESSAGES: [(&str, u16, Decoder); 44] = table! {
    36 negotiate::Request::decode,
    65 negotiate::Response::decode,
    25 session_setup::Request::decode,
    9 session_setup::Response::decode,
    4 logoff::Request::decode,
    4 logoff::Response::decode,
    9 tree_connect::Request::decode,
    16 tree_connect::Response::decode,
    4 tree_disconnect::Request::decode,
    4 tree_disconnect::Response::decode,
    57 create::Request::decode,
    89 create::Response::decode,
    24 close::Request::decode,
    60 close::Response::decode,
    24 flush::Request::decode,
    4 flush::Response::decode,
    49 read::Request::decode,
    17 read::Response::decode,
    49 write::Request::decode,
    49 write::Head::decode,
    17 write::Response::decode,
    48 lock::Request::decode,
    4 lock::Response::decode,
    57 ioctl::Request::decode,
    49 ioctl::Response::decode,
    4 cancel::Request::decode,
    4 echo::Request::decode,
    4 echo::Response::decode,
    33 query_directory::Request::decode,
    9 query_directory::Response::decode,
    32 change_notify::Request::decode,
    9 change_notify::Response::decode,
    41 query_info::Request::decode,
    9 query_info::Response::decode,
    33 set_info::Request::decode,
    2 set_info::Response::decode,
    24 oplock_break::Notification::decode,
    44 oplock_break::Notification::decode,
    24 oplock_break::Request::decode,
    36 oplock_break::Request::decode,
    24 oplock_break::Response::decode,
    36 oplock_break::Response::decode,
    4 server_to_client_notification::Notification::decode,
    9 error_response::Response::decode,
};

/// Every decoder of other buffers; they have no StructureSize.
const BUFFERS: [(&str, u16, Decoder); 26] = table! {
    0 Header::decode,
    0 smb1::Negotiate::decode,
    0 transform::Transform::decode,
    0 create_context::decode_list,
    0 create_context::Lease::decode,
    0 create_context::MaximalAccessRequest::decode,
    0 create_context::MaximalAccessResponse::decode,
    0 create_context::OnDiskIdResponse::decode,
    0 create_context::DurableRequestV2::decode,
    0 create_context::DurableReconnectV2::decode,
    0 create_context::PosixRequest::decode,
    0 posix::PosixCreateResponse::decode,
    0 posix::FilePosixInformation::decode,
    0 posix::FsPosixInformation::decode,
    0 negotiate_context::PreauthIntegrity::decode,
    0 negotiate_context::Encryption::decode,
    0 negotiate_context::Compression::decode,
    0 negotiate_context::RdmaTransforms::decode,
    0 negotiate_context::Signing::decode,
    0 error_response::SymlinkError::decode,
    0 fsctl::ValidateNegotiateInfoRequest::decode,
    0 fsctl::ValidateNegotiateInfoResponse::decode,
    0 fsctl::CopyChunkRequest::decode,
    0 fsctl::CopyChunkResponse::decode,
    0 fsctl::AllocatedRange::decode_list,
    0 NetworkInterface::decode_list,
};

/// A message of zeros with this StructureSize.
fn zeros(structure_size: u16, body_len: usize) -> Vec<u8> {
    let mut message = vec![0; HEADER_LEN + body_len];
    message[HEADER_LEN..HEADER_LEN + 2].copy_from_slice(&structure_size.to_le_bytes());
    message
}

/// Length in bytes of the fixed part of a body.
fn fixed_len(name: &str, structure_size: u16) -> usize {
    match structure_size {
        // The StructureSize of a LOCK counts one range; a LOCK may have none.
        48 => 24,
        // The StructureSize of a server-to-client notification does not count its type.
        4 if name.ends_with("Notification::decode") => 8,
        // An odd StructureSize counts one byte of the variable part, which may be absent.
        size => usize::from(size & !1),
    }
}

#[test]
fn a_structure_size_that_is_off_by_one_is_refused() {
    for (name, size, decode) in MESSAGES {
        assert_eq!(decode(&zeros(size, 128)), Ok(()), "{name} takes {size}");
        for wrong in [size - 1, size + 1] {
            let result = decode(&zeros(wrong, 128));
            let is_refused = matches!(result, Err(DecodeError::StructureSize { .. }));
            assert!(is_refused, "{name} takes {wrong}");
        }
    }
}

#[test]
fn a_message_shorter_than_its_fixed_part_is_refused() {
    for (name, size, decode) in MESSAGES {
        let fixed = fixed_len(name, size);
        let message = zeros(size, fixed);
        assert_eq!(
            decode(&message),
            Ok(()),
            "{name} needs no more than {fixed} bytes"
        );
        for end in 0..message.len() {
            assert!(decode(&message[..end]).is_err(), "{name} takes {end} bytes");
        }
    }
}

/// Four bytes of all ones, at any offset, are an offset, a length or a count that overflows, or
/// have no effect. A decoder never panics, and never returns a slice outside the message.
#[test]
fn wrapping_offsets_and_lengths_never_panic() {
    for (_, size, decode) in MESSAGES {
        for first in (HEADER_LEN + 2..HEADER_LEN + 90).step_by(2) {
            for second in (first..HEADER_LEN + 90).step_by(2) {
                let mut message = zeros(size, 128);
                message[first..first + 2].fill(0xFF);
                message[second..second + 4].fill(0xFF);
                let _ = decode(&message);
            }
        }
    }
}

proptest! {
    #[test]
    fn any_body_never_panics(body in vec(any::<u8>(), 0..300)) {
        for (_, size, decode) in MESSAGES {
            let mut message = vec![0; HEADER_LEN];
            message.extend(size.to_le_bytes());
            message.extend(&body);
            let _ = decode(&message);
        }
    }

    #[test]
    fn any_buffer_never_panics(bytes in vec(any::<u8>(), 0..400)) {
        for (_, _, decode) in MESSAGES.iter().chain(&BUFFERS) {
            let _ = decode(&bytes);
        }
        let _ = transform::split(&mut bytes.clone());
        let count = bytes.first().copied().unwrap_or(0);
        let _ = error_response::decode_contexts(&bytes, count);
    }

    /// Small integers, so that offsets and lengths often point into the message.
    #[test]
    fn small_numbers_never_panic(bytes in vec(prop_oneof![3 => Just(0_u8), 1 => 0..160_u8], 400)) {
        for (_, size, decode) in MESSAGES {
            let mut message = bytes.clone();
            message[HEADER_LEN..HEADER_LEN + 2].copy_from_slice(&size.to_le_bytes());
            let _ = decode(&message);
        }
        for (_, _, decode) in BUFFERS {
            let _ = decode(&bytes);
        }
    }

    #[test]
    fn members_of_any_frame_are_slices_of_it(
        mut frame in vec(any::<u8>(), 0..600),
        next in vec(prop_oneof![Just(0_u32), (0..40_u32).prop_map(|n| n * 8), any::<u32>()], 8),
    ) {
        for (index, next) in next.iter().enumerate() {
            let at = index * 72 + 20;
            if at + 4 <= frame.len() {
                frame[at..at + 4].copy_from_slice(&next.to_le_bytes());
            }
        }
        let members: Vec<_> = Members::new(&frame).collect();
        prop_assert!(members.len() <= frame.len() / HEADER_LEN + 1);
        let whole = members.iter().flatten().all(|member| member.len() >= HEADER_LEN);
        prop_assert!(whole);
        let length: usize = members.iter().flatten().map(|member| member.len()).sum();
        let is_complete = members.iter().all(Result::is_ok);
        prop_assert_eq!(is_complete, length == frame.len());
    }
}
