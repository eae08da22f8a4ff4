//! A client with a lease gives up rights before another open sees the file. \[MS-SMB2\] 3.3.4.7,
//! 3.3.5.9.8, 3.3.5.22.2
//!
//! All clients here have one ClientGuid; their lease keys differ.

use std::time::Duration;

use proto::file::{LocalChange, LocalEvent};
use wire::access::{CreateOptions, OplockLevel};
use wire::change_notify::CompletionFilter;
use wire::create_context::{LeaseFlags, LeaseState};
use wire::dialect::Dialect;
use wire::fscc::FileAction;
use wire::{Guid, Status};

use crate::harness::{Ask, Client, Options, R, RH, RWH, Rig, leased, share};

const KEY: u8 = 1;
const OTHER_KEY: u8 = 2;

/// A server and two of its clients, the older connection first.
fn two() -> (Rig, Client, Client) {
    let mut rig = Rig::new(|_| {});
    let one = Client::with_credits(&mut rig);
    let other = Client::with_credits(&mut rig);
    (rig, one, other)
}

fn plain() -> Ask {
    Ask::level(OplockLevel::NONE)
}

#[test]
fn a_break_goes_to_the_oldest_connection_and_any_session_acknowledges_it() {
    let (mut rig, mut oldest, mut holder) = two();
    let (_, lease) = holder.open_leased(&mut rig, "f", KEY, RWH);
    assert_eq!(lease.expect("a lease").lease_state, RWH);
    let waiting = holder.open_and_wait(&mut rig, plain());
    let notified = oldest.hear_lease_break(&mut rig);
    assert_eq!(notified.lease_key, Guid([KEY; 16]));
    assert_eq!(
        (notified.current_lease_state, notified.new_lease_state),
        (RWH, RH)
    );
    assert_eq!(notified.new_epoch, 2);
    assert!(holder.hear(&mut rig).is_none());
    let status = oldest.acknowledge_lease(&mut rig, KEY, RH);
    assert_eq!(status, Status::SUCCESS);
    let answer = holder.hear_answer(&mut rig);
    assert_eq!(answer.header.message_id, waiting);
    assert_eq!(answer.status(), Status::SUCCESS);
}

#[test]
fn a_break_on_a_lost_connection_is_sent_on_another_one() {
    let (mut rig, mut oldest, mut holder) = two();
    holder.open_leased(&mut rig, "f", KEY, RWH);
    holder.open_and_wait(&mut rig, plain());
    oldest.hear_lease_break(&mut rig);
    rig.cut(oldest.id);
    let again = holder.hear_lease_break(&mut rig);
    assert_eq!(
        (again.current_lease_state, again.new_lease_state),
        (RWH, RH)
    );
    // After the acknowledgment nothing is sent again.
    let mut third = Client::with_credits(&mut rig);
    let message = holder.lease_message("g", OTHER_KEY, R);
    holder.say(&mut rig, vec![message]);
    while holder.hear(&mut rig).is_some() {}
    let request = third.acknowledge_lease(&mut rig, KEY, RH);
    assert_eq!(request, Status::SUCCESS);
}

#[test]
fn a_lease_without_an_acknowledgment_ends_with_the_time_limit() {
    let (mut rig, mut oldest, mut holder) = two();
    holder.open_leased(&mut rig, "f", KEY, RWH);
    holder.open_and_wait(&mut rig, plain());
    oldest.hear_lease_break(&mut rig);
    rig.pass(Duration::from_secs(36));
    let late = oldest.acknowledge_lease(&mut rig, KEY, RH);
    assert_eq!(late, Status::UNSUCCESSFUL);
    let (_, lease) = oldest.open_leased(&mut rig, "f", KEY, LeaseState::NONE);
    assert_eq!(
        lease.expect("the lease stays").lease_state,
        LeaseState::NONE
    );
}

#[test]
fn a_lease_key_is_for_one_file() {
    let (mut rig, mut one, mut other) = two();
    one.open_leased(&mut rig, "f", KEY, RWH);
    let message = other.lease_message("g", KEY, RWH);
    assert_eq!(
        other.ask(&mut rig, message).status(),
        Status::INVALID_PARAMETER
    );
    assert!(!rig.disk.has("g"), "the refused CREATE leaves no file");
    let unknown = other.acknowledge_lease(&mut rig, OTHER_KEY, R);
    assert_eq!(unknown, Status::OBJECT_NAME_NOT_FOUND);
    let not_broken = other.acknowledge_lease(&mut rig, KEY, R);
    assert_eq!(not_broken, Status::UNSUCCESSFUL);
}

