use wire::access::{AccessMask, CreateOptions, FileAttributes};
use wire::close::{CloseFlags, Request, Response};
use wire::text::utf16;
use wire::{FileId, Status};

use crate::effect::Effects;
use crate::server::op_ids::OpIds;
use crate::server::scripted::{World, body, now, request};

fn doomed(world: &mut World, name: &str) -> FileId {
    let name = utf16(name);
    let mut request = request(&name);
    request.create_options = CreateOptions::DELETE_ON_CLOSE;
    world.create(&request).expect("the file opens").id
}

fn world() -> World {
    let mut world = World::new();
    world.disk.add_file("a", FileAttributes::NONE);
    world
}

#[test]
fn a_closed_open_is_gone() {
    let mut world = world();
    let id = world.open("a", AccessMask::FILE_READ_DATA);
    let reply = world.close(id).expect("it is open");
    let response = Response::decode(&body(&reply)).expect("a response");
    assert_eq!(response, Response::default());
    assert_eq!(world.close(id).err(), Some(Status::FILE_CLOSED));
    assert_eq!(world.disk.open_count(), 0);
}

#[test]
fn a_close_returns_requested_attributes() {
    let mut world = world();
    let file_id = world.open("a", AccessMask::FILE_READ_DATA);
    let request = Request {
        flags: CloseFlags::POSTQUERY_ATTRIB,
        file_id,
    };
    let reply = world.run(super::start, |out| request.encode(out));
    let reply = reply.expect("it is open");
    let response = Response::decode(&body(&reply)).expect("a response");
    assert_eq!(response.flags, CloseFlags::POSTQUERY_ATTRIB);
    assert_eq!(response.file_attributes, FileAttributes::NORMAL);
    assert_eq!(response.allocation_size, 4096);
}

#[test]
fn the_name_goes_before_the_open_and_with_the_last_one() {
    let mut world = world();
    let first = doomed(&mut world, "a");
    let second = world.open("a", AccessMask::FILE_READ_DATA);
    world.disk.asked();
    let _ = world.close(first).expect("it is open");
    assert!(world.disk.asked().is_empty(), "it is parked");
    let name = utf16("a");
    let late = world.create(&request(&name));
    assert_eq!(late, Err(Status::DELETE_PENDING));
    world.disk.asked();
    let _ = world.close(second).expect("it is open");
    assert_eq!(world.disk.asked(), ["Unlink", "Close", "Close"]);
    assert!(!world.disk.has("a"));
    assert_eq!(world.disk.open_count(), 0);
}

#[test]
fn a_directory_that_holds_something_is_silently_kept() {
    let mut world = world();
    world.disk.add_directory("d");
    world.disk.add_file("d/f", FileAttributes::NONE);
    let id = doomed(&mut world, "d");
    let _ = world.close(id).expect("a close does not fail");
    assert!(world.disk.has("d"));
    assert_eq!(world.disk.open_count(), 0);
    world.open("d", AccessMask::FILE_READ_DATA);
}

#[test]
fn an_abandoned_open_does_what_a_close_does() {
    let mut world = world();
    let id = doomed(&mut world, "a");
    let open = world.session.opens.lock().remove(&id.volatile);
    let open = open.expect("it is open");
    let (mut effects, mut op_ids) = (Effects::new(), OpIds::default());
    let closed = (&*open, &*world.session);
    let abandoned = super::abandon(&world.server, now(), closed, &mut op_ids, &mut effects);
    assert_eq!(abandoned.ops.len(), 2);
    assert!(alloc::format!("{:?}", effects.pop()).contains("Unlink"));
    assert!(alloc::format!("{:?}", effects.pop()).contains("Close"));
    assert!(effects.is_empty());
    assert!(!world.server.files.is_open(open.key));
}
