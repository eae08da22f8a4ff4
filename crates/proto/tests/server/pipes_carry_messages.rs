//! A pipe delivers its messages in order. A read waits for a message, and ends when the pipe
//! closes.

use std::time::Duration;

use wire::change_notify::{ChangeNotifyFlags, CompletionFilter};
use wire::fscc::{FileInfoClass, FilePipeInformation, FilePipeLocalInformation, InfoType};
use wire::fsctl::{CtlCode, PipePeek, PipeWait};
use wire::header::Target;
use wire::lock::{LockElement, LockFlags};
use wire::rpc::{PacketType, SyntaxId, srvsvc};
use wire::{
    Command, FileId, Flags, Status, TreeId, Utf16, cancel, change_notify, flush, lock, query_info,
    set_info, tree_disconnect,
};

use crate::harness::{Answer, Client, Message, Options, Rig, bind, bytes_of, data, output};

/// Length of the response to a bind in bytes.
const ACK: usize = 68;
/// Length of the response to a second bind in bytes.
const NAK: usize = 21;

/// A client with credits for waiting requests, and its open of a pipe.
fn with_pipe() -> (Rig, Client, FileId) {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "IPC$");
    let mut echo = client.message(
        Command::ECHO,
        bytes_of(|out| wire::echo::Request.encode(out)),
    );
    echo.header.credits = 200;
    client.ask(&mut rig, echo);
    let pipe = client.create(&mut rig, "srvsvc");
    (rig, client, pipe)
}

fn hello() -> Vec<u8> {
    bind(&[(srvsvc::INTERFACE, SyntaxId::NDR32)])
}

fn hear(client: &mut Client, rig: &mut Rig) -> Answer {
    let mut answers = client.hear(rig).expect("an answer");
    assert_eq!(answers.len(), 1);
    answers.remove(0)
}

fn write(client: &mut Client, rig: &mut Rig, pipe: FileId, bytes: &[u8]) {
    let message = client.write_message(pipe, bytes);
    assert_eq!(client.ask(rig, message).status(), Status::SUCCESS);
}

fn read(client: &mut Client, rig: &mut Rig, pipe: FileId, length: u32) -> Answer {
    let message = client.read_message(pipe, length);
    client.ask(rig, message)
}

#[test]
fn pipes_are_found_by_the_names_that_clients_write() {
    let (mut rig, mut client, _) = with_pipe();
    for name in ["srvsvc", "\\SrvSvc", "PIPE\\srvsvc", "\\pipe\\wkssvc"] {
        client.create(&mut rig, name);
    }
    for name in ["", "\\", "samr", "netlogon", "srvsvc\\x", "x\\srvsvc"] {
        let message = client.create_message(name);
        let status = client.ask(&mut rig, message).status();
        assert_eq!(status, Status::OBJECT_NAME_NOT_FOUND, "{name}");
    }
}

#[test]
fn reads_return_the_responses_to_writes() {
    let (mut rig, mut client, pipe) = with_pipe();
    write(&mut client, &mut rig, pipe, &hello());
    assert_eq!(data(&read(&mut client, &mut rig, pipe, 4096)).len(), ACK);

    // Two messages in short reads: no read returns bytes of both.
    let pipe = client.create(&mut rig, "srvsvc");
    write(&mut client, &mut rig, pipe, &[hello(), hello()].concat());
    let mut bite = || data(&read(&mut client, &mut rig, pipe, 50));
    let bites = [bite(), bite(), bite()];
    assert_eq!(bites.each_ref().map(Vec::len), [50, ACK - 50, NAK]);
    assert_eq!(bites[2][2], PacketType::BIND_NAK.0);
}

#[test]
fn a_fragment_may_be_written_in_pieces() {
    let (mut rig, mut client, pipe) = with_pipe();
    for byte in hello() {
        write(&mut client, &mut rig, pipe, &[byte]);
    }
    assert_eq!(data(&read(&mut client, &mut rig, pipe, 4096)).len(), ACK);
}

#[test]
fn a_transaction_with_a_short_buffer_leaves_the_rest_for_reads() {
    let (mut rig, mut client, pipe) = with_pipe();
    let message = client.control_message(CtlCode::PIPE_TRANSCEIVE, pipe, &hello(), 20);
    let answer = client.ask(&mut rig, message);
    assert_eq!(answer.status(), Status::BUFFER_OVERFLOW);
    let first = output(&answer);
    assert_eq!(first.len(), 20);
    let rest = data(&read(&mut client, &mut rig, pipe, 4096));
    assert_eq!(first.len() + rest.len(), ACK);
}

