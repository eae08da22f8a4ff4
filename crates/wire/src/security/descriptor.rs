//! Self-relative security descriptors. \[MS-DTYP\] 2.4.6

use alloc::vec::Vec;

use super::acl::Acl;
use super::sid::Sid;
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::open_enum::open_flags;
use crate::query_info::SecurityInformation;

/// Length of a descriptor before its parts, in bytes.
const HEADER_LEN: usize = 20;
/// The only revision. \[MS-DTYP\] 2.4.6
const REVISION: u8 = 1;

open_flags! {
    /// Control flags of a security descriptor. \[MS-DTYP\] 2.4.6
    DescriptorControl(u16) {
        /// A default mechanism, not the user, set the owner.
        OWNER_DEFAULTED = 0x0001,
        /// A default mechanism, not the user, set the group.
        GROUP_DEFAULTED = 0x0002,
        /// The descriptor has a discretionary access control list (DACL). With this flag and
        /// without a list, all users have full access.
        DACL_PRESENT = 0x0004,
        /// A default mechanism, not the user, set the DACL.
        DACL_DEFAULTED = 0x0008,
        /// The descriptor has a system access control list (SACL).
        SACL_PRESENT = 0x0010,
        /// A default mechanism, not the user, set the SACL.
        SACL_DEFAULTED = 0x0020,
        /// The server may create a compound ACL from the DACL.
        DACL_TRUSTED = 0x0040,
        /// The server, not a client, supplied the descriptor.
        SERVER_SECURITY = 0x0080,
        /// A request to pass the DACL to existing children of the object.
        DACL_AUTO_INHERIT_REQ = 0x0100,
        /// A request to pass the SACL to existing children of the object.
        SACL_AUTO_INHERIT_REQ = 0x0200,
        /// The object inherited entries of the DACL from its parent.
        DACL_AUTO_INHERITED = 0x0400,
        /// The object inherited entries of the SACL from its parent.
        SACL_AUTO_INHERITED = 0x0800,
        /// The object does not inherit entries of the DACL from its parent.
        DACL_PROTECTED = 0x1000,
        /// The object does not inherit entries of the SACL from its parent.
        SACL_PROTECTED = 0x2000,
        /// The field `resource_manager_control` is valid.
        RM_CONTROL_VALID = 0x4000,
        /// The descriptor is self-relative: one block with offsets. It always is on the wire.
        SELF_RELATIVE = 0x8000,
    }
}

/// A security descriptor: the owner of an object, and the access control lists for it.
/// \[MS-DTYP\] 2.4.6
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SecurityDescriptor {
    /// Control flags of the descriptor. `encode` sets SELF_RELATIVE, and the PRESENT flags of
    /// existing lists. DACL_PRESENT without a `dacl` is the NULL DACL, which allows all access to
    /// all users.
    pub control: DescriptorControl,
    /// Flags that the program with the object (the resource manager) defines; valid only if
    /// `control` has RM_CONTROL_VALID.
    pub resource_manager_control: u8,
    /// SID of the owner; `None` when the descriptor has none.
    pub owner: Option<Sid>,
    /// SID of the primary group; `None` when the descriptor has none.
    pub group: Option<Sid>,
    /// Discretionary access control list: the entries that allow and deny access. `None` when the
    /// descriptor has none.
    pub dacl: Option<Acl>,
    /// System access control list: the entries that log access. `None` when the descriptor has
    /// none.
    pub sacl: Option<Acl>,
}

