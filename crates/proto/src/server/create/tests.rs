use wire::access::{
    AccessMask, CreateDisposition, CreateOptions, FileAttributes, ImpersonationLevel, ShareAccess,
};
use wire::create::{CreateAction, Request};
use wire::create_context::{RawContext, name};
use wire::text::utf16;
use wire::{Status, Utf16};

use crate::server::config::Limits;
use crate::server::scripted::{ALL, Created, World, disk_share, request};

const READ: AccessMask = AccessMask::FILE_READ_DATA;
const WRITE: AccessMask = AccessMask::FILE_WRITE_DATA;

fn world() -> World {
    let mut world = World::new();
    world.disk.add_file("there", FileAttributes::NONE);
    world.disk.add_file(
        "readonly",
        FileAttributes::READONLY | FileAttributes::ARCHIVE,
    );
    world
        .disk
        .add_file("hidden", FileAttributes::HIDDEN | FileAttributes::SYSTEM);
    world.disk.add_directory("directory");
    world
}

fn create(
    world: &mut World,
    file: &str,
    change: impl FnOnce(&mut Request<'_>),
) -> Result<Created, Status> {
    let name = utf16(file);
    let mut request = request(&name);
    change(&mut request);
    world.create(&request)
}

fn status(world: &mut World, file: &str, change: impl FnOnce(&mut Request<'_>)) -> Status {
    match create(world, file, change) {
        Ok(created) => {
            let _ = world.close(created.id).expect("what is open closes");
            Status::SUCCESS
        }
        Err(status) => status,
    }
}

#[test]
fn every_disposition_meets_files_that_are_there_and_that_are_not() {
    use CreateAction as A;
    use CreateDisposition as D;
    let not_found = Err(Status::OBJECT_NAME_NOT_FOUND);
    let collision = Err(Status::OBJECT_NAME_COLLISION);
    let denied = Err(Status::ACCESS_DENIED);
    // Disposition; with a file, without one, with one that is READONLY.
    let table = [
        (D::SUPERSEDE, Ok(A::SUPERSEDED), Ok(A::CREATED), denied),
        (D::OPEN, Ok(A::OPENED), not_found, Ok(A::OPENED)),
        (D::CREATE, collision, Ok(A::CREATED), collision),
        (D::OPEN_IF, Ok(A::OPENED), Ok(A::CREATED), Ok(A::OPENED)),
        (D::OVERWRITE, Ok(A::OVERWRITTEN), not_found, denied),
        (D::OVERWRITE_IF, Ok(A::OVERWRITTEN), Ok(A::CREATED), denied),
    ];
    for (disposition, with, without, with_readonly) in table {
        for (file, expected) in [
            ("there", with),
            ("new", without),
            ("readonly", with_readonly),
        ] {
            let mut world = world();
            let action = create(&mut world, file, |request| {
                request.create_disposition = disposition;
                request.desired_access = READ | AccessMask::DELETE;
            });
            let action = action.map(|created| created.action);
            assert_eq!(action, expected, "{disposition:?} {file}");
            let open_count = usize::from(expected.is_ok());
            assert_eq!(
                world.disk.open_count(),
                open_count,
                "{disposition:?} {file}"
            );
        }
    }
}

/// CVE-2023-4091: the check used the requested rights, so that a client with read access could
/// truncate a read-only file.
#[test]
fn no_disposition_truncates_a_read_only_file() {
    for disposition in 0..6 {
        for access in [READ, WRITE, READ | WRITE, AccessMask::MAXIMUM_ALLOWED, ALL] {
            for mut world in [world(), World::read_only()] {
                world
                    .disk
                    .add_file("kept", FileAttributes::READONLY | FileAttributes::ARCHIVE);
                let _ = create(&mut world, "kept", |request| {
                    request.create_disposition = CreateDisposition(disposition);
                    request.desired_access = access;
                });
                let asked = world.disk.asked();
                assert!(
                    !asked.contains(&"Overwrite".into()),
                    "{disposition} {access:?}"
                );
            }
        }
    }
}

#[test]
fn all_that_a_read_only_file_allows_does_not_write() {
    let mut world = world();
    let created = create(&mut world, "readonly", |request| {
        request.desired_access = AccessMask::MAXIMUM_ALLOWED;
    });
    let id = created.expect("it opens to read").id;
    let granted = world.session.opens.lock()[&id.volatile].granted;
    let writes = WRITE | AccessMask::FILE_APPEND_DATA | AccessMask::FILE_DELETE_CHILD;
    assert_eq!(granted, ALL.without(writes));
}

#[test]
fn a_read_only_share_lets_nothing_be_made_or_changed() {
    let mut world = World::read_only();
    world.disk.add_file("there", FileAttributes::NONE);
    for access in [
        WRITE,
        AccessMask::DELETE,
        AccessMask::WRITE_DAC,
        AccessMask::GENERIC_ALL,
    ] {
        let status = status(&mut world, "there", |request| {
            request.desired_access = access;
        });
        assert_eq!(status, Status::ACCESS_DENIED, "{access:?}");
    }
    for disposition in [0, 2, 4, 5] {
        let status = status(&mut world, "new", |request| {
            request.desired_access = READ;
            request.create_disposition = CreateDisposition(disposition);
        });
        assert_eq!(status, Status::ACCESS_DENIED, "{disposition}");
    }
    let open_if = |request: &mut Request<'_>| {
        request.desired_access = READ;
        request.create_disposition = CreateDisposition::OPEN_IF;
    };
    assert_eq!(status(&mut world, "there", open_if), Status::SUCCESS);
    assert_eq!(status(&mut world, "new", open_if), Status::ACCESS_DENIED);
    assert!(!world.disk.has("new"));
    let maximum = create(&mut world, "there", |request| {
        request.desired_access = AccessMask::MAXIMUM_ALLOWED;
    });
    let id = maximum.expect("reading is allowed").id;
    let open = world.session.opens.lock()[&id.volatile].clone();
    assert_eq!(open.granted, AccessMask(0x0012_00A9));
}

#[test]
fn rights_that_make_no_sense_are_denied() {
    let mut world = world();
    let mut denied = 0;
    for bit in 0..32 {
        let access = AccessMask(1 << bit);
        let status = status(&mut world, "there", |request| {
            request.desired_access = access;
        });
        if status != Status::SUCCESS {
            let is_denied = status == Status::ACCESS_DENIED || status == Status::PRIVILEGE_NOT_HELD;
            assert!(is_denied, "{access:?} {status:?}");
            denied |= access.0;
        }
    }
    // smbtorture smb2.create.gentest, from Windows: SYNCHRONIZE alone is sufficient.
    assert_eq!(denied, 0x0DE0_FE00);
    let nothing = status(&mut world, "there", |request| {
        request.desired_access = AccessMask::NONE;
    });
    assert_eq!(nothing, Status::ACCESS_DENIED);
    let both = status(&mut world, "there", |request| {
        request.desired_access = AccessMask(0x0800_0000);
        request.file_attributes = FileAttributes(0x8);
    });
    assert_eq!(both, Status::ACCESS_DENIED);
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let mut world = world();
    let (mut ok, mut unsupported, mut invalid) = (0_u32, 0, 0);
    for bit in (0..32).filter(|bit| *bit != 12) {
        let options = CreateOptions(1 << bit);
        match status(&mut world, "there", |request| {
            request.create_options = options;
        }) {
            Status::SUCCESS => ok |= options.0,
            Status::NOT_SUPPORTED => unsupported |= options.0,
            Status::INVALID_PARAMETER => invalid |= options.0,
            status => assert_eq!((bit, status), (0, Status::NOT_A_DIRECTORY)),
        }
    }
    // smbtorture smb2.create.gentest
    assert_eq!(
        (ok, unsupported, invalid),
        (0x00EF_CF7E, 0x0010_2080, 0xFF00_0000)
    );
    let both = CreateOptions::DIRECTORY_FILE | CreateOptions::NON_DIRECTORY_FILE;
    let refused = status(&mut world, "directory", |request| {
        request.create_options = both;
    });
    assert_eq!(refused, Status::INVALID_PARAMETER);
}

#[test]
fn attributes_are_checked_and_those_that_a_file_can_have_are_kept() {
    let (mut ok, mut invalid) = (0_u32, 0);
    for bit in (0..32).filter(|bit| *bit != 14) {
        let attributes = FileAttributes(1 << bit);
        let mut world = world();
        let created = create(&mut world, "new", |request| {
            request.create_disposition = CreateDisposition::OPEN_IF;
            request.file_attributes = attributes;
        });
        match created {
            Ok(created) => {
                ok |= attributes.0;
                let expected = (attributes.0 | 0x20) & 0x7127;
                assert_eq!(created.attributes, FileAttributes(expected));
            }
            Err(status) => {
                assert_eq!(status, Status::INVALID_PARAMETER);
                invalid |= attributes.0;
            }
        }
    }
    // smbtorture smb2.create.gentest
    assert_eq!((ok, invalid), (0x0000_3FB7, 0xFFFF_8048));
}

#[test]
fn other_fields_out_of_range_are_refused() {
    let mut world = world();
    let level = status(&mut world, "there", |request| {
        request.impersonation_level = ImpersonationLevel(4);
    });
    assert_eq!(level, Status::BAD_IMPERSONATION_LEVEL);
    let disposition = status(&mut world, "there", |request| {
        request.create_disposition = CreateDisposition(6);
    });
    assert_eq!(disposition, Status::INVALID_PARAMETER);
    let share = status(&mut world, "there", |request| {
        request.share_access = ShareAccess(8);
    });
    assert_eq!(share, Status::INVALID_PARAMETER);
    let name = status(&mut world, "there", |request| request.name = Utf16(b"abc"));
    assert_eq!(name, Status::OBJECT_NAME_INVALID);
    assert!(world.disk.asked().is_empty());
}

#[test]
fn an_overwrite_must_not_make_a_file_visible() {
    let mut world = world();
    let overwrite = |attributes| {
        move |request: &mut Request<'_>| {
            request.create_disposition = CreateDisposition::OVERWRITE_IF;
            request.file_attributes = attributes;
        }
    };
    let both = FileAttributes::HIDDEN | FileAttributes::SYSTEM;
    for (attributes, expected) in [
        (FileAttributes::NONE, Status::ACCESS_DENIED),
        (FileAttributes::HIDDEN, Status::ACCESS_DENIED),
        (FileAttributes::SYSTEM, Status::ACCESS_DENIED),
        (both, Status::SUCCESS),
    ] {
        assert_eq!(
            status(&mut world, "hidden", overwrite(attributes)),
            expected
        );
    }
}

