//! Captured QUERY_INFO, SET_INFO, QUERY_DIRECTORY, CHANGE_NOTIFY and IOCTL messages decode and
//! encode to the same bytes.

mod support;

use smbeam_wire::dialect::{Capabilities, Dialect};
use smbeam_wire::fsctl::{
    AllocatedRange, CopyChunkRequest, CopyChunkResponse, CtlCode, InterfaceCapability,
    NetworkInterface, ObjectIdBuffer, ResumeKeyResponse, SocketAddress,
    ValidateNegotiateInfoRequest, ValidateNegotiateInfoResponse, ZeroData,
};
use smbeam_wire::query_info::{InfoType, SecurityInformation};
use smbeam_wire::{FileId, change_notify, ioctl, query_directory, query_info, set_info};
use support::{hex, message};

/// IOCTL VALIDATE NEGOTIATE INFO, of a 2.1 connection to Windows, from the test data of ruby_smb.
const IOCTL_VALIDATE_NEGOTIATE_INFO: &str = "\
    fe534d4240000100000000000b00010008000000000000000400000000000000fffe00000100000019000000\
    0004000037e7a996b56f566226e6fc6aec1204fd3900000004021400ffffffffffffffffffffffffffffffff\
    78000000200000000000000078000000000000001800000001000000000000007f000000ec1cb173f176e411\
    af9e000c293f25dc010003000202100200030000";

/// IOCTL PIPE TRANSCEIVE, a body from the test data of smb-rs.
const IOCTL_PIPE_TRANSCEIVE: &str = "\
    3900000017c01100280500000c000000850000000c0000007800000098000000000000000000000000000000\
    0004000001000000000000000500000310000000980000000300000080000000010039000000000013f8a58f\
    166fb54482c28f2dae140df50000000001000000000000000000020000000000010000000000000000000200\
    000000000500000000000000010500000000000515000000173da72e955653f915dff280e903000000000000\
    0000000000000000000000000000000001000000000000000000000002000000";

/// IOCTL PIPE TRANSCEIVE RESPONSE, a body from the test data of smb-rs.
const IOCTL_PIPE_TRANSCEIVE_RESPONSE: &str = "\
    3100000017c01100280500000c000000850000000c0000007000000000000000700000000401000000000000\
    0000000005000203100000000401000003000000ec0000000100000000000200000000000100000000000000\
    0000020000000000200000000000000001000000000000000c000e0000000000000002000000000000000200\
    00000000070000000000000000000000000000000600000000000000410056004900560056004d0000000000\
    0400000000000000010400000000000515000000173da72e955653f915dff280010000000000000000000200\
    00000000010000000000000001000000000000000a000c000000000000000200000000000000000000000000\
    06000000000000000000000000000000050000000000000061007600690076006e0000000100000000000000";

/// RESUME KEY, a body from the test data of smb-rs.
const RESUME_KEY: &str = "2d0300001c00000027116a2630d2db01fffe00000000000000000000";

/// COPYCHUNK, a body from the test data of smb-rs.
const COPYCHUNK: &str = "\
    2d0300001c00000027116a2630d2db01fffe0000000000000a00000000000000000000000000000000000000\
    0000000000001000000000000000100000000000000010000000000000001000000000000000200000000000\
    0000200000000000000010000000000000003000000000000000300000000000000010000000000000004000\
    0000000000004000000000000000100000000000000050000000000000005000000000000000100000000000\
    0000600000000000000060000000000000001000000000000000700000000000000070000000000000001000\
    0000000000008000000000000000800000000000000010000000000000009000000000000000900000000000\
    c8f30e0000000000";

/// ALLOCATED RANGES, a body from the test data of smb-rs.
const ALLOCATED_RANGES: &str = "\
    000000000000000000100000000000000020000000000000d1b6000000000000";

/// NETWORK INTERFACES, a body from the test data of smb-rs.
const NETWORK_INTERFACES: &str = "\
    9800000002000000020000000000000000ca9a3b0000000002000000ac10cc84000000000000000000000000\
    0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000\
    0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000\
    00000000000000000000000000000000000000000000000002000000020000000000000000ca9a3b00000000\
    1700000000000000fe80000000000000020c29fffe9f8bf30000000000000000000000000000000000000000\
    0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000\
    00000000000000000000000000000000000000000000000000000000000000000000000000000000";

