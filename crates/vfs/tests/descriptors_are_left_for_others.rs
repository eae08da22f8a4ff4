//! The server has free descriptors, regardless of the number of open files. This test runs in its
//! own process, because it changes the limit of the process.

extern crate smbeam_vfs as vfs;

#[path = "behaviour/share.rs"]
mod share;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use share::LocalDirectory;
use vfs::posix::Options;
use wire::Status;

/// Limit of the process.
const LIMIT: u64 = 400;
/// Descriptors that must remain free.
const LEFT: usize = 90;

#[test]
fn opens_end_before_descriptors_do() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let current = Some(LIMIT);
    setrlimit(Resource::Nofile, Rlimit { current, maximum }).expect("a lower limit");
    let local = LocalDirectory::new(Options::default());
    let share = &local.share;
    let mut opens = Vec::new();
    let refused = loop {
        match share.create(&format!("File{}", opens.len())) {
            Ok(opened) => opens.push(opened.file),
            Err(status) => break status,
        }
    };
    assert_eq!(refused, Status::TOO_MANY_OPENED_FILES);
    assert!(opens.len() > 200, "{}", opens.len());
    assert_eq!(share.open("File0").err(), Some(refused));
    vfs::identity::own().expect("the server itself");
    let null = || std::fs::File::open("/dev/null").expect("a descriptor that is left");
    let others: Vec<_> = (0..LEFT).map(|_| null()).collect();
    drop(others);
    let made = opens.len();
    for _ in 0..8 {
        share.close(opens.pop().expect("there are some"));
    }
    share.open("File0").expect("some were closed");
    assert_eq!(share.names("").len(), made, "refused files are not created");
}
