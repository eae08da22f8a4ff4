//! LsarLookupNames, LsarLookupNames2 and LsarLookupNames3. \[MS-LSAT\] 3.1.4.6 to 3.1.4.8

use alloc::string::String;
use alloc::vec::Vec;

use super::domains::{self, ReferencedDomain, SidKind, invalid};
use super::lists::{NO_DOMAIN, put_end, put_list_len, read_end, read_list_len};
use super::{PolicyHandle, check_count};
use crate::Status;
use crate::error::DecodeError;
use crate::layout::u32_of;
use crate::rpc::ndr::{Reader, Writer};
use crate::security::Sid;

/// Length of a counted string in bytes, without its text.
const STRING_LEN: usize = 8;

/// The version of a call for the SIDs of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamesVersion {
    /// LsarLookupNames: the SIDs are those of the domains and a relative identifier each.
    One,
    /// LsarLookupNames2: with options, and with flags of each SID.
    Two,
    /// LsarLookupNames3: with whole SIDs.
    Three,
}

impl NamesVersion {
    /// Length of a translated SID in bytes, without what a pointer in it refers to.
    fn entry_len(self) -> usize {
        match self {
            Self::One => 12,
            Self::Two | Self::Three => 16,
        }
    }

    /// Whether the request has options, and each translated SID has flags.
    fn has_options(self) -> bool {
        self != Self::One
    }
}

/// The arguments of the RPC calls LsarLookupNames to LsarLookupNames3: the client asks for the SIDs
/// of names. \[MS-LSAT\] 3.1.4.6
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupNames {
    /// The open policy.
    pub policy: PolicyHandle,
    /// The names, with or without a domain, at most [`LOOKUPS_MAX`](super::LOOKUPS_MAX).
    pub names: Vec<String>,
    /// The places where the server looks: 1 for all. \[MS-LSAT\] 2.2.16
    pub level: u16,
}

impl LookupNames {
    /// Decodes the stub: the NDR encoding of the fields, without RPC headers. Fails when `stub` is
    /// truncated, its numbers contradict each other, or it has too many names.
    pub fn decode(stub: &[u8], version: NamesVersion) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(stub);
        let policy = PolicyHandle::read(&mut reader)?;
        let names = read_names(&mut reader)?;
        Ok(Self {
            policy,
            names,
            level: read_end(&mut reader, "TranslatedSids", version.has_options())?,
        })
    }

    /// Encodes the stub: the NDR encoding of the fields, without RPC headers.
    ///
    /// # Panics
    /// Panics when a name has 32,768 or more UTF-16 code units.
    pub fn encode(&self, version: NamesVersion) -> Vec<u8> {
        let mut out = Writer::new();
        self.policy.put(&mut out);
        let count = u32_of(self.names.len());
        out.put_u32(count);
        out.put_u32(count);
        for name in &self.names {
            out.put_counted(Some(name));
        }
        for name in &self.names {
            out.put_counted_text(name);
        }
        put_end(&mut out, self.level, version.has_options());
        out.into_stub()
    }
}

fn read_names(reader: &mut Reader<'_>) -> Result<Vec<String>, DecodeError> {
    const FIELD: &str = "Names";
    let entries = reader.u32("Count")?;
    let count = reader.count(FIELD, STRING_LEN)?;
    if u32_of(count) != entries {
        return Err(invalid(FIELD, entries));
    }
    check_count(FIELD, count)?;
    let mut lengths = Vec::with_capacity(count);
    for _ in 0..count {
        lengths.push(reader.counted(FIELD)?);
    }
    let texts = lengths.into_iter().map(|length| {
        let text = length.map(|length| reader.counted_text(FIELD, length));
        Ok(text.transpose()?.unwrap_or_default())
    });
    texts.collect()
}

/// The SID of a name. \[MS-LSAT\] 2.2.14, 2.2.22, 2.2.24
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranslatedSid {
    /// The kind of the account.
    pub kind: SidKind,
    /// The SID of the account; `None` if the name has no translation.
    pub sid: Option<Sid>,
    /// The index of the domain in the list of domains; `None` if the name has no translation.
    pub domain: Option<u32>,
}

