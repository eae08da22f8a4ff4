//! Servers that do less than others, or say what leads nowhere.

mod rig;

use rig::meddler::{answer, command, meddler};
use rig::{Rig, SHARE, connect, options, pattern};
use smbeam_client::{Error, OpenOptions, Session, Wait};
use wire::compound::Members;
use wire::fsctl::{AllocatedRange, CtlCode};
use wire::header::HEADER_LEN;
use wire::text::utf16;
use wire::{Command, Status, error_response, ioctl, read};

/// What a server that says the same for ever may be asked for until it is a hang.
const ANSWERS: usize = 2000;

/// A session whose server's frames are changed on their way.
fn session(rig: &Rig, to_client: impl FnMut(Vec<u8>) -> Vec<u8> + Send + 'static) -> Session {
    let mut to_client = to_client;
    let to_client = move |frame| vec![to_client(frame)];
    let port = meddler(
        rig.port(),
        Box::new(|frame| vec![frame]),
        Box::new(to_client),
    );
    connect(port, options()).expect("a session")
}

fn both() -> OpenOptions {
    OpenOptions::new().read(true).write(true).create(true)
}

/// The function whose answer a frame is.
fn function(frame: &[u8]) -> Option<CtlCode> {
    match command(frame) {
        Some(Command::IOCTL) => ioctl::Response::decode(frame).ok().map(|it| it.ctl_code),
        _ => None,
    }
}

#[test]
fn a_copy_through_this_machine_counts_what_there_was() {
    let rig = Rig::new();
    let session = session(&rig, |frame| match function(&frame) {
        Some(CtlCode::SRV_REQUEST_RESUME_KEY) => answer(&frame, Status::NOT_SUPPORTED, |body| {
            error_response::Response::PLAIN.encode(body);
        }),
        _ => frame,
    });
    let share = session.share(SHARE).wait().expect("a share");
    let bytes = pattern(100_000, 1);
    std::fs::write(rig.path("from"), &bytes).expect("a file");
    let from = share.open("from", &both()).wait().expect("open");
    let to = share.open("to", &both()).wait().expect("open");
    let copied = from.copy_range_to(&to, 0, 0, 200_000).wait();
    assert_eq!(copied.expect("copied"), 100_000);
    assert!(std::fs::read(rig.path("to")).expect("on disk") == bytes);
}

#[test]
fn what_a_short_answer_leaves_out_is_read() {
    let rig = Rig::new();
    let session = session(&rig, |frame| {
        let is_read = command(&frame) == Some(Command::READ);
        let Some((response, data)) = read::Response::decode(&frame).ok().filter(|_| is_read) else {
            return frame;
        };
        let part = &data[..data.len().div_ceil(2)];
        answer(&frame, Status::SUCCESS, |body| {
            response.encode_head(part.len() as u32, body);
            body.extend_from_slice(part);
        })
    });
    let share = session.share(SHARE).wait().expect("a share");
    let bytes = pattern(3_000_000, 1);
    std::fs::write(rig.path("file"), &bytes).expect("a file");
    let file = share.open("file", &both()).wait().expect("open");
    let mut back = vec![0; bytes.len()];
    file.read_exact_at_blocking(&mut back, 0).expect("read");
    assert!(back == bytes);
    let (count, back) = file.read_at(vec![0; 5_000_000], 1000).wait();
    assert_eq!(count.expect("read"), bytes.len() - 1000);
    assert!(back[..bytes.len() - 1000] == bytes[1000..]);
    let back = file.read(100_000, 2_950_000).wait().expect("read");
    assert!(back[..] == bytes[2_950_000..]);
    let ranges = vec![(5, vec![0; 70_000]), (2_999_999, vec![0; 7])];
    let read = file.read_ranges(ranges).wait();
    let counts: Vec<_> = read.iter().map(|(count, _)| count.as_ref().ok()).collect();
    assert_eq!(counts, [Some(&70_000), Some(&1)]);
    assert!(read[0].1 == bytes[5..70_005] && read[1].1[0] == bytes[2_999_999]);
}