/// As with Samba: a file that is hidden because of its name stays hidden after an overwrite.
#[test]
fn a_file_that_is_hidden_for_its_name_is_overwritten() {
    let mut world = world();
    for (kept, expected) in [
        (FileAttributes::NONE, Status::SUCCESS),
        (FileAttributes::HIDDEN, Status::ACCESS_DENIED),
    ] {
        world.disk.add_file(".dot", FileAttributes::HIDDEN);
        world.disk.files.get_mut(".dot").expect("just added").stored = kept;
        let overwritten = status(&mut world, ".dot", |request| {
            request.create_disposition = CreateDisposition::OVERWRITE_IF;
            request.file_attributes = FileAttributes::NORMAL;
        });
        assert_eq!(overwritten, expected);
    }
}

#[test]
fn a_share_mode_that_is_in_the_way_closes_the_file_before_it_is_emptied() {
    let mut world = world();
    let _holder = create(&mut world, "there", |request| {
        request.desired_access = READ;
        request.share_access = ShareAccess::READ;
    });
    world.disk.asked();
    let refused = status(&mut world, "there", |request| {
        request.desired_access = READ;
        request.create_disposition = CreateDisposition::OVERWRITE;
    });
    assert_eq!(refused, Status::SHARING_VIOLATION);
    assert_eq!(world.disk.asked(), ["Close"]);
    assert_eq!(world.disk.open_count(), 1);
}

