//! Named streams that do not fit into an extended attribute.

mod access;
mod copies;
mod crashes;
mod sweeps;

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use proto::file::{Existing, FileOp, KindWanted, LocalOpen, OpenPlan, Opened, Operation, Select};
use proto::path::{SharePath, StreamName};
use rustix::fs::{XattrFlags, getxattr, setxattr};
use rustix::io::Errno;
use vfs::identity;
use vfs::posix::Options;
use wire::Status;
use wire::access::{AccessMask, FileAttributes};

use crate::share::{ALL, LocalDirectory, user};

const BLOBS: &str = ".smbeam-streams";
const MIB: usize = 1 << 20;

/// Runs a test on a share on disk and on one in memory. Skips a file system without extended
/// attributes or without file handles.
fn on_each(test: impl Fn(&Large)) {
    let options = Options {
        large_streams: true,
        ..Options::default()
    };
    let memory = LocalDirectory::tmpfs(options);
    for local in [Some(LocalDirectory::new(options)), memory]
        .into_iter()
        .flatten()
    {
        let root = local.path("");
        let attribute = setxattr(&root, "user.probe", b"x", XattrFlags::empty());
        let handle = ring::openable_handle(fs::File::open(&root).expect("the root").as_fd());
        match (attribute, handle) {
            (Ok(()), Ok(_)) => test(&Large { local }),
            (attribute, handle) => println!("skipped: {attribute:?} {handle:?}"),
        }
    }
}

/// A share that keeps large streams.
struct Large {
    local: LocalDirectory,
}

impl Large {
    fn open(&self, file: &str, name: &str, existing: Existing) -> Result<Opened, Status> {
        let share = &self.local.share;
        let plan = share.plan("", existing, KindWanted::Any);
        let path = SharePath::from_trusted(file).with_stream(StreamName::new(name));
        share.open_plan(OpenPlan { path, ..plan })
    }

    /// Creates a stream with these data and leaves it open.
    fn create(&self, file: &str, name: &str, data: &[u8]) -> LocalOpen {
        let opened = self.open(file, name, Existing::Create).expect("a stream");
        let written = self.local.share.write(opened.file, Some(0), data);
        assert_eq!(written, Ok(data.len()));
        opened.file
    }

    fn close(&self, file: LocalOpen) {
        self.local.share.close(file);
    }

    /// The data of a stream.
    fn content(&self, file: &str, name: &str) -> Result<Vec<u8>, Status> {
        let opened = self.open(file, name, Existing::Open)?;
        let content = self.local.share.read(opened.file, 0, 4 * MIB);
        assert_eq!(
            content.as_ref().map(Vec::len),
            Ok(opened.metadata.size as usize)
        );
        self.close(opened.file);
        content
    }

    /// The named streams of a file with their lengths.
    fn streams(&self, file: &str) -> Vec<(String, u64)> {
        let file = self.local.share.open(file).expect("the file").file;
        let listed = self.run(file, Operation::ListStreams).expect("a list");
        self.close(file);
        let streams = listed.expect_streams().into_iter();
        let named = streams.filter_map(|it| Some((it.name?.as_str().to_owned(), it.size)));
        let mut named: Vec<_> = named.collect();
        named.sort();
        named
    }

    fn run(&self, file: LocalOpen, operation: Operation) -> Result<proto::file::Outcome, Status> {
        self.local.share.execute(&FileOp::OnOpen(file, operation))
    }

    fn rename(&self, file: LocalOpen, to: &str, replace: bool) -> Result<(), Status> {
        let to = StreamName::new(to).expect("a name");
        self.run(file, Operation::RenameStream { to, replace })
            .map(drop)
    }

    fn remove(&self, file: LocalOpen, path: &str, name: &str) {
        let path = SharePath::from_trusted(path).with_stream(StreamName::new(name));
        self.run(file, Operation::Unlink { path })
            .expect("a removal");
    }

    /// The files with the data of large streams that the server has not released.
    fn blobs(&self) -> Vec<PathBuf> {
        let is_released =
            |blob: &PathBuf| getxattr(blob, "user.smbeam.released", &mut [0; 9][..]).is_ok();
        let mut blobs = self.all_blobs();
        blobs.retain(|blob| !is_released(blob));
        blobs
    }

    /// The files with the data of large streams.
    fn all_blobs(&self) -> Vec<PathBuf> {
        let Ok(shards) = fs::read_dir(self.local.path(BLOBS)) else {
            return Vec::new();
        };
        let shards = shards.map(|shard| shard.expect("an entry").path());
        let blobs = shards.flat_map(|shard| fs::read_dir(shard).expect("a directory"));
        blobs.map(|blob| blob.expect("an entry").path()).collect()
    }

