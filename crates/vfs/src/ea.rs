//! Extended attributes: the names that the server keeps for itself, and the limits of a file.

use proto::ea::{Ea, LIST_MAX, list_len};
use wire::Status;

/// Names of the class "user" that belong to the server, as they do to Samba: clients do not see
/// them, and may not set them. Samba also hides `security.NTACL`, which is not of that class;
/// `user.NTACL` holds descriptors where the server may not write `security.NTACL`.
const RESERVED: [&[u8]; 6] = [
    b"DOSATTRIB",
    b"NTACL",
    b"SAMBA_PAI",
    b"SAMBA_STREAMS",
    b"SmbReparse",
    b"org.netatalk.Metadata",
];
/// Starts of the names of the attributes that hold named streams or point to their data, and of
/// those of the files with the data.
const RESERVED_STARTS: [&[u8]; 3] = [b"DosStream.", b"SmbeamStream.", b"smbeam."];
/// Maximum length of a name in bytes: XATTR_NAME_MAX of Linux without the prefix "user.".
const NAME_MAX: usize = 255 - 5;

/// Returns whether the server keeps an attribute with this name for itself.
pub(crate) fn is_reserved(name: &[u8]) -> bool {
    let has_start = |start: &&[u8]| {
        let own = name.get(..start.len());
        own.is_some_and(|own| own.eq_ignore_ascii_case(start))
    };
    RESERVED_STARTS.iter().any(has_start)
        || RESERVED.iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// Checks changes of the attributes `eas` of a file, before the first one.
///
/// # Errors
/// ACCESS_DENIED for a reserved name, INVALID_EA_NAME for a name that is too long, and EA_TOO_LARGE
/// if the list of the file would exceed its maximum length.
pub(crate) fn check(eas: &[Ea], changes: &[Ea], names: Names) -> Result<(), Status> {
    if changes.iter().any(|change| is_reserved(&change.name)) {
        return Err(Status::ACCESS_DENIED);
    }
    if changes.iter().any(|change| change.name.len() > NAME_MAX) {
        return Err(Status::INVALID_EA_NAME);
    }
    let mut after = eas.to_vec();
    for change in changes {
        apply(&mut after, change, names);
    }
    let is_growing = list_len(&after) > list_len(eas);
    if is_growing && list_len(&after) > LIST_MAX {
        return Err(Status::EA_TOO_LARGE);
    }
    Ok(())
}

/// How the names of attributes are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// Without regard to case.
    Folded,
    /// Exactly, for opens of the SMB3 POSIX extensions.
    Exact,
}

impl Names {
    /// The comparison for an open. `is_exact`: it is one of the SMB3 POSIX extensions.
    pub(crate) fn of(is_exact: bool) -> Self {
        match is_exact {
            true => Self::Exact,
            false => Self::Folded,
        }
    }

    /// Whether an attribute has this name.
    pub(crate) fn are_same(self, ea: &Ea, name: &[u8]) -> bool {
        match self {
            Self::Folded => ea.has_name(name),
            Self::Exact => ea.name == name,
        }
    }
}

/// Applies a change to the attributes of a file. An attribute keeps the spelling of its name.
pub(crate) fn apply(eas: &mut Vec<Ea>, change: &Ea, names: Names) {
    let found = (eas.iter()).position(|ea| names.are_same(ea, &change.name));
    match found {
        Some(index) if change.value.is_empty() => {
            eas.remove(index);
        }
        Some(index) => eas[index].value.clone_from(&change.value),
        None if change.value.is_empty() => {}
        None => eas.push(change.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(eas: &[Ea], changes: &[Ea]) -> Result<(), Status> {
        super::check(eas, changes, Names::Folded)
    }

    fn apply(eas: &mut Vec<Ea>, change: &Ea) {
        super::apply(eas, change, Names::Folded);
    }

    #[test]
    fn exact_names_differ_in_case() {
        let mut eas = vec![ea(b"name", b"1")];
        super::apply(&mut eas, &ea(b"NAME", b"2"), Names::Exact);
        assert_eq!(eas, [ea(b"name", b"1"), ea(b"NAME", b"2")]);
        super::apply(&mut eas, &ea(b"name", b""), Names::Exact);
        assert_eq!(eas, [ea(b"NAME", b"2")]);
    }

    fn ea(name: &[u8], value: &[u8]) -> Ea {
        Ea {
            name: name.to_vec(),
            value: value.to_vec(),
        }
    }

    #[test]
    fn reserved_names_are_reserved_in_any_case() {
        for name in [
            &b"dosattrib"[..],
            b"NtAcl",
            b"DOSSTREAM.x:$DATA",
            b"DosStream.",
            b"SMBEAMSTREAM.x",
            b"smbeam.owner",
        ] {
            assert!(is_reserved(name), "{name:?}");
            let refused = check(&[], &[ea(b"a", b"1"), ea(name, b"x")]);
            assert_eq!(refused, Err(Status::ACCESS_DENIED));
        }
        for name in [&b"DOSATTRIB2"[..], b"DosStream", b"a", b""] {
            assert!(!is_reserved(name), "{name:?}");
        }
    }

    #[test]
    fn a_change_keeps_the_first_spelling() {
        let mut eas = vec![ea(b"Name", b"1")];
        apply(&mut eas, &ea(b"NAME", b"2"));
        assert_eq!(eas, [ea(b"Name", b"2")]);
        apply(&mut eas, &ea(b"name", b""));
        apply(&mut eas, &ea(b"other", b""));
        assert_eq!(eas, []);
    }

    #[test]
    fn the_list_of_a_file_has_a_maximum_length() {
        let half = ea(b"a", &[1; 40_000]);
        let other = ea(b"b", &[1; 40_000]);
        let eas = [half.clone()];
        assert_eq!(check(&eas, &[ea(b"a", &[2; 65_000])]), Ok(()));
        let refused = check(&eas, std::slice::from_ref(&other));
        assert_eq!(refused, Err(Status::EA_TOO_LARGE));
        let moved = check(&eas, &[ea(b"a", b""), other.clone()]);
        assert_eq!(moved, Ok(()));
        // A local program wrote more; a client may still reduce it.
        let both = [half, other];
        assert_eq!(check(&both, &[ea(b"a", &[1; 30_000])]), Ok(()));
    }

    #[test]
    fn a_name_that_the_disk_cannot_hold_is_refused() {
        let refused = check(&[], &[ea(&[b'x'; NAME_MAX + 1], b"1")]);
        assert_eq!(refused, Err(Status::INVALID_EA_NAME));
        assert_eq!(check(&[], &[ea(&[b'x'; NAME_MAX], b"1")]), Ok(()));
    }
}