/// QUERY DIRECTORY REQUEST, of a 2.1 connection to Windows, from the test data of ruby_smb.
const QUERY_DIRECTORY_REQUEST: &str = "\
    fe534d4240000100000000000e00811f0000000000000000df00000000000000000000000500000011000000\
    000400000000000000000000000000000000000021002500000000002d00000010000000dd000000ffffffff\
    60000200ffff00002a00";

/// QUERY INFO REQUEST, of a 2.1 connection to Windows, from the test data of ruby_smb.
const QUERY_INFO_REQUEST: &str = "\
    fe534d4240000100000000001000010000000000000000000600000000000000fffe00000100000019000000\
    0004000000000000000000000000000000000000290001051800000068000000000000000000000000000000\
    250000000000000001000000ffffffff";

/// QUERY INFO RESPONSE, of a 2.1 connection to Windows, from the test data of ruby_smb.
const QUERY_INFO_RESPONSE: &str = "\
    fe534d4240000100000000001000010001000000000000000600000000000000fffe00000100000019000000\
    0004000000000000000000000000000000000000090048001800000000100000000000000000000000000000\
    0100000001000000";

/// QUERY SECURITY REQUEST, a body from the test data of smb-rs.
const QUERY_SECURITY_REQUEST: &str = "\
    290003000000000068000000000000000f000000000000002b0000000d000000310000000d000000";

/// SET INFO REQUEST, a body from the test data of smb-rs.
const SET_INFO_REQUEST: &str = "\
    2100010a3a0000006000000000000000420000000e000000050010000e000000000000000000000000000000\
    0000000026000000680065006c006c006f005c006d0079004e0065007700460069006c0065002e0074007800\
    7400";

/// CHANGE NOTIFY REQUEST, a body from the test data of smb-rs.
const CHANGE_NOTIFY_REQUEST: &str = "\
    2000000000080000d10500000c000000190000000c0000001700000000000000";

/// CHANGE NOTIFY RESPONSE, a body from the test data of smb-rs.
const CHANGE_NOTIFY_RESPONSE: &str = "\
    09004800340000002000000004000000140000004e0065007700200066006f006c0064006500720000000000\
    05000000080000006a00640073006100";

#[test]
fn validate_negotiate_info() {
    let message = hex(IOCTL_VALIDATE_NEGOTIATE_INFO);
    let request = both_ways!(ioctl::Request::decode, message);
    assert_eq!(request.ctl_code, CtlCode::VALIDATE_NEGOTIATE_INFO);
    assert_eq!(request.file_id, FileId::RELATED);
    assert_eq!(request.flags, ioctl::IoctlFlags::IS_FSCTL);
    let info = ValidateNegotiateInfoRequest::decode(request.input).expect("captured");
    assert_eq!(info.capabilities, Capabilities(0x7F));
    assert_eq!(info.dialects, [0x0202, 0x0210, 0x0300].map(Dialect));
    // The captured client sends two bytes more than it counts.
    assert_eq!(info.encode(), request.input[..30]);
    let response = ValidateNegotiateInfoResponse {
        capabilities: info.capabilities,
        guid: info.guid,
        security_mode: info.security_mode,
        dialect: Dialect::SMB_3_0,
    };
    let output = response.encode();
    assert_eq!(output.len(), 24);
    assert_eq!(ValidateNegotiateInfoResponse::decode(&output), Ok(response));
}

#[test]
fn pipe_transceive() {
    let message = message(IOCTL_PIPE_TRANSCEIVE);
    let request = ioctl::Request::decode(&message).expect("captured");
    assert_eq!(request.ctl_code, CtlCode::PIPE_TRANSCEIVE);
    assert_eq!(
        (request.input.len(), request.max_output_response),
        (152, 1024)
    );
    let mut again = support::encoded(&message, |bytes| request.encode(bytes));
    // The captured client leaves OutputOffset at zero.
    again[100..104].fill(0);
    assert_eq!(again, message);
    let message = support::message(IOCTL_PIPE_TRANSCEIVE_RESPONSE);
    let response = both_ways!(ioctl::Response::decode, message);
    assert_eq!(response.output.len(), 260);
}

