//! NEGOTIATE: dialect, cipher, signing algorithm, and refused requests.

use crypto::{Cipher, SigningAlgorithm};
use proto::carrier::Carrier;
use proto::violation::Violation;
use wire::dialect::{Capabilities, Dialect, SecurityMode};
use wire::fscc::{FileInfoClass, InfoType};
use wire::fsctl::{CtlCode, ValidateNegotiateInfoRequest, ValidateNegotiateInfoResponse};
use wire::ioctl::{self, IoctlFlags};
use wire::negotiate::{Request, Response};
use wire::negotiate_context::{ContextType, PreauthIntegrity, RawContext};
use wire::smb1::{DIALECT_SMB_2_002, DIALECT_SMB_2_WILDCARD, encode_negotiate};
use wire::{Command, DecodeError, FileId, Guid, MessageId, Status, query_info};

use crate::harness::{Client, Options, Rig, bytes_of};

#[test]
fn the_newest_common_dialect_wins() {
    let all = vec![
        Dialect::SMB_2_0_2,
        Dialect::SMB_3_0_2,
        Dialect::SMB_2_1,
        Dialect::SMB_3_0,
        Dialect::SMB_3_1_1,
    ];
    for max_dialect in all.clone() {
        let mut rig = Rig::new(|config| config.max_dialect = max_dialect);
        let options = Options {
            dialects: all.clone(),
            ..Options::default()
        };
        let mut client = Client::new(&mut rig, options);
        let answer = client.negotiate(&mut rig);
        assert_eq!(client.dialect, max_dialect);
        let response = Response::decode(&answer.message).unwrap();
        assert_eq!(response.security_buffer, b"the server's first word");
        let is_large = max_dialect >= Dialect::SMB_2_1;
        let size = if is_large { 8 << 20 } else { 65_536 };
        assert_eq!(response.max_read_size, size);
        assert_eq!(response.max_write_size, size);
        assert_eq!(response.max_transact_size, size);
        let has_large_mtu = response.capabilities.contains(Capabilities::LARGE_MTU);
        assert_eq!(has_large_mtu, is_large);
        let encrypts = response.capabilities.contains(Capabilities::ENCRYPTION);
        let by_capability = [Dialect::SMB_3_0, Dialect::SMB_3_0_2].contains(&max_dialect);
        assert_eq!(encrypts, by_capability);
        assert_eq!(response.security_mode, SecurityMode::SIGNING_ENABLED);
    }
}

/// The statuses of a WRITE, a READ, a QUERY_INFO and an IOCTL of this length. The server has these
/// limits: max_read, max_write and max_transact. Checks that NEGOTIATE announces the limits.
fn statuses_of(length: u32, limits: [u32; 3]) -> [Status; 4] {
    let mut rig = Rig::new(|config| {
        [config.max_read, config.max_write, config.max_transact] = limits;
    });
    let mut client = Client::new(&mut rig, Options::default());
    let answer = client.negotiate(&mut rig);
    let response = Response::decode(&answer.message).unwrap();
    let announced = [
        response.max_read_size,
        response.max_write_size,
        response.max_transact_size,
    ];
    assert_eq!(announced, limits);
    assert_eq!(client.log_in(&mut rig, "alice").status(), Status::SUCCESS);
    assert_eq!(client.enter(&mut rig, "files").status(), Status::SUCCESS);
    let file = client.create(&mut rig, "file");
    let mut echo = client.message(
        Command::ECHO,
        bytes_of(|out| wire::echo::Request.encode(out)),
    );
    echo.header.credits = 100;
    assert_eq!(client.ask(&mut rig, echo).status(), Status::SUCCESS);
    let read = client.read_message(file, length);
    let write = client.write_message(file, &vec![7; length as usize]);
    let query = query_info::Request {
        info_type: InfoType::FILE,
        file_info_class: FileInfoClass::BASIC.0,
        output_buffer_length: length,
        input: &[],
        additional_information: 0,
        flags: query_info::QueryInfoFlags::NONE,
        file_id: file,
    };
    let query = client.message(Command::QUERY_INFO, bytes_of(|out| query.encode(out)));
    let ioctl = ioctl::Request {
        ctl_code: CtlCode::GET_COMPRESSION,
        file_id: file,
        max_input_response: 0,
        max_output_response: length,
        flags: IoctlFlags::IS_FSCTL,
        input: &[],
        output: &[],
    };
    let ioctl = client.message(Command::IOCTL, bytes_of(|out| ioctl.encode(out)));
    [write, read, query, ioctl].map(|mut message| {
        message.header.credit_charge = 3;
        message.header.credits = 8;
        message.header.message_id = MessageId(client.next_message);
        client.next_message += 3;
        client.ask(&mut rig, message).status()
    })
}

