//! The walk of a path below a share: missing files, links that leave the share, names that clients
//! see in another form, flags and mounts that refuse changes.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use proto::path::SharePath;
use rustix::fs::{AtFlags, CWD, StatVfsMountFlags, StatxAttributes, StatxFlags, statvfs, statx};
use wire::file_name::NameMapping;
use wire::upcase::is_same_name;

use super::check::Check;
use super::diagnosis::Diagnosis;
use super::examined::{Entered, Found};
use super::question::{Access, Question};
use crate::codes::Reason as _;
use crate::config::ShareSection;

/// Most entries of a directory that are compared with a name of another case.
const ENTRIES_MAX: usize = 1_000_000;

/// A path from the root of a share.
pub(super) struct Place(Vec<OsString>);

impl Place {
    pub(super) fn root() -> Self {
        Self(Vec::new())
    }

    /// The place of a path in a share; `None` if the path is not in it. A relative path begins at
    /// the root of the share. Its separators may be those of Windows.
    pub(super) fn in_share(section: &ShareSection, path: &Path) -> Option<Self> {
        let share = section.path.get_ref();
        if path.is_relative() {
            return match path.to_str() {
                Some(text) => Self::relative(Path::new(&text.replace('\\', "/"))),
                None => Self::relative(path),
            };
        }
        let real = |path: &Path| path.canonicalize().ok();
        let below = path.strip_prefix(share).ok().map(Path::to_owned);
        let below = below.or_else(|| {
            let below = real(path)?;
            Some(below.strip_prefix(real(share)?).ok()?.to_owned())
        });
        Self::relative(&below?)
    }

