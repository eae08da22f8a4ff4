//! Mode, owner and group in extended attributes, for servers without the SMB3 POSIX extensions.
//!
//! The names and the format are those of the Windows subsystem for Linux: `$LXUID`, `$LXGID` and
//! `$LXMOD`, each a number of 32 bits in little-endian order; `$LXMOD` has the type of the file too
//! (`st_mode`). cifs.ko reads them as well (fs/smb/client/reparse.c).

use std::collections::BTreeMap;

use smbeam_client::ExtendedAttribute;

use super::values::Unix;

const UID: &str = "$LXUID";
const GID: &str = "$LXGID";
const MODE: &str = "$LXMOD";
/// The names of the attributes, which are no attributes of the file for others.
pub(crate) const NAMES: [&str; 3] = [UID, GID, MODE];

/// Extended attributes by their names in upper case, each with its name and value.
type Attributes = BTreeMap<Vec<u8>, (Vec<u8>, Vec<u8>)>;

/// Removes the attributes from the list, and returns what they say. `None` without a mode.
pub(crate) fn take(attributes: &mut Attributes) -> Option<Unix> {
    let mut number = |name: &str| -> Option<u32> {
        let (_, value) = attributes.remove(name.as_bytes())?;
        Some(u32::from_le_bytes(value.try_into().ok()?))
    };
    let (uid, gid, mode) = (number(UID), number(GID), number(MODE));
    Some(Unix {
        mode: mode? & 0o7777,
        uid,
        gid,
    })
}

/// The attributes for a file. `file_type` has the type bits of `st_mode`.
pub(super) fn of(unix: &Unix, file_type: u32) -> Vec<ExtendedAttribute> {
    let mode = Some(unix.mode | file_type);
    let numbers = [(UID, unix.uid), (GID, unix.gid), (MODE, mode)];
    let attribute = |(name, number): (&str, Option<u32>)| {
        let value = number?.to_le_bytes();
        Some(ExtendedAttribute::new(name, value))
    };
    numbers.into_iter().filter_map(attribute).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let unix = Unix {
            mode: 0o4750,
            uid: Some(1000),
            gid: None,
        };
        let written = of(&unix, 0o100_000);
        let mut attributes: Attributes = written
            .into_iter()
            .map(|attribute| (attribute.name.clone(), (attribute.name, attribute.value)))
            .collect();
        assert_eq!(attributes.len(), 2);
        let value = attributes[MODE.as_bytes()].1.clone();
        assert_eq!(value, 0o104_750_u32.to_le_bytes());
        attributes.insert(b"OTHER".to_vec(), (b"other".to_vec(), vec![1]));
        assert_eq!(take(&mut attributes), Some(unix));
        assert_eq!(attributes.len(), 1);
        assert_eq!(take(&mut attributes), None);
    }
}
