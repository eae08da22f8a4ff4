use alloc::vec::Vec;

use wire::FileId;
use wire::access::{AccessMask, FileAttributes};
use wire::fsctl::{CtlCode, DuplicateExtents, DuplicateExtentsFlags};
use wire::ioctl::{IoctlFlags, Request};

use super::*;
use crate::server::ioctl;
use crate::server::scripted::{ALL, World};

/// A source of 64 KiB, a target of 32 KiB, and a SPARSE file.
fn world() -> (World, FileId, FileId) {
    let mut world = World::new();
    world.disk.add_file("s", FileAttributes::NONE);
    world.disk.add_file("t", FileAttributes::NONE);
    world.disk.add_file("sparse", FileAttributes::SPARSE_FILE);
    for (name, size) in [("s", 64 << 10), ("t", 32 << 10), ("sparse", 64 << 10)] {
        let file = world.disk.files.get_mut(name).expect("a file");
        file.size = size;
    }
    let (source, target) = (world.open("s", ALL), world.open("t", ALL));
    (world, source, target)
}

fn duplicate(
    world: &mut World,
    (source, target): (FileId, FileId),
    (source_offset, target_offset, byte_count): (u64, u64, u64),
) -> Result<Status, Status> {
    let range = DuplicateExtents {
        source,
        source_offset,
        target_offset,
        byte_count,
        flags: DuplicateExtentsFlags::NONE,
    };
    ask(
        world,
        target,
        CtlCode::DUPLICATE_EXTENTS_TO_FILE,
        &range.encode(),
    )
}

fn ask(
    world: &mut World,
    target: FileId,
    ctl_code: CtlCode,
    input: &[u8],
) -> Result<Status, Status> {
    let request = Request {
        ctl_code,
        file_id: target,
        max_input_response: 0,
        max_output_response: 0,
        flags: IoctlFlags::IS_FSCTL,
        input,
        output: &[],
    };
    let reply = world.run(ioctl::start, |out| request.encode(out))?;
    Ok(reply.status)
}

/// The plans that the file system received.
fn plans(world: &mut World) -> Vec<ClonePlan> {
    let log = world.disk.log.drain(..);
    log.filter_map(|operation| match operation {
        FileOp::OnOpen(_, Operation::CloneRange(plan)) => Some(plan),
        _ => None,
    })
    .collect()
}

#[test]
fn a_range_is_cut_at_the_end_of_the_target() {
    let (mut world, source, target) = world();
    let both = (source, target);
    let ok = Ok(Status::SUCCESS);
    assert_eq!(duplicate(&mut world, both, (4096, 0, 8192)), ok);
    assert_eq!(duplicate(&mut world, both, (0, 16 << 10, 64 << 10)), ok);
    let lengths: Vec<_> = plans(&mut world).iter().map(|plan| plan.length).collect();
    assert_eq!(lengths, [8192, 16 << 10]);
    assert_eq!(duplicate(&mut world, both, (0, 32 << 10, 4096)), ok);
    assert_eq!(duplicate(&mut world, both, (0, 0, 0)), ok);
    assert_eq!(plans(&mut world), []);
}

#[test]
fn ranges_that_cannot_be_shared_are_refused() {
    let (mut world, source, target) = world();
    let sparse = world.open("sparse", ALL);
    let (both, unsupported) = ((source, target), Err(Status::NOT_SUPPORTED));
    assert_eq!(
        duplicate(&mut world, both, (4096, 0, 64 << 10)),
        unsupported
    );
    let within = (source, source);
    assert_eq!(duplicate(&mut world, within, (0, 4096, 8192)), unsupported);
    let ok = Ok(Status::SUCCESS);
    assert_eq!(duplicate(&mut world, within, (0, 8192, 8192)), ok);
    let from_sparse = (sparse, target);
    assert_eq!(
        duplicate(&mut world, from_sparse, (0, 0, 4096)),
        unsupported
    );
    assert_eq!(duplicate(&mut world, (source, sparse), (0, 0, 4096)), ok);
    let invalid = Err(Status::INVALID_PARAMETER);
    for range in [
        (0, 33 << 10, 4096),
        (u64::MAX, 0, 1),
        (0, u64::MAX, 1),
        (1, 1, u64::MAX),
        (0, i64::MAX as u64, 4096),
    ] {
        assert_eq!(duplicate(&mut world, both, range), invalid, "{range:?}");
    }
}

#[test]
fn both_opens_need_rights_and_the_source_is_one_of_the_session() {
    let (mut world, source, target) = world();
    let range = (0, 0, 4096);
    let reader = world.open("t", AccessMask::FILE_READ_DATA);
    let denied = duplicate(&mut world, (source, reader), range);
    assert_eq!(denied, Err(Status::ACCESS_DENIED));
    let writer = world.open("s", AccessMask::FILE_WRITE_DATA);
    let denied = duplicate(&mut world, (writer, target), range);
    assert_eq!(denied, Err(Status::ACCESS_DENIED));
    let other = FileId {
        persistent: source.persistent ^ 1,
        ..source
    };
    let unknown = duplicate(&mut world, (other, target), range);
    assert_eq!(unknown, Err(Status::INVALID_HANDLE));
    let closed = duplicate(&mut world, (source, other), range);
    assert_eq!(closed, Err(Status::FILE_CLOSED));
}

#[test]
fn the_extended_form_does_the_same() {
    let (mut world, source, target) = world();
    let range = DuplicateExtents {
        source,
        source_offset: 0,
        target_offset: 0,
        byte_count: 4096,
        flags: DuplicateExtentsFlags::SOURCE_ATOMIC,
    };
    let ex = CtlCode::DUPLICATE_EXTENTS_TO_FILE_EX;
    let done = ask(&mut world, target, ex, &range.encode_ex());
    assert_eq!(done, Ok(Status::SUCCESS));
    assert_eq!(plans(&mut world).len(), 1);
    let short = ask(&mut world, target, ex, &range.encode());
    assert_eq!(short, Err(Status::INVALID_PARAMETER));
}

#[test]
fn a_time_that_the_client_set_stays() {
    let (mut world, source, target) = world();
    let open = world.session.opens.lock()[&target.volatile].clone();
    let kept = wire::FileTime(777);
    open.keep_write_time(Some(kept));
    let done = duplicate(&mut world, (source, target), (0, 0, 4096));
    assert_eq!(done, Ok(Status::SUCCESS));
    assert_eq!(world.disk.files["t"].written, kept);
}