#[test]
fn dialects_and_shares_without_leases_grant_none() {
    for dialect in [Dialect::SMB_2_0_2, Dialect::SMB_2_1] {
        let mut rig = Rig::new(|_| {});
        let options = Options::only(dialect);
        let mut client = Client::in_share(&mut rig, options, "alice", "files");
        // Version 2 needs 3.0.
        assert_eq!(client.open_leased(&mut rig, "f", KEY, RWH).1, None);
    }
    let mut rig = Rig::new(|config| {
        let mut plain = share("files");
        plain.oplocks = false;
        config.shares = vec![plain.into()];
    });
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "files");
    assert_eq!(client.open_leased(&mut rig, "f", KEY, RWH).1, None);
}

#[test]
fn a_lease_beyond_the_limit_is_not_granted() {
    let mut rig = Rig::new(|config| config.limits.leases_per_client = 1);
    let mut client = Client::with_credits(&mut rig);
    assert!(client.open_leased(&mut rig, "f", KEY, RWH).1.is_some());
    assert_eq!(client.open_leased(&mut rig, "g", OTHER_KEY, RWH).1, None);
    assert!(client.open_leased(&mut rig, "f", KEY, RWH).1.is_some());
}

/// Opens the directory `d` with a lease.
fn open_directory(rig: &mut Rig, client: &mut Client) {
    let directory = Ask {
        options: CreateOptions::DIRECTORY_FILE,
        ..plain()
    };
    let file_id = client.open_other(rig, "d", directory);
    assert_eq!(client.close(rig, file_id), Status::SUCCESS);
    let message = client.lease_message("d", KEY, RWH);
    let (_, lease) = leased(&client.ask(rig, message));
    let lease = lease.expect("a lease");
    assert_eq!(
        (lease.lease_state, lease.lease_flags),
        (RH, LeaseFlags::NONE)
    );
}

#[test]
fn changes_of_entries_break_the_lease_on_their_directory() {
    let (mut rig, mut holder, mut other) = two();
    open_directory(&mut rig, &mut holder);
    other.open_other(&mut rig, "elsewhere", plain());
    assert!(holder.hear(&mut rig).is_none());
    other.open_other(&mut rig, "D\\new", plain());
    let notified = holder.hear_lease_break(&mut rig);
    assert_eq!(
        (notified.current_lease_state, notified.new_lease_state),
        (RH, LeaseState::NONE)
    );
}

#[test]
fn local_changes_break_the_lease_on_their_directory() {
    let (mut rig, mut holder, _) = two();
    open_directory(&mut rig, &mut holder);
    let change = |path: &str| {
        LocalEvent::Change(LocalChange {
            directory: rig.disk.key("d"),
            path: proto::path::SharePath::from_trusted(path),
            action: FileAction::ADDED,
            filter: CompletionFilter::FILE_NAME,
        })
    };
    let (deep, direct) = (change("below/file"), change("file"));
    rig.happen_locally(&[deep]);
    assert!(holder.hear(&mut rig).is_none());
    rig.happen_locally(&[direct]);
    let notified = holder.hear_lease_break(&mut rig);
    assert_eq!(notified.new_lease_state, LeaseState::NONE);
}

#[test]
fn a_directory_that_changes_often_has_no_lease_for_a_while() {
    let (mut rig, mut holder, mut other) = two();
    open_directory(&mut rig, &mut holder);
    let mut changes = 0;
    loop {
        other.open_other(&mut rig, &format!("d\\new{changes}"), plain());
        let notified = holder.hear_lease_break(&mut rig);
        assert_eq!(notified.new_lease_state, LeaseState::NONE);
        let status = holder.acknowledge_lease(&mut rig, KEY, LeaseState::NONE);
        assert_eq!(status, Status::SUCCESS);
        changes += 1;
        let (_, lease) = holder.open_leased(&mut rig, "d", KEY, RH);
        if lease.expect("a lease").lease_state.is_empty() {
            break;
        }
    }
    assert_eq!(changes, 8);
    other.open_other(&mut rig, "d\\last", plain());
    assert!(holder.hear(&mut rig).is_none());
    rig.pass(Duration::from_secs(2));
    let (_, lease) = holder.open_leased(&mut rig, "d", KEY, RH);
    assert_eq!(lease.expect("a lease").lease_state, RH);
}
