//! SMB Direct connections: the RDMA provider, and connecting.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::further_channels::is_loopback;
use net::Stream;
use net::smbdirect::{self, Settings};
use rdma::{Choice, Provider};
use ring::Handle;

/// The RDMA provider. The first connection opens it.
pub(crate) struct Rdma {
    choice: Choice,
    busy_poll: Duration,
    made: OnceLock<Result<Arc<dyn Provider>, (io::ErrorKind, String)>>,
}

impl Rdma {
    pub(crate) fn new(choice: Choice, busy_poll: Duration) -> Arc<Self> {
        Arc::new(Self {
            choice,
            busy_poll,
            made: OnceLock::new(),
        })
    }

    /// Whether this machine has a device that may reach one of these addresses of a server. Opens
    /// the provider only if it is possible at all, because that loads libraries.
    pub(crate) fn may_reach(&self, servers: &[SocketAddr]) -> bool {
        let is_reached =
            |server: &SocketAddr| self.choice.reaches_loopback() || !is_loopback(*server);
        if !servers.iter().any(is_reached) || !self.choice.may_have_devices() {
            return false;
        }
        let addresses = self.provider().and_then(Provider::addresses);
        addresses.is_ok_and(|found| !found.is_empty())
    }

    fn provider(&self) -> io::Result<&dyn Provider> {
        let open = || {
            let opened = self.choice.open();
            opened.map_err(|error| (error.kind(), error.to_string()))
        };
        match self.made.get_or_init(open) {
            Ok(provider) => Ok(&**provider),
            Err((kind, why)) => Err(io::Error::new(*kind, why.clone())),
        }
    }
}

/// Connects and negotiates.
pub(crate) async fn stream(
    handle: &Handle,
    address: SocketAddr,
    rdma: &Rdma,
) -> io::Result<Stream> {
    let provider = rdma.provider()?;
    let settings = Settings {
        busy_poll: rdma.busy_poll,
        ..Settings::default()
    };
    let connecting = smbdirect::Stream::connect(handle, provider, address, &settings);
    connecting.await.map(Stream::from)
}
