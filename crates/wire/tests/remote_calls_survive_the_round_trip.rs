//! Remote procedure calls: the crate decodes the messages of impacket 0.13, round trips preserve
//! all values, and any bytes lead to an error at most.

mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use smbeam_wire::rpc::srvsvc::{
    self, RemoteTod, RemoteTodResponse, ServerGetInfo, ServerGetInfoResponse, ServerInfo,
    ServerType, ShareEnum, ShareEnumResponse, ShareGetInfo, ShareGetInfoResponse, ShareInfo,
    ShareType, TimeOfDay,
};
use smbeam_wire::rpc::wkssvc::{WkstaGetInfo, WkstaGetInfoResponse, WkstaInfo};
use smbeam_wire::rpc::{
    Bind, BindAck, BindNak, Body, ContextResult, Fault, FaultStatus, Features, Fragments, Header,
    PacketFlags, PacketType, Pdu, PresentationContext, Reason, RejectReason, Request, Response,
    ResultCode, SyntaxId, WinError, request_fragments, response_fragments,
};
use smbeam_wire::{DecodeError, FileTime, Guid};
use support::{Decoder, hex};

/// Sent by impacket: a bind to srvsvc.
const BIND: &str = "\
    05000b03100000004800000001000000b810b810000000000100000000000100c84f324b7016d30112785a47\
    bf6ee18803000000045d888aeb1cc9119fe808002b10486002000000";
/// Sent by impacket: NetrShareEnum at level 1 of `\\srv`.
const SHARE_ENUM: &str = "\
    a9bf00000600000000000000060000005c005c00730072007600000001000000010000005968000000000000\
    00000000ffffffff00000000";
/// Sent by impacket: the response, with two shares. Its padding is not zero.
const SHARE_ENUM_RESPONSE: &str = "\
    0100000001000000c3a90000020000005093000002000000c9d4000000000000020100006db6000003000080\
    fab9000005000000000000000500000064006100740061000000abab06000000000000000600000046006900\
    6c0065007300000005000000000000000500000049005000430024000000abab010000000000000001000000\
    0000bfbf0200000018a800000000000000000000";
/// Sent by impacket: NetrShareGetInfo of `data` at level 2.
const SHARE_GET_INFO: &str = "\
    0000000005000000000000000500000064006100740061000000bfbf02000000";

fn syntax() -> impl Strategy<Value = SyntaxId> {
    (any::<[u8; 16]>(), any::<u16>(), any::<u16>()).prop_map(|(uuid, major, minor)| SyntaxId {
        uuid: Guid(uuid),
        major,
        minor,
    })
}

fn text() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9$ \u{e4}\u{1F600}]{0,12}"
}

fn share() -> impl Strategy<Value = ShareInfo> {
    let texts = (text(), text(), text(), text(), proptest::option::of(text()));
    (texts, any::<[u32; 5]>(), vec(any::<u8>(), 0..20)).prop_map(|(texts, numbers, descriptor)| {
        let (name, comment, path, server_name, password) = texts;
        let [share_type, permissions, max_uses, current_uses, flags] = numbers;
        ShareInfo {
            name,
            share_type: ShareType(share_type),
            comment,
            permissions,
            max_uses,
            current_uses,
            path,
            password,
            server_name,
            flags,
            security_descriptor: descriptor,
        }
    })
}

fn shares(count: usize) -> Vec<ShareInfo> {
    let share = |index| ShareInfo {
        name: format!("share{index}"),
        ..ShareInfo::default()
    };
    (0..count).map(share).collect()
}

#[test]
fn a_bind_of_impacket_is_read_and_written() {
    let bytes = hex(BIND);
    let pdu = Pdu::decode(&bytes).expect("it can be read");
    let expected = Bind {
        max_xmit_frag: 4280,
        max_recv_frag: 4280,
        assoc_group_id: 0,
        contexts: vec![PresentationContext {
            id: 0,
            abstract_syntax: srvsvc::INTERFACE,
            transfer_syntaxes: vec![SyntaxId::NDR32],
        }],
    };
    assert_eq!(pdu.body, Body::Bind(expected));
    let mut again = Vec::new();
    pdu.encode(&mut again);
    assert_eq!(again, bytes);
}

