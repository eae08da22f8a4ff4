//! When an account is removed, disabled or has another password, its sessions end with their opens,
//! and logins that are in progress fail.

use std::sync::Arc;
use std::time::Duration;

use proto::login::{AccountsRevision, LoginScope};
use proto::report::{LoginRefusal, Report};
use proto::token::Token;
use wire::access::OplockLevel;
use wire::create_context::{DURABLE_REQUEST_DATA, name};
use wire::dialect::Dialect;
use wire::{Command, SessionId, Status};

use crate::harness::{
    Ask, Client, EXCLUSIVE, EXCLUSIVE_NOW, Options, Rig, bytes_of, created, multichannel,
};

const NONE: OplockLevel = OplockLevel::NONE;

/// Ends an account as a driver does: the accounts have a new version afterwards.
fn end_account(rig: &mut Rig, name: &str) {
    rig.revision.0 += 1;
    let notices = rig
        .server
        .end_account(LoginScope::Account(name), rig.revision);
    rig.notices.extend(notices);
}

fn echo(client: &mut Client, rig: &mut Rig) -> Status {
    let bytes = bytes_of(|bytes| wire::echo::Request.encode(bytes));
    let message = client.message(Command::ECHO, bytes);
    client.ask(rig, message).status()
}

#[test]
fn sessions_end_on_all_channels_with_their_opens() {
    let mut rig = Rig::new(|_| {});
    let options = multichannel(Dialect::SMB_3_1_1);
    let mut first = Client::in_share(&mut rig, options, "alice", "files");
    let mut second = Client::channel_of(&mut rig, &first);
    first.create(&mut rig, "a");
    let mut bob = Client::in_share(&mut rig, Options::default(), "bob", "files");
    bob.create(&mut rig, "b");
    assert_eq!(rig.disk.opens.len(), 2);
    end_account(&mut rig, "alice");
    // No request starts, even before the notices arrive.
    let message = first.open_message("c", Ask::level(NONE));
    let status = first.ask(&mut rig, message).status();
    assert_eq!(status, Status::USER_SESSION_DELETED);
    rig.deliver_notices();
    assert_eq!(rig.disk.opens.len(), 1);
    for client in [&mut first, &mut second] {
        assert_eq!(echo(client, &mut rig), Status::USER_SESSION_DELETED);
        assert!(!rig.connection(client.id).is_logged_in());
    }
    assert_eq!(echo(&mut bob, &mut rig), Status::SUCCESS);
    assert_eq!(
        rig.server.account_names().into_iter().collect::<Vec<_>>(),
        ["bob"]
    );
    // A new login uses the new accounts.
    let mut again = Client::in_share(&mut rig, Options::default(), "alice", "files");
    again.create(&mut rig, "a");
}

#[test]
fn waiting_requests_end_with_their_account() {
    let mut rig = Rig::new(|_| {});
    let mut alice = Client::with_credits(&mut rig);
    let mut other = Client::in_share(&mut rig, Options::default(), "bob", "files");
    let (held, _) = other.open(&mut rig, Ask::level(NONE));
    other.must_lock(&mut rig, held, (0, 10), EXCLUSIVE_NOW);
    let (file, _) = alice.open(&mut rig, Ask::level(NONE));
    alice.lock_and_wait(&mut rig, file, (0, 10), EXCLUSIVE);
    end_account(&mut rig, "alice");
    rig.deliver_notices();
    assert!(rig.connection(alice.id).is_idle());
    assert_eq!(rig.disk.opens.len(), 1);
}

#[test]
fn a_login_in_progress_fails_if_the_account_changes() {
    for is_renewal in [false, true] {
        let mut rig = Rig::new(|_| {});
        let mut client = Client::new(&mut rig, Options::default());
        client.negotiate(&mut rig);
        if is_renewal {
            assert_eq!(client.log_in(&mut rig, "alice").status(), Status::SUCCESS);
        }
        rig.is_holding = true;
        let message = client.setup("alice", SessionId(0));
        client.say(&mut rig, vec![message]);
        end_account(&mut rig, "alice");
        rig.deliver_notices();
        rig.release();
        let status = client.hear_answer(&mut rig).status();
        match is_renewal {
            true => assert_eq!(status, Status::USER_SESSION_DELETED),
            false => {
                assert_eq!(status, Status::LOGON_FAILURE);
                let last = rig.reports.last().expect("a report");
                assert!(matches!(
                    last,
                    Report::LoginRefused(_, LoginRefusal::AccountChanged)
                ));
            }
        }
        assert!(!rig.connection(client.id).is_logged_in());
        assert!(rig.server.account_names().is_empty());
        assert!(rig.connection(client.id).is_idle());
    }
}

