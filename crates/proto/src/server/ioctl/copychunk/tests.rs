use alloc::vec;

use wire::access::{CreateOptions, FileAttributes};
use wire::fsctl::ResumeKeyResponse;
use wire::ioctl::{IoctlFlags, Response};
use wire::{FileId, SessionId};

use super::*;
use crate::server::config::{Limits, Share, SyncPolicy};
use crate::server::ioctl;
use crate::server::scripted::{ALL, World, body, disk_share, request};

const READ: AccessMask = AccessMask::FILE_READ_DATA;
const WRITE: AccessMask = AccessMask::FILE_WRITE_DATA;

fn world() -> World {
    world_of(disk_share())
}

fn world_of(share: Share) -> World {
    let mut world = World::of(share, ALL, Limits::default());
    world.disk.add_file("s", FileAttributes::NONE);
    world.disk.add_file("t", FileAttributes::NONE);
    world.disk.files.get_mut("s").expect("a file").size = 1 << 30;
    world
}

fn ask(
    world: &mut World,
    file_id: FileId,
    ctl_code: CtlCode,
    input: &[u8],
    max_output_response: u32,
) -> Result<(Status, Vec<u8>), Status> {
    let request = Request {
        ctl_code,
        file_id,
        max_input_response: 0,
        max_output_response,
        flags: IoctlFlags::IS_FSCTL,
        input,
        output: &[],
    };
    let reply = world.run(ioctl::start, |out| request.encode(out))?;
    let body = body(&reply);
    let output = Response::decode(&body).expect("a response").output.to_vec();
    Ok((reply.status, output))
}

fn key(world: &mut World, open: FileId) -> [u8; 24] {
    let answer = ask(world, open, CtlCode::SRV_REQUEST_RESUME_KEY, &[], 32);
    let (status, output) = answer.expect("a key");
    assert_eq!(status, Status::SUCCESS);
    ResumeKeyResponse::decode(&output)
        .expect("a key")
        .resume_key
}

fn chunk(source_offset: u64, target_offset: u64, length: u32) -> Chunk {
    Chunk {
        source_offset,
        target_offset,
        length,
    }
}

/// The outcome of a copy: the status and the three counts.
fn copy(
    world: &mut World,
    ctl_code: CtlCode,
    (source_key, target): ([u8; 24], FileId),
    chunks: &[Chunk],
) -> (Status, [u32; 3]) {
    let chunks = chunks.to_vec();
    let input = CopyChunkRequest { source_key, chunks }.encode();
    let (status, output) = ask(world, target, ctl_code, &input, 12).expect("three counts");
    let counts = CopyChunkResponse::decode(&output).expect("three counts");
    let CopyChunkResponse {
        chunks_written,
        chunk_bytes_written,
        total_bytes_written,
    } = counts;
    (
        status,
        [chunks_written, chunk_bytes_written, total_bytes_written],
    )
}

/// The same with files that are open for everything.
fn copy_all(world: &mut World, chunks: &[Chunk]) -> (Status, [u32; 3]) {
    let (source, target) = (world.open("s", ALL), world.open("t", ALL));
    let key = key(world, source);
    copy(world, CtlCode::SRV_COPYCHUNK, (key, target), chunks)
}

#[test]
fn each_chunk_is_copied_for_itself_and_in_order() {
    let mut world = world();
    let chunks = [chunk(0, 100, 10), chunk(1 << 20, 0, 1 << 20)];
    let total = (1 << 20) + 10;
    assert_eq!(
        copy_all(&mut world, &chunks),
        (Status::SUCCESS, [2, 0, total])
    );
    let plans = world
        .disk
        .log
        .iter()
        .filter_map(|operation| match operation {
            FileOp::OnOpen(_, Operation::CopyRange(plan)) => {
                Some((plan.source_offset, plan.target_offset, plan.length))
            }
            _ => None,
        });
    assert_eq!(
        plans.collect::<Vec<_>>(),
        [(0, 100, 10), (1 << 20, 0, 1 << 20)]
    );
    assert_eq!(world.disk.files["t"].size, 1 << 20);
}

/// smbtorture smb2.ioctl.copy_chunk_src_lock and copy_chunk_dest_lock
#[test]
fn a_copy_goes_as_far_as_the_first_locked_byte() {
    for locked in ["s", "t"] {
        let mut world = world();
        let other = world.open(locked, ALL);
        world.lock(other, 15, 1);
        let chunks = [chunk(0, 0, 10), chunk(10, 10, 10), chunk(20, 20, 10)];
        let (status, counts) = copy_all(&mut world, &chunks);
        assert_eq!(status, Status::FILE_LOCK_CONFLICT);
        assert_eq!(counts, [1, 0, 10], "{locked}");
    }
}

