//! Security descriptors. The user of the share has the SIDs of its uid and gid.

use std::sync::Arc;

use proto::file::{
    Existing, FileOp, KindWanted, LocalOpen, OpenPlan, Opened, Operation, SecurityChange,
};
use wire::Status;
use wire::access::AccessMask;
use wire::security::{SecurityDescriptor, SecurityInformation};

use crate::share::Share;

const DACL: SecurityInformation = SecurityInformation::DACL;

/// The descriptor in SDDL, with USER and GROUP for the user of the share.
fn sddl(share: &Share, text: &str) -> SecurityDescriptor {
    let user = format!("S-1-22-1-{}", share.token.uid);
    let group = format!("S-1-22-2-{}", share.token.gid);
    let text = text.replace("USER", &user).replace("GROUP", &group);
    text.parse().expect("SDDL")
}

fn set(
    share: &Share,
    file: LocalOpen,
    parts: SecurityInformation,
    text: &str,
) -> Result<(), Status> {
    let change = Box::new(SecurityChange {
        parts,
        descriptor: sddl(share, text),
    });
    share.unit(&FileOp::OnOpen(file, Operation::SetSecurity(change)))
}

fn get(share: &Share, file: LocalOpen) -> SecurityDescriptor {
    let op = FileOp::OnOpen(file, Operation::QuerySecurity);
    share.execute(&op).expect("a descriptor").expect_security()
}

/// Asserts the DACL of a file.
fn assert_dacl(share: &Share, file: LocalOpen, text: &str) {
    let found = get(share, file).select(DACL);
    let expected = sddl(share, text);
    assert_eq!(found.to_sddl(), expected.to_sddl());
}

fn create_in(share: &Share, path: &str, kind: KindWanted) -> Result<Opened, Status> {
    share.open_plan(share.plan(path, Existing::Create, kind))
}

pub(crate) fn a_file_without_a_descriptor_has_that_of_its_mode(share: &Share) {
    let file = share.create("f").expect("a new file").file;
    let found = get(share, file);
    let expected = sddl(
        share,
        "O:USERG:GROUPD:P(A;;0x1e019f;;;USER)(A;;FR;;;GROUP)(A;;FR;;;WD)",
    );
    assert_eq!(found, expected);
}

pub(crate) fn a_descriptor_is_kept_as_sent(share: &Share) {
    let file = share.create("f").expect("a new file").file;
    let sent = "D:PARAI(A;;FA;;;USER)(D;;FW;;;S-1-5-21-1-2-3-1000)(A;ID;FR;;;WD)";
    set(share, file, DACL, sent).expect("a new list");
    assert_dacl(share, file, &sent.replace("PARAI", "PAI"));
    let owner = get(share, file).owner;
    assert_eq!(owner, sddl(share, "O:USER").owner);
    let sacl = SecurityInformation::SACL;
    set(share, file, sacl, "S:(AU;SAFA;FA;;;WD)").expect("a new list");
    assert_dacl(share, file, &sent.replace("PARAI", "PAI"));
    let found = get(share, file).select(sacl).to_sddl();
    assert_eq!(found.as_deref(), Some("S:(AU;SAFA;FA;;;WD)"));
    let again = share.open_for("f", AccessMask::READ_CONTROL).expect("it");
    assert_dacl(share, again.file, &sent.replace("PARAI", "PAI"));
}

pub(crate) fn a_descriptor_decides_about_opens(share: &Share) {
    let file = share.create("f").expect("a new file").file;
    set(share, file, DACL, "D:(A;;0x2;;;USER)").expect("a new list");
    for (access, allowed) in [
        (AccessMask::FILE_WRITE_DATA, true),
        (AccessMask::FILE_READ_ATTRIBUTES, true),
        (AccessMask::READ_CONTROL, true),
        (AccessMask::WRITE_DAC, true),
        (AccessMask::DELETE, true),
        (AccessMask::FILE_READ_DATA, false),
        (AccessMask::FILE_APPEND_DATA, false),
        (AccessMask::FILE_EXECUTE, false),
        (AccessMask::FILE_WRITE_ATTRIBUTES, false),
        (AccessMask::WRITE_OWNER, false),
    ] {
        let opened = share.open_for("f", access).map(|opened| opened.granted);
        let expected = if allowed {
            Ok(access)
        } else {
            Err(Status::ACCESS_DENIED)
        };
        assert_eq!(opened, expected, "{access:?}");
    }
    let most = share
        .open_for("f", AccessMask::MAXIMUM_ALLOWED)
        .expect("it");
    let expected = AccessMask::FILE_WRITE_DATA
        | AccessMask::FILE_READ_ATTRIBUTES
        | AccessMask::READ_CONTROL
        | AccessMask::WRITE_DAC
        | AccessMask::DELETE;
    assert_eq!((most.granted, most.maximal), (expected, expected));
    set(share, file, DACL, "D:(D;;FW;;;USER)(A;;FA;;;WD)").expect("a new list");
    let denied = share.open_for("f", AccessMask::FILE_WRITE_DATA);
    assert_eq!(denied, Err(Status::ACCESS_DENIED));
    assert!(share.open_for("f", AccessMask::FILE_READ_DATA).is_ok());
}

