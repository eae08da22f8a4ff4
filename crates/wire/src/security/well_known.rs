//! Users and groups that exist on every computer, with their names on Windows. \[MS-DTYP\] 2.4.2.4

use super::sid::Sid;

/// A user or group that exists on every computer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WellKnownSid {
    /// The SID.
    pub sid: Sid,
    /// Name of the domain, such as `BUILTIN`; empty for SIDs of no domain.
    pub domain: &'static str,
    /// Name of the user or group without the domain.
    pub name: &'static str,
}

/// The users and groups that exist on every computer and appear in descriptors of files.
pub const WELL_KNOWN: [WellKnownSid; 15] = [
    known(Sid::EVERYONE, "", "Everyone"),
    known(Sid::CREATOR_OWNER, "", "CREATOR OWNER"),
    known(Sid::CREATOR_GROUP, "", "CREATOR GROUP"),
    known(Sid::OWNER_RIGHTS, "", "OWNER RIGHTS"),
    known(Sid::NETWORK, NT_AUTHORITY, "NETWORK"),
    known(Sid::INTERACTIVE, NT_AUTHORITY, "INTERACTIVE"),
    known(Sid::ANONYMOUS, NT_AUTHORITY, "ANONYMOUS LOGON"),
    known(
        Sid::AUTHENTICATED_USERS,
        NT_AUTHORITY,
        "Authenticated Users",
    ),
    known(Sid::LOCAL_SYSTEM, NT_AUTHORITY, "SYSTEM"),
    known(Sid::LOCAL_SERVICE, NT_AUTHORITY, "LOCAL SERVICE"),
    known(Sid::NETWORK_SERVICE, NT_AUTHORITY, "NETWORK SERVICE"),
    known(Sid::BUILTIN_ADMINISTRATORS, BUILTIN, "Administrators"),
    known(Sid::BUILTIN_USERS, BUILTIN, "Users"),
    known(Sid::BUILTIN_GUESTS, BUILTIN, "Guests"),
    known(Sid::NULL, "", "NULL SID"),
];

/// The domain of well-known SIDs that Windows itself defines.
const NT_AUTHORITY: &str = "NT AUTHORITY";
/// The domain of the groups of the computer.
const BUILTIN: &str = "BUILTIN";

const fn known(sid: Sid, domain: &'static str, name: &'static str) -> WellKnownSid {
    WellKnownSid { sid, domain, name }
}