    /// Sweeps as often as necessary to remove what no file uses.
    fn sweep_all(&self) -> usize {
        let sweeps = || (0..3).map(|_| self.sweep(Duration::ZERO)).sum();
        match sweeps() {
            // A program that another test starts has the locks of all descriptors until its exec.
            0 => {
                std::thread::sleep(Duration::from_millis(100));
                sweeps()
            }
            removed => removed,
        }
    }

    fn sweep(&self, min_age: Duration) -> usize {
        self.local.posix.sweep_streams(min_age).expect("a sweep")
    }

    /// The attribute of a file of the share; `None` if it does not exist.
    fn attribute(&self, file: &str, name: &str) -> Option<Vec<u8>> {
        let mut value = vec![0; 1 << 16];
        match getxattr(self.local.path(file), name, &mut value[..]) {
            Ok(length) => Some(value[..length].to_vec()),
            Err(Errno::NODATA) => None,
            Err(error) => panic!("{error}"),
        }
    }

    fn set_attribute(&self, file: &str, name: &str, value: &[u8]) {
        let path = self.local.path(file);
        setxattr(path, name, value, XattrFlags::empty()).expect("an attribute");
    }
}

/// Data that differ from place to place.
fn data(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + at / 1000) as u8).collect()
}

fn inline(name: &str) -> String {
    format!("user.DosStream.{name}:$DATA")
}

fn pointer(name: &str) -> String {
    format!("user.SmbeamStream.{name}")
}

#[test]
fn a_stream_that_does_not_fit_moves_into_a_file() {
    on_each(|share| {
        let stream = share.create("f", "s", b"small");
        assert_eq!(share.blobs().len(), 0);
        share
            .local
            .share
            .write(stream, Some(3), &data(MIB))
            .expect("a large write");
        let expected = [b"sma", &data(MIB)[..]].concat();
        assert_eq!(share.content("F", "S"), Ok(expected));
        assert_eq!(share.streams("f"), [("s".to_owned(), MIB as u64 + 3)]);
        let [blob] = &share.blobs()[..] else {
            panic!("{:?}", share.blobs());
        };
        let id = blob
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name");
        assert_eq!(
            share.attribute("f", &pointer("s")),
            Some(format!("1 {id}").into_bytes())
        );
        assert_eq!(share.attribute("f", &inline("s")), None);
        assert_eq!(
            blob.parent(),
            Some(&*share.local.path(BLOBS).join(&id[..2]))
        );
        let (blob, file) = (fs::metadata(blob), fs::metadata(share.local.path("f")));
        let (blob, file) = (blob.expect("a blob"), file.expect("a file"));
        assert_eq!((blob.uid(), blob.gid()), (file.uid(), file.gid()));
        assert_eq!(blob.mode() & 0o7777, 0o600);
        let directory = fs::metadata(share.local.path(BLOBS)).expect("a directory");
        assert_eq!(directory.mode() & 0o7777, 0o700);
        assert_eq!(directory.uid(), rustix::process::getuid().as_raw());
    });
}

#[test]
fn a_large_stream_changes_like_a_file() {
    on_each(|share| {
        let stream = share.create("f", "s", &data(100_000));
        let length = |length| {
            share
                .run(stream, Operation::SetEndOfFile { length })
                .map(drop)
        };
        share
            .local
            .share
            .write(stream, None, b"end")
            .expect("an append");
        assert_eq!(
            share.local.share.read(stream, 99_999, 9).map(|it| it.len()),
            Ok(4)
        );
        length(200_000).expect("a longer stream");
        share
            .run(stream, Operation::ZeroRange { range: 10..100_010 })
            .expect("zeros");
        let mut expected = data(10);
        expected.resize(200_000, 0);
        assert_eq!(share.content("f", "s").map(|it| it == expected), Ok(true));
        share.run(stream, Operation::Flush).expect("a flush");
        length(7).expect("a shorter stream");
        share
            .run(stream, Operation::SetAllocation { length: 4 })
            .expect("a cut");
        assert_eq!(share.content("f", "s"), Ok(data(4)));
        assert_eq!(length(u64::MAX), Err(Status::INVALID_PARAMETER));
        let overwrite = Operation::Overwrite {
            attributes: FileAttributes::NONE,
            allocation: 0,
        };
        let emptied = share.run(stream, overwrite).expect("an empty stream");
        assert_eq!(emptied.expect_metadata().size, 0);
    });
}

#[test]
fn a_directory_has_large_streams() {
    on_each(|share| {
        let directory = share.local.share.directory("d");
        share.close(share.create("d", "s", &data(MIB)));
        share.close(share.create("", "of the root", &data(MIB)));
        assert_eq!(share.content("d", "s"), Ok(data(MIB)));
        assert_eq!(share.content("", "of the root"), Ok(data(MIB)));
        share.local.share.unlink(directory).expect("a removal");
        assert_eq!(share.blobs().len(), 1);
    });
}

