//! NetrShareEnum, NetrShareEnumSticky and NetrShareGetInfo. \[MS-SRVS\] 3.1.4.8 to 3.1.4.10

use alloc::string::String;
use alloc::vec::Vec;

use super::ShareInfo;
use super::share::fields;
use crate::error::DecodeError;
use crate::layout::u32_of;
use crate::rpc::WinError;
use crate::rpc::ndr::{Reader, Writer};

/// The arguments of the RPC calls NetrShareEnum and NetrShareEnumSticky: the client lists the
/// shares of the server. \[MS-SRVS\] 3.1.4.8
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareEnum {
    /// Name of the server, as the client addresses it: `\\name`; `None` for a null pointer. Servers
    /// ignore it.
    pub server_name: Option<String>,
    /// Information level, which selects the returned fields: 0, 1, 2, 501, 502 or 503.
    pub level: u32,
    /// Length in bytes that the response should not exceed; [`super::ALL`] for no limit.
    pub preferred_length: u32,
    /// Position in the list from which the server continues: 0 for the start, or the value of the
    /// last response. `None` for a null pointer, which also means the start.
    pub resume_handle: Option<u32>,
}

impl ShareEnum {
    /// Decodes the stub: the NDR encoding of the fields, without RPC headers. For an unsupported
    /// level, only the level and the server name are valid. Fails when `stub` is truncated, or its
    /// fields contradict each other.
    pub fn decode(stub: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(stub);
        let server_name = reader.unique_string("ServerName")?;
        let level = reader.u32("Level")?;
        let arm = reader.u32("switch")?;
        if arm != level {
            return Err(invalid("switch", arm));
        }
        let Some(_) = fields(level) else {
            let (preferred_length, resume_handle) = (super::ALL, None);
            return Ok(Self {
                server_name,
                level,
                preferred_length,
                resume_handle,
            });
        };
        if reader.pointer("ShareInfo")? {
            // The client sends an empty container for the server to fill.
            let count = reader.u32("EntriesRead")?;
            if reader.pointer("Buffer")? {
                return Err(invalid("EntriesRead", count));
            }
        }
        let preferred_length = reader.u32("PreferedMaximumLength")?;
        let has_handle = reader.pointer("ResumeHandle")?;
        let resume_handle = has_handle.then(|| reader.u32("ResumeHandle")).transpose()?;
        Ok(Self {
            server_name,
            level,
            preferred_length,
            resume_handle,
        })
    }

    /// Encodes the stub: the NDR encoding of the fields, without RPC headers.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.put_unique_string(self.server_name.as_deref());
        out.put_u32(self.level);
        out.put_u32(self.level);
        if fields(self.level).is_some() {
            out.put_pointer(true);
            out.put_u32(0);
            out.put_pointer(false);
        }
        out.put_u32(self.preferred_length);
        put_handle(self.resume_handle, &mut out);
        out.into_stub()
    }
}

/// The results of the RPC calls NetrShareEnum and NetrShareEnumSticky: a list of shares, or an
/// error. \[MS-SRVS\] 3.1.4.8
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareEnumResponse {
    /// Information level of the listed shares, which selects their fields, as in the request.
    pub level: u32,
    /// The listed shares; `None` when the response has no list, for example after an error.
    pub shares: Option<Vec<ShareInfo>>,
    /// Number of shares that the server has from the position of this call to the end of the list.
    pub total_entries: u32,
    /// Position in the list from which the next call continues; `None` if the client sent none.
    pub resume_handle: Option<u32>,
    /// Result of the call: SUCCESS, MORE_DATA when the list is incomplete, or an error code.
    pub status: WinError,
}

impl ShareEnumResponse {
    /// Decodes the stub: the NDR encoding of the fields, without RPC headers. Fails when `stub` is
    /// truncated, or a string or array in it is malformed.
    pub fn decode(stub: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(stub);
        let level = reader.u32("Level")?;
        let arm = reader.u32("switch")?;
        if arm != level {
            return Err(invalid("switch", arm));
        }
        let shares = read_container(level, &mut reader)?;
        let total_entries = reader.u32("TotalEntries")?;
        let has_handle = reader.pointer("ResumeHandle")?;
        let resume_handle = has_handle.then(|| reader.u32("ResumeHandle")).transpose()?;
        let status = WinError(reader.u32("return value")?);
        Ok(Self {
            level,
            shares,
            total_entries,
            resume_handle,
            status,
        })
    }

    /// Encodes the stub: the NDR encoding of the fields, without RPC headers.
    ///
    /// # Panics
    /// Panics when a list is present and the level is not supported.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.put_u32(self.level);
        out.put_u32(self.level);
        let known = fields(self.level);
        match (&self.shares, known) {
            (Some(shares), known) => {
                let fields = known.expect("a list is present only at a supported level");
                out.put_pointer(true);
                out.put_u32(u32_of(shares.len()));
                out.put_pointer(true);
                out.put_u32(u32_of(shares.len()));
                for share in shares {
                    share.put_fields(fields, &mut out);
                }
                for share in shares {
                    share.put_referents(fields, &mut out);
                }
            }
            (None, Some(_)) => out.put_pointer(false),
            (None, None) => {}
        }
        out.put_u32(self.total_entries);
        put_handle(self.resume_handle, &mut out);
        out.put_u32(self.status.0);
        out.into_stub()
    }
}

