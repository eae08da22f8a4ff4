//! The certificate that clients of QUIC see, where there are any.

use std::sync::Arc;

use net::Transport;
use net::tls;

use crate::config::Config;

/// What clients can hold a server to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// SHA-256 of its certificate.
    pub fingerprint: tls::Fingerprint,
    /// Whether nobody else vouches for it.
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

/// Reads the certificate, or makes one, where the server listens for QUIC.
pub(crate) fn open(config: &Config) -> Result<Option<Arc<tls::Server>>, tls::Error> {
    if !config.listens_by(Transport::Quic) {
        return Ok(None);
    }
    tls::Server::new(&config.tls()).map(Some)
}

/// Reads what is configured, even where nothing listens yet.
pub(crate) fn check(config: &Config) -> Result<(), tls::Error> {
    let is_configured = config.quic.certificate.is_some() || config.quic.client_ca.is_some();
    if is_configured || config.listens_by(Transport::Quic) {
        config.tls().check()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_file_that_is_wrong_is_named_before_anything_listens() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("server.pem");
        std::fs::write(&path, "nothing\n").expect("a file");
        let text = format!("[quic]\ncertificate = \"{}\"\n", path.display());
        let config = Config::parse(Path::new("smbeam.toml"), &text).expect("a good file");
        let error = check(&config).expect_err("a bad certificate").to_string();
        assert_eq!(error, format!("{}: no certificate in it", path.display()));
        assert!(open(&config).expect("nobody listens").is_none());
    }
}
