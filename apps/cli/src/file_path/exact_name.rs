//! Exact names of files, by which the SMB3 POSIX extensions name them.

use std::borrow::Cow;

use smbeam_client::Error;
use wire::{Status, posix_name};

use super::RemotePath;
use crate::failure::Outcome;

impl RemotePath {
    /// Whether the server has the SMB3 POSIX extensions.
    pub(crate) fn has_posix(&self) -> bool {
        self.share.has_posix()
    }

    /// Calls `act` with the path in exact names. A server that maps names itself, as smbeam does,
    /// has the local forms of names on disk. smbd without the module catia has the forms that this
    /// client sends.
    pub(crate) fn by_exact_name<T>(&self, act: impl Fn(&str) -> Result<T, Error>) -> Outcome<T> {
        let names = self.path.split('/').filter(|name| !name.is_empty());
        let local: Option<Vec<_>> = names.map(posix_name::from_mapped).collect();
        let Some(local) = local.map(|names| names.join("/")) else {
            return act(&self.path).map_err(self.failed());
        };
        let done = match act(&local) {
            Err(error) if is_missing(&error) && local != self.path => act(&self.path),
            done => done,
        };
        done.map_err(self.failed())
    }
}

fn is_missing(error: &Error) -> bool {
    let missing = [Status::OBJECT_NAME_NOT_FOUND, Status::OBJECT_PATH_NOT_FOUND];
    error
        .status()
        .is_some_and(|status| missing.contains(&status))
}

/// The name that other clients see, for the exact name of a file. `None` if no file can have it.
pub(super) fn mapped_name(exact: &str) -> Option<Cow<'_, str>> {
    // Where such characters are on disk, the server does not map names.
    match exact.chars().any(|c| PRIVATE.contains(&c)) {
        true => Some(Cow::Borrowed(exact)),
        false => posix_name::to_mapped(exact),
    }
}

/// The characters that stand for reserved ones. docs/names.md
const PRIVATE: std::ops::RangeInclusive<char> = '\u{f001}'..='\u{f0ff}';

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_name_has_the_form_that_others_see() {
        assert_eq!(mapped_name("a:b").as_deref(), Some("a\u{f022}b"));
        assert_eq!(mapped_name("a\u{f022}b").as_deref(), Some("a\u{f022}b"));
        assert_eq!(mapped_name("plain").as_deref(), Some("plain"));
        assert_eq!(mapped_name("a/b"), None);
    }
}
