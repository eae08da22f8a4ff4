//! Security identifiers (SIDs) of users and groups. \[MS-DTYP\] 2.4.2

use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;

/// Maximum number of sub-authorities of a SID. \[MS-DTYP\] 2.4.2.2
const MAX_SUB_AUTHORITIES: usize = 15;
/// Length of a SID before its sub-authorities, in bytes.
const FIXED_LEN: usize = 8;
/// The only revision. \[MS-DTYP\] 2.4.2.2
const REVISION: u8 = 1;
/// 2 to the power of 48, the first number that is too large for an identifier authority.
/// \[MS-DTYP\] 2.4.1
const AUTHORITY_END: u64 = 1 << 48;
/// Samba's identifier authority for Unix users and groups.
const UNIX_AUTHORITY: u64 = 22;
/// The first sub-authority of the SIDs of machines and domains: SECURITY_NT_NON_UNIQUE.
const DOMAIN_RID: u32 = 21;
/// The identifier authority of Windows NT. \[MS-DTYP\] 2.4.1.1
const NT_AUTHORITY: u64 = 5;
/// Sub-authority of NT_AUTHORITY for Unix identifiers: "Services for NFS" of Windows, cifs.ko and
/// macOS use it.
const NFS_RID: u32 = 88;

/// A security identifier (SID): the identity of a user or group, such as S-1-5-18.
/// \[MS-DTYP\] 2.4.2
///
/// Invariants: the authority has 48 bits; sub-authorities from `count` on are 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sid {
    authority: u64,
    sub_authorities: [u32; MAX_SUB_AUTHORITIES],
    count: u8,
}

impl Sid {
    /// SID that stands for no user or group: S-1-0-0. \[MS-DTYP\] 2.4.2.4
    pub const NULL: Self = Self::known(0, &[0]);
    /// SID of the group of all users: S-1-1-0. \[MS-DTYP\] 2.4.2.4
    pub const EVERYONE: Self = Self::known(1, &[0]);
    /// SID that stands for the creator of an object. In an inherited access control entry, the SID
    /// of the creator replaces it: S-1-3-0. \[MS-DTYP\] 2.4.2.4
    pub const CREATOR_OWNER: Self = Self::known(3, &[0]);
    /// SID that stands for the primary group of the creator of an object. In an inherited access
    /// control entry, the SID of that group replaces it: S-1-3-1. \[MS-DTYP\] 2.4.2.4
    pub const CREATOR_GROUP: Self = Self::known(3, &[1]);
    /// SID that stands for the current owner of the object: S-1-3-4. \[MS-DTYP\] 2.4.2.4
    pub const OWNER_RIGHTS: Self = Self::known(3, &[4]);
    /// SID of the group of users that logged on over a network: S-1-5-2. \[MS-DTYP\] 2.4.2.4
    pub const NETWORK: Self = Self::known(NT_AUTHORITY, &[2]);
    /// SID of the group of users that logged on at the computer itself: S-1-5-4. \[MS-DTYP\]
    /// 2.4.2.4
    pub const INTERACTIVE: Self = Self::known(NT_AUTHORITY, &[4]);
    /// SID of the user of an anonymous logon: S-1-5-7. \[MS-DTYP\] 2.4.2.4
    pub const ANONYMOUS: Self = Self::known(NT_AUTHORITY, &[7]);
    /// SID of the group of users that logged on with a name: S-1-5-11. \[MS-DTYP\] 2.4.2.4
    pub const AUTHENTICATED_USERS: Self = Self::known(NT_AUTHORITY, &[11]);
    /// SID of the account of the operating system: S-1-5-18. \[MS-DTYP\] 2.4.2.4
    pub const LOCAL_SYSTEM: Self = Self::known(NT_AUTHORITY, &[18]);
    /// SID of the account of services without rights of the system: S-1-5-19. \[MS-DTYP\] 2.4.2.4
    pub const LOCAL_SERVICE: Self = Self::known(NT_AUTHORITY, &[19]);
    /// SID of the account of services that log on to other computers: S-1-5-20. \[MS-DTYP\] 2.4.2.4
    pub const NETWORK_SERVICE: Self = Self::known(NT_AUTHORITY, &[20]);
    /// SID of the group of the computer's administrators: S-1-5-32-544. \[MS-DTYP\] 2.4.2.4
    pub const BUILTIN_ADMINISTRATORS: Self = Self::known(NT_AUTHORITY, &[32, 544]);
    /// SID of the group of the computer's users: S-1-5-32-545. \[MS-DTYP\] 2.4.2.4
    pub const BUILTIN_USERS: Self = Self::known(NT_AUTHORITY, &[32, 545]);
    /// SID of the group of the computer's guests: S-1-5-32-546. \[MS-DTYP\] 2.4.2.4
    pub const BUILTIN_GUESTS: Self = Self::known(NT_AUTHORITY, &[32, 546]);

