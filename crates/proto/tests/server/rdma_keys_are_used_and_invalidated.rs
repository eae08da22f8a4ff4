//! READ and WRITE with data by RDMA: the memory, the time of the transfer, and errors that end the
//! connection.

use proto::carrier::{Carrier, RdmaLimits};
use proto::violation::Violation;
use wire::dialect::Dialect;
use wire::read::{self, Channel, DATA_OFFSET};
use wire::smbd::BufferDescriptorV1;
use wire::write::{self, WriteFlags};
use wire::{Command, FileId, Status};

use crate::harness::{Answer, Client, Message, Options, RDMA, Rig, bytes_of};

fn info(pieces: &[BufferDescriptorV1]) -> Vec<u8> {
    let mut info = Vec::new();
    pieces.iter().for_each(|piece| piece.encode(&mut info));
    info
}

fn read(
    client: &mut Client,
    file_id: FileId,
    length: u32,
    channel: Channel,
    pieces: &[BufferDescriptorV1],
) -> Message {
    let request = read::Request {
        padding: DATA_OFFSET,
        flags: read::ReadFlags::NONE,
        length,
        offset: 0,
        file_id,
        minimum_count: 0,
        channel,
        remaining_bytes: 0,
        channel_info: &info(pieces),
    };
    client.message(Command::READ, bytes_of(|bytes| request.encode(bytes)))
}

fn write(
    client: &mut Client,
    file_id: FileId,
    length: u32,
    channel: Channel,
    pieces: &[BufferDescriptorV1],
) -> Message {
    let request = write::Request {
        offset: 0,
        file_id,
        channel,
        remaining_bytes: length,
        channel_info: &info(pieces),
        flags: WriteFlags::NONE,
        data_offset: 0,
        data: &[],
    };
    client.message(Command::WRITE, bytes_of(|bytes| request.encode(bytes)))
}

fn in_share(rig: &mut Rig, options: Options) -> Client {
    over(rig, RDMA, options)
}

fn over(rig: &mut Rig, carrier: Carrier, options: Options) -> Client {
    let id = rig.accept_over(carrier);
    let mut client = Client::on(id, options);
    assert_eq!(client.negotiate(rig).status(), Status::SUCCESS);
    assert_eq!(client.log_in(rig, "alice").status(), Status::SUCCESS);
    client.signs = true;
    assert_eq!(client.enter(rig, "files").status(), Status::SUCCESS);
    client.signs = false;
    client
}

/// A client with an open of a file that holds `data`.
fn with_file(rig: &mut Rig, options: Options, data: &[u8]) -> (Client, FileId) {
    let mut client = in_share(rig, options);
    let file = client.create(rig, "a");
    let mut message = client.write_message(file, data);
    message.header.credits = 8;
    assert_eq!(client.ask(rig, message).status(), Status::SUCCESS);
    (client, file)
}

fn remaining(answer: &Answer) -> (usize, u32) {
    let (response, data) = read::Response::decode(&answer.message).expect("a response");
    (data.len(), response.data_remaining)
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index % 251) as u8).collect()
}

#[test]
fn reads_and_writes_use_client_memory() {
    let mut rig = Rig::new(|_| {});
    let mut client = in_share(&mut rig, Options::default());
    let file = client.create(&mut rig, "a");
    let data = pattern(60_000);
    let pieces: Vec<_> = [0..20_000, 20_000..20_001, 20_001..60_000]
        .map(|range| rig.memory.expose(&data[range]))
        .to_vec();
    let message = write(&mut client, file, 60_000, Channel::RDMA_V1, &pieces);
    let answer = client.ask(&mut rig, message);
    assert_eq!(answer.status(), Status::SUCCESS);
    let count = write::Response::decode(&answer.message).expect("one").count;
    assert_eq!(count, 60_000);

    let room = rig.memory.expose(&vec![0xEE; 65_100]);
    let message = read(&mut client, file, 65_000, Channel::RDMA_V1, &[room]);
    let answer = client.ask(&mut rig, message);
    assert_eq!(answer.status(), Status::SUCCESS);
    assert_eq!(remaining(&answer), (0, 60_000));
    assert_eq!(answer.message.len(), usize::from(DATA_OFFSET));
    let brought = rig.memory.of(room.token).expect("it is exposed");
    assert!(brought[..60_000] == data[..]);
    assert!(brought[60_000..].iter().all(|byte| *byte == 0xEE));
    assert!(rig.invalidated.is_empty(), "no invalidation was requested");
}

