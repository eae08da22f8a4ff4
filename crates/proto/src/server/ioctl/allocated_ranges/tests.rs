use alloc::vec;

use wire::FileId;
use wire::access::FileAttributes;
use wire::fsctl::CtlCode;
use wire::ioctl::{IoctlFlags, Response};

use super::*;
use crate::server::ioctl;
use crate::server::scripted::{ALL, World, body};

type Answer = Result<(Status, Vec<(u64, u64)>), Status>;

fn ask_bytes(world: &mut World, file_id: FileId, input: &[u8], room: u32) -> Answer {
    let request = Request {
        ctl_code: CtlCode::QUERY_ALLOCATED_RANGES,
        file_id,
        max_input_response: 0,
        max_output_response: room,
        flags: IoctlFlags::IS_FSCTL,
        input,
        output: &[],
    };
    let reply = world.run(ioctl::start, |out| request.encode(out))?;
    let body = body(&reply);
    let output = Response::decode(&body).expect("a response").output;
    assert!(output.len() <= room as usize);
    let ranges = AllocatedRange::decode_list(output).expect("ranges");
    let ranges = ranges.iter().map(|range| (range.file_offset, range.length));
    Ok((reply.status, ranges.collect()))
}

fn ask(world: &mut World, file_id: FileId, (start, length): (u64, u64), room: u32) -> Answer {
    let mut input = Vec::new();
    let range = AllocatedRange {
        file_offset: start,
        length,
    };
    range.encode(&mut input);
    ask_bytes(world, file_id, &input, room)
}

fn world() -> (World, FileId) {
    let mut world = World::new();
    world.disk.add_file("a", FileAttributes::NONE);
    world.disk.pieces = [0..10, 20..30, 40..50].to_vec();
    let open = world.open("a", ALL);
    (world, open)
}

#[test]
fn the_output_buffer_limits_the_ranges() {
    let (mut world, open) = world();
    let all = [(0, 10), (20, 10), (40, 10)];
    for (room, expected) in [
        (0, Err(Status::BUFFER_TOO_SMALL)),
        (15, Err(Status::BUFFER_TOO_SMALL)),
        (16, Ok((Status::BUFFER_OVERFLOW, all[..1].to_vec()))),
        (47, Ok((Status::BUFFER_OVERFLOW, all[..2].to_vec()))),
        (48, Ok((Status::SUCCESS, all.to_vec()))),
        (4096, Ok((Status::SUCCESS, all.to_vec()))),
    ] {
        assert_eq!(ask(&mut world, open, (0, 100), room), expected, "{room}");
    }
    let one = ask(&mut world, open, (0, 15), 16);
    assert_eq!(one, Ok((Status::SUCCESS, all[..1].to_vec())));
}

#[test]
fn none_need_no_room() {
    let (mut world, open) = world();
    world.disk.pieces.clear();
    let none = ask(&mut world, open, (0, 100), 0);
    assert_eq!(none, Ok((Status::SUCCESS, Vec::new())));
}

#[test]
fn an_answer_has_an_end() {
    let (mut world, open) = world();
    world.disk.pieces = (0..5000).map(|n| n * 2..n * 2 + 1).collect();
    let (status, ranges) = ask(&mut world, open, (0, 100_000), 1 << 20).expect("ranges");
    assert_eq!(
        (status, ranges.len()),
        (Status::BUFFER_OVERFLOW, MAX_RANGES)
    );
}

#[test]
fn only_a_range_can_be_asked_for() {
    let (mut world, open) = world();
    for range in [
        (512, u64::MAX),
        (u64::MAX, 0),
        (1 << 63, 0),
        (1, MAX_OFFSET),
    ] {
        let refused = ask(&mut world, open, range, 1024);
        assert_eq!(refused, Err(Status::INVALID_PARAMETER), "{range:?}");
    }
    for len in 0..16 {
        let refused = ask_bytes(&mut world, open, &[0; 16][..len], 1024);
        assert_eq!(refused, Err(Status::INVALID_PARAMETER));
    }
    let twice = ask_bytes(&mut world, open, &[0; 32], 1024);
    assert_eq!(twice, Ok((Status::SUCCESS, Vec::new())));
}

#[test]
fn the_request_needs_read_access() {
    let (mut world, _) = world();
    world.disk.add_directory("d");
    for (name, right, expected) in [
        (
            "a",
            AccessMask::FILE_READ_DATA,
            Ok((Status::SUCCESS, vec![(0, 10)])),
        ),
        (
            "a",
            AccessMask::FILE_READ_ATTRIBUTES,
            Err(Status::ACCESS_DENIED),
        ),
        ("a", AccessMask::FILE_READ_EA, Err(Status::ACCESS_DENIED)),
        ("a", AccessMask::FILE_WRITE_DATA, Err(Status::ACCESS_DENIED)),
        (
            "d",
            AccessMask::FILE_READ_DATA,
            Err(Status::INVALID_PARAMETER),
        ),
    ] {
        let open = world.open(name, right);
        assert_eq!(ask(&mut world, open, (0, 10), 1024), expected, "{right:?}");
    }
}
