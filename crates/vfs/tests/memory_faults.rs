//! Injected faults of the memory file system.

use std::sync::Arc;

use proto::file::{Existing, FileOp, KindWanted, LocalOpen, OpenPlan, Operation, Outcome, ShareId};
use proto::path::SharePath;
use proto::token::Token;
use smbeam_vfs::memory::{Memory, Options};
use smbeam_vfs::{Attempt, Effort, FileSystem};
use wire::Status;
use wire::access::{AccessMask, FileAttributes};

fn create(memory: &Memory, effort: Effort) -> Attempt<Result<Outcome, Status>> {
    let plan = OpenPlan {
        share: ShareId(0),
        token: Arc::new(Token::new(1, 1, vec![])),
        path: SharePath::from_trusted("f"),
        access: AccessMask::FILE_READ_DATA | AccessMask::FILE_WRITE_DATA,
        implied_access: AccessMask::NONE,
        existing: Existing::OpenOrCreate,
        kind: KindWanted::File,
        attributes: FileAttributes::NONE,
        allocation: 0,
        security: None,
        open_link: false,
        posix: None,
    };
    memory.execute(&FileOp::Open(plan), effort)
}

fn opened(memory: &Memory) -> LocalOpen {
    match create(memory, Effort::Blocking) {
        Attempt::Done(Ok(Outcome::Opened(opened))) => opened.file,
        other => panic!("an open came to {other:?}"),
    }
}

#[test]
fn the_chosen_operation_fails_and_no_other() {
    let memory = Memory::new(ShareId(0), Options::default());
    memory.set_faults(|faults| {
        faults.fail.insert(1, Status::IO_DEVICE_ERROR);
    });
    let file = opened(&memory);
    let attempt = memory.write(file, Some(0), b"x", false, Effort::Blocking);
    assert_eq!(attempt, Attempt::Done(Err(Status::IO_DEVICE_ERROR)));
    let attempt = memory.write(file, Some(0), b"x", false, Effort::Blocking);
    assert_eq!(attempt, Attempt::Done(Ok(1)));
    assert_eq!(memory.operations(), 3);
}

#[test]
fn an_operation_that_would_block_has_no_effect() {
    let memory = Memory::new(ShareId(0), Options::default());
    memory.set_faults(|faults| faults.would_block = true);
    assert!(matches!(
        create(&memory, Effort::Cached),
        Attempt::WouldBlock
    ));
    assert_eq!((memory.operations(), memory.opens()), (0, 0));
    opened(&memory);
    assert_eq!(memory.opens(), 1);
}

#[test]
fn a_full_disk_refuses_and_a_removal_frees_space() {
    let memory = Memory::new(ShareId(0), Options::default());
    memory.set_faults(|faults| faults.space = Some(8192));
    let file = opened(&memory);
    let write = |offset| memory.write(file, Some(offset), &[1; 4096], false, Effort::Blocking);
    assert_eq!(write(0), Attempt::Done(Ok(4096)));
    assert_eq!(write(1 << 20), Attempt::Done(Ok(4096)));
    assert_eq!(write(4096), Attempt::Done(Err(Status::DISK_FULL)));
    assert_eq!(write(0), Attempt::Done(Ok(4096)));
    let cut = FileOp::OnOpen(file, Operation::SetEndOfFile { length: 4096 });
    assert!(matches!(
        memory.execute(&cut, Effort::Blocking),
        Attempt::Done(Ok(Outcome::Done))
    ));
    assert_eq!(write(4096), Attempt::Done(Ok(4096)));
}

#[test]
fn a_short_read_is_short() {
    let memory = Memory::new(ShareId(0), Options::default());
    let file = opened(&memory);
    let written = memory.write(file, Some(0), b"hello", false, Effort::Blocking);
    assert_eq!(written, Attempt::Done(Ok(5)));
    memory.set_faults(|faults| faults.short_read = Some(2));
    let mut into = [0; 5];
    let attempt = memory.read(file, 0, &mut into, Effort::Blocking);
    assert_eq!(attempt, Attempt::Done(Ok(2)));
}

#[test]
fn a_close_never_fails() {
    let memory = Memory::new(ShareId(0), Options::default());
    let file = opened(&memory);
    memory.set_faults(|faults| {
        faults.would_block = true;
        faults
            .fail
            .extend((0..100).map(|n| (n, Status::IO_DEVICE_ERROR)));
    });
    let attempt = memory.execute(&FileOp::OnOpen(file, Operation::Close), Effort::Cached);
    assert!(matches!(attempt, Attempt::Done(Ok(Outcome::Done))));
    assert_eq!(memory.opens(), 0);
}
