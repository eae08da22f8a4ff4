//! Whatever a server says: an answer that cannot be ends the connection, one that says more than
//! was asked for fails its request, and nothing else happens.

use proto::client::request::{Create, FileRef, LeaseRequest, ReadData, Reply, Step};
use proto::client::{Failure, Fate, Violation};
use wire::change_notify::CompletionFilter;
use wire::fsctl::CtlCode;
use wire::query_info::InfoType;
use wire::{Command, DecodeError, FileId, Flags, Guid, MessageId, SessionId, Status, TreeId};
use wire::{query_info, tree_connect, write};

use crate::forge::{
    alone, asked, asked_all, asynchronous, created, error, failure, header, message, plain_error,
    read_answer,
};
use crate::link::{Link, create as open};

const FILE: FileRef = FileRef::Id(FileId {
    persistent: 1,
    volatile: 2,
});

fn read_step(length: u32) -> Step {
    Step::Read {
        file: FILE,
        offset: 0,
        length,
        minimum: 0,
    }
}

/// What ended the connection; the request was given back.
fn violation(link: &Link) -> Violation {
    assert!(link.client.is_over());
    assert!(!link.lost.is_empty(), "what was asked is given back");
    assert!(link.lost.iter().all(|(_, _, fate)| *fate == Fate::Sent));
    link.ended.clone().expect("the connection ended")
}

fn is_invalid(violation: &Violation, name: &str) -> bool {
    matches!(violation, Violation::Malformed(DecodeError::Invalid { field, .. }) if *field == name)
}

#[test]
fn longer_data_than_were_asked_for_fail_the_read() {
    let (mut link, tree) = alone();
    let (id, asked) = asked(&mut link, tree, read_step(10));
    let answer = header(&asked, Status::SUCCESS);
    link.hear(message(&answer, read_answer(80, 11, &[7; 11])));
    assert!(matches!(failure(&mut link, id), Failure::Excess(_)));
    assert_eq!(link.ended, None);
}

#[test]
fn data_outside_of_the_message_fail_the_read() {
    for (offset, length) in [(80, 11), (200, 10), (0, 10), (64, 10), (80, u32::MAX)] {
        let (mut link, tree) = alone();
        let (id, asked) = asked(&mut link, tree, read_step(1 << 16));
        let answer = header(&asked, Status::SUCCESS);
        link.hear(message(&answer, read_answer(offset, length, &[7; 10])));
        let failure = failure(&mut link, id);
        let is_found_out = matches!(failure, Failure::Malformed(_) | Failure::Excess(_));
        assert!(is_found_out, "{offset}, {length}: {failure:?}");
        assert_eq!(link.placed, 0);
    }
}

#[test]
fn no_data_are_nowhere_else_than_in_the_frame() {
    for offset in [0, 79, 80, 81, 115, 255] {
        let (mut link, tree) = alone();
        let (id, asked) = asked(&mut link, tree, read_step(10));
        let answer = header(&asked, Status::SUCCESS);
        link.hear(message(&answer, read_answer(offset, 0, &[])));
        assert!(link.answers.remove(&id).unwrap()[0].is_ok());
        assert!(link.destinations[&id].is_empty(), "{offset}");
    }
}

#[test]
fn data_with_something_behind_them_are_not_placed() {
    let (mut link, tree) = alone();
    let (id, asked) = asked(&mut link, tree, read_step(10));
    let answer = header(&asked, Status::SUCCESS);
    link.hear(message(&answer, read_answer(80, 9, &[7; 30])));
    assert_eq!(link.placed, 0);
    let results = link.answers.remove(&id).unwrap();
    assert!(matches!(
        &results[..],
        [Ok(Reply::Read(ReadData::Inbound(range)))] if range.len() == 9
    ));
}

#[test]
fn exact_data_are_placed() {
    let (mut link, tree) = alone();
    let (id, asked) = asked(&mut link, tree, read_step(10));
    let answer = header(&asked, Status::SUCCESS);
    link.hear(message(
        &answer,
        read_answer(88, 9, &[0, 0, 0, 0, 0, 0, 0, 0, 7, 7, 7, 7, 7, 7, 7, 7, 7]),
    ));
    assert_eq!(link.placed, 1);
    assert_eq!(link.destinations[&id], [7; 9]);
}

#[test]
fn more_bytes_written_than_were_sent_fail_the_write() {
    let (mut link, tree) = alone();
    let step = Step::Write {
        file: FILE,
        offset: 0,
        length: 0,
        through: false,
    };
    let (id, asked) = asked(&mut link, tree, step);
    let answer = header(&asked, Status::SUCCESS);
    link.hear(message(&answer, |bytes| {
        write::Response { count: 1 }.encode(bytes);
    }));
    assert!(matches!(failure(&mut link, id), Failure::Excess(_)));
}