pub(crate) fn a_directory_grants_the_deletion_of_its_files(share: &Share) {
    let directory = share.directory("d");
    let file = share.create("d/f").expect("a new file").file;
    set(share, file, DACL, "D:(A;;FR;;;USER)").expect("a new list");
    let deletes = || share.open_for("d/f", AccessMask::DELETE).is_ok();
    assert!(deletes(), "the mode of the directory lets the user");
    set(share, directory, DACL, "D:(A;;0x27;;;USER)").expect("a new list");
    assert!(!deletes());
    set(share, directory, DACL, "D:(A;;0x67;;;USER)").expect("a new list");
    assert!(deletes(), "FILE_DELETE_CHILD");
}

pub(crate) fn a_directory_decides_about_new_files(share: &Share) {
    let directory = share.directory("d");
    let may = |kind| match create_in(share, "d/new", kind) {
        Ok(opened) => {
            share.unlink(opened.file).expect("it goes");
            share.close(opened.file);
            true
        }
        Err(status) => {
            assert_eq!(status, Status::ACCESS_DENIED);
            false
        }
    };
    set(share, directory, DACL, "D:(A;;0x2;;;USER)").expect("a new list");
    assert!(may(KindWanted::File) && !may(KindWanted::Directory));
    set(share, directory, DACL, "D:(A;;0x4;;;USER)").expect("a new list");
    assert!(!may(KindWanted::File) && may(KindWanted::Directory));
}

pub(crate) fn new_files_inherit(share: &Share) {
    let directory = share.directory("d");
    let of_directory = "D:ARAI(A;OICI;FA;;;CO)(A;OI;FR;;;WD)(A;;FA;;;USER)";
    set(share, directory, DACL, of_directory).expect("a new list");
    let file = create_in(share, "d/f", KindWanted::File).expect("a new file");
    assert_dacl(share, file.file, "D:AI(A;ID;FA;;;USER)(A;ID;FR;;;WD)");
    assert_eq!(file.granted, crate::share::ALL);
    let below = create_in(share, "d/e", KindWanted::Directory).expect("a new directory");
    let expected = "D:AI(A;ID;FA;;;USER)(A;OICIIOID;FA;;;CO)(A;OIIOID;FR;;;WD)";
    assert_dacl(share, below.file, expected);
    set(share, directory, DACL, "D:(A;;FA;;;USER)").expect("a new list");
    let plain = create_in(share, "d/g", KindWanted::File).expect("a new file");
    let expected = "D:P(A;;0x1e019f;;;USER)(A;;FR;;;GROUP)(A;;FR;;;WD)";
    assert_dacl(share, plain.file, expected);
    assert_dacl(share, file.file, "D:AI(A;ID;FA;;;USER)(A;ID;FR;;;WD)");
}

pub(crate) fn a_new_file_gets_the_descriptor_of_its_request(share: &Share) {
    let directory = share.directory("d");
    set(share, directory, DACL, "D:(A;OICI;FA;;;WD)").expect("a new list");
    let plan = share.plan("d/f", Existing::Create, KindWanted::File);
    let security = Some(Arc::new(sddl(share, "O:USERD:(A;;FR;;;USER)")));
    let created = share.open_plan(OpenPlan {
        security,
        ..plan.clone()
    });
    let created = created.expect("a new file");
    assert_dacl(share, created.file, "D:(A;;FR;;;USER)");
    assert_eq!(created.granted, crate::share::ALL);
    let security = Some(Arc::new(sddl(share, "O:BAD:(A;;FR;;;USER)")));
    let plan = OpenPlan {
        path: proto::path::SharePath::from_trusted("d/g"),
        security,
        ..plan
    };
    assert_eq!(share.open_plan(plan), Err(Status::INVALID_OWNER));
    assert_eq!(share.names("d"), ["f"], "the refused file is gone");
}

pub(crate) fn the_mode_wins_if_it_changes_later(share: &Share) {
    let file = share.create("f").expect("a new file").file;
    set(share, file, DACL, "D:(A;;FR;;;USER)(A;;FR;;;BA)").expect("a new list");
    let op = FileOp::OnOpen(
        file,
        Operation::SetMode {
            mode: 0o604,
            mask: 0o777,
        },
    );
    share.metadata(&op).expect("a new mode");
    assert_dacl(
        share,
        file,
        "D:P(A;;0x1e019f;;;USER)(A;;;;;GROUP)(A;;FR;;;WD)",
    );
    assert!(share.open_for("f", AccessMask::FILE_WRITE_DATA).is_ok());
}

pub(crate) fn users_give_files_to_themselves_only(share: &Share) {
    let file = share.create("f").expect("a new file").file;
    let (owner, group) = (SecurityInformation::OWNER, SecurityInformation::GROUP);
    let denied = Err(Status::INVALID_OWNER);
    assert_eq!(set(share, file, owner, "O:S-1-22-1-4242"), denied);
    assert_eq!(set(share, file, owner, "O:BA"), denied);
    assert_eq!(set(share, file, group, "G:S-1-22-2-4242"), denied);
    assert_eq!(set(share, file, owner | group, "O:USERG:GROUP"), Ok(()));
    assert_eq!(set(share, file, owner, "O:WD"), Ok(()));
    assert_eq!(get(share, file).owner, Some(wire::security::Sid::EVERYONE));
    assert_eq!(set(share, file, owner, "O:USER"), Ok(()));
    assert_eq!(get(share, file).owner, sddl(share, "O:USER").owner);
}
