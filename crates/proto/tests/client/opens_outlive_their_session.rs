//! Leases and durable opens are requested as the dialect requires, and a new login takes the place
//! of a lost session.

use proto::client::config::Protection;
use proto::client::request::{
    Create, Created, Durability, DurableGrant, LeaseRequest, Reply, Step,
};
use proto::client::{Config, Request, Role, Violation};
use wire::access::OplockLevel;
use wire::create_context::{
    DurableFlags, DurableReconnect, DurableReconnectV2, DurableRequestV2, DurableResponseV2, Lease,
    LeaseFlags, LeaseState, LeaseV2, RawContext, find, name,
};
use wire::dialect::Dialect;
use wire::{FileId, Guid, SessionId, Status, create};

use crate::forge::{alone_with, created, header, headers, message};
use crate::harness::Rig;
use crate::link::{Link, config, create as plain};

const KEY: Guid = Guid([3; 16]);
const PARENT: Guid = Guid([4; 16]);
const GUID: Guid = Guid([5; 16]);
const ID: FileId = FileId {
    persistent: 1,
    volatile: 2,
};

/// Names and data of create contexts.
type Contexts = Vec<(Vec<u8>, Vec<u8>)>;

fn of(dialect: Dialect) -> Config {
    Config {
        dialects: vec![dialect],
        ..config()
    }
}

fn leased(durable: Durability) -> Create {
    Create {
        oplock: OplockLevel::LEASE,
        lease: Some(LeaseRequest {
            parent: Some(PARENT),
            epoch: 6,
            ..LeaseRequest::new(KEY, 7)
        }),
        create_guid: Some(GUID),
        durable,
        ..plain("a")
    }
}