#[test]
fn a_read_waits_for_a_write() {
    let (mut rig, mut client, pipe) = with_pipe();
    for _ in 0..2 {
        let message = client.read_message(pipe, 4096);
        client.say(&mut rig, vec![message]);
    }
    assert!(client.hear(&mut rig).is_none());
    rig.pass(Duration::from_secs(1));
    for _ in 0..2 {
        assert_eq!(hear(&mut client, &mut rig).status(), Status::PENDING);
    }
    // Each gets a separate message, even if one client writes both.
    let message = client.write_message(pipe, &[hello(), hello()].concat());
    client.say(&mut rig, vec![message]);
    assert_eq!(hear(&mut client, &mut rig).status(), Status::SUCCESS);
    assert_eq!(data(&hear(&mut client, &mut rig)).len(), ACK);
    assert_eq!(data(&hear(&mut client, &mut rig)).len(), NAK);
}

#[test]
fn a_canceled_read_consumes_nothing() {
    let (mut rig, mut client, pipe) = with_pipe();
    let message = client.read_message(pipe, 4096);
    let waiting = message.header.message_id;
    client.say(&mut rig, vec![message]);
    let bytes = bytes_of(|out| cancel::Request.encode(out));
    let mut message = client.message(Command::CANCEL, bytes);
    message.header.message_id = waiting;
    client.say(&mut rig, vec![message]);
    assert_eq!(hear(&mut client, &mut rig).status(), Status::CANCELLED);
    write(&mut client, &mut rig, pipe, &hello());
    assert_eq!(data(&read(&mut client, &mut rig, pipe, 4096)).len(), ACK);
}

#[test]
fn a_read_ends_when_the_pipe_closes() {
    let (mut rig, mut client, pipe) = with_pipe();
    // A read of no bytes waits only for the end of the pipe.
    for length in [0, 10] {
        let message = client.read_message(pipe, length);
        client.say(&mut rig, vec![message]);
    }
    write(&mut client, &mut rig, pipe, b"");
    let message = client.close_message(pipe);
    client.say(&mut rig, vec![message]);
    assert_eq!(hear(&mut client, &mut rig).status(), Status::SUCCESS);
    for _ in 0..2 {
        assert_eq!(hear(&mut client, &mut rig).status(), Status::PIPE_BROKEN);
    }
    let gone = read(&mut client, &mut rig, pipe, 10);
    assert_eq!(gone.status(), Status::FILE_CLOSED);
}

#[test]
fn pipes_end_with_their_tree() {
    let (mut rig, mut client, pipe) = with_pipe();
    let message = client.read_message(pipe, 10);
    client.say(&mut rig, vec![message]);
    let bytes = bytes_of(|out| tree_disconnect::Request.encode(out));
    let message = client.message(Command::TREE_DISCONNECT, bytes);
    client.say(&mut rig, vec![message]);
    let mut statuses: Vec<_> = (0..2)
        .map(|_| hear(&mut client, &mut rig).status())
        .collect();
    statuses.sort();
    assert_eq!(statuses, [Status::SUCCESS, Status::CANCELLED]);
    client.enter(&mut rig, "IPC$");
    let gone = read(&mut client, &mut rig, pipe, 10);
    assert_eq!(gone.status(), Status::FILE_CLOSED);
}

#[test]
fn the_end_of_a_connection_closes_its_pipes() {
    let (mut rig, mut client, pipe) = with_pipe();
    let message = client.read_message(pipe, 10);
    client.say(&mut rig, vec![message]);
    rig.cut(client.id);
    assert!(rig.connection(client.id).is_idle());
}

#[test]
fn another_tree_does_not_see_the_pipe() {
    let (mut rig, mut client, pipe) = with_pipe();
    let other = client.enter(&mut rig, "IPC$");
    assert_eq!(other.status(), Status::SUCCESS);
    let gone = read(&mut client, &mut rig, pipe, 10);
    assert_eq!(gone.status(), Status::FILE_CLOSED);
    let files = client.enter(&mut rig, "files");
    assert_eq!(files.status(), Status::SUCCESS);
    let gone = read(&mut client, &mut rig, pipe, 10);
    assert_eq!(gone.status(), Status::FILE_CLOSED);
}

#[test]
fn invalid_data_ends_the_pipe_but_not_the_connection() {
    let (mut rig, mut client, pipe) = with_pipe();
    write(&mut client, &mut rig, pipe, &hello());
    write(&mut client, &mut rig, pipe, b"What is the meaning of this?");
    assert_eq!(data(&read(&mut client, &mut rig, pipe, 4096)).len(), ACK);
    let ended = read(&mut client, &mut rig, pipe, 4096);
    assert_eq!(ended.status(), Status::PIPE_DISCONNECTED);
    let message = client.write_message(pipe, &hello());
    let ended = client.ask(&mut rig, message);
    assert_eq!(ended.status(), Status::PIPE_DISCONNECTED);
    let pipe = client.create(&mut rig, "srvsvc");
    assert_eq!(client.exchange(&mut rig, pipe, &hello()).len(), ACK);
}

