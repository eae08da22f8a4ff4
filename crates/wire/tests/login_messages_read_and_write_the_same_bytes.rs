//! Captured NEGOTIATE, SESSION_SETUP and TREE_CONNECT messages decode and encode to the same bytes.

mod support;

use smbeam_wire::access::AccessMask;
use smbeam_wire::dialect::{Capabilities, Dialect, SecurityMode};
use smbeam_wire::negotiate_context::{
    Cipher, Compression, CompressionAlgorithm, CompressionFlags, ContextType, Encryption,
    HashAlgorithm, NetName, PreauthIntegrity, RdmaTransform, RdmaTransforms, Signing,
    SigningAlgorithm,
};
use smbeam_wire::tree_connect::{ShareFlags, ShareType};
use smbeam_wire::{
    FileTime, Header, cancel, echo, error_response, logoff, negotiate, session_setup, smb1,
    transform, tree_connect, tree_disconnect,
};
use support::{encoded, hex, message};

/// NEGOTIATE REQUEST, a body from the test data of smb-rs.
const NEGOTIATE_REQUEST: &str = "\
    2400050001000000ff000000df0d2ec1dd43f0118b87000c2980168270000000060000000202100200030203\
    110300000100260000000000010020000100ed006c304e332890b2bd98617b5ad9ef075994154673696280ff\
    cc0f1291a15d000002000a000000000004000200010004000300000000000000030012000000000005000000\
    0100000004000200030001000500000000000000080008000000000003000200010000000500120000000000\
    6c006f00630061006c0068006f007300740000000000000007000c0000000000020000000000000001000200";

/// NEGOTIATE RESPONSE, a body from the test data of smb-rs.
const NEGOTIATE_RESPONSE: &str = "\
    4100010011030500b921f8e01507aa41be3867febf5e2e112f000000000080000000800000008000a876d878\
    c569db01000000000000000080002a00b0000000602806062b0601050502a01e301ca01a3018060a2b060104\
    01823702021e060a2b06010401823702020a0000000000000100260000000000010020000100d5671b24a1e9\
    ccc893f5555a3103435a852bc3cb1ad32dc51f92806ef3fb4dd4000002000400000000000100020000000000\
    0800040000000000010002000000000007000c00000000000200000000000000010002000000000003000c00\
    00000000020000000100000002000400";

/// NEGOTIATE RESPONSE 2 1, of a 2.1 connection to Windows, from the test data of ruby_smb.
const NEGOTIATE_RESPONSE_2_1: &str = "\
    fe534d4240000100000000000000010001000000000000000000000000000000fffe00000000000000000000\
    000000000000000000000000000000000000000041000100100200007daab8d583aa1e49b86c7888fd767190\
    0700000000001000000010000000100047729403eb0dd001ff33b7b3900dd00180002a000000000060280606\
    2b0601050502a01e301ca01a3018060a2b06010401823702021e060a2b06010401823702020a";

/// SESSION SETUP REQUEST, of a 2.1 connection to Windows, from the test data of ruby_smb.
const SESSION_SETUP_REQUEST: &str = "\
    fe534d4240000100000000000100010000000000000000000200000000000000fffe00000000000019000000\
    0004000000000000000000000000000000000000190000010100000000000000580035021500000000040000\
    a18202313082022da0030a0101a28202100482020c4e544c4d5353500003000000180018009c000000480148\
    01b40000000c000c00580000001a001a00640000001e001e007e00000010001000fc010000158288e20602f0\
    230000000f25bb5008dc2ffa313d8ef33408465f0b570069006e00380033003200610064006d0069006e0069\
    00730074007200610074006f007200570049004e002d0056005600460037004b00470055004b005500480043\
    000000000000000000000000000000000000000000000000003f1e4a5ed999c09744eeb6f853851326010100\
    0000000000a7d39603eb0dd0010b1dbc978d02a2b10000000002001e00570049004e002d00420035004a004e\
    00330052004800470046003300310001001e00570049004e002d00420035004a004e00330052004800470046\
    003300310004001e00570049004e002d00420035004a004e00330052004800470046003300310003001e0057\
    0049004e002d00420035004a004e00330052004800470046003300310007000800a7d39603eb0dd001060004\
    000200000008003000300000000000000001000000002000004956bb4033960496bb15b2ebd2e0f25e992194\
    fcb42743a87ba38d35549cb0670a001000000000000000000000000000000000000900280063006900660073\
    002f003100390032002e003100360038002e003100300030002e003100340030000000000000000000000000\
    0058f00941bcb767e7550260646782b705a31204100100000060c61445d947bec400000000";

