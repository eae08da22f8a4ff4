use wire::access::{AccessMask, FileAttributes};
use wire::read::{Channel, ReadFlags, Request};
use wire::{FileId, Status};

use crate::effect::PayloadToken;
use crate::server::context::Body;
use crate::server::scripted::{World, body};

const SIZE: u64 = 65_536;

fn world() -> World {
    let mut world = World::new();
    world.disk.add_file("a", FileAttributes::NONE);
    world.disk.files.get_mut("a").expect("just added").size = SIZE;
    world.disk.add_directory("d");
    world
}

fn read(world: &mut World, id: FileId, length: u32, offset: u64, min: u32) -> Result<u32, Status> {
    let request = Request {
        padding: 0x50,
        flags: ReadFlags::NONE,
        length,
        offset,
        file_id: id,
        minimum_count: min,
        channel: Channel::NONE,
        remaining_bytes: 0,
        channel_info: &[],
    };
    let reply = world.run(super::start, |out| request.encode(out))?;
    let Body::WithPayload(head, payload) = &reply.body else {
        panic!("a read has a payload");
    };
    assert_eq!((head.len(), head[66]), (80, 80));
    assert_eq!(body(&reply)[68..72], payload.len.to_le_bytes());
    Ok(payload.len)
}

/// As smbtorture smb2.read.eof and smb2.rw.invalid have it.
#[test]
fn the_end_of_the_file_and_the_limits_of_offsets() {
    let mut world = world();
    let id = world.open("a", AccessMask::FILE_READ_DATA);
    let end = Err(Status::END_OF_FILE);
    let invalid = Err(Status::INVALID_PARAMETER);
    let max = i64::MAX as u64;
    for (length, offset, min, expected) in [
        (10, 0, 1, Ok(10)),
        (10, SIZE, 0, end),
        (0, SIZE, 0, Ok(0)),
        (0, SIZE, 1, end),
        (2, SIZE - 1, 0, Ok(1)),
        (1, SIZE - 1, 2, end),
        (1, 0, 0x10000, end),
        (5, 0, 10, end),
        (1, max - 1, 0, end),
        (0, max, 0, Ok(0)),
        (1, max, 0, invalid),
        (0, max + 1, 0, invalid),
        (0, u64::MAX, 0, invalid),
        (1, u64::MAX, 0, invalid),
        (8 << 20, 0, 0, Ok(SIZE as u32)),
        ((8 << 20) + 1, 0, 0, invalid),
        (u32::MAX, 0, 0, invalid),
    ] {
        let result = read(&mut world, id, length, offset, min);
        assert_eq!(result, expected, "{length} at {offset}, {min} at least");
    }
}

#[test]
fn bytes_that_are_not_sent_are_released() {
    let mut world = world();
    let id = world.open("a", AccessMask::FILE_READ_DATA);
    assert_eq!(read(&mut world, id, 10, SIZE, 0), Err(Status::END_OF_FILE));
    assert_eq!(world.disk.released, [PayloadToken(7)]);
}

#[test]
fn who_may_execute_may_read_and_nobody_else() {
    let mut world = world();
    for (access, expected) in [
        (AccessMask::FILE_READ_DATA, Ok(5)),
        (AccessMask::FILE_EXECUTE, Ok(5)),
        (AccessMask::FILE_READ_ATTRIBUTES, Err(Status::ACCESS_DENIED)),
        (AccessMask::FILE_WRITE_DATA, Err(Status::ACCESS_DENIED)),
    ] {
        let id = world.open("a", access);
        assert_eq!(read(&mut world, id, 5, 0, 0), expected, "{access:?}");
    }
}

#[test]
fn a_directory_is_not_read() {
    let mut world = world();
    let id = world.open("d", AccessMask::FILE_READ_DATA);
    let refused = Err(Status::INVALID_DEVICE_REQUEST);
    assert_eq!(read(&mut world, id, 10, 0, 1), refused);
    assert_eq!(read(&mut world, id, 0, 0, 2592), refused);
}

/// \[MS-SMB2\] 3.3.5.2.5
#[test]
fn what_is_asked_for_is_paid_for() {
    let mut world = world();
    let id = world.open("a", AccessMask::FILE_READ_DATA);
    world.credit_charge = 2;
    assert_eq!(read(&mut world, id, 131_072, 0, 0), Ok(65_536));
    let unpaid = read(&mut world, id, 131_073, 0, 0);
    assert_eq!(unpaid, Err(Status::INVALID_PARAMETER));
    world.credit_charge = 0;
    assert_eq!(read(&mut world, id, 65_536, 0, 0), Ok(65_536));
}