impl SecurityDescriptor {
    /// Decodes a self-relative descriptor. Fails when the revision is not 1, SELF_RELATIVE is not
    /// set, or a part is malformed or outside `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let revision = reader.u8("Revision")?;
        if revision != REVISION {
            return Err(invalid("Revision", u64::from(revision)));
        }
        let resource_manager_control = reader.u8("Sbz1")?;
        let control = DescriptorControl(reader.u16("Control")?);
        if !control.contains(DescriptorControl::SELF_RELATIVE) {
            return Err(invalid("Control", u64::from(control.0)));
        }
        let owner = part(bytes, "OffsetOwner", reader.u32("OffsetOwner")?)?;
        let group = part(bytes, "OffsetGroup", reader.u32("OffsetGroup")?)?;
        let sacl = part(bytes, "OffsetSacl", reader.u32("OffsetSacl")?)?;
        let dacl = part(bytes, "OffsetDacl", reader.u32("OffsetDacl")?)?;
        let sacl = sacl.filter(|_| control.contains(DescriptorControl::SACL_PRESENT));
        let dacl = dacl.filter(|_| control.contains(DescriptorControl::DACL_PRESENT));
        Ok(Self {
            control,
            resource_manager_control,
            owner: owner.map(Sid::decode).transpose()?,
            group: group.map(Sid::decode).transpose()?,
            dacl: dacl.map(Acl::decode).transpose()?,
            sacl: sacl.map(Acl::decode).transpose()?,
        })
    }

    /// Returns the length of the encoded descriptor in bytes.
    pub fn encoded_len(&self) -> usize {
        let sid_len = |sid: &Option<Sid>| sid.as_ref().map_or(0, Sid::encoded_len);
        let acl_len = |acl: &Option<Acl>| acl.as_ref().map_or(0, Acl::encoded_len);
        let sids = sid_len(&self.owner) + sid_len(&self.group);
        HEADER_LEN + sids + acl_len(&self.sacl) + acl_len(&self.dacl)
    }

    /// The control flags for the wire.
    fn wire_control(&self) -> DescriptorControl {
        let mut control = self.control | DescriptorControl::SELF_RELATIVE;
        if self.dacl.is_some() {
            control |= DescriptorControl::DACL_PRESENT;
        }
        if self.sacl.is_some() {
            control |= DescriptorControl::SACL_PRESENT;
        }
        control
    }

    /// Appends the descriptor to `out` in the self-relative encoding: header, owner, group, SACL,
    /// DACL.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let end = out.len() + self.encoded_len();
        let mut offset = HEADER_LEN;
        let mut place = |length: Option<usize>| match length {
            Some(length) => {
                let start = offset;
                offset += length;
                u32::try_from(start).expect("two SIDs and two lists are shorter than 4 GiB")
            }
            None => 0,
        };
        out.put_u8(REVISION);
        out.put_u8(self.resource_manager_control);
        out.put_u16(self.wire_control().0);
        out.put_u32(place(self.owner.as_ref().map(Sid::encoded_len)));
        out.put_u32(place(self.group.as_ref().map(Sid::encoded_len)));
        out.put_u32(place(self.sacl.as_ref().map(Acl::encoded_len)));
        out.put_u32(place(self.dacl.as_ref().map(Acl::encoded_len)));
        self.owner.iter().for_each(|sid| sid.encode(out));
        self.group.iter().for_each(|sid| sid.encode(out));
        self.sacl.iter().for_each(|acl| acl.encode(out));
        self.dacl.iter().for_each(|acl| acl.encode(out));
        assert_eq!(out.len(), end, "the parts are as long as they say");
    }

    /// Returns a copy with only the parts that `parts` selects (owner, group, DACL, SACL), for the
    /// response to a query. Any part in the SACL selects the whole SACL. \[MS-SMB2\] 3.3.5.20.3
    pub fn select(&self, parts: SecurityInformation) -> Self {
        const OF_SACL: SecurityInformation = SecurityInformation(
            SecurityInformation::SACL.0
                | SecurityInformation::LABEL.0
                | SecurityInformation::ATTRIBUTE.0
                | SecurityInformation::SCOPE.0
                | SecurityInformation::BACKUP.0,
        );
        let with_owner = parts.contains(SecurityInformation::OWNER);
        let with_group = parts.contains(SecurityInformation::GROUP);
        let with_dacl = parts.contains(SecurityInformation::DACL);
        let with_sacl = parts.intersects(OF_SACL);
        let mut control = self.control;
        if !with_dacl {
            control = control.without(OF_DACL_CONTROL);
        }
        if !with_sacl {
            control = control.without(OF_SACL_CONTROL);
        }
        Self {
            control,
            resource_manager_control: self.resource_manager_control,
            owner: self.owner.filter(|_| with_owner),
            group: self.group.filter(|_| with_group),
            dacl: self.dacl.clone().filter(|_| with_dacl),
            sacl: self.sacl.clone().filter(|_| with_sacl),
        }
    }
}

/// The control flags of the DACL.
const OF_DACL_CONTROL: DescriptorControl = DescriptorControl(0x150C);
/// The control flags of the SACL.
const OF_SACL_CONTROL: DescriptorControl = DescriptorControl(0x2A30);

/// The bytes from an offset on; `None` for the offset 0.
fn part<'a>(
    bytes: &'a [u8],
    field: &'static str,
    offset: u32,
) -> Result<Option<&'a [u8]>, DecodeError> {
    if offset == 0 {
        return Ok(None);
    }
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let is_after_header = start >= HEADER_LEN;
    let rest = bytes.get(start..).filter(|_| is_after_header);
    rest.map(Some).ok_or(invalid(field, u64::from(offset)))
}

fn invalid(field: &'static str, value: u64) -> DecodeError {
    DecodeError::Invalid { field, value }
}
