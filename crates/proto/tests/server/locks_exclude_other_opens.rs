//! Byte-range locks: other opens can neither read nor write a locked range, and no open caches it.
//! \[MS-FSA\] 2.1.4.10

use wire::access::{AccessMask, OplockLevel};
use wire::fscc::{FileInfoClass, InfoType};
use wire::{Command, FileId, Status, read, set_info, write};

use crate::harness::{Ask, Client, EXCLUSIVE_NOW, Message, Rig, SHARED_NOW, UNLOCK, bytes_of};

/// A client with two opens of `f`, which has 100 bytes.
fn with_two_opens() -> (Rig, Client, [FileId; 2]) {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::with_credits(&mut rig);
    let files = [client.create(&mut rig, "f"), client.create(&mut rig, "f")];
    let message = client.write_message(files[0], &[7; 100]);
    assert_eq!(client.ask(&mut rig, message).status(), Status::SUCCESS);
    (rig, client, files)
}

fn read_at(client: &mut Client, file_id: FileId, offset: u64, length: u32) -> Message {
    let request = read::Request {
        padding: 0x50,
        flags: read::ReadFlags::NONE,
        length,
        offset,
        file_id,
        minimum_count: 0,
        channel: read::Channel::NONE,
        remaining_bytes: 0,
        channel_info: &[],
    };
    client.message(Command::READ, bytes_of(|bytes| request.encode(bytes)))
}

fn write_at(client: &mut Client, file_id: FileId, offset: u64, data: &[u8]) -> Message {
    let request = write::Request {
        offset,
        file_id,
        channel: read::Channel::NONE,
        remaining_bytes: 0,
        channel_info: &[],
        flags: write::WriteFlags::NONE,
        data_offset: 112,
        data,
    };
    client.message(Command::WRITE, bytes_of(|bytes| request.encode(bytes)))
}

/// Whether an open may read and write ten bytes.
fn can(client: &mut Client, rig: &mut Rig, file_id: FileId, offset: u64) -> (bool, bool) {
    let messages = [
        read_at(client, file_id, offset, 10),
        write_at(client, file_id, offset, &[8; 10]),
    ];
    let [reads, writes] = messages.map(|message| {
        let status = client.ask(rig, message).status();
        assert!(matches!(
            status,
            Status::SUCCESS | Status::FILE_LOCK_CONFLICT
        ));
        status == Status::SUCCESS
    });
    (reads, writes)
}

/// smbtorture smb2.lock.rw-exclusive and rw-shared
#[test]
fn locks_restrict_reads_and_writes() {
    let (mut rig, mut client, [one, other]) = with_two_opens();
    for (flags, own, others) in [
        (EXCLUSIVE_NOW, (true, true), (false, false)),
        (SHARED_NOW, (true, false), (true, false)),
    ] {
        client.must_lock(&mut rig, one, (20, 20), flags);
        for offset in [11, 20, 39] {
            assert_eq!(can(&mut client, &mut rig, one, offset), own);
            assert_eq!(can(&mut client, &mut rig, other, offset), others);
        }
        for offset in [10, 40] {
            assert_eq!(can(&mut client, &mut rig, other, offset), (true, true));
        }
        client.must_lock(&mut rig, one, (20, 20), UNLOCK);
        assert_eq!(can(&mut client, &mut rig, other, 20), (true, true));
    }
}

/// smbtorture smb2.lock.zerobyteread
#[test]
fn a_range_of_no_bytes_conflicts_with_nothing() {
    let (mut rig, mut client, [one, other]) = with_two_opens();
    client.must_lock(&mut rig, one, (0, 10), EXCLUSIVE_NOW);
    let messages = [
        read_at(&mut client, other, 5, 0),
        write_at(&mut client, other, 5, &[]),
    ];
    for message in messages {
        assert_eq!(client.ask(&mut rig, message).status(), Status::SUCCESS);
    }
}

