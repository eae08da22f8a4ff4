//! `smbeam mount` of a server that sends wrong names, numbers, sizes and listings: no path leads
//! out of the mount, and no program waits without an end.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use anyhow::{Context as _, Result, ensure};
use smbeam_client::Transport;
use smbeam_tests::fuse::FuseMount;
use smbeam_tests::subject::Subject;
use smbeam_tests::wait;
use wire::compound::Members;
use wire::header::HEADER_LEN;
use wire::text::utf16;
use wire::{Command as SmbCommand, Flags, Header, Status, read};

use crate::fuse_mounts_work::mount_with;
use crate::rig::{Peer, Rig, TIME_LIMIT, pattern};

smbeam_tests::tests!(
    names_do_not_leave_their_directory,
    wrong_numbers_and_sizes_mix_up_no_files,
    short_responses_are_completed,
    a_listing_without_an_end_can_be_left,
    links_in_a_circle_end,
);

/// Bytes in front of a frame. \[MS-SMB2\] 2.1
const PREFIX_LEN: usize = 4;
/// Entries of an endless listing that a program takes.
const TAKEN: usize = 500;

/// Changes a frame of the server before the client receives it.
type Change = Arc<dyn Fn(Vec<u8>) -> Vec<u8> + Send + Sync>;

fn rig() -> Result<Rig> {
    Rig::new(Peer {
        subject: Subject::Smbeam,
        transport: Transport::Tcp,
    })
}

/// Mounts the share through a relay that changes the frames of the server.
fn mount(rig: &Rig, options: &str, change: Change) -> Result<FuseMount> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let target = rig.endpoint().port;
    thread::spawn(move || {
        for client in listener.incoming() {
            let client = client?;
            let server = TcpStream::connect((Ipv4Addr::LOCALHOST, target))?;
            relay(&client, &server, Arc::new(|frame| frame))?;
            relay(&server, &client, Arc::clone(&change))?;
        }
        io::Result::Ok(())
    });
    mount_with(rig, (port, options), "mount")
}

