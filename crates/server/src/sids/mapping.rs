//! The mapping file: SIDs of another server or a domain, and the accounts of Unix that they stand
//! for.
//!
//! ```text
//! # SID                        kind   account: a name or a number of Unix
//! S-1-5-21-1-2-3-1001          user   alice
//! S-1-5-21-1-2-3-513           group  100
//! S-1-5-32-544                 group  adm
//! ```
//!
//! The first line of an account has the SID that the server shows for it. The server reads the file
//! when it starts.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use proto::account::KnownAccount;
use vfs::accounts::UnixAccount;
use wire::rpc::lsarpc::SidKind;
use wire::security::{Sid, WELL_KNOWN};

use super::domain::{AccountName, Domain};
use super::unix::name_of;
use crate::unix_account;

/// Maximum length of the file in bytes: each check of an access searches its lines.
const FILE_MAX: u64 = 1 << 20;
/// Maximum number of lines with a SID.
const LINES_MAX: usize = 10_000;

/// The lines of a mapping file.
#[derive(Debug)]
pub(super) struct Mapping {
    /// The domain of the accounts: the name of the server.
    domain: String,
    accounts: BTreeMap<Sid, UnixAccount>,
    shown: BTreeMap<UnixAccount, Sid>,
}

/// An error of the mapping file. Its `Display` form names the file and the line.
#[derive(Debug)]
pub struct MappingError {
    file: PathBuf,
    line: Option<usize>,
    reason: String,
}

impl MappingError {
    /// Returns the line of the error in the mapping file, from 1; `None` if no single line causes
    /// it.
    pub fn line(&self) -> Option<usize> {
        self.line
    }
}

impl fmt::Display for MappingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl std::error::Error for MappingError {}

impl Mapping {
    /// Reads a mapping file of the server with the NetBIOS name `domain`.
    ///
    /// # Errors
    /// The file cannot be read, is too long, or a line is not valid.
    pub(super) fn load(file: &Path, domain: &str) -> Result<Self, MappingError> {
        let error = |line, reason| MappingError {
            file: file.to_owned(),
            line,
            reason,
        };
        let text = read(file).map_err(|reason| error(None, reason))?;
        Self::parse(&text, domain).map_err(|(line, reason)| error(Some(line), reason))
    }

    /// Parses the text of a mapping file. The error has a line number, from 1, and the reason.
    fn parse(text: &str, domain: &str) -> Result<Self, (usize, String)> {
        let mut mapping = Self {
            domain: domain.to_owned(),
            accounts: BTreeMap::new(),
            shown: BTreeMap::new(),
        };
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default();
            if !line.trim().is_empty() {
                mapping.add(line).map_err(|reason| (number, reason))?;
            }
        }
        Ok(mapping)
    }

    fn add(&mut self, line: &str) -> Result<(), String> {
        if self.accounts.len() >= LINES_MAX {
            return Err(format!("more than {LINES_MAX} SIDs"));
        }
        let mut words = line.split_whitespace();
        let (Some(sid), Some(kind), Some(account), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err("a line has a SID, `user` or `group`, and an account".to_owned());
        };
        let sid = parse_sid(sid)?;
        let account = parse_account(kind, account)?;
        match self.accounts.entry(sid) {
            Entry::Occupied(_) => return Err(format!("the file has {sid} twice")),
            Entry::Vacant(entry) => entry.insert(account),
        };
        self.shown.entry(account).or_insert(sid);
        Ok(())
    }
}

/// Write access for the group and others: they could become any user of an access list.
const WRITABLE: u32 = 0o022;

