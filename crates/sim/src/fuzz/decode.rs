//! The decoders: in a target with several, the first byte chooses one. If the result can be
//! encoded, decoding it again must give the same value.

use auth::{Acceptor, Credentials, Framing, Initiator};
use proto::path::{SharePath, StreamName};
use wire::create_context::{
    self, DurableReconnect, DurableReconnectV2, DurableRequestV2, DurableResponseV2, Lease,
    MaximalAccessRequest, MaximalAccessResponse, OnDiskIdResponse, PosixRequest,
};
use wire::fscc::{self, FileInfoClass};
use wire::header::HEADER_LEN;
use wire::negotiate_context::{Compression, Encryption, PreauthIntegrity, RdmaTransforms, Signing};
use wire::reparse::{self, NfsFile, ReparsePoint, Symlink};
use wire::security::{Acl, SecurityDescriptor, Sid};
use wire::text::utf16;
use wire::{
    Header, Utf16, aapl, cancel, change_notify, close, compound, create, echo, error_response,
    flush, fsctl, ioctl, lock, logoff, nbt as session, negotiate, ntlmssp, oplock_break,
    query_directory, query_info, read, server_to_client_notification, session_setup, set_info,
    smb1, spnego, transform, tree_connect, tree_disconnect, write,
};

/// Runs a decoder.
type Decoder = fn(&[u8]);

/// A table of decoders.
macro_rules! decoders {
    ($($decode:path,)*) => {
        &[$((|bytes| { let _ = $decode(bytes); }) as Decoder,)*]
    };
}

/// Decodes, encodes and decodes again.
macro_rules! twice {
    ($type:ty, $bytes:expr) => {
        if let Ok(found) = <$type>::decode($bytes) {
            let mut again = Vec::new();
            found.encode(&mut again);
            assert_eq!(<$type>::decode(&again), Ok(found));
        }
    };
}

const MESSAGES: &[Decoder] = decoders![
    Header::decode,
    negotiate::Request::decode,
    negotiate::Response::decode,
    session_setup::Request::decode,
    session_setup::Response::decode,
    logoff::Request::decode,
    logoff::Response::decode,
    tree_connect::Request::decode,
    tree_connect::Response::decode,
    tree_disconnect::Request::decode,
    tree_disconnect::Response::decode,
    create::Request::decode,
    create::Response::decode,
    close::Request::decode,
    close::Response::decode,
    flush::Request::decode,
    flush::Response::decode,
    read::Request::decode,
    read::Response::decode,
    write::Request::decode,
    write::Response::decode,
    lock::Request::decode,
    lock::Response::decode,
    ioctl::Request::decode,
    ioctl::Response::decode,
    cancel::Request::decode,
    echo::Request::decode,
    echo::Response::decode,
    query_directory::Request::decode,
    query_directory::Response::decode,
    change_notify::Request::decode,
    change_notify::Response::decode,
    query_info::Request::decode,
    query_info::Response::decode,
    set_info::Request::decode,
    set_info::Response::decode,
    oplock_break::Notification::decode,
    oplock_break::Request::decode,
    oplock_break::Response::decode,
    server_to_client_notification::Notification::decode,
    error_response::Response::decode,
    error_response::SymlinkError::decode,
    smb1::Negotiate::decode,
    transform::Transform::decode,
    fsctl::ValidateNegotiateInfoRequest::decode,
    fsctl::ValidateNegotiateInfoResponse::decode,
    fsctl::CopyChunkRequest::decode,
    fsctl::CopyChunkResponse::decode,
    fsctl::ResumeKeyResponse::decode,
    fsctl::AllocatedRange::decode_list,
    fsctl::ZeroData::decode,
    fsctl::NetworkInterface::decode_list,
    fsctl::DuplicateExtents::decode,
    fsctl::DuplicateExtents::decode_ex,
    fsctl::FileRegionsRequest::decode,
    fsctl::FileRegions::decode,
    fsctl::FileLevelTrim::decode,
    fsctl::FileLevelTrimOutput::decode,
    reparse_point,
    names,
];

/// A reparse point survives, and its data are decoded.
fn reparse_point(bytes: &[u8]) {
    let Ok(found) = ReparsePoint::decode(bytes) else {
        return;
    };
    let again = found.encode();
    assert_eq!(ReparsePoint::decode(&again), Ok(found));
    let _ = reparse::symlink_target(&found);
    if let Ok(link) = Symlink::decode(found.data) {
        assert_eq!(Symlink::decode(&link.encode()), Ok(link));
    }
    if let Ok(file) = NfsFile::decode(found.data) {
        let again = file.encode();
        let again = ReparsePoint::decode(&again).map(|reparse| NfsFile::decode(reparse.data));
        assert_eq!(again, Ok(Ok(file)));
    }
}

