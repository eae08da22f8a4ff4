use alloc::vec::Vec;

use wire::access::{AccessMask, CreateOptions, FileAttributes, ShareAccess};
use wire::fscc::{FileBasicInformation, FileInfoClass, FileRenameInformation, InfoType};
use wire::security::{Ace, AceFlags, Acl, SecurityDescriptor, SecurityInformation, Sid};
use wire::set_info::Request;
use wire::text::utf16;
use wire::{FileId, FileTime, Status, Utf16};

use crate::file::{FileOp, Operation};
use crate::server::scripted::{ALL, SHARE_ALL, World, request};

const WRITES: AccessMask = AccessMask::FILE_WRITE_DATA;

fn world() -> World {
    let mut world = World::new();
    world.disk.add_file("a", FileAttributes::ARCHIVE);
    world.disk.add_file("b", FileAttributes::ARCHIVE);
    world.disk.add_file("fixed", FileAttributes::READONLY);
    world.disk.add_directory("d");
    world.disk.add_file("d/f", FileAttributes::NONE);
    world.disk.add_directory("e");
    world
}

fn set_as(
    world: &mut World,
    id: FileId,
    info_type: InfoType,
    class: u8,
    parts: u32,
    buffer: &[u8],
) -> Status {
    let request = Request {
        info_type,
        file_info_class: class,
        additional_information: parts,
        file_id: id,
        buffer,
    };
    match world.run(super::start, |out| request.encode(out)) {
        Ok(reply) => reply.status,
        Err(status) => status,
    }
}

fn set(world: &mut World, id: FileId, class: FileInfoClass, buffer: &[u8]) -> Status {
    set_as(world, id, InfoType::FILE, class.0, 0, buffer)
}

fn set_basic(
    world: &mut World,
    id: FileId,
    change: impl FnOnce(&mut FileBasicInformation),
) -> Status {
    let mut information = FileBasicInformation::default();
    change(&mut information);
    let mut buffer = Vec::new();
    information.encode(&mut buffer);
    set(world, id, FileInfoClass::BASIC, &buffer)
}

fn target(to: &str, replace: bool) -> Vec<u8> {
    let name = utf16(to);
    let mut buffer = Vec::new();
    FileRenameInformation {
        is_replacing: replace,
        root_directory: 0,
        name: Utf16(&name),
    }
    .encode(&mut buffer);
    buffer
}

fn rename(world: &mut World, id: FileId, to: &str, replace: bool) -> Status {
    set(world, id, FileInfoClass::RENAME, &target(to, replace))
}

fn open_sharing(world: &mut World, name: &str, access: AccessMask, share: ShareAccess) -> FileId {
    let name = utf16(name);
    let mut request = request(&name);
    request.desired_access = access;
    request.share_access = share;
    world.create(&request).expect("it opens").id
}

/// CVE-2026-52944, CVE-2026-1933: every class, on a share and through an open that lets nothing
/// change.
#[test]
fn nothing_is_set_on_a_read_only_share_or_through_a_reading_open() {
    let reading = AccessMask(0x0012_00A9);
    let mut read_only = World::read_only();
    read_only.disk.add_file("a", FileAttributes::NONE);
    for mut world in [read_only, world()] {
        let id = world.open("a", reading);
        world.disk.asked();
        for info_type in 0..5 {
            // Links need no right of the open.
            let links = [FileInfoClass::LINK.0, FileInfoClass::LINK_EX.0];
            for class in (0..=255).filter(|class| !links.contains(class)) {
                let _ = set_as(&mut world, id, InfoType(info_type), class, 7, &[1; 256]);
            }
        }
        assert!(world.disk.asked().is_empty());
    }
    let mut world = World::read_only();
    world.disk.add_file("a", FileAttributes::NONE);
    let id = world.open("a", reading);
    let link = set(&mut world, id, FileInfoClass::LINK, &target("new", false));
    assert_eq!(link, Status::ACCESS_DENIED);
}

