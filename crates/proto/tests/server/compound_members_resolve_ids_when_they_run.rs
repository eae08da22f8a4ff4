//! Compounds: state that members inherit, state that they do not, and how their responses leave.
//! Rows 1, 11 and 25 of the list of bad inputs; the statuses are those of smb2.compound.

use wire::access::{CreateDisposition, CreateOptions};
use wire::dialect::Dialect;
use wire::{Command, FileId, Flags, SessionId, Status, TreeId};

use crate::harness::{Answer, Client, Message, Options, Rig, bytes_of, data, file_id};

fn related(mut message: Message) -> Message {
    message.header.flags |= Flags::RELATED_OPERATIONS;
    message
}

/// Sets the ids that mean "those of the previous member".
fn as_before(mut message: Message) -> Message {
    message.header.session_id = SessionId::RELATED;
    if let wire::header::Target::Sync { tree_id, .. } = &mut message.header.target {
        *tree_id = TreeId::RELATED;
    }
    related(message)
}

fn statuses(answers: &[Answer]) -> Vec<Status> {
    answers.iter().map(Answer::status).collect()
}

fn rig_and_client() -> (Rig, Client) {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "files");
    let mut echo = echo(&mut client);
    echo.header.credits = 100;
    client.ask(&mut rig, echo);
    (rig, client)
}

fn echo(client: &mut Client) -> Message {
    let bytes = bytes_of(|bytes| wire::echo::Request.encode(bytes));
    client.message(Command::ECHO, bytes)
}

fn tree_disconnect(client: &mut Client) -> Message {
    let bytes = bytes_of(|bytes| wire::tree_disconnect::Request.encode(bytes));
    client.message(Command::TREE_DISCONNECT, bytes)
}

fn logoff(client: &mut Client) -> Message {
    let bytes = bytes_of(|bytes| wire::logoff::Request.encode(bytes));
    client.message(Command::LOGOFF, bytes)
}

#[test]
fn a_compound_creates_writes_reads_and_closes_a_file() {
    for holds in [false, true] {
        for encrypts in [false, true] {
            let (mut rig, mut client) = rig_and_client();
            client.encrypts = encrypts;
            rig.is_holding = holds;
            let messages = vec![
                client.create_message("a"),
                related(client.write_message(FileId::RELATED, b"words")),
                as_before(client.read_message(FileId::RELATED, 100)),
                as_before(client.close_message(FileId::RELATED)),
            ];
            client.say(&mut rig, messages);
            assert_eq!(rig.held.len(), usize::from(holds));
            // The disk holds back each operation in turn.
            while !rig.held.is_empty() {
                rig.release_one();
            }
            let answers = client.hear(&mut rig).unwrap();
            assert_eq!(statuses(&answers), [Status::SUCCESS; 4]);
            assert_eq!(data(&answers[2]), b"words");
            assert!(rig.disk.opens.is_empty());
            assert!(client.hear(&mut rig).is_none());
        }
    }
}

/// The open is that of the first member, or the one that it made. Ids in a related member are
/// ignored.
#[test]
fn related_members_use_the_previous_open() {
    let (mut rig, mut client) = rig_and_client();
    let other = client.create(&mut rig, "other");
    let closed = client.create(&mut rig, "closed");
    let close = client.close_message(closed);
    client.ask(&mut rig, close);
    for id in [other, closed, FileId::RELATED] {
        let messages = vec![
            client.create_message("a"),
            related(client.write_message(id, b"words")),
            related(client.read_message(id, 100)),
            related(client.close_message(id)),
        ];
        client.say(&mut rig, messages);
        let answers = client.hear(&mut rig).unwrap();
        assert_eq!(statuses(&answers), [Status::SUCCESS; 4], "{id:?}");
        assert_eq!(data(&answers[2]), b"words");
    }
    assert_eq!(rig.disk.opens.len(), 1);
    // An unrelated member uses its ids.
    let messages = vec![
        client.create_message("a"),
        client.read_message(closed, 100),
        client.close_message(other),
    ];
    client.say(&mut rig, messages);
    let answers = client.hear(&mut rig).unwrap();
    let expected = [Status::SUCCESS, Status::FILE_CLOSED, Status::SUCCESS];
    assert_eq!(statuses(&answers), expected);
}

#[test]
fn related_members_fail_as_their_create_failed() {
    let (mut rig, mut client) = rig_and_client();
    let open = CreateDisposition::OPEN;
    let messages = vec![
        client.create_with("none", open, CreateOptions::NONE),
        related(client.read_message(FileId::RELATED, 1)),
        related(client.close_message(FileId::RELATED)),
        echo(&mut client),
        client.close_message(FileId::RELATED),
    ];
    let answers = client.ask_all(&mut rig, messages);
    let not_found = Status::OBJECT_NAME_NOT_FOUND;
    let expected = [
        not_found,
        not_found,
        not_found,
        Status::SUCCESS,
        Status::FILE_CLOSED,
    ];
    assert_eq!(statuses(&answers), expected);
}

