//! Verification of client certificates.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, TrustAnchor, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme,
};
use tracing::warn;
use webpki::{EndEntityCert, KeyUsage};

use super::certificate::Holder;
use super::client_access::{AccessLists, Denial};
use super::pem::certificates;
use super::{ClientCertificates, ClientPolicy, Error, provider};
use crate::Refusal;

/// Makes the verifier for the policy of a server.
pub(super) fn verifier(wanted: &ClientCertificates) -> Result<Arc<dyn ClientCertVerifier>, Error> {
    let is_required = match wanted.policy {
        ClientPolicy::No => return Ok(WebPkiClientVerifier::no_client_auth()),
        ClientPolicy::Optional => false,
        ClientPolicy::Required => true,
    };
    let Some(path) = &wanted.authorities else {
        return Err(Error::NoClientAuthority);
    };
    let authorities = certificates(path)?;
    let roots = Arc::new(roots(path, &authorities)?);
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), provider());
    let builder = if is_required {
        builder
    } else {
        builder.allow_unauthenticated()
    };
    let chains = builder.build();
    Ok(Arc::new(Verifier {
        chains: chains.map_err(|error| Error::Settings(error.to_string()))?,
        roots,
        authorities,
        access: wanted.access.clone(),
    }))
}

/// The certificate authorities of a file.
pub(super) fn roots(
    path: &Path,
    authorities: &[CertificateDer<'static>],
) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for (index, authority) in authorities.iter().enumerate() {
        roots.add(authority.clone()).map_err(|error| {
            Error::BadCertificate(path.to_owned(), index + 1, error.to_string())
        })?;
    }
    Ok(roots)
}

#[derive(Debug)]
struct Verifier {
    /// Verifies the chain.
    chains: Arc<dyn ClientCertVerifier>,
    roots: Arc<RootCertStore>,
    /// The complete certificates of `roots`.
    authorities: Vec<CertificateDer<'static>>,
    access: AccessLists,
}

impl Verifier {
    /// The verified chain of the client, with its root. The client may send unrelated certificates,
    /// which must not count for access.
    fn chain(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<Vec<Holder>, rustls::Error> {
        let bad = |_| rustls::Error::from(CertificateError::BadEncoding);
        let own = EndEntityCert::try_from(end_entity).map_err(bad)?;
        let algorithms = provider().signature_verification_algorithms.all;
        let usage = KeyUsage::client_auth();
        let path = own
            .verify_for_usage(
                algorithms,
                &self.roots.roots,
                intermediates,
                now,
                usage,
                None,
                None,
            )
            .map_err(|_| CertificateError::UnknownIssuer)?;
        let between = path.intermediate_certificates().map(webpki::Cert::der);
        let root = self
            .authorities
            .iter()
            .find(|authority| is_anchor(authority, path.anchor()))
            .cloned();
        std::iter::once(end_entity.clone())
            .chain(between)
            .chain(root)
            .map(|certificate| Holder::of(&certificate))
            .collect::<Option<Vec<_>>>()
            .ok_or(CertificateError::BadEncoding.into())
    }
}

fn is_anchor(authority: &CertificateDer<'_>, anchor: &TrustAnchor<'_>) -> bool {
    let own = webpki::anchor_from_trusted_cert(authority);
    own.is_ok_and(|own| {
        own.subject == anchor.subject
            && own.subject_public_key_info == anchor.subject_public_key_info
    })
}

/// Logs a refused client. The TLS alert to the client has less detail.
fn log(end_entity: &CertificateDer<'_>, refusal: Refusal, why: &dyn std::fmt::Display) {
    let code = refusal.code();
    match Holder::of(end_entity) {
        Some(holder) => warn!(
            subject = %holder.subject,
            issuer = %holder.issuer,
            sha256 = %holder.fingerprint,
            reason = %why,
            code,
            "the certificate of a client is refused"
        ),
        None => warn!(
            reason = %why,
            code,
            "the certificate of a client is refused: it makes no sense"
        ),
    }
}

fn log_untrusted(end_entity: &CertificateDer<'_>, error: &rustls::Error) {
    log(
        end_entity,
        Refusal::ClientCertificateUntrusted,
        &words(error),
    );
}

/// The reason why a chain is not valid, for the log.
fn words(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "none of the authorities for clients vouches for it".to_owned()
        }
        error => error.to_string(),
    }
}

impl ClientCertVerifier for Verifier {
    fn offer_client_auth(&self) -> bool {
        self.chains.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.chains.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.chains.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let verified = self
            .chains
            .verify_client_cert(end_entity, intermediates, now)
            .inspect_err(|error| log_untrusted(end_entity, error))?;
        if self.access.is_empty() {
            return Ok(verified);
        }
        let chain = self
            .chain(end_entity, intermediates, now)
            .inspect_err(|error| log_untrusted(end_entity, error))?;
        self.access.check(&chain).map_err(|denial: Denial| {
            log(end_entity, Refusal::ClientCertificateDenied, &denial);
            // This becomes the alert access_denied.
            rustls::Error::from(CertificateError::ApplicationVerificationFailure)
        })?;
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chains
            .verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chains
            .verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}
