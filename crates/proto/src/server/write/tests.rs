use alloc::vec;
use alloc::vec::Vec;

use wire::access::{AccessMask, CreateOptions, FileAttributes};
use wire::fscc::{FileInfoClass, InfoType, ModeFlags};
use wire::header::HEADER_LEN;
use wire::read::Channel;
use wire::text::utf16;
use wire::write::{HEAD_LEN, Request, WriteFlags};
use wire::{FileId, FileTime, Status, set_info};

use crate::effect::WriteData;
use crate::server;
use crate::server::config::{Limits, Share, SyncPolicy};
use crate::server::scripted::{ALL, World, disk_share, pieces, rdma, request};
use crate::violation::Violation;

fn world() -> World {
    let mut world = World::new();
    world.disk.add_file("a", FileAttributes::NONE);
    world.disk.add_directory("d");
    world
}

fn write_with(
    world: &mut World,
    id: FileId,
    offset: u64,
    data: &[u8],
    flags: WriteFlags,
) -> Result<(), Status> {
    let request = Request {
        offset,
        file_id: id,
        channel: Channel::NONE,
        remaining_bytes: 0,
        channel_info: &[],
        flags,
        data_offset: 0,
        data,
    };
    let reply = world.run(super::start, |out| request.encode(out))?;
    assert_eq!(reply.status, Status::SUCCESS);
    Ok(())
}

fn write(world: &mut World, id: FileId, offset: u64, data: &[u8]) -> Result<(), Status> {
    write_with(world, id, offset, data, WriteFlags::NONE)
}

/// smbtorture smb2.rw.invalid
#[test]
fn the_limits_of_offsets() {
    let mut world = world();
    let id = world.open("a", ALL);
    let invalid = Err(Status::INVALID_PARAMETER);
    let max = i64::MAX as u64;
    for (offset, data, expected) in [
        (u64::MAX, &[1][..], invalid),
        (u64::MAX - 1, &[1], invalid),
        (max + 1, &[], invalid),
        (max, &[], Ok(())),
        (max, &[1], invalid),
        (0x0FFF_FFFF_0000, &[1], invalid),
        (0x0FFF_FFFF_0000 - 1, &[1], Ok(())),
        (0x0FFF_FFFF_0000, &[], Ok(())),
    ] {
        let result = write(&mut world, id, offset, data);
        assert_eq!(result, expected, "{} bytes at {offset:#x}", data.len());
    }
}

#[test]
fn either_right_writes_anywhere() {
    let mut world = world();
    let denied = Err(Status::ACCESS_DENIED);
    for (access, expected) in [
        (AccessMask::FILE_WRITE_DATA, Ok(())),
        (AccessMask::FILE_APPEND_DATA, Ok(())),
        (AccessMask::FILE_READ_DATA, denied),
        (AccessMask::FILE_WRITE_ATTRIBUTES, denied),
    ] {
        let id = world.open("a", access);
        assert_eq!(write(&mut world, id, 0, &[1]), expected, "{access:?}");
        assert_eq!(write(&mut world, id, 1000, &[1]), expected, "{access:?}");
    }
}

#[test]
fn an_open_that_may_only_append_can_say_so_in_the_offset() {
    let mut world = world();
    let id = world.open("a", AccessMask::FILE_APPEND_DATA);
    write(&mut world, id, u64::MAX, &[1]).expect("it appends");
    assert_eq!(world.disk.writes[0].offset, None);
}

#[test]
fn bytes_are_written_from_where_they_came_in_or_from_a_copy() {
    let mut world = world();
    let id = world.open("a", ALL);
    world.frame_offset = Some(1000);
    write(&mut world, id, 0, b"abc").expect("it writes");
    let start = 1000 + HEAD_LEN;
    assert_eq!(
        world.disk.writes[0].data,
        WriteData::Inbound(start..start + 3)
    );
    world.frame_offset = None;
    write(&mut world, id, 0, b"abc").expect("it writes");
    assert_eq!(world.disk.writes[1].data, WriteData::Owned(b"abc".to_vec()));
}

#[test]
fn nothing_written_asks_for_nothing() {
    let mut world = world();
    let id = world.open("a", ALL);
    write(&mut world, id, 5, &[]).expect("it writes");
    assert!(world.disk.writes.is_empty());
}