#[test]
fn calls_of_impacket_are_read() {
    let request = ShareEnum::decode(&hex(SHARE_ENUM)).expect("it can be read");
    let expected = ShareEnum {
        server_name: Some("\\\\srv".into()),
        level: 1,
        preferred_length: srvsvc::ALL,
        resume_handle: None,
    };
    assert_eq!(request, expected);

    let response = ShareEnumResponse::decode(&hex(SHARE_ENUM_RESPONSE)).expect("it can be read");
    let shares = response.shares.expect("a list is present");
    let decoded: Vec<_> = shares
        .iter()
        .map(|share| (&*share.name, share.share_type, &*share.comment))
        .collect();
    let ipc = ShareType::IPC | ShareType::SPECIAL;
    assert_eq!(
        decoded,
        [("data", ShareType::DISKTREE, "Files"), ("IPC$", ipc, "")]
    );
    assert_eq!(response.total_entries, 2);
    assert_eq!(response.resume_handle, Some(0));
    assert_eq!(response.status, WinError::SUCCESS);

    let request = ShareGetInfo::decode(&hex(SHARE_GET_INFO)).expect("it can be read");
    assert_eq!((&*request.share, request.level), ("data", 2));
}

#[test]
fn a_feature_negotiation_differs_from_a_transfer_syntax() {
    assert_eq!(
        SyntaxId::of_features(Features(3)).features(),
        Some(Features(3))
    );
    assert_eq!(SyntaxId::NDR32.features(), None);
    assert_eq!(SyntaxId::NDR64.features(), None);
}

#[test]
fn a_big_endian_fragment_is_measured_and_refused() {
    let mut bytes = hex(BIND);
    bytes[4] = 0;
    bytes[8..10].copy_from_slice(&0x48_u16.to_be_bytes());
    let header = Header::decode(&bytes).expect("it can be measured");
    assert!(header.is_big_endian);
    assert_eq!(header.frag_length, 0x48);
    assert_eq!(header.call_id, 0x0100_0000);
    let refused = Pdu::decode(&bytes);
    assert!(matches!(
        refused,
        Err(DecodeError::Invalid { field: "drep", .. })
    ));
}

#[test]
fn authentication_data_are_refused() {
    let mut bytes = hex(BIND);
    bytes[10] = 8;
    let refused = Pdu::decode(&bytes);
    let field = "auth_length";
    assert_eq!(refused, Err(DecodeError::Invalid { field, value: 8 }));
}

#[test]
fn a_count_beyond_the_stub_is_refused_before_an_allocation() {
    let mut bytes = hex(SHARE_ENUM_RESPONSE);
    bytes[20..24].copy_from_slice(&u32::MAX.to_le_bytes());
    let refused = ShareEnumResponse::decode(&bytes);
    assert!(matches!(refused, Err(DecodeError::Truncated { .. })));
}

#[test]
fn an_unsupported_level_has_no_list() {
    let request = ShareEnum {
        server_name: None,
        level: 77,
        preferred_length: srvsvc::ALL,
        resume_handle: None,
    };
    assert_eq!(ShareEnum::decode(&request.encode()), Ok(request));
    let response = ShareEnumResponse {
        level: 77,
        shares: None,
        total_entries: 0,
        resume_handle: None,
        status: WinError::INVALID_LEVEL,
    };
    assert_eq!(ShareEnumResponse::decode(&response.encode()), Ok(response));
}

#[test]
fn the_other_calls_survive_the_round_trip() {
    let server_name = Some("\\\\10.0.0.1".to_owned());
    let request = RemoteTod {
        server_name: server_name.clone(),
    };
    assert_eq!(RemoteTod::decode(&request.encode()), Ok(request));
    let response = RemoteTodResponse {
        time: Some(TimeOfDay::at(FileTime::from_unix(1_700_000_000, 0), 5)),
        status: WinError::SUCCESS,
    };
    assert_eq!(RemoteTodResponse::decode(&response.encode()), Ok(response));
    for level in [100, 101, 102, 103, 77] {
        let request = ServerGetInfo {
            server_name: server_name.clone(),
            level,
        };
        assert_eq!(ServerGetInfo::decode(&request.encode()), Ok(request));
        let request = WkstaGetInfo {
            server_name: server_name.clone(),
            level,
        };
        assert_eq!(WkstaGetInfo::decode(&request.encode()), Ok(request));
        let status = WinError::INVALID_LEVEL;
        let server = None;
        let response = ServerGetInfoResponse {
            level,
            server,
            status,
        };
        let decoded = ServerGetInfoResponse::decode(&response.encode());
        assert_eq!(decoded, Ok(response));
        let info = None;
        let response = WkstaGetInfoResponse {
            level,
            info,
            status,
        };
        let decoded = WkstaGetInfoResponse::decode(&response.encode());
        assert_eq!(decoded, Ok(response));
    }
    let mut server = ServerInfo {
        platform: 500,
        name: "BEAM".into(),
        ..ServerInfo::default()
    };
    let mut machine = WkstaInfo {
        platform: 500,
        computer: "BEAM".into(),
        domain: "WORKGROUP".into(),
        version_major: 6,
        ..WkstaInfo::default()
    };
    for level in 100..=102 {
        if level >= 101 {
            (server.version_major, server.version_minor) = (6, 1);
            server.server_type = ServerType::SERVER | ServerType::NT;
            server.comment = "a comment".into();
            machine.lan_root = "C:\\".into();
        }
        if level >= 102 {
            (server.users, server.announce) = (u32::MAX, 240);
            server.user_path = "C:\\".into();
            machine.logged_on_users = 3;
        }
        let response = ServerGetInfoResponse {
            level,
            server: Some(server.clone()),
            status: WinError::SUCCESS,
        };
        let decoded = ServerGetInfoResponse::decode(&response.encode());
        assert_eq!(decoded, Ok(response));
        let response = WkstaGetInfoResponse {
            level,
            info: Some(machine.clone()),
            status: WinError::SUCCESS,
        };
        let decoded = WkstaGetInfoResponse::decode(&response.encode());
        assert_eq!(decoded, Ok(response));
    }
}

