//! Access control lists and their entries. \[MS-DTYP\] 2.4.4, 2.4.5

use alloc::vec::Vec;

use super::sid::Sid;
use crate::access::AccessMask;
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::open_enum::{open_enum, open_flags};

/// Bytes of an ACE before its body. \[MS-DTYP\] 2.4.4.1
const ACE_HEADER_LEN: usize = 4;
/// Bytes of an ACL before its entries. \[MS-DTYP\] 2.4.5
const ACL_HEADER_LEN: usize = 8;
/// Every ACE is a multiple of it. \[MS-DTYP\] 2.4.4.1
const ALIGNMENT: usize = 4;

open_enum! {
    /// What an ACE does. \[MS-DTYP\] 2.4.4.1
    AceType(u8) {
        /// Allow.
        ACCESS_ALLOWED = 0x00,
        /// Deny.
        ACCESS_DENIED = 0x01,
        /// Log.
        SYSTEM_AUDIT = 0x02,
        /// Allow, for a part of a directory object.
        ACCESS_ALLOWED_OBJECT = 0x05,
        /// Deny, for a part of a directory object.
        ACCESS_DENIED_OBJECT = 0x06,
        /// Log, for a part of a directory object.
        SYSTEM_AUDIT_OBJECT = 0x07,
        /// Allow on a condition.
        ACCESS_ALLOWED_CALLBACK = 0x09,
        /// Deny on a condition.
        ACCESS_DENIED_CALLBACK = 0x0A,
        /// The integrity label.
        SYSTEM_MANDATORY_LABEL = 0x11,
        /// An attribute that conditions ask for.
        SYSTEM_RESOURCE_ATTRIBUTE = 0x12,
        /// A policy that applies.
        SYSTEM_SCOPED_POLICY_ID = 0x13,
    }
}

open_flags! {
    /// How an ACE is inherited and logged. \[MS-DTYP\] 2.4.4.1
    AceFlags(u8) {
        /// By files.
        OBJECT_INHERIT = 0x01,
        /// By directories.
        CONTAINER_INHERIT = 0x02,
        /// By children, not by theirs.
        NO_PROPAGATE_INHERIT = 0x04,
        /// Not for the object itself.
        INHERIT_ONLY = 0x08,
        /// Came from the parent.
        INHERITED = 0x10,
        /// Log what was allowed.
        SUCCESSFUL_ACCESS = 0x40,
        /// Log what was denied.
        FAILED_ACCESS = 0x80,
    }
}

/// An entry of a list. \[MS-DTYP\] 2.4.4
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ace {
    /// Rights of somebody: types 0 to 2, 0x11 and 0x13. \[MS-DTYP\] 2.4.4.2, 2.4.4.4, 2.4.4.10
    Basic {
        /// What it does.
        ace_type: AceType,
        /// How it is inherited and logged.
        flags: AceFlags,
        /// Which rights.
        mask: AccessMask,
        /// Whose.
        sid: Sid,
    },
    /// Any other, kept as it came.
    Other {
        /// What it does.
        ace_type: AceType,
        /// How it is inherited and logged.
        flags: AceFlags,
        /// What follows the header; a multiple of 4 bytes.
        body: Vec<u8>,
    },
}

impl Ace {
    /// Allows `mask` to `sid`.
    pub const fn allow(sid: Sid, mask: AccessMask, flags: AceFlags) -> Self {
        Self::Basic {
            ace_type: AceType::ACCESS_ALLOWED,
            flags,
            mask,
            sid,
        }
    }

    /// Denies `mask` to `sid`.
    pub const fn deny(sid: Sid, mask: AccessMask, flags: AceFlags) -> Self {
        Self::Basic {
            ace_type: AceType::ACCESS_DENIED,
            flags,
            mask,
            sid,
        }
    }

    /// What the entry does.
    pub fn ace_type(&self) -> AceType {
        let (Self::Basic { ace_type, .. } | Self::Other { ace_type, .. }) = self;
        *ace_type
    }

    /// How the entry is inherited and logged.
    pub fn flags(&self) -> AceFlags {
        let (Self::Basic { flags, .. } | Self::Other { flags, .. }) = self;
        *flags
    }

    /// Bytes on the wire.
    pub fn encoded_len(&self) -> usize {
        match self {
            Self::Basic { sid, .. } => ACE_HEADER_LEN + 4 + sid.encoded_len(),
            Self::Other { body, .. } => ACE_HEADER_LEN + body.len().next_multiple_of(ALIGNMENT),
        }
    }

    /// Reads an entry.
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

    /// Appends the entry, which is `size` bytes long.
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

/// Whether the body is a mask and a SID, and nothing more that matters.
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

/// A list of entries, which always fits the 65,535 bytes that its header can tell.
/// \[MS-DTYP\] 2.4.5
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acl {
    revision: u8,
    aces: Vec<Ace>,
    encoded_len: usize,
}

impl Acl {
    /// The revision of a list with no object entries. \[MS-DTYP\] 2.4.5
    pub const REVISION: u8 = 2;
    /// The revision of a list that may have some. \[MS-DTYP\] 2.4.5
    pub const REVISION_DS: u8 = 4;

    /// An empty list: nobody may do anything.
    pub const fn new() -> Self {
        Self {
            revision: Self::REVISION,
            aces: Vec::new(),
            encoded_len: ACL_HEADER_LEN,
        }
    }

    /// The entries, in the order in which they count.
    pub fn aces(&self) -> &[Ace] {
        &self.aces
    }

    /// The revision.
    pub fn revision(&self) -> u8 {
        self.revision
    }

    /// Bytes on the wire.
    pub fn encoded_len(&self) -> usize {
        self.encoded_len
    }

    /// Appends an entry. False, and nothing is changed, where the list would pass 65,535 bytes.
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

    /// Reads the list at the start of `bytes`.
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

    /// Appends the list.
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

/// A length or count within a list.
fn small(value: usize) -> u16 {
    u16::try_from(value).expect("a list is at most 65,535 bytes long")
}