#[test]
fn server_side_copies() {
    let output = hex(RESUME_KEY);
    let key = ResumeKeyResponse::decode(&output).expect("captured");
    // The captured server sends no Context; Windows sends four bytes of one.
    assert_eq!(key.encode(), [output, vec![0; 4]].concat());
    let input = hex(COPYCHUNK);
    let request = CopyChunkRequest::decode(&input).expect("captured");
    assert_eq!(request.source_key, key.resume_key);
    assert_eq!(request.chunks.len(), 10);
    assert_eq!(request.chunks[9].target_offset, 9 << 20);
    assert_eq!(request.encode(), input);
    let output = hex("0a00000000000000c8f39e00");
    let response = CopyChunkResponse::decode(&output).expect("captured");
    assert_eq!(response.total_bytes_written, 10_417_096);
    assert_eq!(response.encode(), output);
}

#[test]
fn object_ids() {
    let output: Vec<u8> = (0..64).collect();
    let ids = ObjectIdBuffer::decode(&output).expect("four ids");
    assert_eq!(ids.birth_object_id.0[0], 32);
    assert_eq!(ids.encode(), output);
    assert!(ObjectIdBuffer::decode(&output[..63]).is_err());
}

#[test]
fn ranges_of_sparse_files() {
    let output = hex(ALLOCATED_RANGES);
    let ranges = AllocatedRange::decode_list(&output).expect("captured");
    assert_eq!((ranges[1].file_offset, ranges[1].length), (8192, 46_801));
    let mut again = Vec::new();
    ranges.iter().for_each(|range| range.encode(&mut again));
    assert_eq!(again, output);
    let zero = ZeroData {
        file_offset: 4096,
        beyond_final_zero: 8192,
    };
    assert_eq!(ZeroData::decode(&zero.encode()), Ok(zero));
}

#[test]
fn network_interfaces() {
    let output = hex(NETWORK_INTERFACES);
    let interfaces = NetworkInterface::decode_list(&output).expect("captured");
    let [v4, v6] = interfaces[..] else {
        panic!("two interfaces were captured");
    };
    assert_eq!(v4.address, SocketAddress::V4([172, 16, 204, 132]));
    assert_eq!(v4.capability, InterfaceCapability::RDMA_CAPABLE);
    assert_eq!(v4.link_speed, 1_000_000_000);
    assert!(matches!(v6.address, SocketAddress::V6([0xFE, 0x80, ..])));
    assert_eq!(NetworkInterface::encode_list(&interfaces), output);
}

#[test]
fn query_directory() {
    let message = hex(QUERY_DIRECTORY_REQUEST);
    let request = both_ways!(query_directory::Request::decode, message);
    assert_eq!(request.file_information_class, 0x25);
    assert_eq!(request.pattern.decode().as_deref(), Some("*"));
    assert_eq!(request.output_buffer_length, 0xFFFF);
}

#[test]
fn query_info() {
    let message = hex(QUERY_INFO_REQUEST);
    let request = both_ways!(query_info::Request::decode, message);
    assert_eq!(
        (request.info_type, request.file_info_class),
        (InfoType::FILE, 5)
    );
    assert_eq!(request.output_buffer_length, 24);
    assert!(request.input.is_empty());
    let message = hex(QUERY_INFO_RESPONSE);
    let response = both_ways!(query_info::Response::decode, message);
    assert_eq!(response.output.len(), 24);
    let message = support::message(QUERY_SECURITY_REQUEST);
    let request = both_ways!(query_info::Request::decode, message);
    assert_eq!(request.info_type, InfoType::SECURITY);
    let all = SecurityInformation(request.additional_information);
    assert!(all.contains(SecurityInformation::SACL));
}

#[test]
fn set_info() {
    let message = message(SET_INFO_REQUEST);
    let request = both_ways!(set_info::Request::decode, message);
    assert_eq!(
        (request.info_type, request.file_info_class),
        (InfoType::FILE, 10)
    );
    assert_eq!(request.buffer.len(), 58);
    let message = support::message("0200");
    both_ways!(set_info::Response::decode, message);
}

#[test]
fn change_notify() {
    let message = message(CHANGE_NOTIFY_REQUEST);
    let request = both_ways!(change_notify::Request::decode, message);
    assert_eq!(request.output_buffer_length, 2048);
    assert_eq!(
        request.completion_filter,
        change_notify::CompletionFilter(0x17)
    );
    let message = support::message(CHANGE_NOTIFY_RESPONSE);
    let response = both_ways!(change_notify::Response::decode, message);
    assert_eq!(response.output.len(), 52);
}
