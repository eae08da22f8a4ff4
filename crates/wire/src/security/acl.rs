//! Access control lists and their entries. \[MS-DTYP\] 2.4.4, 2.4.5

use alloc::vec::Vec;

use super::sid::Sid;
use crate::access::AccessMask;
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::open_enum::{open_enum, open_flags};

/// Length of an ACE before its body in bytes. \[MS-DTYP\] 2.4.4.1
const ACE_HEADER_LEN: usize = 4;
/// Length of an ACL before its entries in bytes. \[MS-DTYP\] 2.4.5
const ACL_HEADER_LEN: usize = 8;
/// Alignment of the length of an ACE in bytes. \[MS-DTYP\] 2.4.4.1
const ALIGNMENT: usize = 4;

open_enum! {
    /// Type of an access control entry (ACE). \[MS-DTYP\] 2.4.4.1
    AceType(u8) {
        /// The entry allows access.
        ACCESS_ALLOWED = 0x00,
        /// The entry denies access.
        ACCESS_DENIED = 0x01,
        /// The system logs access.
        SYSTEM_AUDIT = 0x02,
        /// The entry allows access to a part of a directory service object.
        ACCESS_ALLOWED_OBJECT = 0x05,
        /// The entry denies access to a part of a directory service object.
        ACCESS_DENIED_OBJECT = 0x06,
        /// The system logs access to a part of a directory service object.
        SYSTEM_AUDIT_OBJECT = 0x07,
        /// The entry allows access under a condition.
        ACCESS_ALLOWED_CALLBACK = 0x09,
        /// The entry denies access under a condition.
        ACCESS_DENIED_CALLBACK = 0x0A,
        /// The entry is the mandatory integrity label of the object.
        SYSTEM_MANDATORY_LABEL = 0x11,
        /// The entry has an attribute of the object, which conditions of other entries can use.
        SYSTEM_RESOURCE_ATTRIBUTE = 0x12,
        /// The entry names a central access policy that applies to the object.
        SYSTEM_SCOPED_POLICY_ID = 0x13,
    }
}

open_flags! {
    /// Inheritance and logging flags of an access control entry (ACE). \[MS-DTYP\] 2.4.4.1
    AceFlags(u8) {
        /// Files in the directory inherit the entry.
        OBJECT_INHERIT = 0x01,
        /// Subdirectories of the directory inherit the entry.
        CONTAINER_INHERIT = 0x02,
        /// Files and subdirectories inherit the entry, but do not pass it to their own children.
        NO_PROPAGATE_INHERIT = 0x04,
        /// The entry does not apply to the directory itself, only to the objects that inherit it.
        INHERIT_ONLY = 0x08,
        /// The object inherited the entry from its parent directory.
        INHERITED = 0x10,
        /// The system logs successful access.
        SUCCESSFUL_ACCESS = 0x40,
        /// The system logs failed access.
        FAILED_ACCESS = 0x80,
    }
}

/// An access control entry (ACE): it allows, denies or logs the access of a user or group to an
/// object. \[MS-DTYP\] 2.4.4
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ace {
    /// An entry that consists of access rights and a SID: types 0 to 2, 0x11 and 0x13. \[MS-DTYP\]
    /// 2.4.4.2, 2.4.4.4, 2.4.4.10
    Basic {
        /// Type of the entry, such as "allow".
        ace_type: AceType,
        /// Inheritance and logging flags of the entry.
        flags: AceFlags,
        /// The access rights that the entry allows, denies or logs.
        mask: AccessMask,
        /// SID of the user or group that the entry applies to.
        sid: Sid,
    },
    /// An entry of another type, with undecoded contents.
    Other {
        /// Type of the entry, which defines the contents.
        ace_type: AceType,
        /// Inheritance and logging flags of the entry.
        flags: AceFlags,
        /// The contents: all bytes after the 4-byte header of the entry. A decoded length is a
        /// multiple of 4; `encode` pads it.
        body: Vec<u8>,
    },
}

impl Ace {
    /// Makes an entry that allows the rights `mask` to the user or group `sid`. `flags` are its
    /// inheritance and logging flags.
    pub const fn allow(sid: Sid, mask: AccessMask, flags: AceFlags) -> Self {
        Self::Basic {
            ace_type: AceType::ACCESS_ALLOWED,
            flags,
            mask,
            sid,
        }
    }

    /// Makes an entry that denies the rights `mask` to the user or group `sid`. `flags` are its
    /// inheritance and logging flags.
    pub const fn deny(sid: Sid, mask: AccessMask, flags: AceFlags) -> Self {
        Self::Basic {
            ace_type: AceType::ACCESS_DENIED,
            flags,
            mask,
            sid,
        }
    }

    /// Returns the type of the entry: allow, deny, audit or another one.
    pub fn ace_type(&self) -> AceType {
        let (Self::Basic { ace_type, .. } | Self::Other { ace_type, .. }) = self;
        *ace_type
    }

    /// Returns the inheritance and logging flags of the entry.
    pub fn flags(&self) -> AceFlags {
        let (Self::Basic { flags, .. } | Self::Other { flags, .. }) = self;
        *flags
    }

    /// Returns the length of the encoded entry in bytes, a multiple of 4.
    pub fn encoded_len(&self) -> usize {
        match self {
            Self::Basic { sid, .. } => ACE_HEADER_LEN + 4 + sid.encoded_len(),
            Self::Other { body, .. } => ACE_HEADER_LEN + body.len().next_multiple_of(ALIGNMENT),
        }
    }

