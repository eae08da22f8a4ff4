//! Certificates and keys in PEM files.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::hmac;
use rustls::InconsistentKeys;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use tracing::warn;
use x509_parser::time::ASN1Time;

use super::certificate::parsed;
use super::{Error, provider};

/// Longest file in bytes: more than the certificates of all public authorities.
const MAX_BYTES: u64 = 16 << 20;
/// Mode bits that a key should not have: access for others, and write access for the group.
const LOOSE_MODE: u32 = 0o027;

/// Paths of the PEM files with a certificate and its private key. Both may be the same file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// File with the certificate chain: the certificate, then its issuers, without the root.
    pub certificate: PathBuf,
    /// File with the private key: PKCS#8, SEC1 or PKCS#1, not encrypted.
    pub key: PathBuf,
}

impl CertificateFiles {
    /// Reads both files, and checks that the key belongs to the certificate.
    pub(super) fn load(&self) -> Result<Arc<CertifiedKey>, Error> {
        let chain = certificates(&self.certificate)?;
        warn_of_dates(&self.certificate, &chain);
        let key = key(&self.key)?;
        warn_of_mode(&self.key);
        let key = CertifiedKey::from_der(chain, key, &provider());
        key.map(Arc::new).map_err(|error| match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => Error::KeyMismatch {
                certificate: self.certificate.clone(),
                key: self.key.clone(),
            },
            error => Error::BadKey(self.key.clone(), error.to_string()),
        })
    }

    /// Derives a secret for one purpose from the key. It does not reveal the key.
    pub(super) fn derive(&self, purpose: &[u8]) -> Result<[u8; 32], Error> {
        let key = key(&self.key)?;
        let key = hmac::Key::new(hmac::HMAC_SHA256, key.secret_der());
        let tag = hmac::sign(&key, purpose);
        Ok(tag.as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }
}

/// Reads all certificates of a file: at least one, and all must be valid.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let bytes = read(path)?;
    let mut found = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(&bytes) {
        let certificate = certificate.map_err(|error| not_pem(path, &error))?;
        parsed(&certificate)
            .map_err(|why| Error::BadCertificate(path.to_owned(), found.len() + 1, why))?;
        found.push(certificate);
    }
    if found.is_empty() {
        return Err(Error::NoCertificate(path.to_owned()));
    }
    Ok(found)
}

/// Reads the first private key of a file.
fn key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    let bytes = read(path)?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| match error {
        pem::Error::NoItemsFound => Error::NoKey(path.to_owned()),
        error => not_pem(path, &error),
    })
}

fn not_pem(path: &Path, error: &pem::Error) -> Error {
    Error::NotPem(path.to_owned(), error.to_string())
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| Error::read(path, error))?;
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Error::read(path, error))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Error::TooLarge(path.to_owned()));
    }
    Ok(bytes)
}

fn warn_of_mode(path: &Path) {
    let Ok(metadata) = std::fs::metadata(path) else {
        return;
    };
    let mode = metadata.mode() & 0o7777;
    if mode & LOOSE_MODE != 0 {
        let (file, mode) = (path.display(), format_args!("{mode:04o}"));
        warn!(%file, %mode, "others may use this private key: chmod 600 it");
    }
    let owner = metadata.uid();
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        let file = path.display();
        warn!(%file, owner, "another user owns this private key: chown it to root");
    }
}

/// Warns about a certificate that most clients refuse. It is used nevertheless: some clients do not
/// verify it.
fn warn_of_dates(path: &Path, chain: &[CertificateDer<'_>]) {
    let file = path.display();
    let now = ASN1Time::now();
    for (index, certificate) in chain.iter().enumerate() {
        let Ok(certificate) = parsed(certificate) else {
            continue;
        };
        let (number, validity) = (index + 1, certificate.validity());
        let (not_before, not_after) = (validity.not_before, validity.not_after);
        if not_after < now {
            warn!(%file, number, %not_after, "a certificate has expired");
        } else if not_before > now {
            warn!(%file, number, %not_before, "a certificate is not valid yet");
        }
    }
}
