//! Copies, zeros and allocated ranges.

use std::ops::Range;

use proto::file::{
    BasicChanges, ClonePlan, CopyPlan, FileOp, LocalOpen, Operation, Outcome, VolumeInfo,
};
use vfs::copy;
use wire::Status;
use wire::access::{AccessMask, FileAttributes};

use crate::share::Share;

/// More than a page in every file system of these tests.
const BIG: u64 = 1 << 20;

fn plan(from: (LocalOpen, u64), to: (LocalOpen, u64), length: u32) -> (LocalOpen, CopyPlan) {
    let plan = CopyPlan {
        source: from.0,
        source_offset: from.1,
        target_offset: to.1,
        length,
    };
    (to.0, plan)
}

fn run(share: &Share, (target, plan): (LocalOpen, CopyPlan)) -> Result<u32, Status> {
    let op = FileOp::OnOpen(target, Operation::CopyRange(plan));
    let (count, status) = share.execute(&op)?.expect_copied();
    assert_eq!(status, Status::SUCCESS, "after {count} bytes");
    Ok(count)
}

fn zero(share: &Share, file: LocalOpen, mut range: Range<u64>) -> Result<(), Status> {
    while !range.is_empty() {
        let op = FileOp::OnOpen(
            file,
            Operation::ZeroRange {
                range: range.clone(),
            },
        );
        let end = share.execute(&op)?.expect_zeroed();
        assert!(end > range.start, "zeroing makes progress");
        range.start = end;
    }
    Ok(())
}

fn set_sparse(share: &Share, file: LocalOpen, is_sparse: bool) -> FileAttributes {
    let metadata = share.metadata(&FileOp::OnOpen(file, Operation::SetSparse { is_sparse }));
    metadata.expect("metadata").attributes
}

fn ranges(
    share: &Share,
    file: LocalOpen,
    range: Range<u64>,
    limit: usize,
) -> Result<Vec<Range<u64>>, Status> {
    let op = FileOp::OnOpen(file, Operation::AllocatedRanges { range, limit });
    Ok(share.execute(&op)?.expect_ranges())
}

fn digits(count: usize) -> Vec<u8> {
    (0..count).map(|n| (n % 251) as u8).collect()
}

pub(crate) fn a_copy_brings_the_bytes_and_no_more(share: &Share) {
    let source = share.file("s", b"0123456789");
    let target = share.file("t", b"abcdefghij");
    assert_eq!(run(share, plan((source, 2), (target, 1), 3)), Ok(3));
    assert_eq!(share.content("t"), Ok(b"a234efghij".to_vec()));
    assert_eq!(run(share, plan((source, 8), (target, 12), 2)), Ok(2));
    assert_eq!(share.content("t"), Ok(b"a234efghij\0\089".to_vec()));
    assert_eq!(share.content("s"), Ok(b"0123456789".to_vec()));
}

pub(crate) fn a_copy_within_a_file_may_overlap_either_way(share: &Share) {
    let before = digits(700_000);
    for (from, to) in [(0, 100_000), (100_000, 0), (5, 5), (0, 350_000)] {
        let file = share.file("f", &before);
        let length = 350_000_u32;
        assert_eq!(
            run(share, plan((file, from), (file, to), length)),
            Ok(length)
        );
        let mut expected = before.clone();
        let (from, to) = (from as usize, to as usize);
        expected.copy_within(from..from + length as usize, to);
        let is = share.read(file, 0, 1_000_000).expect("bytes");
        assert!(is == expected, "from {from} to {to}");
        share.unlink(file).expect("a file to remove");
        share.close(file);
    }
}

pub(crate) fn a_copy_ends_before_the_source_does(share: &Share) {
    let source = share.file("s", b"0123456789");
    let target = share.file("t", b"");
    for (offset, length) in [(0, 11), (10, 1), (1 << 40, 1), (u64::MAX, 2)] {
        let refused = run(share, plan((source, offset), (target, 0), length));
        assert_eq!(refused, Err(Status::INVALID_VIEW_SIZE), "{offset}");
    }
    let beyond = run(share, plan((source, 0), (target, u64::MAX - 4), 10));
    assert!(beyond.is_err());
    assert_eq!(share.content("t"), Ok(vec![]));
}

