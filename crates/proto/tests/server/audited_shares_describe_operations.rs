//! A share with audit rules has an event for each selected operation, with its outcome. Other
//! shares have none.

use std::sync::Arc;
use std::time::Duration;

use proto::audit::{Action, Event, Name, Operation, Outcome, Rules, Selection};
use proto::path::SharePath;
use proto::server::config::{Config, Share};
use proto::server::share_users::{Principal, ShareUsers};
use wire::access::{AccessMask, OplockLevel};
use wire::create::CreateAction;
use wire::dialect::Dialect;
use wire::fscc::{FileDispositionInformation, FileInfoClass, InfoType};
use wire::{Command, FileId, Status};

use crate::harness::{Ask, Client, Options, Rig, bytes_of, multichannel, share};

/// The selection of all operations with these outcomes.
fn selection(outcomes: &[Outcome]) -> Selection {
    let mut selection = Selection::NONE;
    for operation in Operation::ALL {
        for outcome in outcomes {
            selection = selection.and(Selection::of(operation, *outcome));
        }
    }
    selection
}

/// A server with the share `files`, and its rules.
fn rig(selection: Selection) -> (Rig, Arc<Rules>) {
    let rules = Arc::new(Rules::new(selection));
    let audit = Arc::clone(&rules);
    let change = |config: &mut Config| {
        config.audit = true;
        let files = Share {
            audit,
            users: ShareUsers {
                valid: Some(vec![Principal::User("alice".to_owned())]),
                ..ShareUsers::default()
            },
            ..share("files")
        };
        config.shares[0] = Arc::new(files);
    };
    (Rig::new(change), rules)
}

/// The events since the last call, in words: the action, the path and the status.
fn events(rig: &mut Rig) -> Vec<String> {
    let events = std::mem::take(&mut rig.audited);
    events.iter().map(described).collect()
}

fn described(event: &Event) -> String {
    let object = event.object.as_ref();
    let path = match object.map(|object| &object.name) {
        Some(Name::Path(path)) => path.to_wire(),
        Some(Name::Raw(raw)) => format!("raw {raw:?}"),
        None => String::new(),
    };
    let action = match &event.action {
        Action::LogIn { .. } => "log in".to_owned(),
        Action::LogOff => "log off".to_owned(),
        Action::Connect { refusal } => format!("connect {refusal:?}"),
        Action::Disconnect => "disconnect".to_owned(),
        Action::Open(opening) => match opening.result {
            Some(CreateAction::OPENED) => "open".to_owned(),
            Some(result) => format!("create {result:?}"),
            None => format!("{:?}", opening.operation()),
        },
        Action::Close(closing) => format!("close {}/{}", closing.read, closing.written),
        Action::Rename { to, replaces } => format!("rename {to:?} {replaces}"),
        Action::Delete => "delete".to_owned(),
        other => format!("{other:?}"),
    };
    format!("{} {action} {path} {:?}", event.user, event.status)
}

/// Marks the file of an open for deletion.
fn mark_for_deletion(client: &mut Client, rig: &mut Rig, file_id: FileId) -> Status {
    let mut information = Vec::new();
    let is_delete_pending = true;
    FileDispositionInformation { is_delete_pending }.encode(&mut information);
    let request = bytes_of(|out| {
        wire::set_info::Request {
            info_type: InfoType::FILE,
            file_info_class: FileInfoClass::DISPOSITION.0,
            additional_information: 0,
            file_id,
            buffer: &information,
        }
        .encode(out);
    });
    client.ask_body(rig, Command::SET_INFO, request).status()
}