#[test]
fn a_client_that_does_not_read_cannot_write_without_limit() {
    let (mut rig, mut client, pipe) = with_pipe();
    let many = hello().repeat(400);
    let mut written = 0;
    let status = loop {
        let message = client.write_message(pipe, &many);
        match client.ask(&mut rig, message).status() {
            Status::SUCCESS => written += 1,
            status => break status,
        }
        assert!(written < 20, "the server takes data without limit");
    };
    assert_eq!(status, Status::PIPE_BUSY);
    while written > 0 {
        read(&mut client, &mut rig, pipe, 4096);
        let message = client.control_message(CtlCode::PIPE_PEEK, pipe, &[], 16);
        let left = output(&client.ask(&mut rig, message));
        written = PipePeek::decode(&left)
            .expect("an answer")
            .number_of_messages;
    }
    write(&mut client, &mut rig, pipe, &hello());
    let long = vec![0; (32 << 10) + 1];
    let message = client.write_message(pipe, &long);
    let status = client.ask(&mut rig, message).status();
    assert_eq!(status, Status::INVALID_PARAMETER);
}

#[test]
fn a_session_has_no_more_pipes_than_its_limit() {
    let (mut rig, mut client, _) = with_pipe();
    let mut count = 1;
    let status = loop {
        let message = client.create_message("srvsvc");
        match client.ask(&mut rig, message).status() {
            Status::SUCCESS => count += 1,
            status => break status,
        }
    };
    assert_eq!((count, status), (64, Status::INSUFFICIENT_RESOURCES));
}

#[test]
fn a_compound_opens_writes_and_reads() {
    let (mut rig, mut client, _) = with_pipe();
    let related = |mut message: Message| {
        message.header.flags |= Flags::RELATED_OPERATIONS;
        message
    };
    let create = client.create_message("srvsvc");
    let write = related(client.write_message(FileId::RELATED, &hello()));
    let read = related(client.read_message(FileId::RELATED, 4096));
    let close = related(client.close_message(FileId::RELATED));
    let answers = client.ask_all(&mut rig, vec![create, write, read, close]);
    let statuses: Vec<_> = answers.iter().map(Answer::status).collect();
    assert_eq!(statuses, [Status::SUCCESS; 4]);
    assert_eq!(data(&answers[2]).len(), ACK);

    // Only the last member of a compound waits.
    let create = client.create_message("srvsvc");
    let read = related(client.read_message(FileId::RELATED, 4096));
    let close = related(client.close_message(FileId::RELATED));
    let answers = client.ask_all(&mut rig, vec![create, read, close]);
    let statuses: Vec<_> = answers.iter().map(Answer::status).collect();
    let expected = [Status::SUCCESS, Status::INTERNAL_ERROR, Status::SUCCESS];
    assert_eq!(statuses, expected);
}

#[test]
fn functions_of_pipes_are_served() {
    let (mut rig, mut client, pipe) = with_pipe();
    for (name, expected) in [
        ("srvsvc", Status::SUCCESS),
        ("samr", Status::OBJECT_NAME_NOT_FOUND),
    ] {
        let name = wire::text::utf16(name);
        let input = PipeWait {
            timeout: None,
            name: Utf16(&name),
        };
        let input = input.encode();
        let all = FileId::RELATED;
        let message = client.control_message(CtlCode::PIPE_WAIT, all, &input, 0);
        assert_eq!(client.ask(&mut rig, message).status(), expected);
        let message = client.control_message(CtlCode::PIPE_WAIT, pipe, &input, 0);
        let status = client.ask(&mut rig, message).status();
        assert_eq!(status, Status::INVALID_PARAMETER);
    }
    let message = client.write_message(pipe, &hello());
    client.ask(&mut rig, message);
    let message = client.control_message(CtlCode::PIPE_PEEK, pipe, &[], 20);
    let seen = output(&client.ask(&mut rig, message));
    let peek = PipePeek::decode(&seen).expect("an answer");
    assert_eq!((peek.number_of_messages, peek.message_length), (1, 68));
    assert_eq!(peek.data.len(), 4);
    let message = client.control_message(CtlCode::SET_SPARSE, pipe, &[], 0);
    let status = client.ask(&mut rig, message).status();
    assert_eq!(status, Status::FS_DRIVER_REQUIRED);
}