#[test]
fn a_long_response_is_fragmented_and_reassembled() {
    let response = ShareEnumResponse {
        level: 0,
        shares: Some(shares(500)),
        total_entries: 500,
        resume_handle: Some(0),
        status: WinError::SUCCESS,
    };
    let stub = response.encode();
    let fragments = response_fragments(9, 0, &stub, 1432);
    assert!(fragments.len() > 10);
    let mut stream = Fragments::new(1432);
    let mut again = Vec::new();
    for (index, byte) in fragments.concat().iter().enumerate() {
        stream.push(&[*byte]);
        let Some(fragment) = stream.take().expect("every fragment can be read") else {
            continue;
        };
        let pdu = Pdu::decode(&fragment).expect("every fragment can be read");
        let Body::Response(part) = pdu.body else {
            panic!("a response is made of responses");
        };
        let is_first = again.is_empty();
        assert_eq!(pdu.flags.contains(PacketFlags::FIRST_FRAG), is_first);
        assert_eq!(part.alloc_hint as usize, stub.len() - again.len());
        again.extend_from_slice(part.stub);
        let is_last = index + 1 == fragments.concat().len();
        assert_eq!(pdu.flags.contains(PacketFlags::LAST_FRAG), is_last);
    }
    assert_eq!(stream.pending(), 0);
    assert_eq!(ShareEnumResponse::decode(&again), Ok(response));
}

#[test]
fn a_fragment_that_is_too_long_is_refused_by_its_header() {
    let mut stream = Fragments::new(64);
    stream.push(&hex(BIND));
    assert!(matches!(
        stream.take(),
        Err(DecodeError::Invalid {
            field: "frag_length",
            value: 0x48
        })
    ));
}

fn survives(pdu: &Pdu<'_>) {
    let mut bytes = Vec::new();
    pdu.encode(&mut bytes);
    assert_eq!(Pdu::decode(&bytes).as_ref(), Ok(pdu));
}

/// Every decoder of a buffer.
const DECODERS: [Decoder; 11] = [
    |bytes| Pdu::decode(bytes).map(|_| ()),
    |bytes| ShareEnum::decode(bytes).map(|_| ()),
    |bytes| ShareEnumResponse::decode(bytes).map(|_| ()),
    |bytes| ShareGetInfo::decode(bytes).map(|_| ()),
    |bytes| ShareGetInfoResponse::decode(bytes).map(|_| ()),
    |bytes| ServerGetInfo::decode(bytes).map(|_| ()),
    |bytes| ServerGetInfoResponse::decode(bytes).map(|_| ()),
    |bytes| RemoteTod::decode(bytes).map(|_| ()),
    |bytes| RemoteTodResponse::decode(bytes).map(|_| ()),
    |bytes| WkstaGetInfo::decode(bytes).map(|_| ()),
    |bytes| WkstaGetInfoResponse::decode(bytes).map(|_| ()),
];

