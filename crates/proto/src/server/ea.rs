//! Lists of extended attributes that clients send, in SET_INFO and in CREATE. \[MS-FSCC\] 2.4.16
//!
//! The flag NEED_EA is accepted and not stored, as with Samba: no attribute of a file has it, so
//! FILE_NO_EA_KNOWLEDGE refuses no open of an existing file.

use alloc::vec::Vec;

use wire::Status;
use wire::fscc::{Eas, is_valid_ea_name};

use crate::ea::Ea;

/// Maximum number of attributes in a list: far more than the attributes of a file can be, because
/// each takes at least 12 bytes of its 64 KiB.
const CHANGES_MAX: usize = 8192;

/// Decodes a list of attributes to set. Names that Windows does not allow fail the whole list
/// before the first change, as in Windows and Samba.
///
/// # Errors
/// EA_LIST_INCONSISTENT if the list is malformed or too long, INVALID_EA_NAME for a wrong name.
pub(super) fn decode_changes(buffer: &[u8]) -> Result<Vec<Ea>, Status> {
    let mut changes = Vec::new();
    for ea in Eas::new(buffer) {
        let ea = ea.map_err(|_| Status::EA_LIST_INCONSISTENT)?;
        if changes.len() == CHANGES_MAX {
            return Err(Status::EA_LIST_INCONSISTENT);
        }
        if !is_valid_ea_name(ea.name) {
            return Err(Status::INVALID_EA_NAME);
        }
        changes.push(Ea {
            name: ea.name.to_vec(),
            value: ea.value.to_vec(),
        });
    }
    if changes.is_empty() {
        return Err(Status::EA_LIST_INCONSISTENT);
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use wire::fscc::{EaFlags, EaWriter, FullEa};

    use super::*;

    fn list(eas: &[(&[u8], &[u8])]) -> Vec<u8> {
        let mut writer = EaWriter::new(usize::MAX);
        for (name, value) in eas {
            let flags = EaFlags::NEED_EA;
            assert!(writer.push(&FullEa { flags, name, value }));
        }
        writer.finish()
    }

    #[test]
    fn a_list_is_decoded_whole_or_refused() {
        let bytes = list(&[(b"One", b"1"), (b"two", b"")]);
        let changes = decode_changes(&bytes).expect("a good list");
        assert_eq!(changes.len(), 2);
        assert_eq!(
            (&*changes[0].name, &*changes[0].value),
            (&b"One"[..], &b"1"[..])
        );
        for end in 0..bytes.len() {
            let refused = decode_changes(&bytes[..end]);
            assert_eq!(refused, Err(Status::EA_LIST_INCONSISTENT), "{end}");
        }
    }

    #[test]
    fn wrong_names_are_refused() {
        for name in [&b""[..], b"a:b", b"a/b", b"a\x01", b"*", b"a\\"] {
            let refused = decode_changes(&list(&[(b"good", b"1"), (name, b"1")]));
            assert_eq!(refused, Err(Status::INVALID_EA_NAME), "{name:?}");
        }
    }

    #[test]
    fn a_list_has_a_maximum_length() {
        let one = (&b"a"[..], &b"1"[..]);
        let longest = list(&[one; CHANGES_MAX]);
        assert!(decode_changes(&longest).is_ok());
        let refused = decode_changes(&list(&[one; CHANGES_MAX + 1]));
        assert_eq!(refused, Err(Status::EA_LIST_INCONSISTENT));
    }
}
