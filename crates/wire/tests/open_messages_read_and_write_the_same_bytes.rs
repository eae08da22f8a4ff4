//! Captured messages about an open decode and encode to the same bytes.

mod support;

use smbeam_wire::access::{
    AccessMask, CreateDisposition, CreateOptions, FileAttributes, OplockLevel, ShareAccess,
};
use smbeam_wire::create_context::{
    self, AllocationSize, DurableFlags, DurableReconnect, DurableReconnectV2, DurableRequestV2,
    DurableResponseV2, Lease, LeaseFlags, LeaseState, MaximalAccessRequest, MaximalAccessResponse,
    OnDiskIdResponse, PosixRequest, RawContext, Timewarp, name,
};
use smbeam_wire::oplock_break::{LeaseBreakFlags, Notification};
use smbeam_wire::{
    FileId, Status, close, create, flush, lock, oplock_break, read, server_to_client_notification,
    write,
};
use support::{encoded, hex, message};

/// CREATE REQUEST, of a 2.1 connection to Windows, from the test data of ruby_smb.
const CREATE_REQUEST: &str = "\
    fe534d4240000100000000000500010000000000000000000500000000000000fffe00000100000019000000\
    0004000000000000000000000000000000000000390000000200000000000000000000000000000000000000\
    9f0112000000000007000000010000004000400078000c000000000000000000730072007600730076006300";

/// CREATE RESPONSE, of a 2.1 connection to Windows, from the test data of ruby_smb.
const CREATE_RESPONSE: &str = "\
    fe534d4240000100000000000500010001000000000000000500000000000000fffe00000100000019000000\
    0004000000000000000000000000000000000000590000000100000000000000000000000000000000000000\
    0000000000000000000000000000000000100000000000000000000000000000800000007600730025000000\
    0000000001000000ffffffff0000000000000000";

/// CREATE REQUEST WITH CONTEXTS, a body from the test data of smb-rs.
const CREATE_REQUEST_WITH_CONTEXTS: &str = "\
    3900000002000000000000000000000000000000000000008100100000000000070000000100000020000200\
    78000a008800000068000000680065006c006c006f0000000000000038000000100004000000180020000000\
    44483251000000000000000000000000000000000000000020a379c6a0c0ef118b7b000c2980168218000000\
    1000040000001800000000004d78416300000000000000001000040000001800000000005146696400000000";

/// CREATE RESPONSE WITH CONTEXTS, a body from the test data of smb-rs.
const CREATE_RESPONSE_WITH_CONTEXTS: &str = "\
    59000000010000003c083896ae4bdb01c8554b706b58db01620ccdc1c84bdb01620ccdc1c84bdb0100000000\
    0000000000000000000000001000000000000000490100000c000000090000000c0000009800000058000000\
    200000001000040000001800080000004d7841630000000000000000ff011f00000000001000040000001800\
    2000000051466964000000002ae7010000000400d9cf17b00000000000000000000000000000000000000000";

/// CLOSE REQUEST, of a 2.1 connection to Windows, from the test data of ruby_smb.
const CLOSE_REQUEST: &str = "\
    fe534d4240000100000000000600010000000000000000000a00000000000000fffe00000100000019000000\
    00040000000000000000000000000000000000001800000000000000250000000000000001000000ffffffff";

/// CLOSE RESPONSE, of a 2.1 connection to Windows, from the test data of ruby_smb.
const CLOSE_RESPONSE: &str = "\
    fe534d4240000100000000000600010001000000000000001d00000000000000fffe00000100000029000000\
    00040000000000000000000000000000000000003c0000000000000000000000000000000000000000000000\
    000000000000000000000000000000000000000000000000000000000000000000000000";

/// FLUSH REQUEST, a body from the test data of smb-rs.
const FLUSH_REQUEST: &str = "1800000000000000140400000c000000510010000c000000";

/// READ REQUEST, of a 2.1 connection to Windows, from the test data of ruby_smb.
const READ_REQUEST: &str = "\
    fe534d4240000100000000000800010000000000000000000800000000000000fffe00000100000019000000\
    0004000000000000000000000000000000000000310050000004000000000000000000002500000000000000\
    01000000ffffffff0000000000000000000000000000000000";

