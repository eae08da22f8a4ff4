//! Names within a share.

use alloc::string::String;
use core::fmt;

use wire::upcase::is_same_name;
use wire::{Status, Utf16, posix_name};

/// A path from the root of a share: components joined by `/`, none of them empty, `.` or `..`. The
/// root is the empty path.
///
/// A path from a CREATE request may also name a data stream of the file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SharePath {
    path: String,
    stream: Option<StreamName>,
}

/// The name of a data stream of a file, without colons and without the type (`$DATA`). The unnamed
/// data stream has no name. \[MS-FSCC\] 2.1.5.3
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamName(String);

impl StreamName {
    /// Makes the name of a stream from text without colons and without the type. `None` if a stream
    /// cannot have this name.
    pub fn new(name: &str) -> Option<Self> {
        is_stream_name(name).then(|| Self(String::from(name)))
    }

    /// Parses the new name in a rename of a stream: `:name` or `:name:$DATA`. `None` in the result
    /// stands for the unnamed data stream (`::$DATA`). \[MS-FSCC\] 2.4.43
    ///
    /// # Errors
    /// OBJECT_NAME_INVALID for another type, and for a name that a stream cannot have.
    pub fn from_wire_target(name: Utf16<'_>) -> Result<Option<Self>, Status> {
        let name = name.decode().ok_or(Status::OBJECT_NAME_INVALID)?;
        let name = (name.strip_prefix(':')).ok_or(Status::OBJECT_NAME_INVALID)?;
        parse_stream(name)
    }

    /// Returns the name of the stream as text, without colons and without the type.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Maximum length of one component of a path in UTF-16 code units. \[MS-FSCC\] 2.1.5
pub const MAX_COMPONENT_UNITS: usize = 255;
/// Maximum length of a path from the root of a share in UTF-16 code units, as in Windows.
pub const MAX_PATH_UNITS: usize = 32_760;

impl SharePath {
    fn of_file(path: String) -> Self {
        Self { path, stream: None }
    }

    /// Returns the path of the root of the share, which has no components.
    pub fn root() -> Self {
        Self::default()
    }

    /// Parses the name in a CREATE request: `\` between the components, no `\` in front.
    /// `name:stream` names a stream of the file; `name::$DATA` is the file itself. \[MS-SMB2\]
    /// 2.2.13, \[MS-FSCC\] 2.1.5
    ///
    /// # Errors
    /// NAME_TOO_LONG above [`MAX_PATH_UNITS`]; INVALID_PARAMETER for a leading `\`;
    /// OBJECT_NAME_INVALID and other statuses for components that are not valid.
    pub fn from_wire(name: Utf16<'_>) -> Result<Self, Status> {
        if name.len() > MAX_PATH_UNITS * 2 {
            return Err(Status::NAME_TOO_LONG);
        }
        let name = name.decode().ok_or(Status::OBJECT_NAME_INVALID)?;
        // [MS-SMB2] 3.3.5.9: a name that begins with a separator is not valid.
        if name.starts_with(SEPARATORS) {
            return Err(Status::INVALID_PARAMETER);
        }
        let (file, stream) = split_stream(&name)?;
        let path = Self::from_text(file)?;
        // `a\..:stream`: the root of a share has no streams.
        if path.is_root() && stream.is_some() {
            return Err(Status::OBJECT_NAME_INVALID);
        }
        Ok(Self { stream, ..path })
    }

    /// Parses the name in a CREATE request with the context of the SMB3 POSIX extensions: `/`
    /// between the components, no `/` in front. A component has every other character but NUL, and
    /// there are no streams. The path has the names that other clients see
    /// ([`NameMapping::Map`](wire::file_name::NameMapping::Map)).
    ///
    /// # Errors
    /// NAME_TOO_LONG above [`MAX_PATH_UNITS`] and above [`MAX_COMPONENT_UNITS`]; INVALID_PARAMETER
    /// for a leading `/`; OBJECT_NAME_INVALID for components that no file can have.
    pub fn from_posix_wire(name: Utf16<'_>) -> Result<Self, Status> {
        let name = posix_text(name)?;
        if name.starts_with('/') {
            return Err(Status::INVALID_PARAMETER);
        }
        Self::from_posix_text(&name)
    }

