//! Reads, writes and truncation.

use proto::file::{FileOp, Operation};
use wire::Status;
use wire::access::{AccessMask, FileAttributes};

use crate::share::Share;

pub(crate) fn written_bytes_are_read(share: &Share) {
    let file = share.file("f", b"");
    assert_eq!(share.write(file, Some(0), b"hello"), Ok(5));
    assert_eq!(share.write(file, Some(1), b"E"), Ok(1));
    assert_eq!(share.read(file, 0, 5), Ok(b"hEllo".to_vec()));
    assert_eq!(share.stat(file).expect("metadata").size, 5);
    let big: Vec<u8> = (0..3_000_000_u32).map(|n| (n / 7) as u8).collect();
    assert_eq!(share.write(file, Some(10), &big), Ok(big.len()));
    assert_eq!(share.read(file, 10, big.len()), Ok(big));
}

pub(crate) fn reads_end_at_the_end(share: &Share) {
    let file = share.file("f", b"0123456789");
    assert_eq!(share.read(file, 8, 100), Ok(b"89".to_vec()));
    assert_eq!(share.read(file, 10, 100), Ok(vec![]));
    assert_eq!(share.read(file, 1 << 40, 100), Ok(vec![]));
    assert_eq!(share.read(file, 0, 0), Ok(vec![]));
}

pub(crate) fn an_append_goes_to_the_end(share: &Share) {
    let file = share.file("f", b"one");
    assert_eq!(share.write(file, None, b"two"), Ok(3));
    assert_eq!(share.write(file, None, b"three"), Ok(5));
    assert_eq!(share.content("f"), Ok(b"onetwothree".to_vec()));
}

pub(crate) fn a_write_past_the_end_leaves_zeros(share: &Share) {
    let file = share.file("f", b"a");
    share.write(file, Some(5), b"b").expect("a write");
    assert_eq!(share.content("f"), Ok(b"a\0\0\0\0b".to_vec()));
}

pub(crate) fn the_end_of_a_file_moves(share: &Share) {
    let file = share.file("f", b"0123456789");
    let to = |length| share.unit(&FileOp::OnOpen(file, Operation::SetEndOfFile { length }));
    to(4).expect("cut");
    to(6).expect("grown");
    assert_eq!(share.content("f"), Ok(b"0123\0\0".to_vec()));
}

pub(crate) fn allocation_below_the_end_cuts(share: &Share) {
    let file = share.file("f", b"0123456789");
    share
        .unit(&FileOp::OnOpen(
            file,
            Operation::SetAllocation { length: 4 },
        ))
        .expect("cut");
    assert_eq!(share.content("f"), Ok(b"0123".to_vec()));
}

pub(crate) fn allocation_above_the_end_does_not_grow_the_file(share: &Share) {
    let file = share.file("f", b"0123");
    share
        .unit(&FileOp::OnOpen(
            file,
            Operation::SetAllocation { length: 100_000 },
        ))
        .expect("reserved");
    let metadata = share.stat(file).expect("metadata");
    assert_eq!(metadata.size, 4);
    assert!(metadata.allocation >= 100_000, "{metadata:?}");
}

pub(crate) fn an_overwrite_leaves_nothing(share: &Share) {
    let file = share.file("f", b"0123456789");
    let attributes = FileAttributes::NONE;
    let metadata = share.metadata(&FileOp::OnOpen(
        file,
        Operation::Overwrite {
            attributes,
            allocation: 0,
        },
    ));
    assert_eq!(metadata.expect("metadata").size, 0);
    assert_eq!(share.content("f"), Ok(vec![]));
}

pub(crate) fn a_file_opened_for_reading_is_not_written(share: &Share) {
    share.file("f", b"data");
    let read = share
        .open_for("f", AccessMask::FILE_READ_DATA)
        .expect("an open")
        .file;
    assert_eq!(share.write(read, Some(0), b"x"), Err(Status::ACCESS_DENIED));
    let write = share
        .open_for("f", AccessMask::FILE_WRITE_DATA)
        .expect("an open")
        .file;
    assert_eq!(share.read(write, 0, 1), Err(Status::ACCESS_DENIED));
    let look = share
        .open_for("f", AccessMask::FILE_READ_ATTRIBUTES)
        .expect("an open")
        .file;
    assert_eq!(share.read(look, 0, 1), Err(Status::ACCESS_DENIED));
    assert_eq!(share.content("f"), Ok(b"data".to_vec()));
}

pub(crate) fn a_directory_has_no_bytes(share: &Share) {
    let directory = share.directory("d");
    assert_eq!(
        share.read(directory, 0, 1),
        Err(Status::INVALID_DEVICE_REQUEST)
    );
    assert_eq!(
        share.write(directory, Some(0), b"x"),
        Err(Status::INVALID_DEVICE_REQUEST)
    );
}
