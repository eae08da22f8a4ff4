//! READ and WRITE over SMB Direct, on emulated RDMA: the data are what they were, whichever way
//! they went, and however the connections end.

mod rig;

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs, io};

use rdma::emulated::VARIABLE;
use rig::{Rig, SHARE, options, pattern};
use smbeam_client::transfer::{LocalFile, Source, TransferOptions, upload};
use smbeam_client::{
    Channels, Client, File, OpenOptions, Options, Protection, RdmaChoice, Session, Transport, Wait,
};
use smbeam_server::config::{Config, unplaced};
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
        options()
            .transports(Transport::SmbDirect)
            .rdma(RdmaChoice::Emulated(self.meeting.path().to_owned()))
            .channels(Channels::Exactly(1))
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

/// A file that is only read from.
struct Pages(LocalFile);

impl Source for Pages {
    fn file(&mut self) -> io::Result<Option<Arc<fs::File>>> {
        panic!("the device sends from memory that it knows, not from new memory for each piece")
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(offset, buffer)
    }
}

#[test]
fn a_file_of_this_machine_is_read_into_memory_that_the_device_knows() {
    let direct = Direct::new();
    let session = direct.connect(direct.options());
    let share = session.share(SHARE).wait().expect("a share");
    let bytes = pattern(9_000_001, 3);
    let local = tempfile::NamedTempFile::new().expect("a file");
    fs::write(local.path(), &bytes).expect("written");
    let mut pages = Pages(fs::File::open(local.path()).expect("open").into());
    let new = OpenOptions::new().write(true).create(true);
    let file = share.open("file", &new).wait().expect("open");
    let how = TransferOptions::default();
    let sent = upload(&file, 0..u64::MAX, &mut pages, &how, &mut |_| ()).wait();
    assert_eq!(sent.expect("sent"), bytes.len() as u64);
    assert!(fs::read(direct.rig.path("file")).expect("on disk") == bytes);
}

#[test]
fn files_are_what_they_were_where_both_ends_poll_on() {
    let direct = Direct::with(|config| config.rdma.busy_poll_us = unplaced(2_000));
    let options = direct.options().rdma_busy_poll(Duration::from_millis(2));
    let received = round_trips(&direct, options);
    assert!(received < 1 << 20, "{received} bytes came in messages");
}

/// So a client that came another way finds it.
#[test]
fn the_server_says_where_it_takes_smb_direct() {
    let direct = Direct::new();
    let session = direct.connect(direct.options());
    let interfaces = session.interfaces().wait().expect("a list");
    assert!(interfaces.iter().all(|interface| interface.is_rdma_capable));
    let rig = Rig::new();
    let interfaces = rig.session().interfaces().wait().expect("a list");
    assert!(!interfaces.iter().any(|interface| interface.is_rdma_capable));
}

