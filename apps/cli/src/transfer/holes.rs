//! Sparse files: the data ranges of files, so that holes remain holes.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use smbeam_client::{OpenOptions, Wait as _};

use super::part::{self, sorted_ranges};
use crate::file_path::{FileInfo, RemotePath};

/// Minimum length of a hole in bytes.
const HOLE_BYTES: usize = 64 << 10;
/// Maximum number of data ranges. A file with more ranges is copied as a whole.
const MAX_RANGES: usize = 100_000;

/// The data ranges of a file on a server. If the server does not report them, the whole file is
/// data.
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

/// The data ranges of a local file, or `None` if it has no holes.
pub(super) fn local_ranges(file: &File, info: &FileInfo) -> io::Result<Option<Vec<Range<u64>>>> {
    if !info.may_have_holes() {
        return Ok(None);
    }
    let mut ranges = Vec::new();
    let mut offset = 0;
    while offset < info.size {
        let start = match seek(file, SeekFrom::Data(offset)) {
            Ok(start) => start,
            // A hole up to the end of the file.
            Err(Errno::NXIO) => break,
            // The file system does not support the query.
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

/// Marks a file as sparse after its rename. Samba loses the mark with a rename and then reports the
/// whole file as data.
pub(super) fn mark_sparse(remote: &RemotePath) {
    let options = OpenOptions::new().write(true).directory(false);
    let marked = remote.share.open(&remote.path, &options).wait();
    if let Ok(file) = marked {
        // A server without sparse files stores the same data.
        let _ = file.set_sparse(true).wait();
        let _ = file.close().wait();
    }
}

/// Writes data to an empty file without blocks of zeros. Some servers report that a file is sparse,
/// but not its ranges.
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
        let info = FilePath::Local(path.into()).info(true).expect("info");
        assert!(info.may_have_holes());
        let ranges = local_ranges(&file, &info).expect("ranges");
        // A file system without holes reports the whole file as data.
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
        let info = FilePath::Local(path.into()).info(true).expect("info");
        let ranges = local_ranges(&file, &info).expect("ranges");
        assert_eq!(ranges, Some(Vec::new()));
    }
}