#[test]
fn a_create_after_a_failed_one_opens_its_file() {
    let (mut rig, mut client) = rig_and_client();
    let open = CreateDisposition::OPEN;
    let messages = vec![
        client.create_with("none", open, CreateOptions::NONE),
        as_before(client.read_message(FileId::RELATED, 1)),
        as_before(client.create_message("a")),
        as_before(client.write_message(FileId::RELATED, b"words")),
        as_before(client.close_message(FileId::RELATED)),
        as_before(client.create_message("b")),
        as_before(client.write_message(FileId::RELATED, b"more")),
        as_before(client.close_message(FileId::RELATED)),
    ];
    let answers = client.ask_all(&mut rig, messages);
    let not_found = Status::OBJECT_NAME_NOT_FOUND;
    let done = Status::SUCCESS;
    let expected = [not_found, not_found, done, done, done, done, done, done];
    assert_eq!(statuses(&answers), expected);
    assert!(rig.disk.opens.is_empty());
}

#[test]
fn a_member_after_a_close_has_no_open() {
    // smb2.compound.related2
    let (mut rig, mut client) = rig_and_client();
    let messages = vec![
        client.create_message("a"),
        as_before(client.close_message(FileId::RELATED)),
        as_before(client.close_message(FileId::RELATED)),
        as_before(client.read_message(FileId::RELATED, 1)),
    ];
    let answers = client.ask_all(&mut rig, messages);
    let closed = Status::FILE_CLOSED;
    assert_eq!(
        statuses(&answers),
        [Status::SUCCESS, Status::SUCCESS, closed, closed]
    );
}

#[test]
fn unrelated_members_inherit_nothing() {
    // smb2.compound.unrelated1, invalid3
    let (mut rig, mut client) = rig_and_client();
    let messages = vec![
        client.create_message("a"),
        client.close_message(FileId::RELATED),
        client.close_message(FileId::RELATED),
        related(client.close_message(FileId::RELATED)),
    ];
    let answers = client.ask_all(&mut rig, messages);
    let closed = Status::FILE_CLOSED;
    assert_eq!(
        statuses(&answers),
        [Status::SUCCESS, closed, closed, closed]
    );
}

#[test]
fn a_related_first_member_is_refused() {
    // smb2.compound.invalid1
    let (mut rig, mut client) = rig_and_client();
    let messages = vec![
        related(client.create_message("a")),
        related(client.close_message(FileId::RELATED)),
        client.close_message(FileId::RELATED),
    ];
    let answers = client.ask_all(&mut rig, messages);
    let invalid = Status::INVALID_PARAMETER;
    assert_eq!(statuses(&answers), [invalid, invalid, Status::FILE_CLOSED]);
}

#[test]
fn an_unknown_session_is_inherited_as_unknown() {
    // smb2.compound.invalid2
    let (mut rig, mut client) = rig_and_client();
    client.signs = false;
    let mut orphan = client.close_message(FileId::RELATED);
    orphan.header.session_id = SessionId::RELATED;
    client.next_message -= 1;
    let messages = vec![
        client.create_message("a"),
        as_before(client.close_message(FileId::RELATED)),
        {
            orphan.header.message_id.0 = client.next_message;
            client.next_message += 1;
            orphan
        },
        as_before(client.close_message(FileId::RELATED)),
    ];
    let answers = client.ask_all(&mut rig, messages);
    let expected = [
        Status::SUCCESS,
        Status::SUCCESS,
        Status::USER_SESSION_DELETED,
        Status::INVALID_PARAMETER,
    ];
    assert_eq!(statuses(&answers), expected);
}

#[test]
fn an_unknown_command_fails_alone() {
    // smb2.compound.invalid4
    let (mut rig, mut client) = rig_and_client();
    let file = client.create(&mut rig, "a");
    let bytes = bytes_of(|bytes| wire::echo::Request.encode(bytes));
    let messages = vec![
        client.read_message(file, 1),
        related(client.message(Command(0xFF), bytes)),
    ];
    let answers = client.ask_all(&mut rig, messages);
    let expected = [Status::END_OF_FILE, Status::INVALID_PARAMETER];
    assert_eq!(statuses(&answers), expected);
}

#[test]
fn later_members_do_not_find_a_disconnected_tree() {
    for holds in [false, true] {
        let (mut rig, mut client) = rig_and_client();
        let file = client.create(&mut rig, "a");
        rig.is_holding = holds;
        let messages = vec![
            client.read_message(file, 0),
            related(tree_disconnect(&mut client)),
            related(client.read_message(FileId::RELATED, 1)),
            client.read_message(file, 1),
            echo(&mut client),
        ];
        client.say(&mut rig, messages);
        rig.release();
        let answers = client.hear(&mut rig).unwrap();
        let gone = Status::NETWORK_NAME_DELETED;
        let fine = Status::SUCCESS;
        assert_eq!(statuses(&answers), [fine, fine, gone, gone, fine]);
        assert!(rig.disk.opens.is_empty());
    }
}

