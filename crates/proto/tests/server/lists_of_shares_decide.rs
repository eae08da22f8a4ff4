//! The lists of a share, the app password of the login and the address of the client decide whether
//! a session may connect to the share, and whether it may write.

use std::sync::Arc;

use proto::report::{Report, ShareRefusal};
use proto::server::config::Share;
use proto::server::hosts::HostRules;
use proto::server::share_users::{Principal, ShareUsers};
use wire::access::{AccessMask, CreateDisposition, CreateOptions, OplockLevel};
use wire::tree_connect::Response;
use wire::{Command, Status};

use crate::harness::{Ask, Client, Options, Rig, bytes_of, share};

const FULL_ACCESS: AccessMask = AccessMask(0x001F_01FF);
const READ_ACCESS: AccessMask = AccessMask(0x0012_00A9);

fn group(name: &str) -> Vec<Principal> {
    vec![Principal::Group(name.to_owned())]
}

fn rig() -> Rig {
    Rig::new(|config| {
        let staff = ShareUsers {
            valid: Some([group("staff"), group("readers")].concat()),
            invalid: vec![Principal::User("mallory".to_owned())],
            read: group("readers"),
            write: Vec::new(),
        };
        let writers = ShareUsers {
            write: group("staff"),
            ..ShareUsers::default()
        };
        let shares = [
            Share {
                users: staff,
                ..share("team")
            },
            Share {
                users: writers,
                read_only: true,
                ..share("published")
            },
            Share {
                hosts: HostRules {
                    allow: Vec::new(),
                    deny: vec!["192.0.2.0/24".parse().expect("a network")],
                },
                ..share("near")
            },
        ];
        config.shares.extend(shares.map(Arc::new));
    })
}

#[test]
fn groups_and_lists_decide_about_entry_and_rights() {
    let mut rig = rig();
    for (login, share, expected) in [
        ("alice@staff", "team", Ok(FULL_ACCESS)),
        ("alice@STAFF", "team", Ok(FULL_ACCESS)),
        ("bob@readers", "team", Ok(READ_ACCESS)),
        ("bob@other", "team", Err(ShareRefusal::NotListed)),
        ("staff", "team", Err(ShareRefusal::NotListed)),
        ("mallory@staff", "team", Err(ShareRefusal::InvalidUser)),
        ("alice@staff", "published", Ok(FULL_ACCESS)),
        ("alice", "published", Ok(READ_ACCESS)),
        ("alice#files,near", "files", Ok(READ_ACCESS)),
        ("alice#team", "IPC$", Ok(FULL_ACCESS)),
        ("alice#team", "files", Err(ShareRefusal::AppPassword)),
        ("alice@staff#PUBLISHED", "published", Ok(READ_ACCESS)),
    ] {
        let mut client = Client::logged_in(&mut rig, Options::default(), login);
        rig.reports.clear();
        let answer = client.enter(&mut rig, share);
        let found = match answer.status() {
            Status::SUCCESS => {
                let response = Response::decode(&answer.message).expect("a response");
                Ok(response.maximal_access)
            }
            _ => Err(refusal(&rig)),
        };
        assert_eq!(found, expected, "{login} {share}");
    }
}

fn refusal(rig: &Rig) -> ShareRefusal {
    match &rig.reports[..] {
        [Report::ShareRefused(_, _, refusal)] => *refusal,
        reports => panic!("one refused share: {reports:?}"),
    }
}

