//! Extended attributes.

use proto::ea::Ea;
use proto::file::{FileOp, LocalOpen, Operation};
use wire::Status;

use crate::share::Share;

fn ea(name: &str, value: &[u8]) -> Ea {
    Ea {
        name: name.as_bytes().to_vec(),
        value: value.to_vec(),
    }
}

fn set(share: &Share, file: LocalOpen, eas: &[Ea]) -> Result<(), Status> {
    let eas = eas.to_vec();
    let op = FileOp::OnOpen(file, Operation::SetEas { eas });
    share.metadata(&op).map(drop)
}

/// The attributes of a file, by name.
fn eas(share: &Share, file: LocalOpen) -> Vec<Ea> {
    let outcome = share.execute(&FileOp::OnOpen(file, Operation::QueryEas));
    let mut eas = outcome.expect("attributes").expect_eas();
    eas.sort_by(|one, other| one.name.cmp(&other.name));
    eas
}

/// Whether the file system stores extended attributes; prints a message if not.
fn has_attributes(share: &Share, file: LocalOpen) -> bool {
    let volume = share.execute(&FileOp::OnOpen(file, Operation::Volume));
    let volume = volume.expect("a volume").expect_volume();
    if !volume.has_extended_attributes {
        println!("skipped: no extended attributes here");
    }
    volume.has_extended_attributes
}

pub(crate) fn extended_attributes_are_set_replaced_and_deleted(share: &Share) {
    let file = share.file("f", b"");
    assert_eq!(eas(share, file), []);
    if !has_attributes(share, file) {
        assert_eq!(
            set(share, file, &[ea("a", b"1")]),
            Err(Status::EAS_NOT_SUPPORTED)
        );
        return;
    }
    let (one, two) = (ea("One", b"1"), ea("two", &[7; 1000]));
    assert_eq!(set(share, file, &[one.clone(), two.clone()]), Ok(()));
    assert_eq!(eas(share, file), [one, two]);
    let changes = [ea("ONE", b"other"), ea("Two", b""), ea("none", b"")];
    assert_eq!(set(share, file, &changes), Ok(()));
    assert_eq!(eas(share, file), [ea("One", b"other")]);
    // Two spellings in one list are one attribute.
    assert_eq!(set(share, file, &[ea("x", b"1"), ea("X", b"2")]), Ok(()));
    assert_eq!(eas(share, file), [ea("One", b"other"), ea("x", b"2")]);
}

pub(crate) fn directories_have_extended_attributes(share: &Share) {
    let directory = share.directory("d");
    if !has_attributes(share, directory) {
        return;
    }
    assert_eq!(set(share, directory, &[ea("a", b"1")]), Ok(()));
    assert_eq!(eas(share, directory), [ea("a", b"1")]);
}

pub(crate) fn reserved_extended_attributes_are_refused_before_any_change(share: &Share) {
    let file = share.file("f", b"");
    if !has_attributes(share, file) {
        return;
    }
    for name in ["DOSATTRIB", "dosstream.s:$DATA", "SmbReparse", "NTACL"] {
        let refused = set(share, file, &[ea("a", b"1"), ea(name, b"x")]);
        assert_eq!(refused, Err(Status::ACCESS_DENIED), "{name}");
    }
    assert_eq!(eas(share, file), []);
}

pub(crate) fn extended_attributes_have_a_maximum_length(share: &Share) {
    let file = share.file("f", b"");
    if !has_attributes(share, file) {
        return;
    }
    let many: Vec<Ea> = (0..9)
        .map(|number| ea(&format!("name{number}"), &[1; 8000]))
        .collect();
    let refused = set(share, file, &many);
    assert_eq!(refused, Err(Status::EA_TOO_LARGE));
    assert_eq!(eas(share, file), []);
    let long = ea(&"n".repeat(251), b"1");
    assert_eq!(set(share, file, &[long]), Err(Status::INVALID_EA_NAME));
    let longest = ea(&"n".repeat(250), b"1");
    assert_eq!(set(share, file, std::slice::from_ref(&longest)), Ok(()));
    assert_eq!(eas(share, file), [longest]);
}