/// SESSION SETUP RESPONSE, of a 2.1 connection to Windows, from the test data of ruby_smb.
const SESSION_SETUP_RESPONSE: &str = "\
    fe534d4240000100160000c001001f0001000000000000000100000000000000fffe00000000000019000000\
    00040000000000000000000000000000000000000900000048000f01a182010b30820107a0030a0101a10c06\
    0a2b06010401823702020aa281f10481ee4e544c4d53535000020000001e001e003800000015828ae2514401\
    67941b1aaa000000000000000098009800560000000601b11d0000000f570049004e002d00420035004a004e\
    00330052004800470046003300310002001e00570049004e002d00420035004a004e00330052004800470046\
    003300310001001e00570049004e002d00420035004a004e00330052004800470046003300310004001e0057\
    0049004e002d00420035004a004e00330052004800470046003300310003001e00570049004e002d00420035\
    004a004e00330052004800470046003300310007000800a7d39603eb0dd00100000000";

/// TREE CONNECT REQUEST, of a 2.1 connection to Windows, from the test data of ruby_smb.
const TREE_CONNECT_REQUEST: &str = "\
    fe534d4240000100000000000300010000000000000000000300000000000000fffe00000000000019000000\
    00040000000000000000000000000000000000000900000048002c005c005c003100390032002e0031003600\
    38002e003100300030002e003100340030005c004900500043002400";

/// TREE CONNECT RESPONSE, of a 2.1 connection to Windows, from the test data of ruby_smb.
const TREE_CONNECT_RESPONSE: &str = "\
    fe534d4240000100000000000300010001000000000000000300000000000000fffe00000100000019000000\
    0004000000000000000000000000000000000000100002003000000000000000ff011f01";

/// TRANSFORM, a body from the test data of smb-rs.
const TRANSFORM: &str = "\
    fd534d42922ee8f2a06e7ad47022d71d0b026b110a5767556da0237301000000000000006800000000000100\
    5500002400300000";

/// SMB1 NEGOTIATE with "NT LM 0.12", "SMB 2.002" and "SMB 2.???", written by hand from the tables
/// of [MS-CIFS] 2.2.3.1 and 2.2.4.52.1.
const SMB1_NEGOTIATE: &str = "\
    ff534d4272000000001853c8000000000000000000000000fffffffe0000000000220002\
    4e54204c4d20302e31320002534d4220322e3030320002534d4220322e3f3f3f00";

#[test]
fn negotiate_request_with_all_contexts() {
    let message = message(NEGOTIATE_REQUEST);
    let request = negotiate::Request::decode(&message).expect("captured");
    let dialects = [0x0202, 0x0210, 0x0300, 0x0302, 0x0311].map(Dialect);
    assert_eq!(request.dialects, dialects);
    assert_eq!(request.security_mode, SecurityMode::SIGNING_ENABLED);
    assert_eq!(request.capabilities, Capabilities(0xFF));
    let [preauth, ciphers, compression, signing, name, rdma] = request.contexts[..] else {
        panic!("six contexts were captured");
    };
    let preauth = PreauthIntegrity::decode(preauth.data).expect("captured");
    assert_eq!(preauth.hash_algorithms, [HashAlgorithm::SHA_512]);
    assert_eq!(preauth.salt.len(), 32);
    let ciphers = Encryption::decode(ciphers.data).expect("captured").ciphers;
    assert_eq!(ciphers, [2, 1, 4, 3].map(Cipher));
    let compression = Compression::decode(compression.data).expect("captured");
    assert_eq!(compression.flags, CompressionFlags::CHAINED);
    assert_eq!(
        compression.algorithms,
        [4, 2, 3, 1, 5].map(CompressionAlgorithm)
    );
    let signing = Signing::decode(signing.data).expect("captured").algorithms;
    assert_eq!(signing, [2, 1, 0].map(SigningAlgorithm));
    let NetName(name) = NetName::decode(name.data);
    assert_eq!(name.decode().as_deref(), Some("localhost"));
    let rdma = RdmaTransforms::decode(rdma.data)
        .expect("captured")
        .transforms;
    assert_eq!(rdma, [RdmaTransform::ENCRYPTION, RdmaTransform::SIGNING]);
    assert_eq!(encoded(&message, |bytes| request.encode(bytes)), message);
}

