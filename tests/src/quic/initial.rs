//! First packets of clients that may never send another, made by hand. RFC 9000 17.2.2

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::crypto::{ClientConfig as _, Session};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectionId, Side};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

use super::ALPN;
use super::transport_parameters::put_varint;

/// Bytes of the smallest datagram with a first packet. RFC 9000 14.1
pub const SMALLEST: usize = 1200;
/// Version 1 of QUIC.
const VERSION: u32 = 1;
/// Bytes of the tag behind the encrypted payload.
const TAG: usize = 16;

/// A client's hello, from which packets are made.
pub struct Initial {
    session: Box<dyn Session>,
    hello: Vec<u8>,
    source: ConnectionId,
}

impl Initial {
    /// The hello of a client of SMB.
    pub fn new() -> Result<Initial> {
        let source = ConnectionId::new(b"strange!");
        // initial_source_connection_id. RFC 9000 18.2
        let parameters = [&[0x0f, 8][..], &source[..]].concat();
        let parameters = TransportParameters::read(Side::Server, &mut &parameters[..])
            .ok()
            .context("good parameters")?;
        let config = Arc::new(QuicClientConfig::try_from(tls(&[ALPN.to_vec()])?)?);
        let mut session = config.start_session(VERSION, "localhost", &parameters)?;
        let mut hello = Vec::new();
        session.write_handshake(&mut hello);
        ensure!(hello.len() < SMALLEST - 100, "the hello needs two packets");
        Ok(Initial {
            session,
            hello,
            source,
        })
    }

    /// A datagram of `size` bytes, with an identifier that the client made up and perhaps a token
    /// that it got.
    pub fn datagram(&self, id: [u8; 8], token: &[u8], size: usize) -> Vec<u8> {
        self.addressed(&ConnectionId::new(&id), token, size)
    }

    /// The same to an identifier of the server's.
    pub fn addressed(&self, id: &ConnectionId, token: &[u8], size: usize) -> Vec<u8> {
        // Long header, fixed bit, Initial, a packet number of one byte.
        let mut packet = vec![0xc0];
        packet.extend(VERSION.to_be_bytes());
        for id in [id, &self.source] {
            packet.push(u8::try_from(id.len()).expect("at most 20 bytes"));
            packet.extend_from_slice(id);
        }
        put_varint(&mut packet, token.len() as u64);
        packet.extend_from_slice(token);
        // The length of the rest, in two bytes.
        let rest = size.saturating_sub(packet.len() + 2);
        let length = u16::try_from(rest).expect("a datagram is shorter") | 0x4000;
        packet.extend(length.to_be_bytes());
        let number_at = packet.len();
        packet.push(0);
        let header = packet.len();
        // A CRYPTO frame at offset 0; the rest is padding. RFC 9000 19.6
        packet.extend([0x06, 0x00]);
        put_varint(&mut packet, self.hello.len() as u64);
        packet.extend_from_slice(&self.hello);
        assert!(packet.len() + TAG <= size, "the hello is longer");
        packet.resize(size, 0);
        let keys = self.session.initial_keys(id, Side::Client);
        keys.packet.local.encrypt(0, &mut packet, header);
        keys.header.local.encrypt(number_at, &mut packet);
        packet
    }
}

impl std::fmt::Debug for Initial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Initial").finish_non_exhaustive()
    }
}

/// A server's answer to a first packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// An Initial packet: the handshake continues.
    Initial,
    /// A Retry packet: the client must repeat its packet with this identifier and this token.
    Retry(ConnectionId, Vec<u8>),
    /// Something else.
    Other,
}

/// The kind of the first packet of a datagram. RFC 9000 17.2
pub fn answer(datagram: &[u8]) -> Answer {
    let read = || {
        let rest = datagram.strip_prefix(&[datagram[0], 0, 0, 0, 1])?;
        let (length, rest) = rest.split_first()?;
        let rest = rest.get(usize::from(*length)..)?;
        let (length, rest) = rest.split_first()?;
        let (id, rest) = rest.split_at_checked(usize::from(*length))?;
        let token = rest.get(..rest.len().checked_sub(TAG)?)?;
        match datagram[0] & 0xf0 {
            0xc0 => Some(Answer::Initial),
            0xf0 => Some(Answer::Retry(ConnectionId::new(id), token.to_vec())),
            _ => None,
        }
    };
    read().unwrap_or(Answer::Other)
}

/// TLS that accepts any certificate and offers these protocols.
pub(super) fn tls(protocols: &[Vec<u8>]) -> Result<rustls::ClientConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Credulous(provider)))
        .with_no_client_auth();
    config.alpn_protocols = protocols.to_vec();
    Ok(config)
}

#[derive(Debug)]
struct Credulous(Arc<CryptoProvider>);

impl ServerCertVerifier for Credulous {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
