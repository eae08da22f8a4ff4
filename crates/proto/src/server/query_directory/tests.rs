use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use wire::access::{AccessMask, FileAttributes};
use wire::fscc::{DirectoryEntries, FileInfoClass};
use wire::query_directory::{QueryDirectoryFlags, Request, Response};
use wire::text::utf16;
use wire::{FileId, Status, Utf16};

use crate::file::{DirectoryEntry, FileOp, Metadata, Operation, Select};
use crate::server::scripted::{ALL, World, body};

const NONE: QueryDirectoryFlags = QueryDirectoryFlags::NONE;
const SINGLE: QueryDirectoryFlags = QueryDirectoryFlags::RETURN_SINGLE_ENTRY;
const BOTH: FileInfoClass = FileInfoClass::ID_BOTH_DIRECTORY;

fn world(count: usize) -> (World, FileId) {
    let mut world = World::new();
    world.disk.add_directory("d");
    world.disk.add_file("f", FileAttributes::NONE);
    world.disk.entries = (0..count)
        .map(|number| DirectoryEntry {
            name: format!("file{number:05}"),
            metadata: Metadata::default(),
        })
        .collect();
    let id = world.open("d", ALL);
    (world, id)
}

/// The bytes that a request brings.
fn list_bytes(
    world: &mut World,
    id: FileId,
    class: FileInfoClass,
    flags: QueryDirectoryFlags,
    pattern: &str,
    length: u32,
) -> Result<Vec<u8>, Status> {
    let pattern = utf16(pattern);
    let request = Request {
        file_information_class: class.0,
        flags,
        file_index: 0,
        file_id: id,
        pattern: Utf16(&pattern),
        output_buffer_length: length,
    };
    let reply = world.run(super::start, |out| request.encode(out))?;
    let body = body(&reply);
    let output = Response::decode(&body).expect("a response").output;
    assert!(output.len() <= length as usize);
    Ok(output.to_vec())
}

fn list(
    world: &mut World,
    id: FileId,
    flags: QueryDirectoryFlags,
    pattern: &str,
    length: u32,
) -> Result<Vec<String>, Status> {
    let output = list_bytes(world, id, BOTH, flags, pattern, length)?;
    let entries = DirectoryEntries::new(BOTH, &output).expect("a class that lists");
    let names = entries.map(|entry| {
        let name = entry.expect("a good entry").name;
        name.decode().expect("a good name")
    });
    Ok(names.collect())
}

#[test]
fn every_entry_is_listed_once_and_in_order_with_any_buffer() {
    for length in [130, 500, 4096, 65_536, 1 << 20] {
        for flags in [NONE, SINGLE] {
            let (mut world, id) = world(300);
            let mut names = Vec::new();
            let end = loop {
                match list(&mut world, id, flags, "*", length) {
                    Ok(more) => names.extend(more),
                    Err(status) => break status,
                }
            };
            assert_eq!(end, Status::NO_MORE_FILES);
            let expected = world.disk.entries.iter().map(|entry| entry.name.clone());
            assert!(expected.eq(names), "{length} {flags:?}");
        }
    }
}

#[test]
fn a_single_entry_is_one() {
    let (mut world, id) = world(3);
    let one = list(&mut world, id, SINGLE, "*", 65_536).expect("an entry");
    assert_eq!(one, ["file00000"]);
    let rest = list(&mut world, id, NONE, "*", 65_536).expect("entries");
    assert_eq!(rest, ["file00001", "file00002"]);
}

#[test]
fn an_empty_result_is_no_such_file_once_and_no_more_files_later() {
    let (mut world, id) = world(0);
    let first = list(&mut world, id, NONE, "*.txt", 65_536);
    assert_eq!(first, Err(Status::NO_SUCH_FILE));
    let (mut world, id) = self::world(1);
    list(&mut world, id, NONE, "*", 65_536).expect("an entry");
    for _ in 0..3 {
        let later = list(&mut world, id, NONE, "*", 65_536);
        assert_eq!(later, Err(Status::NO_MORE_FILES));
    }
}