    const fn known(authority: u64, sub_authorities: &[u32]) -> Self {
        let mut sid = Self {
            authority,
            sub_authorities: [0; MAX_SUB_AUTHORITIES],
            count: sub_authorities.len() as u8,
        };
        let mut index = 0;
        while index < sub_authorities.len() {
            sid.sub_authorities[index] = sub_authorities[index];
            index += 1;
        }
        sid
    }

    /// Makes a SID from its identifier authority and sub-authorities, which are 5 and 18 in
    /// S-1-5-18. `None` when the authority has more than 48 bits, or for more than 15
    /// sub-authorities.
    pub fn new(authority: u64, sub_authorities: &[u32]) -> Option<Self> {
        let is_valid = authority < AUTHORITY_END && sub_authorities.len() <= MAX_SUB_AUTHORITIES;
        is_valid.then(|| Self::known(authority, sub_authorities))
    }

    /// Makes the SID of a Unix user as Samba does: S-1-22-1-uid.
    pub const fn unix_user(uid: u32) -> Self {
        Self::known(UNIX_AUTHORITY, &[1, uid])
    }

    /// Makes the SID of a Unix group as Samba does: S-1-22-2-gid.
    pub const fn unix_group(gid: u32) -> Self {
        Self::known(UNIX_AUTHORITY, &[2, gid])
    }

    /// Makes the SID of a Unix user in the form of the NFS service of Windows: S-1-5-88-1-uid.
    /// cifs.ko sends it for a new owner.
    pub const fn nfs_user(uid: u32) -> Self {
        Self::known(NT_AUTHORITY, &[NFS_RID, 1, uid])
    }

    /// Makes the SID of a Unix group in the form of the NFS service of Windows: S-1-5-88-2-gid.
    pub const fn nfs_group(gid: u32) -> Self {
        Self::known(NT_AUTHORITY, &[NFS_RID, 2, gid])
    }

    /// Makes the SID that stands for a Unix mode in an access control entry: S-1-5-88-3-mode.
    pub const fn nfs_mode(mode: u32) -> Self {
        Self::known(NT_AUTHORITY, &[NFS_RID, 3, mode])
    }

    /// Returns the Unix user identifier in a SID S-1-22-1-uid (Samba) or S-1-5-88-1-uid (NFS
    /// service of Windows); `None` for another SID.
    pub fn to_unix_user(&self) -> Option<u32> {
        self.unix_id(1)
    }

    /// Returns the Unix group identifier in a SID S-1-22-2-gid (Samba) or S-1-5-88-2-gid (NFS
    /// service of Windows); `None` for another SID.
    pub fn to_unix_group(&self) -> Option<u32> {
        self.unix_id(2)
    }

    fn unix_id(&self, kind: u32) -> Option<u32> {
        match (self.authority, self.sub_authorities()) {
            (UNIX_AUTHORITY, [found, id]) if *found == kind => Some(*id),
            (NT_AUTHORITY, [NFS_RID, found, id]) if *found == kind => Some(*id),
            _ => None,
        }
    }

    /// Returns the Unix mode in a SID S-1-5-88-3-mode, which a client puts into an access control
    /// entry to set the mode of a file; `None` for another SID.
    pub fn to_unix_mode(&self) -> Option<u32> {
        match (self.authority, self.sub_authorities()) {
            (NT_AUTHORITY, [NFS_RID, 3, mode]) => Some(*mode),
            _ => None,
        }
    }

    /// Returns whether the SID is that of an account of a machine or a domain: S-1-5-21 and more.
    pub fn is_of_machine_or_domain(&self) -> bool {
        self.authority == NT_AUTHORITY && self.sub_authorities().first() == Some(&DOMAIN_RID)
    }

    /// Returns the identifier authority, a number of 48 bits, which is 5 in S-1-5-18.
    pub fn authority(&self) -> u64 {
        self.authority
    }

    /// Returns the sub-authorities, at most 15. The last one is the relative identifier (RID).
    pub fn sub_authorities(&self) -> &[u32] {
        &self.sub_authorities[..usize::from(self.count)]
    }

    /// Returns the SID with `rid` as a further sub-authority: a user or group of the domain that
    /// this SID names. `None` when the SID already has 15.
    pub fn with_rid(&self, rid: u32) -> Option<Self> {
        let mut sid = *self;
        *sid.sub_authorities.get_mut(usize::from(self.count))? = rid;
        sid.count += 1;
        Some(sid)
    }