/// READ RESPONSE, of a 2.1 connection to Windows, from the test data of ruby_smb.
const READ_RESPONSE: &str = "\
    fe534d4240000100000000000800010001000000000000000800000000000000fffe00000100000019000000\
    0004000000000000000000000000000000000000110050005c000000000000000000000005000c0310000000\
    5c00000002000000b810b8104a1e00000d005c504950455c73727673766300000200000000000000045d888a\
    eb1cc9119fe808002b10486002000000030003000000000000000000000000000000000000000000";

/// WRITE REQUEST, of a 2.1 connection to Windows, from the test data of ruby_smb.
const WRITE_REQUEST: &str = "\
    fe534d4240000100000000000900010000000000000000000700000000000000fffe00000100000019000000\
    0004000000000000000000000000000000000000310070007400000000000000000000002500000000000000\
    01000000ffffffff0000000000000000000000000000000005000b03100000007400000002000000b810b810\
    000000000200000000000100c84f324b7016d30112785a47bf6ee18803000000045d888aeb1cc9119fe80800\
    2b1048600200000001000100c84f324b7016d30112785a47bf6ee188030000002c1cb76c1298404503000000\
    0000000001000000";

/// WRITE RESPONSE, of a 2.1 connection to Windows, from the test data of ruby_smb.
const WRITE_RESPONSE: &str = "\
    fe534d4240000100000000000900010001000000000000000700000000000000fffe00000100000019000000\
    000400000000000000000000000000000000000011000000740000000000000000000000";

/// LEASE BREAK, a body from the test data of smb-rs.
const LEASE_BREAK: &str = "\
    2c000200010000009e61c8705d165e31d492a01b0cbb3af20300000000000000000000000000000000000000";

/// LEASE BREAK ACKNOWLEDGEMENT, a body from the test data of smb-rs.
const LEASE_BREAK_ACKNOWLEDGEMENT: &str = "\
    24000000000000009e61c8705d165e31d492a01b0cbb3af2000000000000000000000000";

/// LEASE V2, a body from the test data of smb-rs.
const LEASE_V2: &str = "\
    d88f9db64b184d7ca35940c8a53cd2b703000000040000000000000000000000a38e152ddb5549f79cd10954\
    96a0662700000000";

/// DURABLE RECONNECT V2, a body from the test data of smb-rs.
const DURABLE_RECONNECT_V2: &str = "\
    b300000008000000dd000000080000008c423ea2ac1b437e845191f9f2277a9500000000";

const OPEN: FileId = FileId {
    persistent: 0x25,
    volatile: 0xFFFF_FFFF_0000_0001,
};

#[test]
fn create_request() {
    let message = hex(CREATE_REQUEST);
    let request = both_ways!(create::Request::decode, message);
    assert_eq!(request.name.decode().as_deref(), Some("srvsvc"));
    assert_eq!(request.desired_access, AccessMask(0x0012_019F));
    assert_eq!(request.share_access, ShareAccess(7));
    assert_eq!(request.create_disposition, CreateDisposition::OPEN);
    let options = CreateOptions::NON_DIRECTORY_FILE | CreateOptions::OPEN_NO_RECALL;
    assert_eq!(request.create_options, options);
    assert!(request.contexts.is_empty());
}

#[test]
fn create_response() {
    let mut message = hex(CREATE_RESPONSE);
    let response = create::Response::decode(&message).expect("captured");
    assert_eq!(response.file_id, OPEN);
    assert_eq!(response.create_action, create::CreateAction::OPENED);
    assert_eq!(response.allocation_size, 4096);
    let again = encoded(&message, |bytes| response.encode(bytes));
    // Windows leaves stale bytes in Reserved2.
    message[124..128].fill(0);
    assert_eq!(again, message);
}

#[test]
fn create_request_with_contexts() {
    let message = message(CREATE_REQUEST_WITH_CONTEXTS);
    let request = both_ways!(create::Request::decode, message);
    assert_eq!(request.name.decode().as_deref(), Some("hello"));
    let names = request.contexts.iter().map(|context| context.name);
    let expected = [
        name::DURABLE_REQUEST_V2,
        name::MAXIMAL_ACCESS,
        name::ON_DISK_ID,
    ];
    assert!(names.eq(expected));
    let data = create_context::find(&request.contexts, name::DURABLE_REQUEST_V2);
    let durable = DurableRequestV2::decode(data.expect("captured")).expect("captured");
    assert_eq!(durable.flags, DurableFlags::NONE);
    assert_eq!(Some(&durable.encode()[..]), data);
    let data = create_context::find(&request.contexts, name::MAXIMAL_ACCESS).expect("captured");
    let maximal = MaximalAccessRequest::decode(data).expect("captured");
    assert_eq!(maximal.timestamp, None);
}