pub(crate) fn a_copy_needs_the_rights_to_read_and_to_write(share: &Share) {
    share.file("s", b"0123456789");
    share.file("t", b"abc");
    let open = |name, access| share.open_for(name, access).expect("an open").file;
    let (reads, writes) = (AccessMask::FILE_READ_DATA, AccessMask::FILE_WRITE_DATA);
    let attempt = |source, target| run(share, plan((source, 0), (target, 0), 4));
    let denied = Err(Status::ACCESS_DENIED);
    assert_eq!(attempt(open("s", writes), open("t", writes)), denied);
    assert_eq!(attempt(open("s", reads), open("t", reads)), denied);
    assert_eq!(share.content("t"), Ok(b"abc".to_vec()));
    assert_eq!(attempt(open("s", reads), open("t", writes)), Ok(4));
    assert_eq!(share.content("t"), Ok(b"0123".to_vec()));
}

pub(crate) fn a_copy_between_shares_brings_the_bytes(share: &Share) {
    for other in [Share::memory(), Share::posix(), Share::tmpfs()] {
        let bytes = digits(600_001);
        let source = other.file("s", &bytes);
        let target = share.file("t", b"");
        let (into, plan) = plan((source, 1), (target, 3), 600_000);
        let outcome = copy::between(&*other.fs, &*share.fs, into, &plan);
        let is_whole = matches!(
            outcome,
            Ok(Outcome::Copied {
                count: 600_000,
                status: Status::SUCCESS
            })
        );
        assert!(is_whole, "{outcome:?}");
        let is = share.read(target, 0, 1_000_000).expect("bytes");
        assert!(is[..3] == [0; 3] && is[3..] == bytes[1..]);
        share.unlink(target).expect("a file to remove");
        share.close(target);
    }
}

pub(crate) fn a_large_copy_is_whole(share: &Share) {
    let bytes = digits(5_000_000);
    let source = share.file("s", &bytes);
    let target = share.file("t", b"");
    assert_eq!(
        run(share, plan((source, 0), (target, 0), 5_000_000)),
        Ok(5_000_000)
    );
    assert!(share.read(target, 0, 6_000_000).expect("bytes") == bytes);
}

pub(crate) fn zeros_replace_bytes_and_move_no_end(share: &Share) {
    for is_sparse in [false, true] {
        let file = share.file("f", &[7; 20_000]);
        set_sparse(share, file, is_sparse);
        zero(share, file, 5..9_000).expect("zeros");
        zero(share, file, 19_990..30_000).expect("zeros to beyond the end");
        zero(share, file, 20_000..30_000).expect("zeros beyond the end");
        zero(share, file, 1 << 40..1 << 41).expect("zeros far beyond the end");
        let mut expected = vec![7; 20_000];
        expected[5..9_000].fill(0);
        expected[19_990..].fill(0);
        assert!(share.content("f") == Ok(expected), "sparse: {is_sparse}");
        share.unlink(file).expect("a file to remove");
        share.close(file);
    }
}

pub(crate) fn zeros_need_the_right_to_write(share: &Share) {
    share.file("f", b"data");
    let reads = share.open_for("f", AccessMask::FILE_READ_DATA);
    let refused = zero(share, reads.expect("an open").file, 0..4);
    assert_eq!(refused, Err(Status::ACCESS_DENIED));
    assert_eq!(share.content("f"), Ok(b"data".to_vec()));
}

pub(crate) fn a_trim_changes_no_byte_outside_of_its_range(share: &Share) {
    let trim = |file, range| share.unit(&FileOp::OnOpen(file, Operation::Trim { range }));
    for (name, is_sparse) in [("f", false), ("g", true)] {
        let file = share.file(name, &digits(3 * BIG as usize));
        set_sparse(share, file, is_sparse);
        let before = share.stat(file).expect("metadata");
        trim(file, BIG..2 * BIG).expect("a trim");
        trim(file, 3 * BIG..4 * BIG).expect("a trim past the end");
        let after = share.stat(file).expect("metadata");
        assert_eq!(after.size, 3 * BIG);
        assert!(!is_sparse || after.allocation <= before.allocation - BIG);
        let content = share.read(file, 0, 4 * BIG as usize).expect("the data");
        let (old, big) = (digits(3 * BIG as usize), BIG as usize);
        assert!(content[..big] == old[..big] && content[2 * big..] == old[2 * big..]);
        let trimmed = &content[big..2 * big];
        let is_zero = trimmed.iter().all(|byte| *byte == 0);
        assert!(is_zero || !is_sparse && *trimmed == old[big..2 * big]);
    }
    let reads = share.open_for("f", AccessMask::FILE_READ_DATA);
    let refused = trim(reads.expect("an open").file, 0..BIG);
    assert_eq!(refused, Err(Status::ACCESS_DENIED));
}

