//! Reads the password file of Samba: the file `smbpasswd`, or the output of `pdbedit -L -w`, which
//! has the same form (smbpasswd(5)).
//!
//! ```text
//! name:uid:LM hash:NT hash:[flags]:LCT-time:
//! ```

use std::fmt;

use crate::names::{NameError, check_name};
use crate::ntlm::keys::NtHash;

/// An account of the password file of Samba.
#[derive(Clone, Debug)]
pub struct SmbpasswdEntry {
    /// User name of the account.
    pub name: String,
    /// NT hash of the password.
    pub nt_hash: NtHash,
    /// Whether the account is disabled (flag D).
    pub is_disabled: bool,
}

/// Why a line of the password file of Samba is not an account that can log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SmbpasswdError {
    /// The line is not UTF-8.
    Encoding,
    /// The line has fewer than four fields.
    Fields,
    /// The user name is not valid.
    Name(NameError),
    /// The NT hash is not 32 hexadecimal digits.
    Hash,
    /// The account of this name is that of a computer or of a domain (flags W, S, I, or a name with
    /// `$` at the end).
    Machine(String),
    /// The account of this name has no password (flag N, or no NT hash).
    NoPassword(String),
}

/// What an import did with one account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Imported {
    /// The account is new.
    Added,
    /// The account existed. It has the imported password and state now, and keeps its Unix account,
    /// its groups and its app passwords.
    Replaced,
    /// The account exists and stays as it was.
    Kept,
}

impl SmbpasswdError {
    /// Returns true if the line is correct, but its account does not log in with a password.
    pub fn is_skip(&self) -> bool {
        matches!(self, Self::Machine(_) | Self::NoPassword(_))
    }
}

/// Parses the accounts of the password file of Samba. Each item has the number of its line, from 1.
/// Empty lines and comments (`#`) have no item.
pub fn parse_smbpasswd(
    content: &[u8],
) -> impl Iterator<Item = (usize, Result<SmbpasswdEntry, SmbpasswdError>)> {
    let lines = content.split(|byte| *byte == b'\n').zip(1..);
    let lines = lines.map(|(line, number)| (line.strip_suffix(b"\r").unwrap_or(line), number));
    let lines = lines.filter(|(line, _)| !line.trim_ascii().is_empty() && !line.starts_with(b"#"));
    lines.map(|(line, number)| (number, parse_line(line)))
}

fn parse_line(line: &[u8]) -> Result<SmbpasswdEntry, SmbpasswdError> {
    let line = str::from_utf8(line).map_err(|_| SmbpasswdError::Encoding)?;
    let mut fields = line.split(':');
    let mut next = || fields.next().ok_or(SmbpasswdError::Fields);
    let (name, _uid, _lm_hash, nt_hash) = (next()?, next()?, next()?, next()?);
    // A file of an old version has no flags.
    let flags = fields
        .find(|field| field.starts_with('['))
        .unwrap_or_default();
    if name.ends_with('$') || flags.contains(['W', 'S', 'I']) {
        return Err(SmbpasswdError::Machine(name.into()));
    }
    check_name(name).map_err(SmbpasswdError::Name)?;
    if flags.contains('N') || is_without_hash(nt_hash) {
        return Err(SmbpasswdError::NoPassword(name.into()));
    }
    Ok(SmbpasswdEntry {
        name: name.into(),
        nt_hash: NtHash::from_hex(nt_hash).ok_or(SmbpasswdError::Hash)?,
        is_disabled: flags.contains('D'),
    })
}

/// Whether the field stands for no password: `NO PASSWORDXX...`, or 32 times X or `*`.
fn is_without_hash(field: &str) -> bool {
    let has_only = |sign: u8| !field.is_empty() && field.bytes().all(|byte| byte == sign);
    field.starts_with("NO PASSWORD") || has_only(b'X') || has_only(b'*')
}

impl fmt::Display for SmbpasswdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Encoding => f.write_str("the line is not UTF-8"),
            Self::Fields => f.write_str(
                "the line has fewer than four fields: use a file smbpasswd, or the output of \
                 `pdbedit -L -w`",
            ),
            Self::Name(error) => error.fmt(f),
            Self::Hash => f.write_str("the NT hash is not 32 hexadecimal digits"),
            Self::Machine(name) => write!(f, "{name} is the account of a computer"),
            Self::NoPassword(name) => write!(f, "{name} has no password"),
        }
    }
}

impl std::error::Error for SmbpasswdError {}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "A4F49C406510BDCAB6824EE7C30FD852";
    const NONE: &str = "XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX";

    fn parse(content: &str) -> Vec<(usize, Result<SmbpasswdEntry, SmbpasswdError>)> {
        parse_smbpasswd(content.as_bytes()).collect()
    }

    #[test]
    fn accounts_have_their_hash_and_state() {
        let content = format!(
            "# a comment\n\nalice:1000:{NONE}:{HASH}:[U          ]:LCT-5F000000:\r\n\
             bob:1001:{NONE}:{HASH}:[DU         ]:LCT-5F000000:\n\
             old:1002:{HASH}:{HASH}:Old User:/home/old:/bin/sh\n"
        );
        let entries = parse(&content);
        let found: Vec<(usize, &str, bool)> = entries
            .iter()
            .map(|(line, entry)| {
                let entry = entry.as_ref().expect("an account");
                assert_eq!(entry.nt_hash.to_hex().to_uppercase(), HASH);
                (*line, &*entry.name, entry.is_disabled)
            })
            .collect();
        assert_eq!(
            found,
            [(3, "alice", false), (4, "bob", true), (5, "old", false)]
        );
    }

    #[test]
    fn lines_without_a_usable_account_have_a_reason() {
        let no_password = "NO PASSWORDXXXXXXXXXXXXXXXXXXXXX";
        for (line, expected) in [
            ("nonsense", SmbpasswdError::Fields),
            ("a:1:b", SmbpasswdError::Fields),
            (
                &format!("a/b:1:{NONE}:{HASH}:[U ]:"),
                SmbpasswdError::Name(NameError::Character('/')),
            ),
            (
                &format!(":1:{NONE}:{HASH}:[U ]:"),
                SmbpasswdError::Name(NameError::EmptyName),
            ),
            (
                &format!("a:1:{NONE}:{}:[U ]:", &HASH[1..]),
                SmbpasswdError::Hash,
            ),
            (
                &format!("pc$:1:{NONE}:{HASH}:[U ]:"),
                SmbpasswdError::Machine("pc$".into()),
            ),
            (
                &format!("pc:1:{NONE}:{HASH}:[W ]:"),
                SmbpasswdError::Machine("pc".into()),
            ),
            (
                &format!("a:1:{NONE}:{HASH}:[NU ]:"),
                SmbpasswdError::NoPassword("a".into()),
            ),
            (
                &format!("a:1:{NONE}:{no_password}:[U ]:"),
                SmbpasswdError::NoPassword("a".into()),
            ),
            (
                &format!("a:1:{NONE}:{NONE}:[DU ]:"),
                SmbpasswdError::NoPassword("a".into()),
            ),
        ] {
            let entries = parse(line);
            let [(1, Err(error))] = &entries[..] else {
                panic!("{line}: {entries:?}");
            };
            assert_eq!(*error, expected, "{line}");
        }
        let found: Vec<_> = parse_smbpasswd(b"\xff:1:2:3\n").collect();
        assert!(matches!(found[..], [(1, Err(SmbpasswdError::Encoding))]));
    }
}
