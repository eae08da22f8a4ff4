//! The create contexts of durable opens: DHnQ and DH2Q request one, DHnC and DH2C reconnect to one.
//! \[MS-SMB2\] 3.3.5.9.6, 3.3.5.9.7, 3.3.5.9.10, 3.3.5.9.12

use alloc::vec::Vec;
use core::time::Duration;

use wire::create_context::{
    DURABLE_REQUEST_DATA, DURABLE_RESPONSE_DATA, DurableFlags, DurableReconnect,
    DurableReconnectV2, DurableRequestV2, DurableResponseV2, LeaseState, RawContext, find, name,
};
use wire::dialect::Dialect;
use wire::{FileId, Guid, Status};

use crate::server::config::Limits;
use crate::server::context::Context;
use crate::server::durability::{Durability, is_enough};
use crate::server::open::malformed;

/// Time for which the server preserves a durable open of version 2 if the client names none: as
/// Windows and Samba. \[MS-SMB2\] 3.3.5.9.10
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// The contexts of a CREATE that reconnects. \[MS-SMB2\] 3.3.5.9.7, 3.3.5.9.12
/// cifs.ko sends the POSIX context of each CREATE, SMB2_open_init in fs/smb/client/smb2pdu.c.
const MAY_STAND_BESIDE: [&[u8]; 5] = [
    name::DURABLE_RECONNECT,
    name::DURABLE_RECONNECT_V2,
    name::DURABLE_REQUEST,
    name::LEASE,
    name::POSIX,
];

/// The durable open that a CREATE requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DurableRequest {
    /// None.
    #[default]
    None,
    /// DHnQ.
    V1,
    /// DH2Q. A persistent open is granted as a durable one: no share is continuously available.
    V2(DurableRequestV2),
}

/// A request to reconnect to a durable open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reconnect {
    /// The open. Its persistent half counts.
    pub(crate) file_id: FileId,
    /// The CreateGuid of DH2C; `None` for DHnC.
    pub(crate) create_guid: Option<Guid>,
}

impl DurableRequest {
    /// Reads the contexts of a CREATE that is no reconnect.
    pub(crate) fn new(contexts: &[RawContext<'_>]) -> Result<Self, Status> {
        let first = find(contexts, name::DURABLE_REQUEST);
        let second = find(contexts, name::DURABLE_REQUEST_V2);
        match (first, second) {
            (None, None) => Ok(Self::None),
            (Some(data), None) if data.len() == DURABLE_REQUEST_DATA.len() => Ok(Self::V1),
            (None, Some(data)) => DurableRequestV2::decode(data)
                .map(Self::V2)
                .map_err(malformed),
            // [MS-SMB2] 3.3.5.9.6: not both.
            _ => Err(Status::INVALID_PARAMETER),
        }
    }

    /// The client's name for the CREATE.
    pub(crate) fn create_guid(self) -> Option<Guid> {
        match self {
            Self::V2(request) => Some(request.create_guid),
            Self::None | Self::V1 => None,
        }
    }

    /// The durability of an open that has these caching rights.
    pub(crate) fn grant(
        self,
        context: &Context<'_>,
        rights: LeaseState,
        is_directory: bool,
    ) -> Durability {
        let limits = &context.config.limits;
        // Samba grants none on directories. A guest cannot prove later that the open is its own.
        let is_possible = is_enough(rights)
            && !is_directory
            && context.tree.share.durable_handles
            && context.session.state.lock().is_named();
        let timeout = self.timeout(context.dialect, limits);
        match timeout.filter(|timeout| is_possible && !timeout.is_zero()) {
            Some(timeout) => Durability::Durable { timeout },
            None => Durability::None,
        }
    }

    fn timeout(self, dialect: Dialect, limits: &Limits) -> Option<Duration> {
        let max = limits.durable_timeout_max;
        match self {
            Self::None => None,
            Self::V1 => Some(max),
            Self::V2(_) if dialect < Dialect::SMB_3_0 => None,
            Self::V2(request) if request.timeout_ms == 0 => Some(DEFAULT_TIMEOUT.min(max)),
            Self::V2(request) => Some(Duration::from_millis(request.timeout_ms.into()).min(max)),
        }
    }

    /// The context of the response: its name and data. `None` if the open is not durable.
    pub(crate) fn answer(self, granted: Durability) -> Option<(&'static [u8], Vec<u8>)> {
        let Durability::Durable { timeout } = granted else {
            return None;
        };
        match self {
            Self::None => None,
            Self::V1 => Some((name::DURABLE_REQUEST, DURABLE_RESPONSE_DATA.to_vec())),
            Self::V2(_) => {
                let response = DurableResponseV2 {
                    timeout_ms: u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX),
                    flags: DurableFlags::NONE,
                };
                Some((name::DURABLE_REQUEST_V2, response.encode()))
            }
        }
    }
}

