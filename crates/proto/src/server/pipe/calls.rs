//! The remote procedure calls of the services behind the pipes.

mod srvsvc;
mod wkssvc;

use alloc::vec::Vec;

use wire::rpc::FaultStatus;

use super::service::Service;
use crate::server::Server;
use crate::time::Now;

/// The caller of a remote procedure, and the state that the procedure reads.
pub(super) struct Caller<'a> {
    pub(super) server: &'a Server,
    pub(super) now: Now,
    /// Whether the caller is an authenticated user, not a guest and not anonymous.
    pub(super) is_named: bool,
}

/// The operating system version that the server reports, as Samba does: that of Windows 7. Clients
/// treat a server with an older one as less capable.
const VERSION: (u32, u32) = (6, 1);

/// Executes one call. Returns its encoded results.
pub(super) fn call(
    service: Service,
    caller: &Caller<'_>,
    opnum: u16,
    stub: &[u8],
) -> Result<Vec<u8>, FaultStatus> {
    match service {
        Service::Server => srvsvc::call(caller, opnum, stub),
        Service::Workstation => wkssvc::call(caller, opnum, stub),
    }
}
