//! What is written is what is read, in every size and with every protection.

mod rig;

use std::os::unix::fs::FileExt;
use std::time::{Duration, UNIX_EPOCH};

use rig::{Rig, SHARE, options, pattern};
use smbeam_client::transfer::{LocalFile, TransferOptions, download, upload};
use smbeam_client::{
    Changes, Channels, Io, OpenOptions, Options, Protection, Transport, Wait, WriteOptions,
};

fn round_trip(rig: &Rig, options: Options, sizes: &[usize]) {
    let session = rig.connect(options).expect("a session");
    let share = session.share(SHARE).wait().expect("a share");
    for size in sizes {
        let bytes = pattern(*size, *size as u64);
        let name = format!("file-{size}");
        let new = OpenOptions::new().read(true).write(true).create_new(true);
        let file = share.open(&name, &new).wait().expect("open");
        let (written, bytes) = file.write_at(bytes, 0).wait();
        assert_eq!(written.expect("write"), *size);
        assert_eq!(file.len().wait().expect("len"), *size as u64);
        let on_disk = std::fs::read(rig.path(&name)).expect("on disk");
        assert!(on_disk == bytes, "{size} bytes on disk");
        let (read, back) = file.read_at(vec![0; size + 10], 0).wait();
        assert_eq!(read.expect("read"), *size);
        assert!(back[..*size] == bytes, "{size} bytes read");
        file.close().wait().expect("close");
        assert!(share.read(&name).wait().expect("read") == bytes);
        share.remove_file(&name).wait().expect("remove");
        assert!(!rig.path(&name).exists());
    }
}

const SIZES: [usize; 9] = [
    0,
    1,
    4095,
    4097,
    65_536,
    65_537,
    1 << 20,
    (1 << 20) + 1,
    20_000_003,
];

#[test]
fn signed() {
    round_trip(&Rig::new(), options(), &SIZES);
}

#[test]
fn encrypted() {
    let options = options().protection(Protection::Encrypt);
    round_trip(&Rig::new(), options, &SIZES);
}

#[test]
fn with_epoll() {
    let options = options().io(Io::Epoll);
    round_trip(&Rig::new(), options, &SIZES);
}

/// Straight between a file of this machine and the connection, as far as the protection allows.
fn local_files(options: Options) {
    let rig = Rig::new();
    let session = rig.connect(options).expect("a session");
    let share = session.share(SHARE).wait().expect("a share");
    let transfer = TransferOptions::default()
        .io_size(400_000)
        .depth(4)
        .span(1_300_000);
    let bytes = pattern(3_000_001, 5);
    let up = tempfile::tempfile().expect("a file");
    up.write_all_at(&bytes, 0).expect("written");
    let new = OpenOptions::new().read(true).write(true).create(true);
    let file = share.open("file", &new).wait().expect("open");
    let mut source = LocalFile::from(up);
    let sent = upload(&file, 0..u64::MAX, &mut source, &transfer, &mut |_| {}).wait();
    assert_eq!(sent.expect("sent"), bytes.len() as u64);
    assert!(std::fs::read(rig.path("file")).expect("on disk") == bytes);
    let mut sink = LocalFile::from(tempfile::tempfile().expect("a file"));
    let got = download(&file, 0..u64::MAX, &mut sink, &transfer, &mut |_| {}).wait();
    assert_eq!(got.expect("got"), bytes.len() as u64);
    let mut back = vec![0; bytes.len()];
    sink.0.read_exact_at(&mut back, 0).expect("read");
    assert!(back == bytes);
}

#[test]
fn local_files_in_the_clear() {
    let plain = options().protection(Protection::AsAsked);
    local_files(plain.clone());
    local_files(plain.io(Io::Epoll));
}

#[test]
fn local_files_signed() {
    local_files(options().protection(Protection::Sign));
}

#[test]
fn local_files_sealed() {
    local_files(options().protection(Protection::Encrypt));
}

#[test]
fn small_files_take_one_message() {
    let rig = Rig::new();
    let share = rig.share();
    let bytes = pattern(1000, 7);
    let options = WriteOptions::default();
    share
        .write("small", bytes.clone(), &options)
        .wait()
        .expect("write");
    assert_eq!(std::fs::read(rig.path("small")).expect("on disk"), bytes);
    assert_eq!(share.read("small").wait().expect("read"), bytes);
}

#[test]
fn a_file_of_known_size_takes_one_message_and_gets_its_times() {
    let rig = Rig::new();
    let share = rig.share();
    let written = UNIX_EPOCH + Duration::new(1_000_000_000, 700);
    let options = WriteOptions::default().changes(Some(Changes::default().written(Some(written))));
    for size in [0, 1, 150_000, 1 << 20, (1 << 20) + 1, 3_000_000] {
        let bytes = pattern(size, 7);
        let write = share.write("known", bytes.clone(), &options);
        write.wait().expect("write");
        let metadata = std::fs::metadata(rig.path("known")).expect("on disk");
        assert_eq!(metadata.modified().expect("a time"), written);
        // What the listing said may be wrong by now.
        for expected in [0, 1, 150_000, u32::MAX] {
            let read = share.read_expecting("known", expected).wait();
            assert!(
                read.expect("read")[..] == bytes,
                "{expected} expected of {size}"
            );
        }
    }
}

#[test]
fn over_as_many_channels_as_the_server_allows() {
    let rig = Rig::new();
    for count in [2, 4] {
        let options = options().channels(Channels::Exactly(count));
        round_trip(&rig, options, &SIZES[4..]);
    }
}

#[test]
fn over_the_netbios_session_service() {
    let nbt = || vec![smbeam_server::config::unplaced("nbt:0".to_owned())];
    let rig = Rig::with(|config| config.server.transports = nbt());
    let options = options().transports(Transport::Nbt);
    round_trip(&rig, options, &SIZES);
}
