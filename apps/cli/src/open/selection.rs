//! Options that select open files by user, share and path.

use clap::Args;
use smbeam_server::status::{DisconnectedStatus, FileStatus, Status};

use crate::filter::Pattern;

/// Options that select open files. A file must match each given option.
#[derive(Debug, Args)]
pub(super) struct Selection {
    /// Files that this user opened.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Files in this share.
    #[arg(long, value_name = "NAME")]
    share: Option<String>,
    /// Files with this path from the root of the share. `*` and `?` stand for characters within a
    /// component, `**` also across components.
    #[arg(long, value_name = "PATTERN", value_parser = anchored)]
    path: Option<Pattern>,
}

/// Selected open files.
#[derive(Debug, Default)]
pub(super) struct Selected<'a> {
    pub(super) files: Vec<&'a FileStatus>,
    /// Those without a session.
    pub(super) disconnected: Vec<&'a DisconnectedStatus>,
}

impl Selection {
    /// Whether no option is given.
    pub(super) fn is_empty(&self) -> bool {
        self.user.is_none() && self.share.is_none() && self.path.is_none()
    }

    /// The selected open files of a server.
    pub(super) fn find<'a>(&self, status: &'a Status) -> Selected<'a> {
        let files = status.files.iter();
        let disconnected = status.disconnected.iter();
        Selected {
            files: files
                .filter(|file| self.matches(&file.user, &file.share, &file.path))
                .collect(),
            disconnected: disconnected
                .filter(|file| self.matches(&file.user, &file.share, &file.path))
                .collect(),
        }
    }

    fn matches(&self, user: &str, share: &str, path: &str) -> bool {
        let is_same = |wanted: &Option<String>, found: &str| {
            let wanted = wanted.as_ref();
            wanted.is_none_or(|wanted| wanted.to_lowercase() == found.to_lowercase())
        };
        let pattern = self.path.as_ref();
        is_same(&self.user, user)
            && is_same(&self.share, share)
            && pattern.is_none_or(|pattern| pattern.matches(path.as_ref(), false))
    }
}

/// A pattern of the whole path.
fn anchored(text: &str) -> Result<Pattern, String> {
    Pattern::parse(&format!("/{}", text.trim_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_match_all_options() {
        let selection = |user: Option<&str>, share: Option<&str>, path: Option<&str>| Selection {
            user: user.map(str::to_owned),
            share: share.map(str::to_owned),
            path: path.map(|path| anchored(path).expect("a pattern")),
        };
        let matches = |selection: Selection| selection.matches("alice", "Data", "dir/a.txt");
        assert!(matches(selection(None, None, None)));
        assert!(matches(selection(Some("Alice"), Some("data"), None)));
        assert!(!matches(selection(Some("bob"), Some("data"), None)));
        for (path, is_match) in [
            ("dir/a.txt", true),
            ("/dir/a.txt", true),
            ("dir/*", true),
            ("**/a.txt", true),
            ("**", true),
            ("a.txt", false),
            ("dir", false),
            ("*", false),
        ] {
            let found = matches(selection(None, None, Some(path)));
            assert_eq!(found, is_match, "{path}");
        }
    }
}
