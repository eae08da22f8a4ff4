//! QUIC connections: TLS with the server, and then the transport.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use net::Stream;
use net::quic;
use net::tls;
use ring::Handle;

/// TLS with one server. The first connection initializes it, because that reads the certificate
/// authorities of the system or of files.
#[derive(Debug)]
pub(crate) struct Tls {
    settings: tls::ClientSettings,
    host: String,
    made: OnceLock<Result<tls::Client, tls::Error>>,
}

impl Tls {
    pub(crate) fn new(settings: tls::ClientSettings, host: &str) -> Arc<Self> {
        Arc::new(Self {
            settings,
            host: host.trim_matches(['[', ']']).to_owned(),
            made: OnceLock::new(),
        })
    }

    /// Whether TLS verifies the server. Otherwise the transport does not protect messages.
    pub(crate) fn verifies(&self) -> bool {
        !matches!(self.settings.trust, tls::Trust::Anything)
    }

    fn client(&self) -> io::Result<&tls::Client> {
        let make = || tls::Client::new(&self.settings, &self.host);
        let made = self.made.get_or_init(make).as_ref();
        made.map_err(|error| io::Error::other(error.clone()))
    }
}

/// Connects, and verifies the server.
pub(crate) async fn stream(
    handle: &Handle,
    address: SocketAddr,
    tls: &Arc<Tls>,
    settings: &quic::Settings,
) -> io::Result<Stream> {
    let host = &tls.host;
    let tls = Arc::clone(tls);
    let handshake = handle
        .blocking(move || tls.client().map(tls::Client::handshake))
        .await?;
    let config = handshake.config();
    let connecting = quic::connect(handle, address, host, config, settings);
    connecting.await.map_err(|error| {
        // The reason of the refusal says more than the alert.
        handshake.refusal().map_or(error, io::Error::other)
    })
}
