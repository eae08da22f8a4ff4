//! The local security authority: translates SIDs into names and back, and describes the domain of
//! the server. \[MS-LSAT\], \[MS-LSAD\]
//!
//! Each call has two structures, one for the stub of the request and one for the stub of the
//! response. The calls for names exist in several versions with more fields each. Arrays that
//! clients send for the server to fill must be empty.

mod domains;
mod lists;
mod names;
mod policy;
mod sids;

pub use domains::{ReferencedDomain, SidKind};
pub use names::{LookupNames, LookupNamesResponse, NamesVersion, TranslatedSid};
pub use policy::{
    Close, CloseResponse, DomainInformation, InformationClass, OpenPolicy, OpenPolicyResponse,
    PolicyInformation, QueryInformation, QueryInformationResponse,
};
pub use sids::{LookupSids, LookupSidsResponse, SidsVersion, TranslatedName};

use super::SyntaxId;
use super::ndr::{Reader, Writer};
use crate::error::DecodeError;
use crate::ids::Guid;
use crate::open_enum::{open_enum, open_flags};

/// UUID and version of the RPC interface of the local security authority (lsarpc). \[MS-LSAT\] 1.9
pub const INTERFACE: SyntaxId = SyntaxId {
    uuid: Guid([
        0x78, 0x57, 0x34, 0x12, 0x34, 0x12, 0xCD, 0xAB, 0xEF, 0x00, 0x01, 0x23, 0x45, 0x67, 0x89,
        0xAB,
    ]),
    major: 0,
    minor: 0,
};

/// Name of the pipe on IPC$ that carries RPC calls of the local security authority. \[MS-LSAT\] 2.1
pub const PIPE: &str = "lsarpc";

/// Maximum number of SIDs or names of a call that the decoders accept: the number that Windows
/// accepts. \[MS-LSAT\] 2.2.13, 3.1.4.5
pub const LOOKUPS_MAX: usize = 1_000;

open_enum! {
    /// Operation numbers of the calls of the local security authority. \[MS-LSAD\] 3.1.4,
    /// \[MS-LSAT\] 3.1.4
    Opnum(u16) {
        /// LsarClose: closes a policy.
        CLOSE = 0,
        /// LsarOpenPolicy: opens a policy.
        OPEN_POLICY = 6,
        /// LsarQueryInformationPolicy: describes the domain of the server.
        QUERY_INFORMATION = 7,
        /// LsarLookupNames: translates names into relative identifiers.
        LOOKUP_NAMES = 14,
        /// LsarLookupSids: translates SIDs into names.
        LOOKUP_SIDS = 15,
        /// LsarOpenPolicy2: opens a policy.
        OPEN_POLICY_2 = 44,
        /// LsarQueryInformationPolicy2: describes the domain of the server.
        QUERY_INFORMATION_2 = 46,
        /// LsarLookupSids2: translates SIDs into names.
        LOOKUP_SIDS_2 = 57,
        /// LsarLookupNames2: translates names into relative identifiers.
        LOOKUP_NAMES_2 = 58,
        /// LsarLookupNames3: translates names into SIDs.
        LOOKUP_NAMES_3 = 68,
        /// LsarLookupSids3: translates SIDs into names without a policy, for domain members.
        LOOKUP_SIDS_3 = 76,
        /// LsarLookupNames4: translates names into SIDs without a policy, for domain members.
        LOOKUP_NAMES_4 = 77,
    }
}

open_flags! {
    /// Access rights of a policy. \[MS-LSAD\] 2.2.1.1.2
    PolicyAccess(u32) {
        /// The client may read the information of the policy.
        VIEW_LOCAL_INFORMATION = 0x0000_0001,
        /// The client may translate names.
        LOOKUP_NAMES = 0x0000_0800,
        /// The client asks for all rights that it has.
        MAXIMUM_ALLOWED = 0x0200_0000,
    }
}

/// The handle of an open policy. \[MS-LSAD\] 2.2.2.1
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PolicyHandle {
    /// Attributes of the handle; 0 in handles of servers.
    pub attributes: u32,
    /// The number of the policy, which the server chooses.
    pub uuid: Guid,
}

impl PolicyHandle {
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            attributes: reader.u32("PolicyHandle")?,
            uuid: reader.guid("PolicyHandle")?,
        })
    }

    fn put(&self, out: &mut Writer) {
        out.put_u32(self.attributes);
        out.put_guid(&self.uuid);
    }
}

/// Checks the number of SIDs or names of a call.
fn check_count(field: &'static str, count: usize) -> Result<(), DecodeError> {
    match count <= LOOKUPS_MAX {
        true => Ok(()),
        false => Err(DecodeError::Invalid {
            field,
            value: count as u64,
        }),
    }
}
