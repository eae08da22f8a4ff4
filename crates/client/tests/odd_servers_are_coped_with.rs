//! Servers that do less than others, or say what leads nowhere.

mod rig;

use client::{OpenOptions, Session, Wait};
use rig::meddler::{answer, command, meddler};
use rig::{Rig, SHARE, connect, options, pattern};
use wire::fsctl::CtlCode;
use wire::{Command, Status, error_response, ioctl};

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