#[test]
fn no_chunk_is_no_copy() {
    let mut world = world();
    assert_eq!(copy_all(&mut world, &[]), (Status::SUCCESS, [0, 0, 0]));
}

#[test]
fn a_request_beyond_the_limits_gets_the_limits() {
    let limits = (Status::INVALID_PARAMETER, [256, 1 << 20, 16 << 20]);
    let largest = chunk(0, 0, 1 << 20);
    for chunks in [
        vec![chunk(0, 0, 0)],
        vec![chunk(0, 0, (1 << 20) + 1)],
        vec![chunk(0, 0, 1); 257],
        vec![largest; 17],
        [vec![largest; 16], vec![chunk(0, 0, 1)]].concat(),
    ] {
        let mut world = world();
        assert_eq!(copy_all(&mut world, &chunks), limits);
        assert_eq!(world.disk.files["t"].size, 0);
    }
    let most = copy_all(&mut world(), &vec![largest; 16]);
    assert_eq!(most, (Status::SUCCESS, [16, 0, 16 << 20]));
    let smallest = copy_all(&mut world(), &vec![chunk(0, 0, 1); 256]);
    assert_eq!(smallest, (Status::SUCCESS, [256, 0, 256]));
}

#[test]
fn a_key_is_one_of_an_open_of_this_session() {
    let mut world = world();
    let (source, target) = (world.open("s", ALL), world.open("t", ALL));
    let good = key(&mut world, source);
    assert_eq!(key(&mut world, source), good);
    let unknown = (Status::OBJECT_NAME_NOT_FOUND, [0; 3]);
    let chunks = [chunk(0, 0, 1)];
    for place in 0..24 {
        let mut bad = good;
        bad[place] ^= 0x80;
        let refused = copy(&mut world, CtlCode::SRV_COPYCHUNK, (bad, target), &chunks);
        assert_eq!(refused, unknown, "byte {place}");
    }
    world.close(source).expect("a close");
    let refused = copy(&mut world, CtlCode::SRV_COPYCHUNK, (good, target), &chunks);
    assert_eq!(refused, unknown);
    assert_ne!(world.session.id, SessionId(0));
}

#[test]
fn a_key_needs_room() {
    let mut world = world();
    let source = world.open("s", ALL);
    let answer = ask(&mut world, source, CtlCode::SRV_REQUEST_RESUME_KEY, &[], 31);
    assert_eq!(answer, Err(Status::INVALID_PARAMETER));
}

#[test]
fn rights_are_needed_on_both_sides() {
    let (both, only) = (CtlCode::SRV_COPYCHUNK, CtlCode::SRV_COPYCHUNK_WRITE);
    let append = AccessMask::FILE_APPEND_DATA;
    let attributes = AccessMask::FILE_WRITE_ATTRIBUTES;
    let done = (Status::SUCCESS, [1, 0, 1]);
    let denied = (Status::ACCESS_DENIED, [0; 3]);
    for (ctl_code, source, target, expected) in [
        (both, READ, READ | WRITE, done),
        (both, AccessMask::FILE_EXECUTE, READ | WRITE, done),
        (both, READ, READ | append, done),
        (both, READ, WRITE, denied),
        (both, READ, READ, denied),
        (both, WRITE, READ | WRITE, denied),
        (only, READ, WRITE, done),
        (only, READ, append, done),
        (only, READ, attributes, denied),
        (only, attributes, WRITE, denied),
    ] {
        let mut world = world();
        let opens = (world.open("s", source), world.open("t", target));
        let key = key(&mut world, opens.0);
        let came = copy(&mut world, ctl_code, (key, opens.1), &[chunk(0, 0, 1)]);
        assert_eq!(came, expected, "{ctl_code:?} {source:?} {target:?}");
    }
}

#[test]
fn directories_are_not_copied() {
    let mut world = world();
    world.disk.add_directory("d");
    let opens = ["d", "s"].map(|name| world.open(name, ALL));
    for (from, to) in [(0, 1), (1, 0)] {
        let key = key(&mut world, opens[from]);
        let came = copy(
            &mut world,
            CtlCode::SRV_COPYCHUNK,
            (key, opens[to]),
            &[chunk(0, 0, 1)],
        );
        assert_eq!(came, (Status::ACCESS_DENIED, [0; 3]));
    }
}

