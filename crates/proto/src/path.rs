//! Names within a share.

use alloc::string::String;
use core::fmt;

use wire::{Status, Utf16};

/// A path from the root of a share: components joined by `/`, none of them empty, `.` or `..`;
/// the root itself is the empty path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SharePath(String);

/// UTF-16 units in a component. \[MS-FSCC\] 2.1.5
pub const MAX_COMPONENT_UNITS: usize = 255;
/// UTF-16 units in a whole path, as Windows has it.
pub const MAX_PATH_UNITS: usize = 32_760;

impl SharePath {
    /// The root of the share.
    pub fn root() -> Self {
        Self::default()
    }

    /// Reads a name as CREATE and SET_INFO carry it: `\` between the components, no `\` in front.
    /// \[MS-SMB2\] 2.2.13, \[MS-FSCC\] 2.1.5
    pub fn from_wire(name: Utf16<'_>) -> Result<Self, Status> {
        if name.len() > MAX_PATH_UNITS * 2 {
            return Err(Status::NAME_TOO_LONG);
        }
        let name = name.decode().ok_or(Status::OBJECT_NAME_INVALID)?;
        // [MS-SMB2] 3.3.5.9: a name that begins with a separator is not valid.
        if name.starts_with('\\') {
            return Err(Status::INVALID_PARAMETER);
        }
        let name = name.strip_suffix('\\').unwrap_or(&name);
        if name.is_empty() {
            return Ok(Self::root());
        }
        let mut path = String::with_capacity(name.len());
        for component in name.split('\\') {
            check_component(component)?;
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(component);
        }
        Ok(Self(path))
    }

    /// From components joined by `/` that the file system vouches for.
    pub fn from_trusted(path: &str) -> Self {
        debug_assert!(!path.starts_with('/') && !path.ends_with('/'));
        Self(String::from(path))
    }

    /// The components joined by `/`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the root of the share.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The components from the root on.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').filter(|component| !component.is_empty())
    }

    /// The last component; empty for the root.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or("")
    }

    /// The path without its last component; the root is its own parent.
    pub fn parent(&self) -> Self {
        match self.0.rsplit_once('/') {
            Some((parent, _)) => Self(String::from(parent)),
            None => Self::root(),
        }
    }

    /// This path with one more component.
    pub fn join(&self, name: &str) -> Self {
        let mut path = self.0.clone();
        if !path.is_empty() {
            path.push('/');
        }
        path.push_str(name);
        Self(path)
    }

    /// As the wire has it: `\` between the components.
    pub fn to_wire(&self) -> String {
        self.0.replace('/', "\\")
    }
}

impl fmt::Debug for SharePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for SharePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Refuses what is not a name: empty, `.`, `..`, too long, or with a character that Windows
/// reserves. \[MS-FSCC\] 2.1.5.2
fn check_component(component: &str) -> Result<(), Status> {
    if component.is_empty() {
        return Err(Status::OBJECT_NAME_INVALID);
    }
    // Windows answers a path that climbs with OBJECT_PATH_SYNTAX_BAD, Samba too.
    if component == "." || component == ".." {
        return Err(Status::OBJECT_PATH_SYNTAX_BAD);
    }
    let is_reserved = |c: char| (c as u32) < 0x20 || "\"*/:<>?|".contains(c);
    if component.chars().any(is_reserved) {
        return Err(Status::OBJECT_NAME_INVALID);
    }
    if component.encode_utf16().count() > MAX_COMPONENT_UNITS {
        return Err(Status::OBJECT_NAME_INVALID);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::text::utf16;

    fn path(name: &str) -> Result<SharePath, Status> {
        SharePath::from_wire(Utf16(&utf16(name)))
    }

    #[test]
    fn separators_become_slashes() {
        let path = path("a\\b c\\d").expect("a good name");
        assert_eq!(path.as_str(), "a/b c/d");
        assert_eq!(path.name(), "d");
        assert_eq!(path.parent().as_str(), "a/b c");
        assert_eq!(path.to_wire(), "a\\b c\\d");
    }

    #[test]
    fn nobody_climbs_out() {
        assert_eq!(path("..\\x"), Err(Status::OBJECT_PATH_SYNTAX_BAD));
        assert_eq!(path("a\\..\\x"), Err(Status::OBJECT_PATH_SYNTAX_BAD));
        assert_eq!(path("a/../../x"), Err(Status::OBJECT_NAME_INVALID));
        assert_eq!(path("\\a"), Err(Status::INVALID_PARAMETER));
        assert_eq!(path("a\\\\b"), Err(Status::OBJECT_NAME_INVALID));
        assert_eq!(path("a\0b"), Err(Status::OBJECT_NAME_INVALID));
    }
}
