//! READ and WRITE over SMB Direct: which go by RDMA, when memory is named, and when the server may
//! use it no more.

use proto::carrier::{Carrier, RdmaLimits};
use proto::client::config::Protection;
use proto::client::request::{FileRef, ReadData, Reply, Step};
use proto::client::{Config, Failure, Fate, Request, Role, Violation};
use wire::dialect::Dialect;
use wire::header::HEADER_LEN;
use wire::read::{self, Channel, ResponseFlags};
use wire::{FileId, Header, Status, TreeId, write};

use crate::forge::{failure, header, headers, message, plain_error};
use crate::harness::{RDMA, Rig};
use crate::link::{Link, config};

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index % 251) as u8).collect()
}

fn in_share(rig: &mut Rig, carrier: Carrier, config: Config) -> (Link, TreeId, FileId) {
    let mut link = Link::over(rig, carrier, config, Role::First);
    link.run(rig);
    let tree = link.enter(rig, "files");
    let file = link.open(rig, tree, "a");
    (link, tree, file)
}

#[test]
fn every_dialect_of_3_moves_data_through_memory() {
    for dialect in [Dialect::SMB_3_0, Dialect::SMB_3_0_2, Dialect::SMB_3_1_1] {
        let mut rig = Rig::new(|_| {});
        let mut config = config();
        config.dialects.retain(|offered| *offered <= dialect);
        let (mut link, tree, file) = in_share(&mut rig, RDMA, config);
        let data = pattern(300_000);
        let written = link.write(&mut rig, tree, file, 0, &data);
        assert!(
            matches!(written, Ok(Reply::Written(300_000))),
            "{written:?}"
        );
        let brought = link
            .read(&mut rig, tree, file, 0, 400_000)
            .expect("it reads");
        assert!(brought == data, "{dialect:?}");
        // Who could have its key taken back has that.
        let is_revoked = dialect > Dialect::SMB_3_0;
        let revoked: Vec<bool> = link.withdrawn.iter().map(|(_, it)| *it).collect();
        assert_eq!(revoked, [is_revoked; 2], "{dialect:?}");
        assert_eq!(link.ended, None);
    }
}

/// What goes out for a transfer: the channel, and whether there are data in the message.
fn sent(link: &mut Link, rig: &mut Rig, tree: TreeId, step: Step) -> (Channel, bool) {
    let id = link.next_id();
    if let Step::Write { length, .. } = &step {
        link.sources.insert(id, pattern(*length as usize));
    }
    let mut request = Request::new(Some(tree), vec![step]);
    request.timeout = Some(None);
    link.call(|client, now, effects| client.request(now, id, request, effects));
    link.expose_all(rig);
    let frame = link.outbox.pop_front().expect("it goes out");
    match read::Request::decode(&frame) {
        Ok(request) if Header::decode(&frame).expect("one").command == wire::Command::READ => {
            (request.channel, false)
        }
        _ => {
            let request = write::Request::decode(&frame).expect("a WRITE");
            let is_inline = !request.data.is_empty();
            assert_eq!(is_inline, request.data_offset != 0);
            (request.channel, is_inline)
        }
    }
}

fn read_step(file: FileId, length: u32) -> Step {
    Step::Read {
        file: FileRef::Id(file),
        offset: 0,
        length,
        minimum: 0,
    }
}

fn write_step(file: FileId, length: u32) -> Step {
    Step::Write {
        file: FileRef::Id(file),
        offset: 0,
        length,
        through: false,
    }
}

#[test]
fn what_is_short_goes_in_messages() {
    let mut rig = Rig::new(|_| {});
    let (mut link, tree, file) = in_share(&mut rig, RDMA, config());
    let (inline, remote) = (Channel::NONE, Channel::RDMA_V1_INVALIDATE);
    for (length, channel) in [
        (1, inline),
        (4095, inline),
        (4096, remote),
        (65_536, remote),
    ] {
        let read = sent(&mut link, &mut rig, tree, read_step(file, length));
        assert_eq!(read, (channel, false), "{length}");
        let write = sent(&mut link, &mut rig, tree, write_step(file, length));
        assert_eq!(write, (channel, channel == inline), "{length}");
    }
}

