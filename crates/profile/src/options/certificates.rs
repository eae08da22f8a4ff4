//! Certificates: how the client verifies the server, and its own certificate.

use std::path::PathBuf;

use smbeam_client::tls::{CertificateFiles, ClientSettings, Fingerprint, Trust};

/// Certificates for QUIC. The default trusts the authorities of the system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Certificates {
    /// PEM file with the trusted authorities and servers, instead of those of the system.
    pub ca_file: Option<PathBuf>,
    /// SHA-256 fingerprints of trusted server certificates, for any server name.
    pub pin_sha256: Vec<Fingerprint>,
    /// Whether the client does not verify the server. Only for tests.
    pub insecure: bool,
    /// Whether a certificate for the IP address of the URL is accepted.
    pub allow_address: bool,
    /// PEM file with the certificate of the client.
    pub client_cert: Option<PathBuf>,
    /// PEM file with the key of the client. Without it, the key is in the file of the certificate.
    pub client_key: Option<PathBuf>,
}

impl Certificates {
    pub(super) fn settings(&self) -> ClientSettings {
        let identity = |certificate: &PathBuf| CertificateFiles {
            certificate: certificate.clone(),
            key: self.client_key.as_ref().unwrap_or(certificate).clone(),
        };
        ClientSettings {
            trust: match &self.ca_file {
                _ if self.insecure => Trust::Anything,
                _ if !self.pin_sha256.is_empty() => Trust::Pinned(self.pin_sha256.clone()),
                Some(file) => Trust::File(file.clone()),
                None => Trust::System,
            },
            allow_address: self.allow_address,
            identity: self.client_cert.as_ref().map(identity),
        }
    }
}