#[test]
fn a_longer_buffer_than_was_asked_for_fails_its_request() {
    let query = Step::QueryInfo {
        file: FILE,
        info_type: InfoType::FILE,
        class: 5,
        additional: 0,
        length: 24,
    };
    let list = Step::QueryDirectory {
        file: FILE,
        class: 37,
        restart: true,
        pattern: "*".into(),
        length: 24,
    };
    let notify = Step::ChangeNotify {
        file: FILE,
        recursive: false,
        filter: CompletionFilter::NONE,
        length: 24,
    };
    for step in [query, list, notify] {
        let (mut link, tree) = alone();
        let (id, asked) = asked(&mut link, tree, step);
        let answer = header(&asked, Status::SUCCESS);
        // The three answers have one form.
        link.hear(message(&answer, |bytes| {
            query_info::Response { output: &[1; 25] }.encode(bytes);
        }));
        assert!(matches!(failure(&mut link, id), Failure::Excess(_)));
    }
}

#[test]
fn a_longer_output_than_was_asked_for_fails_the_ioctl() {
    let (mut link, tree) = alone();
    let step = Step::Ioctl {
        file: Some(FILE),
        code: CtlCode::QUERY_ALLOCATED_RANGES,
        input: vec![0; 16],
        max_output: 8,
    };
    let (id, asked) = asked(&mut link, tree, step);
    let answer = header(&asked, Status::SUCCESS);
    let response = wire::ioctl::Response {
        ctl_code: CtlCode::QUERY_ALLOCATED_RANGES,
        file_id: FileId::RELATED,
        flags: wire::ioctl::IoctlFlags::NONE,
        input: &[],
        output: &[1; 9],
    };
    link.hear(message(&answer, |bytes| response.encode(bytes)));
    assert!(matches!(failure(&mut link, id), Failure::Excess(_)));
}

#[test]
fn create_contexts_that_cannot_be_fail_the_create() {
    use wire::create_context::{RawContext, name};
    let step = || {
        Step::Create(Create {
            lease: Some(LeaseRequest::new(Guid([1; 16]), 7)),
            query_maximal_access: true,
            posix_mode: None,
            ..open("a")
        })
    };
    let other_lease = [2; 32];
    for (name, data) in [
        (name::MAXIMAL_ACCESS, &[0; 3][..]),
        (name::LEASE, &[0; 5]),
        (name::LEASE, &other_lease),
    ] {
        let (mut link, tree) = alone();
        let (id, asked) = asked(&mut link, tree, step());
        let response = created(vec![RawContext { name, data }]);
        let answer = header(&asked, Status::SUCCESS);
        link.hear(message(&answer, |bytes| response.encode(bytes)));
        let failure = failure(&mut link, id);
        assert!(matches!(
            failure,
            Failure::Malformed(_) | Failure::Excess(_)
        ));
    }
    // A chain that ends nowhere.
    let (mut link, tree) = alone();
    let (id, asked) = asked(&mut link, tree, step());
    let mut bytes = message(&header(&asked, Status::SUCCESS), |bytes| {
        created(Vec::new()).encode(bytes);
    });
    let at = bytes.len() - 8;
    bytes[at..at + 4].copy_from_slice(&152_u32.to_le_bytes());
    bytes[at + 4..].copy_from_slice(&1000_u32.to_le_bytes());
    link.hear(bytes);
    assert!(matches!(failure(&mut link, id), Failure::Malformed(_)));
}

#[test]
fn answers_that_are_cut_short_fail_their_requests() {
    let (mut link, tree) = alone();
    let (id, asked) = asked(&mut link, tree, Step::Create(open("a")));
    let mut bytes = message(&header(&asked, Status::SUCCESS), |bytes| {
        created(Vec::new()).encode(bytes);
    });
    bytes.truncate(100);
    link.hear(bytes);
    assert!(matches!(failure(&mut link, id), Failure::Malformed(_)));
}

#[test]
fn an_answer_of_another_command_ends_the_connection() {
    let (mut link, tree) = alone();
    let (_, asked) = asked(&mut link, tree, read_step(10));
    let mut answer = header(&asked, Status::SUCCESS);
    answer.command = Command::WRITE;
    link.hear(message(&answer, plain_error));
    let wrong = Violation::WrongCommand {
        asked: Command::READ,
        came: Command::WRITE,
    };
    assert_eq!(violation(&link), wrong);
}

#[test]
fn an_answer_to_nothing_ends_the_connection() {
    for id in [0, 1, 1000, u64::MAX] {
        let (mut link, tree) = alone();
        let (_, asked) = asked(&mut link, tree, read_step(10));
        let mut answer = header(&asked, Status::END_OF_FILE);
        answer.message_id = MessageId(id);
        link.hear(message(&answer, plain_error));
        assert_eq!(violation(&link), Violation::UnknownMessageId(MessageId(id)));
    }
}

