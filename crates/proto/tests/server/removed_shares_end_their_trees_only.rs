//! A change of the configuration of a running server: the tree connects of a removed share end with
//! their opens, and everything else stays. A changed share applies to later tree connects.

use std::sync::Arc;
use std::time::Duration;

use proto::file::ShareId;
use proto::server::config::{Config, Share};
use wire::access::OplockLevel;
use wire::create_context::{DURABLE_REQUEST_DATA, name};
use wire::dialect::Dialect;
use wire::{Command, Status, TreeId};

use crate::harness::{
    Ask, Client, EXCLUSIVE, EXCLUSIVE_NOW, Options, Rig, bytes_of, created, multichannel, share,
};

const NONE: OplockLevel = OplockLevel::NONE;

/// A server with the shares `files` and `more`, which have the same directory.
fn rig() -> Rig {
    Rig::new(|config| config.shares.push(Arc::new(share("more"))))
}

/// Changes the configuration as a driver does.
fn reconfigure(rig: &mut Rig, change: impl FnOnce(&mut Config)) {
    let mut config = rig.server.config();
    change(&mut config);
    let notices = rig.server.reconfigure(config);
    rig.notices.extend(notices);
}

fn remove(rig: &mut Rig, name: &str) {
    reconfigure(rig, |config| {
        config.shares.retain(|share| share.name != name);
    });
}

/// Enters another share, and returns the first tree.
fn enter(client: &mut Client, rig: &mut Rig, share: &str) -> TreeId {
    let before = client.tree;
    assert_eq!(client.enter(rig, share).status(), Status::SUCCESS);
    before
}

fn try_open(client: &mut Client, rig: &mut Rig, name: &str) -> Status {
    let message = client.open_message(name, Ask::level(NONE));
    client.ask(rig, message).status()
}

#[test]
fn only_the_trees_of_the_removed_share_end() {
    let mut rig = rig();
    let options = multichannel(Dialect::SMB_3_1_1);
    let mut first = Client::in_share(&mut rig, options, "alice", "files");
    let mut second = Client::channel_of(&mut rig, &first);
    first.create(&mut rig, "a");
    let removed = enter(&mut first, &mut rig, "more");
    first.create(&mut rig, "b");
    assert_eq!(rig.disk.opens.len(), 2);
    remove(&mut rig, "files");
    // No request starts, even before the notices arrive.
    let kept = std::mem::replace(&mut first.tree, removed);
    let status = try_open(&mut first, &mut rig, "c");
    assert_eq!(status, Status::NETWORK_NAME_DELETED);
    assert_eq!(
        first.enter(&mut rig, "files").status(),
        Status::BAD_NETWORK_NAME
    );
    rig.deliver_notices();
    assert_eq!(rig.disk.opens.len(), 1);
    first.tree = kept;
    assert_eq!(try_open(&mut first, &mut rig, "b"), Status::SUCCESS);
    second.tree = removed;
    let status = try_open(&mut second, &mut rig, "a");
    assert_eq!(status, Status::NETWORK_NAME_DELETED);
    assert!(rig.connection(second.id).is_logged_in());
    assert!(rig.violations.is_empty());
}

#[test]
fn requests_that_wait_in_a_removed_share_end() {
    let mut rig = rig();
    let mut alice = Client::with_credits(&mut rig);
    let mut other = Client::in_share(&mut rig, Options::default(), "bob", "more");
    let (held, _) = other.open(&mut rig, Ask::level(NONE));
    other.must_lock(&mut rig, held, (0, 10), EXCLUSIVE_NOW);
    let (file, _) = alice.open(&mut rig, Ask::level(NONE));
    let id = alice.lock_and_wait(&mut rig, file, (0, 10), EXCLUSIVE);
    remove(&mut rig, "files");
    rig.deliver_notices();
    assert_eq!(alice.hear_lock(&mut rig, id), Status::RANGE_NOT_LOCKED);
    assert!(rig.connection(alice.id).is_idle());
    assert_eq!(rig.disk.opens.len(), 1);
}

#[test]
fn a_share_that_is_removed_during_a_tree_connect_is_not_entered() {
    let mut rig = rig();
    let mut client = Client::logged_in(&mut rig, Options::default(), "alice");
    rig.is_holding = true;
    let message = client.connect_message("files");
    client.say(&mut rig, vec![message]);
    remove(&mut rig, "files");
    rig.deliver_notices();
    rig.release();
    let status = client.hear_answer(&mut rig).status();
    assert_eq!(status, Status::BAD_NETWORK_NAME);
    assert!(rig.connection(client.id).is_idle());
}

#[test]
fn opens_that_outlive_a_session_end_with_their_share() {
    let mut rig = rig();
    let mut alice = Client::in_share(&mut rig, Options::default(), "alice", "files");
    let mut bob = Client::in_share(&mut rig, Options::default(), "bob", "more");
    for (client, file) in [(&mut alice, "a"), (&mut bob, "b")] {
        let message = client.open_message(file, Ask::alone(OplockLevel::BATCH));
        let message = message.with_context(name::DURABLE_REQUEST, &DURABLE_REQUEST_DATA);
        created(&client.ask(&mut rig, message));
    }
    rig.cut(alice.id);
    rig.cut(bob.id);
    remove(&mut rig, "files");
    rig.pass(Duration::ZERO);
    assert_eq!(rig.disk.opens.len(), 1);
    rig.pass(Duration::from_secs(300));
    assert!(rig.server.is_idle() && rig.disk.opens.is_empty());
}

#[test]
fn a_changed_share_applies_to_later_tree_connects() {
    let mut rig = rig();
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "files");
    client.create(&mut rig, "a");
    reconfigure(&mut rig, |config| {
        config.shares[0] = Arc::new(Share {
            read_only: true,
            id: ShareId(7),
            ..share("FILES")
        });
    });
    assert!(rig.notices.is_empty());
    client.create(&mut rig, "b");
    enter(&mut client, &mut rig, "files");
    let message = client.create_message("c");
    let status = client.ask(&mut rig, message).status();
    assert_eq!(status, Status::ACCESS_DENIED);
    // The former share is removed with its name.
    remove(&mut rig, "FILES");
    rig.deliver_notices();
    assert!(rig.disk.opens.is_empty());
}

#[test]
fn limits_of_users_and_requirements_change_at_once() {
    let mut rig = rig();
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "files");
    client.create(&mut rig, "a");
    reconfigure(&mut rig, |config| {
        config.limits.opens_per_user = 1;
        config.encryption_required = true;
    });
    let status = try_open(&mut client, &mut rig, "b");
    assert_eq!(status, Status::TOO_MANY_OPENED_FILES);
    // The present session goes on without encryption.
    let bytes = bytes_of(|bytes| wire::echo::Request.encode(bytes));
    let message = client.message(Command::ECHO, bytes);
    assert_eq!(client.ask(&mut rig, message).status(), Status::SUCCESS);
    let mut old = Client::new(&mut rig, Options::only(Dialect::SMB_2_1));
    old.negotiate(&mut rig);
    assert_eq!(old.log_in(&mut rig, "bob").status(), Status::ACCESS_DENIED);
}
