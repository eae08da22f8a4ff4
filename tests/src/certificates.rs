//! Authorities and the certificates that they issue, as files of PEM.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, date_time_ymd,
};

/// A certificate authority.
#[derive(Debug)]
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: PathBuf,
    /// The authority's own certificate.
    pub file: PathBuf,
}

/// A certificate and its key.
#[derive(Clone, Debug)]
pub struct Files {
    /// The certificate.
    pub certificate: PathBuf,
    /// The private key, in a file that only its owner may read.
    pub key: PathBuf,
}

impl Authority {
    /// An authority that keeps its files in `directory`.
    pub fn new(directory: &Path, name: &str) -> Result<Authority> {
        let mut wanted = parameters(&[], name)?;
        wanted.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(wanted, KeyPair::generate()?)?;
        let file = directory.join(format!("{name}.pem"));
        fs::write(&file, issuer.pem())?;
        Ok(Authority {
            issuer,
            directory: directory.into(),
            file,
        })
    }

    /// A server's certificate for these names.
    pub fn server(&self, names: &[&str]) -> Result<Files> {
        let mut wanted = parameters(names, names[0])?;
        wanted.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.issue("server", &wanted)
    }

    /// A server's certificate for these names, which has expired.
    pub fn expired_server(&self, names: &[&str]) -> Result<Files> {
        let mut wanted = parameters(names, names[0])?;
        wanted.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        wanted.not_after = date_time_ymd(2021, 1, 1);
        self.issue("server", &wanted)
    }

    /// A client's certificate for a name.
    pub fn client(&self, name: &str) -> Result<Files> {
        let mut wanted = parameters(&[name], name)?;
        wanted.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(name, &wanted)
    }

    fn issue(&self, name: &str, wanted: &CertificateParams) -> Result<Files> {
        let key = KeyPair::generate()?;
        let certificate = wanted.signed_by(&key, &self.issuer)?;
        let files = Files {
            certificate: self.directory.join(format!("{name}-certificate.pem")),
            key: self.directory.join(format!("{name}-key.pem")),
        };
        fs::write(&files.certificate, certificate.pem())?;
        fs::write(&files.key, key.serialize_pem())?;
        fs::set_permissions(&files.key, Permissions::from_mode(0o600))?;
        Ok(files)
    }
}

fn parameters(names: &[&str], subject: &str) -> Result<CertificateParams> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut wanted = CertificateParams::new(names)?;
    wanted.distinguished_name.push(DnType::CommonName, subject);
    wanted.not_before = date_time_ymd(2020, 1, 1);
    wanted.not_after = date_time_ymd(2090, 1, 1);
    Ok(wanted)
}

impl Files {
    /// The paths as keys of smbeam's `[quic]`.
    pub fn settings(&self) -> toml::Table {
        let path = |path: &Path| toml::Value::from(path.display().to_string());
        toml::Table::from_iter([
            ("certificate".to_owned(), path(&self.certificate)),
            ("key".to_owned(), path(&self.key)),
        ])
    }
}