fn read(file: &Path) -> Result<String, String> {
    let cannot = |error: std::io::Error| format!("cannot read the mapping file: {error}");
    let mut text = String::new();
    let opened = File::open(file).map_err(cannot)?;
    let mode = opened.metadata().map_err(cannot)?.mode();
    if mode & WRITABLE != 0 {
        let mode = mode & 0o7777;
        return Err(format!(
            "other users can change the mapping file: mode {mode:04o}"
        ));
    }
    let mut limited = opened.take(FILE_MAX + 1);
    limited.read_to_string(&mut text).map_err(cannot)?;
    match text.len() as u64 <= FILE_MAX {
        true => Ok(text),
        false => Err(format!("longer than {FILE_MAX} bytes")),
    }
}

/// A SID of a domain, or of a group of the computer.
fn parse_sid(text: &str) -> Result<Sid, String> {
    let sid: Sid = text
        .parse()
        .map_err(|_| format!("`{text}` is not a SID such as S-1-5-21-1-2-3-1001"))?;
    let is_group_of_computer = sid.domain() == Sid::BUILTIN_USERS.domain();
    // The logon decides about their members, not a group of Unix.
    let is_fixed = [Sid::BUILTIN_USERS, Sid::BUILTIN_GUESTS].contains(&sid);
    let is_account = sid.is_of_machine_or_domain() && sid.sub_authorities().len() == 5;
    match (is_account || is_group_of_computer) && !is_fixed {
        true => Ok(sid),
        false => Err(format!(
            "{sid} cannot be mapped: use a SID S-1-5-21-... of an account or S-1-5-32-..."
        )),
    }
}

fn parse_account(kind: &str, account: &str) -> Result<UnixAccount, String> {
    let number = || {
        let is_number = account.bytes().all(|byte| byte.is_ascii_digit());
        // The largest number is no account: it means "no change" in system calls.
        let number = account.parse::<u32>().ok().filter(|id| *id != u32::MAX);
        match is_number {
            true => number
                .ok_or(format!("the number {account} is too large"))
                .map(Some),
            false => Ok(None),
        }
    };
    let unknown = || format!("there is no Unix {kind} `{account}`");
    match kind {
        "user" => {
            let uid = number()?.or_else(|| unix_account::uid(account));
            uid.map(UnixAccount::User).ok_or_else(unknown)
        }
        "group" => {
            let gid = number()?.or_else(|| unix_account::gid(account));
            gid.map(UnixAccount::Group).ok_or_else(unknown)
        }
        _ => Err(format!("`{kind}` is neither `user` nor `group`")),
    }
}

impl Domain for Mapping {
    fn to_unix(&self, sid: &Sid) -> Option<UnixAccount> {
        self.accounts.get(sid).copied()
    }

    fn shown(&self, account: UnixAccount) -> Option<Sid> {
        // A group of the computer owns no files.
        let sid = self.shown.get(&account).copied();
        sid.filter(Sid::is_of_machine_or_domain)
    }

    fn describe(&self, sid: &Sid) -> Option<KnownAccount> {
        let account = self.to_unix(sid)?;
        let is_well_known = WELL_KNOWN.iter().any(|known| known.sid == *sid);
        if is_well_known {
            return None;
        }
        Some(KnownAccount {
            sid: *sid,
            domain: self.domain.clone(),
            name: name_of(account)?,
            kind: match account {
                UnixAccount::User(_) => SidKind::USER,
                UnixAccount::Group(_) => SidKind::GROUP,
            },
        })
    }

