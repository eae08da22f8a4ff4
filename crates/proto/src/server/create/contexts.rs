//! The create contexts that the server evaluates: SecD, MxAc, QFid, AlSi, RqLs and those of durable
//! opens, and contexts that it refuses. \[MS-SMB2\] 3.3.5.9

use alloc::sync::Arc;
use alloc::vec::Vec;

use wire::access::AccessMask;
use wire::create_context::{
    AllocationSize, Lease, MaximalAccessRequest, MaximalAccessResponse, OnDiskIdResponse,
    PosixRequest, RawContext, Timewarp, find, name,
};
use wire::security::SecurityDescriptor;
use wire::{FileTime, Guid, Status};

use super::app_instance;
use super::durable::DurableRequest;
use crate::file::{Metadata, PosixOpen};
use crate::server::app_instances::AppInstance;
use crate::server::open::malformed;
use crate::server::posix;

/// What the contexts of a request ask for. Contexts that are not known are passed over, as the
/// specification asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// AlSi: bytes to reserve.
    pub(crate) allocation: u64,
    /// SecD: the security descriptor of a new file.
    pub(crate) security: Option<Arc<SecurityDescriptor>>,
    /// MxAc.
    maximal_access: Option<MaximalAccessRequest>,
    /// QFid.
    on_disk_id: bool,
    /// DHnQ or DH2Q.
    pub(crate) durable: DurableRequest,
    /// APP_INSTANCE_ID and APP_INSTANCE_VERSION, beside DH2Q.
    pub(crate) app_instance: Option<AppInstance>,
    /// RqLs: the lease that the open joins.
    pub(crate) lease: Option<Lease>,
    /// The context of the SMB3 POSIX extensions.
    pub(crate) posix: Option<PosixOpen>,
}

