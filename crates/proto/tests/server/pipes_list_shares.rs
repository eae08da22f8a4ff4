//! srvsvc and wkssvc list the shares and describe the server over a pipe. An invalid call gets a
//! fault and does no other harm.

use std::sync::Arc;

use proto::server::config::{Config, Share, ShareKind};
use wire::rpc::srvsvc::{
    self, Opnum, RemoteTod, RemoteTodResponse, ServerGetInfo, ServerGetInfoResponse, ShareEnum,
    ShareEnumResponse, ShareGetInfo, ShareGetInfoResponse, ShareType,
};
use wire::rpc::wkssvc::{self, WkstaGetInfo, WkstaGetInfoResponse};
use wire::rpc::{
    BindAck, Body, Fault, FaultStatus, Features, Header, PacketFlags, PacketType, Pdu, Reason,
    RejectReason, ResultCode, SyntaxId, WinError, request_fragments,
};
use wire::{FileId, Status};

use crate::harness::{Called, Client, Options, Rig, bind, fragment, share};

fn rig() -> Rig {
    Rig::new(|config| {
        config.name = "BEAM".to_owned();
        config.domain = "HOME".to_owned();
        config.comment = "a beam of light".to_owned();
        add(config, "Photos", |share| {
            share.comment = "\u{dc}ber alles".to_owned();
        });
        add(config, "closed", |share| {
            share.users.valid = Some(Vec::new());
        });
        add(config, "hidden", |share| share.listed = false);
        add(config, "admin$", |_| {});
        let ipc = Share {
            kind: ShareKind::Pipe,
            guest: true,
            ..share("IPC$")
        };
        config.shares[1] = Arc::new(ipc);
    })
}

fn add(config: &mut Config, name: &str, change: impl FnOnce(&mut Share)) {
    let mut share = share(name);
    change(&mut share);
    config.shares.push(Arc::new(share));
}

/// A client that has bound the interface of a pipe.
fn caller(rig: &mut Rig, user: &str, pipe: &str, interface: SyntaxId) -> (Client, FileId) {
    let mut client = Client::in_share(rig, Options::default(), user, "IPC$");
    let pipe = client.create(rig, pipe);
    client.bind(rig, pipe, interface);
    (client, pipe)
}

fn srvsvc(rig: &mut Rig, user: &str) -> (Client, FileId) {
    caller(rig, user, "srvsvc", srvsvc::INTERFACE)
}

fn stub(called: Called) -> Vec<u8> {
    match called {
        Called::Stub(stub) => stub,
        Called::Fault(fault) => panic!("{fault:?}"),
    }
}

fn request(level: u32) -> ShareEnum {
    ShareEnum {
        server_name: Some("\\\\server".to_owned()),
        level,
        preferred_length: srvsvc::ALL,
        resume_handle: None,
    }
}

fn list(rig: &mut Rig, of: &mut (Client, FileId), request: &ShareEnum) -> ShareEnumResponse {
    let opnum = Opnum::SHARE_ENUM.0;
    let answer = stub(of.0.call(rig, of.1, opnum, &request.encode()));
    ShareEnumResponse::decode(&answer).expect("a response")
}

#[test]
fn shares_are_listed_with_kind_and_comment() {
    let mut rig = rig();
    let mut of = srvsvc(&mut rig, "alice");
    let response = list(&mut rig, &mut of, &request(1));
    assert_eq!(response.status, WinError::SUCCESS);
    assert_eq!(response.total_entries, 5);
    let shares = response.shares.expect("a list");
    let reported: Vec<_> = shares
        .iter()
        .map(|share| (&*share.name, share.share_type, &*share.comment))
        .collect();
    let ipc = ShareType::IPC | ShareType::SPECIAL;
    assert_eq!(
        reported,
        [
            ("files", ShareType::DISKTREE, ""),
            ("IPC$", ipc, ""),
            ("Photos", ShareType::DISKTREE, "\u{dc}ber alles"),
            // A user without access sees the share all the same, as with Samba.
            ("closed", ShareType::DISKTREE, ""),
            ("admin$", ShareType::SPECIAL, ""),
        ]
    );
}