#[test]
fn the_data_of_negotiate_contexts_survive_the_round_trip() {
    let message = message(NEGOTIATE_REQUEST);
    let request = negotiate::Request::decode(&message).expect("captured");
    for context in request.contexts {
        let data = context.data;
        let again = match context.context_type {
            ContextType::PREAUTH_INTEGRITY_CAPABILITIES => {
                PreauthIntegrity::decode(data).map(|context| context.encode())
            }
            ContextType::ENCRYPTION_CAPABILITIES => {
                Encryption::decode(data).map(|context| context.encode())
            }
            ContextType::COMPRESSION_CAPABILITIES => {
                Compression::decode(data).map(|context| context.encode())
            }
            ContextType::SIGNING_CAPABILITIES => {
                Signing::decode(data).map(|context| context.encode())
            }
            ContextType::NETNAME_NEGOTIATE_CONTEXT_ID => Ok(NetName::decode(data).encode()),
            ContextType::RDMA_TRANSFORM_CAPABILITIES => {
                RdmaTransforms::decode(data).map(|context| context.encode())
            }
            other => panic!("{other:?} was not captured"),
        };
        assert_eq!(again.as_deref(), Ok(data));
    }
}

#[test]
fn negotiate_response() {
    let message = message(NEGOTIATE_RESPONSE);
    let response = both_ways!(negotiate::Response::decode, message);
    assert_eq!(response.dialect, Dialect::SMB_3_1_1);
    assert_eq!(response.max_read_size, 8 << 20);
    assert_eq!(response.server_start_time, FileTime::OMIT);
    assert_eq!(response.security_buffer.len(), 42);
    assert_eq!(response.contexts.len(), 5);
}

#[test]
fn negotiate_response_without_contexts() {
    let mut message = hex(NEGOTIATE_RESPONSE_2_1);
    let response = negotiate::Response::decode(&message).expect("captured");
    assert_eq!(response.dialect, Dialect::SMB_2_1);
    assert_eq!(response.max_write_size, 1 << 20);
    assert!(response.contexts.is_empty());
    let again = encoded(&message, |bytes| response.encode(bytes));
    // Windows leaves stale bytes in Reserved2, which is NegotiateContextOffset in 3.1.1.
    message[124..128].fill(0);
    assert_eq!(again, message);
}

#[test]
fn session_setup() {
    let message = hex(SESSION_SETUP_REQUEST);
    let request = both_ways!(session_setup::Request::decode, message);
    assert_eq!(request.security_mode, SecurityMode::SIGNING_ENABLED);
    assert_eq!(request.security_buffer.len(), 0x235);
    let message = hex(SESSION_SETUP_RESPONSE);
    let header = Header::decode(&message).expect("captured");
    assert_eq!(header.status, smbeam_wire::Status::MORE_PROCESSING_REQUIRED);
    let response = both_ways!(session_setup::Response::decode, message);
    assert!(response.flags.is_empty());
    assert_eq!(response.security_buffer.len(), 0x10F);
}

