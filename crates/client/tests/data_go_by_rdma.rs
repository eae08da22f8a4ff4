//! READ and WRITE over SMB Direct, on emulated RDMA: the data are what they were, whichever way
//! they went, and however the connections end.

mod rig;

use std::fs;

use client::{Channels, OpenOptions, Options, Protection, RdmaChoice, Session, Transport, Wait};
use rig::{Rig, SHARE, options, pattern};
use server::config::{Config, unplaced};
use tempfile::TempDir;

/// The port that nobody has but the server of a test, in a directory of its own.
const PORT: u16 = 5445;

/// A server of SMB Direct, and where its peers meet.
struct Direct {
    meeting: TempDir,
    rig: Rig,
}

impl Direct {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Config)) -> Self {
        let meeting = tempfile::tempdir().expect("a folder");
        let rdma = RdmaChoice::Emulated(meeting.path().to_owned());
        let rig = Rig::with(|config| {
            config.server.transports = vec![unplaced(format!("smbdirect:{PORT}"))];
            config.set_rdma(rdma);
            change(config);
        });
        Self { meeting, rig }
    }

    fn options(&self) -> Options {
        Options {
            transports: Transport::SmbDirect.into(),
            rdma: RdmaChoice::Emulated(self.meeting.path().to_owned()),
            channels: Channels::Exactly(1),
            ..options()
        }
    }

    fn connect(&self, options: Options) -> Session {
        rig::connect(PORT, options).expect("a session")
    }
}

/// Around the threshold, around what a message holds, and more than goes at once.
const SIZES: [usize; 9] = [
    1,
    4095,
    4096,
    4097,
    65_536,
    1 << 20,
    (1 << 20) + 1,
    5_000_001,
    20 << 20,
];

/// Writes and reads files of all sizes; bytes that came over the channel in messages.
fn round_trips(direct: &Direct, options: Options) -> u64 {
    let session = direct.connect(options);
    let share = session.share(SHARE).wait().expect("a share");
    for size in SIZES {
        let bytes = pattern(size, size as u64);
        let name = format!("file-{size}");
        let new = OpenOptions::new().read(true).write(true).create(true);
        let file = share.open(&name, &new).wait().expect("open");
        let (written, bytes) = file.write_at(bytes, 0).wait();
        assert_eq!(written.expect("write"), size);
        let on_disk = fs::read(direct.rig.path(&name)).expect("on disk");
        assert!(on_disk == bytes, "{size} bytes on disk");
        let (read, back) = file.read_at(vec![0; size + 10], 0).wait();
        assert_eq!(read.expect("read"), size);
        assert!(back[..size] == bytes, "{size} bytes read");
        assert!(back[size..] == [0; 10], "and no more");
        file.close().wait().expect("close");
        assert!(share.read(&name).wait().expect("read") == bytes);
    }
    session.info().channels[0].received
}

#[test]
fn files_are_what_they_were() {
    let direct = Direct::new();
    let received = round_trips(&direct, direct.options());
    // They went another way.
    assert!(received < 1 << 20, "{received} bytes came in messages");
}

#[test]
fn what_is_protected_goes_in_messages() {
    let direct = Direct::new();
    for protection in [Protection::Sign, Protection::Seal] {
        let options = Options {
            protection,
            ..direct.options()
        };
        let received = round_trips(&direct, options);
        let total: usize = SIZES.iter().sum();
        assert!(
            received > 2 * total as u64,
            "{received} bytes came in messages"
        );
    }
}

#[test]
fn a_share_that_seals_goes_in_messages() {
    let direct = Direct::with(|config| config.shares[0].encryption_required = true);
    let received = round_trips(&direct, direct.options());
    assert!(received > 20 << 20, "{received} bytes came in messages");
}
