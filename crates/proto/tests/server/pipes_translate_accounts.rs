//! lsarpc translates SIDs and names over a pipe, with the help of the driver. Invalid calls and
//! strangers get an error and do no harm.

use std::sync::Arc;

use proto::server::config::{Share, ShareKind};
use wire::rpc::FaultStatus;
use wire::rpc::lsarpc::{
    self, Close, DomainInformation, InformationClass, LookupNames, LookupNamesResponse, LookupSids,
    LookupSidsResponse, NamesVersion, OpenPolicy, OpenPolicyResponse, Opnum, PolicyAccess,
    PolicyHandle, PolicyInformation, QueryInformation, QueryInformationResponse, SidKind,
    SidsVersion,
};
use wire::security::Sid;
use wire::{FileId, Status};

use crate::harness::{Called, Client, Options, Rig, share};

fn rig() -> Rig {
    Rig::new(|config| {
        config.name = "BEAM".to_owned();
        config.domain = "HOME".to_owned();
        config.account_domain = Sid::new(5, &[21, 1, 2, 3]);
        let ipc = Share {
            kind: ShareKind::Pipe,
            guest: true,
            ..share("IPC$")
        };
        config.shares[1] = Arc::new(ipc);
    })
}

/// A client that has bound the interface.
struct Caller {
    rig: Rig,
    client: Client,
    pipe: FileId,
}

impl Caller {
    fn new(user: &str) -> Self {
        let mut rig = rig();
        let mut client = Client::in_share(&mut rig, Options::default(), user, "IPC$");
        let pipe = client.create(&mut rig, "lsarpc");
        client.bind(&mut rig, pipe, lsarpc::INTERFACE);
        Self { rig, client, pipe }
    }

    fn call(&mut self, opnum: Opnum, stub: &[u8]) -> Result<Vec<u8>, FaultStatus> {
        match self.client.call(&mut self.rig, self.pipe, opnum.0, stub) {
            Called::Stub(stub) => Ok(stub),
            Called::Fault(fault) => Err(fault.status),
        }
    }

    fn open(&mut self, access: PolicyAccess) -> OpenPolicyResponse {
        let stub = self.call(Opnum::OPEN_POLICY_2, &OpenPolicy { access }.encode_2());
        OpenPolicyResponse::decode(&stub.expect("a response")).expect("it can be read")
    }

    fn sids(&mut self, request: &LookupSids) -> LookupSidsResponse {
        let stub = self.call(Opnum::LOOKUP_SIDS_2, &request.encode(SidsVersion::Two));
        let response = LookupSidsResponse::decode(&stub.expect("a response"), SidsVersion::Two);
        response.expect("it can be read")
    }
}

fn lookup(policy: PolicyHandle, sids: &[Sid]) -> LookupSids {
    LookupSids {
        policy,
        sids: sids.to_vec(),
        level: 1,
    }
}

#[test]
fn sids_get_names() {
    let mut caller = Caller::new("alice");
    let policy = caller.open(PolicyAccess::LOOKUP_NAMES).policy;
    let sids = [Sid::BUILTIN_USERS, Sid::unix_user(7), Sid::EVERYONE];
    let response = caller.sids(&lookup(policy, &sids));
    assert_eq!(response.status, Status::SOME_NOT_MAPPED);
    let names: Vec<_> = response.names.iter().map(|name| &*name.name).collect();
    assert_eq!(names, ["Users", "S-1-22-1-7", "Everyone"]);
    assert_eq!(response.names[1].kind, SidKind::UNKNOWN);
    assert_eq!(response.domains[0].name, "BUILTIN");
    // The first version, and no SID at all.
    let stub = lookup(policy, &sids).encode(SidsVersion::One);
    let stub = caller.call(Opnum::LOOKUP_SIDS, &stub).expect("a response");
    let first = LookupSidsResponse::decode(&stub, SidsVersion::One);
    assert_eq!(first.expect("it can be read").names, response.names);
    assert_eq!(caller.sids(&lookup(policy, &[])).status, Status::SUCCESS);
}

#[test]
fn names_get_sids_in_every_version() {
    let mut caller = Caller::new("alice");
    let policy = caller.open(PolicyAccess::MAXIMUM_ALLOWED).policy;
    for (opnum, version) in [
        (Opnum::LOOKUP_NAMES, NamesVersion::One),
        (Opnum::LOOKUP_NAMES_2, NamesVersion::Two),
        (Opnum::LOOKUP_NAMES_3, NamesVersion::Three),
    ] {
        let request = LookupNames {
            policy,
            names: vec!["Users".into(), "nothing".into()],
            level: 1,
        };
        let stub = caller.call(opnum, &request.encode(version));
        let response = LookupNamesResponse::decode(&stub.expect("a response"), version);
        let response = response.expect("it can be read");
        assert_eq!(response.status, Status::SOME_NOT_MAPPED);
        assert_eq!(response.mapped_count, 1);
        assert_eq!(response.sids[0].sid, Some(Sid::BUILTIN_USERS));
        assert_eq!(response.sids[1].sid, None);
    }
}

