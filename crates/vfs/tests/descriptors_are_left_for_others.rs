//! However many files clients open, the server has descriptors left. Alone in its process, whose
//! limit it changes.

extern crate smbeam_vfs as vfs;

#[path = "behaviour/share.rs"]
mod share;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use share::Folder;
use vfs::posix::Options;
use wire::Status;

/// Descriptors of the process.
const LIMIT: u64 = 400;
/// Those that others can still have.
const LEFT: usize = 90;

#[test]
fn opens_end_before_descriptors_do() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let current = Some(LIMIT);
    setrlimit(Resource::Nofile, Rlimit { current, maximum }).expect("a lower limit");
    let folder = Folder::new(Options::default());
    let share = &folder.share;
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
    assert_eq!(share.names("").len(), made, "what was refused was not made");
}
