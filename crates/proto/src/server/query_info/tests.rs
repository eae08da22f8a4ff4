use alloc::vec;
use alloc::vec::Vec;

use wire::access::{AccessMask, FileAttributes};
use wire::dialect::Dialect;
use wire::fscc::{
    FileAllInformation, FileFsVolumeInformation, FileInfoClass, FileNameInformation,
    FileStandardInformation, FsInfoClass, InfoType,
};
use wire::query_info::{QueryInfoFlags, Request, Response};
use wire::security::{SecurityDescriptor, Sid};
use wire::{FileId, Status, Utf16, error_response};

use crate::server::scripted::{ALL, World, body};

fn world() -> World {
    let mut world = World::new();
    world.disk.add_directory("directory");
    world
        .disk
        .add_file("directory/long name.txt", FileAttributes::ARCHIVE);
    world.disk.add_file("short.txt", FileAttributes::NONE);
    world
}

fn query_as(
    world: &mut World,
    id: FileId,
    info_type: InfoType,
    class: u8,
    parts: u32,
    length: u32,
) -> Result<(Status, Vec<u8>), Status> {
    let request = Request {
        info_type,
        file_info_class: class,
        output_buffer_length: length,
        additional_information: parts,
        flags: QueryInfoFlags::NONE,
        file_id: id,
        input: &[],
    };
    let reply = world.run(super::start, |out| request.encode(out))?;
    let body = body(&reply);
    if reply.status.is_error() {
        return Ok((reply.status, body));
    }
    let output = Response::decode(&body).expect("a response").output;
    assert!(output.len() <= length as usize);
    Ok((reply.status, output.to_vec()))
}

fn query(world: &mut World, id: FileId, class: u8, length: u32) -> Result<Vec<u8>, Status> {
    let (status, output) = query_as(world, id, InfoType::FILE, class, 0, length)?;
    assert_eq!(status, Status::SUCCESS);
    Ok(output)
}

const LONG: &str = "directory/long name.txt";

#[test]
fn every_class_has_its_length() {
    let mut world = world();
    let id = world.open(LONG, ALL);
    for (class, length) in [
        (4, 40),
        (5, 24),
        (6, 8),
        (7, 4),
        (8, 4),
        (14, 8),
        (16, 4),
        (17, 4),
        (22, 24 + 14),
        (28, 16),
        (34, 56),
        (35, 8),
        (59, 24),
        (68, 72),
        (70, 96),
        (71, 4),
    ] {
        let output = query(&mut world, id, class, 4096).expect("a supported class");
        assert_eq!(output.len(), length, "{class}");
    }
}

#[test]
fn names_come_with_and_without_a_separator_in_front() {
    let mut world = world();
    let id = world.open(LONG, ALL);
    let mut name = |class| {
        let output = query(&mut world, id, class, 4096).expect("a name");
        let Utf16(name) = FileNameInformation::decode(&output).expect("a name").name;
        Utf16(name).decode().expect("good text")
    };
    assert_eq!(name(9), "\\directory\\long name.txt");
    assert_eq!(name(48), "directory\\long name.txt");
    let output = query(&mut world, id, 18, 4096).expect("everything");
    let all = FileAllInformation::decode(&output).expect("everything");
    assert_eq!(
        all.name.name.decode().as_deref(),
        Some("\\directory\\long name.txt")
    );
    assert_eq!(all.access.access_flags, ALL);
}

/// smbclient's allinfo asks for class 21; it must get an answer, not a closed connection.
#[test]
fn only_a_name_that_is_short_has_a_short_name() {
    let mut world = world();
    let id = world.open(LONG, ALL);
    let long = query(&mut world, id, 21, 4096);
    assert_eq!(long, Err(Status::OBJECT_NAME_NOT_FOUND));
    let id = world.open("short.txt", ALL);
    query(&mut world, id, 21, 4096).expect("it is short");
}

#[test]
fn a_buffer_too_short_for_the_fixed_part_gets_nothing_and_for_the_name_a_part() {
    let mut world = world();
    let id = world.open(LONG, ALL);
    for class in [4, 5, 6, 7, 8, 9, 14, 16, 17, 18, 21, 22, 28, 34, 35, 48, 59] {
        let fixed_len = FileInfoClass(class).fixed_len().expect("a fixed part");
        let short = u32::try_from(fixed_len).expect("a short one") - 1;
        let refused = query(&mut world, id, class, short);
        assert_eq!(refused, Err(Status::INFO_LENGTH_MISMATCH), "{class}");
    }
    let part = query_as(&mut world, id, InfoType::FILE, 18, 0, 110);
    let (status, output) = part.expect("a part");
    assert_eq!((status, output.len()), (Status::BUFFER_OVERFLOW, 110));
}

/// CVE-2026-31478: another server took the length of the answer from a table.
#[test]
fn no_answer_is_longer_than_its_buffer() {
    let mut world = world();
    let id = world.open(LONG, ALL);
    for info_type in 0..6 {
        for class in 0..=255 {
            for length in [0, 1, 4, 7, 8, 16, 24, 40, 100, 104, 120, 4096] {
                let _ = query_as(&mut world, id, InfoType(info_type), class, 7, length);
            }
        }
    }
}

