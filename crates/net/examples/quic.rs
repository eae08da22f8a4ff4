//! Streams large messages over QUIC between two threads of this machine, or of two.
//!
//! `quic both|serve|pull [--address A] [--mib N] [--mtu BYTES] [--window MIB] [--streams N]
//! [--congestion cubic|bbr|newreno] [--io uring|epoll]`: a client requests this number of MiB with
//! one byte for each, 16 ahead, as a reader of a large file does. Prints what was moved, how fast,
//! and what it cost.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ring::{Handle, Io, Part, Runtime};
use smbeam_net::Stream;
use smbeam_net::quic::{self, Congestion, Listener, ListenerEvent, Server, Settings};

/// Bytes of a message.
const MESSAGE: usize = 1 << 20;
/// Messages that are asked for ahead.
const DEPTH: usize = 16;

struct Arguments {
    role: String,
    address: SocketAddr,
    mib: usize,
    streams: usize,
    io: Io,
    settings: Settings,
}

fn arguments() -> Arguments {
    let mut given = std::env::args().skip(1);
    let mut arguments = Arguments {
        role: given.next().unwrap_or_else(|| "both".to_owned()),
        address: "127.0.0.1:4479".parse().expect("an address"),
        mib: 2048,
        streams: 1,
        io: Io::Auto,
        settings: Settings::default(),
    };
    while let Some(name) = given.next() {
        let value = given.next().expect("each option has a value");
        let number = || value.parse::<usize>().expect("a number");
        match name.as_str() {
            "--address" => arguments.address = value.parse().expect("an address"),
            "--mib" => arguments.mib = number(),
            "--streams" => arguments.streams = number(),
            "--mtu" => arguments.settings.max_datagram = number() as u16,
            "--window" => {
                arguments.settings.receive_window = (number() << 20) as u32;
                arguments.settings.send_window = (number() << 20) as u32;
            }
            "--congestion" => {
                arguments.settings.congestion = match value.as_str() {
                    "cubic" => Congestion::Cubic,
                    "bbr" => Congestion::Bbr,
                    "newreno" => Congestion::NewReno,
                    _ => panic!("no such congestion control: {value}"),
                }
            }
            "--io" => {
                arguments.io = match value.as_str() {
                    "epoll" => Io::Epoll,
                    _ => Io::Uring,
                }
            }
            _ => panic!("no such option: {name}"),
        }
    }
    arguments
}

fn main() {
    let arguments = Arc::new(arguments());
    match arguments.role.as_str() {
        "serve" => serve(&arguments, usize::MAX),
        "pull" => pull_all(&arguments),
        _ => {
            let serving = Arc::clone(&arguments);
            thread::spawn(move || serve(&serving, usize::MAX));
            thread::sleep(Duration::from_millis(300));
            pull_all(&arguments);
        }
    }
}

fn runtime(io: Io) -> Runtime {
    let config = ring::Config {
        io,
        ..ring::Config::default()
    };
    Runtime::new(&config).expect("a runtime")
}

fn serve(arguments: &Arguments, mut count: usize) {
    let runtime = runtime(arguments.io);
    let handle = runtime.handle();
    let certified = rcgen::generate_simple_self_signed(["smbeam".to_owned()]).expect("a key");
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let mut tls = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key.into())
        .expect("a certificate");
    tls.alpn_protocols = vec![smbeam_net::tls::ALPN.to_vec()];
    let tls = Arc::new(tls);
    let server = Server::new(
        arguments.settings.clone(),
        Box::new(move || Arc::clone(&tls)),
        &[0; 32],
    );
    let server = server.expect("TLS 1.3");
    let socket = UdpSocket::bind(arguments.address).expect("a free port");
    runtime.block_on(async {
        let listener = Listener::new(&handle, socket, &server, 0, 1).expect("a socket");
        while count > 0 {
            if let ListenerEvent::Incoming(incoming) = listener.next_event().await {
                let (accepting, streaming) = (incoming.accept(), handle.clone());
                handle.spawn(async move {
                    match accepting.await {
                        Ok(stream) => give(&streaming, stream).await,
                        Err(error) => eprintln!("accept: {error}"),
                    }
                });
                count -= 1;
            }
        }
    });
}

