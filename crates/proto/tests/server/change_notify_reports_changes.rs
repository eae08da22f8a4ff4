//! CHANGE_NOTIFY: the server reports changes of a directory, by this client and by others. No
//! request waits for a change that can no longer come.

use std::sync::Arc;

use proto::file::{FileKey, LocalChange, LocalEvent};
use proto::path::SharePath;
use wire::access::{CreateDisposition, CreateOptions};
use wire::change_notify::{ChangeNotifyFlags, CompletionFilter, Request, Response};
use wire::fscc::{FileAction, NotifyEntries};
use wire::{Command, FileId, Flags, Status};

use crate::harness::{Answer, Client, Message, Options, Rig, bytes_of, file_id, share};

const NAMES: CompletionFilter =
    CompletionFilter(CompletionFilter::FILE_NAME.0 | CompletionFilter::DIR_NAME.0);

/// A rig, a client, and its open of a directory `d`.
fn with_directory() -> (Rig, Client, FileId) {
    let mut rig = Rig::new(|_| {});
    let mut client = enter(&mut rig);
    let directory = make_directory(&mut rig, &mut client, "d");
    (rig, client, directory)
}

fn enter(rig: &mut Rig) -> Client {
    let mut client = Client::in_share(rig, Options::default(), "alice", "files");
    let mut echo = client.message(
        Command::ECHO,
        bytes_of(|out| wire::echo::Request.encode(out)),
    );
    echo.header.credits = 100;
    client.ask(rig, echo);
    client
}

fn make_directory(rig: &mut Rig, client: &mut Client, name: &str) -> FileId {
    let create = CreateDisposition::OPEN_IF;
    let message = client.create_with(name, create, CreateOptions::DIRECTORY_FILE);
    file_id(&client.ask(rig, message))
}

fn watch(client: &mut Client, file_id: FileId, filter: CompletionFilter, length: u32) -> Message {
    ask(client, file_id, ChangeNotifyFlags::NONE, (filter, length))
}

fn watch_tree(client: &mut Client, file_id: FileId) -> Message {
    ask(
        client,
        file_id,
        ChangeNotifyFlags::WATCH_TREE,
        (NAMES, 4096),
    )
}

fn ask(
    client: &mut Client,
    file_id: FileId,
    flags: ChangeNotifyFlags,
    (completion_filter, output_buffer_length): (CompletionFilter, u32),
) -> Message {
    let request = Request {
        flags,
        output_buffer_length,
        file_id,
        completion_filter,
    };
    client.message(Command::CHANGE_NOTIFY, bytes_of(|out| request.encode(out)))
}

fn local(directory: FileKey, action: FileAction, path: &str) -> LocalEvent {
    LocalEvent::Change(LocalChange {
        directory,
        path: SharePath::from_trusted(path),
        action,
        filter: CompletionFilter::FILE_NAME,
    })
}

fn hear(client: &mut Client, rig: &mut Rig) -> Answer {
    let mut answers = client.hear(rig).expect("an answer");
    assert_eq!(answers.len(), 1);
    answers.remove(0)
}

fn changes(answer: &Answer) -> Vec<(FileAction, String)> {
    assert_eq!(answer.status(), Status::SUCCESS);
    let response = Response::decode(&answer.message).expect("a response");
    NotifyEntries::new(response.output)
        .map(|entry| entry.expect("an entry"))
        .map(|entry| (entry.action, entry.name.decode().expect("a name")))
        .collect()
}

fn added(name: &str) -> Vec<(FileAction, String)> {
    vec![(FileAction::ADDED, name.to_owned())]
}

#[test]
fn a_new_file_is_reported_to_all_watches() {
    let (mut rig, mut one, directory) = with_directory();
    let mut other = enter(&mut rig);
    let same = make_directory(&mut rig, &mut other, "d");
    let wait = watch(&mut one, directory, NAMES, 4096);
    one.say(&mut rig, vec![wait]);
    let wait = watch(&mut other, same, NAMES, 4096);
    other.say(&mut rig, vec![wait]);
    let create = other.create_message("d\\new");
    other.say(&mut rig, vec![create]);
    assert_eq!(hear(&mut other, &mut rig).status(), Status::SUCCESS);
    assert_eq!(changes(&hear(&mut other, &mut rig)), added("new"));
    assert_eq!(changes(&hear(&mut one, &mut rig)), added("new"));
}

#[test]
fn changes_between_requests_are_buffered_while_they_fit() {
    let (mut rig, mut client, directory) = with_directory();
    let wait = watch(&mut client, directory, NAMES, 32);
    client.say(&mut rig, vec![wait]);
    client.create(&mut rig, "elsewhere");
    client.create(&mut rig, "d\\a");
    assert_eq!(changes(&hear(&mut client, &mut rig)), added("a"));
    client.create(&mut rig, "d\\b");
    let wait = watch(&mut client, directory, NAMES, 32);
    assert_eq!(changes(&client.ask(&mut rig, wait)), added("b"));
    for name in ["d\\c", "d\\long name", "d\\longer name"] {
        client.create(&mut rig, name);
    }
    let wait = watch(&mut client, directory, NAMES, 32);
    let overrun = client.ask(&mut rig, wait);
    assert_eq!(overrun.status(), Status::NOTIFY_ENUM_DIR);
}

