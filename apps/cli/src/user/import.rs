//! `smbeam user import`: adds the users of Samba with their passwords.

use std::fs::File;
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use auth::{Imported, SmbpasswdEntry, UserFile, parse_smbpasswd};
use clap::Args;
use zeroize::Zeroizing;

use super::arguments::FileArgument;
use crate::output::{line, note};

/// Maximum length of the imported file in bytes: 10,000 lines of 400 bytes fit.
const FILE_MAX: u64 = 4 << 20;

/// Arguments of `smbeam user import`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    file: FileArgument,
    /// Give existing users the imported password and state. They keep their Unix account, groups
    /// and additional passwords. Default: existing users stay as they are.
    #[arg(long)]
    replace: bool,
    /// A file `smbpasswd` of Samba, or the output of `pdbedit -L -w`; `-` for standard input.
    source: PathBuf,
}

impl Arguments {
    /// Runs the command. Reports each line without a usable account, and imports the others.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let Self {
            file,
            replace,
            source,
        } = self;
        let content = read(source)?;
        let mut entries: Vec<SmbpasswdEntry> = Vec::new();
        let (mut skipped, mut failed) = (0_usize, 0_usize);
        for (number, parsed) in parse_smbpasswd(&content) {
            match parsed {
                Ok(entry) => entries.push(entry),
                Err(error) => {
                    let source = source.display();
                    match error.is_skip() {
                        true => skipped += 1,
                        false => failed += 1,
                    }
                    note(&format_args!(
                        "smbeam: user: {source}, line {number}: {error}: skipped"
                    ));
                }
            }
        }
        let mut users = UserFile::load(&file.file)?;
        let results = users.import(&entries, *replace)?;
        report(&entries, &results, skipped + failed);
        match failed {
            0 => Ok(()),
            1 => bail!("{}: 1 line is not valid", source.display()),
            count => bail!("{}: {count} lines are not valid", source.display()),
        }
    }
}

fn report(entries: &[SmbpasswdEntry], results: &[Imported], skipped: usize) {
    let count = |result: Imported| results.iter().filter(|other| **other == result).count();
    for (entry, result) in entries.iter().zip(results) {
        if *result == Imported::Kept {
            let name = &entry.name;
            note(&format_args!(
                "smbeam: user: {name} exists: kept, see --replace"
            ));
        }
        let is_new = *result == Imported::Added;
        let warning = is_new.then(|| smbeam_server::unix_account_warning(&entry.name, None));
        if let Some(warning) = warning.flatten() {
            note(&format_args!("smbeam: user: warning: {warning}"));
        }
    }
    let (added, replaced) = (count(Imported::Added), count(Imported::Replaced));
    let kept = count(Imported::Kept);
    line(&format_args!(
        "{added} added, {replaced} replaced, {kept} kept, {skipped} skipped"
    ));
}

/// Reads the file or standard input. The hashes in it are secret.
fn read(source: &Path) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    let mut content = Zeroizing::new(Vec::new());
    let read = match source == Path::new("-") {
        true => stdin().take(FILE_MAX + 1).read_to_end(&mut content),
        false => {
            File::open(source).and_then(|file| file.take(FILE_MAX + 1).read_to_end(&mut content))
        }
    };
    let length = read.with_context(|| source.display().to_string())?;
    if length as u64 > FILE_MAX {
        bail!("{}: longer than {FILE_MAX} bytes", source.display());
    }
    Ok(content)
}
