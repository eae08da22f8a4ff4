//! The holder of a certificate.

use std::net::IpAddr;

use rustls::pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer as _;

use super::{DistinguishedName, Fingerprint};

/// Most alternative names of one certificate that are compared.
const MAX_NAMES: usize = 1024;
/// The type of a user principal name among other names. \[MS-WCCE\] 2.2.2.7.5
const USER_PRINCIPAL_NAME: &str = "1.3.6.1.4.1.311.20.2.3";

/// Parses a certificate. The error is the reason why it is invalid.
pub(super) fn parsed<'a>(der: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, String> {
    match X509Certificate::from_der(der) {
        Ok(([], certificate)) => Ok(certificate),
        Ok(_) => Err("there is more behind it".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Holder and issuer of a certificate.
#[derive(Clone, Debug)]
pub(super) struct Holder {
    pub(super) fingerprint: Fingerprint,
    pub(super) subject: DistinguishedName,
    pub(super) issuer: DistinguishedName,
    pub(super) names: Vec<AlternativeName>,
}

/// A subject alternative name of a supported kind. RFC 5280 4.2.1.6
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AlternativeName {
    Dns(String),
    Email(String),
    Uri(String),
    Address(IpAddr),
    /// A user principal name of Windows: `user@domain`.
    UserPrincipalName(String),
}

impl Holder {
    /// The holder of a certificate; `None` if the certificate is invalid.
    pub(super) fn of(der: &CertificateDer<'_>) -> Option<Self> {
        let certificate = parsed(der).ok()?;
        Some(Self {
            fingerprint: Fingerprint::of(der),
            subject: DistinguishedName::of(certificate.subject()),
            issuer: DistinguishedName::of(certificate.issuer()),
            names: alternative_names(&certificate),
        })
    }
}

fn alternative_names(certificate: &X509Certificate<'_>) -> Vec<AlternativeName> {
    let Ok(Some(extension)) = certificate.subject_alternative_name() else {
        return Vec::new();
    };
    let names = extension.value.general_names.iter();
    names.take(MAX_NAMES).filter_map(alternative_name).collect()
}

fn alternative_name(name: &GeneralName<'_>) -> Option<AlternativeName> {
    Some(match name {
        GeneralName::DNSName(name) => AlternativeName::Dns((*name).to_owned()),
        GeneralName::RFC822Name(name) => AlternativeName::Email((*name).to_owned()),
        GeneralName::URI(name) => AlternativeName::Uri((*name).to_owned()),
        GeneralName::IPAddress(bytes) => AlternativeName::Address(address(bytes)?),
        GeneralName::OtherName(kind, value) if kind.to_id_string() == USER_PRINCIPAL_NAME => {
            AlternativeName::UserPrincipalName(explicit_text(value)?)
        }
        _ => return None,
    })
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        _ => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
    }
}

/// Parses a UTF8String in an explicit tag 0.
fn explicit_text(value: &[u8]) -> Option<String> {
    use x509_parser::der_parser::asn1_rs::{Any, FromDer as _, Tag};
    let (_, outer) = Any::from_der(value).ok()?;
    let (_, inner) = Any::from_der(outer.data).ok()?;
    let is_text = outer.tag() == Tag(0) && inner.tag() == Tag::Utf8String;
    let text = std::str::from_utf8(inner.data).ok()?;
    is_text.then(|| text.to_owned())
}

/// The host names and addresses of a certificate.
pub(super) fn hosts(der: &CertificateDer<'_>) -> Vec<String> {
    let Ok(certificate) = parsed(der) else {
        return Vec::new();
    };
    let names = alternative_names(&certificate);
    let host = |name| match name {
        AlternativeName::Dns(name) => Some(name.escape_default().to_string()),
        AlternativeName::Address(address) => Some(address.to_string()),
        _ => None,
    };
    names.into_iter().filter_map(host).collect()
}
