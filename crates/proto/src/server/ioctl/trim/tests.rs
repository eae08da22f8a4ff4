use wire::FileId;
use wire::access::FileAttributes;
use wire::fsctl::CtlCode;
use wire::ioctl::{IoctlFlags, Response};

use super::*;
use crate::server::ioctl;
use crate::server::scripted::{ALL, World, body};

fn ask_bytes(
    world: &mut World,
    file_id: FileId,
    input: &[u8],
    max_output_response: u32,
) -> Result<Option<u32>, Status> {
    let request = Request {
        ctl_code: CtlCode::FILE_LEVEL_TRIM,
        file_id,
        max_input_response: 0,
        max_output_response,
        flags: IoctlFlags::IS_FSCTL,
        input,
        output: &[],
    };
    let reply = world.run(ioctl::start, |out| request.encode(out))?;
    assert_eq!(reply.status, Status::SUCCESS);
    let body = body(&reply);
    let output = Response::decode(&body).expect("a response").output;
    let output = FileLevelTrimOutput::decode(output).ok();
    Ok(output.map(|output| output.processed))
}

fn input(ranges: &[(u64, u64)]) -> Vec<u8> {
    let ranges = ranges
        .iter()
        .map(|&(offset, length)| TrimRange { offset, length });
    let ranges = ranges.collect();
    FileLevelTrim { key: 0, ranges }.encode()
}

fn ask(world: &mut World, file_id: FileId, ranges: &[(u64, u64)]) -> Result<Option<u32>, Status> {
    ask_bytes(world, file_id, &input(ranges), 4)
}

fn world() -> (World, FileId) {
    let mut world = World::new();
    world.disk.add_file("a", FileAttributes::NONE);
    let open = world.open("a", ALL);
    (world, open)
}

/// The ranges that the handler requested from the disk.
fn trimmed(world: &World) -> Vec<Range<u64>> {
    let ranges = world.disk.log.iter();
    let ranges = ranges.filter_map(|operation| match operation {
        FileOp::OnOpen(_, Operation::Trim { range }) => Some(range.clone()),
        _ => None,
    });
    ranges.collect()
}

#[test]
fn the_server_discards_whole_pages_only() {
    let (mut world, open) = world();
    let ranges = [
        (0, 8192),
        (1, 8191),
        (4096, 4095),
        (10, 100),
        (4095, 8194),
        (7, 0),
        (u64::MAX, 0),
    ];
    assert_eq!(ask(&mut world, open, &ranges), Ok(Some(7)));
    assert_eq!(trimmed(&world), [0..8192, 4096..8192, 4096..12288]);
}

#[test]
fn the_first_range_that_fails_ends_the_request() {
    let (mut world, open) = world();
    let other = world.open("a", ALL);
    world.lock(other, 4096, 10);
    let (free, locked, wrong) = ((8192, 4096), (0, 8192), (1, u64::MAX));
    let ranges = [free, free, locked, free];
    assert_eq!(ask(&mut world, open, &ranges), Ok(Some(2)));
    assert_eq!(trimmed(&world).len(), 2);
    let conflict = Err(Status::FILE_LOCK_CONFLICT);
    assert_eq!(ask(&mut world, open, &[locked, free]), conflict);
    let overflow = Err(Status::INTEGER_OVERFLOW);
    assert_eq!(ask(&mut world, open, &[wrong, free]), overflow);
    assert_eq!(ask(&mut world, open, &[free, wrong]), Ok(Some(1)));
    world.disk.fail_next = Some(Status::INVALID_PARAMETER);
    let failed = Err(Status::INVALID_PARAMETER);
    assert_eq!(ask(&mut world, open, &[free]), failed);
}

#[test]
fn a_request_has_a_maximum_number_of_ranges() {
    let (mut world, open) = world();
    let ranges: Vec<_> = (0..5000).map(|page| (page * PAGE, PAGE)).collect();
    assert_eq!(ask(&mut world, open, &ranges), Ok(Some(4096)));
    assert_eq!(trimmed(&world).len(), 4096);
}

#[test]
fn a_canceled_request_ends_between_two_ranges() {
    let (mut world, open) = world();
    world.is_cancelled = true;
    let canceled = ask(&mut world, open, &[(0, PAGE), (0, PAGE)]);
    assert_eq!(canceled, Err(Status::CANCELLED));
}

#[test]
fn a_request_without_ranges_is_invalid() {
    let (mut world, open) = world();
    let invalid = Err(Status::INVALID_PARAMETER);
    assert_eq!(ask(&mut world, open, &[]), invalid);
    let whole = input(&[(0, PAGE)]);
    for len in 0..whole.len() {
        assert_eq!(ask_bytes(&mut world, open, &whole[..len], 4), invalid);
    }
    for max_output in 1..4 {
        assert_eq!(ask_bytes(&mut world, open, &whole, max_output), invalid);
    }
    assert_eq!(trimmed(&world), []);
    assert_eq!(ask_bytes(&mut world, open, &whole, 0), Ok(None));
    world.disk.add_directory("d");
    let directory = world.open("d", ALL);
    assert_eq!(ask(&mut world, directory, &[(0, PAGE)]), invalid);
}

#[test]
fn only_the_right_to_write_is_enough() {
    let (mut world, _) = world();
    for right in [AccessMask::FILE_APPEND_DATA, AccessMask::FILE_READ_DATA] {
        let open = world.open("a", right);
        let refused = ask(&mut world, open, &[(0, PAGE)]);
        assert_eq!(refused, Err(Status::ACCESS_DENIED), "{right:?}");
    }
    let open = world.open("a", AccessMask::FILE_WRITE_DATA);
    assert_eq!(ask(&mut world, open, &[(0, PAGE)]), Ok(Some(1)));
}
