//! The Samba part: the root file system with smbclient, smbtorture, smbd and libsmb2.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use smbeam_tests::lab::{Lab, directory};

use super::debian;
use crate::process::quiet;

/// The release with the newest Samba and user-mode Linux.
const SUITE: &str = "sid";
const PACKAGES: &[&str] = &[
    "samba",
    "samba-testsuite",
    "smbclient",
    "samba-vfs-modules",
    "python3-samba",
    "libsmb2-6",
    "cifs-utils",
    "attr",
    "acl",
    "procps",
    "iproute2",
];
/// Users of the servers in the lab, with their ids.
const USERS: &[(&str, u32)] = &[("alice", 2001), ("bob", 2002)];
/// The minimum version of Samba for the tests.
const VERSION: (u32, u32) = (4, 25);

/// Builds a new root file system, and replaces the old one at the end.
pub(super) fn build(lab: &Lab) -> Result<()> {
    let unfinished = directory().join("unfinished");
    let draft = Lab::at(&unfinished);
    debian::bootstrap(draft.root(), SUITE, &[])?;
    debian::install(&draft, PACKAGES)?;
    add_users(draft.root())?;
    let version = quiet(draft.command("smbclient").arg("--version"))?;
    println!("lab: smbclient {}", version.trim());
    if parse_version(&version).is_none_or(|version| version < VERSION) {
        bail!(
            "the mirror has Samba {}, the tests need {VERSION:?}",
            version.trim()
        );
    }
    replace(draft.root(), lab.root())?;
    let _ = fs::remove_dir(&unfinished);
    Ok(())
}

fn add_users(root: &Path) -> Result<()> {
    for (name, id) in USERS {
        append(
            &root.join("etc/passwd"),
            &format!("{name}:x:{id}:{id}::/tmp:/bin/sh\n"),
        )?;
        append(&root.join("etc/group"), &format!("{name}:x:{id}:\n"))?;
    }
    Ok(())
}

fn append(path: &Path, line: &str) -> Result<()> {
    let file = OpenOptions::new().append(true).open(path);
    let mut file = file.with_context(|| format!("cannot open {}", path.display()))?;
    file.write_all(line.as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))
}

fn replace(new: &Path, old: &Path) -> Result<()> {
    let aside = old.with_extension("old");
    debian::remove(&aside)?;
    if old.exists() {
        fs::rename(old, &aside)?;
    }
    fs::rename(new, old).with_context(|| format!("cannot move {}", new.display()))?;
    debian::remove(&aside)
}

/// Parses "Version 4.25.1-Debian" as (4, 25).
fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split_whitespace().nth(1)?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::parse_version;

    #[test]
    fn the_version_is_the_first_two_numbers() {
        assert_eq!(
            parse_version("Version 4.25.1-Debian-4.25.1+dfsg-1\n"),
            Some((4, 25))
        );
        assert_eq!(parse_version("smbclient: not found"), None);
    }
}
