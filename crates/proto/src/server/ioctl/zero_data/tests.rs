use alloc::vec::Vec;

use wire::FileId;
use wire::access::FileAttributes;
use wire::fsctl::CtlCode;
use wire::ioctl::IoctlFlags;

use super::*;
use crate::server::ioctl;
use crate::server::scripted::{ALL, World, ZEROS_MAX};

fn ask_bytes(world: &mut World, file_id: FileId, input: &[u8]) -> Result<(), Status> {
    let request = Request {
        ctl_code: CtlCode::SET_ZERO_DATA,
        file_id,
        max_input_response: 0,
        max_output_response: 0,
        flags: IoctlFlags::IS_FSCTL,
        input,
        output: &[],
    };
    let reply = world.run(ioctl::start, |out| request.encode(out))?;
    assert_eq!(reply.status, Status::SUCCESS);
    Ok(())
}

fn ask(world: &mut World, file_id: FileId, range: (u64, u64)) -> Result<(), Status> {
    let input = ZeroData {
        file_offset: range.0,
        beyond_final_zero: range.1,
    };
    ask_bytes(world, file_id, &input.encode())
}

fn world() -> (World, FileId) {
    let mut world = World::new();
    world.disk.add_file("a", FileAttributes::NONE);
    let open = world.open("a", ALL);
    (world, open)
}

/// The ranges that the handler requested from the disk.
fn ranges(world: &World) -> Vec<Range<u64>> {
    let ranges = world
        .disk
        .log
        .iter()
        .filter_map(|operation| match operation {
            FileOp::OnOpen(_, Operation::ZeroRange { range, .. }) => Some(range.clone()),
            _ => None,
        });
    ranges.collect()
}

#[test]
fn what_others_have_locked_stays_as_it_is() {
    let (mut world, open) = world();
    let other = world.open("a", ALL);
    world.lock(other, 10, 10);
    let refused = Err(Status::FILE_LOCK_CONFLICT);
    for range in [(0, 11), (19, 20), (0, 100)] {
        assert_eq!(ask(&mut world, open, range), refused, "{range:?}");
        assert_eq!(ask(&mut world, other, range), Ok(()), "{range:?}");
    }
    for range in [(0, 10), (20, 100), (15, 15)] {
        assert_eq!(ask(&mut world, open, range), Ok(()), "{range:?}");
    }
}

#[test]
fn what_takes_long_is_asked_for_piece_by_piece() {
    let (mut world, open) = world();
    let end = 2 * ZEROS_MAX + 7;
    assert_eq!(ask(&mut world, open, (5, end)), Ok(()));
    let starts = [5, 5 + ZEROS_MAX, 5 + 2 * ZEROS_MAX];
    assert_eq!(ranges(&world), starts.map(|start| start..end));
}

#[test]
fn a_canceled_request_ends_between_two_operations() {
    let (mut world, open) = world();
    world.is_cancelled = true;
    let came = ask(&mut world, open, (0, 2 * ZEROS_MAX));
    assert_eq!(came, Err(Status::CANCELLED));
    assert_eq!(ranges(&world).len(), 1);
}

#[test]
fn only_a_range_is_one() {
    let (mut world, open) = world();
    for (range, expected) in [
        ((4096, 4095), Err(Status::INVALID_PARAMETER)),
        ((u64::MAX, u64::MAX), Err(Status::INVALID_PARAMETER)),
        ((0, u64::MAX), Err(Status::INVALID_PARAMETER)),
        ((4095, 4095), Ok(())),
    ] {
        assert_eq!(ask(&mut world, open, range), expected, "{range:?}");
    }
    for len in 0..16 {
        let refused = ask_bytes(&mut world, open, &[0; 16][..len]);
        assert_eq!(refused, Err(Status::INVALID_PARAMETER));
    }
    assert_eq!(ranges(&world), []);
}

#[test]
fn only_the_right_to_write_is_enough() {
    let (mut world, _) = world();
    for right in [
        AccessMask::FILE_APPEND_DATA,
        AccessMask::FILE_WRITE_ATTRIBUTES,
        AccessMask::FILE_WRITE_EA,
        AccessMask::FILE_READ_DATA,
    ] {
        let open = world.open("a", right);
        let refused = ask(&mut world, open, (0, 1));
        assert_eq!(refused, Err(Status::ACCESS_DENIED), "{right:?}");
    }
    let open = world.open("a", AccessMask::FILE_WRITE_DATA);
    assert_eq!(ask(&mut world, open, (0, 1)), Ok(()));
}

#[test]
fn a_directory_has_no_bytes() {
    let (mut world, _) = world();
    world.disk.add_directory("d");
    let open = world.open("d", ALL);
    assert_eq!(
        ask(&mut world, open, (0, 1)),
        Err(Status::INVALID_PARAMETER)
    );
}

#[test]
fn a_time_that_the_client_set_stays() {
    let (mut world, open) = world();
    let kept = wire::FileTime(777);
    let of = world.session.opens.lock()[&open.volatile].clone();
    of.keep_write_time(Some(kept));
    assert_eq!(ask(&mut world, open, (0, 1)), Ok(()));
    assert_eq!(world.disk.files["a"].written, kept);
}
