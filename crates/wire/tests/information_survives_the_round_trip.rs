//! Entries of directories, streams, attributes, changes and names with any contents survive encode
//! and decode.

use proptest::collection::vec;
use proptest::prelude::*;
use smbeam_wire::aapl::DirectoryAttributes;
use smbeam_wire::access::FileAttributes;
use smbeam_wire::fscc::*;
use smbeam_wire::posix::{PosixAttributes, PosixCreateResponse, PosixMode};
use smbeam_wire::security::Sid;
use smbeam_wire::text::Utf16;
use smbeam_wire::time::FileTime;

/// UTF-16 bytes, including lone surrogates, which the codec does not check.
fn name(most: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u16>(), 0..=most)
        .prop_map(|units| units.into_iter().flat_map(u16::to_le_bytes).collect())
}

prop_compose! {
    fn times_and_sizes()(
        times in any::<[u64; 4]>(),
        end_of_file in any::<u64>(),
        allocation_size in any::<u64>(),
        attributes in any::<u32>(),
        file_index in any::<u32>(),
    ) -> DirectoryEntry<'static> {
        let [created, accessed, written, changed] = times.map(FileTime);
        DirectoryEntry {
            file_index,
            created,
            accessed,
            written,
            changed,
            end_of_file,
            allocation_size,
            attributes: FileAttributes(attributes),
            ..DirectoryEntry::default()
        }
    }
}

prop_compose! {
    fn posix()(
        numbers in any::<[u32; 4]>(),
        uid in any::<u32>(),
        rids in vec(any::<u32>(), 0..=15),
    ) -> PosixAttributes {
        let [device, number_of_links, reparse_tag, mode] = numbers;
        PosixAttributes {
            device,
            create: PosixCreateResponse {
                number_of_links,
                reparse_tag,
                mode: PosixMode(mode),
                owner: Sid::unix_user(uid),
                group: Sid::new(5, &rids).expect("at most 15"),
            },
        }
    }
}

/// The entry with only the fields that a class has.
fn with_fields_of<'a>(class: FileInfoClass, entry: &DirectoryEntry<'a>) -> DirectoryEntry<'a> {
    let mut seen = DirectoryEntry {
        short_name: Utf16::default(),
        posix: PosixAttributes::default(),
        apple: None,
        ea_size: 0,
        reparse_tag: 0,
        file_id: 0,
        file_id_high: 0,
        ..*entry
    };
    let has_tag = entry.attributes.contains(FileAttributes::REPARSE_POINT);
    match class {
        FileInfoClass::DIRECTORY => return seen,
        FileInfoClass::NAMES => {
            return DirectoryEntry {
                file_index: entry.file_index,
                name: entry.name,
                ..DirectoryEntry::default()
            };
        }
        FileInfoClass::POSIX => {
            seen.posix = entry.posix;
            seen.reparse_tag = entry.posix.create.reparse_tag;
            seen.file_id = entry.file_id;
            return seen;
        }
        FileInfoClass::ID_EXTD_DIRECTORY
        | FileInfoClass::ID_ALL_EXTD_DIRECTORY
        | FileInfoClass::ID_ALL_EXTD_BOTH_DIRECTORY => {
            seen.ea_size = entry.ea_size;
            seen.reparse_tag = entry.reparse_tag;
            seen.file_id_high = entry.file_id_high;
        }
        FileInfoClass::ID_64_EXTD_DIRECTORY | FileInfoClass::ID_64_EXTD_BOTH_DIRECTORY => {
            seen.ea_size = entry.ea_size;
            seen.reparse_tag = entry.reparse_tag;
        }
        _ if has_tag => seen.reparse_tag = entry.reparse_tag,
        _ => seen.ea_size = entry.ea_size,
    }
    if matches!(
        class,
        FileInfoClass::BOTH_DIRECTORY
            | FileInfoClass::ID_BOTH_DIRECTORY
            | FileInfoClass::ID_64_EXTD_BOTH_DIRECTORY
            | FileInfoClass::ID_ALL_EXTD_BOTH_DIRECTORY
    ) {
        seen.short_name = entry.short_name;
    }
    if !matches!(
        class,
        FileInfoClass::FULL_DIRECTORY | FileInfoClass::BOTH_DIRECTORY
    ) {
        seen.file_id = entry.file_id;
    }
    seen
}