#[test]
fn the_domain_of_the_server_is_described() {
    let mut caller = Caller::new("alice");
    let policy = caller.open(PolicyAccess::VIEW_LOCAL_INFORMATION).policy;
    let mut query = |class| {
        let stub = QueryInformation { policy, class }.encode();
        let stub = caller.call(Opnum::QUERY_INFORMATION, &stub);
        QueryInformationResponse::decode(&stub.expect("a response")).expect("it can be read")
    };
    let workgroup = DomainInformation {
        name: "HOME".into(),
        sid: None,
    };
    let own = DomainInformation {
        name: "BEAM".into(),
        sid: Sid::new(5, &[21, 1, 2, 3]),
    };
    for (class, expected) in [
        (
            InformationClass::PRIMARY_DOMAIN,
            PolicyInformation::PrimaryDomain(workgroup.clone()),
        ),
        (
            InformationClass::ACCOUNT_DOMAIN,
            PolicyInformation::AccountDomain(own),
        ),
        (
            InformationClass::SERVER_ROLE,
            PolicyInformation::ServerRole(3),
        ),
        (
            InformationClass::DNS_DOMAIN,
            PolicyInformation::DnsDomain(workgroup),
        ),
    ] {
        assert_eq!(query(class).information, Some(expected));
    }
    assert_eq!(
        query(InformationClass(77)).status,
        Status::INVALID_PARAMETER
    );
}

#[test]
fn strangers_and_writers_get_no_policy() {
    for (user, access, status) in [
        (
            "anonymous",
            PolicyAccess::LOOKUP_NAMES,
            Status::ACCESS_DENIED,
        ),
        ("guest", PolicyAccess::LOOKUP_NAMES, Status::ACCESS_DENIED),
        // POLICY_CREATE_ACCOUNT
        ("alice", PolicyAccess(0x10), Status::ACCESS_DENIED),
        ("alice", PolicyAccess::LOOKUP_NAMES, Status::SUCCESS),
    ] {
        assert_eq!(Caller::new(user).open(access).status, status, "{user}");
    }
}

#[test]
fn policies_are_checked_and_limited() {
    let mut caller = Caller::new("alice");
    let unknown = lookup(PolicyHandle::default(), &[Sid::EVERYONE]).encode(SidsVersion::Two);
    let refused = caller.call(Opnum::LOOKUP_SIDS_2, &unknown);
    assert_eq!(refused, Err(FaultStatus::CONTEXT_MISMATCH));
    let policy = caller.open(PolicyAccess::LOOKUP_NAMES).policy;
    let close = Close { policy }.encode();
    assert!(caller.call(Opnum::CLOSE, &close).is_ok());
    let again = caller.call(Opnum::CLOSE, &close);
    assert_eq!(again, Err(FaultStatus::CONTEXT_MISMATCH));
    let statuses = (0..65).map(|_| caller.open(PolicyAccess::LOOKUP_NAMES).status);
    let statuses: Vec<Status> = statuses.collect();
    assert_eq!(statuses[63], Status::SUCCESS);
    assert_eq!(statuses[64], Status::INSUFFICIENT_RESOURCES);
}

#[test]
fn calls_of_domain_members_and_garbage_get_faults() {
    let mut caller = Caller::new("alice");
    for opnum in [Opnum::LOOKUP_SIDS_3, Opnum::LOOKUP_NAMES_4] {
        assert_eq!(caller.call(opnum, &[]), Err(FaultStatus::ACCESS_DENIED));
    }
    assert_eq!(caller.call(Opnum(99), &[]), Err(FaultStatus::OP_RANGE));
    for opnum in [6, 14, 15, 44, 57, 58, 68] {
        let refused = caller.call(Opnum(opnum), &[0xFF; 60]);
        assert_eq!(refused, Err(FaultStatus::BAD_STUB_DATA), "{opnum}");
    }
    for opnum in [0, 7, 46] {
        let refused = caller.call(Opnum(opnum), &[0xFF; 60]);
        assert_eq!(refused, Err(FaultStatus::CONTEXT_MISMATCH), "{opnum}");
        let refused = caller.call(Opnum(opnum), &[0xFF; 19]);
        assert_eq!(refused, Err(FaultStatus::BAD_STUB_DATA), "{opnum}");
    }
    let policy = caller.open(PolicyAccess::LOOKUP_NAMES).policy;
    let status = caller.sids(&lookup(policy, &[Sid::EVERYONE])).status;
    assert_eq!(status, Status::SUCCESS);
}