/// Reads SHARE_INFO_1_CONTAINER or the container of another level. \[MS-SRVS\] 2.2.4.32 to 2.2.4.37
fn read_container(
    level: u32,
    reader: &mut Reader<'_>,
) -> Result<Option<Vec<ShareInfo>>, DecodeError> {
    let Some(fields) = fields(level) else {
        return Ok(None);
    };
    if !reader.pointer("ShareInfo")? {
        return Ok(None);
    }
    let entries = reader.u32("EntriesRead")?;
    if !reader.pointer("Buffer")? {
        let is_empty = entries == 0;
        return if is_empty {
            Ok(Some(Vec::new()))
        } else {
            Err(invalid("EntriesRead", entries))
        };
    }
    let count = reader.count("Buffer", fields.len() * 4)?;
    if u32_of(count) != entries {
        return Err(invalid("EntriesRead", entries));
    }
    let mut values = Vec::with_capacity(count * fields.len());
    for _ in 0..count {
        ShareInfo::read_fields(fields, reader, &mut values)?;
    }
    let shares = values
        .chunks_exact(fields.len())
        .map(|values| ShareInfo::read_referents(fields, values, reader))
        .collect::<Result<_, _>>()?;
    Ok(Some(shares))
}

fn put_handle(handle: Option<u32>, out: &mut Writer) {
    out.put_pointer(handle.is_some());
    if let Some(handle) = handle {
        out.put_u32(handle);
    }
}

fn invalid(field: &'static str, value: u32) -> DecodeError {
    DecodeError::Invalid {
        field,
        value: value.into(),
    }
}

/// The arguments of the RPC call NetrShareGetInfo: the client queries a description of one share.
/// \[MS-SRVS\] 3.1.4.10
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareGetInfo {
    /// Name of the server, as the client addresses it; `None` for a null pointer. Servers ignore
    /// it.
    pub server_name: Option<String>,
    /// Name of the share that the client queries.
    pub share: String,
    /// Information level, which selects the returned fields: 0, 1, 2, 501, 502, 503, 1004, 1005,
    /// 1006 or 1501.
    pub level: u32,
}

impl ShareGetInfo {
    /// Decodes the stub: the NDR encoding of the fields, without RPC headers. Fails when `stub` is
    /// truncated, or a string or array in it is malformed.
    pub fn decode(stub: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(stub);
        Ok(Self {
            server_name: reader.unique_string("ServerName")?,
            share: reader.string("NetName")?,
            level: reader.u32("Level")?,
        })
    }

    /// Encodes the stub: the NDR encoding of the fields, without RPC headers.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.put_unique_string(self.server_name.as_deref());
        out.put_string(&self.share);
        out.put_u32(self.level);
        out.into_stub()
    }
}

/// The results of the RPC call NetrShareGetInfo: a description of the share, or an error.
/// \[MS-SRVS\] 3.1.4.10
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareGetInfoResponse {
    /// Information level of the results, which selects the returned fields, as in the request.
    pub level: u32,
    /// The description of the share; `None` after an error.
    pub share: Option<ShareInfo>,
    /// Result of the call: SUCCESS, or an error code.
    pub status: WinError,
}

impl ShareGetInfoResponse {
    /// Decodes the stub: the NDR encoding of the fields, without RPC headers. Fails when `stub` is
    /// truncated, or a string or array in it is malformed.
    pub fn decode(stub: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(stub);
        let level = reader.u32("switch")?;
        let mut share = None;
        if let Some(fields) = fields(level)
            && reader.pointer("InfoStruct")?
        {
            let mut values = Vec::with_capacity(fields.len());
            ShareInfo::read_fields(fields, &mut reader, &mut values)?;
            share = Some(ShareInfo::read_referents(fields, &values, &mut reader)?);
        }
        let status = WinError(reader.u32("return value")?);
        Ok(Self {
            level,
            share,
            status,
        })
    }

    /// Encodes the stub: the NDR encoding of the fields, without RPC headers.
    ///
    /// # Panics
    /// Panics when a share is present and the level is not supported.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.put_u32(self.level);
        let known = fields(self.level);
        match (&self.share, known) {
            (Some(share), known) => {
                let fields = known.expect("a share is present only at a supported level");
                out.put_pointer(true);
                share.put_fields(fields, &mut out);
                share.put_referents(fields, &mut out);
            }
            (None, Some(_)) => out.put_pointer(false),
            (None, None) => {}
        }
        out.put_u32(self.status.0);
        out.into_stub()
    }
}
