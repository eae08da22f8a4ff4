//! No client can acknowledge the break of a lease without a connected open: a resilient open loses
//! the lease at once, and the request that broke it continues. \[MS-SMB2\] 3.3.4.7

use wire::access::OplockLevel;
use wire::create_context::{DurableReconnect, Lease, LeaseState, name};
use wire::{FileId, Guid, Status};

use crate::harness::{Ask, Client, Options, RH, RWH, Rig, created, leased};

const KEY: u8 = 1;

/// A client on another computer than the other clients.
fn holder(rig: &mut Rig) -> Client {
    let options = Options {
        client_guid: Guid([6; 16]),
        ..Options::default()
    };
    Client::in_share(rig, options, "alice", "files")
}

/// Opens `f` with a lease, and makes the open resilient.
fn open_resilient(client: &mut Client, rig: &mut Rig) -> FileId {
    let (file, lease) = client.open_leased(rig, "f", KEY, RWH);
    assert_eq!(lease.map(|lease| lease.lease_state), Some(RWH));
    assert_eq!(client.make_resilient(rig, file, 0), Status::SUCCESS);
    file
}

/// The client connects again and reconnects to its open. Returns the lease of the response.
fn reconnect(rig: &mut Rig, file: FileId) -> Lease {
    let mut client = holder(rig);
    let message = client.lease_message("f", KEY, RWH);
    let data = DurableReconnect { file_id: file }.encode();
    let message = message.with_context(name::DURABLE_RECONNECT, &data);
    let (found, lease) = leased(&client.ask(rig, message));
    assert_eq!(found, file);
    lease.expect("the open has a lease")
}

/// The rights and the epoch of a lease.
fn state(lease: &Lease) -> (LeaseState, Option<u16>) {
    (lease.lease_state, lease.v2.map(|v2| v2.epoch))
}

#[test]
fn an_open_of_another_client_does_not_wait() {
    let mut rig = Rig::new(|_| {});
    let mut one = holder(&mut rig);
    let mut other = Client::with_credits(&mut rig);
    let file = open_resilient(&mut one, &mut rig);
    rig.cut(one.id);
    // It has a response without any passed time.
    other.open(&mut rig, Ask::level(OplockLevel::NONE));
    let lease = reconnect(&mut rig, file);
    // The client that counted on the rights sees that they are older than this state.
    assert_eq!(state(&lease), (LeaseState::NONE, Some(2)));
}

#[test]
fn without_a_conflict_the_lease_stays() {
    let mut rig = Rig::new(|_| {});
    let mut one = holder(&mut rig);
    let file = open_resilient(&mut one, &mut rig);
    rig.cut(one.id);
    assert_eq!(state(&reconnect(&mut rig, file)), (RWH, Some(1)));
}

#[test]
fn a_break_in_progress_ends_with_the_connection() {
    let mut rig = Rig::new(|_| {});
    let mut one = holder(&mut rig);
    let mut other = Client::with_credits(&mut rig);
    let file = open_resilient(&mut one, &mut rig);
    let waiting = other.open_and_wait(&mut rig, Ask::level(OplockLevel::NONE));
    one.hear_lease_break(&mut rig);
    rig.cut(one.id);
    let answer = other.hear_answer(&mut rig);
    assert_eq!(answer.header.message_id, waiting);
    created(&answer);
    assert_eq!(
        state(&reconnect(&mut rig, file)),
        (LeaseState::NONE, Some(2))
    );
}

#[test]
fn a_break_continues_while_another_session_has_the_lease() {
    let mut rig = Rig::new(|_| {});
    let mut one = holder(&mut rig);
    let mut two = holder(&mut rig);
    let mut other = Client::with_credits(&mut rig);
    open_resilient(&mut one, &mut rig);
    two.open_leased(&mut rig, "f", KEY, RWH);
    let waiting = other.open_and_wait(&mut rig, Ask::level(OplockLevel::NONE));
    one.hear_lease_break(&mut rig);
    rig.cut(one.id);
    assert!(other.hear(&mut rig).is_none(), "the lease breaks");
    two.hear_lease_break(&mut rig);
    let status = two.acknowledge_lease(&mut rig, KEY, RH);
    assert_eq!(status, Status::SUCCESS);
    assert_eq!(other.hear_answer(&mut rig).header.message_id, waiting);
}