#[test]
fn configured_sizes_are_announced_and_enforced() {
    let (small, large) = (65_536, 131_072);
    let refused = Status::INVALID_PARAMETER;
    let good = Status::SUCCESS;
    assert_eq!(statuses_of(large, [large; 3]), [good; 4]);
    let statuses = |limits| statuses_of(small + 1, limits);
    let read_refused = [good, refused, good, good];
    assert_eq!(statuses([small, large, large]), read_refused);
    // The file is empty.
    let write_refused = [refused, Status::END_OF_FILE, good, good];
    assert_eq!(statuses([large, small, large]), write_refused);
    let transact_refused = [good, good, refused, refused];
    assert_eq!(statuses([large, large, small]), transact_refused);
}

/// The advised size of writes is not a limit.
#[test]
fn advice_of_small_writes_does_not_refuse_large_ones() {
    let mut rig = Rig::new(|_| {});
    let id = rig.accept_over(Carrier {
        write_hint: Some(960),
        ..Carrier::QUIC
    });
    let mut client = Client::on(id, Options::default());
    let answer = client.negotiate(&mut rig);
    let response = Response::decode(&answer.message).unwrap();
    assert_eq!(response.max_write_size, 960);
    assert_eq!(response.max_read_size, 8 << 20);
    assert_eq!(response.max_transact_size, 8 << 20);
    assert_eq!(client.log_in(&mut rig, "alice").status(), Status::SUCCESS);
    assert_eq!(client.enter(&mut rig, "files").status(), Status::SUCCESS);
    let file = client.create(&mut rig, "file");
    let write = client.write_message(file, &[7; 60_000]);
    assert_eq!(client.ask(&mut rig, write).status(), Status::SUCCESS);
}

#[test]
fn the_fastest_common_cipher_and_signature_win() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::new(&mut rig, Options::default());
    client.negotiate(&mut rig);
    assert_eq!(client.cipher, Some(Cipher::Aes128Gcm));
    assert_eq!(client.signing_algorithm, SigningAlgorithm::AesGmac);
}

#[test]
fn nothing_in_common_means_no_cipher_and_cmac() {
    let mut rig = Rig::new(|config| {
        config.ciphers = vec![Cipher::Aes256Gcm];
        config.signing_algorithms = vec![SigningAlgorithm::HmacSha256];
    });
    let mut client = Client::new(&mut rig, Options::default());
    client.negotiate(&mut rig);
    assert_eq!(client.cipher, None);
    assert_eq!(client.signing_algorithm, SigningAlgorithm::AesCmac);
}

#[test]
fn a_transport_with_little_room_gets_64_kib() {
    let mut rig = Rig::new(|_| {});
    let id = rig.accept_over(Carrier::NBT);
    let mut client = Client::on(id, Options::default());
    let answer = client.negotiate(&mut rig);
    let response = Response::decode(&answer.message).unwrap();
    assert_eq!(response.max_read_size, 65_536);
    assert!(!response.capabilities.contains(Capabilities::LARGE_MTU));
}

fn negotiate_with(contexts: &[(ContextType, Vec<u8>)]) -> Status {
    negotiate_with_capabilities(Capabilities::NONE, contexts)
}

fn negotiate_with_capabilities(
    capabilities: Capabilities,
    contexts: &[(ContextType, Vec<u8>)],
) -> Status {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::new(&mut rig, Options::default());
    let contexts = (contexts.iter())
        .map(|(context_type, data)| RawContext {
            context_type: *context_type,
            data,
        })
        .collect();
    let request = Request {
        security_mode: SecurityMode::SIGNING_ENABLED,
        capabilities,
        client_guid: Guid([1; 16]),
        dialects: vec![Dialect::SMB_3_1_1],
        contexts,
    };
    let bytes = bytes_of(|bytes| request.encode(bytes));
    client
        .ask_body(&mut rig, Command::NEGOTIATE, bytes)
        .status()
}

