//! Disk quotas of users and groups: queries, and lists of entries. \[MS-SMB2\] 2.2.37.1,
//! \[MS-FSCC\] 2.4.41

use alloc::vec::Vec;

use super::chain::{Chain, ChainWriter};
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::security::Sid;
use crate::time::FileTime;

/// Alignment of the entries in bytes: 8 in a list of quotas, 4 in a list of SIDs.
const ALIGNMENT: usize = 8;
const SID_ALIGNMENT: usize = 4;
/// Length in bytes of the fields of SMB2_QUERY_QUOTA_INFO before the SIDs.
const QUERY_LEN: usize = 16;

/// The quota of a user or group, and its use (FILE_QUOTA_INFORMATION). \[MS-FSCC\] 2.4.41
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileQuotaInformation {
    /// Time of the last change of the entry.
    pub change_time: FileTime,
    /// Disk space in bytes that the files of the account use. A server ignores it in a SET_INFO
    /// request.
    pub used: u64,
    /// Warning level in bytes; [`NO_LIMIT`](Self::NO_LIMIT) if there is none.
    pub threshold: u64,
    /// Maximum disk space in bytes; [`NO_LIMIT`](Self::NO_LIMIT) if there is none. In a SET_INFO
    /// request, [`DELETE`](Self::DELETE) deletes the entry.
    pub limit: u64,
    /// SID of the account.
    pub sid: Sid,
}

impl FileQuotaInformation {
    /// The value of `threshold` and `limit` of an account without a limit: -1.
    pub const NO_LIMIT: u64 = u64::MAX;
    /// The value of `limit` that deletes the entry of an account: -2.
    pub const DELETE: u64 = u64::MAX - 1;

    /// Decodes an entry without its NextEntryOffset.
    fn decode(entry: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(entry);
        let sid_len = reader.u32("SidLength")?;
        Ok(Self {
            change_time: FileTime(reader.u64("ChangeTime")?),
            used: reader.u64("QuotaUsed")?,
            threshold: reader.u64("QuotaThreshold")?,
            limit: reader.u64("QuotaLimit")?,
            sid: read_sid(&mut reader, sid_len)?,
        })
    }
}

/// Reads a SID that has exactly `length` bytes.
fn read_sid(reader: &mut Reader<'_>, length: u32) -> Result<Sid, DecodeError> {
    let bytes = reader.bytes("Sid", length as usize)?;
    let sid = Sid::decode(bytes)?;
    match sid.encoded_len() == bytes.len() {
        true => Ok(sid),
        false => Err(DecodeError::Invalid {
            field: "SidLength",
            value: u64::from(length),
        }),
    }
}

/// An encoder of a list of quotas (FILE_QUOTA_INFORMATION). \[MS-FSCC\] 2.4.41
#[derive(Clone, Debug)]
pub struct QuotaWriter(ChainWriter);

impl QuotaWriter {
    /// Makes a writer of a list of quotas with at most `max_len` bytes.
    pub fn new(max_len: usize) -> Self {
        Self(ChainWriter::new(Vec::new(), ALIGNMENT, max_len))
    }

    /// Appends a quota to the list and returns true. Returns false, without a change, if the list
    /// would exceed its maximum length.
    pub fn push(&mut self, quota: &FileQuotaInformation) -> bool {
        self.0.push(|out| {
            out.put_u32(sid_len(&quota.sid));
            out.put_u64(quota.change_time.0);
            out.put_u64(quota.used);
            out.put_u64(quota.threshold);
            out.put_u64(quota.limit);
            quota.sid.encode(out);
        })
    }

    /// Returns true if the list has no entries so far.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the encoded list of all appended quotas; no bytes if it has none.
    pub fn finish(self) -> Vec<u8> {
        self.0.finish()
    }
}

/// Length of an encoded SID, at most 68 bytes.
fn sid_len(sid: &Sid) -> u32 {
    u32::try_from(sid.encoded_len()).unwrap_or(0)
}

/// Iterates over an encoded list of quotas (FILE_QUOTA_INFORMATION). A malformed entry gives an
/// error. \[MS-FSCC\] 2.4.41
#[derive(Clone, Debug)]
pub struct Quotas<'a>(Chain<'a>);

impl<'a> Quotas<'a> {
    /// Makes the iterator over the encoded quotas in `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(Chain::new(bytes, "FILE_QUOTA_INFORMATION", ALIGNMENT))
    }
}

impl Iterator for Quotas<'_> {
    type Item = Result<FileQuotaInformation, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.0.next()?;
        Some(entry.and_then(FileQuotaInformation::decode))
    }
}

/// A query of quotas, the input of QUERY_INFO (SMB2_QUERY_QUOTA_INFO). \[MS-SMB2\] 2.2.37.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaQuery<'a> {
    /// Whether the client wants at most one entry.
    pub is_single: bool,
    /// Whether the list starts again at the first entry. The query then continues none before it.
    pub restarts: bool,
    /// The accounts that the query is about.
    pub of: QuotasOf<'a>,
}

/// The accounts of the quotas that a query asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotasOf<'a> {
    /// All accounts that have an entry, from the position of the open on.
    All,
    /// All accounts that have an entry, from the one of this SID on.
    From(Sid),
    /// The accounts in an encoded list of SIDs (FILE_GET_QUOTA_INFORMATION), see [`QuotaSids`].
    Sids(&'a [u8]),
}