pub(crate) fn sparse_is_set_and_cleared_by_itself(share: &Share) {
    let file = share.file("f", b"");
    let (sparse, archive) = (FileAttributes::SPARSE_FILE, FileAttributes::ARCHIVE);
    assert_eq!(set_sparse(share, file, true), sparse | archive);
    assert_eq!(set_sparse(share, file, true), sparse | archive);
    let set = |attributes| {
        let changes = BasicChanges {
            attributes: Some(attributes),
            ..BasicChanges::default()
        };
        share.set_basic(file, changes).expect("metadata").attributes
    };
    assert_eq!(set(FileAttributes::HIDDEN), sparse | FileAttributes::HIDDEN);
    assert_eq!(set_sparse(share, file, false), FileAttributes::HIDDEN);
    assert_eq!(set(sparse | archive), archive);
    let again = share.open("f").expect("an open").metadata;
    assert_eq!(again.attributes, archive);
}

pub(crate) fn an_overwritten_file_is_not_sparse(share: &Share) {
    let file = share.file("f", b"data");
    set_sparse(share, file, true);
    let metadata = share.metadata(&FileOp::OnOpen(
        file,
        Operation::Overwrite {
            attributes: FileAttributes::NONE,
            allocation: 0,
        },
    ));
    let metadata = metadata.expect("metadata");
    assert_eq!(metadata.attributes, FileAttributes::ARCHIVE);
}

pub(crate) fn a_hole_in_a_sparse_file_takes_no_space(share: &Share) {
    let file = share.file("f", &digits(3 * BIG as usize));
    let full = share.stat(file).expect("metadata").allocation;
    assert!(full >= 3 * BIG);
    set_sparse(share, file, true);
    zero(share, file, BIG..2 * BIG).expect("a hole");
    assert_eq!(
        ranges(share, file, 0..u64::MAX, 9),
        Ok(vec![0..BIG, 2 * BIG..3 * BIG])
    );
    let metadata = share.stat(file).expect("metadata");
    assert_eq!(metadata.size, 3 * BIG);
    assert!(metadata.allocation <= full - BIG, "{metadata:?}");
    zero(share, file, 0..3 * BIG).expect("a hole");
    assert_eq!(ranges(share, file, 0..3 * BIG, 9), Ok(vec![]));
}

pub(crate) fn a_file_that_is_not_sparse_takes_all_its_space(share: &Share) {
    let file = share.file("f", &digits(10_000));
    let op = FileOp::OnOpen(file, Operation::SetEndOfFile { length: BIG });
    share.unit(&op).expect("a later end");
    zero(share, file, 0..BIG).expect("zeros");
    let all = |range| ranges(share, file, range, 9);
    let one = |range| Ok(std::iter::once(range).collect());
    assert_eq!(all(0..2 * BIG), one(0..BIG));
    assert_eq!(all(5..7), one(5..7));
    assert_eq!(all(BIG..2 * BIG), Ok(vec![]));
    assert_eq!(all(5..5), Ok(vec![]));
}

pub(crate) fn ranges_are_listed_up_to_a_limit(share: &Share) {
    let file = share.file("f", b"");
    set_sparse(share, file, true);
    for place in [1, 3, 5] {
        let written = share.write(file, Some(place * BIG), &digits(BIG as usize));
        written.expect("a write");
    }
    let pieces = [BIG..2 * BIG, 3 * BIG..4 * BIG, 5 * BIG..6 * BIG];
    for limit in [1, 2, 3, 4] {
        let expected = pieces[..limit.min(3)].to_vec();
        assert_eq!(ranges(share, file, 0..u64::MAX, limit), Ok(expected));
    }
    let half = BIG + BIG / 2;
    let within = ranges(share, file, half..3 * BIG + 1, 9);
    assert_eq!(within, Ok(vec![half..2 * BIG, 3 * BIG..3 * BIG + 1]));
}