    fn relative(path: &Path) -> Option<Self> {
        let mut names = Vec::new();
        for component in path.components() {
            match component {
                Component::Normal(name) => names.push(name.to_owned()),
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        Some(Self(names))
    }
}

/// Finds the components of the path, and examines all but their permissions. `None` if one does not
/// exist, or clients cannot reach it.
pub(super) fn examine(
    entered: &Entered<'_>,
    place: &Place,
    question: &Question,
    checks: &mut Vec<Check>,
) -> Option<Vec<Found>> {
    match walk(entered, place, checks) {
        Ok(found) => {
            let last = found.last().expect("the root is the first");
            refusing_changes(last, question, checks);
            Some(found)
        }
        Err(check) => {
            checks.push(check);
            None
        }
    }
}

/// The root of the share and each component of the path.
fn walk(
    entered: &Entered<'_>,
    place: &Place,
    checks: &mut Vec<Check>,
) -> Result<Vec<Found>, Check> {
    let root = entered.section.path.get_ref();
    let metadata = fs::metadata(root).map_err(|error| unreadable(root, &error))?;
    let mut found = vec![Found {
        local: root.clone(),
        path: SharePath::root(),
        metadata,
    }];
    for name in &place.0 {
        let above = found.last().expect("the root is the first");
        if !above.metadata.is_dir() {
            let code = Diagnosis::PathNotDirectory.code();
            let message = "it is not a directory, and the path goes on";
            return Err(Check::refused(above.local.display(), code, message));
        }
        let next = step(entered.section, above, name, checks)?;
        found.push(next);
    }
    Ok(found)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Check {
    Check::refused(path.display(), Diagnosis::PathMissing.code(), error)
}

/// The entry of a name in a directory.
fn step(
    section: &ShareSection,
    above: &Found,
    name: &OsStr,
    checks: &mut Vec<Check>,
) -> Result<Found, Check> {
    let mapping: NameMapping = section.names.into();
    let local = look_up(&above.local, name, mapping)?;
    let on_disk = local.file_name().unwrap_or(name);
    let shown = client_name(mapping, &local, on_disk, checks)?;
    let link = fs::symlink_metadata(&local).map_err(|error| unreadable(&local, &error))?;
    if link.is_symlink() {
        check_link(section, &local)?;
    }
    let metadata = fs::metadata(&local).map_err(|error| unreadable(&local, &error))?;
    Ok(Found {
        path: above.path.join(&shown),
        local,
        metadata,
    })
}

/// The path of a name in a directory, without regard to case.
fn look_up(directory: &Path, name: &OsStr, mapping: NameMapping) -> Result<PathBuf, Check> {
    let exact = directory.join(name);
    if fs::symlink_metadata(&exact).is_ok() {
        return Ok(exact);
    }
    let missing = |why: &str| {
        let check = Check::refused(exact.display(), Diagnosis::PathMissing.code(), why);
        check.mended_by(format!("ls -la '{}'", directory.display()))
    };
    let entries = fs::read_dir(directory).map_err(|error| unreadable(directory, &error))?;
    let wanted = name.to_string_lossy();
    for entry in entries.take(ENTRIES_MAX).flatten() {
        let on_disk = entry.file_name();
        let shown = mapping.to_wire(on_disk.as_bytes());
        if shown.is_some_and(|shown| is_same_name(&shown, &wanted)) {
            return Ok(entry.path());
        }
    }
    Err(missing("no such file or directory, with any case"))
}

/// The name that clients see.
fn client_name(
    mapping: NameMapping,
    local: &Path,
    on_disk: &OsStr,
    checks: &mut Vec<Check>,
) -> Result<String, Check> {
    let code = Diagnosis::PathName.code();
    let subject = local.display();
    let Some(shown) = mapping.to_wire(on_disk.as_bytes()) else {
        let message = "SMB cannot carry the name, and names = \"hide\" hides it from clients";
        let check = Check::refused(subject, code, message);
        return Err(check.mended_by("rename the file, or set names = \"map\" for the share"));
    };
    if shown.as_bytes() != on_disk.as_bytes() {
        let message = "SMB cannot carry the name: clients see it with replaced characters";
        checks.push(Check::warning(subject, code, message).mended_by("rename the file"));
    }
    Ok(shown.into_owned())
}

/// The server follows links within the share only.
fn check_link(section: &ShareSection, local: &Path) -> Result<(), Check> {
    let target = fs::read_link(local).map_err(|error| unreadable(local, &error))?;
    let root = section.path.get_ref();
    let (real, root) = (local.canonicalize(), root.canonicalize());
    let real = real.map_err(|error| {
        let message = format!("the symbolic link leads to {}: {error}", target.display());
        Check::refused(local.display(), Diagnosis::PathMissing.code(), message)
    })?;
    let is_within = root.is_ok_and(|root| real.starts_with(root));
    if is_within && target.is_relative() {
        return Ok(());
    }
    let why = match is_within {
        true => "which is absolute: the server follows relative links only",
        false => "which is outside of the share: the server does not follow it",
    };
    let message = format!("the symbolic link leads to {}, {why}", target.display());
    let code = Diagnosis::PathLeavesShare.code();
    let check = Check::refused(local.display(), code, message);
    Err(check.mended_by("make the link relative and within the share, or share its target"))
}

/// Flags of the file and of its mount that refuse changes by any user.
fn refusing_changes(found: &Found, question: &Question, checks: &mut Vec<Check>) {
    let subject = found.local.display();
    let changes = question.access.iter().any(|access| *access != Access::Read);
    let mut add = |reason: Diagnosis, message: &str, remedy: String| {
        let check = match changes {
            true => Check::refused(&subject, reason.code(), message),
            false => Check::warning(&subject, reason.code(), message),
        };
        checks.push(check.mended_by(remedy));
    };
    let statx = statx(CWD, &found.local, AtFlags::empty(), StatxFlags::BASIC_STATS);
    let attributes = statx.map_or(StatxAttributes::empty(), |statx| statx.stx_attributes);
    if attributes.contains(StatxAttributes::IMMUTABLE) {
        let remedy = format!("chattr -i '{subject}'");
        add(Diagnosis::PathImmutable, "the file is immutable", remedy);
    }
    if attributes.contains(StatxAttributes::APPEND) {
        let remedy = format!("chattr -a '{subject}'");
        add(Diagnosis::PathImmutable, "the file is append-only", remedy);
    }
    let mount = statvfs(&found.local);
    if mount.is_ok_and(|mount| mount.f_flag.contains(StatVfsMountFlags::RDONLY)) {
        let message = "the file system is mounted read-only";
        let remedy = "mount -o remount,rw, after a look at the log of the kernel (dmesg)".into();
        add(Diagnosis::PathReadOnlyMount, message, remedy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(place: Option<Place>) -> Option<Vec<String>> {
        let names = place?.0;
        let names = names.into_iter().map(OsString::into_string);
        Some(names.collect::<Result<_, _>>().expect("UTF-8"))
    }

    #[test]
    fn paths_begin_at_the_share() {
        let section = ShareSection::new("data", Path::new("/srv/data"), false);
        let place = |path: &str| names(Place::in_share(&section, Path::new(path)));
        let expected = Some(vec!["a".to_owned(), "b".to_owned()]);
        assert_eq!(place("a/b"), expected);
        assert_eq!(place("a\\b"), expected);
        assert_eq!(place("/srv/data/a/./b"), expected);
        assert_eq!(place("/srv/data"), Some(Vec::new()));
        assert_eq!(place("/srv/other/a"), None);
        assert_eq!(place("../a"), None);
    }
}
