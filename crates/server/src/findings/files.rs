//! Findings about files and directories of the machine: secrets that other users can reach, missing
//! directories.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use toml::Spanned;

use super::{Accounts, Findings};
use crate::config::{Config, ShareSection};

/// Access for others, and write access for the group: a private key should not have it.
const LOOSE_KEY: u32 = 0o027;
/// Write access for the group and others.
const WRITABLE: u32 = 0o022;
/// The sticky bit: users cannot rename or remove files of others.
const STICKY: u32 = 0o1000;

impl Findings {
    /// A private key that other users can read or change. The server uses it nevertheless.
    pub(super) fn private_key(&mut self, config: &Config) {
        let quic = &config.quic;
        let Some(key) = quic.key.as_ref().or(quic.certificate.as_ref()) else {
            return;
        };
        let path = key.get_ref();
        let Ok(metadata) = std::fs::metadata(path) else {
            // The start of the server reports it.
            return;
        };
        let mode = metadata.mode() & 0o7777;
        if mode & LOOSE_KEY != 0 {
            let path = path.display();
            let what = format!(
                "{path}: mode {mode:04o} gives other users access to the key: chmod 600 {path}"
            );
            self.warn("quic.key", config.line(key), what);
        }
        self.owner("quic.key", config, key);
    }

    /// A file of another user.
    fn owner(&mut self, key: &'static str, config: &Config, path: &Spanned<PathBuf>) {
        let file = path.get_ref();
        let owner = std::fs::metadata(file).map(|metadata| metadata.uid());
        if let Ok(owner) = owner
            && owner != 0
            && owner != geteuid().as_raw()
        {
            let file = file.display();
            let what = format!(
                "{file}: belongs to the user with the id {owner}, which can change it: chown root \
                 {file}"
            );
            self.warn(key, config.line(path), what);
        }
    }

    /// A directory in which other users can replace the file of users. The server checks mode and
    /// owner of the file itself, and refuses it.
    pub(super) fn directory_of_users(&mut self, accounts: &Accounts) {
        let Accounts::Of(file, _) = accounts else {
            return;
        };
        let Some(directory) = file.parent() else {
            return;
        };
        if let Some(reason) = reason_to_distrust(directory) {
            let what = format!(
                "{}: other users can replace the file: its directory {reason}",
                file.display()
            );
            self.warn("server.users", None, what);
        }
    }

    /// A share without a directory: clients get BAD_NETWORK_NAME until it exists.
    pub(super) fn directory_of_share(&mut self, config: &Config, share: &ShareSection) {
        let path = share.path.get_ref();
        let Err(error) = std::fs::metadata(path) else {
            return;
        };
        let (name, path) = (share.name.get_ref(), path.display());
        let what = format!(
            "clients cannot use share \"{name}\" until its directory exists: {path}: {error}"
        );
        self.warn("share.path", config.line(&share.path), what);
    }
}

/// Why users other than root and that of the process can replace files in a directory; `None` if
/// they cannot.
fn reason_to_distrust(directory: &Path) -> Option<String> {
    let metadata = std::fs::metadata(directory).ok()?;
    let (mode, owner) = (metadata.mode() & 0o7777, metadata.uid());
    if owner != 0 && owner != geteuid().as_raw() {
        return Some(format!("belongs to the user with the id {owner}"));
    }
    let is_writable = mode & WRITABLE != 0 && mode & STICKY == 0;
    is_writable.then(|| format!("has mode {mode:04o}"))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use super::reason_to_distrust;
    use crate::findings::examples::{SHARE, found, only, users};

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("a chmod");
    }

    #[test]
    fn a_share_without_a_directory_is_reported() {
        let alice = users(&[("alice", None, false)]);
        let text = "[[share]]\nname = \"data\"\npath = \"/no/such/directory\"\n";
        let (is_error, key, line, message) = only(text, &alice);
        assert_eq!((is_error, key, line), (false, "share.path", Some(3)));
        let expected = "clients cannot use share \"data\" until its directory exists: \
            /no/such/directory: ";
        assert!(message.starts_with(expected), "{message}");
    }

    #[test]
    fn a_private_key_for_others_is_reported() {
        let directory = tempfile::tempdir().expect("a directory");
        let key = directory.path().join("key.pem");
        fs::write(&key, "").expect("a file");
        let alice = users(&[("alice", None, false)]);
        let certificate = directory.path().join("certificate.pem");
        fs::write(&certificate, "").expect("a file");
        let text = format!(
            "[quic]\ncertificate = \"{}\"\nkey = \"{}\"\n{SHARE}",
            certificate.display(),
            key.display()
        );
        set_mode(&key, 0o600);
        assert_eq!(found(&text, &alice), []);
        for mode in [0o604, 0o620, 0o666] {
            set_mode(&key, mode);
            let (_, name, line, message) = only(&text, &alice);
            assert_eq!((name, line), ("quic.key", Some(3)));
            assert!(message.contains(&format!("mode {mode:04o}")), "{message}");
        }
    }

    #[test]
    fn a_directory_that_others_can_write_is_not_trusted() {
        let directory = tempfile::tempdir().expect("a directory");
        for (mode, is_trusted) in [(0o700, true), (0o755, true), (0o1777, true), (0o775, false)] {
            set_mode(directory.path(), mode);
            let reason = reason_to_distrust(directory.path());
            assert_eq!(reason.is_none(), is_trusted, "{mode:04o}: {reason:?}");
        }
    }
}