pub(crate) fn ranges_need_the_right_to_read(share: &Share) {
    share.file("f", b"data");
    let writes = share.open_for("f", AccessMask::FILE_WRITE_DATA);
    let refused = ranges(share, writes.expect("an open").file, 0..4, 1);
    assert_eq!(refused, Err(Status::ACCESS_DENIED));
}

pub(crate) fn directories_have_no_ranges(share: &Share) {
    let directory = share.directory("d");
    let file = share.file("f", b"data");
    let refused = Err(Status::INVALID_DEVICE_REQUEST);
    assert_eq!(zero(share, directory, 0..1), refused);
    assert_eq!(
        run(share, plan((file, 0), (directory, 0), 1)).map(|_| ()),
        refused
    );
    assert_eq!(
        run(share, plan((directory, 0), (file, 0), 1)).map(|_| ()),
        refused
    );
    let listed = ranges(share, directory, 0..1, 1).map(|_| ());
    assert_eq!(listed, refused);
    let sparse = share.metadata(&FileOp::OnOpen(
        directory,
        Operation::SetSparse { is_sparse: true },
    ));
    assert_eq!(sparse, Err(Status::INVALID_PARAMETER));
}

fn volume(share: &Share, file: LocalOpen) -> VolumeInfo {
    let volume = share.execute(&FileOp::OnOpen(file, Operation::Volume));
    volume.expect("a volume").expect_volume()
}

fn clone(share: &Share, source: LocalOpen, target: LocalOpen, length: u64) -> Result<(), Status> {
    let plan = ClonePlan {
        source,
        source_offset: 0,
        target_offset: BIG,
        length,
    };
    share.unit(&FileOp::OnOpen(target, Operation::CloneRange(plan)))
}

pub(crate) fn a_cloned_range_has_the_bytes_of_its_source(share: &Share) {
    let (source, target) = (share.file("s", b""), share.file("t", b""));
    let bytes = vec![7; BIG as usize];
    share.write(source, Some(0), &bytes).expect("a write");
    let length = 2 * BIG;
    let op = FileOp::OnOpen(target, Operation::SetEndOfFile { length });
    share.unit(&op).expect("a length");
    let cloned = clone(share, source, target, BIG);
    if !volume(share, target).has_shared_extents {
        assert_eq!(cloned, Err(Status::INVALID_DEVICE_REQUEST));
        return;
    }
    assert_eq!(cloned, Ok(()));
    assert_eq!(share.read(target, BIG, BIG as usize), Ok(bytes));
    assert_eq!(share.read(target, 0, 4), Ok(vec![0; 4]));
    assert_eq!(share.stat(target).expect("metadata").size, length);
    share.write(source, Some(0), b"new").expect("a write");
    assert_eq!(share.read(target, BIG, 3), Ok(vec![7; 3]), "a copy");
}

pub(crate) fn a_clone_needs_the_rights_to_read_and_to_write(share: &Share) {
    let both = share.file("s", b"0123");
    let reader = share.open_for("s", AccessMask::FILE_READ_DATA);
    let reader = reader.expect("a file").file;
    let writer = share.open_for("s", AccessMask::FILE_WRITE_DATA);
    let writer = writer.expect("a file").file;
    for (source, target) in [(both, reader), (writer, both)] {
        let denied = clone(share, source, target, 4);
        assert_eq!(denied, Err(Status::ACCESS_DENIED));
    }
}

pub(crate) fn a_file_is_compressed_where_the_file_system_can(share: &Share) {
    let file = share.file("f", b"0123");
    let set = |is_compressed| {
        share.metadata(&FileOp::OnOpen(
            file,
            Operation::SetCompression { is_compressed },
        ))
    };
    let compressed = FileAttributes::COMPRESSED;
    match volume(share, file).has_compression {
        true => {
            let metadata = set(true).expect("metadata");
            assert!(metadata.attributes.contains(compressed));
        }
        false => assert_eq!(set(true), Err(Status::NOT_SUPPORTED)),
    }
    let metadata = set(false).expect("metadata");
    assert!(!metadata.attributes.contains(compressed));
}