/// The results of the RPC calls LsarLookupNames to LsarLookupNames3. \[MS-LSAT\] 3.1.4.6
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupNamesResponse {
    /// The domains of the SIDs.
    pub domains: Vec<ReferencedDomain>,
    /// A SID for each name of the request, in the same order.
    pub sids: Vec<TranslatedSid>,
    /// Number of names that have a translation.
    pub mapped_count: u32,
    /// SUCCESS, SOME_NOT_MAPPED, NONE_MAPPED, or an error.
    pub status: Status,
}

impl LookupNamesResponse {
    /// Decodes the stub: the NDR encoding of the fields, without RPC headers. Fails when `stub` is
    /// truncated, its numbers contradict each other, or a SID refers to no domain of the list.
    pub fn decode(stub: &[u8], version: NamesVersion) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(stub);
        let domains = domains::read(&mut reader)?;
        Ok(Self {
            sids: read_sids(&mut reader, version, &domains)?,
            domains,
            mapped_count: reader.u32("MappedCount")?,
            status: Status(reader.u32("return value")?),
        })
    }

    /// Encodes the stub: the NDR encoding of the fields, without RPC headers. In the versions
    /// without whole SIDs, that of a domain itself has the relative identifier 0xFFFFFFFF.
    pub fn encode(&self, version: NamesVersion) -> Vec<u8> {
        let mut out = Writer::new();
        domains::put(&self.domains, &mut out);
        put_list_len(&mut out, self.sids.len());
        for entry in &self.sids {
            out.put_u32(entry.kind.0.into());
            match version {
                NamesVersion::One | NamesVersion::Two => out.put_u32(relative_id(entry)),
                NamesVersion::Three => out.put_pointer(entry.sid.is_some()),
            }
            out.put_u32(entry.domain.unwrap_or(NO_DOMAIN));
            if version.has_options() {
                out.put_u32(0);
            }
        }
        if version == NamesVersion::Three {
            let sids = self.sids.iter().filter_map(|entry| entry.sid.as_ref());
            sids.for_each(|sid| out.put_sid(sid));
        }
        out.put_u32(self.mapped_count);
        out.put_u32(self.status.0);
        out.into_stub()
    }
}

/// The relative identifier of a domain itself, as in Windows.
const OF_DOMAIN: u32 = u32::MAX;

fn relative_id(entry: &TranslatedSid) -> u32 {
    let last = entry.sid.as_ref().map(Sid::sub_authorities);
    match (entry.kind, last.and_then(<[u32]>::last)) {
        (SidKind::DOMAIN, Some(_)) => OF_DOMAIN,
        (_, Some(rid)) => *rid,
        (_, None) => 0,
    }
}

fn read_sids(
    reader: &mut Reader<'_>,
    version: NamesVersion,
    domains: &[ReferencedDomain],
) -> Result<Vec<TranslatedSid>, DecodeError> {
    const FIELD: &str = "TranslatedSids";
    let count = read_list_len(reader, FIELD, version.entry_len())?;
    let mut fixed = Vec::with_capacity(count);
    for _ in 0..count {
        let kind = SidKind(reader.u16("Use")?);
        let identifier = reader.u32("Sid")?;
        let domain = Some(reader.u32("DomainIndex")?).filter(|index| *index != NO_DOMAIN);
        if version.has_options() {
            reader.u32("Flags")?;
        }
        fixed.push((kind, identifier, domain));
    }
    let sids = fixed.into_iter().map(|(kind, identifier, domain)| {
        let sid = match version {
            NamesVersion::Three if identifier != 0 => Some(reader.sid("Sid")?),
            NamesVersion::Three => None,
            NamesVersion::One | NamesVersion::Two => {
                let of = domain.map(|index| domains.get(index as usize).ok_or(index));
                let of = of.transpose().map_err(|index| invalid(FIELD, index))?;
                of.map(|domain| within(domain, kind, identifier))
                    .transpose()?
            }
        };
        Ok(TranslatedSid { kind, sid, domain })
    });
    sids.collect()
}

/// The SID of an account of a domain.
fn within(domain: &ReferencedDomain, kind: SidKind, rid: u32) -> Result<Sid, DecodeError> {
    match (kind, rid) {
        (SidKind::DOMAIN, _) | (_, OF_DOMAIN) => Ok(domain.sid),
        _ => domain.sid.with_rid(rid).ok_or(invalid("RelativeId", rid)),
    }
}
