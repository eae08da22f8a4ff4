//! Lists with NextEntryOffset: for any bytes, the decoder advances, stops at the first error and
//! never panics. The encoder never exceeds its limit, and pads between entries only.

use proptest::prelude::*;
use smbeam_wire::error::DecodeError;
use smbeam_wire::fscc::*;
use smbeam_wire::text::{Utf16, utf16};

const DIRECTORY_CLASSES: [FileInfoClass; 12] = [
    FileInfoClass::DIRECTORY,
    FileInfoClass::FULL_DIRECTORY,
    FileInfoClass::BOTH_DIRECTORY,
    FileInfoClass::NAMES,
    FileInfoClass::ID_BOTH_DIRECTORY,
    FileInfoClass::ID_FULL_DIRECTORY,
    FileInfoClass::ID_EXTD_DIRECTORY,
    FileInfoClass::ID_64_EXTD_DIRECTORY,
    FileInfoClass::ID_64_EXTD_BOTH_DIRECTORY,
    FileInfoClass::ID_ALL_EXTD_DIRECTORY,
    FileInfoClass::ID_ALL_EXTD_BOTH_DIRECTORY,
    FileInfoClass::POSIX,
];

/// Two changes, of 16 and 14 bytes.
fn two_changes() -> Vec<u8> {
    let name = utf16("a");
    let change = FileNotifyInformation {
        action: FileAction::ADDED,
        name: Utf16(&name),
    };
    let mut writer = NotifyWriter::new(usize::MAX);
    assert!(writer.push(&change));
    assert!(writer.push(&change));
    writer.finish()
}

fn with_offset(offset: u32) -> Vec<u8> {
    let mut bytes = two_changes();
    bytes[..4].copy_from_slice(&offset.to_le_bytes());
    bytes
}

#[test]
fn entries_are_aligned_and_the_last_is_not_padded() {
    let bytes = two_changes();
    assert_eq!(bytes.len(), 16 + 14);
    assert_eq!(bytes[..4], [16, 0, 0, 0]);
    assert_eq!(bytes[14..16], [0, 0]);
    assert_eq!(bytes[16..20], [0; 4]);
}

#[test]
fn no_bytes_are_an_empty_list() {
    assert!(NotifyEntries::new(&[]).next().is_none());
    assert!(NotifyWriter::new(0).finish().is_empty());
}

#[test]
fn an_offset_of_zero_ends_the_list() {
    let bytes = with_offset(0);
    assert_eq!(NotifyEntries::new(&bytes).count(), 1);
}

#[test]
fn invalid_offsets_are_errors_and_end_the_list() {
    // An offset into itself, backward, misaligned, to the end, past the end.
    for offset in [
        4,
        u32::MAX - 15,
        u32::MAX,
        1,
        14,
        15,
        18,
        30,
        32,
        0x7FFF_FFFC,
    ] {
        let bytes = with_offset(offset);
        let mut entries = NotifyEntries::new(&bytes);
        let first = entries.next().expect("an error");
        let value = u64::from(offset);
        assert!(matches!(first, Err(DecodeError::Invalid { value: v, .. }) if v == value));
        assert!(entries.next().is_none());
    }
}

#[test]
fn an_entry_does_not_overlap_the_next() {
    let mut bytes = two_changes();
    // FileNameLength: two bytes of padding are within the entry, more bytes are not.
    bytes[8] = 4;
    assert!(
        NotifyEntries::new(&bytes)
            .next()
            .is_some_and(|entry| entry.is_ok())
    );
    bytes[8] = 6;
    assert!(
        NotifyEntries::new(&bytes)
            .next()
            .is_some_and(|entry| entry.is_err())
    );
}

#[test]
fn an_entry_that_does_not_fit_changes_nothing() {
    let name = utf16("a");
    let entry = DirectoryEntry {
        name: Utf16(&name),
        ..DirectoryEntry::default()
    };
    let class = FileInfoClass::ID_BOTH_DIRECTORY;
    let one = 104 + 2;
    for max_len in [0, one - 1, one, one + 1, 112 + one - 1, 112 + one] {
        let mut writer = DirectoryWriter::new(class, max_len).expect("a directory class");
        let count = (0..3).filter(|_| writer.push(&entry)).count();
        assert_eq!(count, writer.count());
        assert_eq!(
            count,
            usize::from(max_len >= one) + usize::from(max_len >= 112 + one)
        );
        let bytes = writer.finish();
        assert!(bytes.len() <= max_len);
        let entries = DirectoryEntries::new(class, &bytes).expect("a directory class");
        assert_eq!(entries.filter(Result::is_ok).count(), count);
    }
}