/// The attributes of a file of ext4 have about 4,000 bytes together: at some length the pointer
/// does not fit beside the data.
#[test]
fn a_stream_grows_by_any_step() {
    on_each(|share| {
        for step in [1000, 97, 31] {
            let name = step.to_string();
            let stream = share.create("f", &name, b"");
            for at in 0..(6000 / step) {
                let part = &data(6000)[at * step..][..step];
                share
                    .local
                    .share
                    .write(stream, None, part)
                    .expect("an append");
            }
            let expected = &data(6000)[..6000 / step * step];
            assert_eq!(share.content("f", &name).as_deref(), Ok(expected), "{step}");
            share.remove(stream, "f", &name);
            share.close(stream);
        }
        assert_eq!(share.blobs().len(), 0);
    });
}

#[test]
fn large_streams_are_renamed_and_replaced() {
    on_each(|share| {
        let stream = share.create("f", "s", &data(MIB));
        let other = share.create("f", "other", &data(MIB + 1));
        let small = share.create("f", "small", b"small");
        share.rename(stream, "t", false).expect("a free name");
        share.rename(stream, "T", false).expect("another case");
        assert_eq!(
            share.rename(stream, "Other", false),
            Err(Status::OBJECT_NAME_COLLISION)
        );
        assert_eq!(share.blobs().len(), 2);
        share.close(other);
        share
            .rename(stream, "Other", true)
            .expect("a large stream is replaced");
        assert_eq!(share.blobs().len(), 1);
        share.close(small);
        share
            .rename(stream, "small", true)
            .expect("a small stream is replaced");
        assert_eq!(share.streams("f"), [("small".to_owned(), MIB as u64)]);
        assert_eq!(share.attribute("f", &inline("small")), None);
        let small = share.create("f", "s", b"1");
        share.close(stream);
        share
            .rename(small, "small", true)
            .expect("a large stream is replaced");
        assert_eq!(share.content("f", "small"), Ok(b"1".to_vec()));
        assert_eq!(share.streams("f").len(), 1);
        assert_eq!(share.blobs().len(), 0);
        // ext4 has no space for two of them.
        let middle = share.create("g", "middle", &data(2500));
        share.rename(middle, "renamed", false).expect("a free name");
        assert_eq!(share.content("g", "renamed"), Ok(data(2500)));
        assert_eq!(share.streams("g"), [("renamed".to_owned(), 2500)]);
    });
}

#[test]
fn a_removed_stream_has_no_data() {
    on_each(|share| {
        let stream = share.create("f", "s", &data(MIB));
        let other = share.create("f", "other", &data(MIB));
        share.remove(stream, "f", "s");
        // The opens still hold it; Windows, too, keeps the data until the last close.
        assert_eq!(
            share.local.share.read(stream, 0, 9),
            Err(Status::FILE_DELETED)
        );
        assert_eq!(share.streams("f").len(), 1);
        share.remove(stream, "f", "other");
        assert_eq!(share.blobs().len(), 0);
        share.close(stream);
        share.close(other);
        let missing = share.open("f", "s", Existing::Open).map(drop);
        assert_eq!(missing, Err(Status::OBJECT_NAME_NOT_FOUND));
    });
}

#[test]
fn the_end_of_a_file_is_the_end_of_its_large_streams() {
    on_each(|share| {
        let local = &share.local.share;
        let with_stream = |name: &str| {
            share.close(share.create(name, "s", &data(MIB)));
            local.open(name).expect("the file").file
        };
        let file = with_stream("overwritten");
        let overwrite = Operation::Overwrite {
            attributes: FileAttributes::NONE,
            allocation: 0,
        };
        share.run(file, overwrite).expect("an overwrite");
        assert_eq!(
            (share.blobs().len(), share.streams("overwritten").len()),
            (0, 0)
        );
        let file = with_stream("linked");
        local.link(file, "second", false).expect("a hard link");
        local.unlink(file).expect("a removal");
        assert_eq!(share.content("second", "s"), Ok(data(MIB)));
        let second = local.open("second").expect("the file").file;
        local.unlink(second).expect("the removal of the last name");
        assert_eq!(share.blobs().len(), 0);
        with_stream("renamed over");
        local
            .rename(local.file("new", b""), "renamed over", true)
            .expect("a rename");
        assert_eq!(share.blobs().len(), 0);
        with_stream("linked over");
        local
            .link(local.file("newer", b""), "linked over", true)
            .expect("a link");
        assert_eq!(share.blobs().len(), 0);
    });
}

#[test]
fn an_open_stream_outlives_its_file() {
    on_each(|share| {
        let stream = share.create("f", "s", &data(MIB));
        let file = share.local.share.open("f").expect("the file").file;
        share.local.share.unlink(file).expect("a removal");
        assert_eq!(share.blobs().len(), 0);
        assert_eq!(
            share.local.share.read(stream, 5, MIB),
            Ok(data(MIB)[5..].to_vec())
        );
        share
            .local
            .share
            .write(stream, Some(0), b"x")
            .expect("a write");
        share.close(stream);
    });
}