#[test]
fn a_second_answer_ends_the_connection() {
    let (mut link, tree) = alone();
    let (first, header) = asked(&mut link, tree, read_step(10));
    asked(&mut link, tree, read_step(10));
    link.hear(error(&header, Status::END_OF_FILE));
    assert_eq!(
        failure(&mut link, first),
        Failure::Status(Status::END_OF_FILE)
    );
    link.hear(error(&header, Status::END_OF_FILE));
    let twice = Violation::UnknownMessageId(header.message_id);
    assert_eq!(violation(&link), twice);
}

#[test]
fn a_request_from_the_server_ends_the_connection() {
    let (mut link, tree) = alone();
    let (_, asked) = asked(&mut link, tree, read_step(10));
    let mut answer = header(&asked, Status::END_OF_FILE);
    answer.flags = Flags::NONE;
    link.hear(message(&answer, plain_error));
    assert!(is_invalid(&violation(&link), "Flags"));
}

#[test]
fn an_answer_of_another_session_or_tree_ends_the_connection() {
    let (mut link, tree) = alone();
    let (_, asked_first) = asked(&mut link, tree, read_step(10));
    let mut answer = header(&asked_first, Status::END_OF_FILE);
    answer.session_id = SessionId(0x1234);
    link.hear(message(&answer, plain_error));
    assert!(is_invalid(&violation(&link), "SessionId"));

    let (mut link, tree) = alone();
    let (_, asked) = asked(&mut link, tree, read_step(10));
    let mut answer = header(&asked, Status::SUCCESS);
    answer.target = wire::header::Target::Sync {
        process_id: 0,
        tree_id: TreeId(tree.0 + 1),
    };
    link.hear(message(&answer, read_answer(80, 10, &[7; 10])));
    assert!(is_invalid(&violation(&link), "TreeId"));
}

#[test]
fn an_async_answer_keeps_its_id() {
    let notify = || Step::ChangeNotify {
        file: FILE,
        recursive: false,
        filter: CompletionFilter::NONE,
        length: 24,
    };
    // Another id; none at all; a second interim answer; an interim answer without an id.
    for case in 0..4 {
        let (mut link, tree) = alone();
        let (_, asked) = asked(&mut link, tree, notify());
        let interim = asynchronous(&asked, Status::PENDING, 7);
        if case < 3 {
            link.hear(message(&interim, plain_error));
            assert_eq!(link.ended, None);
        }
        let second = match case {
            0 => asynchronous(&asked, Status::NOTIFY_CLEANUP, 8),
            1 => header(&asked, Status::NOTIFY_CLEANUP),
            2 => asynchronous(&asked, Status::PENDING, 7),
            _ => header(&asked, Status::PENDING),
        };
        link.hear(message(&second, plain_error));
        let violation = violation(&link);
        let is_found_out = is_invalid(&violation, "AsyncId") || is_invalid(&violation, "Flags");
        assert!(is_found_out, "{case}: {violation:?}");
    }
}

#[test]
fn an_interim_answer_is_no_answer() {
    let (mut link, tree) = alone();
    let (id, asked) = asked(&mut link, tree, read_step(10));
    link.hear(message(
        &asynchronous(&asked, Status::PENDING, 7),
        plain_error,
    ));
    assert!(link.answers.is_empty());
    let mut last = asynchronous(&asked, Status::END_OF_FILE, 7);
    last.credits = 0;
    link.hear(message(&last, plain_error));
    assert_eq!(failure(&mut link, id), Failure::Status(Status::END_OF_FILE));
}

#[test]
fn more_credits_than_there_are_end_the_connection() {
    let (mut link, tree) = alone();
    asked(&mut link, tree, read_step(10));
    let (_, asked) = asked(&mut link, tree, read_step(10));
    let mut answer = header(&asked, Status::END_OF_FILE);
    answer.credits = u16::MAX;
    link.hear(message(&answer, plain_error));
    assert_eq!(violation(&link), Violation::LimitReached("credits"));
}

#[test]
fn frames_that_are_no_messages_end_the_connection() {
    let compressed = [b"\xFCSMB".as_slice(), &[0; 60]].concat();
    let smb1 = [b"\xFFSMB".as_slice(), &[0; 60]].concat();
    let sealed = [b"\xFDSMB".as_slice(), &[0; 100]].concat();
    for frame in [vec![], vec![0xFE], compressed, smb1, sealed, vec![7; 300]] {
        let (mut link, tree) = alone();
        asked(&mut link, tree, read_step(10));
        link.hear(frame.clone());
        let violation = violation(&link);
        let is_found_out = matches!(
            violation,
            Violation::Malformed(_) | Violation::NotEncrypted(_)
        );
        assert!(is_found_out, "{frame:?}: {violation:?}");
    }
}

