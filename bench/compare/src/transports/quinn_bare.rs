//! The baseline of QUIC, bare quinn: a server that writes messages to one stream, and a client that
//! reads them.
//!
//! The server writes the same memory again and again without copying it. The client copies the data
//! into its buffer.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::rustls;
use quinn::{Endpoint, EndpointConfig, MtuDiscoveryConfig, TransportConfig};
use rustix::net::sockopt::{set_socket_recv_buffer_size_force, set_socket_send_buffer_size_force};

use super::bare::{self, own_cpu};
use super::environment::Topology;
use super::smbeam::warm_up_bytes;
use super::{DATAGRAM_BYTES_MAX, Figures, MESSAGE_BYTES, SOCKET_BYTES};
use crate::options::Options;

/// First argument of the server process.
pub(super) const SERVER: &str = "--be-quinn-server";
/// First argument of the client process.
pub(super) const CLIENT: &str = "--be-quinn-client";
const NAME: &str = "localhost";
const CERTIFICATE: &str = "quinn.der";

/// Congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Congestion {
    /// CUBIC, RFC 9438.
    Cubic,
    /// BBR, bottleneck bandwidth and round-trip time.
    Bbr,
    /// NewReno, RFC 9002 section 7.
    NewReno,
}

impl Congestion {
    const ALL: [Congestion; 3] = [Congestion::Cubic, Congestion::Bbr, Congestion::NewReno];

    /// The name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Congestion::Cubic => "cubic",
            Congestion::Bbr => "bbr",
            Congestion::NewReno => "newreno",
        }
    }

    fn factory(self) -> Arc<dyn ControllerFactory + Send + Sync> {
        match self {
            Congestion::Cubic => Arc::new(CubicConfig::default()),
            Congestion::Bbr => Arc::new(BbrConfig::default()),
            Congestion::NewReno => Arc::new(NewRenoConfig::default()),
        }
    }
}

impl FromStr for Congestion {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Congestion> {
        let found = Congestion::ALL.into_iter().find(|one| one.name() == name);
        found.with_context(|| format!("{name} is neither cubic nor bbr nor newreno"))
    }
}

/// Starts both ends, measures, and ends them.
pub(super) fn run(topology: &Topology<'_>, options: &Options) -> Result<Figures> {
    let seconds = match topology.is_link {
        true => options.link_seconds(),
        false => options.seconds,
    };
    let congestion = options.congestion.name();
    let threads = options.quinn_threads.to_string();
    let window = (options.window_mb(topology.is_link) << 20).to_string();
    let address = SocketAddrV4::new(topology.address, topology.ports[1]).to_string();
    let directory = topology.directory.to_str().context("a path in UTF-8")?;
    let warm_up = warm_up_bytes(topology.is_link).to_string();
    let seconds_text = seconds.to_string();
    bare::run(
        topology,
        &[SERVER, directory, &address, congestion, &threads, &window],
        &[
            CLIENT,
            directory,
            &address,
            congestion,
            &threads,
            &window,
            &warm_up,
            &seconds_text,
        ],
        seconds,
    )
}

/// The server process: `DIRECTORY ADDRESS CONGESTION THREADS WINDOW`.
pub(super) fn serve(arguments: &[String]) -> Result<()> {
    let [directory, address, congestion, threads, window] = arguments else {
        bail!("the server takes five arguments");
    };
    let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()])?;
    let certificate = made.cert.der().clone();
    fs::write(Path::new(directory).join(CERTIFICATE), &certificate)?;
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der())
        .map_err(anyhow::Error::msg)?;
    let mut tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    tls.alpn_protocols = vec![NAME.into()];
    let crypto = QuicServerConfig::try_from(tls)?;
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    let address: SocketAddr = address.parse()?;
    config.transport_config(transport(congestion.parse()?, window.parse()?));
    runtime(threads)?.block_on(async {
        let endpoint = endpoint(address, Some(config))?;
        bare::be_ready();
        while let Some(incoming) = endpoint.accept().await {
            let connection = incoming.await?;
            tokio::spawn(async move {
                // The function ends with an error when the client closes the connection.
                let _ = write(&connection).await;
            });
        }
        Ok(())
    })
}

