//! The secret of a user from which the names of incomplete files are made.
//!
//! In a directory where others may create files, a name that they can compute would be dangerous:
//! a link with this name would lead the data to another file, and a file with this name would
//! become the beginning of a resumed copy. The secret is the same for all transfers of a user, so
//! `--continue` finds the files of an earlier transfer.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::{env, process};

use aws_lc_rs::hmac;
use rustix::fs::OFlags;

/// Length of the secret in bytes.
const LENGTH: usize = 32;
/// The file with the secret, below the directory for the state of programs.
const FILE: &str = "smbeam/part-names.key";
/// Permission bits of other users.
const FORBIDDEN_MODE: u32 = 0o077;

/// The secret, and the reason why it is not stored.
pub(super) struct PartKey {
    key: hmac::Key,
    not_stored: Option<String>,
}

impl PartKey {
    /// The secret of the user from `$XDG_STATE_HOME/smbeam` or `~/.local/state/smbeam`. The first
    /// call stores a new one. If that fails, the secret is a new one for this process.
    pub(super) fn load() -> Self {
        let stored = match state_directory() {
            Some(directory) => load_or_store(&directory.join(FILE)),
            None => Err("neither XDG_STATE_HOME nor HOME is set".into()),
        };
        stored.map_or_else(
            |reason| Self {
                not_stored: Some(reason),
                ..Self::random()
            },
            |secret| Self::of(&secret),
        )
    }

    /// A new secret that is not stored.
    pub(super) fn random() -> Self {
        Self::of(&random())
    }

    fn of(secret: &[u8; LENGTH]) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, secret),
            not_stored: None,
        }
    }

    /// The reason why the secret is not stored. Then a later transfer cannot find the incomplete
    /// files of this one.
    pub(super) fn not_stored(&self) -> Option<&str> {
        self.not_stored.as_deref()
    }

    /// A tag of these parts: the first 64 bits of an HMAC-SHA256. The length of each part counts,
    /// so other parts with the same bytes have another tag.
    pub(super) fn tag(&self, parts: &[&[u8]]) -> u64 {
        let mut context = hmac::Context::with_key(&self.key);
        for part in parts {
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part);
        }
        let mut first = [0; 8];
        first.copy_from_slice(&context.sign().as_ref()[..8]);
        u64::from_be_bytes(first)
    }
}

fn random() -> [u8; LENGTH] {
    let mut secret = [0; LENGTH];
    getrandom::fill(&mut secret).expect("the kernel has random bytes");
    secret
}

/// The directory for the state of programs, as the XDG Base Directory Specification defines it.
fn state_directory() -> Option<PathBuf> {
    env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state")))
        .filter(|path| path.is_absolute())
}

fn load_or_store(path: &Path) -> Result<[u8; LENGTH], String> {
    let named = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    match read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            store(path).map_err(|error| named(&error))?;
            // Another process may have stored its secret in the meantime.
            read(path).map_err(|error| named(&error))
        }
        read => read.map_err(|error| named(&error)),
    }
}

fn read(path: &Path) -> io::Result<[u8; LENGTH]> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut file = File::options().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    let is_private = metadata.uid() == rustix::process::geteuid().as_raw()
        && metadata.mode() & FORBIDDEN_MODE == 0;
    if !metadata.is_file() || !is_private || metadata.len() != LENGTH as u64 {
        return Err(io::Error::other(format!(
            "want a file of {LENGTH} bytes that only its owner, the user, can access (mode 0600)"
        )));
    }
    let mut secret = [0; LENGTH];
    file.read_exact(&mut secret)?;
    Ok(secret)
}

/// Stores a new secret. The file has its whole content from the beginning.
fn store(path: &Path) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
    }
    let part = path.with_extension(format!("key.{}", process::id()));
    // A process with the same number, now ended, may have left its file.
    let _ = fs::remove_file(&part);
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&part)?;
    let stored = file
        .write_all(&random())
        .and_then(|()| fs::rename(&part, path));
    if stored.is_err() {
        let _ = fs::remove_file(&part);
    }
    stored
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn the_secret_of_a_user_stays_the_same() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("state").join(FILE);
        let secret = load_or_store(&path).expect("a new secret");
        assert_ne!(secret, [0; LENGTH]);
        assert_eq!(load_or_store(&path), Ok(secret));
        let mode = |path: &Path| fs::metadata(path).expect("metadata").mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().expect("a directory")), 0o700);
        let entries = fs::read_dir(path.parent().expect("a directory")).expect("a listing");
        assert_eq!(entries.count(), 1);
    }

    #[test]
    fn a_secret_that_others_know_or_chose_is_not_used() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("key");
        fs::write(&path, [7; LENGTH]).expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("a mode");
        assert!(load_or_store(&path).is_err());
        fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("a mode");
        assert_eq!(load_or_store(&path), Ok([7; LENGTH]));
        let link = directory.path().join("link");
        symlink(&path, &link).expect("a link");
        assert!(load_or_store(&link).is_err());
        fs::write(&path, "short").expect("a file");
        assert!(load_or_store(&path).is_err());
    }

    #[test]
    fn a_tag_depends_on_the_secret_and_on_each_part() {
        let key = PartKey::of(&[1; LENGTH]);
        let tag = key.tag(&[b"ab", b"c"]);
        assert_eq!(tag, PartKey::of(&[1; LENGTH]).tag(&[b"ab", b"c"]));
        assert_ne!(tag, key.tag(&[b"a", b"bc"]));
        assert_ne!(tag, PartKey::of(&[2; LENGTH]).tag(&[b"ab", b"c"]));
        assert_ne!(PartKey::random().tag(&[]), PartKey::random().tag(&[]));
    }
}
