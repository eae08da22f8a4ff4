//! The workstation service: describes the machine. \[MS-WKST\] 3.2.4

use alloc::string::String;
use alloc::vec::Vec;

use wire::rpc::srvsvc::PLATFORM_NT;
use wire::rpc::wkssvc::{Opnum, WkstaGetInfo, WkstaGetInfoResponse, WkstaInfo};
use wire::rpc::{FaultStatus, WinError};

use super::{Caller, VERSION};

pub(super) fn call(caller: &Caller<'_>, opnum: u16, stub: &[u8]) -> Result<Vec<u8>, FaultStatus> {
    match Opnum(opnum) {
        Opnum::WKSTA_GET_INFO => {
            let request = WkstaGetInfo::decode(stub).map_err(|_| FaultStatus::BAD_STUB_DATA)?;
            Ok(get_info(caller, request.level).encode())
        }
        _ => Err(FaultStatus::OP_RANGE),
    }
}

/// A guest or anonymous user gets no more than level 100, as with Samba.
fn get_info(caller: &Caller<'_>, level: u32) -> WkstaGetInfoResponse {
    let status = match level {
        100 => WinError::SUCCESS,
        101 | 102 if caller.is_named => WinError::SUCCESS,
        101 | 102 => WinError::ACCESS_DENIED,
        _ => WinError::INVALID_LEVEL,
    };
    let info = (status == WinError::SUCCESS).then(|| describe(caller));
    WkstaGetInfoResponse {
        level,
        info,
        status,
    }
}

fn describe(caller: &Caller<'_>) -> WkstaInfo {
    let config = &caller.server.settings();
    let sessions = caller.server.sessions.lock().len();
    WkstaInfo {
        platform: PLATFORM_NT,
        computer: config.name.clone(),
        domain: config.domain.clone(),
        version_major: VERSION.0,
        version_minor: VERSION.1,
        lan_root: String::new(),
        logged_on_users: u32::try_from(sessions).unwrap_or(u32::MAX),
    }
}