#[test]
fn contexts_are_checked() {
    use wire::negotiate_context::HashAlgorithm;
    let integrity = |algorithm| {
        let context = PreauthIntegrity {
            hash_algorithms: vec![HashAlgorithm(algorithm)],
            salt: &[],
        };
        (
            ContextType::PREAUTH_INTEGRITY_CAPABILITIES,
            context.encode(),
        )
    };
    let good = integrity(1);
    let ciphers = (ContextType::ENCRYPTION_CAPABILITIES, vec![1, 0, 2, 0]);
    let refused = Status::INVALID_PARAMETER;
    assert_eq!(negotiate_with(std::slice::from_ref(&good)), Status::SUCCESS);
    assert_eq!(negotiate_with(&[]), refused);
    assert_eq!(negotiate_with(&[good.clone(), good.clone()]), refused);
    let twice = [good.clone(), ciphers.clone(), ciphers.clone()];
    assert_eq!(negotiate_with(&twice), refused);
    let none = (ContextType::ENCRYPTION_CAPABILITIES, vec![0, 0]);
    let without = [good.clone(), none];
    let encryption = Capabilities::ENCRYPTION;
    assert_eq!(negotiate_with_capabilities(encryption, &without), refused);
    // A client without ciphers may send an empty list.
    assert_eq!(negotiate_with(&without), Status::SUCCESS);
    let cut = (ContextType::SIGNING_CAPABILITIES, vec![2, 0, 1, 0]);
    assert_eq!(negotiate_with(&[good.clone(), cut]), refused);
    let unknown = (ContextType(0x7777), vec![1, 2, 3]);
    assert_eq!(negotiate_with(&[good.clone(), unknown]), Status::SUCCESS);
    let no_overlap = Status::SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP;
    assert_eq!(negotiate_with(&[integrity(9)]), no_overlap);
}

#[test]
fn no_common_dialect_is_not_supported() {
    let mut rig = Rig::new(|config| config.min_dialect = Dialect::SMB_3_0);
    let mut client = Client::new(&mut rig, Options::only(Dialect::SMB_2_1));
    assert_eq!(client.negotiate(&mut rig).status(), Status::NOT_SUPPORTED);
}

#[test]
fn smb1_leads_to_smb2_once() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::new(&mut rig, Options::default());
    let both = encode_negotiate(&[b"NT LM 0.12", DIALECT_SMB_2_002, DIALECT_SMB_2_WILDCARD]);
    rig.deliver(client.id, &both);
    let answer = client.hear(&mut rig).unwrap().remove(0);
    assert_eq!(answer.header.message_id, MessageId(0));
    assert_eq!(answer.header.credits, 1);
    let response = Response::decode(&answer.message).unwrap();
    assert_eq!(response.dialect, Dialect::WILDCARD);
    client.next_message = 1;
    assert_eq!(client.negotiate(&mut rig).status(), Status::SUCCESS);
    assert_eq!(client.dialect, Dialect::SMB_3_1_1);
    assert_eq!(client.log_in(&mut rig, "alice").status(), Status::SUCCESS);
    rig.deliver(client.id, &both);
    assert_eq!(rig.violations[&client.id], Violation::UnexpectedNegotiate);
}

#[test]
fn smb1_with_2_002_alone_is_2_0_2() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::new(&mut rig, Options::only(Dialect::SMB_2_0_2));
    rig.deliver(client.id, &encode_negotiate(&[DIALECT_SMB_2_002]));
    let answer = client.hear(&mut rig).unwrap().remove(0);
    let response = Response::decode(&answer.message).unwrap();
    assert_eq!(response.dialect, Dialect::SMB_2_0_2);
    client.dialect = Dialect::SMB_2_0_2;
    client.next_message = 1;
    assert_eq!(client.log_in(&mut rig, "alice").status(), Status::SUCCESS);
}

#[test]
fn smb1_alone_is_refused_and_ends_the_connection() {
    let mut rig = Rig::new(|_| {});
    let id = rig.accept();
    rig.deliver(id, &encode_negotiate(&[b"NT LM 0.12"]));
    assert_eq!(rig.violations[&id], Violation::UnexpectedNegotiate);
    // DialectIndex 0xFFFF reports the failure first.
    let answer = rig.read(id).expect("an answer");
    assert_eq!(answer[32..], [1, 0xFF, 0xFF, 0, 0]);
    assert!(rig.read(id).is_none());
    let id = rig.accept();
    let mut not_negotiate = encode_negotiate(&[DIALECT_SMB_2_WILDCARD]);
    not_negotiate[4] = 0x73;
    rig.deliver(id, &not_negotiate);
    let violation = rig.violations[&id];
    assert!(matches!(
        violation,
        Violation::Malformed(DecodeError::Invalid { .. })
    ));
}

