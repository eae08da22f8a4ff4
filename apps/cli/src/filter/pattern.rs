//! Patterns of paths, with the meaning that they have in rsync and rclone.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// Stands for `**` beside other characters of a component: nothing but a component, or several.
const ACROSS: &str = "{*,*/**/*}";

/// A pattern of paths.
///
/// `*` and `?` match within a component, `**` also across them. `[a-z]` is one of several
/// characters, `{one,other}` one of several texts, and `\` makes the next character literal. A `/`
/// at the start is the root of the transfer; without it, the pattern matches at the end of a path,
/// from the start of any component. A `/` at the end limits the pattern to directories. `name/***`
/// is the directory with everything in it.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    globs: GlobSet,
    is_directory: bool,
}

impl Pattern {
    /// Parses a pattern.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let is_directory = text.ends_with('/');
        let path = text.trim_end_matches('/');
        let (path, is_anchored) = match path.strip_prefix('/') {
            Some(path) => (path, true),
            None => (path, false),
        };
        if path.is_empty() {
            return Err("the pattern is empty".into());
        }
        let mut globs = GlobSetBuilder::new();
        let mut add = |path: &str| -> Result<(), String> {
            let path = across_components(path);
            let whole = match is_anchored || path.starts_with("**/") {
                true => path,
                false => format!("**/{path}"),
            };
            let glob = GlobBuilder::new(&whole)
                .literal_separator(true)
                .backslash_escape(true)
                .build();
            globs.add(glob.map_err(|error| error.kind().to_string())?);
            Ok(())
        };
        match path.strip_suffix("/***") {
            Some(directory) => {
                add(directory)?;
                add(&format!("{directory}/**"))?;
            }
            None => add(path)?,
        }
        Ok(Self {
            globs: globs.build().map_err(|error| error.to_string())?,
            is_directory,
        })
    }

    /// Whether the pattern matches a path, which is relative to the root of the transfer.
    pub(crate) fn matches(&self, path: &Path, is_directory: bool) -> bool {
        (is_directory || !self.is_directory) && self.globs.is_match(path)
    }
}

/// Writes `**` that is only a part of a component in a form that the library of globs has.
fn across_components(path: &str) -> String {
    let component = |component: &str| match component {
        "**" => component.to_owned(),
        other => other.replace("**", ACROSS),
    };
    let components: Vec<_> = path.split('/').map(component).collect();
    components.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_match(pattern: &str, path: &str) -> bool {
        let (path, is_directory) = match path.strip_suffix('/') {
            Some(path) => (path, true),
            None => (path, false),
        };
        let pattern = Pattern::parse(pattern).expect("a pattern");
        pattern.matches(Path::new(path), is_directory)
    }

    #[test]
    fn patterns_mean_what_they_mean_in_rsync_and_rclone() {
        for (pattern, matching, others) in [
            ("*.o", vec!["a.o", "x/y/a.o", "a.o/"], vec!["a.c", "a.o.c"]),
            ("/a", vec!["a", "a/"], vec!["x/a", "a/x"]),
            ("a/b", vec!["a/b", "x/a/b"], vec!["xa/b", "a/b/c", "a/x/b"]),
            ("/a/*", vec!["a/b"], vec!["a/b/c", "x/a/b", "a"]),
            ("/a/**", vec!["a/b", "a/b/c"], vec!["a", "b"]),
            ("a/***", vec!["a", "a/b/c", "x/a", "x/a/b"], vec!["ab", "x"]),
            ("/a/**/z", vec!["a/z", "a/b/c/z"], vec!["z", "a/b/zz"]),
            ("cache/", vec!["cache/", "x/cache/"], vec!["cache", "x"]),
            ("**.c", vec!["a.c", "x/y/a.c"], vec!["a.o", "x/a.cc"]),
            (
                "/a**z",
                vec!["az", "a1z", "ab/c/z", "a/z"],
                vec!["xaz", "ab/c"],
            ),
            ("?[0-9]", vec!["a1", "x/b2"], vec!["1", "aa", "ab1"]),
            ("*.{jpg,png}", vec!["a.jpg", "x/a.png"], vec!["a.gif"]),
            ("\\*", vec!["*", "x/*"], vec!["a"]),
            ("**", vec!["a", "a/b/c"], vec![]),
        ] {
            for path in matching {
                assert!(is_match(pattern, path), "{pattern} {path}");
            }
            for path in others {
                assert!(!is_match(pattern, path), "{pattern} {path}");
            }
        }
    }

    #[test]
    fn a_pattern_without_a_meaning_is_an_error() {
        for pattern in ["", "/", "//", "[a", "{a"] {
            assert!(Pattern::parse(pattern).is_err(), "{pattern}");
        }
    }
}