#[test]
fn a_buffer_shorter_than_its_class_is_refused() {
    let mut world = world();
    let id = world.open("a", ALL);
    for class in [4, 10, 11, 13, 14, 16, 19, 20, 39] {
        let class = FileInfoClass(class);
        let fixed_len = class.fixed_len().expect("a fixed part");
        for length in 0..fixed_len {
            let buffer = alloc::vec![0; length];
            let status = set(&mut world, id, class, &buffer);
            assert_eq!(status, Status::INFO_LENGTH_MISMATCH, "{class:?} {length}");
        }
    }
}

#[test]
fn unsupported_classes_are_refused() {
    let mut world = world();
    let id = world.open("a", ALL);
    for (class, expected) in [
        (5, Status::INVALID_INFO_CLASS),
        (15, Status::INVALID_EA_NAME),
        (39, Status::PRIVILEGE_NOT_HELD),
        (40, Status::PRIVILEGE_NOT_HELD),
        (255, Status::INVALID_INFO_CLASS),
    ] {
        assert_eq!(
            set(&mut world, id, FileInfoClass(class), &[0; 64]),
            expected
        );
    }
    let label = set_as(&mut world, id, InfoType::FILESYSTEM, 2, 0, &[0; 8]);
    assert_eq!(label, Status::NOT_SUPPORTED);
}

#[test]
fn times_are_set_preserved_and_released() {
    let mut world = world();
    let id = world.open("a", ALL);
    let kept = |world: &World| {
        let open = world.session.opens.lock()[&id.volatile].clone();
        open.kept_write_time()
    };
    let ok = Status::SUCCESS;
    assert_eq!(
        set_basic(&mut world, id, |it| it.written = FileTime(77)),
        ok
    );
    assert_eq!(world.disk.files["a"].written, FileTime(77));
    assert_eq!(kept(&world), Some(FileTime(77)));
    assert_eq!(
        set_basic(&mut world, id, |it| it.written = FileTime::THAW),
        ok
    );
    assert_eq!(kept(&world), None);
    assert_eq!(
        set_basic(&mut world, id, |it| it.written = FileTime::FREEZE),
        ok
    );
    assert_eq!(kept(&world), Some(FileTime(77)));
    for time in [FileTime(u64::MAX - 2), FileTime(1 << 63)] {
        let refused = set_basic(&mut world, id, |it| it.created = time);
        assert_eq!(refused, Status::INVALID_PARAMETER);
    }
}

/// smbtorture smb2.setinfo
#[test]
fn attributes_fit_the_kind_of_file() {
    let mut world = world();
    let file = world.open("a", ALL);
    let directory = world.open("d", ALL);
    let mut attributes =
        |id, attributes| set_basic(&mut world, id, |it| it.attributes = attributes);
    let invalid = Status::INVALID_PARAMETER;
    assert_eq!(attributes(file, FileAttributes::DIRECTORY), invalid);
    assert_eq!(attributes(directory, FileAttributes::TEMPORARY), invalid);
    assert_eq!(attributes(file, FileAttributes::NONE), Status::SUCCESS);
    assert_eq!(attributes(file, FileAttributes::HIDDEN), Status::SUCCESS);
    assert_eq!(attributes(file, FileAttributes::NORMAL), Status::SUCCESS);
    assert_eq!(world.disk.files["a"].attributes, FileAttributes::NONE);
    assert_eq!(world.disk.asked(), ["SetBasic", "SetBasic"]);
}

#[test]
fn a_file_gets_another_name_and_keeps_its_opens() {
    let mut world = world();
    let id = world.open("a", ALL);
    let other = world.open("a", AccessMask::FILE_READ_DATA);
    assert_eq!(rename(&mut world, id, "\\d\\new", false), Status::SUCCESS);
    assert!(world.disk.has("d/new") && !world.disk.has("a"));
    for id in [id, other] {
        let open = world.session.opens.lock()[&id.volatile].clone();
        let path = world.server.files.path(open.key, open.file);
        assert_eq!(path.expect("it is open").as_str(), "d/new");
    }
}

