//! Which parts of a file are data: sparse files stay sparse on both sides.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use smbeam_client::{OpenOptions, Wait as _};

use super::part::{self, sorted_ranges};
use crate::file_path::{FileInfo, RemotePath};

/// Bytes of the smallest hole that is left in a file.
const HOLE_BYTES: usize = 64 << 10;
/// Ranges of data that are worth telling apart; a file with more is taken as it is.
const MAX_RANGES: usize = 100_000;

/// What of a file on a server is data. A server that cannot tell means all of it.
pub(super) fn remote_ranges(file: &smbeam_client::File, info: &FileInfo) -> Vec<Range<u64>> {
    let all = part::all(info.size);
    if !info.may_have_holes() {
        return all;
    }
    match file.allocated_ranges(0..info.size).wait() {
        Ok(ranges) if ranges.len() <= MAX_RANGES => sorted_ranges(ranges, info.size),
        _ => all,
    }
}

/// What of a local file is data; none where it has no holes.
pub(super) fn local_ranges(file: &File, info: &FileInfo) -> io::Result<Option<Vec<Range<u64>>>> {
    if !info.may_have_holes() {
        return Ok(None);
    }
    let mut ranges = Vec::new();
    let mut offset = 0;
    while offset < info.size {
        let start = match seek(file, SeekFrom::Data(offset)) {
            Ok(start) => start,
            // Nothing but a hole up to the end.
            Err(Errno::NXIO) => break,
            // The file system does not know.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let end = match seek(file, SeekFrom::Hole(start)) {
            Ok(end) => end,
            Err(Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        if end <= start || ranges.len() >= MAX_RANGES {
            return Ok(None);
        }
        ranges.push(start..end);
        offset = end;
    }
    Ok(Some(sorted_ranges(ranges, info.size)))
}

/// Says of a file that it has holes once it has its name. Samba forgets it at a rename, and then
/// takes all of the file for data.
pub(super) fn mark_sparse(remote: &RemotePath) {
    let options = OpenOptions::new().write(true).directory(false);
    let marked = remote.share.open(&remote.path, &options).wait();
    if let Ok(file) = marked {
        // A server without sparse files holds the same bytes.
        let _ = file.set_sparse(true).wait();
        let _ = file.close().wait();
    }
}

/// Writes what of a piece is not zero to a file in which there is nothing yet: a server may know
/// that a file has holes but not where.
pub(super) fn write_data(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    let mut start = 0;
    while start < bytes.len() {
        let is_zero = |from: usize| {
            let end = bytes.len().min(from + HOLE_BYTES);
            bytes[from..end].iter().all(|byte| *byte == 0)
        };
        let kind = is_zero(start);
        let mut end = start;
        while end < bytes.len() && is_zero(end) == kind {
            end = bytes.len().min(end + HOLE_BYTES);
        }
        if !kind {
            file.write_all_at(&bytes[start..end], offset + start as u64)?;
        }
        start = end;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_path::FilePath;

    #[test]
    fn data_of_a_local_file_are_found() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("x");
        let file = File::create(&path).expect("a file");
        file.write_all_at(&[1; 4096], 1 << 20).expect("data");
        file.set_len(4 << 20).expect("a length");
        let info = FilePath::Local(path).info(true).expect("info");
        assert!(info.may_have_holes());
        let ranges = local_ranges(&file, &info).expect("ranges");
        // A file system without holes says that all of it is data.
        let ranges = ranges.expect("ranges");
        let covered: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        assert!(ranges.iter().any(|range| range.contains(&(1 << 20))));
        assert!((4096..=4 << 20).contains(&covered));
    }

    #[test]
    fn zeros_are_not_written() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("x");
        let file = File::create(&path).expect("a file");
        let mut bytes = vec![0; 5 * HOLE_BYTES + 100];
        bytes[2 * HOLE_BYTES + 7] = 1;
        bytes[5 * HOLE_BYTES + 99] = 2;
        write_data(&file, &bytes, 10).expect("data");
        let mut expected = vec![0; 10];
        expected.extend_from_slice(&bytes);
        assert_eq!(std::fs::read(&path).expect("a file"), expected);
        write_data(&file, &[0; 100], 1 << 30).expect("nothing");
        let length = file.metadata().expect("metadata").len();
        assert_eq!(length, expected.len() as u64);
    }

    #[test]
    fn an_empty_hole_has_no_data() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("x");
        let file = File::create(&path).expect("a file");
        file.set_len(4 << 20).expect("a length");
        let info = FilePath::Local(path).info(true).expect("info");
        let ranges = local_ranges(&file, &info).expect("ranges");
        assert_eq!(ranges, Some(Vec::new()));
    }
}