#[test]
fn a_file_that_is_only_looked_at_is_in_nobodys_way() {
    let mut world = world();
    let _holder = create(&mut world, "there", |request| {
        request.desired_access = AccessMask::FILE_READ_ATTRIBUTES;
        request.share_access = ShareAccess::NONE;
    });
    assert_eq!(status(&mut world, "there", |_| {}), Status::SUCCESS);
}

#[test]
fn an_overwrite_that_fails_leaves_no_open_and_no_share_mode() {
    let mut world = world();
    let name = utf16("there");
    let mut request = request(&name);
    request.create_disposition = CreateDisposition::OVERWRITE;
    request.create_options = CreateOptions::DELETE_ON_CLOSE;
    // The open goes well, and the disk fails at the overwrite.
    let reply = {
        world.disk.fail_overwrite = Some(Status::DISK_FULL);
        world.create(&request)
    };
    assert_eq!(reply, Err(Status::DISK_FULL));
    assert_eq!(world.disk.open_count(), 0);
    assert!(world.disk.has("there"), "what failed deletes nothing");
    let alone = |request: &mut Request<'_>| request.share_access = ShareAccess::NONE;
    assert_eq!(status(&mut world, "there", alone), Status::SUCCESS);
}

#[test]
fn delete_on_close_needs_the_right_and_a_file_that_may_go() {
    let mut world = world();
    let doomed = |access| {
        move |request: &mut Request<'_>| {
            request.create_options = CreateOptions::DELETE_ON_CLOSE;
            request.desired_access = access;
        }
    };
    let delete = READ | AccessMask::DELETE;
    assert_eq!(
        status(&mut world, "there", doomed(READ)),
        Status::INVALID_PARAMETER
    );
    assert_eq!(
        status(&mut world, "readonly", doomed(delete)),
        Status::CANNOT_DELETE
    );
    assert_eq!(
        status(&mut world, "", doomed(delete)),
        Status::CANNOT_DELETE
    );
    let new = status(&mut world, "new", |request| {
        doomed(delete)(request);
        request.create_disposition = CreateDisposition::CREATE;
        request.file_attributes = FileAttributes::READONLY;
    });
    assert_eq!(new, Status::CANNOT_DELETE);
    assert!(
        !world.disk.has("new"),
        "what was refused is not left behind"
    );
    assert_eq!(status(&mut world, "there", doomed(delete)), Status::SUCCESS);
    assert!(!world.disk.has("there"));
    assert_eq!(world.disk.open_count(), 0);
}