#[test]
fn each_level_has_its_fields() {
    let mut rig = rig();
    let mut of = srvsvc(&mut rig, "alice");
    for level in [0, 1, 2, 501, 502, 503] {
        let response = list(&mut rig, &mut of, &request(level));
        assert_eq!(response.status, WinError::SUCCESS, "{level}");
        let shares = response.shares.expect("a list");
        assert_eq!(shares.len(), 5);
        let counts = matches!(level, 2 | 502 | 503);
        // The client itself is in IPC$.
        assert_eq!(shares[1].current_uses, u32::from(counts), "{level}");
        assert_eq!(shares[2].comment.is_empty(), level == 0);
    }
    for level in [3, 500, 1005, u32::MAX] {
        let response = list(&mut rig, &mut of, &request(level));
        assert_eq!(response.status, WinError::INVALID_LEVEL, "{level}");
        assert_eq!(response.shares, None);
    }
}

#[test]
fn the_sticky_list_leaves_out_hidden_shares_and_pipes() {
    let mut rig = rig();
    let (mut client, pipe) = srvsvc(&mut rig, "alice");
    let opnum = Opnum::SHARE_ENUM_STICKY.0;
    let answer = stub(client.call(&mut rig, pipe, opnum, &request(0).encode()));
    let response = ShareEnumResponse::decode(&answer).expect("a response");
    let shares = response.shares.expect("a list");
    let names: Vec<_> = shares.iter().map(|share| &*share.name).collect();
    assert_eq!(names, ["files", "Photos", "closed"]);
    let answer = stub(client.call(&mut rig, pipe, opnum, &request(501).encode()));
    let response = ShareEnumResponse::decode(&answer).expect("a response");
    assert_eq!(response.status, WinError::INVALID_LEVEL);
}

#[test]
fn a_short_buffer_gets_the_list_in_parts() {
    let mut rig = rig();
    let mut of = srvsvc(&mut rig, "alice");
    let mut names = Vec::new();
    let mut ask = ShareEnum {
        preferred_length: 1,
        resume_handle: Some(0),
        ..request(1)
    };
    loop {
        let response = list(&mut rig, &mut of, &ask);
        assert_eq!(response.total_entries as usize, 5 - names.len());
        let shares = response.shares.expect("a list");
        assert_eq!(shares.len(), 1, "each call makes progress");
        names.extend(shares.into_iter().map(|share| share.name));
        if response.status == WinError::SUCCESS {
            break;
        }
        assert_eq!(response.status, WinError::MORE_DATA);
        ask.resume_handle = response.resume_handle;
    }
    assert_eq!(names, ["files", "IPC$", "Photos", "closed", "admin$"]);
    ask.resume_handle = Some(77);
    let response = list(&mut rig, &mut of, &ask);
    assert_eq!(response.shares, Some(Vec::new()));
}

#[test]
fn a_list_of_thousands_comes_in_fragments_and_has_an_end() {
    let mut rig = Rig::new(|config| {
        for number in 0..10_000 {
            add(config, &format!("share number {number}"), |_| {});
        }
    });
    let mut of = srvsvc(&mut rig, "alice");
    let mut ask = request(1);
    ask.resume_handle = Some(0);
    let mut count = 0;
    loop {
        let response = list(&mut rig, &mut of, &ask);
        assert_eq!(response.total_entries, 10_002 - count);
        count += response.shares.expect("a list").len() as u32;
        ask.resume_handle = response.resume_handle;
        if response.status == WinError::SUCCESS {
            break;
        }
        assert_eq!(response.status, WinError::MORE_DATA);
    }
    assert_eq!(count, 10_002);
}

#[test]
fn an_anonymous_user_gets_names_kinds_and_comments() {
    let mut rig = rig();
    let mut of = srvsvc(&mut rig, "anonymous");
    for (level, status) in [
        (0, WinError::SUCCESS),
        (1, WinError::SUCCESS),
        (2, WinError::ACCESS_DENIED),
        (501, WinError::ACCESS_DENIED),
        (502, WinError::ACCESS_DENIED),
        (503, WinError::ACCESS_DENIED),
    ] {
        let response = list(&mut rig, &mut of, &request(level));
        assert_eq!(response.status, status, "{level}");
    }
    for (level, status) in [
        (1, WinError::SUCCESS),
        (2, WinError::ACCESS_DENIED),
        (501, WinError::SUCCESS),
        (502, WinError::ACCESS_DENIED),
        (1005, WinError::SUCCESS),
    ] {
        let reported = get_share(&mut rig, &mut of, "files", level);
        assert_eq!(reported, status, "{level}");
    }
}

