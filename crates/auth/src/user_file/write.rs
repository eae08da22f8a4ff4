//! Writes the user file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::error::{FILE_LEN_MAX, UserFileError};
use crate::app_password::AppPassword;
use crate::login::AppPasswordRights;
use crate::ntlm::keys::NtHash;
use crate::password_rules::PasswordRules;
use crate::users::{Account, Users};

/// Replaces the file by a rename: a reader sees either the old or the new file, and so does the
/// next start after a crash.
pub(super) fn write(path: &Path, users: &Users) -> Result<(), UserFileError> {
    let content = format(users);
    // The server would refuse a longer file.
    if content.len() as u64 > FILE_LEN_MAX {
        return Err(UserFileError::TooLong(path.into()));
    }
    replace(path, &content).map_err(|error| UserFileError::Io(path.into(), error))
}

fn replace(path: &Path, content: &str) -> io::Result<()> {
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
    file.write_all(content.as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    let directory = path
        .parent()
        .filter(|directory| !directory.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

/// The text of the file. An app password is a table below its user.
fn format(users: &Users) -> Zeroizing<String> {
    let mut content = Zeroizing::new(String::from(
        "# Written by `smbeam user`. An NT hash is as secret as the password: keep it secret.\n",
    ));
    if !users.rules.is_empty() {
        put_rules(&mut content, &users.rules);
    }
    for group in users.groups() {
        let members: Vec<String> = group.members().map(quoted).collect();
        let (name, members) = (quoted(&group.name), members.join(", "));
        content.push_str(&format!(
            "\n[[group]]\nname = {name}\nmembers = [{members}]\n"
        ));
    }
    for account in users.iter() {
        put_account(&mut content, account);
    }
    content
}

fn put_rules(content: &mut String, rules: &PasswordRules) {
    let PasswordRules {
        min_length,
        min_classes,
        refuse_name,
    } = rules;
    content.push_str(&format!(
        "\n[password_rules]\nmin_length = {min_length}\nmin_classes = {min_classes}\n\
         refuse_name = {refuse_name}\n"
    ));
}

fn put_account(content: &mut String, account: &Account) {
    let Account {
        name,
        nt_hash,
        unix,
        is_disabled,
        app_passwords,
    } = account;
    content.push_str(&format!("\n[[user]]\nname = {}\n", quoted(name)));
    put_hash(content, nt_hash);
    if let Some(unix) = unix {
        content.push_str(&format!("unix = {}\n", quoted(unix)));
    }
    if *is_disabled {
        content.push_str("disabled = true\n");
    }
    for password in app_passwords {
        put_app_password(content, password);
    }
}

fn put_app_password(content: &mut String, password: &AppPassword) {
    let AppPassword {
        rights:
            AppPasswordRights {
                name,
                shares,
                read_only,
            },
        nt_hash,
        expires,
    } = password;
    content.push_str(&format!(
        "\n[[user.app_password]]\nname = {}\n",
        quoted(name)
    ));
    put_hash(content, nt_hash);
    if let Some(expires) = expires {
        let time = jiff::Timestamp::from_second(expires.to_unix());
        let time = time.expect("the time comes from a year up to 9999");
        content.push_str(&format!("expires = {time}\n"));
    }
    if !shares.is_empty() {
        let shares: Vec<String> = shares.iter().map(|share| quoted(share)).collect();
        content.push_str(&format!("shares = [{}]\n", shares.join(", ")));
    }
    if *read_only {
        content.push_str("read_only = true\n");
    }
}

fn put_hash(content: &mut String, nt_hash: &NtHash) {
    content.push_str(&format!("nt_hash = \"{}\"\n", nt_hash.to_hex().as_str()));
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.into()).to_string()
}

/// The path with a suffix after its last part.
pub(super) fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
