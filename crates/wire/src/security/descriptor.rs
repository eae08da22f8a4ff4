//! Self-relative security descriptors. \[MS-DTYP\] 2.4.6

use alloc::vec::Vec;

use super::acl::Acl;
use super::sid::Sid;
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::open_enum::open_flags;
use crate::query_info::SecurityInformation;

/// Bytes before what the offsets point at.
const HEADER_LEN: usize = 20;
/// The only revision. \[MS-DTYP\] 2.4.6
const REVISION: u8 = 1;

open_flags! {
    /// What is said about a descriptor. \[MS-DTYP\] 2.4.6
    DescriptorControl(u16) {
        /// The owner came by default.
        OWNER_DEFAULTED = 0x0001,
        /// The group came by default.
        GROUP_DEFAULTED = 0x0002,
        /// There is a DACL; where it is none, all is allowed to everyone.
        DACL_PRESENT = 0x0004,
        /// The DACL came by default.
        DACL_DEFAULTED = 0x0008,
        /// There is a SACL.
        SACL_PRESENT = 0x0010,
        /// The SACL came by default.
        SACL_DEFAULTED = 0x0020,
        /// The server is trusted to set up a compound ACL.
        DACL_TRUSTED = 0x0040,
        /// A server made the descriptor.
        SERVER_SECURITY = 0x0080,
        /// Inherit the DACL anew.
        DACL_AUTO_INHERIT_REQ = 0x0100,
        /// Inherit the SACL anew.
        SACL_AUTO_INHERIT_REQ = 0x0200,
        /// The DACL was inherited.
        DACL_AUTO_INHERITED = 0x0400,
        /// The SACL was inherited.
        SACL_AUTO_INHERITED = 0x0800,
        /// The DACL does not inherit.
        DACL_PROTECTED = 0x1000,
        /// The SACL does not inherit.
        SACL_PROTECTED = 0x2000,
        /// Sbz1 holds flags of a resource manager.
        RM_CONTROL_VALID = 0x4000,
        /// The form with offsets: the only one on the wire.
        SELF_RELATIVE = 0x8000,
    }
}

/// Who owns an object, and who may do what with it. \[MS-DTYP\] 2.4.6
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SecurityDescriptor {
    /// What is said about it. Encoding sets SELF_RELATIVE, and PRESENT for a list that is there.
    /// DACL_PRESENT with no `dacl` is the NULL DACL, which allows all to everyone.
    pub control: DescriptorControl,
    /// Flags of a resource manager, where the control says so.
    pub resource_manager_control: u8,
    /// The owner.
    pub owner: Option<Sid>,
    /// The group.
    pub group: Option<Sid>,
    /// Who may do what.
    pub dacl: Option<Acl>,
    /// What is logged.
    pub sacl: Option<Acl>,
}

impl SecurityDescriptor {
    /// Reads a self-relative descriptor.
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

    /// Bytes on the wire.
    pub fn encoded_len(&self) -> usize {
        let sid_len = |sid: &Option<Sid>| sid.as_ref().map_or(0, Sid::encoded_len);
        let acl_len = |acl: &Option<Acl>| acl.as_ref().map_or(0, Acl::encoded_len);
        let sids = sid_len(&self.owner) + sid_len(&self.group);
        HEADER_LEN + sids + acl_len(&self.sacl) + acl_len(&self.dacl)
    }

    /// The control as it goes on the wire.
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

    /// Appends the self-relative form: header, owner, group, SACL, DACL.
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

    /// The parts that a query asks for. \[MS-SMB2\] 3.3.5.20.3
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

/// What the control says about the DACL.
const OF_DACL_CONTROL: DescriptorControl = DescriptorControl(0x150C);
/// What the control says about the SACL.
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
