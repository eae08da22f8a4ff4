//! Information classes in captures between Samba 4.25.1 and smbclient, smbtorture or cifs.ko of
//! Linux 7.2, unsigned and unencrypted. Each test decodes a capture, checks its values, and encodes
//! it to the same bytes.

use smbeam_wire::access::{AccessMask, FileAttributes};
use smbeam_wire::fscc::*;
use smbeam_wire::posix::{FilePosixInformation, FsPosixInformation, PosixFileType};
use smbeam_wire::security::{AceType, DescriptorControl, SecurityDescriptor, Sid};
use smbeam_wire::text::Utf16;
use smbeam_wire::time::FileTime;

/// The bytes of a hexadecimal dump.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits
        .chunks(2)
        .map(|pair| str::from_utf8(pair).expect("ASCII"));
    pairs
        .map(|pair| u8::from_str_radix(pair, 16).expect("hexadecimal"))
        .collect()
}

fn text(name: Utf16<'_>) -> String {
    name.decode().expect("a name")
}

/// The bytes that `encode` appends.
fn written(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&mut bytes);
    bytes
}

/// Decodes a list, encodes it again, compares the bytes, and returns the list.
fn listed(class: FileInfoClass, bytes: &[u8]) -> Vec<DirectoryEntry<'_>> {
    let entries = DirectoryEntries::new(class, bytes).expect("a directory class");
    let entries: Vec<_> = entries.map(|entry| entry.expect("an entry")).collect();
    let mut writer = DirectoryWriter::new(class, bytes.len()).expect("a directory class");
    assert!(entries.iter().all(|entry| writer.push(entry)));
    assert_eq!(writer.count(), entries.len());
    assert_eq!(writer.finish(), bytes);
    entries
}

