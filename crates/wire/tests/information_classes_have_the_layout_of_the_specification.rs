//! Information classes without a capture have the layout of the tables in \[MS-FSCC\], written by
//! hand here. Also: 8.3 names and reparse tags, which Samba did not send, and every fixed length.

use smbeam_wire::access::{AccessMask, FileAttributes};
use smbeam_wire::fscc::*;
use smbeam_wire::text::{Utf16, utf16};
use smbeam_wire::time::FileTime;

/// Checks that a structure encodes to `bytes` and decodes from them, and from no prefix of them.
macro_rules! both_ways {
    ($type:ident, $value:expr, [$($part:expr),+]) => {
        let value: $type = $value;
        let mut bytes: Vec<u8> = Vec::new();
        $(bytes.extend_from_slice($part);)+
        let mut written = Vec::new();
        value.encode(&mut written);
        assert_eq!(written, bytes, stringify!($type));
        assert_eq!($type::decode(&bytes), Ok(value));
        for end in 0..bytes.len() {
            assert!($type::decode(&bytes[..end]).is_err(), "{end} bytes");
        }
    };
}

/// Four different times.
const TIMES: [u8; 32] =
    *b"\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0";

#[test]
fn classes_of_one_value() {
    both_ways!(
        FileInternalInformation,
        FileInternalInformation {
            index_number: 0x0102
        },
        [b"\x02\x01\0\0\0\0\0\0"]
    );
    both_ways!(
        FileEaInformation,
        FileEaInformation { ea_size: 7 },
        [b"\x07\0\0\0"]
    );
    both_ways!(
        FileAccessInformation,
        FileAccessInformation {
            access_flags: AccessMask(0x0012_019F)
        },
        [b"\x9F\x01\x12\0"]
    );
    both_ways!(
        FilePositionInformation,
        FilePositionInformation {
            current_byte_offset: u64::MAX
        },
        [b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"]
    );
    both_ways!(
        FileModeInformation,
        FileModeInformation {
            mode: ModeFlags::WRITE_THROUGH | ModeFlags::DELETE_ON_CLOSE
        },
        [b"\x02\x10\0\0"]
    );
    both_ways!(
        FileAlignmentInformation,
        FileAlignmentInformation {
            alignment_requirement: 0x1FF
        },
        [b"\xFF\x01\0\0"]
    );
    both_ways!(
        FileAllocationInformation,
        FileAllocationInformation {
            allocation_size: 4096
        },
        [b"\0\x10\0\0\0\0\0\0"]
    );
    both_ways!(
        FileValidDataLengthInformation,
        FileValidDataLengthInformation {
            valid_data_length: 4096
        },
        [b"\0\x10\0\0\0\0\0\0"]
    );
    both_ways!(
        FileDispositionInformation,
        FileDispositionInformation {
            is_delete_pending: true
        },
        [b"\x01"]
    );
    both_ways!(
        FileDispositionInformationEx,
        FileDispositionInformationEx {
            flags: DispositionFlags::DELETE | DispositionFlags::POSIX_SEMANTICS
        },
        [b"\x03\0\0\0"]
    );
}

#[test]
fn classes_of_times_and_sizes() {
    let [created, accessed, written, changed] = [1, 2, 3, 4].map(FileTime);
    let attributes = FileAttributes::ARCHIVE;
    both_ways!(
        FileBasicInformation,
        FileBasicInformation {
            created,
            accessed,
            written,
            changed,
            attributes
        },
        [TIMES.as_slice(), b"\x20\0\0\0\0\0\0\0"]
    );
    both_ways!(
        FileNetworkOpenInformation,
        FileNetworkOpenInformation {
            created,
            accessed,
            written,
            changed,
            allocation_size: 4096,
            end_of_file: 5,
            attributes,
        },
        [
            &TIMES[..],
            b"\0\x10\0\0\0\0\0\0",
            b"\x05\0\0\0\0\0\0\0",
            b"\x20\0\0\0\0\0\0\0"
        ]
    );
    both_ways!(
        FileStandardInformation,
        FileStandardInformation {
            allocation_size: 4096,
            end_of_file: 5,
            number_of_links: 2,
            is_delete_pending: true,
            is_directory: false,
        },
        [
            b"\0\x10\0\0\0\0\0\0",
            b"\x05\0\0\0\0\0\0\0",
            b"\x02\0\0\0\x01\0\0\0"
        ]
    );
    both_ways!(
        FileCompressionInformation,
        FileCompressionInformation {
            compressed_size: 4096,
            format: 2,
            unit_shift: 16,
            chunk_shift: 12,
            cluster_shift: 9,
        },
        [b"\0\x10\0\0\0\0\0\0", b"\x02\0\x10\x0C\x09\0\0\0"]
    );
    both_ways!(
        FileAttributeTagInformation,
        FileAttributeTagInformation {
            attributes: FileAttributes::REPARSE_POINT,
            reparse_tag: 0xA000_000C,
        },
        [b"\0\x04\0\0", b"\x0C\0\0\xA0"]
    );
    both_ways!(
        FileIdInformation,
        FileIdInformation {
            volume_serial_number: 9,
            file_id: 1 << 64 | 2
        },
        [
            b"\x09\0\0\0\0\0\0\0",
            b"\x02\0\0\0\0\0\0\0",
            b"\x01\0\0\0\0\0\0\0"
        ]
    );
}

#[test]
fn classes_of_volumes() {
    let label = utf16("a");
    both_ways!(
        FileFsLabelInformation,
        FileFsLabelInformation {
            label: Utf16(&label)
        },
        [b"\x02\0\0\0a\0"]
    );
    both_ways!(
        FileFsControlInformation,
        FileFsControlInformation {
            free_space_start_filtering: 1,
            free_space_threshold: 2,
            free_space_stop_filtering: 3,
            default_quota_threshold: 4,
            default_quota_limit: u64::MAX,
            flags: ControlFlags::QUOTA_TRACK,
        },
        [&TIMES[..], &[0xFF; 8], b"\x01\0\0\0\0\0\0\0"]
    );
    let mut object_id = FileFsObjectIdInformation::decode(&[7; 64]).expect("64 bytes");
    object_id.extended_info = [8; 48];
    both_ways!(
        FileFsObjectIdInformation,
        object_id,
        [&[7_u8; 16][..], &[8; 48]]
    );
}

#[test]
fn renames_with_flags_are_padded_to_24_bytes() {
    let name = utf16("b");
    both_ways_padded(
        &FileRenameInformationEx {
            flags: RenameFlags::REPLACE_IF_EXISTS | RenameFlags::POSIX_SEMANTICS,
            root_directory: 0,
            name: Utf16(&name),
        },
        b"\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0b\0\0\0",
    );
}

fn both_ways_padded(rename: &FileRenameInformationEx<'_>, bytes: &[u8]) {
    let mut written = Vec::new();
    rename.encode(&mut written);
    assert_eq!(written, bytes);
    assert_eq!(FileRenameInformationEx::decode(bytes).as_ref(), Ok(rename));
}

/// A directory entry with all fields of the Windows classes.
fn entry<'a>(name: &'a [u8], short_name: &'a [u8]) -> DirectoryEntry<'a> {
    DirectoryEntry {
        file_index: 9,
        created: FileTime(1),
        accessed: FileTime(2),
        written: FileTime(3),
        changed: FileTime(4),
        end_of_file: 5,
        allocation_size: 4096,
        attributes: FileAttributes::REPARSE_POINT,
        ea_size: 6,
        reparse_tag: 0xA000_000C,
        file_id: 7,
        file_id_high: 8,
        short_name: Utf16(short_name),
        name: Utf16(name),
        ..DirectoryEntry::default()
    }
}

/// The bytes from NextEntryOffset to FileNameLength.
fn shared() -> Vec<u8> {
    let sizes = b"\x05\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\x04\0\0\x02\0\0\0";
    [&b"\0\0\0\0\x09\0\0\0"[..], &TIMES, sizes].concat()
}

#[test]
fn directory_classes() {
    let (name, short_name) = (utf16("n"), utf16("S"));
    let tag = b"\x0C\0\0\xA0".as_slice();
    let short = [b"\x02\0S\0".as_slice(), &[0; 22]].concat();
    let id = b"\x07\0\0\0\0\0\0\0".as_slice();
    let high = b"\x08\0\0\0\0\0\0\0".as_slice();
    let extended = [&b"\x06\0\0\0"[..], tag].concat();
    let classes: [(FileInfoClass, Vec<u8>); 10] = [
        (FileInfoClass::DIRECTORY, vec![]),
        (FileInfoClass::FULL_DIRECTORY, tag.to_vec()),
        (FileInfoClass::BOTH_DIRECTORY, [tag, &short].concat()),
        (
            FileInfoClass::ID_FULL_DIRECTORY,
            [tag, &[0; 4], id].concat(),
        ),
        (
            FileInfoClass::ID_BOTH_DIRECTORY,
            [tag, &short, &[0; 2], id].concat(),
        ),
        (
            FileInfoClass::ID_EXTD_DIRECTORY,
            [&extended[..], id, high].concat(),
        ),
        (
            FileInfoClass::ID_64_EXTD_DIRECTORY,
            [&extended[..], id].concat(),
        ),
        (
            FileInfoClass::ID_64_EXTD_BOTH_DIRECTORY,
            [&extended[..], id, &short].concat(),
        ),
        (
            FileInfoClass::ID_ALL_EXTD_DIRECTORY,
            [&extended[..], id, id, high].concat(),
        ),
        (
            FileInfoClass::ID_ALL_EXTD_BOTH_DIRECTORY,
            [&extended[..], id, id, high, &short].concat(),
        ),
    ];
    for (class, own) in classes {
        let bytes = [shared(), own, name.clone()].concat();
        assert_eq!(
            Some(bytes.len() - name.len()),
            class.entry_len(),
            "{class:?}"
        );
        let mut written = Vec::new();
        assert!(class.encode_entry(&entry(&name, &short_name), &mut written));
        assert_eq!(written, bytes, "{class:?}");
        let read = DirectoryEntries::new(class, &bytes)
            .expect("a directory class")
            .next();
        let mut again = Vec::new();
        assert!(class.encode_entry(&read.expect("one").expect("an entry"), &mut again));
        assert_eq!(again, bytes, "{class:?}");
    }
}

#[test]
fn a_short_name_that_is_too_long_is_none() {
    let (name, short_name) = (utf16("n"), utf16("thirteen-long"));
    let mut written = Vec::new();
    let entry = entry(&name, &short_name);
    assert!(FileInfoClass::BOTH_DIRECTORY.encode_entry(&entry, &mut written));
    assert_eq!(written[68..94], [0; 26]);
}

#[test]
fn classes_that_list_no_directory_have_no_entries() {
    let mut written = Vec::new();
    assert!(!FileInfoClass::BASIC.encode_entry(&DirectoryEntry::default(), &mut written));
    assert!(written.is_empty());
    assert!(DirectoryWriter::new(FileInfoClass::BASIC, 100).is_none());
    assert!(DirectoryEntries::new(FileInfoClass::BASIC, &[]).is_none());
}

#[test]
fn fixed_lengths_are_those_that_smbd_checks() {
    let file = [
        (FileInfoClass::BASIC, 40),
        (FileInfoClass::STANDARD, 24),
        (FileInfoClass::INTERNAL, 8),
        (FileInfoClass::EA, 4),
        (FileInfoClass::ACCESS, 4),
        (FileInfoClass::POSITION, 8),
        (FileInfoClass::MODE, 4),
        (FileInfoClass::ALIGNMENT, 4),
        (FileInfoClass::ALL, 104),
        (FileInfoClass::ALTERNATE_NAME, 8),
        (FileInfoClass::NORMALIZED_NAME, 8),
        (FileInfoClass::STREAM, 32),
        (FileInfoClass::COMPRESSION, 16),
        (FileInfoClass::NETWORK_OPEN, 56),
        (FileInfoClass::ATTRIBUTE_TAG, 8),
        (FileInfoClass::ID, 24),
        (FileInfoClass::RENAME, 20),
        (FileInfoClass::DISPOSITION, 1),
        (FileInfoClass::END_OF_FILE, 8),
    ];
    for (class, length) in file {
        assert_eq!(class.fixed_len(), Some(length), "{class:?}");
    }
    assert_eq!(FileInfoClass::FULL_EA.fixed_len(), None);
    let volume = [
        (FsInfoClass::VOLUME, 24),
        (FsInfoClass::SIZE, 24),
        (FsInfoClass::DEVICE, 8),
        (FsInfoClass::ATTRIBUTE, 16),
        (FsInfoClass::CONTROL, 48),
        (FsInfoClass::FULL_SIZE, 32),
        (FsInfoClass::OBJECT_ID, 64),
        (FsInfoClass::SECTOR_SIZE, 28),
        (FsInfoClass::POSIX, 56),
    ];
    for (class, length) in volume {
        assert_eq!(class.fixed_len(), Some(length), "{class:?}");
    }
}