#[test]
fn filtered_changes_are_not_reported() {
    let (mut rig, mut client, directory) = with_directory();
    let wait = watch(&mut client, directory, CompletionFilter::SIZE, 4096);
    client.say(&mut rig, vec![wait]);
    let file = client.create(&mut rig, "d\\a");
    let write = client.write_message(file, b"words");
    client.say(&mut rig, vec![write]);
    assert_eq!(hear(&mut client, &mut rig).status(), Status::SUCCESS);
    let reported = changes(&hear(&mut client, &mut rig));
    assert_eq!(reported, [(FileAction::MODIFIED, "a".to_owned())]);
}

#[test]
fn a_deletion_is_reported_after_the_file_is_deleted() {
    let (mut rig, mut client, directory) = with_directory();
    let create = CreateDisposition::CREATE;
    let message = client.create_with("d\\a", create, CreateOptions::DELETE_ON_CLOSE);
    let file = file_id(&client.ask(&mut rig, message));
    let wait = watch(&mut client, directory, NAMES, 4096);
    client.say(&mut rig, vec![wait]);
    let close = client.close_message(file);
    client.say(&mut rig, vec![close]);
    assert_eq!(hear(&mut client, &mut rig).status(), Status::SUCCESS);
    let reported = changes(&hear(&mut client, &mut rig));
    assert_eq!(reported, [(FileAction::REMOVED, "a".to_owned())]);
}

#[test]
fn a_canceled_request_gets_no_later_change() {
    let (mut rig, mut client, directory) = with_directory();
    let wait = watch(&mut client, directory, NAMES, 4096);
    let id = wait.header.message_id;
    client.say(&mut rig, vec![wait]);
    let bytes = bytes_of(|out| wire::echo::Request.encode(out));
    let mut cancel = client.message(Command::CANCEL, bytes);
    cancel.header.message_id = id;
    client.say(&mut rig, vec![cancel]);
    assert_eq!(hear(&mut client, &mut rig).status(), Status::CANCELLED);
    client.create(&mut rig, "d\\a");
    assert!(client.hear(&mut rig).is_none());
}

#[test]
fn the_end_of_the_open_or_tree_ends_the_request() {
    for closes in [true, false] {
        let (mut rig, mut client, directory) = with_directory();
        let wait = watch(&mut client, directory, NAMES, 4096);
        client.say(&mut rig, vec![wait]);
        let end = if closes {
            client.close_message(directory)
        } else {
            let bytes = bytes_of(|out| wire::echo::Request.encode(out));
            client.message(Command::TREE_DISCONNECT, bytes)
        };
        client.say(&mut rig, vec![end]);
        let statuses = [hear(&mut client, &mut rig), hear(&mut client, &mut rig)]
            .map(|answer| (answer.header.command, answer.status()));
        let cleanup = (Command::CHANGE_NOTIFY, Status::NOTIFY_CLEANUP);
        assert!(statuses.contains(&cleanup), "{statuses:?}");
        assert!(
            statuses
                .iter()
                .any(|(_, status)| *status == Status::SUCCESS)
        );
        rig.cut(client.id);
        assert!(rig.connection(client.id).is_idle());
    }
}

#[test]
fn only_the_last_member_of_a_compound_waits() {
    let (mut rig, mut client, directory) = with_directory();
    let wait = watch(&mut client, directory, NAMES, 4096);
    let mut close = client.close_message(FileId::RELATED);
    close.header.flags |= Flags::RELATED_OPERATIONS;
    let answers = client.ask_all(&mut rig, vec![wait, close]);
    let statuses: Vec<Status> = answers.iter().map(Answer::status).collect();
    assert_eq!(statuses, [Status::INTERNAL_ERROR, Status::SUCCESS]);
}

#[test]
fn local_changes_are_reported() {
    let (mut rig, mut client, directory) = with_directory();
    let wait = watch(&mut client, directory, NAMES, 4096);
    client.say(&mut rig, vec![wait]);
    assert_eq!(rig.disk.watched.len(), 1);
    assert!(!rig.disk.watched[0].1);
    let key = rig.disk.key("d");
    let renamed = [
        local(key, FileAction::RENAMED_OLD_NAME, "Old"),
        local(key, FileAction::RENAMED_NEW_NAME, "New"),
    ];
    rig.happen_locally(&renamed);
    let reported = changes(&hear(&mut client, &mut rig));
    let names = [
        (FileAction::RENAMED_OLD_NAME, "Old".to_owned()),
        (FileAction::RENAMED_NEW_NAME, "New".to_owned()),
    ];
    assert_eq!(reported, names);
    // The watch ignores changes in subdirectories, in other directories, and of filtered kinds.
    rig.happen_locally(&[
        local(key, FileAction::ADDED, "deeper/a"),
        local(FileKey::default(), FileAction::ADDED, "b"),
    ]);
    let wait = watch(&mut client, directory, NAMES, 4096);
    client.say(&mut rig, vec![wait]);
    assert!(client.hear(&mut rig).is_none());
    assert_eq!(rig.disk.watched.len(), 1, "one watch for each open");
    rig.happen_locally(&[local(key, FileAction::ADDED, "a")]);
    assert_eq!(changes(&hear(&mut client, &mut rig)), added("a"));
}

