//! The certificate that a server makes for itself where nobody gave it one.
//!
//! It is made once and kept, because clients pin it: a new one would lock all of them out.

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

/// The file within the state folder: certificate and key.
const FILE: &str = "quic-self-signed.pem";
/// Clocks differ: it is valid before it was made.
const BACKDATED: Duration = Duration::from_secs(24 * 3600);
/// Ten years: whoever pins it would rather not do so again.
const VALID: Duration = Duration::from_secs(3650 * 24 * 3600);

/// Where the certificate is, or would be.
pub(super) fn path(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

/// The certificate of a state folder, made if there is none.
pub(super) fn files(folder: &Path, names: &[String]) -> Result<CertificateFiles, Error> {
    let path = path(folder);
    if path.exists() {
        warn_of_names(&path, names)?;
    } else {
        make(folder, &path, names)?;
    }
    Ok(CertificateFiles {
        certificate: path.clone(),
        key: path,
    })
}

/// A name that came later is not in it, and clients that check names will say so.
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

fn make(folder: &Path, path: &Path, names: &[String]) -> Result<(), Error> {
    let pem = generate(names).map_err(|error| Error::NotMade(error.to_string()))?;
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder
        .create(folder)
        .map_err(|error| Error::write(folder, error))?;
    let draft = draft(folder);
    let written = write(&draft, &pem);
    // A link, unlike a rename, leaves the one alone that another server has just made.
    let linked = written.and_then(|()| match fs::hard_link(&draft, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    });
    let _ = fs::remove_file(&draft);
    linked.map_err(|error| Error::write(path, error))?;
    info!(file = %path.display(), names = %names.join(", "), "made a certificate");
    Ok(())
}

/// A name that nobody else has, in this process or in another.
fn draft(folder: &Path) -> PathBuf {
    static DRAFTS: AtomicU64 = AtomicU64::new(0);
    let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    folder.join(format!(".{FILE}.{}.{number}", std::process::id()))
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

/// Whether certificates can name it.
fn is_host(name: &str) -> bool {
    name.parse::<IpAddr>().is_ok() || ServerName::try_from(name).is_ok()
}