fn relay(from: &TcpStream, to: &TcpStream, change: Change) -> io::Result<()> {
    let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
    thread::spawn(move || {
        while let Ok(frame) = frame(&mut from) {
            let frame = change(frame);
            let len = u32::try_from(frame.len()).expect("a frame is short");
            if to
                .write_all(&[&len.to_be_bytes()[..], &frame].concat())
                .is_err()
            {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    });
    Ok(())
}

fn frame(from: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut prefix = [0; PREFIX_LEN];
    from.read_exact(&mut prefix)?;
    let mut frame = vec![0; u32::from_be_bytes(prefix) as usize];
    from.read_exact(&mut frame)?;
    Ok(frame)
}

/// A change that replaces bytes by others of the same length, wherever they are.
fn replaced(pairs: Vec<(Vec<u8>, Vec<u8>)>) -> Change {
    Arc::new(move |mut frame| {
        for (old, new) in &pairs {
            assert_eq!(old.len(), new.len(), "offsets stay the same");
            while let Some(at) = frame.windows(old.len()).position(|it| it == old) {
                frame[at..at + new.len()].copy_from_slice(new);
            }
        }
        frame
    })
}

/// A response in the place of this one.
fn answer(frame: &[u8], status: Status, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let header = Header::decode(frame).expect("a response");
    let header = Header {
        status,
        next_command: 0,
        flags: Flags::SERVER_TO_REDIR,
        signature: [0; 16],
        ..header
    };
    let mut bytes = Vec::new();
    header.encode(&mut bytes);
    body(&mut bytes);
    bytes
}

fn command(frame: &[u8]) -> Option<SmbCommand> {
    Header::decode(frame).ok().map(|header| header.command)
}

fn names(directory: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(directory)?;
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

fn names_do_not_leave_their_directory() -> Result<()> {
    // Mapped names and exact names are decoded in separate places.
    for options in ["posix", "noposix"] {
        let rig = rig()?;
        let bad = ["../../x", "/etc/ab", "a\0bcdef", "..\0\0\0\0\0", "./././."];
        let mut pairs = Vec::new();
        for (number, bad) in bad.iter().enumerate() {
            let name = format!("name-{number:02}");
            fs::write(rig.path(&name), "outside")?;
            pairs.push((utf16(&name), utf16(bad)));
        }
        // Two files with one name.
        for name in ["twin-a", "twin-b", "good"] {
            fs::write(rig.path(name), name)?;
        }
        pairs.push((utf16("twin-b"), utf16("twin-a")));
        let mount = mount(&rig, options, replaced(pairs))?;
        let found: BTreeSet<_> = names(mount.target())?.into_iter().collect();
        let expected = BTreeSet::from(["good", "twin-a"].map(str::to_owned));
        ensure!(found == expected, "{options}: {found:?}");
        ensure!(fs::read(mount.target().join("twin-a"))? == b"twin-a");
        ensure!(fs::read(mount.target().join("good"))? == b"good");
    }
    Ok(())
}

fn wrong_numbers_and_sizes_mix_up_no_files() -> Result<()> {
    let rig = rig()?;
    fs::write(rig.path("one"), "one")?;
    // A file with number and time of creation of another one is a link to it.
    let created = |name: &str| {
        fs::metadata(rig.path(name))
            .and_then(|it| it.created())
            .ok()
    };
    wait::until("another time of creation", TIME_LIMIT, || {
        let _ = fs::remove_file(rig.path("two"));
        fs::write(rig.path("two"), "two").is_ok() && created("one") != created("two")
    })?;
    fs::create_dir_all(rig.path("outer/inner"))?;
    fs::write(rig.path("outer/inner/file"), "deep")?;
    let lies = [
        (0x12_3456_789A_u64, i64::MAX as u64),
        (0x12_3456_789B, u64::MAX),
    ];
    for (index, (size, _)) in lies.iter().enumerate() {
        File::create(rig.path(&format!("size{index}")))?.set_len(*size)?;
    }
    let number =
        |name: &str| fs::metadata(rig.path(name)).map(|it| it.ino().to_le_bytes().to_vec());
    let mut pairs = vec![
        (number("two")?, number("one")?),
        (number("outer/inner")?, number("outer")?),
    ];
    let bytes = |it: u64| it.to_le_bytes().to_vec();
    pairs.extend(lies.map(|(size, lie)| (bytes(size), bytes(lie))));
    let mount = mount(&rig, "posix", replaced(pairs))?;
    let path = |name: &str| mount.target().join(name);
    let (one, two) = (File::open(path("one"))?, File::open(path("two"))?);
    for (file, expected) in [(&one, b"one"), (&two, b"two"), (&one, b"one")] {
        let mut buffer = [0; 8];
        let len = file.read_at(&mut buffer, 0)?;
        ensure!(
            &buffer[..len] == expected,
            "{:?} in place of another",
            &buffer[..len]
        );
    }
    ensure!(
        one.metadata()?.ino() != two.metadata()?.ino(),
        "two files are one"
    );
    // The directory is not above itself.
    ensure!(fs::read(path("outer/inner/file"))? == b"deep");
    ensure!(names(&path("outer/inner"))? == ["file"]);
    for name in ["size0", "size1"] {
        let file = File::open(path(name))?;
        ensure!(
            i64::try_from(file.metadata()?.len()).is_ok(),
            "{name} has no size"
        );
        let mut buffer = [1; 100];
        for at in [0, 1 << 40, (1 << 62) - 4096] {
            // An error and the end of the file are both right; a wait is not.
            let _ = file.read_at(&mut buffer, at);
        }
    }
    Ok(())
}

fn short_responses_are_completed() -> Result<()> {
    let rig = rig()?;
    let bytes = pattern(3_000_000, 1);
    fs::write(rig.path("file"), &bytes)?;
    let half: Change = Arc::new(|frame| {
        let is_read = command(&frame) == Some(SmbCommand::READ);
        let Some((response, data)) = read::Response::decode(&frame).ok().filter(|_| is_read) else {
            return frame;
        };
        let part = &data[..data.len().div_ceil(2)];
        answer(&frame, Status::SUCCESS, |body| {
            response.encode_head(part.len() as u32, body);
            body.extend_from_slice(part);
        })
    });
    for options in ["cache=strict", "cache=none"] {
        let mount = mount(&rig, options, Arc::clone(&half))?;
        ensure!(
            fs::read(mount.target().join("file"))? == bytes,
            "{options}: other data"
        );
        drop(mount);
        fs::remove_dir(rig.beside("mount"))?;
    }
    Ok(())
}

fn a_listing_without_an_end_can_be_left() -> Result<()> {
    let rig = rig()?;
    fs::create_dir(rig.path("directory"))?;
    fs::write(rig.path("directory/file"), "")?;
    let first = std::sync::Mutex::new(Vec::new());
    let endless: Change = Arc::new(move |frame| {
        let last = Members::new(&frame).map_while(Result::ok).last();
        let last = last.unwrap_or_default();
        if command(last) != Some(SmbCommand::QUERY_DIRECTORY) {
            return frame;
        }
        let status = Header::decode(last).map(|header| header.status);
        let mut first = first.lock().expect("no thread panics");
        match status {
            Ok(Status::SUCCESS) => {
                *first = last[HEADER_LEN..].to_vec();
                frame
            }
            // In place of the end, the same entries again.
            _ => answer(last, Status::SUCCESS, |body| body.extend(&*first)),
        }
    });
    let mount = mount(&rig, "posix", endless)?;
    let directory = mount.target().join("directory");
    let taken = fs::read_dir(&directory)?.take(TAKEN);
    let taken = taken.collect::<io::Result<Vec<_>>>()?;
    ensure!(taken.len() == TAKEN, "the listing ends");
    let mut lists = Command::new("ls")
        .arg("-f")
        .arg(&directory)
        .stdout(Stdio::piped())
        .spawn()?;
    let mut output = lists.stdout.take().context("the output is a pipe")?;
    output.read_exact(&mut [0; 1])?;
    lists.kill()?;
    let end = wait::for_end(&mut lists, TIME_LIMIT)?;
    ensure!(end.is_some(), "ls is stuck");
    ensure!(fs::read(directory.join("file"))?.is_empty());
    Ok(())
}

fn links_in_a_circle_end() -> Result<()> {
    let rig = rig()?;
    symlink("two", rig.path("one"))?;
    symlink("one", rig.path("two"))?;
    let mount = mount(&rig, "posix", replaced(vec![]))?;
    const ELOOP: i32 = 40;
    for name in ["one", "two/x"] {
        let error = fs::read(mount.target().join(name))
            .err()
            .context("a loop was read")?;
        ensure!(error.raw_os_error() == Some(ELOOP), "{name}: {error}");
    }
    Ok(())
}
