//! The services behind the pipes. `calls.rs` executes their calls.

use wire::rpc::SyntaxId;

/// The RPC service that a pipe belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    /// The server service, which lists shares. \[MS-SRVS\]
    Server,
    /// The workstation service. \[MS-WKST\]
    Workstation,
    /// The local security authority, which translates SIDs. \[MS-LSAT\]
    SecurityAuthority,
}

impl Service {
    /// The service behind a pipe of this name, in any case.
    pub(super) fn named(pipe: &str) -> Option<Self> {
        let all = [Self::Server, Self::Workstation, Self::SecurityAuthority];
        (all.into_iter()).find(|service| service.pipe().eq_ignore_ascii_case(pipe))
    }

    /// The name of its pipe.
    pub(super) fn pipe(self) -> &'static str {
        match self {
            Self::Server => wire::rpc::srvsvc::PIPE,
            Self::Workstation => wire::rpc::wkssvc::PIPE,
            Self::SecurityAuthority => wire::rpc::lsarpc::PIPE,
        }
    }

    /// The RPC interface of the service.
    pub(super) fn interface(self) -> SyntaxId {
        match self {
            Self::Server => wire::rpc::srvsvc::INTERFACE,
            Self::Workstation => wire::rpc::wkssvc::INTERFACE,
            Self::SecurityAuthority => wire::rpc::lsarpc::INTERFACE,
        }
    }
}