/// Answers each byte with a message.
async fn give(handle: &Handle, stream: Stream) {
    loop {
        let asked = match stream.recv().await {
            Ok(chunk) if chunk.is_empty() => return,
            Ok(chunk) => chunk.len(),
            Err(error) => return eprintln!("recv: {error}"),
        };
        for _ in 0..asked {
            let mut buffer = handle.pool().take_or_wait(MESSAGE).await;
            buffer[0] = 1;
            let (result, _) = stream.send(vec![Part::Buffer(buffer, 0..MESSAGE)]).await;
            if let Err(error) = result {
                return eprintln!("send: {error}");
            }
        }
    }
}

fn pull_all(arguments: &Arc<Arguments>) {
    let (started, cpu) = (Instant::now(), cpu_seconds());
    let threads: Vec<_> = (0..arguments.streams)
        .map(|_| {
            let arguments = Arc::clone(arguments);
            thread::spawn(move || pull(&arguments))
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    let (elapsed, cpu) = (started.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    let gigabytes = (arguments.mib << 20) as f64 / 1e9;
    println!(
        "{:.2} GB in {elapsed:.2} s: {:.3} GB/s, {:.3} CPU s/GB",
        gigabytes,
        gigabytes / elapsed,
        cpu / gigabytes,
    );
}

fn pull(arguments: &Arguments) {
    let runtime = runtime(arguments.io);
    let handle = runtime.handle();
    let mut tls = rustls::ClientConfig::builder()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(trust::Anyone))
        .with_no_client_auth();
    tls.alpn_protocols = vec![smbeam_net::tls::ALPN.to_vec()];
    let messages = arguments.mib / arguments.streams;
    runtime.block_on(async {
        let tls = Arc::new(tls);
        let address = arguments.address;
        let stream = quic::connect(&handle, address, "smbeam", tls, &arguments.settings);
        let stream = stream.await.expect("connect");
        let mut buffer = handle.pool().take(MESSAGE).expect("a buffer");
        let ahead = DEPTH.min(messages);
        let (result, _) = stream.send(vec![Part::Bytes(vec![1; ahead])]).await;
        result.expect("send");
        for message in 0..messages {
            let (result, back) = stream.recv_into(buffer, 0..MESSAGE).await;
            buffer = back;
            result.expect("recv");
            if message + ahead < messages {
                let (result, _) = stream.send(vec![Part::Bytes(vec![1])]).await;
                result.expect("send");
            }
        }
        if std::env::var_os("SHOW_STATS").is_some() {
            eprintln!("{:?}", handle.stats());
        }
        let _ = stream.shutdown(std::net::Shutdown::Both);
    });
}

/// Processor time of this process.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("a stat");
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let ticks = |at: usize| fields[at].parse::<f64>().expect("ticks");
    (ticks(11) + ticks(12)) / 100.0
}

mod trust {
    use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use rustls::{DigitallySignedStruct, Error, SignatureScheme};

    /// Trusts anyone: this is about speed.
    #[derive(Debug)]
    pub(crate) struct Anyone;

    impl ServerCertVerifier for Anyone {
        fn verify_server_cert(
            &self,
            _end_entity: &CertificateDer<'_>,
            _intermediates: &[CertificateDer<'_>],
            _server_name: &ServerName<'_>,
            _ocsp_response: &[u8],
            _now: UnixTime,
        ) -> Result<ServerCertVerified, Error> {
            Ok(ServerCertVerified::assertion())
        }

        fn verify_tls12_signature(
            &self,
            _message: &[u8],
            _cert: &CertificateDer<'_>,
            _dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn verify_tls13_signature(
            &self,
            _message: &[u8],
            _cert: &CertificateDer<'_>,
            _dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            rustls::crypto::aws_lc_rs::default_provider()
                .signature_verification_algorithms
                .supported_schemes()
        }
    }
}
