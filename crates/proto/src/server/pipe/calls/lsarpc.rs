//! The local security authority: names of SIDs, SIDs of names, and the domain of the server's
//! accounts. \[MS-LSAT\] 3.1.4, \[MS-LSAD\] 3.1.4
//!
//! Only users with a password may ask, so that no stranger lists the accounts of the server: as
//! Windows without "Allow anonymous SID/name translation". The calls without a policy
//! (LsarLookupSids3, LsarLookupNames4) are for members of a domain over a secure channel. Windows
//! and Samba refuse them on a pipe.

mod lookup;
mod policies;

use wire::Status;
use wire::access::AccessMask;
use wire::rpc::FaultStatus;
use wire::rpc::lsarpc::{
    Close, CloseResponse, DomainInformation, InformationClass, LookupNames, LookupSids,
    NamesVersion, OpenPolicy, OpenPolicyResponse, Opnum, PolicyAccess, PolicyHandle,
    PolicyInformation, QueryInformation, QueryInformationResponse, SidsVersion,
};

use super::{Called, Caller};
pub(in crate::server::pipe) use lookup::Lookup;
pub(in crate::server::pipe) use policies::Policies;

/// The rights that a client may ask for.
const GRANTED: PolicyAccess = PolicyAccess(
    PolicyAccess::VIEW_LOCAL_INFORMATION.0
        | PolicyAccess::LOOKUP_NAMES.0
        | PolicyAccess::MAXIMUM_ALLOWED.0
        | AccessMask::READ_CONTROL.0
        | AccessMask::GENERIC_READ.0
        | AccessMask::GENERIC_EXECUTE.0,
);
/// The role of a server that accepts changes of its accounts. \[MS-LSAD\] 2.2.4.9
const PRIMARY: u16 = 3;

pub(super) fn call(
    caller: &Caller<'_>,
    policies: &mut Policies,
    opnum: u16,
    stub: &[u8],
) -> Result<Called, FaultStatus> {
    let bad = |_| FaultStatus::BAD_STUB_DATA;
    let done = |stub| Ok(Called::Done(stub));
    let sids = |version| {
        let request = LookupSids::decode(stub, version).map_err(bad)?;
        policies.check(request.policy)?;
        Ok(lookup::sids(request.sids, request.level, version))
    };
    let names = |version| {
        let request = LookupNames::decode(stub, version).map_err(bad)?;
        policies.check(request.policy)?;
        Ok(lookup::names(request.names, request.level, version))
    };
    match Opnum(opnum) {
        Opnum::OPEN_POLICY => {
            let request = OpenPolicy::decode(stub).map_err(bad)?;
            done(open(caller, policies, request).encode())
        }
        Opnum::OPEN_POLICY_2 => {
            let request = OpenPolicy::decode_2(stub).map_err(bad)?;
            done(open(caller, policies, request).encode())
        }
        Opnum::CLOSE => {
            let request = Close::decode(stub).map_err(bad)?;
            policies.close(request.policy)?;
            let response = CloseResponse {
                policy: PolicyHandle::default(),
                status: Status::SUCCESS,
            };
            done(response.encode())
        }
        Opnum::QUERY_INFORMATION | Opnum::QUERY_INFORMATION_2 => {
            let request = QueryInformation::decode(stub).map_err(bad)?;
            policies.check(request.policy)?;
            done(query(caller, request.class).encode())
        }
        Opnum::LOOKUP_SIDS => sids(SidsVersion::One),
        Opnum::LOOKUP_SIDS_2 => sids(SidsVersion::Two),
        Opnum::LOOKUP_NAMES => names(NamesVersion::One),
        Opnum::LOOKUP_NAMES_2 => names(NamesVersion::Two),
        Opnum::LOOKUP_NAMES_3 => names(NamesVersion::Three),
        Opnum::LOOKUP_SIDS_3 | Opnum::LOOKUP_NAMES_4 => Err(FaultStatus::ACCESS_DENIED),
        _ => Err(FaultStatus::OP_RANGE),
    }
}

fn open(caller: &Caller<'_>, policies: &mut Policies, request: OpenPolicy) -> OpenPolicyResponse {
    let is_allowed = caller.is_named && GRANTED.contains(request.access);
    let opened = match is_allowed {
        true => policies.open(),
        false => Err(Status::ACCESS_DENIED),
    };
    match opened {
        Ok(policy) => OpenPolicyResponse {
            policy,
            status: Status::SUCCESS,
        },
        Err(status) => OpenPolicyResponse {
            policy: PolicyHandle::default(),
            status,
        },
    }
}

/// A server without a domain belongs to a workgroup, which has no SID, as with Samba.
fn query(caller: &Caller<'_>, class: InformationClass) -> QueryInformationResponse {
    let config = &caller.server.settings();
    let workgroup = || DomainInformation {
        name: config.domain.clone(),
        sid: None,
    };
    let information = match class {
        InformationClass::PRIMARY_DOMAIN => PolicyInformation::PrimaryDomain(workgroup()),
        InformationClass::DNS_DOMAIN => PolicyInformation::DnsDomain(workgroup()),
        InformationClass::SERVER_ROLE => PolicyInformation::ServerRole(PRIMARY),
        InformationClass::ACCOUNT_DOMAIN => PolicyInformation::AccountDomain(DomainInformation {
            name: config.name.clone(),
            sid: config.account_domain,
        }),
        _ => {
            return QueryInformationResponse {
                information: None,
                status: Status::INVALID_PARAMETER,
            };
        }
    };
    QueryInformationResponse {
        information: Some(information),
        status: Status::SUCCESS,
    }
}