/// Sends a CREATE. Returns its contexts, and the result for a response with these contexts.
fn open(
    dialect: Dialect,
    asked: Create,
    contexts: &[(&'static [u8], Vec<u8>)],
) -> (Contexts, Created) {
    let (mut link, tree) = alone_with(of(dialect));
    let id = link.submit(Request::new(Some(tree), vec![Step::Create(asked)]));
    let frame = link.outbox.pop_front().expect("a CREATE");
    let request = create::Request::decode(&frame).expect("a CREATE");
    let sent = request.contexts.iter();
    let sent = sent
        .map(|it| (it.name.to_vec(), it.data.to_vec()))
        .collect();
    let contexts = contexts
        .iter()
        .map(|(name, data)| RawContext { name, data });
    let response = create::Response {
        oplock_level: OplockLevel::LEASE,
        ..created(contexts.collect())
    };
    let answer = header(&headers(&frame)[0], Status::SUCCESS);
    link.hear(message(&answer, |bytes| response.encode(bytes)));
    match link.answers.remove(&id).expect("an answer").remove(0) {
        Ok(Reply::Created(created)) => (sent, created),
        other => panic!("{other:?}"),
    }
}

fn lease(state: u32, v2: Option<LeaseV2>) -> Vec<u8> {
    let lease = Lease {
        lease_key: KEY,
        lease_state: LeaseState(state),
        lease_flags: LeaseFlags::NONE,
        v2,
    };
    lease.encode()
}

fn context(contexts: &[(Vec<u8>, Vec<u8>)], wanted: &[u8]) -> Vec<u8> {
    let raw: Vec<_> = contexts
        .iter()
        .map(|(name, data)| RawContext { name, data })
        .collect();
    let data = find(&raw, wanted);
    data.unwrap_or_else(|| panic!("{wanted:?} in {contexts:?}"))
        .to_vec()
}

#[test]
fn dialects_3_request_version_2() {
    let granted = DurableResponseV2 {
        timeout_ms: 60_000,
        flags: DurableFlags::NONE,
    };
    let v2 = LeaseV2 {
        parent_lease_key: Guid::default(),
        epoch: 9,
    };
    let response = [
        (name::LEASE, lease(3, Some(v2))),
        (name::DURABLE_REQUEST_V2, granted.encode()),
    ];
    for dialect in [Dialect::SMB_3_0, Dialect::SMB_3_1_1] {
        let (sent, created) = open(dialect, leased(Durability::Request), &response);
        assert_eq!(sent.len(), 2);
        let asked = DurableRequestV2::decode(&context(&sent, name::DURABLE_REQUEST_V2)).unwrap();
        assert_eq!((asked.create_guid, asked.timeout_ms), (GUID, 0));
        let asked = Lease::decode(&context(&sent, name::LEASE)).unwrap();
        assert_eq!((asked.lease_key, asked.lease_state), (KEY, LeaseState(7)));
        assert_eq!(asked.lease_flags, LeaseFlags::PARENT_LEASE_KEY_SET);
        let v2 = asked.v2.expect("version 2");
        assert_eq!((v2.parent_lease_key, v2.epoch), (PARENT, 6));
        assert_eq!(
            (created.lease_state, created.lease_epoch),
            (Some(3), Some(9))
        );
        let grant = DurableGrant { timeout_ms: 60_000 };
        assert_eq!(created.durable, Some(grant));
        // The context serves the replay of the CREATE alone.
        let (sent, created) = open(dialect, leased(Durability::None), &response);
        assert_eq!((sent.len(), created.durable), (2, None));
    }
}

#[test]
fn dialect_2_1_requests_version_1() {
    let response = [
        (name::LEASE, lease(7, None)),
        (name::DURABLE_REQUEST, vec![0; 8]),
    ];
    let (sent, created) = open(Dialect::SMB_2_1, leased(Durability::Request), &response);
    assert_eq!(context(&sent, name::DURABLE_REQUEST), [0; 16]);
    let asked = Lease::decode(&context(&sent, name::LEASE)).unwrap();
    assert_eq!((asked.v2, asked.lease_flags), (None, LeaseFlags::NONE));
    assert_eq!((created.lease_state, created.lease_epoch), (Some(7), None));
    assert_eq!(created.durable, Some(DurableGrant { timeout_ms: 0 }));
    let (_, created) = open(
        Dialect::SMB_2_1,
        leased(Durability::Request),
        &response[..1],
    );
    assert_eq!(created.durable, None, "the server grants none");
}

#[test]
fn a_reconnect_names_the_open() {
    let reconnect = leased(Durability::Reconnect(ID));
    let (sent, created) = open(Dialect::SMB_3_1_1, reconnect.clone(), &[]);
    let asked = DurableReconnectV2::decode(&context(&sent, name::DURABLE_RECONNECT_V2)).unwrap();
    assert_eq!((asked.file_id, asked.create_guid), (ID, GUID));
    assert_eq!((sent.len(), created.durable), (2, None));
    let (sent, _) = open(Dialect::SMB_2_1, reconnect, &[]);
    let asked = DurableReconnect::decode(&context(&sent, name::DURABLE_RECONNECT)).unwrap();
    assert_eq!((asked.file_id, sent.len()), (ID, 2));
}

#[test]
fn a_login_in_place_of_a_lost_session_ends_that_one() {
    for protection in [Protection::AsAsked, Protection::Sign, Protection::Encrypt] {
        let mut rig = Rig::new(|_| {});
        let config = Config {
            protection,
            ..config()
        };
        let (mut first, tree) = Link::in_share(&mut rig, config.clone());
        let exclusive = Create {
            share: wire::access::ShareAccess::NONE,
            ..plain("a")
        };
        let opened = first.ask_one(&mut rig, Some(tree), Step::Create(exclusive.clone()));
        assert!(opened.is_ok(), "{opened:?}");
        let lost = first.session.clone().expect("it is logged in");
        // The client sees the loss, and the server does not.
        first.call(proto::client::Connection::closed);
        assert_eq!(lost.channel_sequence(), 1);
        let mut second = Link::new(&mut rig, config, Role::Resuming(lost.clone()));
        second.run(&mut rig);
        assert_eq!(second.ended, None, "{protection:?}");
        let session = second.session.clone().expect("it is logged in");
        assert!(session.id != lost.id && session.id != SessionId(0));
        assert_eq!(session.channel_sequence(), 1, "the server may remember it");
        let tree = second.enter(&mut rig, "files");
        let opened = second.ask_one(&mut rig, Some(tree), Step::Create(exclusive));
        assert!(
            opened.is_ok(),
            "the open of the lost session is closed: {opened:?}"
        );
    }
}

#[test]
fn a_session_is_not_replaced_by_a_weaker_one() {
    let (protected, plain) = (Protection::Encrypt, Protection::AsAsked);
    for (before, after, dialect) in [
        (protected, plain, Dialect::SMB_3_1_1),
        (plain, protected, Dialect::SMB_3_1_1),
        (plain, plain, Dialect::SMB_3_0),
    ] {
        let mut rig = Rig::new(|_| {});
        let first = Link::logged_in(
            &mut rig,
            Config {
                protection: before,
                ..config()
            },
        );
        let lost = first.session.clone().expect("it is logged in");
        let next = Config {
            protection: after,
            ..of(dialect)
        };
        let mut second = Link::new(&mut rig, next, Role::Resuming(lost));
        second.run(&mut rig);
        assert!(second.session.is_none());
        assert!(
            matches!(
                second.ended,
                Some(Violation::LoginUntrusted(_) | Violation::NegotiateTampered(_))
            ),
            "{:?}",
            second.ended
        );
    }
}