#[test]
fn the_root_opens_as_a_directory() {
    let mut world = world();
    let created = create(&mut world, "", |request| {
        request.create_options = CreateOptions::DIRECTORY_FILE;
    });
    let created = created.expect("the root is there");
    assert_eq!(created.attributes, FileAttributes::DIRECTORY);
    let as_file = status(&mut world, "", |request| {
        request.create_options = CreateOptions::NON_DIRECTORY_FILE;
    });
    assert_eq!(as_file, Status::FILE_IS_A_DIRECTORY);
    let anew = status(&mut world, "", |request| {
        request.create_disposition = CreateDisposition::CREATE;
    });
    assert_eq!(anew, Status::OBJECT_NAME_COLLISION);
}

#[test]
fn a_directory_is_not_overwritten() {
    let mut world = world();
    let overwrite = |request: &mut Request<'_>| {
        request.create_disposition = CreateDisposition::OVERWRITE_IF;
    };
    assert_eq!(
        status(&mut world, "directory", overwrite),
        Status::INVALID_PARAMETER
    );
    assert_eq!(world.disk.open_count(), 0);
}

#[test]
fn contexts_are_answered_by_their_names() {
    let mut world = world();
    let created = create(&mut world, "there", |request| {
        for name in [name::MAXIMAL_ACCESS, name::ON_DISK_ID, b"What"] {
            request.contexts.push(RawContext { name, data: &[] });
        }
    });
    let created = created.expect("the file opens");
    let names: alloc::vec::Vec<_> = created.contexts.iter().map(|(name, _)| &name[..]).collect();
    assert_eq!(names, [name::MAXIMAL_ACCESS, name::ON_DISK_ID]);
    assert_eq!(created.contexts[0].1, [0, 0, 0, 0, 0xFF, 0x01, 0x1F, 0x00]);
    let metadata = world.disk.files["there"];
    assert_eq!(created.contexts[1].1[..8], metadata.key.file.to_le_bytes());
}

#[test]
fn a_session_has_no_more_opens_than_its_limit() {
    let limits = Limits {
        opens_per_session: 1,
        ..Limits::default()
    };
    let mut world = World::of(disk_share(), ALL, limits);
    world.disk.add_file("there", FileAttributes::NONE);
    world.open("there", READ);
    let refused = status(&mut world, "there", |_| {});
    assert_eq!(refused, Status::INSUFFICIENT_RESOURCES);
    assert_eq!(world.disk.open_count(), 1);
}

#[test]
fn an_open_that_comes_after_the_end_of_its_tree_is_closed() {
    let mut world = world();
    world.session.trees.lock().clear();
    let late = status(&mut world, "there", |_| {});
    assert_eq!(late, Status::NETWORK_NAME_DELETED);
    assert_eq!(world.disk.open_count(), 0);
    assert!(world.session.opens.lock().is_empty());
}

#[test]
fn a_message_cut_at_any_byte_is_an_invalid_parameter_or_a_name() {
    let mut world = world();
    let name = utf16("there");
    let mut message = alloc::vec![0; wire::header::HEADER_LEN];
    request(&name).encode(&mut message);
    for end in 0..message.len() {
        let reply = world.run_message(super::start, &message[..end]);
        assert_eq!(reply.err(), Some(Status::INVALID_PARAMETER), "{end}");
    }
}