/// \[MS-SMB2\] 3.2.4.6, 3.2.4.7
#[test]
fn what_is_protected_goes_in_messages() {
    for protection in [Protection::Sign, Protection::Encrypt] {
        let mut rig = Rig::new(|_| {});
        let config = Config {
            protection,
            ..config()
        };
        let (mut link, tree, file) = in_share(&mut rig, RDMA, config);
        let data = pattern(60_000);
        let written = link.write(&mut rig, tree, file, 0, &data);
        assert!(matches!(written, Ok(Reply::Written(60_000))), "{written:?}");
        let brought = link
            .read(&mut rig, tree, file, 0, 60_000)
            .expect("it reads");
        assert!(brought == data);
        assert!(link.withdrawn.is_empty() && link.exposing.is_empty());
        let session = link.session.clone().expect("it is there");
        let limits = RDMA.rdma.expect("it has");
        assert_eq!(session.max_read(false), limits.max_receive - 4096);
        assert_eq!(session.max_write(false), limits.max_send - 4096);
    }
}

#[test]
fn a_share_that_seals_goes_in_messages() {
    let mut rig = Rig::new(|_| {});
    let (mut link, tree, file) = in_share(&mut rig, RDMA, config());
    let mut request = Request::new(Some(tree), vec![read_step(file, 60_000)]);
    request.encrypt = true;
    let id = link.submit(request);
    assert!(link.exposing.is_empty());
    link.run(&mut rig);
    assert!(link.answers.contains_key(&id));
    let session = link.session.clone().expect("it is there");
    assert!(session.max_read(true) < session.max_read(false));
    let mut request = Request::new(Some(tree), vec![read_step(file, 200_000)]);
    request.encrypt = true;
    let id = link.submit(request);
    assert!(matches!(failure(&mut link, id), Failure::Unsendable(_)));
}

#[test]
fn without_memory_the_data_go_in_messages_or_not_at_all() {
    let mut rig = Rig::new(|_| {});
    let (mut link, tree, file) = in_share(&mut rig, RDMA, config());
    link.has_memory = false;
    let data = pattern(60_000);
    let written = link.write(&mut rig, tree, file, 0, &data);
    assert!(matches!(written, Ok(Reply::Written(60_000))), "{written:?}");
    let brought = link
        .read(&mut rig, tree, file, 0, 60_000)
        .expect("it reads");
    assert!(brought == data);
    let refused = link.read(&mut rig, tree, file, 0, 200_000);
    assert!(
        matches!(refused, Err(Failure::Unsendable(_))),
        "{refused:?}"
    );
    assert!(link.withdrawn.is_empty());
}

#[test]
fn longer_than_what_goes_at_once_is_refused() {
    let mut rig = Rig::new(|_| {});
    let little = Carrier::smb_direct(RdmaLimits {
        max_read_write: 8192,
        ..RDMA.rdma.expect("it has")
    });
    let (mut link, tree, file) = in_share(&mut rig, little, config());
    let remote = Channel::RDMA_V1_INVALIDATE;
    let read = sent(&mut link, &mut rig, tree, read_step(file, 8192));
    assert_eq!(read.0, remote);
    let read = sent(&mut link, &mut rig, tree, read_step(file, 8193));
    assert_eq!(read.0, Channel::NONE);
    let id = link.submit(Request::new(Some(tree), vec![read_step(file, 200_000)]));
    assert!(matches!(failure(&mut link, id), Failure::Unsendable(_)));
}

/// A READ that was sent, of a server that is put aside.
fn flying(length: u32) -> (Link, proto::client::RequestId, Header) {
    let mut rig = Rig::new(|_| {});
    let (mut link, tree, file) = in_share(&mut rig, RDMA, config());
    let id = link.submit(Request::new(Some(tree), vec![read_step(file, length)]));
    link.expose_all(&mut rig);
    let frame = link.outbox.pop_front().expect("it goes out");
    (link, id, headers(&frame)[0])
}

fn answer(asked: &Header, remaining: u32, flags: ResponseFlags, data: &[u8]) -> Vec<u8> {
    message(&header(asked, Status::SUCCESS), |bytes| {
        let response = read::Response {
            data_offset: read::DATA_OFFSET,
            data_remaining: remaining,
            flags,
        };
        response.encode_head(data.len() as u32, bytes);
        bytes.extend_from_slice(data);
    })
}

#[test]
fn an_answer_that_cannot_be_ends_the_connection() {
    let (none, transform) = (ResponseFlags::NONE, ResponseFlags::RDMA_TRANSFORM);
    for (remaining, flags, data) in [
        (5001, none, &[][..]),
        (u32::MAX, none, &[]),
        (1, none, &[7]),
        (5000, transform, &[]),
    ] {
        let (mut link, id, asked) = flying(5000);
        link.hear(answer(&asked, remaining, flags, data));
        let ended = link.ended.clone();
        assert!(
            matches!(ended, Some(Violation::RemoteMemory(_))),
            "{ended:?}"
        );
        assert_eq!(link.withdrawn, [(id, false)]);
        assert!(matches!(&link.lost[..], [(lost, _, Fate::Sent)] if *lost == id));
    }
}

