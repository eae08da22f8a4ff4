//! SRV_REQUEST_RESUME_KEY: a name for an open as the source of a copy. \[MS-SMB2\] 3.3.5.15.5
//!
//! The key says which open of which session, and is looked up among the opens of the session that
//! shows it: it gives no other session access, and is invalid once the open is closed.

use alloc::sync::Arc;

use wire::fsctl::ResumeKeyResponse;
use wire::ioctl::Request;
use wire::{FileId, Status};

use super::request::reply;
use crate::server::context::{Context, Reply};
use crate::server::open::Open;
use crate::server::session::Session;

/// Bytes of a key. \[MS-SMB2\] 2.2.32.3
type Key = [u8; 24];

/// Answers at once.
pub(super) fn start(context: &mut Context<'_>, request: &Request<'_>) -> Result<Reply, Status> {
    let open = context.open(request.file_id)?;
    if request.max_output_response < ResumeKeyResponse::LEN {
        return Err(Status::INVALID_PARAMETER);
    }
    let resume_key = key(&context.session, open.id);
    let output = ResumeKeyResponse { resume_key }.encode();
    Ok(reply(request, &output))
}

/// The open that a key names, of whichever tree of the session.
pub(super) fn find(session: &Session, wanted: &Key) -> Result<Arc<Open>, Status> {
    let volatile = &wanted[8..16];
    let volatile = u64::from_le_bytes(volatile.try_into().expect("8 of 24 bytes"));
    let open = session.opens.lock().get(&volatile).cloned();
    let open = open.filter(|open| key(session, open.id) == *wanted);
    open.ok_or(Status::OBJECT_NAME_NOT_FOUND)
}

fn key(
    session: &Session,
    FileId {
        persistent,
        volatile,
    }: FileId,
) -> Key {
    let mut key = [0; 24];
    key[..8].copy_from_slice(&persistent.to_le_bytes());
    key[8..16].copy_from_slice(&volatile.to_le_bytes());
    key[16..].copy_from_slice(&session.id.0.to_le_bytes());
    key
}
