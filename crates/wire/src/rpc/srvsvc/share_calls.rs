//! NetrShareEnum, NetrShareEnumSticky and NetrShareGetInfo. \[MS-SRVS\] 3.1.4.8 to 3.1.4.10

use alloc::string::String;
use alloc::vec::Vec;

use super::ShareInfo;
use super::share::fields;
use crate::error::DecodeError;
use crate::layout::u32_of;
use crate::rpc::WinError;
use crate::rpc::ndr::{Reader, Writer};

/// NetrShareEnum and NetrShareEnumSticky, request: list shares. \[MS-SRVS\] 3.1.4.8
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareEnum {
    /// The server as the client calls it: `\\name`. Not looked at.
    pub server_name: Option<String>,
    /// What to tell of each: 0, 1, 2, 501, 502, 503.
    pub level: u32,
    /// Bytes that the client would like at most; [`super::ALL`] for any number.
    pub preferred_length: u32,
    /// Where to go on: 0, or what the last answer said.
    pub resume_handle: Option<u32>,
}

impl ShareEnum {
    /// Reads the stub. Of a level that is not known only the level is sure.
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
            // The container comes empty: what is in it is for the server to say.
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

    /// The stub.
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

/// NetrShareEnum and NetrShareEnumSticky, response. \[MS-SRVS\] 3.1.4.8
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareEnumResponse {
    /// What is told of each.
    pub level: u32,
    /// The shares; `None` where there is no list at all, as after an error.
    pub shares: Option<Vec<ShareInfo>>,
    /// Shares that there are from where this call began.
    pub total_entries: u32,
    /// Where to go on, if the client gave a place for it.
    pub resume_handle: Option<u32>,
    /// SUCCESS, MORE_DATA, or what went wrong.
    pub status: WinError,
}

impl ShareEnumResponse {
    /// Reads the stub.
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

    /// The stub.
    ///
    /// # Panics
    /// When there is a list at a level that is not known.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.put_u32(self.level);
        out.put_u32(self.level);
        let known = fields(self.level);
        match (&self.shares, known) {
            (Some(shares), known) => {
                let fields = known.expect("a list is of a known level");
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

/// SHARE_INFO_1_CONTAINER and its like. \[MS-SRVS\] 2.2.4.32 to 2.2.4.37
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

/// NetrShareGetInfo, request: what is known of one share. \[MS-SRVS\] 3.1.4.10
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareGetInfo {
    /// The server as the client calls it. Not looked at.
    pub server_name: Option<String>,
    /// The share.
    pub share: String,
    /// What to tell: also 1004, 1005, 1006 and 1501.
    pub level: u32,
}

impl ShareGetInfo {
    /// Reads the stub.
    pub fn decode(stub: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(stub);
        Ok(Self {
            server_name: reader.unique_string("ServerName")?,
            share: reader.string("NetName")?,
            level: reader.u32("Level")?,
        })
    }

    /// The stub.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.put_unique_string(self.server_name.as_deref());
        out.put_string(&self.share);
        out.put_u32(self.level);
        out.into_stub()
    }
}

/// NetrShareGetInfo, response. \[MS-SRVS\] 3.1.4.10
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareGetInfoResponse {
    /// What is told.
    pub level: u32,
    /// The share.
    pub share: Option<ShareInfo>,
    /// SUCCESS, or what went wrong.
    pub status: WinError,
}

impl ShareGetInfoResponse {
    /// Reads the stub.
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

    /// The stub.
    ///
    /// # Panics
    /// When there is a share at a level that is not known.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.put_u32(self.level);
        let known = fields(self.level);
        match (&self.share, known) {
            (Some(share), known) => {
                let fields = known.expect("a share is told at a known level");
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
