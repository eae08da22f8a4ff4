//! Who is who on a transport with TLS beneath: certificates of servers and of clients.
//!
//! TLS itself is rustls, and its packets are QUIC's matter; here is what both ends trust.
//! A [`Server`] has a certificate from files, read anew when they change, or one that it made
//! itself, and may ask its clients for theirs. A [`Client`] verifies the server by the system's
//! authorities, by a file of them or by fingerprint.
//!
//! Sessions of TLS are never resumed and nothing is sent before the handshake is done: what a
//! handshake decides about a peer would else outlive the reason for it, and connections of SMB
//! last so long that a round trip at their start is worth little.

mod client_access;
mod client_verification;
mod certificate;
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
pub use server_verification::{Client, ClientSettings, Handshake, Trust};
pub use error::Error;
pub use fingerprint::{Fingerprint, FingerprintError};
pub use name::{DistinguishedName, NameError};
pub use pem::CertificateFiles;
pub use server::{CertificateSource, ClientCertificates, ClientPolicy, Server, ServerSettings};

/// The protocol within TLS. \[MS-SMB2\] 2.1
pub const ALPN: &[u8] = b"smb";

/// What does the cryptography: that of the rest of the house.
static PROVIDER: LazyLock<Arc<CryptoProvider>> =
    LazyLock::new(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider()));

fn provider() -> Arc<CryptoProvider> {
    Arc::clone(&PROVIDER)
}
