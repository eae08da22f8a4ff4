//! TLS certificates of servers and clients, and their verification.
//!
//! rustls implements TLS, and QUIC carries its messages. This module configures both sides. A
//! [`Server`] has a certificate from files, which it reads again when they change, or a self-signed
//! one, and may request client certificates. A [`Client`] verifies the server by the certificate
//! authorities of the system or of a file, or by fingerprint.
//!
//! TLS sessions are not resumed, and no data are sent before the handshake is complete. Otherwise a
//! decision about a peer would stay valid after its reason has changed. SMB connections last long,
//! so that a round trip at their start costs little.

mod certificate;
mod client_access;
mod client_verification;
mod described;
mod error;
mod fingerprint;
mod name;
mod pem;
mod self_signed;
mod server;
mod server_verification;

use std::sync::{Arc, LazyLock};

use rustls::crypto::CryptoProvider;

pub use client_access::{AccessLists, Identifier, IdentifierError};
pub use described::{Described, Validity};
pub use error::Error;
pub use fingerprint::{Fingerprint, FingerprintError};
pub use name::{DistinguishedName, NameError};
pub use pem::CertificateFiles;
pub use server::{CertificateSource, ClientCertificates, ClientPolicy, Server, ServerSettings};
pub use server_verification::{Client, ClientSettings, Handshake, Trust};

/// The protocol name by which client and server select SMB in the TLS handshake (ALPN). \[MS-SMB2\]
/// 2.1
pub const ALPN: &[u8] = b"smb";

/// The cryptography provider, aws-lc as in the other crates.
static PROVIDER: LazyLock<Arc<CryptoProvider>> =
    LazyLock::new(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider()));

fn provider() -> Arc<CryptoProvider> {
    Arc::clone(&PROVIDER)
}