#[test]
fn a_name_that_is_taken_is_given_only_where_that_is_asked_and_possible() {
    let mut world = world();
    let id = world.open("a", ALL);
    assert_eq!(
        rename(&mut world, id, "b", false),
        Status::OBJECT_NAME_COLLISION
    );
    assert_eq!(rename(&mut world, id, "fixed", true), Status::ACCESS_DENIED);
    assert_eq!(rename(&mut world, id, "e", true), Status::ACCESS_DENIED);
    let holder = world.open("b", AccessMask::FILE_READ_DATA);
    assert_eq!(rename(&mut world, id, "b", true), Status::ACCESS_DENIED);
    let _ = world.close(holder).expect("it is open");
    assert_eq!(rename(&mut world, id, "b", true), Status::SUCCESS);
    assert_eq!(rename(&mut world, id, "B", false), Status::SUCCESS);
}

/// smbtorture smb2.rename
#[test]
fn opens_of_directories_are_in_the_way_of_a_rename() {
    let mut world = world();
    let directory = world.open("d", ALL);
    let below = world.open("d/f", AccessMask::FILE_READ_DATA);
    assert_eq!(
        rename(&mut world, directory, "x", false),
        Status::ACCESS_DENIED
    );
    // An open of the target directory prevents the rename if it has DELETE access or does not
    // share writes. An open for reading attributes does not.
    let id = world.open("a", ALL);
    assert_eq!(
        rename(&mut world, id, "d\\x", false),
        Status::SHARING_VIOLATION
    );
    let _ = world.close(directory).expect("it is open");
    let deaf = open_sharing(&mut world, "d", WRITES, ShareAccess::NONE);
    assert_eq!(
        rename(&mut world, id, "d\\x", false),
        Status::SHARING_VIOLATION
    );
    let _ = world.close(deaf).expect("it is open");
    let looks = AccessMask::FILE_READ_ATTRIBUTES;
    open_sharing(&mut world, "d", looks, ShareAccess::NONE);
    open_sharing(&mut world, "d", WRITES, SHARE_ALL);
    assert_eq!(rename(&mut world, id, "d\\x", false), Status::SUCCESS);
    let _ = world.close(below).expect("it is open");
}

#[test]
fn names_that_are_none_are_refused() {
    let mut world = world();
    let id = world.open("a", ALL);
    for (name, expected) in [
        ("", Status::INVALID_PARAMETER),
        ("\\", Status::INVALID_PARAMETER),
        ("a:b", Status::OBJECT_NAME_INVALID),
        (":b", Status::OBJECT_NAME_INVALID),
        ("..\\b", Status::OBJECT_PATH_SYNTAX_BAD),
        ("b*", Status::OBJECT_NAME_INVALID),
    ] {
        assert_eq!(rename(&mut world, id, name, false), expected, "{name:?}");
    }
    let weak = world.open("a", WRITES);
    assert_eq!(rename(&mut world, weak, "x", false), Status::ACCESS_DENIED);
    let root = world.open("", AccessMask::DELETE);
    assert_eq!(rename(&mut world, root, "x", false), Status::ACCESS_DENIED);
}

#[test]
fn a_further_name_needs_no_right_of_the_open() {
    let mut world = world();
    let id = world.open("a", AccessMask::FILE_READ_ATTRIBUTES);
    let mut link = |id, to, replace| set(&mut world, id, FileInfoClass::LINK, &target(to, replace));
    assert_eq!(link(id, "new", false), Status::SUCCESS);
    assert_eq!(link(id, "b", false), Status::OBJECT_NAME_COLLISION);
    let directory = world.open("d", ALL);
    let refused = set(
        &mut world,
        directory,
        FileInfoClass::LINK,
        &target("x", false),
    );
    assert_eq!(refused, Status::FILE_IS_A_DIRECTORY);
}