#[test]
fn a_second_negotiate_ends_the_connection() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::new(&mut rig, Options::default());
    client.negotiate(&mut rig);
    let bytes = client.negotiate_bytes();
    let again = client.message(Command::NEGOTIATE, bytes);
    client.say(&mut rig, vec![again]);
    assert_eq!(rig.violations[&client.id], Violation::UnexpectedNegotiate);
    assert!(client.hear(&mut rig).is_none());
}

#[test]
fn negotiate_must_come_first() {
    for command in 1..0x20 {
        let mut rig = Rig::new(|_| {});
        let mut client = Client::new(&mut rig, Options::default());
        let bytes = bytes_of(|bytes| wire::echo::Request.encode(bytes));
        let message = client.message(Command(command), bytes);
        client.say(&mut rig, vec![message]);
        let violation = Violation::NotNegotiated(Command(command));
        assert_eq!(rig.violations[&client.id], violation);
    }
}

fn validate(
    client: &mut Client,
    rig: &mut Rig,
    change: impl FnOnce(&mut ValidateNegotiateInfoRequest),
) -> Option<Vec<u8>> {
    let mut seen = ValidateNegotiateInfoRequest {
        capabilities: client.options.capabilities,
        guid: Guid([5; 16]),
        security_mode: client.options.security_mode,
        dialects: client.options.dialects.clone(),
    };
    change(&mut seen);
    let request = ioctl::Request {
        ctl_code: CtlCode::VALIDATE_NEGOTIATE_INFO,
        file_id: FileId::RELATED,
        max_input_response: 0,
        max_output_response: 24,
        flags: IoctlFlags::IS_FSCTL,
        input: &seen.encode(),
        output: &[],
    };
    let bytes = bytes_of(|bytes| request.encode(bytes));
    let message = client.message(Command::IOCTL, bytes);
    client.signs = true;
    client.say(rig, vec![message]);
    let answer = client.hear(rig)?.remove(0);
    assert_eq!(answer.status(), Status::SUCCESS);
    assert!(answer.is_signed());
    Some(
        ioctl::Response::decode(&answer.message)
            .unwrap()
            .output
            .to_vec(),
    )
}

#[test]
fn a_downgrade_is_detected() {
    let options = Options::only(Dialect::SMB_3_0);
    let mut rig = Rig::new(|_| {});
    let mut client = Client::in_share(&mut rig, options.clone(), "alice", "IPC$");
    let output = validate(&mut client, &mut rig, |_| {}).unwrap();
    let answer = ValidateNegotiateInfoResponse::decode(&output).unwrap();
    assert_eq!(answer.dialect, Dialect::SMB_3_0);
    assert!(answer.capabilities.contains(Capabilities::ENCRYPTION));

    let changes: [fn(&mut ValidateNegotiateInfoRequest); 5] = [
        |seen| seen.dialects.push(Dialect::SMB_3_1_1),
        |seen| seen.dialects.clear(),
        |seen| seen.guid = Guid([6; 16]),
        |seen| seen.capabilities = Capabilities::NONE,
        |seen| seen.security_mode = SecurityMode::SIGNING_REQUIRED,
    ];
    for change in changes {
        let mut rig = Rig::new(|_| {});
        let mut client = Client::in_share(&mut rig, options.clone(), "alice", "IPC$");
        assert_eq!(validate(&mut client, &mut rig, change), None);
        assert_eq!(rig.violations[&client.id], Violation::NegotiateTampered);
    }
}

#[test]
fn smb1_comes_first_or_not_at_all() {
    // A NEGOTIATE that failed left the connection without a dialect, but used its MessageId. An
    // assertion assumed that both happen together, so that any client could end the server.
    let mut rig = Rig::new(|_| {});
    let mut client = Client::new(&mut rig, Options::only(Dialect(0x0999)));
    assert_eq!(client.negotiate(&mut rig).status(), Status::NOT_SUPPORTED);
    rig.deliver(client.id, &encode_negotiate(&[DIALECT_SMB_2_WILDCARD]));
    assert_eq!(rig.violations[&client.id], Violation::UnexpectedNegotiate);
    // A second NEGOTIATE of SMB2 may succeed.
    let mut client = Client::new(&mut rig, Options::only(Dialect(0x0999)));
    client.negotiate(&mut rig);
    client.options.dialects = vec![Dialect::SMB_3_0];
    assert_eq!(client.negotiate(&mut rig).status(), Status::SUCCESS);
}
