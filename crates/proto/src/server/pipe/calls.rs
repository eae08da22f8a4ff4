//! The remote procedure calls of the services behind the pipes.

mod lsarpc;
mod srvsvc;
mod wkssvc;

use alloc::vec::Vec;

use spin::Mutex;
use wire::rpc::FaultStatus;

use super::service::Service;
use crate::account::AccountQuery;
use crate::server::Server;
use crate::time::Now;
pub(super) use lsarpc::{Lookup, Policies};

/// The caller of a remote procedure, and the state that the procedure reads.
pub(super) struct Caller<'a> {
    pub(super) server: &'a Server,
    pub(super) now: Now,
    /// Whether the caller is an authenticated user, not a guest and not anonymous.
    pub(super) is_named: bool,
}

/// The result of a call that does not fail.
pub(super) enum Called {
    /// Its encoded results.
    Done(Vec<u8>),
    /// The driver must translate names or SIDs first.
    LookUp(AccountQuery, Lookup),
}

/// The operating system version that the server reports, as Samba does: that of Windows 7. Clients
/// treat a server with an older one as less capable.
const VERSION: (u32, u32) = (6, 1);

/// Executes one call. `policies` are those that the client has opened on the pipe.
pub(super) fn call(
    service: Service,
    caller: &Caller<'_>,
    policies: &Mutex<Policies>,
    opnum: u16,
    stub: &[u8],
) -> Result<Called, FaultStatus> {
    match service {
        Service::Server => srvsvc::call(caller, opnum, stub).map(Called::Done),
        Service::Workstation => wkssvc::call(caller, opnum, stub).map(Called::Done),
        Service::SecurityAuthority => lsarpc::call(caller, &mut policies.lock(), opnum, stub),
    }
}