fn get_share(rig: &mut Rig, of: &mut (Client, FileId), name: &str, level: u32) -> WinError {
    let request = ShareGetInfo {
        server_name: None,
        share: name.to_owned(),
        level,
    };
    let opnum = Opnum::SHARE_GET_INFO.0;
    let answer = stub(of.0.call(rig, of.1, opnum, &request.encode()));
    let response = ShareGetInfoResponse::decode(&answer).expect("a response");
    assert_eq!(
        response.share.is_some(),
        response.status == WinError::SUCCESS
    );
    response.status
}

#[test]
fn a_share_can_be_queried_by_name() {
    let mut rig = rig();
    let mut of = srvsvc(&mut rig, "alice");
    for level in [0, 1, 2, 501, 502, 503, 1004, 1005, 1006] {
        let status = get_share(&mut rig, &mut of, "PHOTOS", level);
        assert_eq!(status, WinError::SUCCESS, "{level}");
    }
    let hidden = get_share(&mut rig, &mut of, "hidden", 1);
    assert_eq!(hidden, WinError::SUCCESS);
    let missing = get_share(&mut rig, &mut of, "nothing", 1);
    assert_eq!(missing, WinError::NET_NAME_NOT_FOUND);
    let unknown = get_share(&mut rig, &mut of, "Photos", 77);
    assert_eq!(unknown, WinError::INVALID_LEVEL);
}

#[test]
fn the_server_reports_its_version_and_time() {
    let mut rig = rig();
    let (mut client, pipe) = srvsvc(&mut rig, "alice");
    for level in [100, 101, 102, 103] {
        let request = ServerGetInfo {
            server_name: None,
            level,
        };
        let opnum = Opnum::SERVER_GET_INFO.0;
        let answer = stub(client.call(&mut rig, pipe, opnum, &request.encode()));
        let response = ServerGetInfoResponse::decode(&answer).expect("a response");
        if level == 103 {
            assert_eq!(response.status, WinError::INVALID_LEVEL);
            continue;
        }
        let info = response.server.expect("a server");
        assert_eq!(info.name, "BEAM");
        assert_eq!(info.comment == "a beam of light", level > 100);
    }
    let request = RemoteTod { server_name: None };
    let opnum = Opnum::REMOTE_TOD.0;
    let answer = stub(client.call(&mut rig, pipe, opnum, &request.encode()));
    let response = RemoteTodResponse::decode(&answer).expect("a response");
    assert_eq!(response.time.expect("a time").elapsed, 1_800_000_000);
}

#[test]
fn the_workstation_service_describes_the_machine() {
    let mut rig = rig();
    for (user, level, status) in [
        ("alice", 100, WinError::SUCCESS),
        ("alice", 102, WinError::SUCCESS),
        ("anonymous", 100, WinError::SUCCESS),
        ("anonymous", 101, WinError::ACCESS_DENIED),
        ("alice", 77, WinError::INVALID_LEVEL),
    ] {
        let (mut client, pipe) = caller(&mut rig, user, "\\PIPE\\wkssvc", wkssvc::INTERFACE);
        let request = WkstaGetInfo {
            server_name: None,
            level,
        };
        let answer = stub(client.call(&mut rig, pipe, 0, &request.encode()));
        let response = WkstaGetInfoResponse::decode(&answer).expect("a response");
        assert_eq!(response.status, status, "{user} {level}");
        let domain = response.info.map(|info| info.domain);
        let reported = (status == WinError::SUCCESS).then(|| "HOME".to_owned());
        assert_eq!(domain, reported);
    }
}

#[test]
fn an_invalid_call_gets_a_fault_and_the_next_is_served() {
    let mut rig = rig();
    let (mut client, pipe) = srvsvc(&mut rig, "alice");
    for (opnum, stub, status) in [
        (60, &[][..], FaultStatus::OP_RANGE),
        (14, &[], FaultStatus::OP_RANGE),
        (15, &[], FaultStatus::BAD_STUB_DATA),
        (15, &[0xFF; 40], FaultStatus::BAD_STUB_DATA),
    ] {
        let Called::Fault(fault) = client.call(&mut rig, pipe, opnum, stub) else {
            panic!("{opnum} is no call");
        };
        assert_eq!(fault.status, status);
    }
    let mut of = (client, pipe);
    assert_eq!(
        list(&mut rig, &mut of, &request(1)).status,
        WinError::SUCCESS
    );
}

fn answered(client: &mut Client, rig: &mut Rig, pipe: FileId, bytes: &[u8]) -> Vec<u8> {
    let answer = client.exchange(rig, pipe, bytes);
    let header = Header::decode(&answer).expect("a header");
    assert_eq!(usize::from(header.frag_length), answer.len());
    answer
}

