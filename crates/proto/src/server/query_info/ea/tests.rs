use alloc::vec;
use alloc::vec::Vec;

use wire::access::{AccessMask, FileAttributes};
use wire::fscc::{
    Eas, FileAllInformation, FileEaInformation, FileInfoClass, InfoType, put_ea_names,
};
use wire::query_info::{QueryInfoFlags, Request, Response};
use wire::{FileId, Status};

use crate::ea::{Ea, list_len};
use crate::server::query_info::start;
use crate::server::scripted::{ALL, World, body};

fn ea(name: &[u8], value: &[u8]) -> Ea {
    Ea {
        name: name.to_vec(),
        value: value.to_vec(),
    }
}

/// A file with three attributes.
fn world() -> (World, FileId) {
    let mut world = World::new();
    world.disk.add_file("a", FileAttributes::NONE);
    world.disk.eas = vec![ea(b"One", b"1"), ea(b"two", &[2; 20]), ea(b"x", b"3")];
    let id = world.open("a", ALL);
    (world, id)
}

struct Query<'a> {
    flags: QueryInfoFlags,
    index: u32,
    names: &'a [&'a [u8]],
    length: u32,
}

const EVERYTHING: Query<'static> = Query {
    flags: QueryInfoFlags::NONE,
    index: 0,
    names: &[],
    length: 4096,
};

fn raw(
    world: &mut World,
    id: FileId,
    class: FileInfoClass,
    query: &Query<'_>,
) -> Result<(Status, Vec<u8>), Status> {
    let input = put_ea_names(Vec::new(), query.names).expect("short names");
    let request = Request {
        info_type: InfoType::FILE,
        file_info_class: class.0,
        output_buffer_length: query.length,
        additional_information: query.index,
        flags: query.flags,
        file_id: id,
        input: &input,
    };
    let reply = world.run(start, |out| request.encode(out))?;
    let body = body(&reply);
    let output = Response::decode(&body).expect("a response").output;
    Ok((reply.status, output.to_vec()))
}

/// The status, and the names and lengths of the values, of an answer.
type Found = (Status, Vec<(Vec<u8>, usize)>);

/// The names and lengths of the values in the answer.
fn ask(world: &mut World, id: FileId, query: &Query<'_>) -> Result<Found, Status> {
    let (status, output) = raw(world, id, FileInfoClass::FULL_EA, query)?;
    let eas = Eas::new(&output).map(|ea| ea.expect("an attribute"));
    let eas = eas.map(|ea| (ea.name.to_vec(), ea.value.len())).collect();
    Ok((status, eas))
}

#[test]
fn all_attributes_are_returned_once() {
    let (mut world, id) = world();
    let all = vec![
        (b"One".to_vec(), 1),
        (b"two".to_vec(), 20),
        (b"x".to_vec(), 1),
    ];
    let found = ask(&mut world, id, &EVERYTHING);
    assert_eq!(found, Ok((Status::SUCCESS, all.clone())));
    assert_eq!(ask(&mut world, id, &EVERYTHING), Err(Status::NO_MORE_EAS));
    let again = Query {
        flags: QueryInfoFlags::RESTART_SCAN,
        ..EVERYTHING
    };
    assert_eq!(ask(&mut world, id, &again), Ok((Status::SUCCESS, all)));
}

#[test]
fn attributes_that_do_not_fit_come_with_the_next_query() {
    let (mut world, id) = world();
    let short = Query {
        length: 40,
        ..EVERYTHING
    };
    let (status, eas) = ask(&mut world, id, &short).expect("a part");
    assert_eq!((status, eas.len()), (Status::BUFFER_OVERFLOW, 1));
    let (status, eas) = ask(&mut world, id, &short).expect("a part");
    assert_eq!((status, eas.len()), (Status::BUFFER_OVERFLOW, 1));
    let (status, eas) = ask(&mut world, id, &short).expect("the rest");
    assert_eq!((status, eas.len()), (Status::SUCCESS, 1));
    let nothing = Query {
        length: 12,
        flags: QueryInfoFlags::RESTART_SCAN,
        ..EVERYTHING
    };
    assert_eq!(ask(&mut world, id, &nothing), Err(Status::BUFFER_TOO_SMALL));
}