fn query(client: &mut Client, rig: &mut Rig, pipe: FileId, class: FileInfoClass) -> Answer {
    let request = query_info::Request {
        info_type: InfoType::FILE,
        file_info_class: class.0,
        output_buffer_length: 1024,
        additional_information: 0,
        flags: query_info::QueryInfoFlags::NONE,
        file_id: pipe,
        input: &[],
    };
    client.ask_body(
        rig,
        Command::QUERY_INFO,
        bytes_of(|out| request.encode(out)),
    )
}

#[test]
fn a_pipe_reports_its_properties() {
    let (mut rig, mut client, pipe) = with_pipe();
    write(&mut client, &mut rig, pipe, &hello());
    let answer = query(&mut client, &mut rig, pipe, FileInfoClass::PIPE_LOCAL);
    let response = query_info::Response::decode(&answer.message).expect("a response");
    let local = FilePipeLocalInformation::decode(response.output).expect("a structure");
    assert_eq!(local.read_data_available, 68);
    for (class, expected) in [
        (FileInfoClass::STANDARD, Status::SUCCESS),
        (FileInfoClass::PIPE, Status::SUCCESS),
        (FileInfoClass::BASIC, Status::NOT_SUPPORTED),
        (FileInfoClass::ALL, Status::NOT_SUPPORTED),
    ] {
        let status = query(&mut client, &mut rig, pipe, class).status();
        assert_eq!(status, expected, "{class:?}");
    }
    for (class, read_mode, expected) in [
        (FileInfoClass::PIPE, 0, Status::SUCCESS),
        (FileInfoClass::PIPE, 2, Status::INVALID_PARAMETER),
        (FileInfoClass::DISPOSITION, 0, Status::NOT_SUPPORTED),
    ] {
        let mut buffer = Vec::new();
        let completion_mode = 0;
        FilePipeInformation {
            read_mode,
            completion_mode,
        }
        .encode(&mut buffer);
        let request = set_info::Request {
            info_type: InfoType::FILE,
            file_info_class: class.0,
            additional_information: 0,
            file_id: pipe,
            buffer: &buffer,
        };
        let bytes = bytes_of(|out| request.encode(out));
        let answer = client.ask_body(&mut rig, Command::SET_INFO, bytes);
        assert_eq!(answer.status(), expected, "{class:?}");
    }
}

#[test]
fn requests_without_meaning_for_pipes_are_refused() {
    let (mut rig, mut client, pipe) = with_pipe();
    let element = LockElement {
        offset: 0,
        length: 1,
        flags: LockFlags::EXCLUSIVE_LOCK,
    };
    let lock = lock::Request {
        lock_sequence: 0,
        file_id: pipe,
        locks: vec![element],
    };
    let notify = change_notify::Request {
        flags: ChangeNotifyFlags::NONE,
        output_buffer_length: 100,
        file_id: pipe,
        completion_filter: CompletionFilter::SIZE,
    };
    let flush = flush::Request {
        reserved: 0,
        file_id: pipe,
    };
    for (command, bytes, expected) in [
        (
            Command::LOCK,
            bytes_of(|out| lock.encode(out)),
            Status::INVALID_HANDLE,
        ),
        (
            Command::CHANGE_NOTIFY,
            bytes_of(|out| notify.encode(out)),
            Status::INVALID_PARAMETER,
        ),
        (
            Command::FLUSH,
            bytes_of(|out| flush.encode(out)),
            Status::SUCCESS,
        ),
    ] {
        let answer = client.ask_body(&mut rig, command, bytes);
        assert_eq!(answer.status(), expected, "{command:?}");
    }
}

#[test]
fn a_truncated_request_is_refused() {
    let (mut rig, mut client, pipe) = with_pipe();
    let whole = [
        client.create_message("srvsvc"),
        client.write_message(pipe, &hello()),
        client.read_message(pipe, 0),
        client.control_message(CtlCode::PIPE_TRANSCEIVE, pipe, &hello(), 100),
    ];
    let next = client.next_message;
    client.next_message = next - whole.len() as u64;
    let Target::Sync { tree_id, .. } = whole[0].header.target else {
        panic!("requests are not async");
    };
    assert_ne!(tree_id, TreeId(0));
    for message in whole {
        // The last byte of a READ is padding.
        for end in (64..message.bytes.len() - 1).step_by(3) {
            let bytes = message.bytes[..end].to_vec();
            let status = client
                .ask_body(&mut rig, message.header.command, bytes)
                .status();
            assert_eq!(status, Status::INVALID_PARAMETER, "{end}");
        }
    }
}