    fn find(&self, name: &AccountName<'_>) -> Option<KnownAccount> {
        if !name.may_be_of(&self.domain) {
            return None;
        }
        let user = unix_account::uid(name.name).map(UnixAccount::User);
        let group = || unix_account::gid(name.name).map(UnixAccount::Group);
        let shown = |account| self.shown(account);
        let sid = user.and_then(shown).or_else(|| group().and_then(shown))?;
        self.describe(&sid)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn error(text: &str) -> String {
        let (line, reason) = Mapping::parse(text, "BEAM").expect_err("a bad line");
        format!("line {line}: {reason}")
    }

    #[test]
    fn lines_map_in_both_directions() {
        let text = "# old server\n\nS-1-5-21-1-2-3-1001 user 2001 # alice\n\
                    S-1-5-21-1-2-3-1101\tuser\t2001\n  S-1-5-21-1-2-3-513 group root\n\
                    S-1-5-32-544 group 27\nS-1-5-21-1-2-3-500 user root\n";
        let mapping = Mapping::parse(text, "BEAM").expect("good lines");
        let to_unix = |text: &str| mapping.to_unix(&text.parse().expect("a SID"));
        let shown = |account| mapping.shown(account).map(|sid| sid.to_string());
        assert_eq!(
            to_unix("S-1-5-21-1-2-3-1001"),
            Some(UnixAccount::User(2001))
        );
        assert_eq!(
            to_unix("S-1-5-21-1-2-3-1101"),
            Some(UnixAccount::User(2001))
        );
        assert_eq!(to_unix("S-1-5-32-544"), Some(UnixAccount::Group(27)));
        assert_eq!(to_unix("S-1-5-21-1-2-3-1002"), None);
        let of_alice = shown(UnixAccount::User(2001));
        assert_eq!(of_alice.as_deref(), Some("S-1-5-21-1-2-3-1001"));
        assert_eq!(shown(UnixAccount::Group(27)), None);
        let root = AccountName::parse("beam\\ROOT").expect("a name");
        let found = mapping.find(&root).expect("an account");
        assert_eq!(found.sid.to_string(), "S-1-5-21-1-2-3-500");
        assert_eq!((&*found.domain, &*found.name), ("BEAM", "root"));
    }

    #[test]
    fn errors_have_the_line_and_the_reason() {
        for (text, expected) in [
            (
                "\nS-1-5-21-1-2-3-7 user",
                "line 2: a line has a SID, `user`",
            ),
            ("S-1-5-21-1-2-3-7 user a b", "line 1: a line has a SID"),
            ("S-1-x user 1", "line 1: `S-1-x` is not a SID"),
            ("S-1-1-0 group 1", "line 1: S-1-1-0 cannot be mapped"),
            ("S-1-22-1-7 user 1", "line 1: S-1-22-1-7 cannot be mapped"),
            ("S-1-5-21-1-2-3 user 1", "line 1: S-1-5-21-1-2-3 cannot be"),
            (
                "S-1-5-32-545 group 1",
                "line 1: S-1-5-32-545 cannot be mapped",
            ),
            (
                "S-1-5-21-1-2-3-7 computer 1",
                "line 1: `computer` is neither",
            ),
            (
                "S-1-5-21-1-2-3-7 user no-such-account",
                "line 1: there is no Unix user `no-such-account`",
            ),
            (
                "S-1-5-21-1-2-3-7 user 4294967295",
                "line 1: the number 4294967295 is",
            ),
            (
                "S-1-5-21-1-2-3-7 user 1\nS-1-5-21-1-2-3-7 user 2",
                "line 2: the file has S-1-5-21-1-2-3-7 twice",
            ),
        ] {
            let error = error(text);
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn long_files_are_refused() {
        let line = |number: usize| format!("S-1-5-21-1-2-3-{number} user 1\n");
        let text: String = (0..=LINES_MAX).map(line).collect();
        let error = error(&text);
        assert_eq!(
            error,
            format!("line {}: more than 10000 SIDs", LINES_MAX + 1)
        );
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("sids");
        std::fs::write(&file, "#".repeat(1 << 20) + "\n").expect("a file");
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&file, mode).expect("a mode");
        let error = Mapping::load(&file, "BEAM")
            .expect_err("a long file")
            .to_string();
        assert_eq!(
            error,
            format!("{}: longer than 1048576 bytes", file.display())
        );
        std::fs::remove_file(&file).expect("a file");
        let error = Mapping::load(&file, "BEAM")
            .expect_err("no file")
            .to_string();
        assert!(
            error.contains("cannot read the mapping file: No such file"),
            "{error}"
        );
    }
}
