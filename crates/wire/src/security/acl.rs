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
    /// Type of an ACE. \[MS-DTYP\] 2.4.4.1
    AceType(u8) {
        /// Allow access.
        ACCESS_ALLOWED = 0x00,
        /// Deny access.
        ACCESS_DENIED = 0x01,
        /// Log access.
        SYSTEM_AUDIT = 0x02,
        /// Allow access to a part of a directory service object.
        ACCESS_ALLOWED_OBJECT = 0x05,
        /// Deny access to a part of a directory service object.
        ACCESS_DENIED_OBJECT = 0x06,
        /// Log access to a part of a directory service object.
        SYSTEM_AUDIT_OBJECT = 0x07,
        /// Allow access under a condition.
        ACCESS_ALLOWED_CALLBACK = 0x09,
        /// Deny access under a condition.
        ACCESS_DENIED_CALLBACK = 0x0A,
        /// The integrity label.
        SYSTEM_MANDATORY_LABEL = 0x11,
        /// A resource attribute, which conditions can refer to.
        SYSTEM_RESOURCE_ATTRIBUTE = 0x12,
        /// A central access policy that applies to the object.
        SYSTEM_SCOPED_POLICY_ID = 0x13,
    }
}

open_flags! {
    /// Inheritance and logging flags of an ACE. \[MS-DTYP\] 2.4.4.1
    AceFlags(u8) {
        /// Files in the directory inherit the ACE.
        OBJECT_INHERIT = 0x01,
        /// Directories in the directory inherit the ACE.
        CONTAINER_INHERIT = 0x02,
        /// Children inherit the ACE, but their children do not.
        NO_PROPAGATE_INHERIT = 0x04,
        /// The ACE does not apply to the object itself.
        INHERIT_ONLY = 0x08,
        /// The object inherited the ACE from its parent.
        INHERITED = 0x10,
        /// Log successful access.
        SUCCESSFUL_ACCESS = 0x40,
        /// Log failed access.
        FAILED_ACCESS = 0x80,
    }
}

/// An access control entry. \[MS-DTYP\] 2.4.4
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ace {
    /// An entry of a mask and a SID: types 0 to 2, 0x11 and 0x13. \[MS-DTYP\] 2.4.4.2, 2.4.4.4,
    /// 2.4.4.10
    Basic {
        /// Type of the entry.
        ace_type: AceType,
        /// Inheritance and logging flags.
        flags: AceFlags,
        /// The access rights.
        mask: AccessMask,
        /// The user or group that the entry applies to.
        sid: Sid,
    },
    /// An entry of another type, with undecoded contents.
    Other {
        /// Type of the entry.
        ace_type: AceType,
        /// Inheritance and logging flags.
        flags: AceFlags,
        /// The bytes after the header; a multiple of 4.
        body: Vec<u8>,
    },
}

impl Ace {
    /// An entry that allows `mask` to `sid`.
    pub const fn allow(sid: Sid, mask: AccessMask, flags: AceFlags) -> Self {
        Self::Basic {
            ace_type: AceType::ACCESS_ALLOWED,
            flags,
            mask,
            sid,
        }
    }

    /// An entry that denies `mask` to `sid`.
    pub const fn deny(sid: Sid, mask: AccessMask, flags: AceFlags) -> Self {
        Self::Basic {
            ace_type: AceType::ACCESS_DENIED,
            flags,
            mask,
            sid,
        }
    }

    /// Type of the entry.
    pub fn ace_type(&self) -> AceType {
        let (Self::Basic { ace_type, .. } | Self::Other { ace_type, .. }) = self;
        *ace_type
    }

    /// Inheritance and logging flags of the entry.
    pub fn flags(&self) -> AceFlags {
        let (Self::Basic { flags, .. } | Self::Other { flags, .. }) = self;
        *flags
    }

    /// Length of the encoded entry in bytes.
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

/// An access control list. Its encoding always fits the 65,535 bytes that its header can express.
/// \[MS-DTYP\] 2.4.5
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acl {
    revision: u8,
    aces: Vec<Ace>,
    encoded_len: usize,
}

impl Acl {
    /// Revision of a list without directory service entries. \[MS-DTYP\] 2.4.5
    pub const REVISION: u8 = 2;
    /// Revision of a list that may have directory service entries. \[MS-DTYP\] 2.4.5
    pub const REVISION_DS: u8 = 4;

    /// An empty list, which grants no access.
    pub const fn new() -> Self {
        Self {
            revision: Self::REVISION,
            aces: Vec::new(),
            encoded_len: ACL_HEADER_LEN,
        }
    }

    /// The entries, in the order of their evaluation.
    pub fn aces(&self) -> &[Ace] {
        &self.aces
    }

    /// Revision of the list.
    pub fn revision(&self) -> u8 {
        self.revision
    }

    /// Length of the encoded list in bytes.
    pub fn encoded_len(&self) -> usize {
        self.encoded_len
    }

    /// Appends an entry. Returns false, without a change, when the list would exceed 65,535 bytes.
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

    /// Decodes the list at the start of `bytes`.
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
