//! TLS for tests: one certificate, and clients that believe it.

use std::sync::{Arc, OnceLock};

use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

struct Identity {
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

fn identity() -> &'static Identity {
    static IDENTITY: OnceLock<Identity> = OnceLock::new();
    IDENTITY.get_or_init(|| {
        let names = vec!["smbeam.test".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        Identity {
            certificate: made.cert.der().clone(),
            key: made.signing_key.serialize_der(),
        }
    })
}

pub(crate) fn server_config(alpn: &[u8]) -> Arc<rustls::ServerConfig> {
    let Identity { certificate, key } = identity();
    let key = PrivatePkcs8KeyDer::from(key.clone());
    let mut config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key.into())
        .expect("a certificate");
    config.alpn_protocols = vec![alpn.to_vec()];
    Arc::new(config)
}

/// An empty protocol is none.
pub(crate) fn client_config(alpn: &[u8]) -> Arc<rustls::ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(identity().certificate.clone())
        .expect("a certificate");
    let mut config = rustls::ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    if !alpn.is_empty() {
        config.alpn_protocols = vec![alpn.to_vec()];
    }
    Arc::new(config)
}