/// Names of files and streams. A valid name survives as a path of the server.
fn names(bytes: &[u8]) {
    let name = Utf16(bytes);
    if let Ok(path) = SharePath::from_wire(name) {
        let wire = utf16(&path.to_wire());
        assert_eq!(SharePath::from_wire(Utf16(&wire)), Ok(path));
    }
    let _ = SharePath::is_data_stream(name);
    let _ = SharePath::from_wire_target(name);
    let _ = StreamName::from_wire_target(name);
}

/// Runs the decoder that the first byte chooses over the rest.
fn choose(decoders: &[Decoder], input: &[u8]) {
    if let Some((choice, bytes)) = input.split_first() {
        decoders[usize::from(*choice) % decoders.len()](bytes);
    }
}

/// All messages, and the parts of a frame.
pub(super) fn messages(input: &[u8]) {
    choose(MESSAGES, input);
    let members: Vec<_> = compound::Members::new(input).collect();
    assert!(members.len() <= input.len() / HEADER_LEN + 1);
    let _ = transform::split(&mut input.to_vec());
    let count = input.first().copied().unwrap_or(0);
    let _ = error_response::decode_contexts(input, count);
}

/// Security tokens, as data and as input of both ends.
pub(super) fn tokens(input: &[u8]) {
    choose(
        decoders![
            spnego::Token::decode,
            spnego::MechList::decode,
            ntlmssp::Negotiate::decode,
            ntlmssp::Challenge::decode,
            ntlmssp::Authenticate::decode,
            ntlmssp::Ntlmv2Response::decode,
        ],
        input,
    );
    let (now, entropy) = (auth::FileTime(1), [7; 32]);
    let mut acceptor = Acceptor::new(crate::login::Accounts::new(1).current().0);
    for token in pieces(input) {
        let _ = acceptor.step(token, now, &entropy);
    }
    for framing in [Framing::Spnego, Framing::Raw] {
        let mut initiator = Initiator::new(Credentials::Anonymous, "cifs/sim", framing);
        for token in pieces(input) {
            let _ = initiator.step(token, now, &entropy);
        }
    }
}

/// Returns the parts of the input, each after a length of two bytes.
pub(super) fn pieces(input: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut left = input;
    std::iter::from_fn(move || {
        let (length, rest) = left.split_first_chunk::<2>()?;
        let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
        let (piece, rest) = rest.split_at(length);
        left = rest;
        Some(piece)
    })
}

/// The frames of both transports.
pub(super) fn nbt(input: &[u8]) {
    let Some((header, body)) = input.split_first_chunk::<4>() else {
        return;
    };
    if let Ok(found) = session::DirectHeader::decode(*header) {
        assert_eq!(found.encode(), Some(*header));
    }
    if let Ok(found) = session::SessionHeader::decode(*header) {
        assert_eq!(found.encode(), Some(*header));
        let _ = session::SessionResponse::decode(found.packet_type, body);
    }
    let _ = session::SessionRequest::decode(body);
}

/// The create contexts, and the content of each.
pub(super) fn create_contexts(input: &[u8]) {
    const CONTEXTS: &[Decoder] = decoders![
        Lease::decode,
        MaximalAccessRequest::decode,
        MaximalAccessResponse::decode,
        OnDiskIdResponse::decode,
        DurableReconnect::decode,
        DurableRequestV2::decode,
        DurableReconnectV2::decode,
        DurableResponseV2::decode,
        PosixRequest::decode,
        wire::posix::PosixCreateResponse::decode,
        create_context::AllocationSize::decode,
        create_context::Timewarp::decode,
        aapl::AaplRequest::decode,
        aapl::AaplReply::decode,
    ];
    choose(CONTEXTS, input);
    if let Ok(found) = create_context::decode_list(input) {
        let again = create_context::encode_list(&found);
        assert_eq!(create_context::decode_list(&again), Ok(found.clone()));
        for context in found {
            CONTEXTS.iter().for_each(|decode| decode(context.data));
        }
    }
}

/// The negotiate contexts, and the content of each.
pub(super) fn negotiate_contexts(input: &[u8]) {
    choose(
        decoders![
            PreauthIntegrity::decode,
            Encryption::decode,
            Compression::decode,
            RdmaTransforms::decode,
            Signing::decode,
        ],
        input,
    );
    // After a body that offers only 3.1.1: the contexts start at byte 104 of the message.
    let Some((count, list)) = input.split_first() else {
        return;
    };
    let mut message = vec![0; HEADER_LEN];
    let request = negotiate::Request {
        security_mode: wire::dialect::SecurityMode::NONE,
        capabilities: wire::dialect::Capabilities::NONE,
        client_guid: wire::Guid::default(),
        dialects: vec![wire::dialect::Dialect::SMB_3_1_1],
        contexts: Vec::new(),
    };
    request.encode(&mut message);
    let at = HEADER_LEN + 32;
    message[at..at + 2].copy_from_slice(&u16::from(*count).to_le_bytes());
    message.extend(list);
    let _ = negotiate::Request::decode(&message);
}