#[test]
fn each_operation_of_a_client_is_an_event() {
    let (mut rig, _) = rig(selection(&Outcome::ALL));
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "files");
    let started = ["alice log in  SUCCESS", "alice connect None  SUCCESS"];
    assert_eq!(events(&mut rig), started);
    let file = client.create(&mut rig, "a");
    let write = client.write_message(file, b"12345");
    assert_eq!(client.ask(&mut rig, write).status(), Status::SUCCESS);
    let read = client.read_message(file, 3);
    assert_eq!(client.ask(&mut rig, read).status(), Status::SUCCESS);
    let rename = client.rename_message(file, "b");
    assert_eq!(client.ask(&mut rig, rename).status(), Status::SUCCESS);
    let marked = mark_for_deletion(&mut client, &mut rig, file);
    assert_eq!(marked, Status::SUCCESS);
    assert_eq!(client.close(&mut rig, file), Status::SUCCESS);
    let to = Name::Path(SharePath::from_trusted("b"));
    assert_eq!(
        events(&mut rig),
        [
            "alice create CREATED a SUCCESS".to_owned(),
            format!("alice rename {to:?} false a SUCCESS"),
            "alice close 3/5 b SUCCESS".to_owned(),
            "alice delete b SUCCESS".to_owned(),
        ]
    );
}

#[test]
fn refusals_are_events_with_the_status_of_the_client() {
    let (mut rig, _) = rig(selection(&[Outcome::Denied]));
    let mut other = Client::logged_in(&mut rig, Options::default(), "bob");
    let refused = other.enter(&mut rig, "files").status();
    assert_eq!(refused, Status::ACCESS_DENIED);
    let unknown = other.enter(&mut rig, "none").status();
    assert_eq!(unknown, Status::BAD_NETWORK_NAME);
    let expected = [
        "bob log in  SUCCESS",
        "bob connect Some(NotListed)  ACCESS_DENIED",
        "bob connect None  BAD_NETWORK_NAME",
    ];
    assert_eq!(events(&mut rig), expected);
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "files");
    let file = client.create(&mut rig, "a");
    let ask = Ask {
        access: AccessMask::FILE_READ_DATA,
        ..Ask::level(OplockLevel::NONE)
    };
    assert_eq!(client.close(&mut rig, file), Status::SUCCESS);
    let message = client.open_message("a", ask);
    let reader = crate::harness::created(&client.ask(&mut rig, message)).0;
    // The open has no right to delete.
    let marked = mark_for_deletion(&mut client, &mut rig, reader);
    assert_eq!(marked, Status::ACCESS_DENIED);
    let expected = ["alice log in  SUCCESS", "alice delete a ACCESS_DENIED"];
    assert_eq!(events(&mut rig), expected);
}

#[test]
fn rules_change_for_present_tree_connects() {
    let (mut rig, rules) = rig(Selection::NONE);
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "files");
    let first = client.create(&mut rig, "a");
    rules.select(Selection::of(Operation::Create, Outcome::Success));
    let second = client.create(&mut rig, "b");
    assert_eq!(client.close(&mut rig, first), Status::SUCCESS);
    rules.select(Selection::NONE);
    client.create(&mut rig, "c");
    assert_eq!(client.close(&mut rig, second), Status::SUCCESS);
    let expected = ["alice log in  SUCCESS", "alice create CREATED b SUCCESS"];
    assert_eq!(events(&mut rig), expected);
}

#[test]
fn the_end_of_a_session_closes_and_deletes_in_its_name() {
    let (mut rig, _) = rig(selection(&Outcome::ALL));
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "files");
    let file = client.create(&mut rig, "a");
    let marked = mark_for_deletion(&mut client, &mut rig, file);
    assert_eq!(marked, Status::SUCCESS);
    events(&mut rig);
    rig.cut(client.id);
    let expected = [
        "alice close 0/0 a SUCCESS",
        "alice delete a SUCCESS",
        "alice log off  SUCCESS",
    ];
    assert_eq!(events(&mut rig), expected);
    assert!(!rig.disk.has("a"));
}

#[test]
fn an_open_that_outlives_its_session_closes_in_the_name_of_its_user() {
    let (mut rig, _) = rig(selection(&Outcome::ALL));
    let options = multichannel(Dialect::SMB_3_1_1);
    let mut client = Client::in_share(&mut rig, options, "alice", "files");
    client.open_durable(&mut rig);
    rig.cut(client.id);
    events(&mut rig);
    rig.pass(Duration::from_secs(3600));
    let closed = std::mem::take(&mut rig.audited);
    let [event] = &closed[..] else {
        panic!("{closed:?}");
    };
    assert_eq!((event.user.as_str(), event.session), ("alice", None));
    assert!(matches!(event.action, Action::Close(_)), "{event:?}");
}