#[test]
fn an_answer_says_how_much_came_and_where_it_is() {
    let none = ResponseFlags::NONE;
    let (mut link, id, asked) = flying(5000);
    link.hear(answer(&asked, 4999, none, &[]));
    assert!(matches!(
        &link.answers[&id][..],
        [Ok(Reply::Read(ReadData::Remote(4999)))]
    ));
    assert_eq!(link.withdrawn, [(id, false)]);
    // A server that will not may answer with the data.
    let (mut link, id, asked) = flying(5000);
    link.hear(answer(&asked, 0, none, &[7; 5000]));
    assert_eq!(link.placed, 0, "the destination is the server's");
    assert!(matches!(
        &link.answers[&id][..],
        [Ok(Reply::Read(ReadData::Inbound(range)))] if range.len() == 5000
    ));
    assert_eq!(link.withdrawn, [(id, false)]);
}

#[test]
fn a_key_is_taken_back_by_the_answer_or_by_us() {
    for (key, is_revoked) in [(1, true), (9, false)] {
        let (mut link, id, asked) = flying(5000);
        link.client.invalidated(key);
        link.hear(message(&header(&asked, Status::END_OF_FILE), plain_error));
        assert_eq!(link.withdrawn, [(id, is_revoked)]);
        assert_eq!(link.ended, None);
    }
}

#[test]
fn memory_is_withdrawn_when_nobody_waits_any_more() {
    // It takes too long.
    let (mut link, id, _) = flying(5000);
    link.now.instant = link.client.next_timeout().expect("it has one");
    link.call(proto::client::Connection::timeout);
    assert_eq!(link.withdrawn, [(id, false)]);
    assert!(matches!(failure(&mut link, id), Failure::TimedOut));
    // The connection is lost.
    let (mut link, id, _) = flying(5000);
    link.call(proto::client::Connection::closed);
    assert_eq!(link.withdrawn, [(id, false)]);
    assert!(matches!(&link.lost[..], [(lost, _, Fate::Sent)] if *lost == id));
}

#[test]
fn who_is_given_up_on_before_its_memory_is_named_gives_it_back() {
    for is_lost in [true, false] {
        let mut rig = Rig::new(|_| {});
        let (mut link, tree, file) = in_share(&mut rig, RDMA, config());
        let id = link.submit(Request::new(Some(tree), vec![read_step(file, 5000)]));
        assert_eq!(link.client.requests_queued(), 1);
        match is_lost {
            true => {
                link.call(proto::client::Connection::closed);
                assert!(matches!(&link.lost[..], [(lost, _, Fate::Unsent)] if *lost == id));
            }
            false => {
                link.call(|client, now, effects| client.cancel(now, id, effects));
                assert!(matches!(failure(&mut link, id), Failure::Cancelled));
            }
        }
        assert_eq!(link.client.requests_queued(), 0);
        assert!(link.withdrawn.is_empty());
        link.answers.clear();
        link.expose_all(&mut rig);
        assert_eq!(link.withdrawn, [(id, false)]);
        assert!(
            link.outbox
                .pop_front()
                .is_none_or(|frame| frame.len() < HEADER_LEN + 100)
        );
    }
}

/// What waits for credits is named when they are there.
#[test]
fn memory_is_named_as_late_as_can_be() {
    let mut rig = Rig::new(|config| config.limits.credits = 2);
    let (mut link, tree, file) = in_share(&mut rig, RDMA, config());
    let data = pattern(65_536);
    let written = link.write(&mut rig, tree, file, 0, &data);
    assert!(matches!(written, Ok(Reply::Written(65_536))), "{written:?}");
    let ids = [0; 6].map(|_| link.submit(Request::new(Some(tree), vec![read_step(file, 65_536)])));
    assert!(link.exposing.len() <= 2, "{}", link.exposing.len());
    link.run(&mut rig);
    for id in ids {
        assert!(matches!(
            &link.answers[&id][..],
            [Ok(Reply::Read(ReadData::Remote(65_536)))]
        ));
        assert!(link.destinations[&id] == data);
    }
    assert_eq!(link.withdrawn.len(), 7);
}
