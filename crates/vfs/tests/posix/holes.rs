//! Holes that local programs make are reported, although the file has no SPARSE attribute. Clients
//! make holes only in files with it.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use proto::file::{FileOp, Operation};
use vfs::posix::Options;
use wire::access::{AccessMask, FileAttributes};

use crate::share::LocalDirectory;

const MIB: u64 = 1 << 20;

#[test]
fn a_file_of_a_local_program_reports_its_holes() {
    let local = LocalDirectory::new(Options::default());
    let file = File::create(local.path("f")).expect("a file");
    file.write_all_at(&[1; MIB as usize], 2 * MIB)
        .expect("data");
    file.set_len(8 * MIB).expect("a length");
    // Delayed allocation does not matter for SEEK_DATA, but the file system may have no holes.
    file.sync_all().expect("on disk");
    let opened = local.share.open_for("f", AccessMask::FILE_READ_DATA);
    let opened = opened.expect("an open");
    let sparse = FileAttributes::SPARSE_FILE;
    assert!(!opened.metadata.attributes.contains(sparse));
    if opened.metadata.allocation >= 8 * MIB {
        return println!("skipped: no holes here");
    }
    let op = FileOp::OnOpen(
        opened.file,
        Operation::AllocatedRanges {
            range: 0..u64::MAX,
            limit: 9,
        },
    );
    let ranges = local.share.execute(&op).expect("ranges").expect_ranges();
    assert_eq!(
        ranges,
        std::iter::once(2 * MIB..3 * MIB).collect::<Vec<_>>()
    );
}

#[test]
fn a_trim_leaves_the_space_of_a_file_that_is_not_sparse() {
    let local = LocalDirectory::new(Options::default());
    let file = local.share.file("f", &[1; 4 * MIB as usize]);
    let trim = Operation::Trim { range: 0..2 * MIB };
    local
        .share
        .unit(&FileOp::OnOpen(file, trim))
        .expect("a trim");
    let metadata = local.share.stat(file).expect("metadata");
    assert!(metadata.allocation >= 4 * MIB, "{metadata:?}");
    local
        .share
        .write(file, Some(MIB), b"again")
        .expect("a write");
    let content = local
        .share
        .read(file, 0, 4 * MIB as usize)
        .expect("the data");
    assert_eq!(content[MIB as usize..][..5], *b"again");
    assert!(content[2 * MIB as usize..].iter().all(|byte| *byte == 1));
}