proptest! {
    #[test]
    fn binds_survive(
        call_id: u32,
        sizes: (u16, u16, u32),
        address in "[A-Z\\\\]{0,9}",
        contexts in vec((any::<u16>(), syntax(), vec(syntax(), 0..4)), 0..5),
        results in vec((any::<u16>(), any::<u16>(), syntax()), 0..5),
        versions in vec(any::<(u8, u8)>(), 0..3),
    ) {
        let (max_xmit_frag, max_recv_frag, assoc_group_id) = sizes;
        let contexts = contexts
            .into_iter()
            .map(|(id, abstract_syntax, transfer_syntaxes)| PresentationContext {
                id,
                abstract_syntax,
                transfer_syntaxes,
            })
            .collect();
        let bind = Bind { max_xmit_frag, max_recv_frag, assoc_group_id, contexts };
        let results = results
            .into_iter()
            .map(|(result, reason, transfer_syntax)| ContextResult {
                result: ResultCode(result),
                reason: Reason(reason),
                transfer_syntax,
            })
            .collect();
        let secondary_address = address;
        let ack = BindAck {
            max_xmit_frag,
            max_recv_frag,
            assoc_group_id,
            secondary_address,
            results,
        };
        let nak = BindNak { reason: RejectReason(max_recv_frag), versions };
        let flags = PacketFlags::WHOLE;
        for body in [
            Body::Bind(bind.clone()),
            Body::AlterContext(bind),
            Body::BindAck(ack.clone()),
            Body::AlterContextResp(ack),
            Body::BindNak(nak),
        ] {
            survives(&Pdu { call_id, flags, body });
        }
    }

    #[test]
    fn calls_survive(
        call_id: u32,
        numbers: (u32, u16, u16, u8),
        object in proptest::option::of(any::<[u8; 16]>()),
        stub in vec(any::<u8>(), 0..200),
    ) {
        let (alloc_hint, context_id, opnum, cancel_count) = numbers;
        let mut flags = PacketFlags::WHOLE;
        let other = Body::Other(PacketType::ORPHANED, &stub);
        survives(&Pdu { call_id, flags, body: other });
        let response = Response { alloc_hint, context_id, cancel_count, stub: &stub };
        survives(&Pdu { call_id, flags, body: Body::Response(response) });
        let fault = Fault { context_id, cancel_count, status: FaultStatus(alloc_hint) };
        survives(&Pdu { call_id, flags, body: Body::Fault(fault) });
        let object = object.map(Guid);
        let request = Request { alloc_hint, context_id, opnum, object, stub: &stub };
        if object.is_some() {
            flags |= PacketFlags::OBJECT_UUID;
        }
        survives(&Pdu { call_id, flags, body: Body::Request(request) });
        let fragments = request_fragments(call_id, context_id, opnum, &stub, 64);
        let stubs: Vec<u8> = fragments
            .iter()
            .flat_map(|fragment| {
                assert!(fragment.len() <= 64);
                fragment[Request::HEAD_LEN..].to_vec()
            })
            .collect();
        prop_assert_eq!(stubs, stub);
    }

    #[test]
    fn lists_of_shares_survive(
        list in vec(share(), 0..5),
        numbers: (u32, Option<u32>, u32),
        name in proptest::option::of(text()),
    ) {
        let (total_entries, resume_handle, status) = numbers;
        for level in [0, 1, 2, 501, 502, 503, 1004, 1005, 1006, 1501] {
            let request = ShareEnum {
                server_name: name.clone(),
                level,
                preferred_length: status,
                resume_handle,
            };
            prop_assert_eq!(ShareEnum::decode(&request.encode()), Ok(request));
            let response = ShareEnumResponse {
                level,
                shares: Some(list.clone()),
                total_entries,
                resume_handle,
                status: WinError(status),
            };
            let once = ShareEnumResponse::decode(&response.encode()).expect("it can be read");
            let twice = ShareEnumResponse::decode(&once.encode());
            prop_assert_eq!(twice.as_ref(), Ok(&once));
            let decoded = once.shares.as_ref().expect("a list is present");
            prop_assert_eq!(decoded.len(), list.len());
            if level == 503 {
                let mut whole = response.clone();
                whole.shares.iter_mut().flatten().for_each(|share| share.flags = 0);
                prop_assert_eq!(&once, &whole);
            }
            for share in list.iter().take(1) {
                let response = ShareGetInfoResponse {
                    level,
                    share: Some(share.clone()),
                    status: WinError(status),
                };
                let one = ShareGetInfoResponse::decode(&response.encode()).expect("it can be read");
                prop_assert_eq!(one.share.as_ref(), decoded.first());
            }
        }
        let share = name.unwrap_or_default();
        let request = ShareGetInfo { server_name: None, share, level: status };
        prop_assert_eq!(ShareGetInfo::decode(&request.encode()), Ok(request));
    }

    #[test]
    fn any_bytes_never_panic(bytes in vec(any::<u8>(), 0..300)) {
        for decode in DECODERS {
            let _ = decode(&bytes);
        }
        let mut stream = Fragments::new(1432);
        stream.push(&bytes);
        while let Ok(Some(fragment)) = stream.take() {
            prop_assert!(!fragment.is_empty());
        }
    }

    /// Small integers, so that counts often equal the number of elements.
    #[test]
    fn small_numbers_never_panic(bytes in vec(prop_oneof![3 => Just(0_u8), 1 => 0..6_u8], 0..300)) {
        for decode in DECODERS {
            let _ = decode(&bytes);
        }
    }

    #[test]
    fn a_fragment_with_any_change_never_panics(
        at in 0..72_usize,
        byte: u8,
        packet_type in 0..20_u8,
    ) {
        let mut bytes = hex(BIND);
        bytes[2] = packet_type;
        bytes[at] = byte;
        let _ = Pdu::decode(&bytes);
    }
}
