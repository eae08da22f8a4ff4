//! The limits of a user count the objects of all connections of the user, and of no other user. The
//! ledger is empty after the end of the connections.

use proto::server::ledger::Resource;
use wire::Status;

use crate::harness::{Client, EXCLUSIVE_NOW, Options, Rig, UNLOCK, file_id};

fn client(rig: &mut Rig, user: &str) -> Client {
    Client::in_share(rig, Options::default(), user, "files")
}

fn create(rig: &mut Rig, client: &mut Client, name: &str) -> Status {
    let message = client.create_message(name);
    client.ask(rig, message).status()
}

#[test]
fn opens_of_all_connections_count_for_their_user() {
    let mut rig = Rig::new(|config| config.limits.opens_per_user = 2);
    let [mut first, mut second] = ["alice", "alice"].map(|user| client(&mut rig, user));
    assert_eq!(create(&mut rig, &mut first, "a"), Status::SUCCESS);
    let message = second.create_message("b");
    let last = file_id(&second.ask(&mut rig, message));
    for client in [&mut first, &mut second] {
        let status = create(&mut rig, client, "c");
        assert_eq!(status, Status::TOO_MANY_OPENED_FILES);
    }
    let mut other = client(&mut rig, "bob");
    assert_eq!(create(&mut rig, &mut other, "d"), Status::SUCCESS);
    assert_eq!(second.close(&mut rig, last), Status::SUCCESS);
    assert_eq!(create(&mut rig, &mut first, "c"), Status::SUCCESS);
    let refusals = rig.server.ledger().take_refusals();
    assert_eq!(refusals.len(), 1, "one user has reached one limit");
    assert_eq!((refusals[0].user.as_str(), refusals[0].count), ("alice", 2));
}

#[test]
fn locks_of_all_files_count_for_their_user() {
    let mut rig = Rig::new(|config| config.limits.locks_per_user = 3);
    let mut client = Client::with_credits(&mut rig);
    let files = ["a", "b"].map(|name| client.create(&mut rig, name));
    let mut lock = |client: &mut Client, file: usize, offset, flags| {
        client.lock(&mut rig, files[file], (offset, 1), flags)
    };
    assert_eq!(lock(&mut client, 0, 0, EXCLUSIVE_NOW), Status::SUCCESS);
    assert_eq!(lock(&mut client, 0, 1, EXCLUSIVE_NOW), Status::SUCCESS);
    // A lock that is not granted does not count.
    let refused = lock(&mut client, 0, 0, EXCLUSIVE_NOW);
    assert_eq!(refused, Status::LOCK_NOT_GRANTED);
    assert_eq!(lock(&mut client, 1, 0, EXCLUSIVE_NOW), Status::SUCCESS);
    let refused = lock(&mut client, 1, 1, EXCLUSIVE_NOW);
    assert_eq!(refused, Status::INSUFFICIENT_RESOURCES);
    assert_eq!(lock(&mut client, 0, 1, UNLOCK), Status::SUCCESS);
    assert_eq!(lock(&mut client, 1, 1, EXCLUSIVE_NOW), Status::SUCCESS);
    assert_eq!(client.close(&mut rig, files[1]), Status::SUCCESS);
    assert_eq!(rig.server.ledger().used(Resource::Locks), 1);
}

#[test]
fn a_login_beyond_the_connections_of_its_user_is_refused() {
    let mut rig = Rig::new(|config| config.limits.connections_per_user = 1);
    let first = client(&mut rig, "alice");
    let mut second = Client::new(&mut rig, Options::default());
    second.negotiate(&mut rig);
    let status = second.log_in(&mut rig, "alice").status();
    assert_eq!(status, Status::REQUEST_NOT_ACCEPTED);
    client(&mut rig, "bob");
    rig.cut(first.id);
    let mut third = Client::new(&mut rig, Options::default());
    third.negotiate(&mut rig);
    assert_eq!(third.log_in(&mut rig, "alice").status(), Status::SUCCESS);
}

#[test]
fn the_ledger_is_empty_after_the_last_connection() {
    let mut rig = Rig::new(|_| {});
    let mut clients = [Client::with_credits(&mut rig), client(&mut rig, "bob")];
    let file = clients[0].create(&mut rig, "a");
    let status = clients[0].lock(&mut rig, file, (0, 1), EXCLUSIVE_NOW);
    assert_eq!(status, Status::SUCCESS);
    assert_eq!(create(&mut rig, &mut clients[1], "b"), Status::SUCCESS);
    let used = |rig: &Rig, resource| rig.server.ledger().used(resource);
    let expected = [
        (Resource::Connections, 2),
        (Resource::Opens, 2),
        (Resource::Locks, 1),
    ];
    for (resource, count) in expected {
        assert_eq!(used(&rig, resource), count, "{resource:?}");
    }
    for client in clients {
        rig.cut(client.id);
    }
    for resource in Resource::ALL {
        assert_eq!(used(&rig, resource), 0, "{resource:?}");
    }
}
