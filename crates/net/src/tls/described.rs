//! Dates and names of certificates, for checks before clients refuse them.

use std::path::{Path, PathBuf};

use x509_parser::time::ASN1Time;

use super::certificate::{hosts, parsed};
use super::pem::certificates;
use super::self_signed;
use super::{CertificateSource, Error, Fingerprint, ServerSettings};

/// A certificate of a file.
#[derive(Clone, Debug)]
pub struct Described {
    /// The host names and addresses that the certificate is for.
    pub names: Vec<String>,
    /// The start of its validity, as text.
    pub not_before: String,
    /// The end of its validity, as text.
    pub not_after: String,
    /// Whether it is valid now.
    pub validity: Validity,
    /// SHA-256 hash of the certificate.
    pub fingerprint: Fingerprint,
}

/// Whether a certificate is valid now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// It is valid.
    Valid,
    /// Its end has passed.
    Expired,
    /// Its start has not come.
    NotYet,
}

impl Described {
    /// Reads the certificates of a file, first that of the server. The list is not empty.
    ///
    /// # Errors
    /// The file cannot be read, or one of its certificates is not valid.
    pub fn chain(path: &Path) -> Result<Vec<Self>, Error> {
        let now = ASN1Time::now();
        let described = |(index, der)| {
            let bad = |why| Error::BadCertificate(path.to_owned(), index + 1, why);
            let certificate = parsed(der).map_err(bad)?;
            let validity = certificate.validity();
            Ok(Self {
                names: hosts(der),
                not_before: validity.not_before.to_string(),
                not_after: validity.not_after.to_string(),
                validity: if validity.not_after < now {
                    Validity::Expired
                } else if validity.not_before > now {
                    Validity::NotYet
                } else {
                    Validity::Valid
                },
                fingerprint: Fingerprint::of(der),
            })
        };
        certificates(path)?
            .iter()
            .enumerate()
            .map(described)
            .collect()
    }
}

impl ServerSettings {
    /// Returns the file with the certificate of the server. A self-signed one need not exist.
    pub fn certificate_path(&self) -> PathBuf {
        match &self.certificate {
            CertificateSource::Files(files) => files.certificate.clone(),
            CertificateSource::SelfSigned { directory, .. } => self_signed::path(directory),
        }
    }
}