#[test]
fn tree_connect() {
    let message = hex(TREE_CONNECT_REQUEST);
    let request = both_ways!(tree_connect::Request::decode, message);
    let path = request.path.decode();
    assert_eq!(path.as_deref(), Some(r"\\192.168.100.140\IPC$"));
    let message = hex(TREE_CONNECT_RESPONSE);
    let response = both_ways!(tree_connect::Response::decode, message);
    assert_eq!(response.share_type, ShareType::PIPE);
    assert_eq!(response.share_flags, ShareFlags::NO_CACHING);
    assert_eq!(response.maximal_access, AccessMask(0x011F_01FF));
}

/// Written by hand from the tables of [MS-SMB2] 2.2.7, 2.2.8, 2.2.11, 2.2.12, 2.2.28 to 2.2.30.
#[test]
fn messages_with_empty_bodies() {
    let message = message("04000000");
    both_ways!(logoff::Request::decode, message);
    both_ways!(logoff::Response::decode, message);
    both_ways!(tree_disconnect::Request::decode, message);
    both_ways!(tree_disconnect::Response::decode, message);
    both_ways!(echo::Request::decode, message);
    both_ways!(echo::Response::decode, message);
    both_ways!(cancel::Request::decode, message);
}

/// Written by hand from the table of [MS-SMB2] 2.2.2: 73 bytes, as every Windows server sends them.
#[test]
fn a_plain_error() {
    let message = message("090000000000000000");
    let response = both_ways!(error_response::Response::decode, message);
    assert_eq!(response, error_response::Response::PLAIN);
    // Windows omits the ninth byte of the body in the middle of a compound.
    let short = &message[..72];
    assert_eq!(
        error_response::Response::decode(short),
        Ok(error_response::Response::PLAIN)
    );
}

/// [MS-SMB2] 2.2.2.2.1, written by hand: a link to "x" at the end of a path, in dialect 2.1.
#[test]
fn a_symlink_error() {
    let data = hex("1c00000053594d4c0c0000a010000000\
         0000020002000200\
         0100000078007800");
    let error = error_response::SymlinkError::decode(&data).expect("a symlink error");
    assert_eq!(error.flags, error_response::SymlinkFlags::RELATIVE);
    assert_eq!(error.substitute_name.decode().as_deref(), Some("x"));
    assert_eq!(error.print_name.decode().as_deref(), Some("x"));
    assert_eq!(error.encode(), data);
}

#[test]
fn transform_header() {
    let mut frame = hex(TRANSFORM);
    let header = transform::Transform::decode(&frame).expect("captured");
    assert_eq!(header.original_message_size, 0x68);
    assert_eq!(header.flags, transform::FLAG_ENCRYPTED);
    assert_eq!(header.encode(), frame[..]);
    assert!(
        transform::split(&mut frame).is_err(),
        "the message is missing"
    );
    frame.resize(52 + 0x68, 7);
    let parts = transform::split(&mut frame).expect("a whole frame");
    assert_eq!(parts.associated_data.len(), 32);
    assert_eq!(parts.ciphertext, [7; 0x68]);
}

#[test]
fn smb1_negotiate() {
    let bytes = hex(SMB1_NEGOTIATE);
    let negotiate = smb1::Negotiate::decode(&bytes).expect("an SMB1 NEGOTIATE");
    assert!(negotiate.offers(smb1::DIALECT_SMB_2_002));
    assert!(negotiate.offers(smb1::DIALECT_SMB_2_WILDCARD));
    assert!(!negotiate.offers(b"SMB 2."));
    let dialects: Vec<&[u8]> = negotiate.dialects().collect();
    assert_eq!(smb1::encode_negotiate(&dialects), bytes);
}

#[test]
fn smb1_refusal() {
    // The response of smbd of Samba 4.25 to a client that offers only "NT LM 0.12".
    let request = smb1::encode_negotiate(&[b"NT LM 0.12"]);
    let negotiate = smb1::Negotiate::decode(&request).expect("an SMB1 NEGOTIATE");
    let refusal = "ff534d427200000000880340000000000000000000000000fffffffe0000000001ffff0000";
    assert_eq!(negotiate.encode_refusal(), hex(refusal));
}
