use alloc::vec::Vec;

use wire::Status;
use wire::access::FileAttributes;
use wire::flush::Request;

use crate::server::config::{Limits, Share, SyncPolicy};
use crate::server::scripted::{ALL, World, disk_share};

/// The operations on the disk that a FLUSH of a file and of a directory request.
fn flushes(sync: SyncPolicy) -> Vec<alloc::string::String> {
    let share = Share {
        sync,
        ..disk_share()
    };
    let mut world = World::of(share, ALL, Limits::default());
    world.disk.add_file("file", FileAttributes::NONE);
    world.disk.add_directory("directory");
    let opens = [world.open("file", ALL), world.open("directory", ALL)];
    world.disk.log.clear();
    for file_id in opens {
        let request = Request {
            reserved: 0,
            file_id,
        };
        let reply = world.run(super::start, |out| request.encode(out));
        assert_eq!(reply.expect("a response").status, Status::SUCCESS);
    }
    world.disk.asked()
}

#[test]
fn the_share_decides_about_flushes() {
    assert!(flushes(SyncPolicy::Client).is_empty());
    assert_eq!(flushes(SyncPolicy::Flush), ["Flush", "Flush"]);
    assert_eq!(flushes(SyncPolicy::Always), ["Flush", "Flush"]);
}

#[test]
fn an_open_that_may_not_write_does_not_flush() {
    for sync in [SyncPolicy::Client, SyncPolicy::Flush] {
        let share = Share {
            sync,
            ..disk_share()
        };
        let mut world = World::of(share, ALL, Limits::default());
        world.disk.add_file("file", FileAttributes::NONE);
        let file_id = world.open("file", wire::access::AccessMask::FILE_READ_DATA);
        let request = Request {
            reserved: 0,
            file_id,
        };
        let reply = world.run(super::start, |out| request.encode(out));
        assert_eq!(reply.err(), Some(Status::ACCESS_DENIED));
    }
}
