//! The client's side: one socket for each connection.
//!
//! A socket of its own costs a descriptor, and has the kernel spread the packets of several
//! channels; it is connected, so that a port where nobody listens is known at once.

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

/// Bytes of the largest datagram that is taken from a peer. RFC 9000 18.2
pub(super) const DATAGRAM_MAX: u16 = 65_527;

/// Connects to a server and opens the stream. `name` is what its certificate must be for.
///
/// # Errors
/// The server cannot be reached, does not speak SMB, or is not who it should be.
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
    // Dropped before the stream is there, this ends the connection.
    let stream = Stream::new(link.clone());
    poll_fn(|context| link.poll_opened(context)).await?;
    Ok(crate::Stream::Quic(stream))
}

/// What all connections of an endpoint have in common.
pub(super) fn endpoint_config(identity: Identity) -> Arc<EndpointConfig> {
    let mut config = EndpointConfig::default();
    config
        .max_udp_payload_size(DATAGRAM_MAX)
        .expect("within what the protocol allows")
        .cid_generator(move || Box::new(identity));
    Arc::new(config)
}