#[test]
fn a_frame_longer_than_any_answer_ends_the_connection() {
    let (mut link, tree) = alone();
    asked(&mut link, tree, read_step(10));
    let frame = vec![0xFE; link.client.max_frame() + 1];
    link.hear(frame);
    assert_eq!(
        violation(&link),
        Violation::LimitReached("length of a frame")
    );
}

#[test]
fn a_compound_that_goes_nowhere_ends_the_connection() {
    for next in [1, 7, 64, 1 << 20, u32::MAX] {
        let (mut link, tree) = alone();
        let (_, asked) = asked(&mut link, tree, read_step(10));
        let mut answer = header(&asked, Status::END_OF_FILE);
        answer.next_command = next;
        link.hear(message(&answer, plain_error));
        assert!(is_invalid(&violation(&link), "NextCommand"), "{next}");
    }
}

#[test]
fn the_members_of_a_compound_are_answered_together_or_one_by_one() {
    for is_together in [true, false] {
        let (mut link, tree) = alone();
        let steps = vec![
            Step::Create(open("a")),
            Step::Read {
                file: FileRef::Previous,
                offset: 0,
                length: 100,
                minimum: 0,
            },
            Step::Close {
                file: FileRef::Previous,
                query: false,
            },
        ];
        let (id, asked) = asked_all(&mut link, tree, steps);
        assert!(!asked[0].flags.contains(Flags::RELATED_OPERATIONS));
        assert!(asked[1].flags.contains(Flags::RELATED_OPERATIONS));
        let answers = [
            message(&header(&asked[0], Status::SUCCESS), |bytes| {
                created(Vec::new()).encode(bytes);
            }),
            message(
                &header(&asked[1], Status::SUCCESS),
                read_answer(80, 5, b"hello"),
            ),
            error(&asked[2], Status::FILE_CLOSED),
        ];
        if is_together {
            let mut frame = Vec::new();
            for (index, mut answer) in answers.into_iter().enumerate() {
                if index < 2 {
                    wire::compound::link(&mut answer);
                }
                frame.extend(answer);
            }
            link.hear(frame);
        } else {
            // And in any order.
            let [first, second, third] = answers;
            link.hear(second);
            assert!(link.answers.is_empty());
            link.hear(third);
            link.hear(first);
        }
        let results = link.answers.remove(&id).unwrap();
        assert!(matches!(results[0], Ok(Reply::Created(_))));
        assert!(matches!(results[1], Ok(Reply::Read(_))));
        assert!(matches!(
            results[2],
            Err(Failure::Status(Status::FILE_CLOSED))
        ));
        assert_eq!(link.destinations[&id][..5], *b"hello");
    }
}

#[test]
fn a_session_that_is_over_gives_everything_back() {
    for status in [
        Status::USER_SESSION_DELETED,
        Status::NETWORK_SESSION_EXPIRED,
    ] {
        let (mut link, tree) = alone();
        let (_, asked) = asked(&mut link, tree, read_step(10));
        link.hear(error(&asked, status));
        assert_eq!(violation(&link), Violation::SessionGone(status));
    }
}

#[test]
fn what_an_error_says_besides_is_told() {
    let (mut link, tree) = alone();
    let (id, asked) = asked(&mut link, tree, Step::Create(open("link")));
    let data = b"where it points";
    let contexts = wire::error_response::encode_contexts(&[wire::error_response::ErrorContext {
        error_id: wire::error_response::ErrorId::DEFAULT,
        data,
    }]);
    let error = wire::error_response::Response {
        context_count: 1,
        error_data: &contexts,
    };
    let answer = header(&asked, Status::STOPPED_ON_SYMLINK);
    link.hear(message(&answer, |bytes| error.encode(bytes)));
    let wanted = Failure::StatusWith(Status::STOPPED_ON_SYMLINK, data.to_vec());
    assert_eq!(failure(&mut link, id), wanted);
}

#[test]
fn a_tree_connect_answered_for_no_tree_fails() {
    let (mut link, _) = alone();
    let (id, asked) = asked(&mut link, TreeId(0), Step::TreeConnect("x".into()));
    let response = tree_connect::Response {
        share_type: tree_connect::ShareType::DISK,
        share_flags: tree_connect::ShareFlags::NONE,
        capabilities: tree_connect::ShareCapabilities::NONE,
        maximal_access: wire::access::AccessMask::NONE,
    };
    // In 3.1.1 it was signed, and so its answer has to be.
    let answer = asynchronous(&asked, Status::SUCCESS, 5);
    link.hear(message(&answer, |bytes| response.encode(bytes)));
    assert!(matches!(violation(&link), Violation::BadSignature(_)));
    assert!(!link.answers.contains_key(&id));
}