    /// Parses the new name in a rename or hard link through an open of the SMB3 POSIX extensions.
    /// Unlike the name in a CREATE request, this name may start with `/`, and must not be the root.
    ///
    /// # Errors
    /// As [`from_posix_wire`](Self::from_posix_wire), and INVALID_PARAMETER for the root.
    pub fn from_posix_wire_target(name: Utf16<'_>) -> Result<Self, Status> {
        let name = posix_text(name)?;
        let path = Self::from_posix_text(&name)?;
        if path.is_root() {
            return Err(Status::INVALID_PARAMETER);
        }
        Ok(path)
    }

    fn from_posix_text(name: &str) -> Result<Self, Status> {
        let mut path = String::with_capacity(name.len());
        for component in name.split('/') {
            match component {
                "" | "." => continue,
                ".." => {
                    climb(&mut path)?;
                    continue;
                }
                component => {
                    // Linux limits a name to 255 bytes. The form here is never shorter.
                    let is_too_long = component.len() > MAX_COMPONENT_UNITS
                        && posix_name::to_disk(component)
                            .is_some_and(|disk| disk.len() > MAX_COMPONENT_UNITS);
                    if is_too_long {
                        return Err(Status::NAME_TOO_LONG);
                    }
                    let mapped = posix_name::to_mapped(component);
                    let mapped = mapped.ok_or(Status::OBJECT_NAME_INVALID)?;
                    if !path.is_empty() {
                        path.push('/');
                    }
                    path.push_str(&mapped);
                }
            }
        }
        Ok(Self::of_file(path))
    }

    /// Returns whether the name in a CREATE request names the unnamed data stream by its type
    /// (`name::$DATA`), which a directory lacks.
    pub fn is_data_stream(name: Utf16<'_>) -> bool {
        if !name.0.contains(&b':') {
            return false;
        }
        let name = name.decode().unwrap_or_default();
        matches!(split_stream(&name), Ok((file, None)) if file.len() < name.len())
    }

    /// Parses the new name in a rename or hard link by SET_INFO. Unlike the name in a CREATE
    /// request, this name may start with `\`, must not be the root, and has no stream.
    ///
    /// # Errors
    /// NAME_TOO_LONG above [`MAX_PATH_UNITS`]; INVALID_PARAMETER for the root; OBJECT_NAME_INVALID
    /// and other statuses for components that are not valid.
    pub fn from_wire_target(name: Utf16<'_>) -> Result<Self, Status> {
        if name.len() > MAX_PATH_UNITS * 2 {
            return Err(Status::NAME_TOO_LONG);
        }
        let name = name.decode().ok_or(Status::OBJECT_NAME_INVALID)?;
        let path = Self::from_text(name.strip_prefix(SEPARATORS).unwrap_or(&name))?;
        if path.is_root() {
            return Err(Status::INVALID_PARAMETER);
        }
        Ok(path)
    }

    fn from_text(name: &str) -> Result<Self, Status> {
        let name = name.strip_suffix(SEPARATORS).unwrap_or(name);
        if name.is_empty() {
            return Ok(Self::root());
        }
        let mut path = String::with_capacity(name.len());
        // Several separators count as one, as with Samba. smbprotocol depends on that.
        for component in name
            .split(SEPARATORS)
            .filter(|component| !component.is_empty())
        {
            if component == ".." {
                climb(&mut path)?;
                continue;
            }
            check_component(component)?;
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(component);
        }
        Ok(Self::of_file(path))
    }

    /// Makes the path from `path`, a text of the file system: components joined by `/`, without a
    /// leading or trailing `/`. The components are not checked.
    pub fn from_trusted(path: &str) -> Self {
        debug_assert!(!path.starts_with('/') && !path.ends_with('/'));
        Self::of_file(String::from(path))
    }

    /// Returns the path of a stream of the same file; `None` for the file itself.
    #[must_use]
    pub fn with_stream(&self, stream: Option<StreamName>) -> Self {
        let path = self.path.clone();
        Self { path, stream }
    }

    /// Returns whether both paths name the same file, or streams of it. Names that differ in case
    /// are different.
    pub fn is_same_file(&self, other: &Self) -> bool {
        self.path == other.path
    }

    /// Returns the name of the stream that the path names; `None` if the path names the file itself
    /// (the unnamed data stream).
    pub fn stream(&self) -> Option<&StreamName> {
        self.stream.as_ref()
    }

    /// Returns the components of the path joined by `/`, without the stream; empty for the root.
    pub fn as_str(&self) -> &str {
        &self.path
    }

