//! With `Effort::Cached`, a fast operation completes, and a slow one has no effect.

use proto::file::{DirectoryPlan, Existing, FileOp, KindWanted, OpenPlan, Operation, Select};
use vfs::posix::{Options, WRITE_MAX};
use vfs::{Attempt, Effort, FileSystem};
use wire::access::FileAttributes;

use crate::share::LocalDirectory;

#[test]
fn bytes_in_the_page_cache_are_read_at_once() {
    let local = LocalDirectory::new(Options::default());
    let file = local.share.file("f", b"hello");
    let mut into = [0; 5];
    let attempt = local.posix.read(file, 0, &mut into, Effort::Cached);
    assert_eq!((attempt, &into), (Attempt::Done(Ok(5)), b"hello"));
}

#[test]
fn small_writes_run_inline_and_others_would_block() {
    let local = LocalDirectory::new(Options::default());
    let file = local.share.file("f", b"");
    let write = |bytes: &[u8], through| {
        local
            .posix
            .write(file, Some(0), bytes, through, Effort::Cached)
    };
    assert_eq!(write(b"hello", false), Attempt::Done(Ok(5)));
    let is_memory = local
        .posix
        .descriptor(file)
        .expect("a descriptor")
        .never_blocks;
    if is_memory {
        println!("skipped: a file system in memory never waits");
        return;
    }
    assert_eq!(write(b"hello", true), Attempt::WouldBlock);
    assert_eq!(write(&vec![0; WRITE_MAX + 1], false), Attempt::WouldBlock);
    assert_eq!(local.share.stat(file).expect("metadata").size, 5);
    let through = local.posix.write(file, None, b"!", true, Effort::Blocking);
    assert_eq!(through, Attempt::Done(Ok(1)));
    assert_eq!(local.share.content("f"), Ok(b"hello!".to_vec()));
}

#[test]
fn operations_on_the_disk_would_block() {
    let local = LocalDirectory::new(Options::default());
    let file = local.share.file("f", b"");
    let directory = local.share.directory("d");
    if local
        .posix
        .descriptor(file)
        .expect("a descriptor")
        .never_blocks
    {
        println!("skipped: a file system in memory never waits");
        return;
    }
    let list = DirectoryPlan {
        restart: true,
        select: Select::All,
        limit: 9,
    };
    let create = |name| (local.share).plan(name, Existing::Create, KindWanted::File);
    let reserving = OpenPlan {
        allocation: 4096,
        ..create("new")
    };
    for op in [
        FileOp::OnOpen(file, Operation::Flush),
        FileOp::OnOpen(file, Operation::SetAllocation { length: 4096 }),
        FileOp::Open(reserving),
        FileOp::OnOpen(
            file,
            Operation::Overwrite {
                attributes: FileAttributes::NONE,
                allocation: 4096,
            },
        ),
        FileOp::OnOpen(directory, Operation::ReadDirectory(list)),
    ] {
        let cached = local.posix.execute(&op, Effort::Cached);
        assert!(matches!(cached, Attempt::WouldBlock), "{op:?}");
        let blocking = local.posix.execute(&op, Effort::Blocking);
        assert!(!matches!(blocking, Attempt::Done(Err(_))), "{op:?}");
    }
}