#[test]
fn any_response_invalidates_the_first_key() {
    let mut rig = Rig::new(|_| {});
    let (mut client, file) = with_file(&mut rig, Options::default(), b"0123456789");
    let how = Channel::RDMA_V1_INVALIDATE;
    let [first, second] = [0, 1].map(|_| rig.memory.expose(&[0; 5]));
    let message = read(&mut client, file, 10, how, &[first, second]);
    assert_eq!(remaining(&client.ask(&mut rig, message)), (0, 10));
    assert_eq!(rig.invalidated, [first.token]);
    assert_eq!(rig.memory.left_in(first.token), b"01234");
    assert_eq!(rig.memory.of(second.token), Some(&b"56789"[..]));

    let source = rig.memory.expose(b"abc");
    let message = write(&mut client, file, 3, how, &[source]);
    assert_eq!(client.ask(&mut rig, message).status(), Status::SUCCESS);
    let unused = rig.memory.expose(&[0; 10]);
    let nowhere = FileId {
        persistent: 9,
        volatile: 9,
    };
    let message = read(&mut client, nowhere, 10, how, &[unused]);
    assert_eq!(client.ask(&mut rig, message).status(), Status::FILE_CLOSED);
    assert_eq!(rig.invalidated, [first.token, source.token, unused.token]);
}

#[test]
fn a_compound_invalidates_one_key() {
    let mut rig = Rig::new(|_| {});
    let (mut client, file) = with_file(&mut rig, Options::default(), b"0123456789");
    let how = Channel::RDMA_V1_INVALIDATE;
    let [first, second] = [0, 1].map(|_| rig.memory.expose(&[0; 10]));
    let one = read(&mut client, file, 10, how, &[first]);
    let other = read(&mut client, file, 10, how, &[second]);
    client.say(&mut rig, vec![one, other]);
    assert!(rig.read(client.id).is_some());
    assert_eq!(rig.invalidated, [first.token]);
    assert_eq!(rig.memory.of(second.token), Some(&b"0123456789"[..]));
}

#[test]
fn an_interim_response_invalidates_no_key() {
    let mut rig = Rig::new(|_| {});
    let (mut client, file) = with_file(&mut rig, Options::default(), b"0123456789");
    rig.is_slow = true;
    let room = rig.memory.expose(&[0; 10]);
    let how = Channel::RDMA_V1_INVALIDATE;
    let message = read(&mut client, file, 10, how, &[room]);
    client.say(&mut rig, vec![message]);
    rig.pass(std::time::Duration::from_secs(1));
    let interim = client.hear(&mut rig).expect("one").remove(0);
    assert_eq!(interim.status(), Status::PENDING);
    assert!(rig.invalidated.is_empty());
    rig.work(0);
    assert_eq!(remaining(&client.hear(&mut rig).expect("one")[0]), (0, 10));
    assert_eq!(rig.invalidated, [room.token]);
}

#[test]
fn a_memory_error_ends_the_connection_without_a_response() {
    for is_read in [true, false] {
        let mut rig = Rig::new(|_| {});
        let (mut client, file) = with_file(&mut rig, Options::default(), b"0123456789");
        let forged = BufferDescriptorV1 {
            offset: 0,
            token: 99,
            length: 10,
        };
        let message = match is_read {
            true => read(&mut client, file, 10, Channel::RDMA_V1, &[forged]),
            false => write(&mut client, file, 10, Channel::RDMA_V1, &[forged]),
        };
        client.say(&mut rig, vec![message]);
        assert!(rig.read(client.id).is_none());
        let violation = rig.violations.get(&client.id);
        assert_eq!(violation, Some(&Violation::RemoteMemory));
    }
}