#[test]
fn a_class_that_is_not_known_is_no_reason_to_hang_up() {
    let mut world = world();
    let id = world.open(LONG, ALL);
    for class in [0, 1, 10, 11, 13, 23, 29, 64, 69, 100, 255] {
        let refused = query(&mut world, id, class, 4096);
        assert_eq!(refused, Err(Status::INVALID_INFO_CLASS), "{class}");
    }
    world.dialect = Dialect::SMB_3_0_2;
    assert_eq!(query(&mut world, id, 48, 4096), Err(Status::NOT_SUPPORTED));
    assert_eq!(query(&mut world, id, 15, 4096), Err(Status::NO_EAS_ON_FILE));
    let too_much = query(&mut world, id, 4, (8 << 20) + 1);
    assert_eq!(too_much, Err(Status::INVALID_PARAMETER));
}

#[test]
fn some_classes_need_a_right_and_others_none() {
    let mut world = world();
    let id = world.open(LONG, AccessMask::FILE_WRITE_DATA);
    for class in [4, 18, 34, 35, 15] {
        let denied = query(&mut world, id, class, 4096);
        assert_eq!(denied, Err(Status::ACCESS_DENIED), "{class}");
    }
    query(&mut world, id, 5, 4096).expect("no right is needed");
    let nothing = query_as(&mut world, id, InfoType::SECURITY, 0, 0, 4096);
    let (_, nothing) = nothing.expect("no part needs no right");
    let nothing = SecurityDescriptor::decode(&nothing).expect("a descriptor");
    assert!(nothing.owner.is_none() && nothing.group.is_none() && nothing.dacl.is_none());
    let denied = query_as(&mut world, id, InfoType::SECURITY, 0, 7, 4096);
    assert_eq!(denied, Err(Status::ACCESS_DENIED));
}

#[test]
fn a_file_that_is_to_go_says_so_and_has_a_name_less() {
    let mut world = world();
    let id = world.open(LONG, ALL);
    let open = world.session.opens.lock()[&id.volatile].clone();
    let files = &world.server.files;
    files.set_delete_pending(open.key, open.file, false);
    let output = query(&mut world, id, 5, 4096).expect("no right is needed");
    let standard = FileStandardInformation::decode(&output).expect("the class");
    assert!(standard.is_delete_pending);
    assert_eq!(standard.number_of_links, 0);
}

#[test]
fn the_file_system_reports_its_label_and_space() {
    let mut world = world();
    let id = world.open("", AccessMask::FILE_READ_ATTRIBUTES);
    let mut ask = |class: FsInfoClass, length| {
        query_as(&mut world, id, InfoType::FILESYSTEM, class.0, 0, length)
    };
    let (_, output) = ask(FsInfoClass::VOLUME, 4096).expect("the volume");
    let volume = FileFsVolumeInformation::decode(&output).expect("the class");
    assert_eq!(volume.label.decode().as_deref(), Some("share"));
    let (status, output) = ask(FsInfoClass::VOLUME, 24).expect("a part");
    assert_eq!((status, output.len()), (Status::BUFFER_OVERFLOW, 24));
    for (class, length) in [
        (3, 24),
        (4, 8),
        (5, 20),
        (6, 48),
        (7, 32),
        (8, 64),
        (11, 28),
    ] {
        let (_, output) = ask(FsInfoClass(class), 4096).expect("a supported class");
        assert_eq!(output.len(), length, "{class}");
    }
    for class in [0, 2, 9, 100] {
        let refused = ask(FsInfoClass(class), 4096);
        assert_eq!(refused, Err(Status::INVALID_INFO_CLASS), "{class}");
    }
    let short = ask(FsInfoClass::SIZE, 23);
    assert_eq!(short, Err(Status::INFO_LENGTH_MISMATCH));
}

#[test]
fn a_descriptor_is_returned_in_full_or_by_its_length() {
    let mut world = world();
    let id = world.open(LONG, ALL);
    let mut ask = |parts, length| query_as(&mut world, id, InfoType::SECURITY, 0, parts, length);
    let (_, output) = ask(7, 4096).expect("a descriptor");
    let descriptor = SecurityDescriptor::decode(&output).expect("a descriptor");
    assert_eq!(descriptor.owner, Some(Sid::unix_user(1000)));
    assert!(descriptor.dacl.is_some());
    let needed = u32::try_from(output.len()).expect("a short one");
    let (status, message) = ask(7, needed - 1).expect("an error with data");
    assert_eq!(status, Status::BUFFER_TOO_SMALL);
    let error = error_response::Response::decode(&message).expect("an error");
    let contexts = error_response::decode_contexts(error.error_data, error.context_count);
    let contexts = contexts.expect("contexts");
    assert_eq!(contexts[0].data, needed.to_le_bytes());
    let (_, output) = ask(1, 4096).expect("an owner");
    let owner = SecurityDescriptor::decode(&output).expect("a descriptor");
    assert!(owner.owner.is_some() && owner.group.is_none() && owner.dacl.is_none());
    assert_eq!(ask(8, 4096), Err(Status::ACCESS_DENIED));
}

/// As with Windows and Samba; smb-rs checks this.
#[test]
fn a_write_moves_no_position() {
    const POSITION: u8 = 14;
    let mut world = world();
    let id = world.open(LONG, ALL);
    let request = wire::write::Request {
        offset: 3,
        file_id: id,
        channel: wire::read::Channel::NONE,
        remaining_bytes: 0,
        channel_info: &[],
        flags: wire::write::WriteFlags::NONE,
        data_offset: 0,
        data: &[1, 2, 3],
    };
    let reply = world.run(crate::server::write::start, |out| request.encode(out));
    assert_eq!(reply.map(|reply| reply.status), Ok(Status::SUCCESS));
    assert_eq!(query(&mut world, id, POSITION, 8), Ok(vec![0; 8]));
}
