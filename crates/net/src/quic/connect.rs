//! QUIC clients: one socket for each connection.
//!
//! A separate socket costs a descriptor, and lets the kernel distribute the packets of several
//! channels. The socket is connected, so that a closed port is an error at once.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Instant;

use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{ClientConfig, EndpointConfig};
use ring::{Handle, Udp};

use super::endpoint::Endpoint;
use super::identity::Identity;
use super::settings::Settings;
use super::stream::Stream;

/// Largest accepted datagram in bytes. RFC 9000 18.2
pub(super) const DATAGRAM_MAX: u16 = 65_527;

/// Connects to a QUIC server at `address` and opens the stream for SMB2 messages. `tls` has the
/// trusted certificates and the certificate of the client, and `settings` the parameters of the
/// connection. The certificate of the server must be valid for `name`.
///
/// # Errors
/// The server is not reachable, does not offer SMB, or its certificate is not accepted.
pub async fn connect(
    handle: &Handle,
    address: SocketAddr,
    name: &str,
    tls: Arc<rustls::ClientConfig>,
    settings: &Settings,
) -> io::Result<crate::Stream> {
    let any = match address {
        SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(address)?;
    let socket = Udp::new(handle, socket, settings.socket())?;
    let crypto = QuicClientConfig::try_from(tls).map_err(io::Error::other)?;
    let mut config = ClientConfig::new(Arc::new(crypto));
    config.transport_config(Arc::new(settings.transport(0)));
    let identity = Identity {
        worker: 0,
        workers: 1,
    };
    let endpoint = Endpoint::start(handle, socket, endpoint_config(identity), None);
    let connecting = endpoint
        .proto
        .borrow_mut()
        .connect(Instant::now(), config, address, name);
    // The socket ends with its connection.
    endpoint.is_closing.set(true);
    let (key, connection) =
        connecting.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let link = endpoint.add(key, connection);
    // If this future is dropped before the stream is open, the stream closes the connection.
    let stream = Stream::new(link.clone());
    poll_fn(|context| link.poll_opened(context)).await?;
    Ok(crate::Stream::Quic(stream))
}

/// The configuration of an endpoint with these connection ids.
pub(super) fn endpoint_config(identity: Identity) -> Arc<EndpointConfig> {
    let mut config = EndpointConfig::default();
    config
        .max_udp_payload_size(DATAGRAM_MAX)
        .expect("within what the protocol allows")
        .cid_generator(move || Box::new(identity));
    Arc::new(config)
}
