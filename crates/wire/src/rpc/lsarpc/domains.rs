//! The domains of translated accounts. \[MS-LSAT\] 2.2.11, 2.2.12

use alloc::string::String;
use alloc::vec::Vec;

use crate::error::DecodeError;
use crate::layout::u32_of;
use crate::open_enum::open_enum;
use crate::rpc::ndr::{Reader, Writer};
use crate::security::Sid;

/// Length of a domain of a list in bytes, without its name and its SID.
const ENTRY_LEN: usize = 12;
/// Maximum number of domains that Windows and Samba put into a list. \[MS-LSAT\] 2.2.12
const MAX_ENTRIES: u32 = 32;

open_enum! {
    /// The kind of a translated account, SID_NAME_USE. \[MS-LSAT\] 2.2.13
    SidKind(u16) {
        /// A user.
        USER = 1,
        /// A group of a domain.
        GROUP = 2,
        /// A domain.
        DOMAIN = 3,
        /// A group of the computer.
        ALIAS = 4,
        /// A user or group that exists on every computer.
        WELL_KNOWN_GROUP = 5,
        /// The account is deleted.
        DELETED = 6,
        /// The SID or the name is not valid.
        INVALID = 7,
        /// The SID or the name has no translation.
        UNKNOWN = 8,
        /// A computer.
        COMPUTER = 9,
    }
}

/// A domain of a list to which translated accounts refer by its index. \[MS-LSAT\] 2.2.11
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferencedDomain {
    /// Name of the domain; may be empty.
    pub name: String,
    /// SID of the domain: that of its accounts without the last number.
    pub sid: Sid,
}

/// Reads a pointer to a list of domains; an empty list for a null pointer.
pub(super) fn read(reader: &mut Reader<'_>) -> Result<Vec<ReferencedDomain>, DecodeError> {
    const FIELD: &str = "ReferencedDomains";
    if !reader.pointer(FIELD)? {
        return Ok(Vec::new());
    }
    let entries = reader.u32(FIELD)?;
    let has_array = reader.pointer(FIELD)?;
    reader.u32(FIELD)?;
    if !has_array {
        return Ok(Vec::new());
    }
    let count = reader.count(FIELD, ENTRY_LEN)?;
    if u32_of(count) != entries {
        return Err(invalid(FIELD, entries));
    }
    let mut fixed = Vec::with_capacity(count);
    for _ in 0..count {
        fixed.push((reader.counted(FIELD)?, reader.pointer(FIELD)?));
    }
    let mut domains = Vec::with_capacity(count);
    for (name, has_sid) in fixed {
        let name = name.map(|length| reader.counted_text(FIELD, length));
        if !has_sid {
            return Err(invalid(FIELD, 0));
        }
        domains.push(ReferencedDomain {
            name: name.transpose()?.unwrap_or_default(),
            sid: reader.sid(FIELD)?,
        });
    }
    Ok(domains)
}

/// Appends a pointer to a list of domains, and the list.
pub(super) fn put(domains: &[ReferencedDomain], out: &mut Writer) {
    out.put_pointer(true);
    let count = u32_of(domains.len());
    out.put_u32(count);
    out.put_pointer(!domains.is_empty());
    out.put_u32(MAX_ENTRIES);
    if domains.is_empty() {
        return;
    }
    out.put_u32(count);
    for domain in domains {
        out.put_counted(Some(&domain.name));
        out.put_pointer(true);
    }
    for domain in domains {
        out.put_counted_text(&domain.name);
        out.put_sid(&domain.sid);
    }
}

pub(super) fn invalid(field: &'static str, value: u32) -> DecodeError {
    DecodeError::Invalid {
        field,
        value: value.into(),
    }
}