/// Security descriptors, lists and ids, and the text of a descriptor.
pub(super) fn security(input: &[u8]) {
    twice!(SecurityDescriptor, input);
    twice!(Acl, input);
    twice!(Sid, input);
    if let Ok(mut found) = SecurityDescriptor::decode(input) {
        sddl(&found);
        found.map_generic();
        sddl(&found);
    }
    if let Ok(text) = str::from_utf8(input)
        && let Ok(found) = text.parse()
    {
        assert!(sddl(&found), "a parsed descriptor has a text");
    }
}

/// Prints, parses and prints a descriptor again: both texts are equal. The text has all that
/// decides about access. Returns false if the descriptor has no text.
fn sddl(descriptor: &SecurityDescriptor) -> bool {
    let Some(text) = descriptor.to_sddl() else {
        return false;
    };
    let again: SecurityDescriptor = text.parse().expect("the text of a descriptor");
    assert_eq!(again.to_sddl().as_ref(), Some(&text));
    assert_eq!(again.owner, descriptor.owner);
    assert_eq!(again.group, descriptor.group);
    assert_eq!(again.dacl.is_some(), descriptor.dacl.is_some());
    let entries = |of: &SecurityDescriptor| of.dacl.as_ref().map_or(0, |list| list.aces().len());
    assert_eq!(entries(&again), entries(descriptor));
    true
}

/// Extended attributes: a list without errors is the same after it is encoded.
fn eas(bytes: &[u8]) {
    let found: Vec<_> = fscc::Eas::new(bytes).take(1 << 16).collect();
    assert!(found.len() < 1 << 16, "a list ends");
    let Ok(found) = found.into_iter().collect::<Result<Vec<_>, _>>() else {
        return;
    };
    let mut writer = fscc::EaWriter::new(usize::MAX);
    for ea in &found {
        assert!(writer.push(ea), "a decoded attribute has lengths that fit");
        let _ = fscc::is_valid_ea_name(ea.name);
    }
    let again = writer.finish();
    assert!(fscc::Eas::new(&again).eq(found.into_iter().map(Ok)));
}

/// Names of extended attributes: a list without errors is the same after it is encoded.
fn ea_names(bytes: &[u8]) {
    let found: Vec<_> = fscc::EaNames::new(bytes).take(1 << 16).collect();
    assert!(found.len() < 1 << 16, "a list ends");
    let Ok(found) = found.into_iter().collect::<Result<Vec<_>, _>>() else {
        return;
    };
    let again = fscc::put_ea_names(Vec::new(), &found).expect("decoded names are short");
    assert!(fscc::EaNames::new(&again).eq(found.into_iter().map(Ok)));
}

/// Disk quotas: lists and queries without errors are the same after they are encoded.
fn quotas(bytes: &[u8]) {
    if let Ok(query) = fscc::QuotaQuery::decode(bytes) {
        assert_eq!(fscc::QuotaQuery::decode(&query.encode()), Ok(query));
    }
    if let Ok(sids) = fscc::QuotaSids::new(bytes).collect::<Result<Vec<_>, _>>() {
        let again = fscc::quota_sids(&sids);
        assert!(fscc::QuotaSids::new(&again).eq(sids.into_iter().map(Ok)));
    }
    if let Ok(quotas) = fscc::Quotas::new(bytes).collect::<Result<Vec<_>, _>>() {
        let mut writer = fscc::QuotaWriter::new(usize::MAX);
        assert!(quotas.iter().all(|quota| writer.push(quota)));
        let again = writer.finish();
        assert!(fscc::Quotas::new(&again).eq(quotas.into_iter().map(Ok)));
    }
}

/// Information classes: those that are lists, and those that are one structure.
pub(super) fn fscc(input: &[u8]) {
    let Some((class, bytes)) = input.split_first() else {
        return;
    };
    if let Some(entries) = fscc::DirectoryEntries::new(FileInfoClass(*class), bytes) {
        assert!(entries.take(1 << 16).count() < 1 << 16, "a list ends");
    }
    eas(bytes);
    ea_names(bytes);
    quotas(bytes);
    let _ = fscc::Streams::new(bytes).take(1 << 16).count();
    let _ = fscc::NotifyEntries::new(bytes).take(1 << 16).count();
    choose(
        decoders![
            fscc::FileNameInformation::decode,
            fscc::FileAllInformation::decode,
            fscc::FileRenameInformation::decode,
            fscc::FileRenameInformationEx::decode,
            fscc::FileFsVolumeInformation::decode,
            fscc::FileFsLabelInformation::decode,
            fscc::FileFsAttributeInformation::decode,
            fscc::FileFsControlInformation::decode,
            fscc::FileFsSectorSizeInformation::decode,
            wire::posix::FilePosixInformation::decode,
            wire::posix::FsPosixInformation::decode,
        ],
        input,
    );
    twice!(fscc::FileBasicInformation, bytes);
    twice!(fscc::FileStandardInformation, bytes);
    twice!(fscc::FileNetworkOpenInformation, bytes);
    twice!(fscc::FileDispositionInformation, bytes);
    twice!(fscc::FileStatInformation, bytes);
    twice!(fscc::FileStatLxInformation, bytes);
}