#[test]
fn later_members_do_not_find_a_logged_off_session() {
    for holds in [false, true] {
        let (mut rig, mut client) = rig_and_client();
        let file = client.create(&mut rig, "a");
        rig.is_holding = holds;
        client.signs = false;
        let messages = vec![
            client.read_message(file, 0),
            logoff(&mut client),
            related(client.read_message(FileId::RELATED, 1)),
            client.read_message(file, 1),
            tree_disconnect(&mut client),
        ];
        client.say(&mut rig, messages);
        rig.release();
        let answers = client.hear(&mut rig).unwrap();
        let gone = Status::USER_SESSION_DELETED;
        let fine = Status::SUCCESS;
        let lost = Status::INVALID_PARAMETER;
        assert_eq!(statuses(&answers), [fine, fine, lost, gone, gone]);
        assert!(rig.disk.opens.is_empty());
    }
}

#[test]
fn later_members_find_a_new_tree() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::logged_in(&mut rig, Options::default(), "alice");
    let mut echo = echo(&mut client);
    echo.header.credits = 100;
    client.ask(&mut rig, echo);
    let messages = vec![
        client.connect_message("files"),
        as_before(client.create_message("a")),
        as_before(client.close_message(FileId::RELATED)),
    ];
    let answers = client.ask_all(&mut rig, messages);
    assert_eq!(statuses(&answers), [Status::SUCCESS; 3]);
}

#[test]
fn members_of_two_sessions_do_not_mix() {
    let (mut rig, mut client) = rig_and_client();
    client.signs = false;
    let file = client.create(&mut rig, "a");
    let setup = client.setup("bob", SessionId(0));
    let mut bob = Client::on(client.id, Options::default());
    bob.next_message = setup.header.message_id.0;
    let setup = bob.setup("bob", SessionId(0));
    let bobs = bob.ask(&mut rig, setup).header.session_id;
    let of_bob = |mut message: Message| {
        message.header.session_id = bobs;
        message
    };
    let messages = vec![
        client.read_message(file, 0),
        of_bob(client.read_message(file, 0)),
        related(client.read_message(file, 0)),
        client.close_message(file),
    ];
    let answers = client.ask_all(&mut rig, messages);
    // Bob has no tree connect, and the member related to his has none either.
    let gone = Status::NETWORK_NAME_DELETED;
    assert_eq!(
        statuses(&answers),
        [Status::SUCCESS, gone, gone, Status::SUCCESS]
    );
}

#[test]
fn answers_are_padded_with_zeroes_to_a_multiple_of_8() {
    // smb2.compound.compound-padding
    let (mut rig, mut client) = rig_and_client();
    let file = client.create(&mut rig, "a");
    let write = client.write_message(file, b"123");
    client.ask(&mut rig, write);
    let messages = vec![client.read_message(file, 3), client.read_message(file, 3)];
    let answers = client.ask_all(&mut rig, messages);
    for answer in &answers {
        assert_eq!(answer.message.len(), 64 + 24);
        assert_eq!(data(answer), b"123");
        assert_eq!(answer.message[64 + 19..], [0; 5]);
    }
    assert_eq!(answers[0].header.next_command, 88);
    assert_eq!(answers[1].header.next_command, 0);
    let alone = client.read_message(file, 3);
    assert_eq!(client.ask(&mut rig, alone).message.len(), 64 + 19);
}

#[test]
fn credit_charges_are_checked_against_lengths() {
    for (dialect, length, charge, expected) in [
        (Dialect::SMB_3_1_1, 65_536, 0, Status::SUCCESS),
        (Dialect::SMB_3_1_1, 65_536, 1, Status::SUCCESS),
        (Dialect::SMB_3_1_1, 65_537, 1, Status::INVALID_PARAMETER),
        (Dialect::SMB_2_1, 65_537, 2, Status::SUCCESS),
        (Dialect::SMB_2_1, 8 << 20, 128, Status::SUCCESS),
        (Dialect::SMB_2_1, 8 << 20, 127, Status::INVALID_PARAMETER),
        (
            Dialect::SMB_2_1,
            (8 << 20) + 1,
            129,
            Status::INVALID_PARAMETER,
        ),
        (Dialect::SMB_2_0_2, 65_536, 0, Status::SUCCESS),
        (Dialect::SMB_2_0_2, 65_537, 2, Status::INVALID_PARAMETER),
    ] {
        let mut rig = Rig::new(|_| {});
        let mut client = Client::in_share(&mut rig, Options::only(dialect), "alice", "files");
        let mut create = client.create_message("a");
        create.header.credits = 1000;
        let file = file_id(&client.ask(&mut rig, create));
        let write = client.write_message(file, b"123");
        client.ask(&mut rig, write);
        let mut read = client.read_message(file, length);
        read.header.credit_charge = charge;
        let answer = client.ask(&mut rig, read);
        assert_eq!(answer.status(), expected, "{dialect:?} {length} {charge}");
    }
}
