//! Certificate authorities and certificates in a temporary directory.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, date_time_ymd,
};
use smbeam_net::tls::{CertificateFiles, Fingerprint};
use tempfile::TempDir;

pub(crate) struct Directory(TempDir);

impl Directory {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("a mode");
        path
    }

    /// Writes a certificate and its key.
    pub(crate) fn files(&self, name: &str, issued: &Issued) -> CertificateFiles {
        CertificateFiles {
            certificate: self.write(&format!("{name}.pem"), &issued.chain),
            key: self.write(&format!("{name}.key"), &issued.key.serialize_pem()),
        }
    }
}

pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    /// Those between it and the root, in PEM.
    chain: String,
}

pub(crate) struct Issued {
    /// In PEM, with the authorities in between.
    pub(crate) chain: String,
    pub(crate) key: KeyPair,
    pub(crate) fingerprint: Fingerprint,
}

fn authority(name: &str) -> CertificateParams {
    let mut wanted = parameters(&[]);
    wanted.distinguished_name = subject(name);
    wanted.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    wanted
}

/// `CN=name, O=Example, C=DE`, as Windows writes it.
fn subject(name: &str) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CountryName, "DE");
    subject.push(DnType::OrganizationName, "Example");
    subject.push(DnType::CommonName, name);
    subject
}

/// What a certificate for these hosts is made of.
pub(crate) fn parameters(hosts: &[&str]) -> CertificateParams {
    let hosts: Vec<_> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let mut wanted = CertificateParams::new(hosts).expect("names");
    wanted.distinguished_name = subject("holder");
    wanted.not_before = date_time_ymd(2020, 1, 1);
    wanted.not_after = date_time_ymd(2090, 1, 1);
    wanted
}

impl Authority {
    pub(crate) fn root(name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        Self {
            issuer: CertifiedIssuer::self_signed(authority(name), key).expect("an authority"),
            chain: String::new(),
        }
    }

    /// One that this one vouches for.
    pub(crate) fn below(&self, name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::signed_by(authority(name), key, &self.issuer);
        let issuer = issuer.expect("an authority");
        let chain = issuer.pem() + &self.chain;
        Self { issuer, chain }
    }

    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(self.issuer.der())
    }

    pub(crate) fn issue(&self, wanted: &CertificateParams) -> Issued {
        let key = KeyPair::generate().expect("a key");
        let certificate = wanted.signed_by(&key, &self.issuer).expect("a certificate");
        Issued {
            chain: certificate.pem() + &self.chain,
            fingerprint: Fingerprint::of(certificate.der()),
            key,
        }
    }

    /// For servers of these names.
    pub(crate) fn server(&self, hosts: &[&str]) -> Issued {
        let mut wanted = parameters(hosts);
        wanted.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.issue(&wanted)
    }

    /// For a client of this name.
    pub(crate) fn client(&self, host: &str) -> Issued {
        let mut wanted = parameters(&[host]);
        wanted.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(&wanted)
    }
}