#[test]
fn a_rename_with_flags_replaces_what_they_permit() {
    let mut world = world();
    world.disk.add_file("protected", FileAttributes::READONLY);
    let ex = |world: &mut World, id, to: &str, flags: u32| {
        let mut buffer = target(to, false);
        buffer[..4].copy_from_slice(&flags.to_le_bytes());
        set(world, id, FileInfoClass::RENAME_EX, &buffer)
    };
    let id = world.open("a", ALL);
    let open = world.open("b", ALL);
    assert_eq!(ex(&mut world, id, "b", 0), Status::OBJECT_NAME_COLLISION);
    assert_eq!(ex(&mut world, id, "b", 1), Status::ACCESS_DENIED);
    assert_eq!(ex(&mut world, id, "protected", 1), Status::ACCESS_DENIED);
    assert_eq!(ex(&mut world, id, "x", 0x80), Status::INVALID_PARAMETER);
    assert_eq!(ex(&mut world, id, "protected", 0x41), Status::SUCCESS);
    assert_eq!(ex(&mut world, id, "b", 3), Status::SUCCESS);
    assert!(!world.disk.has("a") && !world.disk.has("protected"));
    let _ = world.close(open).expect("it is open");
}

#[test]
fn a_link_with_flags_replaces_what_they_permit() {
    let mut world = world();
    world.disk.add_file("protected", FileAttributes::READONLY);
    let ex = |world: &mut World, id, to: &str, flags: u32| {
        let mut buffer = target(to, false);
        buffer[..4].copy_from_slice(&flags.to_le_bytes());
        set(world, id, FileInfoClass::LINK_EX, &buffer)
    };
    let id = world.open("a", AccessMask::FILE_READ_ATTRIBUTES);
    let open = world.open("b", ALL);
    assert_eq!(ex(&mut world, id, "new", 0), Status::SUCCESS);
    assert_eq!(ex(&mut world, id, "b", 0), Status::OBJECT_NAME_COLLISION);
    assert_eq!(ex(&mut world, id, "b", 1), Status::ACCESS_DENIED);
    assert_eq!(ex(&mut world, id, "b", 3), Status::SUCCESS);
    assert_eq!(ex(&mut world, id, "protected", 1), Status::ACCESS_DENIED);
    assert_eq!(ex(&mut world, id, "protected", 0x41), Status::SUCCESS);
    assert_eq!(ex(&mut world, id, "x", 0x80), Status::INVALID_PARAMETER);
    let directory = world.open("d", ALL);
    let refused = ex(&mut world, directory, "y", 0);
    assert_eq!(refused, Status::FILE_IS_A_DIRECTORY);
    let _ = world.close(open).expect("it is open");
}

#[test]
fn a_deletion_with_posix_semantics_frees_the_name_at_once() {
    let mut world = world();
    let ex = |world: &mut World, id, flags: u32| {
        let class = FileInfoClass::DISPOSITION_EX;
        set(world, id, class, &flags.to_le_bytes())
    };
    let (other, id) = (world.open("a", ALL), world.open("a", ALL));
    assert_eq!(ex(&mut world, id, 0x20), Status::INVALID_PARAMETER);
    assert_eq!(ex(&mut world, id, 0x09), Status::NOT_SUPPORTED);
    assert_eq!(ex(&mut world, id, 3), Status::SUCCESS);
    assert_eq!(ex(&mut world, id, 0), Status::SUCCESS);
    let _ = world.close(id).expect("it is open");
    assert!(world.disk.has("a"), "the deletion was taken back");
    let id = world.open("a", ALL);
    assert_eq!(ex(&mut world, id, 3), Status::SUCCESS);
    let _ = world.close(id).expect("it is open");
    assert!(!world.disk.has("a"));
    assert_eq!(world.disk.open_count(), 1);
    let _ = world.close(other).expect("it is open");
    assert_eq!(world.disk.open_count(), 0);
}

#[test]
fn a_deletion_ignores_readonly_if_the_client_may_change_it() {
    let mut world = world();
    world.disk.add_file("protected", FileAttributes::READONLY);
    let ex = |world: &mut World, id, flags: u32| {
        let class = FileInfoClass::DISPOSITION_EX;
        set(world, id, class, &flags.to_le_bytes())
    };
    let weak = world.open("protected", AccessMask::DELETE);
    assert_eq!(ex(&mut world, weak, 0x11), Status::ACCESS_DENIED);
    assert_eq!(ex(&mut world, weak, 1), Status::CANNOT_DELETE);
    let _ = world.close(weak).expect("it is open");
    let rights = AccessMask::DELETE | AccessMask::FILE_WRITE_ATTRIBUTES;
    let id = world.open("protected", rights);
    assert_eq!(ex(&mut world, id, 0x11), Status::SUCCESS);
    let _ = world.close(id).expect("it is open");
    assert!(!world.disk.has("protected"));
}