    /// Returns whether the path is the root of the share.
    pub fn is_root(&self) -> bool {
        self.path.is_empty()
    }

    /// Returns the components of the path in order, from the one below the root.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.path
            .split('/')
            .filter(|component| !component.is_empty())
    }

    /// Returns the last component of the path, without the stream; empty for the root.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or("")
    }

    /// Returns the path of the parent directory: without the last component and the stream. The
    /// parent of the root is the root.
    pub fn parent(&self) -> Self {
        match self.path.rsplit_once('/') {
            Some((parent, _)) => Self::of_file(String::from(parent)),
            None => Self::root(),
        }
    }

    /// Returns the path of the entry `name` in this directory. `name` is one component, which is
    /// not checked.
    pub fn join(&self, name: &str) -> Self {
        let mut path = self.path.clone();
        if !path.is_empty() {
            path.push('/');
        }
        path.push_str(name);
        Self::of_file(path)
    }

    /// Returns whether this path is inside the directory `other`, at any depth. A path is not below
    /// itself.
    pub fn is_below(&self, other: &Self) -> bool {
        if other.is_root() {
            return !self.is_root();
        }
        let rest = self.path.strip_prefix(other.as_str());
        rest.is_some_and(|rest| rest.starts_with('/'))
    }

    /// Returns the path after a rename of the directory `from` above it to `to`, with the stream;
    /// `None` if the path is not below `from`.
    pub fn moved(&self, from: &Self, to: &Self) -> Option<Self> {
        if from.is_root() || !self.is_below(from) {
            return None;
        }
        let rest = self.path.get(from.path.len() + 1..)?;
        Some(to.join(rest).with_stream(self.stream.clone()))
    }

    /// Returns the path in the form of SMB messages: the components joined by `\`, and for a stream
    /// its name and type (`file:stream:$DATA`).
    pub fn to_wire(&self) -> String {
        let mut name = self.path.replace('/', "\\");
        if let Some(stream) = &self.stream {
            name.push(':');
            name.push_str(stream.as_str());
            name.push_str(":$DATA");
        }
        name
    }
}

impl fmt::Debug for SharePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.path, f)?;
        match &self.stream {
            Some(stream) => write!(f, ":{:?}", stream.as_str()),
            None => Ok(()),
        }
    }
}

impl fmt::Display for SharePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        match &self.stream {
            Some(stream) => write!(f, ":{}", stream.as_str()),
            None => Ok(()),
        }
    }
}

/// The characters between components. Clients of Windows send `\` alone, and Windows refuses `/`.
/// Samba accepts both, and clients on Linux depend on it: smbtorture
/// smb2.timestamps.test_close_not_attrib.
const SEPARATORS: [char; 2] = ['\\', '/'];

/// Decodes a name of the SMB3 POSIX extensions.
fn posix_text(name: Utf16<'_>) -> Result<String, Status> {
    if name.len() > MAX_PATH_UNITS * 2 {
        return Err(Status::NAME_TOO_LONG);
    }
    name.decode().ok_or(Status::OBJECT_NAME_INVALID)
}

/// Splits a name into the file and the stream. Streams have the type `$DATA`, which a name need
/// not write; the root of a share has no stream. \[MS-FSCC\] 2.1.5
fn split_stream(name: &str) -> Result<(&str, Option<StreamName>), Status> {
    let last = name.rfind(SEPARATORS).map_or(0, |index| index + 1);
    let Some(colon) = name[last..].find(':') else {
        return Ok((name, None));
    };
    let (file, rest) = name.split_at(last + colon);
    if file.len() == last {
        return Err(Status::OBJECT_NAME_INVALID);
    }
    Ok((file, parse_stream(&rest[1..])?))
}

/// Parses the name of a stream, which the type `$DATA` may follow. `None` is the unnamed data
/// stream, which requires the type.
fn parse_stream(name: &str) -> Result<Option<StreamName>, Status> {
    let (stream, kind) = match name.split_once(':') {
        Some((stream, kind)) => (stream, Some(kind)),
        None => (name, None),
    };
    if kind.is_some_and(|kind| !is_same_name(kind, "$DATA")) {
        return Err(Status::OBJECT_NAME_INVALID);
    }
    match (stream, kind) {
        ("", Some(_)) => Ok(None),
        _ => (StreamName::new(stream).map(Some)).ok_or(Status::OBJECT_NAME_INVALID),
    }
}