    /// Decodes an entry.
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let ace_type = AceType(reader.u8("AceType")?);
        let flags = AceFlags(reader.u8("AceFlags")?);
        let size = usize::from(reader.u16("AceSize")?);
        let body_len = size
            .checked_sub(ACE_HEADER_LEN)
            .filter(|_| size.is_multiple_of(ALIGNMENT))
            .ok_or(DecodeError::Invalid {
                field: "AceSize",
                value: size as u64,
            })?;
        let body = reader.bytes("ACE", body_len)?;
        if !is_basic(ace_type) {
            let body = body.to_vec();
            return Ok(Self::Other {
                ace_type,
                flags,
                body,
            });
        }
        let mut reader = Reader::new(body);
        Ok(Self::Basic {
            ace_type,
            flags,
            mask: AccessMask(reader.u32("Mask")?),
            sid: Sid::read(&mut reader)?,
        })
    }

    /// Appends the encoded entry, which is `size` bytes long.
    fn encode(&self, size: u16, out: &mut Vec<u8>) {
        out.put_u8(self.ace_type().0);
        out.put_u8(self.flags().0);
        out.put_u16(size);
        match self {
            Self::Basic { mask, sid, .. } => {
                out.put_u32(mask.0);
                sid.encode(out);
            }
            Self::Other { body, .. } => {
                out.put(body);
                let padding = body.len().next_multiple_of(ALIGNMENT) - body.len();
                out.put(&[0; ALIGNMENT][..padding]);
            }
        }
    }
}

/// Whether the body is a mask and a SID, without further data of importance.
fn is_basic(ace_type: AceType) -> bool {
    matches!(
        ace_type,
        AceType::ACCESS_ALLOWED
            | AceType::ACCESS_DENIED
            | AceType::SYSTEM_AUDIT
            | AceType::SYSTEM_MANDATORY_LABEL
            | AceType::SYSTEM_SCOPED_POLICY_ID
    )
}

/// An access control list (ACL): entries that allow, deny or log access to an object. Its encoding
/// has at most 65,535 bytes, because its header has a 16-bit length. \[MS-DTYP\] 2.4.5
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acl {
    revision: u8,
    aces: Vec<Ace>,
    encoded_len: usize,
}

impl Acl {
    /// Revision number of an access control list without entries of a directory service.
    /// \[MS-DTYP\] 2.4.5
    pub const REVISION: u8 = 2;
    /// Revision number of an access control list that may have entries of a directory service.
    /// \[MS-DTYP\] 2.4.5
    pub const REVISION_DS: u8 = 4;

    /// Makes an empty list, which grants access to no user.
    pub const fn new() -> Self {
        Self {
            revision: Self::REVISION,
            aces: Vec::new(),
            encoded_len: ACL_HEADER_LEN,
        }
    }

    /// Returns the entries of the list, in the order of their evaluation.
    pub fn aces(&self) -> &[Ace] {
        &self.aces
    }

    /// Returns the revision number of the list's format: 2 to 4.
    pub fn revision(&self) -> u8 {
        self.revision
    }

    /// Returns the length of the encoded list in bytes.
    pub fn encoded_len(&self) -> usize {
        self.encoded_len
    }

    /// Appends an access control entry to the list and returns true. Returns false, without a
    /// change, if the encoded list would exceed 65,535 bytes.
    #[must_use]
    pub fn push(&mut self, ace: Ace) -> bool {
        let encoded_len = self.encoded_len.saturating_add(ace.encoded_len());
        let fits = encoded_len <= usize::from(u16::MAX);
        if fits {
            self.encoded_len = encoded_len;
            self.aces.push(ace);
        }
        fits
    }

    /// Returns the list with `change` applied to each entry. `change` does not change the encoded
    /// length of an entry.
    pub(super) fn map(&self, change: impl Fn(Ace) -> Ace) -> Self {
        Self {
            aces: self.aces.iter().cloned().map(change).collect(),
            ..*self
        }
    }

    /// Decodes the access control list at the start of `bytes`. Fails when the list is truncated,
    /// has a revision other than 2 to 4, or an entry is malformed.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let revision = reader.u8("AclRevision")?;
        if !(Self::REVISION..=Self::REVISION_DS).contains(&revision) {
            return Err(DecodeError::Invalid {
                field: "AclRevision",
                value: u64::from(revision),
            });
        }
        reader.skip("Sbz1", 1)?;
        let size = reader.u16("AclSize")?;
        let count = reader.u16("AceCount")?;
        reader.skip("Sbz2", 2)?;
        let entries_len = usize::from(size).checked_sub(ACL_HEADER_LEN);
        let entries_len = entries_len.ok_or(DecodeError::Invalid {
            field: "AclSize",
            value: u64::from(size),
        })?;
        let mut entries = Reader::new(reader.bytes("ACL", entries_len)?);
        let mut acl = Self {
            revision,
            ..Self::new()
        };
        for _ in 0..count {
            let fits = acl.push(Ace::read(&mut entries)?);
            assert!(fits, "entries out of a list of 64 KiB fit in such a list");
        }
        Ok(acl)
    }

    /// Appends the encoded list to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(self.revision);
        out.put_u8(0);
        out.put_u16(small(self.encoded_len));
        out.put_u16(small(self.aces.len()));
        out.put_u16(0);
        for ace in &self.aces {
            ace.encode(small(ace.encoded_len()), out);
        }
    }
}

impl Default for Acl {
    fn default() -> Self {
        Self::new()
    }
}

/// Converts a length or count within a list to 16 bits. Every list fits.
fn small(value: usize) -> u16 {
    u16::try_from(value).expect("a list is at most 65,535 bytes long")
}
