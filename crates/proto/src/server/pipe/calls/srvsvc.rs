//! The server service: lists the shares and describes the server. \[MS-SRVS\] 3.1.4
//!
//! A user without access to a share sees its name all the same, as with Samba; `hidden` keeps it
//! out of the list. The answers do not contain the local directory of a share.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use wire::rpc::srvsvc::{
    Opnum, PLATFORM_NT, RemoteTod, RemoteTodResponse, ServerGetInfo, ServerGetInfoResponse,
    ServerInfo, ServerType, ShareEnum, ShareEnumResponse, ShareGetInfo, ShareGetInfoResponse,
    ShareInfo, ShareType, TimeOfDay,
};
use wire::rpc::{FaultStatus, WinError};

use super::{Caller, VERSION};
use crate::file::ShareId;
use crate::server::Server;
use crate::server::config::{Share, ShareKind};
use crate::server::session::Session;

/// Maximum bytes of a list of shares, even if the client accepts more: it asks for the rest with
/// the handle that it gets. Some 4,000 shares.
const MAX_LIST: u32 = 512 << 10;
/// Bytes of a share in a list, beside its texts: members and the counts of the texts.
const ENTRY: usize = 96;

pub(super) fn call(caller: &Caller<'_>, opnum: u16, stub: &[u8]) -> Result<Vec<u8>, FaultStatus> {
    let bad = |_| FaultStatus::BAD_STUB_DATA;
    let server = caller.server;
    match Opnum(opnum) {
        Opnum::SHARE_ENUM => {
            let request = ShareEnum::decode(stub).map_err(bad)?;
            Ok(share_enum(caller, &request, |_| true).encode())
        }
        Opnum::SHARE_ENUM_STICKY => {
            let request = ShareEnum::decode(stub).map_err(bad)?;
            // [MS-SRVS] 3.1.4.9 has no such level; smbtorture rpc.srvsvc.
            if request.level == 501 {
                return Ok(refused(&request, WinError::INVALID_LEVEL).encode());
            }
            Ok(share_enum(caller, &request, |share| !is_special(share)).encode())
        }
        Opnum::SHARE_GET_INFO => {
            let request = ShareGetInfo::decode(stub).map_err(bad)?;
            Ok(share_get_info(caller, &request).encode())
        }
        Opnum::SERVER_GET_INFO => {
            let request = ServerGetInfo::decode(stub).map_err(bad)?;
            Ok(server_get_info(server, request.level).encode())
        }
        Opnum::REMOTE_TOD => {
            RemoteTod::decode(stub).map_err(bad)?;
            Ok(remote_tod(caller).encode())
        }
        _ => Err(FaultStatus::OP_RANGE),
    }
}

/// A guest or anonymous user gets the names, kinds and comments of shares only: smbtorture
/// rpc.srvsvc, as with Windows.
fn check_level(caller: &Caller<'_>, level: u32) -> WinError {
    match level {
        0 | 1 | 501 | 1004 | 1005 => WinError::SUCCESS,
        2 | 502 | 503 | 1006 if caller.is_named => WinError::SUCCESS,
        2 | 502 | 503 | 1006 => WinError::ACCESS_DENIED,
        _ => WinError::INVALID_LEVEL,
    }
}

/// An absent list.
fn refused(request: &ShareEnum, status: WinError) -> ShareEnumResponse {
    ShareEnumResponse {
        level: request.level,
        shares: None,
        total_entries: 0,
        resume_handle: request.resume_handle,
        status,
    }
}

/// \[MS-SRVS\] 3.1.4.8. One share fits in any length, so that each request makes progress.
fn share_enum(
    caller: &Caller<'_>,
    request: &ShareEnum,
    is_wanted: impl Fn(&Share) -> bool,
) -> ShareEnumResponse {
    let status = match request.level {
        // Levels of one share.
        1004.. => WinError::INVALID_LEVEL,
        // For a single share every user gets this level.
        501 if !caller.is_named => WinError::ACCESS_DENIED,
        level => check_level(caller, level),
    };
    if status != WinError::SUCCESS {
        return refused(request, status);
    }
    let server = caller.server;
    let start = request.resume_handle.unwrap_or(0);
    let known = server.shares();
    let listed = known.iter();
    let listed = listed.filter(|share| share.listed && is_wanted(share));
    let left: Vec<_> = listed.skip(start as usize).collect();
    let mut room = request.preferred_length.min(MAX_LIST) as usize;
    let mut shares: Vec<ShareInfo> = Vec::new();
    for share in &left {
        let needed = ENTRY + 2 * (share.name.len() + share.comment.len());
        if needed > room && !shares.is_empty() {
            break;
        }
        room = room.saturating_sub(needed);
        shares.push(describe(server, share, request.level));
    }
    let count = |shares: usize| u32::try_from(shares).unwrap_or(u32::MAX);
    let (status, next) = match shares.len() < left.len() {
        true => (
            WinError::MORE_DATA,
            start.saturating_add(count(shares.len())),
        ),
        false => (WinError::SUCCESS, 0),
    };
    ShareEnumResponse {
        level: request.level,
        total_entries: count(left.len()),
        shares: Some(shares),
        resume_handle: request.resume_handle.map(|_| next),
        status,
    }
}