#[test]
fn an_append_respects_a_lock_at_the_end() {
    let (mut rig, mut client, [one, _]) = with_two_opens();
    let ask = Ask {
        access: AccessMask::FILE_APPEND_DATA,
        ..Ask::level(OplockLevel::NONE)
    };
    let appender = client.open_other(&mut rig, "f", ask);
    let append = |client: &mut Client, rig: &mut Rig| {
        let message = write_at(client, appender, u64::MAX, b"more");
        client.ask(rig, message).status()
    };
    client.must_lock(&mut rig, one, (0, 100), EXCLUSIVE_NOW);
    assert_eq!(append(&mut client, &mut rig), Status::SUCCESS);
    client.must_lock(&mut rig, one, (107, 1), EXCLUSIVE_NOW);
    assert_eq!(append(&mut client, &mut rig), Status::FILE_LOCK_CONFLICT);
    client.must_lock(&mut rig, one, (107, 1), UNLOCK);
    assert_eq!(append(&mut client, &mut rig), Status::SUCCESS);
    let message = read_at(&mut client, one, 100, 100);
    let answer = client.ask(&mut rig, message);
    assert_eq!(crate::harness::data(&answer), b"moremore");
}

/// smbtorture smb2.lock.truncate and smb2.create.brlocked: as in Windows and Samba, locks do not
/// prevent truncation.
#[test]
fn a_locked_file_can_be_truncated() {
    let (mut rig, mut client, [one, other]) = with_two_opens();
    client.must_lock(&mut rig, one, (0, 10), EXCLUSIVE_NOW);
    client.open_other(&mut rig, "f", Ask::overwrite());
    let request = set_info::Request {
        info_type: InfoType::FILE,
        file_info_class: FileInfoClass::END_OF_FILE.0,
        additional_information: 0,
        file_id: other,
        buffer: &5_u64.to_le_bytes(),
    };
    let bytes = bytes_of(|bytes| request.encode(bytes));
    let answer = client.ask_body(&mut rig, Command::SET_INFO, bytes);
    assert_eq!(answer.status(), Status::SUCCESS);
    let status = client.lock(&mut rig, other, (0, 10), SHARED_NOW);
    assert_eq!(status, Status::LOCK_NOT_GRANTED);
}

/// smbtorture smb2.oplock.brl1 to brl3
#[test]
fn a_locked_file_gets_no_oplock() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::with_credits(&mut rig);
    let two = Ask::level(OplockLevel::II);
    let (one, level) = client.open(&mut rig, two);
    assert_eq!(level, OplockLevel::II);
    let lock = client.lock_message(one, (0, 4), EXCLUSIVE_NOW);
    client.say(&mut rig, vec![lock]);
    let mut heard = [client.hear_answer(&mut rig), client.hear_answer(&mut rig)];
    heard.sort_by_key(|answer| answer.header.command == Command::OPLOCK_BREAK);
    assert_eq!(heard[0].status(), Status::SUCCESS);
    let reported = crate::harness::broken_oplock(&heard[1]);
    assert_eq!((reported.file_id, reported.level), (one, OplockLevel::NONE));
    // A refused lock breaks no oplock, and a locked file gets none.
    let status = client.lock(&mut rig, one, (0, 4), EXCLUSIVE_NOW);
    assert_eq!(status, Status::LOCK_NOT_GRANTED);
    let (other, level) = client.open(&mut rig, two);
    assert_eq!(level, OplockLevel::NONE);
    client.must_lock(&mut rig, one, (0, 4), UNLOCK);
    assert_eq!(client.close(&mut rig, other), Status::SUCCESS);
    let (_, level) = client.open(&mut rig, two);
    assert_eq!(level, OplockLevel::II);
}

#[test]
fn a_single_holder_keeps_its_oplock() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::with_credits(&mut rig);
    let (file, level) = client.open(&mut rig, Ask::level(OplockLevel::BATCH));
    assert_eq!(level, OplockLevel::BATCH);
    client.must_lock(&mut rig, file, (0, 4), EXCLUSIVE_NOW);
    assert!(client.hear(&mut rig).is_none());
}

/// smbtorture smb2.lock.errorcode
#[test]
fn refused_locks_and_refused_reads_have_different_statuses() {
    let (mut rig, mut client, [one, other]) = with_two_opens();
    client.must_lock(&mut rig, one, (10, 10), EXCLUSIVE_NOW);
    for (file, place) in [(one, (12, 5)), (other, (12, 5)), (other, (12, 0))] {
        for _ in 0..2 {
            let status = client.lock(&mut rig, file, place, EXCLUSIVE_NOW);
            assert_eq!(status, Status::LOCK_NOT_GRANTED);
        }
    }
    let message = read_at(&mut client, other, 12, 5);
    let answer = client.ask(&mut rig, message);
    assert_eq!(answer.status(), Status::FILE_LOCK_CONFLICT);
}