#[test]
fn create_response_with_contexts() {
    let message = message(CREATE_RESPONSE_WITH_CONTEXTS);
    let response = both_ways!(create::Response::decode, message);
    assert_eq!(response.file_attributes, FileAttributes::DIRECTORY);
    let [maximal, on_disk] = response.contexts[..] else {
        panic!("two contexts were captured");
    };
    let access = MaximalAccessResponse::decode(maximal.data).expect("captured");
    assert_eq!(access.query_status, Status::SUCCESS);
    assert_eq!(access.maximal_access, AccessMask(0x001F_01FF));
    assert_eq!(access.encode(), maximal.data);
    let id = OnDiskIdResponse::decode(on_disk.data).expect("captured");
    assert_eq!(id.disk_file_id, 0x0004_0000_0001_E72A);
    assert_eq!(id.encode(), on_disk.data);
}

#[test]
fn leases() {
    let data = hex(LEASE_V2);
    let lease = Lease::decode(&data).expect("captured");
    let state = LeaseState::READ_CACHING | LeaseState::HANDLE_CACHING;
    assert_eq!(lease.lease_state, state);
    assert_eq!(lease.lease_flags, LeaseFlags::PARENT_LEASE_KEY_SET);
    assert_eq!(lease.v2.map(|v2| v2.epoch), Some(0));
    assert_eq!(lease.encode(), data);
    let v1 = Lease { v2: None, ..lease };
    assert_eq!(Lease::decode(&v1.encode()), Ok(v1));
    assert!(
        Lease::decode(&data[..40]).is_err(),
        "no version has 40 bytes"
    );
}

#[test]
fn durable_opens() {
    let data = hex(DURABLE_RECONNECT_V2);
    let reconnect = DurableReconnectV2::decode(&data).expect("captured");
    assert_eq!(reconnect.file_id.persistent, 0x0000_0008_0000_00B3);
    assert_eq!(reconnect.encode(), data);
    let data = hex("20bf020000000000");
    let response = DurableResponseV2::decode(&data).expect("captured");
    assert_eq!(response.timeout_ms, 180_000);
    assert_eq!(response.encode(), data);
    let reconnect = DurableReconnect { file_id: OPEN };
    assert_eq!(DurableReconnect::decode(&reconnect.encode()), Ok(reconnect));
}

#[test]
fn small_contexts() {
    let data = hex("00c0d4f0feeb0000");
    let size = AllocationSize::decode(&data).expect("captured");
    assert_eq!(size.allocation_size, 0xEBFE_F0D4_C000);
    assert_eq!(size.encode(), data);
    let data = hex("048fa10d516bdb01");
    let timewarp = Timewarp::decode(&data).expect("captured");
    assert_eq!(timewarp.encode(), data);
    let mode = PosixRequest { mode: 0o644 };
    assert_eq!(PosixRequest::decode(&mode.encode()), Ok(mode));
    for length in [0, 3, 5] {
        assert!(PosixRequest::decode(&[0; 5][..length]).is_err());
    }
}

#[test]
fn close() {
    let message = hex(CLOSE_REQUEST);
    let request = both_ways!(close::Request::decode, message);
    assert_eq!(request.file_id, OPEN);
    let message = hex(CLOSE_RESPONSE);
    let response = both_ways!(close::Response::decode, message);
    assert_eq!(response, close::Response::default());
}

#[test]
fn flush() {
    let message = message(FLUSH_REQUEST);
    let request = both_ways!(flush::Request::decode, message);
    assert_eq!(request.file_id.persistent, 0x0000_000C_0000_0414);
    let message = support::message("04000000");
    both_ways!(flush::Response::decode, message);
}

#[test]
fn read() {
    let message = hex(READ_REQUEST);
    let request = both_ways!(read::Request::decode, message);
    assert_eq!((request.length, request.offset), (1024, 0));
    assert_eq!(request.file_id, OPEN);
    let message = hex(READ_RESPONSE);
    let (response, data) = read::Response::decode(&message).expect("captured");
    assert_eq!(response.data_offset, read::DATA_OFFSET);
    assert_eq!(data.len(), 0x5C);
    let length = u32::try_from(data.len()).expect("short");
    let mut again = encoded(&message, |bytes| response.encode_head(length, bytes));
    again.extend(data);
    assert_eq!(again, message);
}

