//! The services behind the pipes, and the calls that they do.

mod srvsvc;
mod wkssvc;

use alloc::vec::Vec;

use wire::rpc::{FaultStatus, SyntaxId};

use crate::server::Server;
use crate::time::Now;

/// What is behind a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    /// The server service, which lists shares. \[MS-SRVS\]
    Server,
    /// The workstation service. \[MS-WKST\]
    Workstation,
}

/// Who calls, and of what.
pub(super) struct Caller<'a> {
    pub(super) server: &'a Server,
    pub(super) now: Now,
    /// Whether it is a user who proved who it is.
    pub(super) is_named: bool,
}

/// The version that the server says it is, as Samba does: what Windows 7 was. Clients take an older
/// one for something that cannot do what it can.
const VERSION: (u32, u32) = (6, 1);

impl Service {
    /// The service behind a pipe of this name, in any case.
    pub(super) fn named(pipe: &str) -> Option<Self> {
        let all = [Self::Server, Self::Workstation];
        (all.into_iter()).find(|service| service.pipe().eq_ignore_ascii_case(pipe))
    }

    /// The name of its pipe.
    pub(super) fn pipe(self) -> &'static str {
        match self {
            Self::Server => wire::rpc::srvsvc::PIPE,
            Self::Workstation => wire::rpc::wkssvc::PIPE,
        }
    }

    /// Its interface.
    pub(super) fn interface(self) -> SyntaxId {
        match self {
            Self::Server => wire::rpc::srvsvc::INTERFACE,
            Self::Workstation => wire::rpc::wkssvc::INTERFACE,
        }
    }

    /// Does a call.
    pub(super) fn call(
        self,
        caller: &Caller<'_>,
        opnum: u16,
        stub: &[u8],
    ) -> Result<Vec<u8>, FaultStatus> {
        match self {
            Self::Server => srvsvc::call(caller, opnum, stub),
            Self::Workstation => wkssvc::call(caller, opnum, stub),
        }
    }
}