#[test]
fn a_list_can_follow_other_bytes() {
    let name = utf16("a");
    let entry = DirectoryEntry {
        name: Utf16(&name),
        ..DirectoryEntry::default()
    };
    let head = b"head!".to_vec();
    let mut writer =
        DirectoryWriter::append_to(head, FileInfoClass::NAMES, 30).expect("a directory class");
    assert!(writer.push(&entry));
    assert!(writer.push(&entry));
    assert!(!writer.push(&entry));
    assert_eq!(writer.len(), 30);
    let bytes = writer.finish();
    assert_eq!(bytes[..5], *b"head!");
    assert_eq!(bytes[5..9], [16, 0, 0, 0]);
}

#[test]
fn an_extended_attribute_must_fit_its_lengths() {
    let mut writer = EaWriter::new(usize::MAX);
    let long = [b'a'; 256];
    assert!(!writer.push(&FullEa {
        name: &long,
        ..FullEa::default()
    }));
    let value = vec![0; 65_536];
    assert!(!writer.push(&FullEa {
        name: b"a",
        value: &value,
        ..FullEa::default()
    }));
    assert!(writer.push(&FullEa {
        name: &long[1..],
        value: &value[1..],
        ..FullEa::default()
    }));
    let bytes = writer.finish();
    assert_eq!(Eas::new(&bytes).filter(Result::is_ok).count(), 1);
}

#[test]
fn the_name_of_an_extended_attribute_ends_with_a_nul() {
    let bytes = b"\0\0\0\0\0\x01\0\0ab";
    let error = Eas::new(bytes).next();
    assert!(matches!(
        error,
        Some(Err(DecodeError::Invalid { value: 0x62, .. }))
    ));
}

#[test]
fn names_of_extended_attributes_both_ways() {
    let bytes = put_ea_names(Vec::new(), &[b"EAONE", b"B"]).expect("short names");
    assert_eq!(bytes, b"\x0C\0\0\0\x05EAONE\0\0\0\0\0\0\x01B\0");
    let names: Result<Vec<_>, _> = EaNames::new(&bytes).collect();
    assert_eq!(names, Ok(vec![b"EAONE".as_slice(), b"B"]));
    assert_eq!(put_ea_names(Vec::new(), &[&[b'a'; 256]]), None);
}

#[test]
fn a_short_name_longer_than_its_field_is_an_error() {
    let mut bytes = Vec::new();
    let entry = DirectoryEntry::default();
    assert!(FileInfoClass::BOTH_DIRECTORY.encode_entry(&entry, &mut bytes));
    bytes[68] = 25;
    let mut entries = DirectoryEntries::new(FileInfoClass::BOTH_DIRECTORY, &bytes).expect("one");
    assert!(entries.next().is_some_and(|entry| entry.is_err()));
}

/// Decodes any bytes as every list. More entries than one for 5 bytes indicate an endless loop.
fn read_all(bytes: &[u8]) {
    let most = bytes.len() / 5 + 1;
    assert!(NotifyEntries::new(bytes).count() <= most);
    assert!(Streams::new(bytes).count() <= most);
    assert!(Eas::new(bytes).count() <= most);
    assert!(EaNames::new(bytes).count() <= most);
    for class in DIRECTORY_CLASSES {
        let entries = DirectoryEntries::new(class, bytes).expect("a directory class");
        assert!(entries.clone().count() <= most);
        assert!(entries.with_apple().count() <= most);
    }
}

proptest! {
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        read_all(&bytes);
    }

    #[test]
    fn bytes_with_small_offsets(
        mut bytes in prop::collection::vec(prop_oneof![3 => Just(0_u8), 1 => any::<u8>()], 0..512),
        offset in 0..64_u8,
    ) {
        for entry in bytes.chunks_mut(16) {
            entry[0] = offset & 0xFC;
        }
        read_all(&bytes);
    }

    #[test]
    fn every_truncation_of_a_list_reads_to_an_end(
        names in prop::collection::vec("[a-z]{0,12}", 1..6),
    ) {
        let names: Vec<_> = names.iter().map(|name| utf16(name)).collect();
        for class in DIRECTORY_CLASSES {
            let mut writer = DirectoryWriter::new(class, usize::MAX).expect("a directory class");
            for name in &names {
                let name = Utf16(name);
                let entry = DirectoryEntry { name, ..DirectoryEntry::default() };
                prop_assert!(writer.push(&entry));
            }
            let bytes = writer.finish();
            for end in 1..bytes.len() {
                let entries = DirectoryEntries::new(class, &bytes[..end]).expect("a class");
                let (good, bad): (Vec<_>, Vec<_>) = entries.partition(Result::is_ok);
                prop_assert_eq!(bad.len(), 1);
                prop_assert!(good.len() < names.len());
            }
        }
    }
}
