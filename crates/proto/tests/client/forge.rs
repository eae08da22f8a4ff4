//! A server that says what a test tells it to.

use proto::client::request::Step;
use proto::client::{Config, Failure, Request, RequestId};
use wire::header::{HEADER_LEN, Target};
use wire::{AsyncId, FileId, Flags, Header, Status, TreeId, create, error_response, read};

use crate::harness::Rig;
use crate::link::{Link, config};

/// A client in a share whose server is put aside: what it asks stays in its outbox.
pub(crate) fn alone() -> (Link, TreeId) {
    let mut rig = Rig::new(|_| {});
    Link::in_share(&mut rig, config())
}

/// The same, of a session that is sealed or signed.
pub(crate) fn alone_with(config: Config) -> (Link, TreeId) {
    let mut rig = Rig::new(|_| {});
    Link::in_share(&mut rig, config)
}

/// Asks one step, and takes what went out.
pub(crate) fn asked(link: &mut Link, tree: TreeId, step: Step) -> (RequestId, Header) {
    let (id, headers) = asked_all(link, tree, vec![step]);
    (id, headers[0])
}

/// Asks a compound, and takes what went out.
pub(crate) fn asked_all(
    link: &mut Link,
    tree: TreeId,
    steps: Vec<Step>,
) -> (RequestId, Vec<Header>) {
    let id = link.submit(Request::new(Some(tree), steps));
    let frame = link.outbox.pop_front().expect("it goes out");
    (id, headers(&frame))
}

/// The headers of a frame.
pub(crate) fn headers(frame: &[u8]) -> Vec<Header> {
    let members = wire::compound::Members::new(frame);
    let headers = members.map(|member| Header::decode(member.expect("a compound")));
    headers.map(|header| header.expect("a header")).collect()
}

/// The header of the answer to a request.
pub(crate) fn header(asked: &Header, status: Status) -> Header {
    Header {
        status,
        credits: asked.credit_charge.max(1),
        flags: Flags::SERVER_TO_REDIR,
        next_command: 0,
        signature: [0; 16],
        ..*asked
    }
}

/// The same, of an answer that takes its time.
pub(crate) fn asynchronous(asked: &Header, status: Status, async_id: u64) -> Header {
    let mut header = header(asked, status);
    header.target = Target::Async(AsyncId(async_id));
    header
}

/// A message.
pub(crate) fn message(header: &Header, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_LEN];
    body(&mut bytes);
    let mut head = Vec::new();
    header.encode(&mut head);
    bytes[..HEADER_LEN].copy_from_slice(&head);
    bytes
}

/// An answer that is an error.
pub(crate) fn error(asked: &Header, status: Status) -> Vec<u8> {
    message(&header(asked, status), plain_error)
}

pub(crate) fn plain_error(bytes: &mut Vec<u8>) {
    error_response::Response::PLAIN.encode(bytes);
}

/// What came of the only step of a request.
pub(crate) fn failure(link: &mut Link, id: RequestId) -> Failure {
    let results = link.answers.remove(&id);
    let mut results = results.unwrap_or_else(|| panic!("no answer, {:?}", link.ended));
    results.remove(0).expect_err("it fails")
}

/// The body of a good answer to a READ.
pub(crate) fn read_answer(data_offset: u8, length: u32, data: &[u8]) -> impl FnOnce(&mut Vec<u8>) {
    move |bytes: &mut Vec<u8>| {
        let response = read::Response {
            data_offset,
            data_remaining: 0,
            flags: read::ResponseFlags::NONE,
        };
        response.encode_head(length, bytes);
        bytes.extend_from_slice(data);
    }
}

/// A good answer to a CREATE.
pub(crate) fn created(contexts: Vec<wire::create_context::RawContext<'_>>) -> create::Response<'_> {
    create::Response {
        oplock_level: wire::access::OplockLevel::NONE,
        flags: create::ResponseFlags::NONE,
        create_action: create::CreateAction::OPENED,
        creation_time: wire::FileTime(0),
        last_access_time: wire::FileTime(0),
        last_write_time: wire::FileTime(0),
        change_time: wire::FileTime(0),
        allocation_size: 0,
        end_of_file: 0,
        file_attributes: wire::access::FileAttributes::NORMAL,
        file_id: FileId {
            persistent: 1,
            volatile: 2,
        },
        contexts,
    }
}