impl<'a> QuotaQuery<'a> {
    /// Decodes the input of a query. Fails when it is too short, or a length or an offset is not
    /// valid.
    pub fn decode(input: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(input);
        let is_single = reader.u8("ReturnSingle")? != 0;
        let restarts = reader.u8("RestartScan")? != 0;
        reader.skip("Reserved", 2)?;
        let list_len = reader.u32("SidListLength")? as usize;
        let start_len = reader.u32("StartSidLength")?;
        let start_offset = reader.u32("StartSidOffset")? as usize;
        let of = if list_len > 0 {
            QuotasOf::Sids(reader.bytes("SidList", list_len)?)
        } else if start_len > 0 {
            // The offset counts from the start of SidBuffer.
            reader.skip("StartSid", start_offset)?;
            QuotasOf::From(read_sid(&mut reader, start_len)?)
        } else {
            QuotasOf::All
        };
        Ok(Self {
            is_single,
            restarts,
            of,
        })
    }

    /// Returns the encoded query.
    pub fn encode(&self) -> Vec<u8> {
        let mut sids = Vec::new();
        let (list_len, start_len) = match self.of {
            QuotasOf::All => (0, 0),
            QuotasOf::From(sid) => {
                sid.encode(&mut sids);
                (0, sids.len())
            }
            QuotasOf::Sids(list) => {
                sids.extend_from_slice(list);
                (list.len(), 0)
            }
        };
        let length = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let mut out = Vec::with_capacity(QUERY_LEN + sids.len());
        out.put_u8(u8::from(self.is_single));
        out.put_u8(u8::from(self.restarts));
        out.put_u16(0);
        out.put_u32(length(list_len));
        out.put_u32(length(start_len));
        out.put_u32(0);
        out.put(&sids);
        out
    }
}

/// Iterates over the SIDs that a client queries the quotas of (FILE_GET_QUOTA_INFORMATION). A
/// malformed entry gives an error. \[MS-FSCC\] 2.4.41.1
#[derive(Clone, Debug)]
pub struct QuotaSids<'a>(Chain<'a>);

impl<'a> QuotaSids<'a> {
    /// Makes the iterator over the encoded list of SIDs in `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        let field = "FILE_GET_QUOTA_INFORMATION";
        Self(Chain::new(bytes, field, SID_ALIGNMENT))
    }
}

impl Iterator for QuotaSids<'_> {
    type Item = Result<Sid, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.0.next()?;
        Some(entry.and_then(|entry| {
            let mut reader = Reader::new(entry);
            let sid_len = reader.u32("SidLength")?;
            read_sid(&mut reader, sid_len)
        }))
    }
}

/// Returns the encoded list of the SIDs that a client queries the quotas of
/// (FILE_GET_QUOTA_INFORMATION). \[MS-FSCC\] 2.4.41.1
pub fn quota_sids(sids: &[Sid]) -> Vec<u8> {
    let mut chain = ChainWriter::new(Vec::new(), SID_ALIGNMENT, usize::MAX);
    for sid in sids {
        chain.push(|out| {
            out.put_u32(sid_len(sid));
            sid.encode(out);
        });
    }
    chain.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_the_layout_of_the_specification() {
        let quota = FileQuotaInformation {
            change_time: FileTime(1),
            used: 2,
            threshold: 3,
            limit: FileQuotaInformation::NO_LIMIT,
            sid: Sid::unix_user(7),
        };
        let mut writer = QuotaWriter::new(1000);
        assert!(writer.push(&quota) && writer.push(&quota));
        let bytes = writer.finish();
        assert_eq!(bytes[..8], [56, 0, 0, 0, 16, 0, 0, 0]);
        assert_eq!(bytes[32..40], [0xFF; 8]);
        assert_eq!(bytes.len(), 56 + 40 + 16);
        let decoded: Result<Vec<_>, _> = Quotas::new(&bytes).collect();
        assert_eq!(decoded, Ok(Vec::from([quota, quota])));
        let cut: Result<Vec<_>, _> = Quotas::new(&bytes[..bytes.len() - 1]).collect();
        assert!(cut.is_err(), "the last SID is not complete");
    }

    #[test]
    fn a_list_has_at_most_its_length() {
        let quota = FileQuotaInformation {
            sid: Sid::EVERYONE,
            ..FileQuotaInformation::default()
        };
        let mut writer = QuotaWriter::new(60);
        assert!(writer.is_empty());
        assert!(writer.push(&quota));
        assert!(!writer.push(&quota));
        assert_eq!(writer.finish().len(), 52);
    }

    #[test]
    fn queries_are_decoded_as_they_were_encoded() {
        let sids = [Sid::unix_user(1), Sid::unix_group(2)];
        let list = quota_sids(&sids);
        for of in [
            QuotasOf::All,
            QuotasOf::From(sids[1]),
            QuotasOf::Sids(&list),
        ] {
            let query = QuotaQuery {
                is_single: true,
                restarts: false,
                of,
            };
            let bytes = query.encode();
            assert_eq!(QuotaQuery::decode(&bytes), Ok(query));
            assert!(QuotaQuery::decode(&bytes[..bytes.len() - 1]).is_err());
        }
        let decoded: Result<Vec<_>, _> = QuotaSids::new(&list).collect();
        assert_eq!(decoded, Ok(sids.to_vec()));
    }

    #[test]
    fn a_length_that_is_not_that_of_the_sid_is_refused() {
        let mut list = quota_sids(&[Sid::EVERYONE]);
        list.extend_from_slice(&[0; 4]);
        list[4] += 4;
        assert!(QuotaSids::new(&list).any(|sid| sid.is_err()));
    }
}
