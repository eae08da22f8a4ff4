//! LsarLookupSids and LsarLookupSids2. \[MS-LSAT\] 3.1.4.10, 3.1.4.11

use alloc::string::String;
use alloc::vec::Vec;

use super::domains::{self, ReferencedDomain, SidKind, invalid};
use super::lists::{NO_DOMAIN, put_end, put_list_len, read_end, read_list_len};
use super::{PolicyHandle, check_count};
use crate::Status;
use crate::error::DecodeError;
use crate::rpc::ndr::{Reader, Writer};
use crate::security::Sid;

/// The version of a call for the names of SIDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SidsVersion {
    /// LsarLookupSids.
    One,
    /// LsarLookupSids2: with options, and with flags of each name.
    Two,
}

impl SidsVersion {
    /// Length of a translated name in bytes, without its text.
    fn entry_len(self) -> usize {
        match self {
            Self::One => 16,
            Self::Two => 20,
        }
    }

    /// Whether the request has options, and each translated name has flags.
    fn has_options(self) -> bool {
        self == Self::Two
    }
}

/// The arguments of the RPC calls LsarLookupSids and LsarLookupSids2: the client asks for the names
/// of SIDs. \[MS-LSAT\] 3.1.4.11
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupSids {
    /// The open policy.
    pub policy: PolicyHandle,
    /// The SIDs, at most [`LOOKUPS_MAX`](super::LOOKUPS_MAX).
    pub sids: Vec<Sid>,
    /// The places where the server looks: 1 for all. \[MS-LSAT\] 2.2.16
    pub level: u16,
}

impl LookupSids {
    /// Decodes the stub: the NDR encoding of the fields, without RPC headers. Fails when `stub` is
    /// truncated, its numbers contradict each other, or it has too many SIDs.
    pub fn decode(stub: &[u8], version: SidsVersion) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(stub);
        let policy = PolicyHandle::read(&mut reader)?;
        let sids = read_sids(&mut reader)?;
        Ok(Self {
            policy,
            sids,
            level: read_end(&mut reader, "TranslatedNames", version.has_options())?,
        })
    }

    /// Encodes the stub: the NDR encoding of the fields, without RPC headers.
    pub fn encode(&self, version: SidsVersion) -> Vec<u8> {
        let mut out = Writer::new();
        self.policy.put(&mut out);
        put_list_len(&mut out, self.sids.len());
        self.sids.iter().for_each(|_| out.put_pointer(true));
        self.sids.iter().for_each(|sid| out.put_sid(sid));
        put_end(&mut out, self.level, version.has_options());
        out.into_stub()
    }
}

fn read_sids(reader: &mut Reader<'_>) -> Result<Vec<Sid>, DecodeError> {
    const FIELD: &str = "SidEnumBuffer";
    let count = read_list_len(reader, FIELD, 4)?;
    check_count(FIELD, count)?;
    for _ in 0..count {
        if !reader.pointer(FIELD)? {
            return Err(invalid(FIELD, 0));
        }
    }
    (0..count).map(|_| reader.sid(FIELD)).collect()
}

/// The name of a SID. \[MS-LSAT\] 2.2.19, 2.2.21
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranslatedName {
    /// The kind of the account.
    pub kind: SidKind,
    /// The name of the account without its domain; the SID as a text if it has no translation.
    pub name: String,
    /// The index of the domain in the list of domains; `None` if the SID has no translation.
    pub domain: Option<u32>,
}

/// The results of the RPC calls LsarLookupSids and LsarLookupSids2. \[MS-LSAT\] 3.1.4.11
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupSidsResponse {
    /// The domains of the names.
    pub domains: Vec<ReferencedDomain>,
    /// A name for each SID of the request, in the same order.
    pub names: Vec<TranslatedName>,
    /// Number of SIDs that have a translation.
    pub mapped_count: u32,
    /// SUCCESS, SOME_NOT_MAPPED, NONE_MAPPED, or an error.
    pub status: Status,
}

impl LookupSidsResponse {
    /// Decodes the stub: the NDR encoding of the fields, without RPC headers. Fails when `stub` is
    /// truncated, or its numbers contradict each other.
    pub fn decode(stub: &[u8], version: SidsVersion) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(stub);
        Ok(Self {
            domains: domains::read(&mut reader)?,
            names: read_names(&mut reader, version)?,
            mapped_count: reader.u32("MappedCount")?,
            status: Status(reader.u32("return value")?),
        })
    }

    /// Encodes the stub: the NDR encoding of the fields, without RPC headers.
    ///
    /// # Panics
    /// Panics when a name has 32,768 or more UTF-16 code units.
    pub fn encode(&self, version: SidsVersion) -> Vec<u8> {
        let mut out = Writer::new();
        domains::put(&self.domains, &mut out);
        put_list_len(&mut out, self.names.len());
        for name in &self.names {
            out.put_u32(name.kind.0.into());
            out.put_counted(Some(&name.name));
            out.put_u32(name.domain.unwrap_or(NO_DOMAIN));
            if version.has_options() {
                out.put_u32(0);
            }
        }
        for name in &self.names {
            out.put_counted_text(&name.name);
        }
        out.put_u32(self.mapped_count);
        out.put_u32(self.status.0);
        out.into_stub()
    }
}

fn read_names(
    reader: &mut Reader<'_>,
    version: SidsVersion,
) -> Result<Vec<TranslatedName>, DecodeError> {
    const FIELD: &str = "TranslatedNames";
    let count = read_list_len(reader, FIELD, version.entry_len())?;
    let mut fixed = Vec::with_capacity(count);
    for _ in 0..count {
        let kind = SidKind(reader.u16("Use")?);
        let text = reader.counted("Name")?;
        let domain = reader.u32("DomainIndex")?;
        if version.has_options() {
            reader.u32("Flags")?;
        }
        fixed.push((kind, text, Some(domain).filter(|index| *index != NO_DOMAIN)));
    }
    let names = fixed.into_iter().map(|(kind, text, domain)| {
        let text = text.map(|length| reader.counted_text("Name", length));
        Ok(TranslatedName {
            kind,
            name: text.transpose()?.unwrap_or_default(),
            domain,
        })
    });
    names.collect()
}