impl Reconnect {
    /// Reads the contexts of a CREATE; `None` if it is no reconnect. A server before dialect 3.0
    /// does not know version 2.
    pub(crate) fn find(
        contexts: &[RawContext<'_>],
        dialect: Dialect,
    ) -> Result<Option<Self>, Status> {
        let first = find(contexts, name::DURABLE_RECONNECT);
        let second = find(contexts, name::DURABLE_RECONNECT_V2);
        let second = second.filter(|_| dialect >= Dialect::SMB_3_0);
        let requests_v1 = find(contexts, name::DURABLE_REQUEST).is_some();
        let requests_v2 = find(contexts, name::DURABLE_REQUEST_V2).is_some();
        let reconnect = match (first, second) {
            (None, None) => return Ok(None),
            // A request of version 1 beside it is ignored.
            (Some(data), None) if !requests_v2 => {
                let request = DurableReconnect::decode(data).map_err(malformed)?;
                Self {
                    file_id: request.file_id,
                    create_guid: None,
                }
            }
            (None, Some(data)) if !requests_v1 && !requests_v2 => {
                let request = DurableReconnectV2::decode(data).map_err(malformed)?;
                Self {
                    file_id: request.file_id,
                    create_guid: Some(request.create_guid),
                }
            }
            _ => return Err(Status::INVALID_PARAMETER),
        };
        // As Windows and Samba: only a lease may stand beside it.
        match contexts
            .iter()
            .all(|context| MAY_STAND_BESIDE.contains(&context.name))
        {
            true => Ok(Some(reconnect)),
            false => Err(Status::OBJECT_NAME_NOT_FOUND),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: [u8; 16] = [0; 16];
    const V2: [u8; 36] = [0; 36];
    const REQUEST: [u8; 32] = [0; 32];

    fn find_in(contexts: &[(&'static [u8], &[u8])]) -> Result<bool, Status> {
        let contexts: Vec<_> = contexts
            .iter()
            .map(|(name, data)| RawContext { name, data })
            .collect();
        Reconnect::find(&contexts, Dialect::SMB_3_1_1).map(|found| found.is_some())
    }

    #[test]
    fn combinations_of_contexts_are_checked() {
        let (dhnq, dhnc) = (name::DURABLE_REQUEST, name::DURABLE_RECONNECT);
        let (dh2q, dh2c) = (name::DURABLE_REQUEST_V2, name::DURABLE_RECONNECT_V2);
        let invalid = Err(Status::INVALID_PARAMETER);
        let not_found = Err(Status::OBJECT_NAME_NOT_FOUND);
        assert_eq!(find_in(&[]), Ok(false));
        assert_eq!(find_in(&[(dhnq, &V1)]), Ok(false));
        assert_eq!(find_in(&[(dhnc, &V1)]), Ok(true));
        assert_eq!(find_in(&[(dh2c, &V2)]), Ok(true));
        assert_eq!(find_in(&[(dhnc, &V1), (dhnq, &V1)]), Ok(true));
        assert_eq!(find_in(&[(dh2c, &V2), (name::LEASE, &[0; 52])]), Ok(true));
        // smbtorture smb2.durable-v2-open.create-blob
        assert_eq!(find_in(&[(dh2c, &V2), (dhnq, &V1)]), invalid);
        assert_eq!(find_in(&[(dhnc, &V1), (dh2q, &REQUEST)]), invalid);
        assert_eq!(find_in(&[(dhnc, &V1), (dh2c, &V2)]), invalid);
        assert_eq!(find_in(&[(dh2c, &V2), (dh2q, &REQUEST)]), invalid);
        assert_eq!(find_in(&[(dhnc, &V1[1..])]), invalid);
        assert_eq!(find_in(&[(dh2c, &V2[1..])]), invalid);
        assert_eq!(find_in(&[(dh2c, &V2), (name::POSIX, &[0; 4])]), Ok(true));
        assert_eq!(find_in(&[(dh2c, &V2), (name::ON_DISK_ID, &[])]), not_found);
    }

    #[test]
    fn version_2_is_unknown_before_dialect_3() {
        let context = RawContext {
            name: name::DURABLE_RECONNECT_V2,
            data: &V2,
        };
        let found = Reconnect::find(&[context], Dialect::SMB_2_1);
        assert_eq!(found, Ok(None));
    }

    #[test]
    fn the_timeout_has_a_default_and_a_maximum() {
        let limits = Limits::default();
        let request = |timeout_ms| {
            DurableRequest::V2(DurableRequestV2 {
                timeout_ms,
                flags: DurableFlags::PERSISTENT,
                create_guid: Guid::default(),
            })
        };
        let seconds = |request: DurableRequest| request.timeout(Dialect::SMB_3_1_1, &limits);
        let of = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(seconds(DurableRequest::None), None);
        assert_eq!(seconds(DurableRequest::V1), of(300));
        assert_eq!(seconds(request(0)), of(60));
        assert_eq!(seconds(request(1)), Some(Duration::from_millis(1)));
        assert_eq!(seconds(request(u32::MAX)), of(300));
        assert_eq!(request(1).timeout(Dialect::SMB_2_1, &limits), None);
    }
}
