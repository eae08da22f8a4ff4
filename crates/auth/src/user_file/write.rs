//! Writes the user file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use zeroize::Zeroizing;

use super::sibling;
use crate::users::{Account, Users};

/// Replaces the file by a rename: a reader sees either the old or the new file, and so does the
/// next start after a crash.
pub(super) fn write(path: &Path, users: &Users) -> io::Result<()> {
    let temporary = sibling(path, ".new");
    // This process holds the lock, so an existing temporary file is left over from a crash.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)?;
    file.write_all(format(users).as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    let directory = path
        .parent()
        .filter(|directory| !directory.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

fn format(users: &Users) -> Zeroizing<String> {
    let quoted = |text: &str| toml::Value::String(text.into()).to_string();
    let mut content = Zeroizing::new(String::from(
        "# Written by `smbeam user`. An NT hash is as secret as the password: keep it secret.\n",
    ));
    for Account {
        name,
        nt_hash,
        unix,
        is_disabled,
    } in users.iter()
    {
        content.push_str(&format!("\n[[user]]\nname = {}\n", quoted(name)));
        content.push_str(&format!("nt_hash = \"{}\"\n", nt_hash.to_hex().as_str()));
        if let Some(unix) = unix {
            content.push_str(&format!("unix = {}\n", quoted(unix)));
        }
        if *is_disabled {
            content.push_str("disabled = true\n");
        }
    }
    content
}
