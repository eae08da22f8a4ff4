//! The text of the user file, and the accounts in it.

use std::path::Path;

use serde::Deserialize;
use toml::Spanned;
use zeroize::Zeroizing;

use super::UserFileError;
use crate::ntlm::keys::NtHash;
use crate::users::{Account, USERS_MAX, Users, check_name};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    user: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: Spanned<String>,
    nt_hash: Spanned<String>,
    unix: Option<String>,
    #[serde(default)]
    disabled: bool,
}

/// Parses the text of the file at `path`.
pub(super) fn parse(path: &Path, content: &str) -> Result<Users, UserFileError> {
    let document: Document = toml::from_str(content).map_err(|error| {
        let line = error.span().map_or(0, |span| line_of(content, span.start));
        UserFileError::Syntax(path.into(), format!("line {line}: {}", error.message()))
    })?;
    let mut users = Users::default();
    for Entry {
        name,
        nt_hash,
        unix,
        disabled,
    } in document.user
    {
        let wrong = |at: usize, key, reason: String| {
            UserFileError::Value(path.into(), line_of(content, at), key, reason)
        };
        let (name_at, hash_at) = (name.span().start, nt_hash.span().start);
        let name = name.into_inner();
        check_name(&name).map_err(|error| wrong(name_at, "name", error.to_string()))?;
        let nt_hash = Zeroizing::new(nt_hash.into_inner());
        let nt_hash = NtHash::from_hex(&nt_hash)
            .ok_or_else(|| wrong(hash_at, "nt_hash", "not 32 hexadecimal digits".into()))?;
        if users.len() >= USERS_MAX {
            return Err(wrong(
                name_at,
                "name",
                format!("more than {USERS_MAX} users"),
            ));
        }
        if !users.insert(Account {
            name,
            nt_hash,
            unix,
            is_disabled: disabled,
        }) {
            return Err(wrong(name_at, "name", "the user is listed twice".into()));
        }
    }
    Ok(users)
}

/// The line number, 1-based, of the byte offset `at`.
fn line_of(content: &str, at: usize) -> usize {
    content.as_bytes()[..at.min(content.len())]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
        + 1
}