#[test]
fn a_reader_changes_nothing_in_a_writable_share() {
    let mut rig = rig();
    let mut writer = Client::in_share(&mut rig, Options::default(), "alice@staff", "team");
    writer.create(&mut rig, "f");
    let mut reader = Client::in_share(&mut rig, Options::default(), "bob@readers", "team");
    for (disposition, options) in [
        (CreateDisposition::CREATE, CreateOptions::NONE),
        (CreateDisposition::OVERWRITE, CreateOptions::NONE),
        (CreateDisposition::OPEN, CreateOptions::NONE),
        (CreateDisposition::OPEN, CreateOptions::DELETE_ON_CLOSE),
    ] {
        let message = reader.create_with("f", disposition, options);
        let status = reader.ask(&mut rig, message).status();
        assert_eq!(status, Status::ACCESS_DENIED, "{disposition:?}");
    }
    let open = Ask {
        access: AccessMask::MAXIMUM_ALLOWED,
        ..Ask::level(OplockLevel::NONE)
    };
    let file = reader.open_other(&mut rig, "f", open);
    let write = reader.write_message(file, b"x");
    assert_eq!(reader.ask(&mut rig, write).status(), Status::ACCESS_DENIED);
    let rename = reader.rename_message(file, "g");
    assert_eq!(reader.ask(&mut rig, rename).status(), Status::ACCESS_DENIED);
    assert!(rig.disk.has("f") && !rig.disk.has("g"));
}

#[test]
fn a_writer_changes_files_in_a_read_only_share() {
    let mut rig = rig();
    let mut reader = Client::in_share(&mut rig, Options::default(), "bob", "published");
    let message = reader.create_message("f");
    assert_eq!(
        reader.ask(&mut rig, message).status(),
        Status::ACCESS_DENIED
    );
    let mut writer = Client::in_share(&mut rig, Options::default(), "alice@staff", "published");
    let file = writer.create(&mut rig, "f");
    let write = writer.write_message(file, b"x");
    assert_eq!(writer.ask(&mut rig, write).status(), Status::SUCCESS);
    assert_eq!(rig.disk.content("f"), b"x");
}

#[test]
fn an_open_for_writing_is_not_reclaimed_with_a_password_for_reading() {
    let mut rig = rig();
    let mut writer = Client::with_credits(&mut rig);
    let file = writer.open_durable(&mut rig);
    rig.cut(writer.id);
    let mut phone = Client::in_share(&mut rig, Options::default(), "alice#files", "files");
    let status = phone.reconnect(&mut rig, file);
    assert_eq!(status, Status::OBJECT_NAME_NOT_FOUND);
    let mut writer = Client::with_credits(&mut rig);
    assert_eq!(writer.reconnect(&mut rig, file), Status::SUCCESS);
}

#[test]
fn new_groups_count_for_later_tree_connects() {
    let mut rig = rig();
    let mut bob = Client::logged_in(&mut rig, Options::default(), "bob");
    assert_eq!(bob.enter(&mut rig, "team").status(), Status::ACCESS_DENIED);
    let token = rig.connection(bob.id).summary().sessions[0].1.token.clone();
    let groups: Arc<[String]> = Arc::from(["staff".to_owned()]);
    assert_eq!(rig.server.set_account_groups("bob", &token, &groups), 1);
    assert_eq!(bob.enter(&mut rig, "team").status(), Status::SUCCESS);
    // The present tree connect keeps its rights.
    assert_eq!(
        rig.server
            .set_account_groups("bob", &token, &Arc::default()),
        1
    );
    bob.create(&mut rig, "f");
    assert_eq!(bob.enter(&mut rig, "team").status(), Status::ACCESS_DENIED);
}

#[test]
fn addresses_decide_for_their_connections() {
    let mut rig = rig();
    for (address, expected) in [
        (None, Status::ACCESS_DENIED),
        (Some("192.0.2.9"), Status::ACCESS_DENIED),
        (Some("::ffff:192.0.2.9"), Status::ACCESS_DENIED),
        (Some("198.51.100.9"), Status::SUCCESS),
    ] {
        rig.peer = address.map(|address| address.parse().expect("an address"));
        let mut client = Client::logged_in(&mut rig, Options::default(), "alice");
        rig.reports.clear();
        assert_eq!(
            client.enter(&mut rig, "near").status(),
            expected,
            "{address:?}"
        );
        if expected != Status::SUCCESS {
            assert_eq!(refusal(&rig), ShareRefusal::Host);
        }
        assert_eq!(client.enter(&mut rig, "files").status(), Status::SUCCESS);
        let bytes = bytes_of(|bytes| wire::echo::Request.encode(bytes));
        let echo = client.ask_body(&mut rig, Command::ECHO, bytes);
        assert_eq!(echo.status(), Status::SUCCESS);
    }
}