#[test]
fn write_through_comes_by_request_or_by_open() {
    let mut world = world();
    let id = world.open("a", ALL);
    write(&mut world, id, 0, &[1]).expect("it writes");
    write_with(&mut world, id, 0, &[1], WriteFlags::WRITE_THROUGH).expect("it writes");
    let name = utf16("a");
    let mut request = request(&name);
    request.create_options = CreateOptions::WRITE_THROUGH;
    let id = world.create(&request).expect("it opens").id;
    write(&mut world, id, 0, &[1]).expect("it writes");
    let through: Vec<bool> = world.disk.writes.iter().map(|plan| plan.through).collect();
    assert_eq!(through, [false, true, true]);
}

/// Whether plain WRITEs, WRITEs with the flag, and WRITEs of opens with an option are on stable
/// storage when they complete.
fn writes_through(sync: SyncPolicy) -> Vec<bool> {
    let share = Share {
        sync,
        ..disk_share()
    };
    let mut world = World::of(share, ALL, Limits::default());
    world.disk.add_file("a", FileAttributes::NONE);
    let id = world.open("a", ALL);
    for flags in [
        WriteFlags::NONE,
        WriteFlags::WRITE_THROUGH,
        WriteFlags::WRITE_UNBUFFERED,
    ] {
        write_with(&mut world, id, 0, &[1], flags).expect("it writes");
    }
    for options in [
        CreateOptions::WRITE_THROUGH,
        CreateOptions::NO_INTERMEDIATE_BUFFERING,
    ] {
        let name = utf16("a");
        let mut request = request(&name);
        request.create_options = options;
        let id = world.create(&request).expect("it opens").id;
        write(&mut world, id, 0, &[1]).expect("it writes");
    }
    world.disk.writes.iter().map(|plan| plan.through).collect()
}

#[test]
fn the_share_decides_about_write_through() {
    assert_eq!(writes_through(SyncPolicy::Client), [false; 5]);
    let as_requested = [false, true, false, true, false];
    assert_eq!(writes_through(SyncPolicy::Flush), as_requested);
    assert_eq!(writes_through(SyncPolicy::Always), [true; 5]);
}

#[test]
fn write_through_may_be_set_and_cleared_later() {
    let mut world = world();
    let id = world.open("a", ALL);
    for mode in [ModeFlags::WRITE_THROUGH, ModeFlags::NONE] {
        let buffer = mode.0.to_le_bytes();
        let request = set_info::Request {
            info_type: InfoType::FILE,
            file_info_class: FileInfoClass::MODE.0,
            additional_information: 0,
            file_id: id,
            buffer: &buffer,
        };
        let reply = world.run(server::set_info::start, |out| request.encode(out));
        assert_eq!(reply.expect("it is set").status, Status::SUCCESS);
        write(&mut world, id, 0, &[1]).expect("it writes");
    }
    let through: Vec<bool> = world.disk.writes.iter().map(|plan| plan.through).collect();
    assert_eq!(through, [true, false]);
}

#[test]
fn data_that_overlap_the_head_are_refused() {
    let mut world = world();
    let id = world.open("a", ALL);
    let request = Request {
        offset: 0,
        file_id: id,
        channel: Channel::NONE,
        remaining_bytes: 0,
        channel_info: &[],
        flags: WriteFlags::NONE,
        data_offset: 0,
        data: b"abc",
    };
    let mut message = alloc::vec![0; HEADER_LEN];
    request.encode(&mut message);
    for offset in 0..HEAD_LEN {
        let offset = u16::try_from(offset).expect("a small offset");
        message[HEADER_LEN + 2..HEADER_LEN + 4].copy_from_slice(&offset.to_le_bytes());
        let reply = world.run_message(super::start, &message);
        assert_eq!(reply.err(), Some(Status::INVALID_PARAMETER), "{offset}");
    }
}

#[test]
fn a_directory_is_not_written() {
    let mut world = world();
    let id = world.open("d", ALL);
    assert_eq!(
        write(&mut world, id, 0, &[1]),
        Err(Status::INVALID_DEVICE_REQUEST)
    );
}

#[test]
fn a_time_that_the_client_has_set_survives_a_write() {
    let mut world = world();
    let id = world.open("a", ALL);
    let open = world.session.opens.lock()[&id.volatile].clone();
    open.keep_write_time(Some(FileTime(70)));
    // Another open has written since: that time stays.
    let disk = &mut world.disk.files;
    disk.get_mut("a").expect("the file").written = FileTime(77);
    write(&mut world, id, 0, &[1]).expect("it writes");
    assert_eq!(world.disk.files["a"].written, FileTime(77));
}