impl Asked {
    /// Reads the contexts; one that is heeded but malformed fails the request. `has_posix`: client
    /// and share have the SMB3 POSIX extensions; their context is passed over otherwise.
    pub(crate) fn new(contexts: &[RawContext<'_>], has_posix: bool) -> Result<Self, Status> {
        refuse(contexts)?;
        let mut asked = Self::default();
        if let Some(data) = find(contexts, name::POSIX).filter(|_| has_posix) {
            let PosixRequest { mode } = PosixRequest::decode(data).map_err(malformed)?;
            let mode = posix::permissions(mode);
            asked.posix = Some(PosixOpen { mode });
        }
        if let Some(data) = find(contexts, name::ALLOCATION_SIZE) {
            asked.allocation = allocation(data)?;
        }
        if let Some(data) = find(contexts, name::SECURITY_DESCRIPTOR) {
            let descriptor = SecurityDescriptor::decode(data).map_err(malformed)?;
            asked.security = Some(Arc::new(descriptor));
        }
        if let Some(data) = find(contexts, name::MAXIMAL_ACCESS) {
            let request = MaximalAccessRequest::decode(data).map_err(malformed)?;
            asked.maximal_access = Some(request);
        }
        asked.on_disk_id = find(contexts, name::ON_DISK_ID).is_some();
        asked.durable = DurableRequest::new(contexts)?;
        if asked.durable.create_guid().is_some() {
            asked.app_instance = app_instance::requested(contexts)?;
        }
        if let Some(data) = find(contexts, name::LEASE) {
            let lease = Lease::decode(data).map_err(malformed)?;
            // As with Samba, a key of zeros is none.
            asked.lease = Some(lease).filter(|lease| lease.lease_key != Guid::default());
        }
        Ok(asked)
    }

    /// The answers: name and data of each.
    pub(crate) fn answers(
        &self,
        metadata: &Metadata,
        maximal: AccessMask,
        lease: Option<&Lease>,
    ) -> Vec<(&'static [u8], Vec<u8>)> {
        let mut answers = Vec::new();
        if let Some(lease) = lease {
            answers.push((name::LEASE, lease.encode()));
        }
        if let Some(request) = self.maximal_access {
            let response = answer_maximal_access(request, metadata.written, maximal);
            answers.push((name::MAXIMAL_ACCESS, response.encode()));
        }
        if self.on_disk_id {
            let response = OnDiskIdResponse {
                disk_file_id: metadata.file_id(),
                volume_id: metadata.volume.serial,
            };
            answers.push((name::ON_DISK_ID, response.encode()));
        }
        if self.posix.is_some() {
            let mut data = Vec::new();
            posix::create_response(metadata).encode(&mut data);
            answers.push((name::POSIX, data));
        }
        answers
    }
}

/// Refuses contexts that the server must not ignore.
fn refuse(contexts: &[RawContext<'_>]) -> Result<(), Status> {
    // There are no snapshots: no file is as it was then. Samba says the same.
    if let Some(data) = find(contexts, name::TIMEWARP) {
        let Timewarp { timestamp } = Timewarp::decode(data).map_err(malformed)?;
        if timestamp != FileTime(0) {
            return Err(Status::OBJECT_NAME_NOT_FOUND);
        }
    }
    Ok(())
}

/// A signed number on the wire. \[MS-SMB2\] 2.2.13.2.6
fn allocation(data: &[u8]) -> Result<u64, Status> {
    let AllocationSize { allocation_size } = AllocationSize::decode(data).map_err(malformed)?;
    if i64::try_from(allocation_size).is_err() {
        return Err(Status::INVALID_PARAMETER);
    }
    Ok(allocation_size)
}

/// \[MS-SMB2\] 3.3.5.9.5: nothing is said where the file was not written since.
fn answer_maximal_access(
    request: MaximalAccessRequest,
    written: FileTime,
    maximal: AccessMask,
) -> MaximalAccessResponse {
    let is_unchanged = |timestamp: FileTime| timestamp != FileTime(0) && timestamp == written;
    if request.timestamp.is_some_and(is_unchanged) {
        return MaximalAccessResponse {
            query_status: Status::NONE_MAPPED,
            maximal_access: AccessMask::NONE,
        };
    }
    MaximalAccessResponse {
        query_status: Status::SUCCESS,
        maximal_access: maximal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context<'a>(name: &'a [u8], data: &'a [u8]) -> RawContext<'a> {
        RawContext { name, data }
    }

    fn asked(name: &[u8], data: &[u8]) -> Result<Asked, Status> {
        Asked::new(&[context(name, data)], true)
    }

    #[test]
    fn unknown_contexts_are_passed_over() {
        for name in [&b"What"[..], name::APPLE] {
            assert_eq!(asked(name, &[1, 2, 3]), Ok(Asked::default()), "{name:?}");
        }
    }

    #[test]
    fn heeded_contexts_of_a_wrong_length_fail_the_request() {
        let bad = Err(Status::INVALID_PARAMETER);
        assert_eq!(asked(name::ALLOCATION_SIZE, &[0; 7]), bad);
        assert_eq!(asked(name::ALLOCATION_SIZE, &[0xFF; 8]), bad);
        assert_eq!(asked(name::SECURITY_DESCRIPTOR, &[0; 20]), bad);
        assert_eq!(asked(name::MAXIMAL_ACCESS, &[0; 4]), bad);
        assert_eq!(asked(name::TIMEWARP, &[]), bad);
        assert_eq!(asked(name::LEASE, &[1; 31]), bad);
        assert_eq!(asked(name::LEASE, &[1; 51]), bad);
        assert_eq!(asked(name::DURABLE_REQUEST, &[0; 15]), bad);
        assert_eq!(asked(name::DURABLE_REQUEST_V2, &[0; 31]), bad);
        assert_eq!(asked(name::POSIX, &[0; 5]), bad);
    }

    #[test]
    fn the_posix_context_counts_if_client_and_share_have_it() {
        let data = 0o100_644_u32.to_le_bytes();
        let open = asked(name::POSIX, &data).expect("a good context").posix;
        assert_eq!(open, Some(PosixOpen { mode: 0o644 }));
        let contexts = [context(name::POSIX, &data[..3])];
        assert_eq!(Asked::new(&contexts, false), Ok(Asked::default()));
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        let not_found = Err(Status::OBJECT_NAME_NOT_FOUND);
        assert_eq!(asked(name::TIMEWARP, &[1; 8]), not_found);
        assert_eq!(asked(name::TIMEWARP, &[0; 8]), Ok(Asked::default()));
    }

    #[test]
    fn maximal_access_is_returned_unless_the_client_knows_it() {
        let metadata = Metadata {
            written: FileTime(77),
            ..Metadata::default()
        };
        let maximal = AccessMask(0x001F_01FF);
        let answer = |data: &[u8]| {
            let asked = asked(name::MAXIMAL_ACCESS, data).expect("a good context");
            let answers = asked.answers(&metadata, maximal, None);
            MaximalAccessResponse::decode(&answers[0].1).expect("a good answer")
        };
        assert_eq!(answer(&[]).maximal_access, maximal);
        assert_eq!(answer(&0_u64.to_le_bytes()).maximal_access, maximal);
        assert_eq!(answer(&76_u64.to_le_bytes()).maximal_access, maximal);
        assert_eq!(
            answer(&77_u64.to_le_bytes()).query_status,
            Status::NONE_MAPPED
        );
    }
}