#[test]
fn a_recursive_watch_reports_paths_relative_to_its_directory() {
    let (mut rig, mut client, directory) = with_directory();
    let wait = watch_tree(&mut client, directory);
    client.say(&mut rig, vec![wait]);
    assert!(rig.disk.watched[0].1);
    let key = rig.disk.key("d");
    rig.happen_locally(&[local(key, FileAction::ADDED, "x/y/Z")]);
    assert_eq!(changes(&hear(&mut client, &mut rig)), added("x\\y\\Z"));
}

#[test]
fn lost_changes_are_reported_as_enum_dir() {
    let (mut rig, mut client, directory) = with_directory();
    let key = rig.disk.key("d");
    for lost in [LocalEvent::Lost(None), LocalEvent::Lost(Some(key))] {
        let wait = watch(&mut client, directory, NAMES, 4096);
        client.say(&mut rig, vec![wait]);
        rig.happen_locally(&[LocalEvent::Lost(Some(FileKey::default()))]);
        assert!(client.hear(&mut rig).is_none());
        rig.happen_locally(&[lost]);
        let answer = hear(&mut client, &mut rig);
        assert_eq!(answer.status(), Status::NOTIFY_ENUM_DIR);
    }
    // The watch works again afterwards.
    rig.happen_locally(&[local(key, FileAction::ADDED, "a")]);
    let wait = watch(&mut client, directory, NAMES, 4096);
    assert_eq!(changes(&client.ask(&mut rig, wait)), added("a"));
}

/// The size of the client's buffer does not matter.
#[test]
fn more_changes_than_the_buffer_of_a_watch_are_reported_as_enum_dir() {
    let (mut rig, mut client, directory) = with_directory();
    let key = rig.disk.key("d");
    let ask = |rig: &mut Rig, client: &mut Client| {
        let mut wait = watch(client, directory, NAMES, 1 << 20);
        wait.header.credit_charge = 16;
        client.next_message += 15;
        client.say(rig, vec![wait]);
        client.hear(rig).map(|answers| answers[0].status())
    };
    assert_eq!(ask(&mut rig, &mut client), None);
    rig.happen_locally(&[local(key, FileAction::ADDED, "first")]);
    assert_eq!(hear(&mut client, &mut rig).status(), Status::SUCCESS);
    // An entry has 12 bytes and a name of 100 characters: 300 fit into 64 KiB, 400 do not.
    for (count, expected) in [(300, Status::SUCCESS), (400, Status::NOTIFY_ENUM_DIR)] {
        for number in 0..count {
            let name = format!("{number:0100}");
            rig.happen_locally(&[local(key, FileAction::ADDED, &name)]);
        }
        assert_eq!(ask(&mut rig, &mut client), Some(expected));
    }
}

#[test]
fn a_locally_removed_directory_is_reported_as_delete_pending() {
    let (mut rig, mut client, directory) = with_directory();
    let wait = watch(&mut client, directory, NAMES, 4096);
    client.say(&mut rig, vec![wait]);
    let key = rig.disk.key("d");
    rig.happen_locally(&[
        local(key, FileAction::REMOVED, "last"),
        LocalEvent::Removed(key),
    ]);
    // Earlier changes are reported first.
    let reported = changes(&hear(&mut client, &mut rig));
    assert_eq!(reported, [(FileAction::REMOVED, "last".to_owned())]);
    let wait = watch(&mut client, directory, NAMES, 4096);
    let answer = client.ask(&mut rig, wait);
    assert_eq!(answer.status(), Status::DELETE_PENDING);
}

#[test]
fn a_share_without_notification_refuses_watches() {
    let mut rig = Rig::new(|config| {
        let quiet = proto::server::config::Share {
            notify: false,
            ..share("files")
        };
        config.shares[0] = Arc::new(quiet);
    });
    let mut client = enter(&mut rig);
    let directory = make_directory(&mut rig, &mut client, "d");
    let wait = watch(&mut client, directory, NAMES, 4096);
    let answer = client.ask(&mut rig, wait);
    assert_eq!(answer.status(), Status::NOT_IMPLEMENTED);
    assert!(rig.disk.watched.is_empty());
}