#[test]
fn a_failed_copy_reports_the_copied_chunks() {
    let mut world = world();
    let beyond = [chunk(0, 0, 10), chunk((1 << 30) - 5, 10, 6), chunk(0, 0, 1)];
    let came = copy_all(&mut world, &beyond);
    assert_eq!(came, (Status::INVALID_VIEW_SIZE, [1, 0, 10]));

    world.disk.copy_stops_after = Some(3);
    let came = copy_all(&mut world, &[chunk(0, 0, 10)]);
    assert_eq!(came, (Status::DISK_FULL, [0, 3, 3]));
}

#[test]
fn offsets_that_no_file_has_are_refused() {
    for bad in [
        chunk(u64::MAX, 0, 1),
        chunk(0, u64::MAX, 1),
        chunk(0, MAX_FILE_SIZE, 1),
        chunk(MAX_FILE_SIZE, 0, 1),
    ] {
        let came = copy_all(&mut world(), &[bad]);
        assert_eq!(came, (Status::INVALID_PARAMETER, [0; 3]), "{bad:?}");
    }
}

#[test]
fn a_request_that_makes_no_sense_has_no_counts() {
    let mut world = world();
    let target = world.open("t", ALL);
    let chunks = vec![chunk(0, 0, 1)];
    let source_key = [0; 24];
    let input = CopyChunkRequest { source_key, chunks }.encode();
    let mut ask = |input: &[u8], room| {
        let answer = ask(&mut world, target, CtlCode::SRV_COPYCHUNK, input, room);
        answer.expect_err("refused")
    };
    assert_eq!(ask(&input, 11), Status::INVALID_PARAMETER);
    for end in 0..input.len() {
        assert_eq!(ask(&input[..end], 12), Status::INVALID_PARAMETER, "{end}");
    }
}

#[test]
fn a_copy_that_is_not_wanted_any_more_ends_between_two_chunks() {
    let mut world = world();
    world.is_cancelled = true;
    let came = copy_all(&mut world, &[chunk(0, 0, 1)]);
    assert_eq!(came, (Status::CANCELLED, [0; 3]));
    world.is_cancelled = false;
    let (source, target) = (world.open("s", ALL), world.open("t", ALL));
    let key = key(&mut world, source);
    world.session.state.lock().is_closed = true;
    let came = copy(
        &mut world,
        CtlCode::SRV_COPYCHUNK,
        (key, target),
        &[chunk(0, 0, 1)],
    );
    assert_eq!(came, (Status::CANCELLED, [0; 3]));
}

#[test]
fn a_copy_to_a_write_through_open_is_flushed() {
    let mut world = world();
    let source = world.open("s", ALL);
    let name = wire::text::utf16("t");
    let through = wire::create::Request {
        create_options: CreateOptions::WRITE_THROUGH,
        ..request(&name)
    };
    let target = world.create(&through).expect("an open").id;
    let key = key(&mut world, source);
    world.disk.log.clear();
    let came = copy(
        &mut world,
        CtlCode::SRV_COPYCHUNK,
        (key, target),
        &[chunk(0, 0, 1)],
    );
    assert_eq!(came, (Status::SUCCESS, [1, 0, 1]));
    assert_eq!(world.disk.asked(), ["CopyRange", "Flush"]);
}

#[test]
fn the_share_decides_about_flushes_after_copies() {
    for (sync, expected) in [
        (SyncPolicy::Client, &["CopyRange"][..]),
        (SyncPolicy::Flush, &["CopyRange"]),
        (SyncPolicy::Always, &["CopyRange", "Flush"]),
    ] {
        let mut world = world_of(Share {
            sync,
            ..disk_share()
        });
        let (source, target) = (world.open("s", ALL), world.open("t", ALL));
        let key = key(&mut world, source);
        world.disk.log.clear();
        let came = copy(
            &mut world,
            CtlCode::SRV_COPYCHUNK,
            (key, target),
            &[chunk(0, 0, 1)],
        );
        assert_eq!(came, (Status::SUCCESS, [1, 0, 1]));
        assert_eq!(world.disk.asked(), expected, "{sync:?}");
    }
}

#[test]
fn a_time_that_the_client_set_stays() {
    let mut world = world();
    let (source, target) = (world.open("s", ALL), world.open("t", ALL));
    let key = key(&mut world, source);
    let open = world.session.opens.lock()[&target.volatile].clone();
    let kept = wire::FileTime(777);
    open.keep_write_time(Some(kept));
    let came = copy(
        &mut world,
        CtlCode::SRV_COPYCHUNK,
        (key, target),
        &[chunk(0, 0, 1)],
    );
    assert_eq!(came, (Status::SUCCESS, [1, 0, 1]));
    assert_eq!(world.disk.files["t"].written, kept);
}
