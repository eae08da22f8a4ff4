//! The sessions of a connection share its limits: a connection with many sessions has no more than
//! a connection with few.

use wire::access::{CreateDisposition, CreateOptions};
use wire::change_notify::{ChangeNotifyFlags, CompletionFilter, Request};
use wire::{Command, FileId, SessionId, Status};

use crate::harness::{Client, Message, Options, Rig, bytes_of, file_id};

const FULL: Status = Status::INSUFFICIENT_RESOURCES;

fn rig() -> Rig {
    Rig::new(|config| {
        config.limits.opens_per_connection = 3;
        config.limits.pipes_per_connection = 2;
        config.limits.watches_per_connection = 2;
    })
}

/// Logs in once more on the same connection and connects to the share.
fn again(rig: &mut Rig, client: &mut Client, share: &str) {
    client.session = SessionId(0);
    client.signing = None;
    client.signs = false;
    assert_eq!(client.log_in(rig, "bob").status(), Status::SUCCESS);
    assert_eq!(client.enter(rig, share).status(), Status::SUCCESS);
}

fn create(rig: &mut Rig, client: &mut Client, name: &str) -> Result<FileId, Status> {
    let message = client.create_message(name);
    let answer = client.ask(rig, message);
    match answer.status() {
        Status::SUCCESS => Ok(file_id(&answer)),
        status => Err(status),
    }
}

#[test]
fn opens() {
    let mut rig = rig();
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "files");
    for name in ["a", "b"] {
        create(&mut rig, &mut client, name).expect("the limit allows it");
    }
    again(&mut rig, &mut client, "files");
    let last = create(&mut rig, &mut client, "c").expect("the limit allows one more");
    assert_eq!(create(&mut rig, &mut client, "d"), Err(FULL));
    // Another connection has a separate limit, and a close frees one entry.
    let mut other = Client::in_share(&mut rig, Options::default(), "carol", "files");
    create(&mut rig, &mut other, "e").expect("the limit allows it");
    assert_eq!(client.close(&mut rig, last), Status::SUCCESS);
    create(&mut rig, &mut client, "d").expect("one was closed");
    assert_eq!(create(&mut rig, &mut client, "f"), Err(FULL));
}

#[test]
fn refused_requests_do_not_count() {
    let mut rig = rig();
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "files");
    for _ in 0..5 {
        let message = client.create_with("no", CreateDisposition::OPEN, CreateOptions::NONE);
        let answer = client.ask(&mut rig, message);
        assert_eq!(answer.status(), Status::OBJECT_NAME_NOT_FOUND);
    }
    for name in ["a", "b", "c"] {
        create(&mut rig, &mut client, name).expect("the limit allows it");
    }
}

#[test]
fn pipes() {
    let mut rig = rig();
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "IPC$");
    create(&mut rig, &mut client, "srvsvc").expect("the limit allows it");
    again(&mut rig, &mut client, "IPC$");
    let last = create(&mut rig, &mut client, "srvsvc").expect("the limit allows one more");
    assert_eq!(create(&mut rig, &mut client, "srvsvc"), Err(FULL));
    assert_eq!(client.close(&mut rig, last), Status::SUCCESS);
    create(&mut rig, &mut client, "srvsvc").expect("one was closed");
}

fn watch(client: &mut Client, directory: FileId) -> Message {
    let request = Request {
        flags: ChangeNotifyFlags::NONE,
        output_buffer_length: 4096,
        file_id: directory,
        completion_filter: CompletionFilter::FILE_NAME,
    };
    client.message(Command::CHANGE_NOTIFY, bytes_of(|out| request.encode(out)))
}

#[test]
fn watches() {
    let mut rig = rig();
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "files");
    let bytes = bytes_of(|bytes| wire::echo::Request.encode(bytes));
    let mut echo = client.message(Command::ECHO, bytes);
    echo.header.credits = 100;
    client.ask(&mut rig, echo);
    let make = |rig: &mut Rig, client: &mut Client, name| {
        let create = CreateDisposition::OPEN_IF;
        let message = client.create_with(name, create, CreateOptions::DIRECTORY_FILE);
        file_id(&client.ask(rig, message))
    };
    let directories = ["a", "b", "c"].map(|name| make(&mut rig, &mut client, name));
    for directory in &directories[..2] {
        let message = watch(&mut client, *directory);
        client.say(&mut rig, vec![message]);
        assert!(client.hear(&mut rig).is_none(), "it waits");
    }
    let message = watch(&mut client, directories[2]);
    assert_eq!(client.ask(&mut rig, message).status(), FULL);
    // An existing watch continues, and the end of a watch frees one entry.
    let message = watch(&mut client, directories[1]);
    client.say(&mut rig, vec![message]);
    assert!(client.hear(&mut rig).is_none(), "it waits");
    let close = client.close_message(directories[0]);
    client.say(&mut rig, vec![close]);
    while client.hear(&mut rig).is_some() {}
    let message = watch(&mut client, directories[2]);
    client.say(&mut rig, vec![message]);
    assert!(client.hear(&mut rig).is_none(), "it waits");
}