const CLASSES: [FileInfoClass; 12] = [
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

proptest! {
    #[test]
    fn directory_entries(
        parts in vec((times_and_sizes(), posix(), any::<[u64; 3]>(), name(20), name(12)), 1..5),
    ) {
        let entries: Vec<_> = parts.iter().map(|(entry, posix, numbers, name, short_name)| {
            let [sizes, file_id, file_id_high] = *numbers;
            DirectoryEntry {
                ea_size: sizes as u32,
                reparse_tag: (sizes >> 32) as u32,
                file_id,
                file_id_high,
                posix: *posix,
                short_name: Utf16(short_name),
                name: Utf16(name),
                ..*entry
            }
        }).collect();
        for class in CLASSES {
            let mut writer = DirectoryWriter::new(class, usize::MAX).expect("a directory class");
            prop_assert!(entries.iter().all(|entry| writer.push(entry)));
            let bytes = writer.finish();
            let read = DirectoryEntries::new(class, &bytes).expect("a directory class");
            let read: Result<Vec<_>, _> = read.collect();
            let seen: Vec<_> = entries.iter().map(|entry| with_fields_of(class, entry)).collect();
            prop_assert_eq!(read, Ok(seen));
        }
    }

    #[test]
    fn apple_attributes_in_class_37(
        entry in times_and_sizes(),
        max_access in any::<u32>(),
        resource_fork_len in any::<u64>(),
        finder_info in any::<[u8; 16]>(),
        unix_mode in any::<u16>(),
        name in name(20),
    ) {
        let apple = DirectoryAttributes { max_access, resource_fork_len, finder_info, unix_mode };
        let entry = DirectoryEntry { apple: Some(apple), name: Utf16(&name), ..entry };
        let class = FileInfoClass::ID_BOTH_DIRECTORY;
        let mut bytes = Vec::new();
        prop_assert!(class.encode_entry(&entry, &mut bytes));
        let mut read = DirectoryEntries::new(class, &bytes).expect("a class").with_apple();
        prop_assert_eq!(read.next(), Some(Ok(entry)));
    }

    #[test]
    fn streams(parts in vec((any::<u64>(), any::<u64>(), name(30)), 0..6)) {
        let streams: Vec<_> = parts.iter().map(|(stream_size, allocation_size, name)| {
            FileStreamInformation {
                stream_size: *stream_size,
                allocation_size: *allocation_size,
                name: Utf16(name),
            }
        }).collect();
        let mut writer = StreamWriter::new(usize::MAX);
        prop_assert!(streams.iter().all(|stream| writer.push(stream)));
        let bytes = writer.finish();
        prop_assert_eq!(Streams::new(&bytes).collect::<Result<Vec<_>, _>>(), Ok(streams));
    }

    #[test]
    fn extended_attributes(
        parts in vec((any::<u8>(), vec(1..=255_u8, 0..=255), vec(any::<u8>(), 0..300)), 0..6),
    ) {
        let eas: Vec<_> = parts.iter().map(|(flags, name, value)| {
            FullEa { flags: EaFlags(*flags), name, value }
        }).collect();
        let mut writer = EaWriter::new(usize::MAX);
        prop_assert!(eas.iter().all(|ea| writer.push(ea)));
        let bytes = writer.finish();
        prop_assert_eq!(Eas::new(&bytes).collect::<Result<Vec<_>, _>>(), Ok(eas));
    }

    #[test]
    fn changes(parts in vec((any::<u32>(), name(30)), 0..6)) {
        let changes: Vec<_> = parts.iter().map(|(action, name)| {
            FileNotifyInformation { action: FileAction(*action), name: Utf16(name) }
        }).collect();
        let mut writer = NotifyWriter::new(usize::MAX);
        prop_assert!(changes.iter().all(|change| writer.push(change)));
        let bytes = writer.finish();
        prop_assert_eq!(NotifyEntries::new(&bytes).collect::<Result<Vec<_>, _>>(), Ok(changes));
    }

    #[test]
    fn renames(is_replacing in any::<bool>(), root_directory in any::<u64>(), name in name(40)) {
        let rename = FileRenameInformation { is_replacing, root_directory, name: Utf16(&name) };
        let mut bytes = Vec::new();
        rename.encode(&mut bytes);
        prop_assert!(bytes.len() >= 24);
        prop_assert_eq!(FileRenameInformation::decode(&bytes), Ok(rename));
        for end in 0..20 + name.len() {
            prop_assert!(FileRenameInformation::decode(&bytes[..end]).is_err());
        }
    }
}

/// Decodes any bytes as every structure that is not a list.
fn decode_all(bytes: &[u8]) {
    let _ = FileAllInformation::decode(bytes);
    let _ = FileNameInformation::decode(bytes);
    let _ = FileRenameInformation::decode(bytes);
    let _ = FileRenameInformationEx::decode(bytes);
    let _ = FileFsVolumeInformation::decode(bytes);
    let _ = FileFsLabelInformation::decode(bytes);
    let _ = FileFsAttributeInformation::decode(bytes);
    let _ = smbeam_wire::posix::FilePosixInformation::decode(bytes);
    let _ = smbeam_wire::posix::FsPosixInformation::decode(bytes);
    let _ = PosixCreateResponse::decode(bytes);
    let _ = smbeam_wire::aapl::AaplRequest::decode(bytes);
    let _ = smbeam_wire::aapl::AaplReply::decode(bytes);
    let _ = smbeam_wire::nbt::SessionRequest::decode(bytes);
}

proptest! {
    #[test]
    fn any_bytes_do_not_panic(bytes in vec(any::<u8>(), 0..256)) {
        decode_all(&bytes);
    }
}