#[test]
fn write() {
    let message = hex(WRITE_REQUEST);
    let request = both_ways!(write::Request::decode, message);
    assert_eq!(request.data.len(), 0x74);
    assert_eq!(&message[request.data_range()], request.data);
    let head = write::Head::decode(&message[..write::HEAD_LEN]).expect("the head is whole");
    assert_eq!(
        (u32::from(head.data_offset), head.length),
        (request.data_offset, 0x74)
    );
    let message = hex(WRITE_RESPONSE);
    let response = both_ways!(write::Response::decode, message);
    assert_eq!(response.count, 0x74);
}

/// Written by hand from the tables of [MS-SMB2] 2.2.26.
#[test]
fn lock() {
    let message = message(
        "30000200210000002500000000000000\
         01000000ffffffff00010000000000000002000000000000\
         1200000000000000ffffffffffffff7f0100000000000000\
         0400000000000000",
    );
    let request = both_ways!(lock::Request::decode, message);
    assert_eq!(request.lock_sequence_number(), 1);
    assert_eq!(request.lock_sequence_index(), 2);
    let [first, second] = request.locks[..] else {
        panic!("two ranges");
    };
    assert_eq!((first.offset, first.length), (256, 512));
    let exclusive = lock::LockFlags::EXCLUSIVE_LOCK | lock::LockFlags::FAIL_IMMEDIATELY;
    assert_eq!(first.flags, exclusive);
    assert_eq!(second.flags, lock::LockFlags::UNLOCK);
    let message = support::message("04000000");
    both_ways!(lock::Response::decode, message);
}

#[test]
fn lease_break() {
    let message = message(LEASE_BREAK);
    let Notification::Lease(lease) = both_ways!(Notification::decode, message) else {
        panic!("a lease was captured");
    };
    assert_eq!(lease.new_epoch, 2);
    assert_eq!(lease.flags, LeaseBreakFlags::ACK_REQUIRED);
    assert_eq!(lease.current_lease_state, LeaseState(3));
    let message = support::message(LEASE_BREAK_ACKNOWLEDGEMENT);
    let request = both_ways!(oplock_break::Request::decode, message);
    assert!(matches!(request, oplock_break::Request::Lease(ack) if ack.lease_state.is_empty()));
    both_ways!(oplock_break::Response::decode, message);
}

/// Written by hand from the tables of [MS-SMB2] 2.2.23.1 and 2.2.44.
#[test]
fn oplock_break_and_closed_session() {
    let message = message("1800010000000000250000000000000001000000ffffffff");
    let expected = oplock_break::OplockBreak {
        oplock_level: OplockLevel::II,
        file_id: OPEN,
    };
    let notification = both_ways!(Notification::decode, message);
    assert_eq!(notification, Notification::Oplock(expected));
    both_ways!(oplock_break::Request::decode, message);
    both_ways!(oplock_break::Response::decode, message);
    let message = support::message("040000000000000000000000");
    both_ways!(server_to_client_notification::Notification::decode, message);
}

/// Chains that smbtorture smb2.create.blob sends, and chains with offsets out of bounds.
#[test]
fn broken_chains_of_contexts_are_refused() {
    let contexts = [(&b"MxAc"[..], &[][..]), (b"AlSi", &[1; 8])];
    let contexts = contexts.map(|(name, data)| RawContext { name, data });
    let list = create_context::encode_list(&contexts);
    assert_eq!(
        create_context::decode_list(&list).as_deref(),
        Ok(&contexts[..])
    );
    for next in [1_u32, 8, 15, 17, 20, 0x1000, u32::MAX, u32::MAX - 7] {
        let mut list = list.clone();
        list[..4].copy_from_slice(&next.to_le_bytes());
        assert!(
            create_context::decode_list(&list).is_err(),
            "Next is {next}"
        );
    }
    for name_length in 0..4 {
        let mut list = list.clone();
        list[6] = name_length;
        assert!(
            create_context::decode_list(&list).is_err(),
            "NameLength is {name_length}"
        );
    }
    let many = [contexts[0]; create_context::MAX_CONTEXTS + 1];
    let list = create_context::encode_list(&many);
    assert!(
        create_context::decode_list(&list).is_err(),
        "too many contexts"
    );
}