#[test]
fn a_disposition_is_set_and_taken_back() {
    let mut world = world();
    let dispose = |world: &mut World, name: &str, access, delete: u8| {
        let id = world.open(name, access);
        let status = set(world, id, FileInfoClass::DISPOSITION, &[delete]);
        let _ = set(world, id, FileInfoClass::DISPOSITION, &[0]);
        let _ = world.close(id).expect("it is open");
        status
    };
    let delete = AccessMask::DELETE;
    assert_eq!(dispose(&mut world, "a", delete, 1), Status::SUCCESS);
    assert_eq!(dispose(&mut world, "a", WRITES, 1), Status::ACCESS_DENIED);
    assert_eq!(
        dispose(&mut world, "fixed", delete, 1),
        Status::CANNOT_DELETE
    );
    assert_eq!(
        dispose(&mut world, "d", delete, 1),
        Status::DIRECTORY_NOT_EMPTY
    );
    assert_eq!(dispose(&mut world, "e", delete, 1), Status::SUCCESS);
    assert_eq!(dispose(&mut world, "", delete, 1), Status::CANNOT_DELETE);
    assert!(world.disk.has("a") && world.disk.has("e"));
    let id = world.open("a", delete);
    assert_eq!(
        set(&mut world, id, FileInfoClass::DISPOSITION, &[1]),
        Status::SUCCESS
    );
    let _ = world.close(id).expect("it is open");
    assert!(!world.disk.has("a"));
}

#[test]
fn taking_a_disposition_back_closes_the_open_that_was_parked_for_it() {
    let mut world = world();
    let name = utf16("a");
    let mut doomed = request(&name);
    doomed.create_options = CreateOptions::DELETE_ON_CLOSE;
    let first = world.create(&doomed).expect("it opens").id;
    let second = world.open("a", AccessMask::DELETE);
    let _ = world.close(first).expect("it is open");
    assert_eq!(world.disk.open_count(), 2);
    assert_eq!(
        set(&mut world, second, FileInfoClass::DISPOSITION, &[0]),
        Status::SUCCESS
    );
    assert_eq!(world.disk.open_count(), 1);
}

/// KS#75755d6: an end of file of 0 underflowed in another server.
#[test]
fn sizes_have_limits_and_directories_none() {
    let mut world = world();
    let id = world.open("a", WRITES);
    let directory = world.open("d", WRITES);
    let weak = world.open("a", AccessMask::FILE_APPEND_DATA);
    for class in [FileInfoClass::END_OF_FILE, FileInfoClass::ALLOCATION] {
        for (size, expected) in [
            (0_u64, Status::SUCCESS),
            (1, Status::SUCCESS),
            (0x0FFF_FFFF_0000, Status::SUCCESS),
            (0x0FFF_FFFF_0001, Status::INVALID_PARAMETER),
            (i64::MAX as u64, Status::INVALID_PARAMETER),
            (1 << 63, Status::INVALID_PARAMETER),
            (u64::MAX, Status::INVALID_PARAMETER),
        ] {
            let buffer = size.to_le_bytes();
            assert_eq!(set(&mut world, id, class, &buffer), expected, "{size:#x}");
        }
        let of_directory = set(&mut world, directory, class, &[0; 8]);
        assert_eq!(of_directory, Status::INVALID_PARAMETER);
        assert_eq!(set(&mut world, weak, class, &[0; 8]), Status::ACCESS_DENIED);
    }
}