#[test]
fn what_is_protected_goes_in_messages() {
    let direct = Direct::new();
    for protection in [Protection::Sign, Protection::Encrypt] {
        let options = direct.options().protection(protection);
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

/// A session, and the file that all write to.
fn open_at_last(options: &Options) -> (Session, File) {
    loop {
        // The login may fail, too.
        let client = Client::new(options.clone()).expect("a client");
        let credentials = rig::credentials();
        let connecting = client.connect("127.0.0.1", Some(PORT), &credentials);
        let Ok(session) = connecting.wait() else {
            continue;
        };
        let new = OpenOptions::new().read(true).write(true).create(true);
        if let Ok(share) = session.share(SHARE).wait()
            && let Ok(file) = share.open("file", &new).wait()
        {
            return (session, file);
        }
    }
}

/// Faults of the emulated devices are for a whole process: this test starts itself again with them.
fn with_faults(test: &str, faults: &[&str], storm: fn()) {
    if env::var_os(VARIABLE).is_some() {
        return storm();
    }
    for faults in faults {
        let mut again = Command::new(env::current_exe().expect("this test"));
        again.args(["--exact", test, "--nocapture"]);
        let status = again.env(VARIABLE, faults).status().expect("it starts");
        assert!(status.success(), "with {faults}");
    }
}

/// Bytes of a piece, and how many of them.
const PIECE: usize = 256 << 10;
const PIECES: usize = 80;
/// Bytes of one request.
const IO_SIZE: usize = 64 << 10;

/// RDMA fails, and every connection with it: channels are opened again, and what they had not done
/// is done on others. Only where all are lost at once somebody hears of it, and comes again.
#[test]
fn devices_that_fail_lose_no_data() {
    let faults = ["seed=1,disconnect=150", "seed=2,key=60"];
    with_faults("devices_that_fail_lose_no_data", &faults, || {
        let direct = Direct::new();
        let options = direct
            .options()
            .channels(Channels::Exactly(4))
            .io_size(IO_SIZE as u32);
        let open = || open_at_last(&options);
        let (mut session, mut file) = open();
        let piece = |index: usize| pattern(PIECE, index as u64);
        let mut errors = 0;
        for is_write in [true, false] {
            let mut index = 0;
            while index < PIECES {
                let ranges: Vec<_> = (index..PIECES.min(index + 8)).collect();
                let count = ranges.len();
                let bytes: Vec<u8> = ranges.into_iter().flat_map(piece).collect();
                let offset = (index * PIECE) as u64;
                let result = match is_write {
                    true => file.write_at(bytes, offset).wait().0,
                    false => {
                        let (result, came) = file.read_at(vec![0; bytes.len()], offset).wait();
                        assert!(result.is_err() || came == bytes, "piece {index}");
                        result
                    }
                };
                match result {
                    Ok(_) => index += count,
                    Err(error) => {
                        eprintln!("{error}");
                        errors += 1;
                        assert!(errors < 50, "it gets on");
                        (session, file) = open();
                    }
                }
            }
        }
        // What channels that were lost have sent is counted no more.
        let channels = session.info().channels;
        let sent: u64 = channels.iter().map(|channel| channel.sent).sum();
        let requests = 2 * PIECES * (PIECE / IO_SIZE);
        let least = (requests * wire::write::HEAD_LEN) as u64;
        assert!(
            sent < least,
            "channels were lost: {sent} of {least} bytes, {channels:?}"
        );
        drop(session);
        let wanted: Vec<u8> = (0..PIECES).flat_map(piece).collect();
        assert!(fs::read(direct.rig.path("file")).expect("it is there") == wanted);
        eprintln!("{errors} errors");
    });
}

/// An RDMA READ that fails halfway, or of which nobody reports that it is done: the WRITE that
/// asked for it is not answered with success, and leaves nothing of its own in the file.
#[test]
fn a_write_is_all_there_or_not_at_all() {
    let faults = ["seed=1,torn=4", "seed=2,lost=30"];
    with_faults("a_write_is_all_there_or_not_at_all", &faults, || {
        let mut direct = Direct::new();
        let old: Vec<u8> = pattern(PIECES * IO_SIZE, 1);
        let new: Vec<u8> = pattern(PIECES * IO_SIZE, 2);
        fs::write(direct.rig.path("file"), &old).expect("the old bytes");
        let options = direct
            .options()
            .login_timeout(Duration::from_secs(1))
            .request_timeout(Some(Duration::from_millis(300)))
            // The test counts the failures that a new connection would hide.
            .reconnect_timeout(Duration::ZERO);
        let (mut session, mut file) = open_at_last(&options);
        let pieces = new.chunks(IO_SIZE).enumerate();
        let results: Vec<_> = pieces
            .map(|(index, piece)| {
                let offset = (index * IO_SIZE) as u64;
                let (result, _) = file.write_at(piece.to_vec(), offset).wait();
                if result.is_err() {
                    (session, file) = open_at_last(&options);
                }
                result.is_ok()
            })
            .collect();
        drop((session, file));
        // Nothing is under way any more.
        direct.rig.stop();
        let now = fs::read(direct.rig.path("file")).expect("it is there");
        let now = now.chunks(IO_SIZE).enumerate();
        for (index, piece) in now {
            let range = index * IO_SIZE..(index + 1) * IO_SIZE;
            let is_new = piece == &new[range.clone()];
            let is_old = piece == &old[range];
            assert!(is_new || is_old && !results[index], "piece {index}");
        }
        let good = results.iter().filter(|is_ok| **is_ok).count();
        assert!(
            (1..PIECES).contains(&good),
            "{good} of {PIECES} were written"
        );
    });
}