#[test]
fn an_index_selects_where_the_answer_starts() {
    let (mut world, id) = world();
    let at = |index| Query {
        flags: QueryInfoFlags::INDEX_SPECIFIED | QueryInfoFlags::RETURN_SINGLE_ENTRY,
        index,
        ..EVERYTHING
    };
    let two = vec![(b"two".to_vec(), 20)];
    assert_eq!(ask(&mut world, id, &at(2)), Ok((Status::SUCCESS, two)));
    let next = vec![(b"x".to_vec(), 1)];
    let found = ask(&mut world, id, &EVERYTHING);
    assert_eq!(found, Ok((Status::SUCCESS, next)), "it continues there");
    assert_eq!(ask(&mut world, id, &at(4)), Err(Status::NO_MORE_EAS));
    for index in [0, 5, u32::MAX] {
        let missing = ask(&mut world, id, &at(index));
        assert_eq!(missing, Err(Status::NONEXISTENT_EA_ENTRY), "{index}");
    }
}

#[test]
fn names_select_attributes_and_missing_ones_are_empty() {
    let (mut world, id) = world();
    let query = Query {
        names: &[b"TWO", b"none", b"one", b"Two"],
        ..EVERYTHING
    };
    let expected = vec![
        (b"two".to_vec(), 20),
        (b"none".to_vec(), 0),
        (b"One".to_vec(), 1),
    ];
    let found = ask(&mut world, id, &query);
    assert_eq!(found, Ok((Status::SUCCESS, expected)));
    let wrong = Query {
        names: &[b"two", b"a:b"],
        ..EVERYTHING
    };
    assert_eq!(ask(&mut world, id, &wrong), Err(Status::INVALID_EA_NAME));
}

#[test]
fn a_malformed_list_of_names_is_inconsistent() {
    let (mut world, id) = world();
    for input in [&[1; 3][..], &[0; 5], &[0, 0, 0, 0, 9, b'a', 0]] {
        let request = Request {
            info_type: InfoType::FILE,
            file_info_class: FileInfoClass::FULL_EA.0,
            output_buffer_length: 4096,
            additional_information: 0,
            flags: QueryInfoFlags::NONE,
            file_id: id,
            input,
        };
        let refused = world.run(start, |out| request.encode(out));
        let refused = refused.map(|reply| reply.status);
        assert_eq!(refused, Err(Status::EA_LIST_INCONSISTENT), "{input:?}");
    }
}

#[test]
fn the_size_of_the_attributes_needs_no_right() {
    let (mut world, _) = world();
    let expected = u32::try_from(list_len(&world.disk.eas)).expect("a short list");
    let id = world.open("a", AccessMask::SYNCHRONIZE);
    let (_, output) = raw(&mut world, id, FileInfoClass::EA, &EVERYTHING).expect("a size");
    let FileEaInformation { ea_size } = FileEaInformation::decode(&output).expect("a size");
    assert_eq!(ea_size, expected);
    let refused = ask(&mut world, id, &EVERYTHING);
    assert_eq!(refused, Err(Status::ACCESS_DENIED));
    let id = world.open("a", AccessMask::FILE_READ_ATTRIBUTES);
    let (_, output) = raw(&mut world, id, FileInfoClass::ALL, &EVERYTHING).expect("everything");
    let all = FileAllInformation::decode(&output).expect("everything");
    assert_eq!(all.ea.ea_size, expected);
}

#[test]
fn a_file_without_attributes_says_so() {
    let (mut world, id) = world();
    world.disk.eas.clear();
    assert_eq!(
        ask(&mut world, id, &EVERYTHING),
        Err(Status::NO_EAS_ON_FILE)
    );
}