#[test]
fn position_and_mode_are_kept() {
    let mut world = world();
    let id = world.open("a", AccessMask::FILE_READ_DATA);
    let mut set = |class, value: &[u8]| set(&mut world, id, class, value);
    let (ok, invalid) = (Status::SUCCESS, Status::INVALID_PARAMETER);
    assert_eq!(set(FileInfoClass::POSITION, &500_u64.to_le_bytes()), ok);
    assert_eq!(
        set(FileInfoClass::POSITION, &u64::MAX.to_le_bytes()),
        invalid
    );
    for (mode, expected) in [
        (0_u32, ok),
        (2, ok),
        (4, ok),
        (6, ok),
        (1, invalid),
        (16, invalid),
    ] {
        assert_eq!(
            set(FileInfoClass::MODE, &mode.to_le_bytes()),
            expected,
            "{mode}"
        );
    }
}

fn set_dacl(world: &mut World, id: FileId, aces: &[(Sid, u32)], parts: u32) -> Status {
    let mut dacl = Acl::new();
    for (sid, mask) in aces {
        assert!(dacl.push(Ace::allow(*sid, AccessMask(*mask), AceFlags::NONE)));
    }
    let descriptor = SecurityDescriptor {
        owner: Some(Sid::unix_user(1000)),
        group: Some(Sid::unix_group(77)),
        dacl: Some(dacl),
        ..SecurityDescriptor::default()
    };
    let mut buffer = Vec::new();
    descriptor.encode(&mut buffer);
    set_as(world, id, InfoType::SECURITY, 0, parts, &buffer)
}

/// The parts of the last change that the file system received.
fn changed(world: &World) -> Option<SecurityInformation> {
    match world.disk.log.last() {
        Some(FileOp::OnOpen(_, Operation::SetSecurity(change))) => Some(change.parts),
        _ => None,
    }
}

#[test]
fn the_named_parts_are_changed() {
    let mut world = world();
    let id = world.open("a", ALL);
    let full = [(Sid::EVERYONE, ALL.0)];
    assert_eq!(set_dacl(&mut world, id, &full, 7), Status::SUCCESS);
    assert_eq!(changed(&world), Some(SecurityInformation(7)));
    assert_eq!(set_dacl(&mut world, id, &full, 4), Status::SUCCESS);
    assert_eq!(changed(&world), Some(SecurityInformation::DACL));
    // Other parts are not stored.
    for parts in [0, 0x1_0070] {
        assert_eq!(set_dacl(&mut world, id, &full, parts), Status::SUCCESS);
    }
    let operations = world.disk.log.iter();
    let changes =
        operations.filter(|op| matches!(op, FileOp::OnOpen(_, Operation::SetSecurity(_))));
    assert_eq!(changes.count(), 2);
    let mut empty = Vec::new();
    SecurityDescriptor::default().encode(&mut empty);
    let null = set_as(&mut world, id, InfoType::SECURITY, 0, 7, &empty);
    assert_eq!(null, Status::SUCCESS);
    assert_eq!(changed(&world), Some(SecurityInformation::DACL));
}

#[test]
fn each_part_of_a_descriptor_needs_its_right() {
    let mut world = world();
    let id = world.open("a", ALL);
    let garbage = set_as(&mut world, id, InfoType::SECURITY, 0, 4, &[1; 64]);
    assert_eq!(garbage, Status::INVALID_SECURITY_DESCR);
    let dac = world.open("a", AccessMask::WRITE_DAC);
    assert_eq!(set_dacl(&mut world, dac, &[], 4), Status::SUCCESS);
    for parts in [1, 2, 7] {
        let denied = set_dacl(&mut world, dac, &[], parts);
        assert_eq!(denied, Status::ACCESS_DENIED, "{parts}");
    }
    let owner = world.open("a", AccessMask::WRITE_OWNER);
    assert_eq!(set_dacl(&mut world, owner, &[], 3), Status::SUCCESS);
    assert_eq!(set_dacl(&mut world, owner, &[], 4), Status::ACCESS_DENIED);
    let sacl = SecurityDescriptor {
        sacl: Some(Acl::new()),
        ..SecurityDescriptor::default()
    };
    let mut buffer = Vec::new();
    sacl.encode(&mut buffer);
    let denied = set_as(&mut world, id, InfoType::SECURITY, 0, 8, &buffer);
    assert_eq!(denied, Status::ACCESS_DENIED);
}