/// Returns whether a stream can have this name. \[MS-FSCC\] 2.1.5.3
fn is_stream_name(name: &str) -> bool {
    let is_reserved = |c: char| c == '\0' || c == '/' || c == ':';
    let units = name.encode_utf16().count();
    (1..=MAX_COMPONENT_UNITS).contains(&units) && !name.chars().any(is_reserved)
}

/// Removes the last component for a `..`. The removed component need not exist. Windows and Samba
/// refuse a path that climbs above the share with OBJECT_PATH_SYNTAX_BAD; smbtorture
/// smb2.notify.tree opens a path that climbs within the share.
fn climb(path: &mut String) -> Result<(), Status> {
    if path.is_empty() {
        return Err(Status::OBJECT_PATH_SYNTAX_BAD);
    }
    path.truncate(path.rfind('/').unwrap_or(0));
    Ok(())
}

/// Refuses an invalid component: `.`, a name that is too long, or one with a character that Windows
/// reserves. \[MS-FSCC\] 2.1.5.2
fn check_component(component: &str) -> Result<(), Status> {
    if component == "." {
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
    fn several_separators_are_one() {
        for name in ["a\\\\b", "a\\\\\\b", "a\\b\\\\", "a/b", "a\\/b/"] {
            assert_eq!(path(name).expect("a good name").as_str(), "a/b", "{name}");
        }
    }

    #[test]
    fn a_path_cannot_climb_above_its_share() {
        assert_eq!(path("..\\x"), Err(Status::OBJECT_PATH_SYNTAX_BAD));
        assert_eq!(path("a\\..\\..\\x"), Err(Status::OBJECT_PATH_SYNTAX_BAD));
        assert_eq!(path(".\\x"), Err(Status::OBJECT_PATH_SYNTAX_BAD));
        assert_eq!(path("a/../../x"), Err(Status::OBJECT_PATH_SYNTAX_BAD));
        assert_eq!(path("/a"), Err(Status::INVALID_PARAMETER));
        assert_eq!(path("\\a"), Err(Status::INVALID_PARAMETER));
        assert_eq!(path("a\0b"), Err(Status::OBJECT_NAME_INVALID));
    }

    #[test]
    fn climbing_takes_a_component_off() {
        assert_eq!(path("a\\..\\x").expect("within").as_str(), "x");
        assert_eq!(path("a\\b\\..").expect("within").as_str(), "a");
        assert!(path("a\\..").expect("the root").is_root());
        assert_eq!(path("a\\b\\..\\..\\c\\d").expect("within").as_str(), "c/d");
    }

    #[test]
    fn a_name_may_end_with_a_stream() {
        let parts = |name: &str| {
            let path = path(name).expect("a good name");
            let stream = path.stream().map(|stream| String::from(stream.as_str()));
            (String::from(path.as_str()), stream)
        };
        let of = |file: &str, stream: &str| (String::from(file), Some(String::from(stream)));
        assert_eq!(parts("a\\b::$data"), (String::from("a/b"), None));
        let is_data = |name: &str| SharePath::is_data_stream(Utf16(&utf16(name)));
        assert!(is_data("a\\b::$data") && !is_data("a\\b") && !is_data("a:b:$DATA"));
        assert_eq!(parts("a\\b:c"), of("a/b", "c"));
        assert_eq!(parts("a:c d:$DATA"), of("a", "c d"));
        for name in [
            "a:",
            "::$DATA",
            ":b",
            "a\\::$DATA",
            "a::$DATA\\b",
            "a:b\\c",
            "a::$INDEX_ALLOCATION",
            "a:b:$DATA:",
            "a:b/c",
            "a\\..:b",
        ] {
            assert_eq!(path(name), Err(Status::OBJECT_NAME_INVALID), "{name}");
        }
        let long = "c".repeat(MAX_COMPONENT_UNITS);
        assert!(path(&alloc::format!("a:{long}")).is_ok());
        let longer = alloc::format!("a:{long}c");
        assert_eq!(path(&longer), Err(Status::OBJECT_NAME_INVALID));
    }

    #[test]
    fn a_stream_belongs_to_one_name() {
        let path = path("a\\b:c").expect("a good name");
        assert_eq!(alloc::format!("{path}"), "a/b:c");
        assert_eq!(path.parent().stream(), None);
        assert_eq!(path.join("d").stream(), None);
        assert_ne!(path, SharePath::from_trusted("a/b"));
        assert!(path.is_same_file(&SharePath::from_trusted("a/b")));
        assert_eq!(path.to_wire(), "a\\b:c:$DATA");
        assert_eq!(path.with_stream(None), SharePath::from_trusted("a/b"));
    }

    #[test]
    fn a_stream_is_renamed_to_a_name_with_a_colon() {
        let target = |name: &str| StreamName::from_wire_target(Utf16(&utf16(name)));
        assert_eq!(target(":c"), Ok(StreamName::new("c")));
        assert_eq!(target(":c:$data"), Ok(StreamName::new("c")));
        assert_eq!(target("::$DATA"), Ok(None));
        for name in [
            "c",
            ":",
            ":c:",
            ":c:$INDEX_ALLOCATION",
            ":a:b:$DATA",
            ":a/b",
        ] {
            assert_eq!(target(name), Err(Status::OBJECT_NAME_INVALID), "{name}");
        }
    }

    #[test]
    fn a_target_may_begin_with_a_separator_and_is_not_the_root() {
        let target = |name: &str| SharePath::from_wire_target(Utf16(&utf16(name)));
        assert_eq!(target("\\a\\b").expect("a good name").as_str(), "a/b");
        assert_eq!(target("a").expect("a good name").as_str(), "a");
        assert_eq!(target("\\"), Err(Status::INVALID_PARAMETER));
        assert_eq!(target(""), Err(Status::INVALID_PARAMETER));
        assert_eq!(target(":x:$DATA"), Err(Status::OBJECT_NAME_INVALID));
    }

    #[test]
    fn a_posix_name_has_every_character_but_a_slash() {
        let path = |name: &str| SharePath::from_posix_wire(Utf16(&utf16(name)));
        for (name, mapped) in [
            ("a:b", "a\u{f022}b"),
            ("a.", "a\u{f029}"),
            ("x\\y/*", "x\u{f026}y/\u{f021}"),
            ("con", "con"),
            ("a//b/./c/", "a/b/c"),
            ("\\a", "\u{f026}a"),
            ("a/b/../c", "a/c"),
            ("a\u{f022}b", "a\u{efef}\u{ef80}\u{efa2}b"),
        ] {
            assert_eq!(path(name).expect(name).as_str(), mapped);
        }
        assert!(path("").expect("the root").is_root());
        assert_eq!(path("/a"), Err(Status::INVALID_PARAMETER));
        assert_eq!(path("a\0"), Err(Status::OBJECT_NAME_INVALID));
        assert_eq!(path("a/../../b"), Err(Status::OBJECT_PATH_SYNTAX_BAD));
        assert_eq!(path(&"a".repeat(256)), Err(Status::NAME_TOO_LONG));
        assert!(path(&"a".repeat(255)).is_ok());
        // The limit counts the bytes of the name on disk.
        assert!(path(&"\u{efff}".repeat(255)).is_ok());
        assert_eq!(path(&"\u{20ac}".repeat(86)), Err(Status::NAME_TOO_LONG));
        let target = |name: &str| SharePath::from_posix_wire_target(Utf16(&utf16(name)));
        assert_eq!(target("/a*").expect("a name").as_str(), "a\u{f021}");
        assert_eq!(target("."), Err(Status::INVALID_PARAMETER));
    }

    #[test]
    fn a_path_moves_with_the_directory_above() {
        let at = SharePath::from_trusted;
        assert_eq!(at("a/b/c").moved(&at("a"), &at("x/y")), Some(at("x/y/b/c")));
        assert_eq!(at("a/b").moved(&at("a/b"), &at("x")), None);
        assert_eq!(at("ab/c").moved(&at("a"), &at("x")), None);
        let stream = at("a/b").with_stream(StreamName::new("s"));
        let moved = stream.moved(&at("a"), &at("x")).expect("below");
        assert_eq!(moved, at("x/b").with_stream(StreamName::new("s")));
    }

    #[test]
    fn below_means_below_and_not_beside() {
        let at = SharePath::from_trusted;
        assert!(at("a/b").is_below(&at("a")));
        assert!(at("a").is_below(&at("")));
        assert!(!at("ab").is_below(&at("a")));
        assert!(!at("a").is_below(&at("a")));
        assert!(!at("").is_below(&at("")));
    }
}
