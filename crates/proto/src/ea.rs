//! Extended attributes of files: the vocabulary between the core and a file system.

use alloc::vec::Vec;

/// An extended attribute of a file: a name and a value. \[MS-FSCC\] 2.4.16
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ea {
    /// Name of the attribute: 1 to 255 bytes, without the terminating NUL. Two names that differ
    /// only in ASCII upper and lower case stand for one attribute. The bytes are those that the
    /// client sent; Linux clients send UTF-8.
    pub name: Vec<u8>,
    /// Value of the attribute: at most 65,535 bytes. A file has no attribute with an empty value;
    /// in a change, an empty value deletes the attribute.
    pub value: Vec<u8>,
}

/// Maximum length in bytes of all extended attributes of a file, as [`list_len`] counts them. NTFS
/// has the same limit, and clients do not read more than that.
pub const LIST_MAX: usize = 65_535;

/// Length of an entry of the list before its name, in bytes.
const FIXED_LEN: usize = 8;
/// Alignment of the entries of the list in bytes.
const ALIGNMENT: usize = 4;

impl Ea {
    /// Returns whether `name` stands for this attribute.
    pub fn has_name(&self, name: &[u8]) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// Returns the length of the attribute in a list (FILE_FULL_EA_INFORMATION) in bytes, without
    /// padding.
    pub fn entry_len(&self) -> usize {
        FIXED_LEN + self.name.len() + 1 + self.value.len()
    }
}

/// Returns the length in bytes of the encoded list of these attributes (FILE_FULL_EA_INFORMATION),
/// which is the EaSize of a file; 0 for no attributes. \[MS-FSCC\] 2.4.13
pub fn list_len(eas: &[Ea]) -> usize {
    let last = eas.last().map_or(0, Ea::entry_len);
    let others = eas.split_last().map_or(&[][..], |(_, others)| others);
    let padded = |ea: &Ea| ea.entry_len().next_multiple_of(ALIGNMENT);
    others.iter().map(padded).sum::<usize>() + last
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use wire::fscc::{EaFlags, EaWriter, FullEa};

    use super::*;

    #[test]
    fn the_length_of_a_list_is_that_of_its_encoding() {
        let ea = |name: &[u8], length| Ea {
            name: name.to_vec(),
            value: vec![7; length],
        };
        let eas = [ea(b"A", 1), ea(b"LONGER", 0), ea(b"xyz", 300), ea(b"n", 2)];
        for count in 0..=eas.len() {
            let mut writer = EaWriter::new(usize::MAX);
            for Ea { name, value } in &eas[..count] {
                let flags = EaFlags::default();
                assert!(writer.push(&FullEa { flags, name, value }));
            }
            assert_eq!(writer.finish().len(), list_len(&eas[..count]), "{count}");
        }
    }
}