/// A request with data by RDMA.
fn remote(length: u32, info: &[u8], offset: u64) -> Request<'_> {
    Request {
        offset,
        file_id: FileId::RELATED,
        channel: Channel::RDMA_V1_INVALIDATE,
        remaining_bytes: length,
        channel_info: info,
        flags: WriteFlags::NONE,
        data_offset: 0,
        data: &[],
    }
}

fn run(request: &Request<'_>, access: AccessMask) -> (World, Result<(), Status>) {
    let mut world = world();
    world.carrier = rdma();
    let file_id = world.open("a", access);
    let request = Request {
        file_id,
        ..*request
    };
    let result = world.run(super::start, |out| request.encode(out));
    (world, result.map(|_| ()))
}

#[test]
fn data_come_from_memory_as_many_as_remaining_bytes_says() {
    let info = pieces(&[(0x1000, 7, 60), (0x2000, 8, 60)]);
    let (world, result) = run(&remote(100, &info, 5), ALL);
    assert_eq!((result, world.invalidate), (Ok(()), Some(7)));
    let plan = &world.disk.writes[0];
    assert_eq!((plan.offset, plan.data.len()), (Some(5), 100));
    let WriteData::Remote(pieces) = &plan.data else {
        panic!("{plan:?}");
    };
    assert_eq!((pieces[0].length, pieces[1].length), (60, 40));
}

#[test]
fn a_request_that_lies_about_memory_writes_nothing() {
    let info = pieces(&[(0x1000, 7, 100)]);
    let invalid = Err(Status::INVALID_PARAMETER);
    let good = remote(100, &info, 0);
    assert_eq!(run(&good, ALL).1, Ok(()));
    for (what, request) in [
        ("too few bytes", remote(101, &info, 0)),
        ("no bytes", remote(0, &info, 0)),
        ("no memory", remote(100, &[], 0)),
        (
            "too many bytes",
            remote((1 << 20) + 1, &pieces(&[(0, 7, u32::MAX)]), 0),
        ),
        ("beyond all offsets", remote(100, &info, i64::MAX as u64)),
        (
            "data besides",
            Request {
                data: b"abc",
                ..good
            },
        ),
        (
            "another channel",
            Request {
                channel: Channel::RDMA_TRANSFORM,
                ..good
            },
        ),
    ] {
        let (world, result) = run(&request, ALL);
        assert_eq!(result, invalid, "{what}");
        assert!(world.disk.writes.is_empty(), "{what}");
    }
    let (world, result) = run(&good, AccessMask::FILE_READ_DATA);
    assert_eq!(result, Err(Status::ACCESS_DENIED));
    // It was named well: the client counts on that.
    assert_eq!(world.invalidate, Some(7));
    // A DataOffset without data.
    let mut message = vec![0; HEADER_LEN];
    good.encode(&mut message);
    message[66] = 0x70;
    let mut world = world_with_memory();
    assert_eq!(
        world.run_message(super::start, &message).map(|_| ()),
        invalid
    );
}

fn world_with_memory() -> World {
    let mut world = world();
    world.carrier = rdma();
    world.open("a", ALL);
    world
}

#[test]
fn memory_that_cannot_be_read_ends_the_connection() {
    let info = pieces(&[(0x1000, 7, 100)]);
    let mut world = world_with_memory();
    world.disk.fails_remotely = true;
    let file_id = world.open("a", ALL);
    let request = Request {
        file_id,
        ..remote(100, &info, 0)
    };
    assert!(world.run(super::start, |out| request.encode(out)).is_err());
    assert_eq!(world.ended, Some(Violation::RemoteMemory));
}

/// In a file with locks, an append reads the end of the file first.
#[test]
fn an_append_keeps_the_memory_until_the_end_is_known() {
    let info = pieces(&[(0x1000, 7, 100)]);
    let mut world = world_with_memory();
    let whole = world.open("a", ALL);
    world.lock(whole, 1 << 30, 1);
    let file_id = world.open("a", AccessMask::FILE_APPEND_DATA);
    let request = Request {
        file_id,
        ..remote(100, &info, u64::MAX)
    };
    assert!(world.run(super::start, |out| request.encode(out)).is_ok());
    let plan = &world.disk.writes[0];
    assert_eq!((plan.offset, plan.data.len()), (None, 100));
    assert!(matches!(plan.data, WriteData::Remote(_)));
}