    /// Returns the SID without its last sub-authority: the domain of a user or group. `None` for a
    /// SID without sub-authorities.
    pub fn domain(&self) -> Option<Self> {
        let (_, rest) = self.sub_authorities().split_last()?;
        Some(Self::known(self.authority, rest))
    }

    /// Returns the length of the encoded SID in bytes, 8 to 68.
    pub fn encoded_len(&self) -> usize {
        FIXED_LEN + 4 * usize::from(self.count)
    }

    /// Decodes the SID at the start of `bytes` and ignores later bytes. Fails when `bytes` is too
    /// short, the revision is not 1, or the SID has more than 15 sub-authorities.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::read(&mut Reader::new(bytes))
    }

    /// Decodes a SID from the current position of `reader`. Fails when too few bytes are left, the
    /// revision is not 1, or the SID has more than 15 sub-authorities. \[MS-DTYP\] 2.4.2.2
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let revision = reader.u8("Revision")?;
        if revision != REVISION {
            return Err(invalid("Revision", revision));
        }
        let count = reader.u8("SubAuthorityCount")?;
        let [a, b, c, d, e, f] = reader.array("IdentifierAuthority")?;
        let mut sid = Self::known(u64::from_be_bytes([0, 0, a, b, c, d, e, f]), &[]);
        let places = sid.sub_authorities.get_mut(..usize::from(count));
        for place in places.ok_or(invalid("SubAuthorityCount", count))? {
            *place = reader.u32("SubAuthority")?;
        }
        sid.count = count;
        Ok(sid)
    }

    /// Appends the encoded SID to `out`. \[MS-DTYP\] 2.4.2.2
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(REVISION);
        out.put_u8(self.count);
        let [_, _, authority @ ..] = self.authority.to_be_bytes();
        out.put(&authority);
        for sub_authority in self.sub_authorities() {
            out.put_u32(*sub_authority);
        }
    }
}

fn invalid(field: &'static str, value: u8) -> DecodeError {
    DecodeError::Invalid {
        field,
        value: u64::from(value),
    }
}

impl Default for Sid {
    fn default() -> Self {
        Self::NULL
    }
}

/// The text form S-1-..., with an authority of more than 32 bits in hexadecimal. \[MS-DTYP\]
/// 2.4.2.1
impl fmt::Display for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match u32::try_from(self.authority) {
            Ok(authority) => write!(f, "S-{REVISION}-{authority}")?,
            Err(_) => write!(f, "S-{REVISION}-0x{:012X}", self.authority)?,
        }
        self.sub_authorities()
            .iter()
            .try_for_each(|sub_authority| write!(f, "-{sub_authority}"))
    }
}

impl fmt::Debug for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error for a text that is not a SID. An example of a valid text is S-1-5-18.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseSidError;

impl fmt::Display for ParseSidError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a SID of the form S-1-5-21-1-2-3-1000")
    }
}

impl core::error::Error for ParseSidError {}

/// Parses the text form of \[MS-DTYP\] 2.4.2.1.
impl FromStr for Sid {
    type Err = ParseSidError;

    fn from_str(text: &str) -> Result<Self, ParseSidError> {
        let rest = text.strip_prefix("S-1-").or(text.strip_prefix("s-1-"));
        let mut parts = rest.ok_or(ParseSidError)?.split('-');
        let authority = parts.next().and_then(parse_authority);
        let mut sid = Self::known(authority.ok_or(ParseSidError)?, &[]);
        for part in parts {
            let sub_authority = parse_decimal(part).and_then(|value| u32::try_from(value).ok());
            let rid = sub_authority.ok_or(ParseSidError)?;
            sid = sid.with_rid(rid).ok_or(ParseSidError)?;
        }
        Ok(sid)
    }
}

fn parse_authority(text: &str) -> Option<u64> {
    let authority = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(digits) if is_all(digits, u8::is_ascii_hexdigit) => {
            u64::from_str_radix(digits, 16).ok()
        }
        Some(_) => None,
        None => parse_decimal(text),
    };
    authority.filter(|authority| *authority < AUTHORITY_END)
}

fn parse_decimal(text: &str) -> Option<u64> {
    is_all(text, u8::is_ascii_digit)
        .then(|| text.parse().ok())
        .flatten()
}

fn is_all(text: &str, is_digit: fn(&u8) -> bool) -> bool {
    !text.is_empty() && text.bytes().all(|byte| is_digit(&byte))
}
