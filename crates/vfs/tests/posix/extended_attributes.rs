//! Extended attributes on disk: the format of Samba, and attributes that local programs set.

use std::fs;

use proto::ea::Ea;
use proto::file::{FileOp, LocalOpen, Operation};
use rustix::fs::{XattrFlags, getxattr, setxattr};
use rustix::io::Errno;
use vfs::posix::Options;
use wire::Status;
use wire::access::AccessMask;

use crate::share::{LocalDirectory, Share};

fn ea(name: &[u8], value: &[u8]) -> Ea {
    Ea {
        name: name.to_vec(),
        value: value.to_vec(),
    }
}

fn eas(share: &Share, file: LocalOpen) -> Vec<Ea> {
    let outcome = share.execute(&FileOp::OnOpen(file, Operation::QueryEas));
    let mut eas = outcome.expect("attributes").expect_eas();
    eas.sort_by(|one, other| one.name.cmp(&other.name));
    eas
}

fn set(share: &Share, file: LocalOpen, eas: Vec<Ea>) -> Result<(), Status> {
    let op = FileOp::OnOpen(file, Operation::SetEas { eas });
    share.metadata(&op).map(drop)
}

/// Sets an attribute outside the server; `None` if the file system has none.
fn set_local(local: &LocalDirectory, file: &str, name: &str, value: &[u8]) -> Option<()> {
    match setxattr(local.path(file), name, value, XattrFlags::empty()) {
        Err(Errno::OPNOTSUPP) => {
            println!("skipped: no extended attributes here");
            None
        }
        result => {
            result.expect("an attribute");
            Some(())
        }
    }
}

#[test]
fn values_are_stored_as_samba_does() {
    let local = LocalDirectory::new(Options::default());
    let file = local.share.create("f").expect("a new file").file;
    if set_local(&local, "f", "user.Known", b"1").is_none() {
        return;
    }
    let changes = vec![
        ea(b"KNOWN", b"two"),
        ea("gr\u{F6}\u{DF}e".as_bytes(), b"3\0"),
    ];
    assert_eq!(set(&local.share, file, changes), Ok(()));
    let read = |name: &str| {
        let mut value = [0; 16];
        let length = getxattr(local.path("f"), name, &mut value[..]);
        length.map(|length| value[..length].to_vec())
    };
    assert_eq!(read("user.Known"), Ok(b"two".to_vec()));
    assert_eq!(read("user.gr\u{F6}\u{DF}e"), Ok(b"3\0".to_vec()));
    assert_eq!(read("user.KNOWN"), Err(Errno::NODATA));
}

#[test]
fn attributes_of_local_programs_are_seen_unless_clients_cannot_use_them() {
    let local = LocalDirectory::new(Options::default());
    fs::write(local.path("f"), b"").expect("a file");
    if set_local(&local, "f", "user.xdg.origin.url", b"http://a").is_none() {
        return;
    }
    for (name, value) in [
        ("user.DosStream.a:$DATA", &b"stream\0"[..]),
        ("user.SmbReparse", b"x"),
        ("user.NTACL", b"x"),
        ("user.with:colon", b"x"),
        ("user.empty", b""),
    ] {
        set_local(&local, "f", name, value);
    }
    // The open needs no right: the core decides.
    let file = local.share.open_for("f", AccessMask::FILE_READ_ATTRIBUTES);
    let file = file.expect("a file").file;
    let seen = [ea(b"xdg.origin.url", b"http://a")];
    assert_eq!(eas(&local.share, file), seen);
}

#[test]
fn more_attributes_than_clients_can_read_do_not_fill_the_memory() {
    let local = LocalDirectory::new(Options::default());
    let file = local.share.create("f").expect("a new file").file;
    let mut count = 0;
    while count < 40 {
        let path = local.path("f");
        let name = format!("user.n{count}");
        // ext4 has room for few of them.
        if setxattr(path, name.as_str(), &[1; 60_000], XattrFlags::empty()).is_err() {
            break;
        }
        count += 1;
    }
    let seen = eas(&local.share, file);
    let length: usize = seen.iter().map(Ea::entry_len).sum();
    assert!(length <= 4 * proto::ea::LIST_MAX, "{length}");
    if count == 40 {
        let added = set(&local.share, file, vec![ea(b"more", b"1")]);
        assert_eq!(added, Err(Status::EA_TOO_LARGE));
        assert_eq!(set(&local.share, file, vec![ea(b"n0", b"")]), Ok(()));
    }
}

#[test]
fn a_value_that_the_disk_cannot_hold_is_too_large() {
    let local = LocalDirectory::new(Options::default());
    let file = local.share.create("f").expect("a new file").file;
    let largest = ea(b"a", &[1; 65_000]);
    match set(&local.share, file, vec![largest.clone()]) {
        Ok(()) => assert_eq!(eas(&local.share, file), [largest]),
        Err(status) => {
            let expected = [Status::EA_TOO_LARGE, Status::EAS_NOT_SUPPORTED];
            assert!(expected.contains(&status), "{status:?}");
            assert_eq!(eas(&local.share, file), []);
        }
    }
}