#[test]
fn a_restart_begins_again_and_forgets_what_was_left_over() {
    for flags in [
        QueryDirectoryFlags::RESTART_SCANS,
        QueryDirectoryFlags::REOPEN,
    ] {
        let (mut world, id) = world(10);
        list(&mut world, id, SINGLE, "*", 65_536).expect("an entry");
        let again = list(&mut world, id, flags, "*", 65_536).expect("entries");
        assert_eq!(again.len(), 10);
        assert_eq!(again[0], "file00000");
    }
}

#[test]
fn the_pattern_of_the_first_call_holds_until_a_restart() {
    let (mut world, id) = world(2);
    let mut selects = |flags, pattern| {
        let _ = list(&mut world, id, flags, pattern, 65_536);
        let asked = world
            .disk
            .log
            .drain(..)
            .filter_map(|operation| match operation {
                FileOp::OnOpen(_, Operation::ReadDirectory(plan)) => Some(plan.select),
                _ => None,
            });
        asked.collect::<Vec<_>>().pop()
    };
    let name = Select::Name("a.b".into());
    assert_eq!(selects(NONE, "a.b"), Some(name.clone()));
    assert_eq!(selects(NONE, "*"), Some(name));
    let restart = QueryDirectoryFlags::RESTART_SCANS;
    assert_eq!(selects(restart, "*"), Some(Select::All));
    let matching = selects(QueryDirectoryFlags::REOPEN, "a*");
    assert!(matches!(matching, Some(Select::Matching(_))));
}

/// KS#d636ecf: another server looped forever.
#[test]
fn a_huge_directory_is_asked_for_in_batches_that_end() {
    let (mut world, id) = world(5000);
    list(&mut world, id, NONE, "*", 65_536).expect("entries");
    let batches = world.disk.asked();
    let reads = batches.iter().filter(|name| *name == "ReadDirectory");
    assert!(reads.count() <= 2);
}

#[test]
fn a_buffer_that_holds_not_one_entry_is_too_short_and_nothing_is_lost() {
    let (mut world, id) = world(1);
    let too_short = Err(Status::INFO_LENGTH_MISMATCH);
    assert_eq!(list(&mut world, id, NONE, "*", 0), too_short);
    assert_eq!(list(&mut world, id, NONE, "*", 103), too_short);
    assert_eq!(list(&mut world, id, NONE, "*", 104), too_short);
    let all = list(&mut world, id, NONE, "*", 200).expect("an entry");
    assert_eq!(all, ["file00000"]);
}

#[test]
fn every_class_of_a_listing_fits_its_buffer() {
    for class in [1, 2, 3, 12, 37, 38, 60] {
        for length in 0..600 {
            let (mut world, id) = world(8);
            let class = FileInfoClass(class);
            let _ = list_bytes(&mut world, id, class, NONE, "*", length);
        }
    }
}

#[test]
fn what_cannot_be_listed_is_refused() {
    let (mut world, id) = world(1);
    for class in [0, 4, 18, 100, 255] {
        let refused = list_bytes(&mut world, id, FileInfoClass(class), NONE, "*", 4096);
        assert_eq!(refused, Err(Status::INVALID_INFO_CLASS), "{class}");
    }
    for pattern in ["", "a\\b", "a/b", "a\0"] {
        let refused = list(&mut world, id, NONE, pattern, 4096);
        assert_eq!(refused, Err(Status::OBJECT_NAME_INVALID), "{pattern:?}");
    }
    let too_much = list(&mut world, id, NONE, "*", (8 << 20) + 1);
    assert_eq!(too_much, Err(Status::INVALID_PARAMETER));
    let file = world.open("f", ALL);
    let not_one = list(&mut world, file, NONE, "*", 4096);
    assert_eq!(not_one, Err(Status::INVALID_PARAMETER));
    let blind = world.open("d", AccessMask::FILE_READ_ATTRIBUTES);
    let denied = list(&mut world, blind, NONE, "*", 4096);
    assert_eq!(denied, Err(Status::ACCESS_DENIED));
}

/// smbtorture smb2.dir.fixed: a file that was deleted before it was listed is not listed.
#[test]
fn a_request_for_one_entry_asks_for_no_more() {
    let (mut world, id) = world(5);
    list(&mut world, id, SINGLE, "*", 256).expect("an entry");
    world.disk.entries.truncate(1);
    let gone = list(&mut world, id, NONE, "*", 4096);
    assert_eq!(gone, Err(Status::NO_MORE_FILES));
}
