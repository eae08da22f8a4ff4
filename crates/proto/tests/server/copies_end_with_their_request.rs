//! A server-side copy continues while its request lives, and only a session with both files open
//! can start it. \[MS-SMB2\] 3.3.5.15.6

use std::time::Duration;

use wire::access::OplockLevel;
use wire::fsctl::{Chunk, CopyChunkRequest, CopyChunkResponse, CtlCode, ResumeKeyResponse};
use wire::ioctl::{IoctlFlags, Request, Response};
use wire::{Command, FileId, MessageId, Status, logoff, tree_disconnect};

use crate::harness::{Answer, Ask, Break, Client, Message, Rig, bytes_of, data};

/// The data to copy, in three chunks.
const BYTES: &[u8; 30] = b"0123456789abcdefghijABCDEFGHIJ";
/// Length of a chunk in bytes.
const CHUNK: u32 = 10;
/// More than half of the time after which a request gets an interim response.
const A_WHILE: Duration = Duration::from_millis(300);

type Key = [u8; 24];

fn ioctl(client: &mut Client, file_id: FileId, ctl_code: CtlCode, input: &[u8]) -> Message {
    let request = Request {
        ctl_code,
        file_id,
        max_input_response: 0,
        max_output_response: 4096,
        flags: IoctlFlags::IS_FSCTL,
        input,
        output: &[],
    };
    let bytes = bytes_of(|bytes| request.encode(bytes));
    client.message(Command::IOCTL, bytes)
}

/// The resume key of a file with data, and an open of the target file.
fn files(rig: &mut Rig, client: &mut Client) -> (Key, FileId) {
    let source = client.create(rig, "source");
    let write = client.write_message(source, BYTES);
    assert_eq!(client.ask(rig, write).status(), Status::SUCCESS);
    let ask = ioctl(client, source, CtlCode::SRV_REQUEST_RESUME_KEY, &[]);
    let answer = client.ask(rig, ask);
    let output = Response::decode(&answer.message).unwrap().output;
    let key = ResumeKeyResponse::decode(output).unwrap().resume_key;
    (key, client.create(rig, "target"))
}

fn copy(client: &mut Client, (source_key, target): (Key, FileId)) -> Message {
    let chunk = |number| Chunk {
        source_offset: number * u64::from(CHUNK),
        target_offset: number * u64::from(CHUNK),
        length: CHUNK,
    };
    let request = CopyChunkRequest {
        source_key,
        chunks: (0..3).map(chunk).collect(),
    };
    ioctl(client, target, CtlCode::SRV_COPYCHUNK, &request.encode())
}

/// Starts a copy and holds its first chunk back.
fn started() -> (Rig, Client, FileId, MessageId) {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::with_credits(&mut rig);
    let files = files(&mut rig, &mut client);
    rig.is_holding = true;
    let copy = copy(&mut client, files);
    let id = copy.header.message_id;
    client.say(&mut rig, vec![copy]);
    assert_eq!(rig.held.len(), 1);
    (rig, client, files.1, id)
}

/// Status, chunks and bytes of a response.
fn counts(answer: &Answer) -> (Status, u32, u32) {
    let output = Response::decode(&answer.message).unwrap().output;
    let counts = CopyChunkResponse::decode(output).unwrap();
    assert_eq!(counts.chunk_bytes_written, 0);
    (
        answer.status(),
        counts.chunks_written,
        counts.total_bytes_written,
    )
}

#[test]
fn an_undisturbed_copy_is_complete() {
    let (mut rig, mut client, target, _) = started();
    rig.release();
    let answer = client.hear_answer(&mut rig);
    assert_eq!(counts(&answer), (Status::SUCCESS, 3, 30));
    let read = client.read_message(target, 100);
    assert_eq!(data(&client.ask(&mut rig, read)), BYTES);
}

#[test]
fn a_cancel_ends_a_copy_after_the_current_chunk() {
    let (mut rig, mut client, _, id) = started();
    client.cancel(&mut rig, id, None);
    assert!(client.hear(&mut rig).is_none());
    rig.release();
    let answer = client.hear_answer(&mut rig);
    assert_eq!(answer.header.message_id, id);
    assert_eq!(counts(&answer), (Status::CANCELLED, 1, 10));
    assert_eq!(rig.disk.copies, 1);
}

#[test]
fn the_end_of_the_tree_session_or_connection_ends_a_copy() {
    for how in 0..3 {
        let (mut rig, mut client, ..) = started();
        match how {
            0 => {
                let bytes = bytes_of(|bytes| tree_disconnect::Request.encode(bytes));
                let message = client.message(Command::TREE_DISCONNECT, bytes);
                client.say(&mut rig, vec![message]);
            }
            1 => {
                let bytes = bytes_of(|bytes| logoff::Request.encode(bytes));
                let message = client.message(Command::LOGOFF, bytes);
                client.say(&mut rig, vec![message]);
            }
            _ => rig.cut(client.id),
        }
        rig.release();
        assert_eq!(rig.disk.copies, 1);
        assert!(rig.disk.opens.is_empty());
        if how == 2 {
            assert!(rig.connection(client.id).is_idle());
        }
    }
}

#[test]
fn the_interim_response_counts_from_the_first_chunk() {
    let (mut rig, mut client, _, id) = started();
    rig.pass(A_WHILE);
    rig.release_one();
    assert!(client.hear(&mut rig).is_none());
    rig.pass(A_WHILE);
    let interim = client.hear_answer(&mut rig);
    assert_eq!(interim.status(), Status::PENDING);
    assert_eq!(interim.header.message_id, id);
    rig.release_one();
    rig.pass(2 * A_WHILE);
    assert!(client.hear(&mut rig).is_none());
    rig.release();
    let answer = client.hear_answer(&mut rig);
    assert_eq!(counts(&answer), (Status::SUCCESS, 3, 30));
}

#[test]
fn a_resume_key_is_invalid_in_another_session() {
    let mut rig = Rig::new(|_| {});
    let mut one = Client::with_credits(&mut rig);
    let mut other = Client::with_credits(&mut rig);
    let (key, target) = files(&mut rig, &mut one);
    let mine = other.create(&mut rig, "mine");
    let stolen = copy(&mut other, (key, mine));
    let answer = other.ask(&mut rig, stolen);
    let refused = (Status::OBJECT_NAME_NOT_FOUND, 0, 0);
    assert_eq!(counts(&answer), refused);
    assert_eq!(rig.disk.copies, 0);
    // The target file of another session is refused as well.
    let foreign = copy(&mut other, (key, target));
    let answer = other.ask(&mut rig, foreign);
    assert_eq!(answer.status(), Status::FILE_CLOSED);
}

#[test]
fn a_copy_breaks_oplocks_on_the_target() {
    let mut rig = Rig::new(|_| {});
    let mut one = Client::with_credits(&mut rig);
    let mut other = Client::with_credits(&mut rig);
    let files = files(&mut rig, &mut one);
    let file_id = other.open_other(&mut rig, "target", Ask::level(OplockLevel::II));
    let copy = copy(&mut one, files);
    let answer = one.ask(&mut rig, copy);
    assert_eq!(counts(&answer), (Status::SUCCESS, 3, 30));
    let level = OplockLevel::NONE;
    assert_eq!(other.hear_break(&mut rig), Break { file_id, level });
    assert!(other.hear(&mut rig).is_none());
}
