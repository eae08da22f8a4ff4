use wire::access::{AccessMask, FileAttributes};
use wire::dialect::Dialect;
use wire::read::{Channel, ReadFlags, Request, Response};
use wire::smbd::BufferDescriptorV1;
use wire::{FileId, Status};

use alloc::vec::Vec;

use crate::carrier::Carrier;
use crate::effect::{Delivery, PayloadToken, ReadPlan};
use crate::server::context::{Body, Reply};
use crate::server::scripted::{World, body, pieces, rdma};
use crate::violation::Violation;

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

/// smbtorture smb2.read.eof and smb2.rw.invalid
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
fn the_right_to_execute_permits_reads() {
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

/// A request with data by RDMA, on an SMB Direct connection.
fn remote(
    dialect: Dialect,
    channel: Channel,
    length: u32,
    info: &[u8],
    change: impl FnOnce(&mut World),
) -> (World, Result<Reply, Status>) {
    let mut world = world();
    world.carrier = rdma();
    world.dialect = dialect;
    let id = world.open("a", AccessMask::FILE_READ_DATA);
    change(&mut world);
    let request = Request {
        padding: 0x50,
        flags: ReadFlags::NONE,
        length,
        offset: 0,
        file_id: id,
        minimum_count: 0,
        channel,
        remaining_bytes: 0,
        channel_info: info,
    };
    let result = world.run(super::start, |out| request.encode(out));
    (world, result)
}

#[test]
fn the_channel_is_one_of_the_dialect() {
    let info = pieces(&[(0x1000, 7, 100)]);
    let (old, new) = (Dialect::SMB_3_0, Dialect::SMB_3_0_2);
    for (dialect, channel, is_good) in [
        (old, Channel::RDMA_V1, true),
        (old, Channel::RDMA_V1_INVALIDATE, false),
        (new, Channel::RDMA_V1, true),
        (new, Channel::RDMA_V1_INVALIDATE, true),
        (Dialect::SMB_3_1_1, Channel::RDMA_V1_INVALIDATE, true),
        (Dialect::SMB_3_1_1, Channel::RDMA_TRANSFORM, false),
        (Dialect::SMB_3_1_1, Channel(4), false),
    ] {
        let (world, result) = remote(dialect, channel, 100, &info, |_| {});
        assert_eq!(result.is_ok(), is_good, "{dialect:?} {channel:?}");
        if !is_good {
            assert_eq!(result.map(|_| ()), Err(Status::INVALID_PARAMETER));
            assert!(world.disk.reads.is_empty());
        }
        let is_invalidated = is_good && channel == Channel::RDMA_V1_INVALIDATE;
        assert_eq!(world.invalidate, is_invalidated.then_some(7));
    }
}

#[test]
fn pieces_that_lie_are_refused() {
    let top = u64::MAX;
    let many: Vec<_> = (0..9).map(|_| (0, 7, 100)).collect();
    for (what, info, length, expected) in [
        ("enough", pieces(&[(0, 7, 60), (9, 8, 40)]), 100, true),
        ("more than enough", pieces(&[(0, 7, u32::MAX)]), 100, true),
        (
            "lengths that add up to 2^33",
            pieces(&[(0, 7, u32::MAX); 3]),
            100,
            true,
        ),
        (
            "an empty piece",
            pieces(&[(0, 7, 0), (0, 8, 100)]),
            100,
            true,
        ),
        (
            "up to the last address",
            pieces(&[(top - 100, 7, 100)]),
            100,
            true,
        ),
        ("nothing", Vec::new(), 100, false),
        (
            "one byte too few",
            pieces(&[(0, 7, 60), (9, 8, 39)]),
            100,
            false,
        ),
        (
            "beyond the last address",
            pieces(&[(top - 99, 7, 100)]),
            100,
            false,
        ),
        (
            "a later one beyond it",
            pieces(&[(0, 7, 100), (top, 8, 1)]),
            100,
            false,
        ),
        (
            "half a piece",
            pieces(&[(0, 7, 100)])[..8].to_vec(),
            100,
            false,
        ),
        (
            "one and a half",
            pieces(&[(0, 7, 100); 2])[..24].to_vec(),
            100,
            false,
        ),
        ("too many", pieces(&many), 100, false),
        (
            "more than goes at once",
            pieces(&[(0, 7, u32::MAX)]),
            (1 << 20) + 1,
            false,
        ),
    ] {
        let (world, result) = remote(Dialect::SMB_3_1_1, Channel::RDMA_V1, length, &info, |_| {});
        match expected {
            true => assert!(result.is_ok(), "{what}"),
            false => assert_eq!(result.map(|_| ()), Err(Status::INVALID_PARAMETER), "{what}"),
        }
        let total = |plan: &ReadPlan| match &plan.delivery {
            Delivery::Remote(pieces) => BufferDescriptorV1::total(pieces),
            Delivery::Inline => 0,
        };
        let totals: Vec<u64> = world.disk.reads.iter().map(total).collect();
        let wanted: &[u64] = if expected { &[100] } else { &[] };
        assert_eq!(totals, wanted, "{what}");
    }
}

#[test]
fn what_is_protected_and_what_cannot_be_goes_nowhere() {
    let info = pieces(&[(0, 7, 100)]);
    let refuse = |change: fn(&mut World)| {
        let channel = Channel::RDMA_V1_INVALIDATE;
        let (world, result) = remote(Dialect::SMB_3_1_1, channel, 100, &info, change);
        assert_eq!(result.map(|_| ()), Err(Status::INVALID_PARAMETER));
        assert!(world.disk.reads.is_empty());
        assert_eq!(world.invalidate, None);
    };
    refuse(|world| world.is_encrypted = true);
    refuse(|world| world.session.state.lock().signing_required = true);
    refuse(|world| world.carrier = Carrier::TCP);
}

#[test]
fn the_answer_says_how_much_lies_in_memory() {
    let info = pieces(&[(0, 7, 100_000)]);
    let (world, result) = remote(Dialect::SMB_3_1_1, Channel::RDMA_V1, 100_000, &info, |_| {});
    let message = body(&result.expect("it reads"));
    let (response, data) = Response::decode(&message).expect("a response");
    assert_eq!((response.data_remaining, data), (SIZE as u32, &[][..]));
    assert_eq!(message.len(), 80);
    assert!(world.disk.released.is_empty());
    let end = remote(Dialect::SMB_3_1_1, Channel::RDMA_V1, 100, &info, |world| {
        world.disk.files.get_mut("a").expect("it is there").size = 0;
    });
    assert_eq!(end.1.map(|_| ()), Err(Status::END_OF_FILE));
    let lost = remote(Dialect::SMB_3_1_1, Channel::RDMA_V1, 100, &info, |world| {
        world.disk.fails_remotely = true;
    });
    assert!(lost.1.is_err());
    assert_eq!(lost.0.ended, Some(Violation::RemoteMemory));
}

/// A READ of nothing asks nothing of the client's memory, and is refused for the same.
#[test]
fn nothing_is_read_into_no_memory() {
    let info = pieces(&[(0, 7, 0)]);
    let (world, result) = remote(Dialect::SMB_3_1_1, Channel::RDMA_V1, 0, &info, |_| {});
    assert!(result.is_ok());
    assert_eq!(world.disk.reads[0].delivery, Delivery::Inline);
    let (_, result) = remote(Dialect::SMB_3_1_1, Channel::RDMA_V1, 0, &[], |_| {});
    assert_eq!(result.map(|_| ()), Err(Status::INVALID_PARAMETER));
}