fn fault_of(answer: &[u8]) -> Fault {
    match Pdu::decode(answer).expect("a fragment").body {
        Body::Fault(fault) => fault,
        other => panic!("{other:?}"),
    }
}

fn ack_of(answer: &[u8]) -> BindAck {
    match Pdu::decode(answer).expect("a fragment").body {
        Body::BindAck(ack) | Body::AlterContextResp(ack) => ack,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_requested_interface_has_a_result() {
    let mut rig = rig();
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "IPC$");
    let pipe = client.create(&mut rig, "srvsvc");
    let other_version = SyntaxId {
        major: 4,
        ..srvsvc::INTERFACE
    };
    let features = SyntaxId::of_features(Features(3));
    let bytes = bind(&[
        (srvsvc::INTERFACE, SyntaxId::NDR32),
        (srvsvc::INTERFACE, SyntaxId::NDR64),
        (srvsvc::INTERFACE, features),
        (wkssvc::INTERFACE, SyntaxId::NDR32),
        (other_version, SyntaxId::NDR32),
    ]);
    let ack = ack_of(&answered(&mut client, &mut rig, pipe, &bytes));
    assert_eq!(ack.secondary_address, "\\PIPE\\srvsvc");
    assert_ne!(ack.assoc_group_id, 0);
    let results: Vec<_> = ack
        .results
        .iter()
        .map(|result| (result.result, result.reason))
        .collect();
    let no = ResultCode::PROVIDER_REJECTION;
    let kept = Features::KEEP_CONNECTION_ON_ORPHAN.0 as u16;
    assert_eq!(
        results,
        [
            (ResultCode::ACCEPTANCE, Reason::NOT_SPECIFIED),
            (no, Reason::PROPOSED_TRANSFER_SYNTAXES_NOT_SUPPORTED),
            (ResultCode::NEGOTIATE_ACK, Reason(kept)),
            (no, Reason::ABSTRACT_SYNTAX_NOT_SUPPORTED),
            (no, Reason::ABSTRACT_SYNTAX_NOT_SUPPORTED),
        ]
    );
    // A refused interface cannot be called.
    let request = request_fragments(2, 3, 0, &[], 4280).remove(0);
    let fault = fault_of(&answered(&mut client, &mut rig, pipe, &request));
    assert_eq!(fault.status, FaultStatus::UNKNOWN_INTERFACE);
    // A second bind is refused and changes nothing.
    let again = bind(&[(srvsvc::INTERFACE, SyntaxId::NDR32)]);
    let answer = answered(&mut client, &mut rig, pipe, &again);
    let header = Header::decode(&answer).expect("a header");
    assert_eq!(header.packet_type, PacketType::BIND_NAK);
    let mut of = (client, pipe);
    assert_eq!(
        list(&mut rig, &mut of, &request_all()).status,
        WinError::SUCCESS
    );
}

fn request_all() -> ShareEnum {
    request(1)
}

#[test]
fn an_interface_may_be_added_later() {
    let mut rig = rig();
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "IPC$");
    let pipe = client.create(&mut rig, "srvsvc");
    let mut alter = bind(&[(srvsvc::INTERFACE, SyntaxId::NDR32)]);
    alter[2] = PacketType::ALTER_CONTEXT.0;
    // ALTER_CONTEXT before a bind is refused.
    let fault = fault_of(&answered(&mut client, &mut rig, pipe, &alter));
    assert_eq!(fault.status, FaultStatus::PROTOCOL_ERROR);
    let first = bind(&[(wkssvc::INTERFACE, SyntaxId::NDR32)]);
    answered(&mut client, &mut rig, pipe, &first);
    let ack = ack_of(&answered(&mut client, &mut rig, pipe, &alter));
    assert_eq!(ack.results[0].result, ResultCode::ACCEPTANCE);
    let mut of = (client, pipe);
    assert_eq!(
        list(&mut rig, &mut of, &request(1)).status,
        WinError::SUCCESS
    );
}