/// Writes messages to the first stream without end.
async fn write(connection: &quinn::Connection) -> Result<()> {
    let (mut sender, mut receiver) = connection.accept_bi().await?;
    let mut word = [0; 1];
    receiver.read_exact(&mut word).await?;
    let message: Vec<u8> = (0..MESSAGE_BYTES).map(|index| index as u8).collect();
    let message = bytes::Bytes::from(message);
    loop {
        sender.write_chunk(message.clone()).await?;
    }
}

/// The client process: `DIRECTORY ADDRESS CONGESTION THREADS WINDOW WARM-UP SECONDS`. It prints one
/// line of JSON.
pub(super) fn client(arguments: &[String]) -> Result<()> {
    let [
        directory,
        address,
        congestion,
        threads,
        window,
        warm_up,
        seconds,
    ] = arguments
    else {
        bail!("the client takes seven arguments");
    };
    let mut roots = rustls::RootCertStore::empty();
    roots.add(fs::read(Path::new(directory).join(CERTIFICATE))?.into())?;
    let mut tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![NAME.into()];
    let mut config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    let address: SocketAddr = address.parse()?;
    config.transport_config(transport(congestion.parse()?, window.parse()?));
    let time = Duration::from_secs(seconds.parse()?);
    let warm_up: u64 = warm_up.parse()?;
    let (bytes, seconds, client_cpu) = runtime(threads)?.block_on(async {
        let endpoint = endpoint((Ipv4Addr::UNSPECIFIED, 0).into(), None)?;
        let connection = endpoint.connect_with(config, address, NAME)?.await?;
        let (mut sender, mut receiver) = connection.open_bi().await?;
        sender.write_all(&[1]).await?;
        let mut message = vec![0; MESSAGE_BYTES];
        for _ in 0..warm_up / MESSAGE_BYTES as u64 {
            receiver.read_exact(&mut message).await?;
        }
        let before = own_cpu()?;
        let start = Instant::now();
        let bytes = read(&mut receiver, &mut message, time).await?;
        let (seconds, client_cpu) = (start.elapsed().as_secs_f64(), own_cpu()? - before);
        anyhow::Ok((bytes, seconds, client_cpu))
    })?;
    bare::print_result(bytes, seconds, client_cpu)
}

/// Reads for `time` and returns the number of bytes.
async fn read(stream: &mut quinn::RecvStream, message: &mut [u8], time: Duration) -> Result<u64> {
    let end = Instant::now() + time;
    let mut bytes = 0;
    while Instant::now() < end {
        let mut filled = 0;
        // On a slow link, do not wait for the rest of a message after the end.
        while filled < message.len() && Instant::now() < end {
            let count = stream.read(&mut message[filled..]).await?;
            filled += count.context("the server ends the stream")?;
        }
        bytes += filled as u64;
    }
    Ok(bytes)
}

fn runtime(threads: &str) -> Result<tokio::runtime::Runtime> {
    let mut builder = match threads.parse()? {
        1 => tokio::runtime::Builder::new_current_thread(),
        more => {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder.worker_threads(more);
            builder
        }
    };
    Ok(builder.enable_all().build()?)
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

fn endpoint(address: SocketAddr, server: Option<quinn::ServerConfig>) -> Result<Endpoint> {
    let socket = UdpSocket::bind(address)?;
    // Exceed the system limit, as smbeam does with privileges.
    set_socket_recv_buffer_size_force(&socket, SOCKET_BYTES)?;
    set_socket_send_buffer_size_force(&socket, SOCKET_BYTES)?;
    let runtime = Arc::new(quinn::TokioRuntime);
    let mut config = EndpointConfig::default();
    // The maximum payload that a peer may send. The default fits an Ethernet frame of 1,500 bytes.
    config.max_udp_payload_size(DATAGRAM_BYTES_MAX)?;
    Ok(Endpoint::new(config, server, socket, runtime)?)
}

/// The same settings as crates/net/src/quic/settings.rs.
fn transport(congestion: Congestion, window: u32) -> Arc<TransportConfig> {
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(DATAGRAM_BYTES_MAX);
    let mut config = TransportConfig::default();
    config
        .receive_window(window.into())
        .stream_receive_window(window.into())
        .send_window(window.into())
        .mtu_discovery_config(Some(discovery))
        .congestion_controller_factory(congestion.factory());
    Arc::new(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_are_known_by_name() {
        for one in Congestion::ALL {
            assert_eq!(one.name().parse::<Congestion>().ok(), Some(one));
        }
        assert!("vegas".parse::<Congestion>().is_err());
    }
}