/// \[MS-SRVS\] 3.1.4.10
fn share_get_info(caller: &Caller<'_>, request: &ShareGetInfo) -> ShareGetInfoResponse {
    let (server, level) = (caller.server, request.level);
    let found = server.find_share(&request.share);
    let status = match (check_level(caller, level), &found) {
        (WinError::SUCCESS, None) => WinError::NET_NAME_NOT_FOUND,
        (status, _) => status,
    };
    let found = found.filter(|_| status == WinError::SUCCESS);
    ShareGetInfoResponse {
        level,
        share: found.map(|share| describe(server, &share, level)),
        status,
    }
}

fn describe(server: &Server, share: &Share, level: u32) -> ShareInfo {
    let mut share_type = match share.kind {
        ShareKind::Disk => ShareType::DISKTREE,
        ShareKind::Pipe => ShareType::IPC,
    };
    if is_special(share) {
        share_type |= ShareType::SPECIAL;
    }
    let counts = matches!(level, 2 | 502 | 503);
    ShareInfo {
        name: share.name.clone(),
        share_type,
        comment: share.comment.clone(),
        permissions: 0,
        max_uses: u32::MAX,
        current_uses: if counts { uses(server, share.id) } else { 0 },
        path: String::new(),
        password: None,
        server_name: "*".to_string(),
        flags: 0,
        security_descriptor: Vec::new(),
    }
}

/// Whether clients hide a share with this name. \[MS-SRVS\] 2.2.2.4
fn is_special(share: &Share) -> bool {
    share.name.ends_with('$')
}

/// How many tree connects a share has.
fn uses(server: &Server, share: ShareId) -> u32 {
    let sessions: Vec<Arc<Session>> = server.sessions.lock().values().cloned().collect();
    let of_session = |session: &Arc<Session>| {
        let trees = session.trees.lock();
        trees.values().filter(|tree| tree.share.id == share).count()
    };
    let count: usize = sessions.iter().map(of_session).sum();
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// \[MS-SRVS\] 3.1.4.17. The server does not announce itself and disconnects no idle client.
fn server_get_info(server: &Server, level: u32) -> ServerGetInfoResponse {
    let config = &server.settings();
    let info = ServerInfo {
        platform: PLATFORM_NT,
        name: config.name.clone(),
        version_major: VERSION.0,
        version_minor: VERSION.1,
        server_type: ServerType::WORKSTATION
            | ServerType::SERVER
            | ServerType::SERVER_UNIX
            | ServerType::NT
            | ServerType::SERVER_NT,
        comment: config.comment.clone(),
        users: u32::MAX,
        disconnect: u32::MAX,
        is_hidden: true,
        announce: 0,
        announce_delta: 0,
        licenses: 0,
        user_path: String::new(),
    };
    let is_known = ServerGetInfoResponse::knows(level);
    ServerGetInfoResponse {
        level,
        server: is_known.then_some(info),
        status: match is_known {
            true => WinError::SUCCESS,
            false => WinError::INVALID_LEVEL,
        },
    }
}

/// \[MS-SRVS\] 3.1.4.21. In UTC: the core knows of no time zone.
fn remote_tod(caller: &Caller<'_>) -> RemoteTodResponse {
    let ticks = caller.now.instant.0.as_millis();
    let ticks = u32::try_from(ticks & u128::from(u32::MAX)).expect("the lower half");
    RemoteTodResponse {
        time: Some(TimeOfDay::at(caller.now.wall, ticks)),
        status: WinError::SUCCESS,
    }
}