#[test]
fn credentials_and_big_endian_integers_are_refused_by_name() {
    let mut rig = rig();
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "IPC$");
    let pipe = client.create(&mut rig, "srvsvc");
    let plain = bind(&[(srvsvc::INTERFACE, SyntaxId::NDR32)]);
    let mut with_credentials = plain.clone();
    with_credentials[10] = 16;
    let mut big_endian = plain.clone();
    big_endian[4] = 0;
    big_endian[8..10].reverse();
    for (bytes, reason) in [
        (
            with_credentials,
            RejectReason::AUTHENTICATION_TYPE_NOT_RECOGNIZED,
        ),
        (big_endian, RejectReason::NOT_SPECIFIED),
    ] {
        let answer = answered(&mut client, &mut rig, pipe, &bytes);
        let Body::BindNak(nak) = Pdu::decode(&answer).expect("a fragment").body else {
            panic!("it was not refused");
        };
        assert_eq!(nak.reason, reason);
    }
    client.exchange(&mut rig, pipe, &plain);
    let mut signed = request_fragments(2, 0, 15, &request(1).encode(), 4280).remove(0);
    signed[10] = 16;
    let fault = fault_of(&answered(&mut client, &mut rig, pipe, &signed));
    assert_eq!(fault.status, FaultStatus::PROTOCOL_ERROR);
    let mut of = (client, pipe);
    assert_eq!(
        list(&mut rig, &mut of, &request(1)).status,
        WinError::SUCCESS
    );
}

#[test]
fn a_call_may_come_in_fragments() {
    let mut rig = rig();
    let (mut client, pipe) = srvsvc(&mut rig, "alice");
    let stub = request(1).encode();
    let fragments = request_fragments(3, 0, 15, &stub, 40);
    assert!(fragments.len() > 2);
    let (last, first) = fragments.split_last().expect("some");
    for fragment in first {
        let write = client.write_message(pipe, fragment);
        assert_eq!(client.ask(&mut rig, write).status(), Status::SUCCESS);
    }
    let answer = client.exchange(&mut rig, pipe, last);
    let Body::Response(response) = Pdu::decode(&answer).expect("a fragment").body else {
        panic!("no response");
    };
    let response = ShareEnumResponse::decode(response.stub).expect("a response");
    assert_eq!(response.total_entries, 5);

    // A call within another is invalid, and so is a middle fragment alone.
    let write = client.write_message(pipe, &first[0]);
    client.ask(&mut rig, write);
    let mut other = fragments[0].clone();
    other[12] = 4;
    let fault = fault_of(&answered(&mut client, &mut rig, pipe, &other));
    assert_eq!(fault.status, FaultStatus::PROTOCOL_ERROR);
    let fault = fault_of(&answered(&mut client, &mut rig, pipe, &fragments[1]));
    assert_eq!(fault.status, FaultStatus::PROTOCOL_ERROR);

    // A canceled call leaves space for the next.
    let orphaned = fragment(3, Body::Other(PacketType::ORPHANED, &[]));
    for bytes in [&first[0], &orphaned] {
        let write = client.write_message(pipe, bytes);
        client.ask(&mut rig, write);
    }
    let mut of = (client, pipe);
    assert_eq!(
        list(&mut rig, &mut of, &request(1)).status,
        WinError::SUCCESS
    );
}

#[test]
fn unlimited_arguments_are_refused() {
    let mut rig = rig();
    let (mut client, pipe) = srvsvc(&mut rig, "alice");
    let fragments = request_fragments(3, 0, 15, &[0; 20 << 10], 4280);
    let mut fault = None;
    for fragment in &fragments {
        let write = client.write_message(pipe, fragment);
        assert_eq!(client.ask(&mut rig, write).status(), Status::SUCCESS);
        let peek = client.control_message(wire::fsctl::CtlCode::PIPE_PEEK, pipe, &[], 64);
        let peek = client.ask(&mut rig, peek);
        let output = crate::harness::output(&peek);
        let peek = wire::fsctl::PipePeek::decode(&output).expect("an answer");
        if peek.number_of_messages > 0 {
            let read = client.read_message(pipe, 4096);
            let answer = crate::harness::data(&client.ask(&mut rig, read));
            fault = Some(fault_of(&answer));
            break;
        }
    }
    assert_eq!(
        fault.map(|fault| fault.status),
        Some(FaultStatus::NO_MEMORY)
    );
}

#[test]
fn a_maybe_call_gets_no_response() {
    let mut rig = rig();
    let (mut client, pipe) = srvsvc(&mut rig, "alice");
    let mut maybe = request_fragments(3, 0, 15, &request(1).encode(), 4280).remove(0);
    maybe[3] |= PacketFlags::MAYBE.0;
    let write = client.write_message(pipe, &maybe);
    client.ask(&mut rig, write);
    let mut of = (client, pipe);
    assert_eq!(
        list(&mut rig, &mut of, &request(1)).status,
        WinError::SUCCESS
    );
}
