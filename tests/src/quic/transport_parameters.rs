//! TLS that reports other transport parameters than the server sent: quinn-proto then exceeds the
//! limits of the server.

use std::any::Any;
use std::sync::Arc;

use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::crypto::{
    ClientConfig, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, Session,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};

/// Makes the TLS sessions.
pub(super) struct Config {
    inner: Arc<QuicClientConfig>,
    overrides: Vec<(u64, u64)>,
}

/// A TLS session that overrides parameters of the server.
struct FalseSession {
    inner: Box<dyn Session>,
    overrides: Vec<(u64, u64)>,
}

impl Config {
    pub(super) fn new(inner: QuicClientConfig, overrides: Vec<(u64, u64)>) -> Config {
        let inner = Arc::new(inner);
        Config { inner, overrides }
    }
}

impl ClientConfig for Config {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        let inner = Arc::clone(&self.inner);
        Ok(Box::new(FalseSession {
            inner: inner.start_session(version, server_name, params)?,
            overrides: self.overrides.clone(),
        }))
    }
}

impl Session for FalseSession {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        self.inner.initial_keys(dst_cid, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.inner.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.inner.early_crypto()
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.inner.read_handshake(buf)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let sent = self.inner.transport_parameters()?;
        Ok(sent.map(|sent| with_overrides(&sent, &self.overrides)))
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        self.inner.write_handshake(buf)
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.inner.next_1rtt_keys()
    }

    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.inner.is_valid_retry(orig_dst_cid, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }
}

/// The parameters with other values. RFC 9000 18
fn with_overrides(sent: &TransportParameters, overrides: &[(u64, u64)]) -> TransportParameters {
    let mut bytes = Vec::new();
    sent.write(&mut bytes);
    let mut left = &bytes[..];
    let mut changed = Vec::new();
    while !left.is_empty() {
        let whole = left;
        let id = take_varint(&mut left);
        let length = usize::try_from(take_varint(&mut left)).expect("a short parameter");
        left = &left[length..];
        if !overrides.iter().any(|(other, _)| *other == id) {
            changed.extend_from_slice(&whole[..whole.len() - left.len()]);
        }
    }
    for (id, value) in overrides {
        put_varint(&mut changed, *id);
        let mut bytes = Vec::new();
        put_varint(&mut bytes, *value);
        put_varint(&mut changed, bytes.len() as u64);
        changed.extend(bytes);
    }
    TransportParameters::read(Side::Client, &mut &changed[..]).expect("they were valid before")
}

/// Removes an integer from the front. RFC 9000 16
fn take_varint(left: &mut &[u8]) -> u64 {
    let length = 1 << (left[0] >> 6);
    let (bytes, rest) = left.split_at(length);
    *left = rest;
    let first = u64::from(bytes[0] & 0x3f);
    bytes[1..]
        .iter()
        .fold(first, |value, byte| value << 8 | u64::from(*byte))
}

/// Appends an integer in its shortest form.
pub(super) fn put_varint(bytes: &mut Vec<u8>, value: u64) {
    let size = match value {
        0..0x40 => 0,
        0x40..0x4000 => 1,
        0x4000..0x4000_0000 => 2,
        _ => 3_u8,
    };
    let all = value.to_be_bytes();
    let start = bytes.len();
    bytes.extend_from_slice(&all[8 - (1 << size)..]);
    bytes[start] |= size << 6;
}