/// Lists an empty directory of a server that makes the first answer, which has the dots, into what
/// it says in the place of the end; what came of it.
fn listed(mut again: impl FnMut(&[u8]) -> Vec<u8> + Send + 'static) -> Option<Error> {
    let rig = Rig::new();
    let (mut first, mut answers) = (Vec::new(), 0);
    let session = session(&rig, move |frame| {
        let last = Members::new(&frame).map_while(Result::ok).last();
        let last = last.unwrap_or_default();
        if command(last) != Some(Command::QUERY_DIRECTORY) {
            return frame;
        }
        if first.is_empty() {
            first = last[HEADER_LEN..].to_vec();
            return frame;
        }
        answers += 1;
        match answers < ANSWERS {
            true => answer(last, Status::SUCCESS, |body| body.extend(again(&first))),
            false => frame,
        }
    });
    let share = session.share(SHARE).wait().expect("a share");
    let mut listing = share.read_dir("", "*").wait().expect("a listing");
    listing
        .next()
        .wait()
        .map(|entry| entry.expect_err("there is nothing"))
}

#[test]
fn a_listing_that_leads_nowhere_ends() {
    /// An answer without anything. \[MS-SMB2\] 2.2.34
    const NOTHING: [u8; 9] = [9, 0, 72, 0, 0, 0, 0, 0, 0];
    for error in [listed(|_| NOTHING.to_vec()), listed(<[u8]>::to_vec)] {
        assert!(matches!(error, Some(Error::Protocol { .. })), "{error:?}");
    }
}

#[test]
fn a_name_that_no_client_can_use_does_not_end_a_listing() {
    let rig = Rig::new();
    for name in ["bad-1", "bad-2", "good"] {
        std::fs::write(rig.path(name), name).expect("a file");
    }
    // The names have the same length, so the entries stay in their places.
    let surrogate = [&[0x00, 0xd8][..], &utf16("ad-2")].concat();
    let changes = [
        (utf16("bad-1"), utf16("b/d-1")),
        (utf16("bad-2"), surrogate),
    ];
    let session = session(&rig, move |mut frame| {
        for (name, other) in &changes {
            let found = frame.windows(name.len()).position(|bytes| bytes == name);
            if let Some(start) = found {
                frame[start..start + other.len()].copy_from_slice(other);
            }
        }
        frame
    });
    let share = session.share(SHARE).wait().expect("a share");
    let listing = share
        .read_dir("", "*")
        .wait()
        .expect("a listing")
        .blocking();
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for entry in listing {
        match entry {
            Ok(entry) => good.push(entry.name),
            Err(Error::InvalidName(name, _)) => bad.push(name),
            Err(error) => panic!("{error}"),
        }
    }
    bad.sort();
    assert_eq!(good, ["good"]);
    assert_eq!(bad, ["b/d-1", "\u{fffd}ad-2"]);
}

#[test]
fn ranges_without_end_are_too_many() {
    let rig = Rig::new();
    let mut start = 0;
    let session = session(&rig, move |frame| {
        if function(&frame) != Some(CtlCode::QUERY_ALLOCATED_RANGES) || start >= 1 << 24 {
            return frame;
        }
        let mut output = Vec::new();
        for _ in 0..4096 {
            let range = AllocatedRange {
                file_offset: start,
                length: 1,
            };
            range.encode(&mut output);
            start += 2;
        }
        let response = ioctl::Response::decode(&frame).expect("an answer");
        let response = ioctl::Response {
            output: &output,
            ..response
        };
        answer(&frame, Status::BUFFER_OVERFLOW, |body| {
            response.encode(body);
        })
    });
    let share = session.share(SHARE).wait().expect("a share");
    let file = share.open("file", &both()).wait().expect("open");
    let error = file.allocated_ranges(0..1 << 40).wait().err();
    assert!(matches!(error, Some(Error::Protocol { .. })), "{error:?}");
}