fn names(entries: &[DirectoryEntry<'_>]) -> Vec<String> {
    entries.iter().map(|entry| text(entry.name)).collect()
}

#[test]
fn smbclient_ls_lists_by_class_37() {
    let bytes = hex("\
        70000000000000006ca1c269fe79dd016ca1c269fe79dd01ecd9c369fe79dd01ecd9c369fe79dd01\
        00000000000000000000000000000000100000000200000000000000000000000000000000000000\
        000000000000000000000000000000003f409800000000002e000000000000007000000000000000\
        6ca1c269fe79dd016ca1c269fe79dd01ecd9c369fe79dd01ecd9c369fe79dd010000000000000000\
        00000000000000001000000004000000000000000000000000000000000000000000000000000000\
        000000000000000000000000000000002e002e00000000007000000000000000ac3dc369fe79dd01\
        ac3dc369fe79dd01ac3dc369fe79dd01ac3dc369fe79dd0100000000000000000000000000000000\
        10000000060000000000000000000000000000000000000000000000000000000000000000000000\
        464098000000000064006900720000007800000000000000ecd9c369fe79dd01ecd9c369fe79dd01\
        ecd9c369fe79dd01ecd9c369fe79dd0106000000000000000010000000000000800000000a000000\
        00000000000000000000000000000000000000000000000000000000000000004740980000000000\
        73002e0074007800740000000000000000000000000000006ca1c269fe79dd016ca1c269fe79dd01\
        6ca1c269fe79dd016ca1c269fe79dd01050000000000000000100000000000008000000012000000\
        00000000000000000000000000000000000000000000000000000000000000004540980000000000\
        680065006c006c006f002e00740078007400");
    let entries = listed(FileInfoClass::ID_BOTH_DIRECTORY, &bytes);
    assert_eq!(names(&entries), [".", "..", "dir", "s.txt", "hello.txt"]);
    assert!(entries[0].attributes.contains(FileAttributes::DIRECTORY));
    assert_eq!(entries[0].ea_size, 0);
    assert_eq!(entries[4].end_of_file, 5);
    assert_eq!(entries[4].allocation_size, 4096);
    assert_eq!(entries[4].file_id, 0x98_4045);
    assert_eq!(entries[1].file_id, 0);
}

#[test]
fn cifs_lists_by_class_38_and_sees_a_reparse_tag() {
    let bytes = hex("\
        580000000000000022f0b99ffe79dd01a228bb9ffe79dd0122f0b99ffe79dd0122f0b99ffe79dd01\
        00000000000000000000000000000000100000000200000000000000000000003f40980000000000\
        2e00000000000000580000000000000022f0b99ffe79dd01a228bb9ffe79dd0122f0b99ffe79dd01\
        22f0b99ffe79dd010000000000000000000000000000000010000000040000000000000000000000\
        00000000000000002e002e00000000006000000000000000417a5086fe79dd017f475786fe79dd01\
        4fd66286fe79dd014fd66286fe79dd01000000000000000000000000000000001000000010000000\
        0000000000000000a74198000000000073006d00620032005f006400690072005800000000000000\
        ac3dc369fe79dd01ac3dc369fe79dd01ac3dc369fe79dd01ac3dc369fe79dd010000000000000000\
        00000000000000001000000006000000000000000000000046409800000000006400690072000000\
        780000000000000000ba1141294ede01003ae4577007de0100bab66eb7c0dd0126463a86fe79dd01\
        0700000000000000002000000000000080000000220000002d00000000000000a641980000000000\
        740065007300740073006d00620032005f00660069006c0065002e00640061007400000000000000\
        6000000000000000ecd9c369fe79dd01ecd9c369fe79dd01ecd9c369fe79dd01ecd9c369fe79dd01\
        06000000000000000010000000000000800000000a00000000000000000000004740980000000000\
        73002e00740078007400000000000000580000000000000022f0b99ffe79dd0122f0b99ffe79dd01\
        22f0b99ffe79dd016572ba9ffe79dd01000000000000000000100000000000002004000004000000\
        0c0000a00000000053429800000000006c006e000000000000000000000000006ca1c269fe79dd01\
        85e1b79ffe79dd0185e1b79ffe79dd01e253b99ffe79dd0105000000000000000010000000000000\
        220000000c00000000000000000000004540980000000000680032002e00740078007400");
    let entries = listed(FileInfoClass::ID_FULL_DIRECTORY, &bytes);
    assert_eq!(
        names(&entries),
        [
            ".",
            "..",
            "smb2_dir",
            "dir",
            "testsmb2_file.dat",
            "s.txt",
            "ln",
            "h2.txt"
        ]
    );
    let link = &entries[6];
    assert!(link.attributes.contains(FileAttributes::REPARSE_POINT));
    assert_eq!((link.reparse_tag, link.ea_size), (0xA000_000C, 0));
    assert_eq!((entries[4].reparse_tag, entries[4].ea_size), (0, 45));
}

#[test]
fn cifs_lists_by_class_100() {
    let bytes = hex("\
        900000000000000040177388fe79dd0187488488fe79dd0140177388fe79dd0140177388fe79dd01\
        00000000000000000000000000000000100000003f4098000000000000fe00000000000004000000\
        00000000ff1100000105000000000005150000003f072188a2e7d3be3551a581f501000001020000\
        000000160200000000000000020000002e00000000000000780000000000000040177388fe79dd01\
        87488488fe79dd0140177388fe79dd0140177388fe79dd0100000000000000000000000000000000\
        10000000000000000000000000000000000000000400000000000000ff1100000101000000000000\
        00000000010100000000000000000000040000002e002e009800000000000000417a5086fe79dd01\
        7f475786fe79dd014fd66286fe79dd014fd66286fe79dd0100000000000000000000000000000000\
        10000000a74198000000000000fe0000000000000200000000000000ed1100000105000000000005\
        150000003f072188a2e7d3be3551a581f50100000102000000000016020000000000000010000000\
        73006d00620032005f006400690072009000000000000000ac3dc369fe79dd01ac3dc369fe79dd01\
        ac3dc369fe79dd01ac3dc369fe79dd01000000000000000000000000000000001000000046409800\
        0000000000fe0000000000000200000000000000ed1100000105000000000005150000003f072188\
        a2e7d3be3551a581f501000001020000000000160200000000000000060000006400690072000000\
        b00000000000000000ba1141294ede01003ae4577007de0100bab66eb7c0dd0126463a86fe79dd01\
        0700000000000000002000000000000080000000a64198000000000000fe00000000000001000000\
        00000000e40100000105000000000005150000003f072188a2e7d3be3551a581f501000001020000\
        00000016020000000000000022000000740065007300740073006d00620032005f00660069006c00\
        65002e006400610074000000000000009800000000000000ecd9c369fe79dd01ecd9c369fe79dd01\
        ecd9c369fe79dd01ecd9c369fe79dd01060000000000000000100000000000008000000047409800\
        0000000000fe0000000000000100000000000000a40100000105000000000005150000003f072188\
        a2e7d3be3551a581f5010000010200000000001602000000000000000a00000073002e0074007800\
        740000000000000000000000000000006ca1c269fe79dd016ca1c269fe79dd016ca1c269fe79dd01\
        61ef346cfe79dd010500000000000000001000000000000022000000454098000000000000fe0000\
        000000000100000000000000a40100000105000000000005150000003f072188a2e7d3be3551a581\
        f5010000010200000000001602000000000000000c000000680032002e00740078007400");
    let entries = listed(FileInfoClass::POSIX, &bytes);
    assert_eq!(entries.len(), 7);
    let [dot, .., h2] = entries.as_slice() else {
        panic!("seven entries");
    };
    assert_eq!(dot.posix.device, 0xFE00);
    assert_eq!(dot.file_id, 0x98_403F);
    assert_eq!(dot.posix.create.mode.to_unix(), Some(0o040_777));
    assert_eq!(dot.posix.create.group, Sid::unix_group(0));
    assert_eq!(h2.posix.create.mode.to_unix(), Some(0o100_644));
    assert_eq!(h2.posix.create.number_of_links, 1);
    assert_eq!(text(h2.name), "h2.txt");
    assert_eq!(entries[1].posix.create.owner, Sid::NULL);
}

#[test]
fn smbtorture_lists_by_classes_3_and_12() {
    let bytes = hex("\
        0000000000000000417a5086fe79dd01d0335786fe79dd01d0335786fe79dd01d0335786fe79dd01\
        00000000000000000000000000000000100000000200000000000000000000000000000000000000\
        00000000000000000000000000002e00");
    assert_eq!(names(&listed(FileInfoClass::BOTH_DIRECTORY, &bytes)), ["."]);
    let bytes = hex("\
        1000000000000000020000002e0000000000000000000000040000002e002e00");
    assert_eq!(names(&listed(FileInfoClass::NAMES, &bytes)), [".", ".."]);
}

#[test]
fn all_information() {
    let bytes = hex("\
        6ca1c269fe79dd016ca1c269fe79dd016ca1c269fe79dd016ca1c269fe79dd018000000000000000\
        00100000000000000500000000000000010000000000000045409800000000000000000080000000\
        00000000000000008000000000000000140000005c00680065006c006c006f002e00740078007400");
    let all = FileAllInformation::decode(&bytes).expect("FILE_ALL_INFORMATION");
    assert_eq!(all.basic.created, FileTime(0x01DD_79FE_69C2_A16C));
    assert_eq!(all.basic.attributes, FileAttributes::NORMAL);
    assert_eq!(all.standard.end_of_file, 5);
    assert_eq!(all.standard.number_of_links, 1);
    assert_eq!(all.internal.index_number, 0x98_4045);
    assert_eq!(all.access.access_flags, AccessMask::FILE_READ_ATTRIBUTES);
    assert_eq!(text(all.name.name), "\\hello.txt");
    assert_eq!(written(|out| all.encode(out)), bytes);
}

#[test]
fn alternate_name() {
    let bytes = hex("12000000680065006c006c006f002e00740078007400");
    let alternate = FileNameInformation::decode(&bytes).expect("a name");
    assert_eq!(text(alternate.name), "hello.txt");
    assert_eq!(written(|out| alternate.encode(out)), bytes);
}

#[test]
fn streams() {
    let bytes = hex("\
        000000000e000000050000000000000000100000000000003a003a0024004400410054004100");
    let streams: Vec<_> = Streams::new(&bytes)
        .map(|stream| stream.expect("a stream"))
        .collect();
    assert_eq!(streams.len(), 1);
    assert_eq!(text(streams[0].name), "::$DATA");
    assert_eq!(
        (streams[0].stream_size, streams[0].allocation_size),
        (5, 4096)
    );
    let mut writer = StreamWriter::new(bytes.len());
    assert!(writer.push(&streams[0]));
    assert_eq!(writer.finish(), bytes);
}

#[test]
fn extended_attributes() {
    let bytes = hex("\
        140000000005060045414f4e450056414c55453100000000000808005345434f4e4445410056616c\
        756554776f");
    let eas: Vec<_> = Eas::new(&bytes)
        .map(|ea| ea.expect("an attribute"))
        .collect();
    let pairs: Vec<_> = eas.iter().map(|ea| (ea.name, ea.value)).collect();
    assert_eq!(
        pairs,
        [
            (b"EAONE".as_slice(), b"VALUE1".as_slice()),
            (b"SECONDEA", b"ValueTwo")
        ]
    );
    let mut writer = EaWriter::new(bytes.len());
    assert!(eas.iter().all(|ea| writer.push(ea)));
    assert_eq!(writer.finish(), bytes);
}

#[test]
fn posix_file_information_of_a_symbolic_link() {
    let bytes = hex("\
        22f0b99ffe79dd0122f0b99ffe79dd0122f0b99ffe79dd016572ba9ffe79dd010000000000000000\
        001000000000000020040000534298000000000000fe000000000000010000000c0000a0e4210000\
        0105000000000005150000003f072188a2e7d3be3551a581f5010000010200000000001602000000\
        00000000");
    let information = FilePosixInformation::decode(&bytes).expect("FILE_POSIX_INFO");
    assert_eq!(information.inode, 0x98_4253);
    assert_eq!(information.posix.create.reparse_tag, 0xA000_000C);
    assert_eq!(
        information.posix.create.mode.file_type(),
        PosixFileType::SYMLINK
    );
    assert_eq!(information.posix.create.mode.permissions(), 0o744);
    assert_eq!(written(|out| information.encode(out)), bytes);
}

#[test]
fn sets_of_smbclient_and_cifs() {
    let bytes = hex("\
        ffffffffffffffffffffffffffffffff0000000000000000ffffffffffffffff2200000000000000");
    let basic = FileBasicInformation::decode(&bytes).expect("FILE_BASIC_INFORMATION");
    assert_eq!(basic.created, FileTime::FREEZE);
    assert_eq!(basic.written, FileTime::OMIT);
    assert_eq!(basic.changed, FileTime::FREEZE);
    assert_eq!(
        basic.attributes,
        FileAttributes::ARCHIVE | FileAttributes::HIDDEN
    );
    assert_eq!(written(|out| basic.encode(out)), bytes);

    let bytes = hex("\
        000000000000000000000000000000000c000000680032002e00740078007400");
    let rename = FileRenameInformation::decode(&bytes).expect("FILE_RENAME_INFORMATION");
    assert_eq!(
        (rename.is_replacing, text(rename.name)),
        (false, "h2.txt".into())
    );
    assert_eq!(written(|out| rename.encode(out)), bytes);

    // cifs.ko adds a NUL to the name, which the length does not count.
    let bytes = hex("01000000000000000000000000000000040000006e0032000000");
    let rename = FileRenameInformation::decode(&bytes).expect("FILE_RENAME_INFORMATION");
    assert_eq!(
        (rename.is_replacing, text(rename.name)),
        (true, "n2".into())
    );
    assert_eq!(written(|out| rename.encode(out)), bytes[..24]);

    let bytes = hex("\
        000000000000000000000000000000000e0000005c00680033002e00740078007400");
    let link = FileLinkInformation::decode(&bytes).expect("FILE_LINK_INFORMATION");
    assert_eq!(text(link.name), "\\h3.txt");
    assert_eq!(written(|out| link.encode(out)), bytes);

    let bytes = hex("0100000000000000");
    let end = FileEndOfFileInformation::decode(&bytes).expect("FILE_END_OF_FILE_INFORMATION");
    assert_eq!(end.end_of_file, 1);
    assert_eq!(written(|out| end.encode(out)), bytes);
}

#[test]
fn volume_label_and_sizes() {
    let bytes = hex("ecd9c369fe79dd0148c7db070800000000006400610074006100");
    let volume = FileFsVolumeInformation::decode(&bytes).expect("FILE_FS_VOLUME_INFORMATION");
    assert_eq!(text(volume.label), "data");
    assert_eq!(
        (volume.serial_number, volume.supports_objects),
        (0x07DB_C748, false)
    );
    assert_eq!(written(|out| volume.encode(out)), bytes);

    let bytes = hex("748ebf0f00000000c4e89a04000000000200000000020000");
    let size = FileFsSizeInformation::decode(&bytes).expect("FILE_FS_SIZE_INFORMATION");
    assert_eq!(size.total_allocation_units, 264_212_084);
    assert_eq!(
        (size.sectors_per_allocation_unit, size.bytes_per_sector),
        (2, 512)
    );
    assert_eq!(written(|out| size.encode(out)), bytes);

    let bytes = hex("\
        748ebf0f000000007ce79804000000007ce79804000000000200000000020000");
    let full = FileFsFullSizeInformation::decode(&bytes).expect("FILE_FS_FULL_SIZE_INFORMATION");
    assert_eq!(full.total_allocation_units, 264_212_084);
    assert_eq!(
        full.caller_available_allocation_units,
        full.actual_available_allocation_units
    );
    assert_eq!(written(|out| full.encode(out)), bytes);
}

#[test]
fn volume_device_attributes_and_sectors() {
    let bytes = hex("0700000020000000");
    let device = FileFsDeviceInformation::decode(&bytes).expect("FILE_FS_DEVICE_INFORMATION");
    assert_eq!(device.device_type, DeviceType::DISK);
    assert_eq!(
        device.characteristics,
        DeviceCharacteristics::DEVICE_IS_MOUNTED
    );
    assert_eq!(written(|out| device.encode(out)), bytes);

    let bytes = hex("6f000500ff000000080000004e00540046005300");
    let attribute =
        FileFsAttributeInformation::decode(&bytes).expect("FILE_FS_ATTRIBUTE_INFORMATION");
    assert!(
        attribute
            .attributes
            .contains(FileSystemAttributes::NAMED_STREAMS)
    );
    assert_eq!(attribute.maximum_component_name_length, 255);
    assert_eq!(text(attribute.file_system_name), "NTFS");
    assert_eq!(written(|out| attribute.encode(out)), bytes);

    let bytes = hex("00020000000200000002000000020000030000000000000000000000");
    let sectors =
        FileFsSectorSizeInformation::decode(&bytes).expect("FILE_FS_SECTOR_SIZE_INFORMATION");
    assert_eq!(sectors.logical_bytes_per_sector, 512);
    assert!(sectors.flags.contains(SectorSizeFlags::ALIGNED_DEVICE));
    assert_eq!(written(|out| sectors.encode(out)), bytes);

    let bytes = hex("\
        00100000001000009de3ef03000000009acea90300000000f1392601000000000000000100000000\
        0709f90000000000ed8827515ce72dba");
    let posix = FsPosixInformation::decode(&bytes).expect("FS_POSIX_INFO");
    assert_eq!(
        (posix.optimal_transfer_size, posix.block_size),
        (4096, 4096)
    );
    assert_eq!(posix.total_file_nodes, 16_777_216);
    assert_eq!(written(|out| posix.encode(out)), bytes);
}

#[test]
fn changes_in_a_directory() {
    // Samba pads the last entry too; the writer does not.
    let bytes = hex("\
        2400000001000000160000007300750062006400690072002d006e0061006d006500000024000000\
        02000000160000007300750062006400690072002d006e0061006d00650000002400000001000000\
        160000007300750062006400690072002d006e0061006d0065000000000000000200000016000000\
        7300750062006400690072002d006e0061006d0065000000");
    let changes: Vec<_> = NotifyEntries::new(&bytes)
        .map(|change| change.expect("one"))
        .collect();
    let actions: Vec<_> = changes.iter().map(|change| change.action).collect();
    assert_eq!(
        actions,
        [
            FileAction::ADDED,
            FileAction::REMOVED,
            FileAction::ADDED,
            FileAction::REMOVED
        ]
    );
    assert!(
        changes
            .iter()
            .all(|change| text(change.name) == "subdir-name")
    );
    let mut writer = NotifyWriter::new(bytes.len());
    assert!(changes.iter().all(|change| writer.push(change)));
    assert_eq!(writer.finish(), bytes[..bytes.len() - 2]);
}

#[test]
fn the_security_descriptor_of_a_file() {
    let bytes = hex("\
        01000490140000003000000000000000400000000105000000000005150000003f072188a2e7d3be\
        3551a581f5010000010200000000001602000000000000000200580003000000000024009f011200\
        0105000000000005150000003f072188a2e7d3be3551a581f5010000000018008900120001020000\
        0000001602000000000000000000140089001200010100000000000100000000");
    let descriptor = SecurityDescriptor::decode(&bytes).expect("a descriptor");
    assert!(
        descriptor
            .control
            .contains(DescriptorControl::DACL_PROTECTED)
    );
    assert_eq!(descriptor.group, Some(Sid::unix_group(0)));
    let owner = descriptor.owner.expect("an owner");
    assert_eq!(
        owner.to_string(),
        "S-1-5-21-2283865919-3201558434-2175095093-501"
    );
    let dacl = descriptor.dacl.as_ref().expect("a DACL");
    assert_eq!(dacl.aces().len(), 3);
    assert!(
        dacl.aces()
            .iter()
            .all(|ace| ace.ace_type() == AceType::ACCESS_ALLOWED)
    );
    assert_eq!(written(|out| descriptor.encode(out)), bytes);

    // The same file if Samba had not mapped uid 65534 to another user.
    let ours = SecurityDescriptor::from_unix_mode(65534, 0, 0o644, false);
    assert_eq!(ours.control, descriptor.control);
    let ours = ours.dacl.expect("a DACL");
    assert_eq!(ours.aces()[1..], dacl.aces()[1..]);
}