#[test]
fn a_binding_in_progress_fails_if_the_account_changes() {
    let mut rig = Rig::new(|_| {});
    let options = multichannel(Dialect::SMB_3_1_1);
    rig.revision = AccountsRevision(7);
    let first = Client::in_share(&mut rig, options, "alice", "files");
    // The accounts of the binding are older than those of the session.
    rig.server
        .end_account(LoginScope::Account("alice"), AccountsRevision(6));
    rig.revision = AccountsRevision(5);
    let mut second = Client::beside(&mut rig, &first);
    let status = second.log_in_bound(&mut rig, &first, "alice").status();
    assert_eq!(status, Status::LOGON_FAILURE);
    assert!(rig.connection(first.id).is_logged_in());
    assert!(!rig.connection(second.id).is_logged_in());
}

#[test]
fn opens_that_outlive_a_session_end_with_their_account() {
    let timeout = Duration::from_secs(300);
    let mut rig = Rig::new(|_| {});
    let mut alice = Client::in_share(&mut rig, Options::default(), "alice", "files");
    let mut bob = Client::in_share(&mut rig, Options::default(), "bob", "files");
    for (client, name) in [(&mut alice, "a"), (&mut bob, "b")] {
        let message = client.open_message(name, Ask::alone(OplockLevel::BATCH));
        let message = message.with_context(name::DURABLE_REQUEST, &DURABLE_REQUEST_DATA);
        created(&client.ask(&mut rig, message));
    }
    rig.cut(alice.id);
    rig.cut(bob.id);
    assert_eq!(rig.disk.opens.len(), 2);
    end_account(&mut rig, "alice");
    rig.pass(Duration::ZERO);
    assert_eq!(rig.disk.opens.len(), 1);
    rig.pass(timeout);
    assert!(rig.server.is_idle() && rig.disk.opens.is_empty());
}

#[test]
fn only_the_sessions_of_a_removed_app_password_end() {
    let mut rig = Rig::new(|_| {});
    let mut alice = Client::in_share(&mut rig, Options::default(), "alice", "files");
    let mut phone = Client::in_share(&mut rig, Options::default(), "alice#files", "files");
    rig.revision.0 += 1;
    let scope = LoginScope::AppPassword("alice", "phone");
    let notices = rig.server.end_account(scope, rig.revision);
    rig.notices.extend(notices);
    rig.deliver_notices();
    assert_eq!(echo(&mut phone, &mut rig), Status::USER_SESSION_DELETED);
    assert_eq!(echo(&mut alice, &mut rig), Status::SUCCESS);
    // A later login with an app password of the same name counts.
    let mut phone = Client::in_share(&mut rig, Options::default(), "alice#files", "files");
    assert_eq!(echo(&mut phone, &mut rig), Status::SUCCESS);
}

#[test]
fn new_groups_count_for_later_opens() {
    let mut rig = Rig::new(|_| {});
    let mut alice = Client::in_share(&mut rig, Options::default(), "alice", "files");
    alice.create(&mut rig, "a");
    let token = Arc::new(Token::new(1000, 1000, vec![27]));
    let groups: Arc<[String]> = Arc::default();
    assert_eq!(rig.server.set_account_groups("bob", &token, &groups), 0);
    assert_eq!(rig.server.set_account_groups("alice", &token, &groups), 1);
    assert_eq!(rig.server.set_account_groups("alice", &token, &groups), 0);
    alice.create(&mut rig, "b");
    let summary = rig.connection(alice.id).summary();
    assert_eq!(summary.sessions[0].1.token, token);
}
