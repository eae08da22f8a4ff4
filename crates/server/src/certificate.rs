//! The certificate of the server for QUIC.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use net::Transport;
use net::quic::Settings;
use net::tls;

use crate::config::Config;

/// Description of the TLS certificate that the server presents to QUIC clients, for display in the
/// log and in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// SHA-256 hash of the certificate. Clients can compare it to verify the server.
    pub fingerprint: tls::Fingerprint,
    /// Whether the certificate is self-signed. Clients can then verify it only by its fingerprint.
    pub is_self_signed: bool,
}

impl Shown {
    pub(crate) fn of(server: &tls::Server) -> Self {
        Self {
            fingerprint: server.fingerprint(),
            is_self_signed: server.is_self_signed(),
        }
    }
}

/// The certificates of a running server for QUIC. A change of the configuration replaces them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Certificates(Arc<Mutex<Option<Arc<tls::Server>>>>);

impl Certificates {
    /// The current certificate; `None` if the server has never listened for QUIC.
    pub(crate) fn current(&self) -> Option<Arc<tls::Server>> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Replaces the certificate. Later handshakes use it.
    pub(crate) fn replace(&self, tls: Option<Arc<tls::Server>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = tls;
    }

    /// Makes the server of QUIC, which takes the current certificate for each handshake.
    ///
    /// # Errors
    /// The certificate cannot be used with QUIC.
    pub(crate) fn quic_server(&self, settings: Settings) -> io::Result<Arc<net::quic::Server>> {
        let certificates = self.clone();
        let current = move || {
            let tls = certificates.current();
            tls.expect("a server of QUIC has a certificate")
        };
        let reset_key = current().reset_key();
        net::quic::Server::new(settings, Box::new(move || current().config()), &reset_key)
    }
}

/// Reads the certificate, or makes a self-signed one. `None` if the server does not listen for
/// QUIC.
///
/// # Errors
/// A file cannot be read, parsed or written.
pub(crate) fn open(config: &Config) -> Result<Option<Arc<tls::Server>>, tls::Error> {
    if !config.listens_with(Transport::Quic) {
        return Ok(None);
    }
    tls::Server::new(&config.tls()).map(Some)
}

/// Checks the configured files, even if the server does not listen for QUIC.
///
/// # Errors
/// A file cannot be read or parsed.
pub(crate) fn check(config: &Config) -> Result<(), tls::Error> {
    let is_configured = config.quic.certificate.is_some() || config.quic.client_ca.is_some();
    if is_configured || config.listens_with(Transport::Quic) {
        config.tls().check()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn an_invalid_file_is_an_error_before_the_server_listens() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("server.pem");
        std::fs::write(&path, "nothing\n").expect("a file");
        let text = format!("[quic]\ncertificate = \"{}\"\n", path.display());
        let config = Config::parse(Path::new("smbeam.toml"), &text).expect("a good file");
        let error = check(&config).expect_err("a bad certificate").to_string();
        assert_eq!(error, format!("{}: no certificate in it", path.display()));
        assert!(open(&config).expect("no listener").is_none());
    }
}
