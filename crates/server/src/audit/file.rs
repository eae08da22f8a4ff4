//! The file of the audit log, with its rotation.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use tracing::error;

/// A file that only grows. At its limit, it gets the name with the suffix `.1`, that one gets `.2`
/// and so on.
#[derive(Debug)]
pub(super) struct AuditFile {
    path: PathBuf,
    file: File,
    /// Length of the file in bytes.
    length: u64,
    /// Length in bytes at which the file is renamed; `None` for no limit.
    max: Option<u64>,
    /// Number of renamed files that stay.
    keep: u32,
    /// Whether the file ends within a line: a write failed, and so did its removal.
    is_torn: bool,
    /// Length in bytes from which on a rename that failed is tried again.
    retry_at: u64,
}

impl AuditFile {
    /// Opens the file, or makes it with the mode 0600.
    ///
    /// # Errors
    /// The directory is missing, the path is a symbolic link or no regular file, or rights are
    /// missing.
    pub(super) fn open(path: &Path, max: Option<u64>, keep: u32) -> io::Result<Self> {
        let file = open(path)?;
        let length = file.metadata()?.len();
        Ok(Self {
            path: path.to_owned(),
            file,
            length,
            max,
            keep,
            is_torn: false,
            retry_at: 0,
        })
    }

    /// Appends a line.
    ///
    /// # Errors
    /// The disk is full, for example. Then the file is as it was before.
    pub(super) fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let added = line.len() as u64;
        if let Some(max) = self.max
            && self.length > 0
            && self.length + added > max.max(self.retry_at)
            && let Err(error) = self.rotate()
        {
            // A longer file is better than no records.
            let path = self.path.display();
            error!(%path, %error, "cannot rename the audit log at its limit: it grows");
            self.retry_at = self.length + max;
        }
        if self.is_torn {
            self.write(b"\n")?;
            self.is_torn = false;
        }
        self.write(line)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.file.write_all(bytes) {
            Ok(()) => {
                self.length += bytes.len() as u64;
                Ok(())
            }
            Err(error) => {
                self.is_torn = self.file.set_len(self.length).is_err();
                Err(error)
            }
        }
    }

    /// Opens the file again if its name belongs to another file or to none, and looks at its
    /// length, which another program may have changed.
    ///
    /// # Errors
    /// The file cannot be opened. Then the old one stays.
    pub(super) fn check(&mut self) -> io::Result<()> {
        let own = self.file.metadata()?;
        let is_same = match fs::symlink_metadata(&self.path) {
            Ok(named) => (named.dev(), named.ino()) == (own.dev(), own.ino()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        if is_same {
            self.length = own.len();
            return Ok(());
        }
        self.reopen()
    }

    fn reopen(&mut self) -> io::Result<()> {
        let Self {
            path, max, keep, ..
        } = self;
        *self = Self::open(path, *max, *keep)?;
        Ok(())
    }

    /// Renames the file and those before it, and makes a new one.
    fn rotate(&mut self) -> io::Result<()> {
        for number in (1..self.keep).rev() {
            rename(&self.numbered(number), &self.numbered(number + 1))?;
        }
        rename(&self.path, &self.numbered(1))?;
        self.reopen()
    }

    fn numbered(&self, number: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    }
}

/// Renames a file, if it exists.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Opens a regular file to append. Does not wait for a reader of a pipe, nor follow a link.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600);
    options.custom_flags(flags.bits().cast_signed());
    let file = options.open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("not a regular file")),
    }
}

/// Checks that the file can be opened, or made in its directory. Makes no file.
///
/// # Errors
/// As [`AuditFile::open`].
pub(super) fn check(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(_) => open(path).map(drop),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let parent = path.parent().unwrap_or(Path::new("/"));
            let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
            Ok(rustix::fs::access(parent, access)?)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn read(path: &Path) -> String {
        fs::read_to_string(path).unwrap_or_else(|error| format!("{error}"))
    }

    #[test]
    fn a_full_file_gets_a_number() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("audit.jsonl");
        let mut file = AuditFile::open(&path, Some(8), 2).expect("a file");
        for line in ["one\n", "two\n", "three\n", "a line of many bytes\n", "x\n"] {
            file.append(line.as_bytes()).expect("it is written");
        }
        assert_eq!(read(&path), "x\n");
        let of = |suffix| read(&directory.path().join(format!("audit.jsonl.{suffix}")));
        assert_eq!(of("1"), "a line of many bytes\n");
        assert_eq!(of("2"), "three\n");
        let count = fs::read_dir(directory.path()).expect("a directory").count();
        assert_eq!(count, 3, "the lines one and two are gone");
        let mode = fs::metadata(&path).expect("a file").mode();
        assert_eq!(mode & 0o7777, 0o600);
    }

    #[test]
    fn a_file_that_cannot_be_renamed_grows() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a");
        // A rename cannot replace a directory.
        fs::create_dir(directory.path().join("a.1")).expect("a directory");
        let mut file = AuditFile::open(&path, Some(4), 1).expect("a file");
        for line in ["one\n", "two\n"] {
            file.append(line.as_bytes()).expect("it is written");
        }
        assert_eq!(read(&path), "one\ntwo\n");
    }

    #[test]
    fn a_renamed_file_is_opened_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, renamed) = (directory.path().join("a"), directory.path().join("a.old"));
        let mut file = AuditFile::open(&path, None, 1).expect("a file");
        file.append(b"one\n").expect("it is written");
        fs::rename(&path, &renamed).expect("a rename");
        file.append(b"two\n").expect("it is written");
        file.check().expect("a new file");
        file.append(b"three\n").expect("it is written");
        assert_eq!(
            (read(&renamed), read(&path)),
            ("one\ntwo\n".into(), "three\n".into())
        );
        // As with copytruncate of logrotate.
        fs::write(&path, "").expect("a file");
        file.check().expect("the same file");
        file.append(b"four\n").expect("it is written");
        assert_eq!((read(&path), file.length), ("four\n".into(), 5));
    }

    #[test]
    fn only_regular_files_are_written() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        symlink(path("target"), path("link")).expect("a link");
        let fifo = path("fifo");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0)
            .expect("a fifo");
        for name in ["link", "fifo", "missing/file", "."] {
            AuditFile::open(&path(name), None, 1).expect_err(name);
            check(&path(name)).expect_err(name);
        }
        check(&path("new")).expect("it can be made");
        assert!(!path("new").exists());
    }

    #[test]
    fn a_failed_write_leaves_whole_lines() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a");
        let mut file = AuditFile::open(&path, None, 1).expect("a file");
        file.append(b"one\n").expect("it is written");
        // A file that takes no bytes.
        let full = OpenOptions::new()
            .append(true)
            .open("/dev/full")
            .expect("a device");
        let own = std::mem::replace(&mut file.file, full);
        file.append(b"two\n").expect_err("it is full");
        assert!(file.is_torn);
        file.file = own;
        file.append(b"three\n").expect("it is written");
        assert_eq!(read(&path), "one\n\nthree\n");
    }
}
