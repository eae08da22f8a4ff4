//! The self-signed certificate of a server without another one.
//!
//! It is made once and stored, because clients pin it: with a new one they could not connect.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::ServerName;
use tracing::{info, warn};

use super::certificate::hosts;
use super::pem::certificates;
use super::{CertificateFiles, Error};

/// The file in the state directory, with certificate and key.
const FILE: &str = "quic-self-signed.pem";
/// Start of validity before the creation, because clocks differ.
const BACKDATED: Duration = Duration::from_secs(24 * 3600);
/// Validity of ten years: clients must pin the next certificate again.
const VALID: Duration = Duration::from_secs(3650 * 24 * 3600);

/// Path of the certificate in a state directory.
pub(super) fn path(directory: &Path) -> PathBuf {
    directory.join(FILE)
}

/// The certificate in a state directory. It is made if it does not exist.
pub(super) fn files(directory: &Path, names: &[String]) -> Result<CertificateFiles, Error> {
    let path = path(directory);
    if path.exists() {
        warn_of_names(&path, names)?;
    } else {
        make(directory, &path, names)?;
    }
    Ok(CertificateFiles {
        certificate: path.clone(),
        key: path,
    })
}

/// Warns about names that the certificate lacks: clients that verify names refuse them.
fn warn_of_names(path: &Path, names: &[String]) -> Result<(), Error> {
    let chain = certificates(path)?;
    let found = chain.first().map(|own| hosts(own)).unwrap_or_default();
    let is_missing =
        |name: &&String| is_host(name) && !found.iter().any(|own| own.eq_ignore_ascii_case(name));
    let missing: Vec<_> = names.iter().filter(is_missing).cloned().collect();
    if !missing.is_empty() {
        let (file, missing) = (path.display(), missing.join(", "));
        warn!(%file, %missing, "the certificate lacks names: remove the file for a new one");
    }
    Ok(())
}

fn make(directory: &Path, path: &Path, names: &[String]) -> Result<(), Error> {
    let pem = generate(names).map_err(|error| Error::NotMade(error.to_string()))?;
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder
        .create(directory)
        .map_err(|error| Error::write(directory, error))?;
    let draft = draft(directory);
    let written = write(&draft, &pem);
    // Unlike a rename, a link does not replace the certificate that another server has just made.
    let linked = written.and_then(|()| match fs::hard_link(&draft, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    });
    let _ = fs::remove_file(&draft);
    linked.map_err(|error| Error::write(path, error))?;
    info!(file = %path.display(), names = %names.join(", "), "made a self-signed certificate");
    Ok(())
}

/// A unique file name, for this and for other processes.
fn draft(directory: &Path) -> PathBuf {
    static DRAFTS: AtomicU64 = AtomicU64::new(0);
    let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    directory.join(format!(".{FILE}.{}.{number}", std::process::id()))
}

fn write(path: &Path, pem: &str) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(path)?;
    file.write_all(pem.as_bytes())?;
    file.sync_all()
}

/// A certificate and its key.
fn generate(names: &[String]) -> Result<String, rcgen::Error> {
    let hosts: Vec<_> = names.iter().filter(|name| is_host(name)).cloned().collect();
    let mut parameters = CertificateParams::new(hosts)?;
    let mut subject = DistinguishedName::new();
    let common = names.first().map_or("smbeam", String::as_str);
    subject.push(DnType::CommonName, common);
    parameters.distinguished_name = subject;
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    parameters.not_before = epoch + now.saturating_sub(BACKDATED);
    parameters.not_after = epoch + now + VALID;
    let key = KeyPair::generate()?;
    let certificate = parameters.self_signed(&key)?;
    Ok(certificate.pem() + &key.serialize_pem())
}

/// Returns true if a certificate can contain the name.
fn is_host(name: &str) -> bool {
    name.parse::<IpAddr>().is_ok() || ServerName::try_from(name).is_ok()
}