/// \[MS-SMB2\] 3.2.4.6, 3.2.4.7
#[test]
fn signed_and_encrypted_requests_do_not_use_rdma() {
    let mut rig = Rig::new(|_| {});
    let (mut client, file) = with_file(&mut rig, Options::default(), b"0123456789");
    client.encrypts = true;
    let room = rig.memory.expose(b"nothing...");
    for message in [
        read(&mut client, file, 10, Channel::RDMA_V1, &[room]),
        write(&mut client, file, 10, Channel::RDMA_V1, &[room]),
    ] {
        let answer = client.ask(&mut rig, message);
        assert_eq!(answer.status(), Status::INVALID_PARAMETER);
    }
    let message = client.read_message(file, 10);
    assert_eq!(client.ask(&mut rig, message).status(), Status::SUCCESS);
    assert_eq!(rig.memory.of(room.token), Some(&b"nothing..."[..]));

    let mut rig = Rig::new(|config| config.signing_required = true);
    let mut client = in_share(&mut rig, Options::default());
    client.signs = true;
    let file = client.create(&mut rig, "a");
    let message = client.write_message(file, b"0123456789");
    assert_eq!(client.ask(&mut rig, message).status(), Status::SUCCESS);
    let message = read(&mut client, file, 10, Channel::RDMA_V1, &[room]);
    let answer = client.ask(&mut rig, message);
    assert_eq!(answer.status(), Status::INVALID_PARAMETER);
}

#[test]
fn other_transports_refuse_rdma_channels() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "files");
    let file = client.create(&mut rig, "a");
    let room = rig.memory.expose(&[0; 10]);
    for message in [
        read(&mut client, file, 10, Channel::RDMA_V1, &[room]),
        write(&mut client, file, 10, Channel::RDMA_V1, &[room]),
    ] {
        let answer = client.ask(&mut rig, message);
        assert_eq!(answer.status(), Status::INVALID_PARAMETER);
    }
}

#[test]
fn before_3_0_the_fields_mean_nothing() {
    let mut rig = Rig::new(|_| {});
    let options = Options::only(Dialect::SMB_2_1);
    let (mut client, file) = with_file(&mut rig, options, b"0123456789");
    let room = rig.memory.expose(&[7; 10]);
    let message = read(&mut client, file, 10, Channel::RDMA_V1, &[room]);
    assert_eq!(remaining(&client.ask(&mut rig, message)), (10, 0));
    assert_eq!(rig.memory.of(room.token), Some(&[7; 10][..]));
}

/// NEGOTIATE reports the limits of the transport as far as its fields can.
#[test]
fn limits_follow_the_transport() {
    let mut rig = Rig::new(|_| {});
    let id = rig.accept_over(RDMA);
    let mut client = Client::on(id, Options::default());
    let answer = client.negotiate(&mut rig);
    let response = wire::negotiate::Response::decode(&answer.message).expect("one");
    let limits = RDMA.rdma.expect("it has");
    assert_eq!(response.max_read_size, limits.max_read_write);
    assert_eq!(response.max_write_size, limits.max_read_write);
    assert_eq!(response.max_transact_size, limits.max_send - 4096);
    let little = Carrier::smb_direct(RdmaLimits {
        max_send: 32 << 10,
        ..limits
    });
    let mut client = over(&mut rig, little, Options::default());
    let file = client.create(&mut rig, "a");
    let message = client.write_message(file, &[1; 65_536]);
    assert_eq!(client.ask(&mut rig, message).status(), Status::SUCCESS);
    for (length, expected) in [
        ((32 << 10) - 4096, Status::SUCCESS),
        ((32 << 10) - 4095, Status::INVALID_PARAMETER),
    ] {
        let message = client.read_message(file, length);
        assert_eq!(client.ask(&mut rig, message).status(), expected);
    }
    let room = rig.memory.expose(&[0; 65_536]);
    let message = read(&mut client, file, 65_536, Channel::RDMA_V1, &[room]);
    assert_eq!(remaining(&client.ask(&mut rig, message)), (0, 65_536));
}
