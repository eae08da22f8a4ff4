//! smbeam and smbd grant the same rights to the same users: the maximal access of a file, the
//! rights of an open that asks for all of them, and each right alone. Each server sets the
//! descriptors once.

mod accounts;
mod cases;
mod differences;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, ensure};
use smbeam_tests::lab::Lab;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::session::{Connection, FILE_BEFORE, Request, Session};
use smbeam_tests::subject::{Plan, Server, Subject};
use smbeam_tests::tests;
use wire::security::SecurityDescriptor;

use accounts::ACCOUNTS;
use cases::{CASES, Case};
use differences::{REASONS, reason};

tests!(
    of_descriptors_that_smbeam_sets,
    of_descriptors_that_smbd_sets
);

/// The rights to ask for: those of files and the standard ones. [MS-SMB2] 2.2.13.1.1
const RIGHTS: [u32; 14] = [
    0x1, 0x2, 0x4, 0x8, 0x10, 0x20, 0x40, 0x80, 0x100, 0x1_0000, 0x2_0000, 0x4_0000, 0x8_0000,
    0x10_0000,
];
const READ_ATTRIBUTES: u32 = 0x80;
/// The right to change the DACL.
const WRITE_DAC: u32 = 0x4_0000;
const MAXIMUM_ALLOWED: u32 = 0x0200_0000;
/// The part of a descriptor to set. [MS-DTYP] 2.4.7
const DACL: u32 = 4;
const ACCESS_DENIED: u32 = 0xC000_0022;
/// Number of frames without an answer.
const AT_ONCE: usize = 64;

/// The cases with lists that smbd does not convert to lists of Linux: an entry allows what a later
/// one denies.
const REFUSED_BY_SMBD: &[&str] = &["deny-late", "not-canonical", "each-right-once"];

/// The settings of smbd for the descriptors of smbeam, and for guests.
const SETTINGS: [&str; 2] = ["vfs objects = acl_xattr", "map to guest = bad user"];

/// The rights of a user to a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Rights {
    /// From the context of the maximal access.
    maximal: u32,
    /// Those of an open that asks for MAXIMUM_ALLOWED; none where it fails.
    all: Option<u32>,
    /// Those with which an open succeeds that asks for one alone.
    single: u32,
}

/// The rights for each account and each case.
type Matrix = BTreeMap<(&'static str, &'static str), Rights>;

fn of_descriptors_that_smbeam_sets() -> Result<()> {
    compare(Subject::Smbeam)
}

fn of_descriptors_that_smbd_sets() -> Result<()> {
    compare(Subject::Samba)
}

fn compare(writer: Subject) -> Result<()> {
    let scratch = Scratch::new("access")?;
    let lab = accounts::lab(&scratch)?;
    let share = scratch.open_directory("share")?;
    make_files(&share)?;
    let smbeam = start(Subject::Smbeam, &lab, &share)?;
    // One smbd sets and checks: another one has another SID of the machine, and with it alice.
    let smbd = start(Subject::Samba, &lab, &share)?;
    let (writing, expected): (_, &[&str]) = match writer {
        Subject::Smbeam => (&smbeam, &[]),
        Subject::Samba => (&smbd, REFUSED_BY_SMBD),
    };
    let refused = set_descriptors(writing)?;
    ensure!(
        refused == expected,
        "{writer:?} refuses the lists of {refused:?}"
    );
    let (ours, theirs) = (matrix(&smbeam)?, matrix(&smbd)?);
    ensure!(
        ours.len() == ACCOUNTS.len() * CASES.len(),
        "cases have equal names"
    );
    let mut unexplained = Vec::new();
    let mut reasons = BTreeSet::new();
    for (key, ours) in &ours {
        let theirs = theirs.get(key).context("both have all files")?;
        let (account, case) = key;
        if ours == theirs || refused.contains(case) {
            continue;
        }
        match reason(*key, *ours, *theirs) {
            Some(name) => _ = reasons.insert(name),
            None => unexplained.push(format!("{account}, {case}:\n  {ours:x?}\n  {theirs:x?}")),
        }
    }
    let count = unexplained.len();
    ensure!(
        count == 0,
        "{count} differences:\n{}",
        unexplained.join("\n")
    );
    let known = REASONS.map(|(name, _)| name).into();
    ensure!(reasons == known, "only {reasons:?} explain differences");
    Ok(())
}

fn start(subject: Subject, lab: &Lab, share: &Path) -> Result<Server> {
    let mut plan = Plan::sharing(share);
    plan.shares[0].guests = true;
    plan.users = accounts::users();
    plan.samba_globals = SETTINGS.map(String::from).to_vec();
    Server::start_as(subject, Some(lab), None, plan)
}

/// Makes a directory with a file for each case.
fn make_files(share: &Path) -> Result<()> {
    for case in &CASES {
        let directory = share.join(case.name);
        let file = directory.join("file");
        fs::create_dir(&directory)?;
        fs::write(&file, "text")?;
        for (path, mode) in [(&directory, case.directory_mode), (&file, 0o644)] {
            let owner = accounts::id_of(case.owner);
            chown(path, Some(owner), Some(accounts::GROUP_OF_FILES))?;
            fs::set_permissions(path, Permissions::from_mode(mode))?;
        }
    }
    Ok(())
}

/// Sets the descriptors as the owners of the files. Returns the cases for which the server refuses
/// the list.
fn set_descriptors(server: &Server) -> Result<Vec<&'static str>> {
    let mut connection = Connection::open(server.tcp)?;
    let mut refused = Vec::new();
    for case in &CASES {
        let owner = connection.log_in(accounts::user(case.owner)?, "data")?;
        let directory = case.directory_sddl.map(|sddl| (case.name.to_owned(), sddl));
        for (path, sddl) in [(case.file(), case.file_sddl)].into_iter().chain(directory) {
            let status = set_list(&mut connection, owner, &path, sddl)?;
            if status == ACCESS_DENIED {
                refused.push(case.name);
                continue;
            }
            ensure!(status == 0, "{}, {path}: {status:#x}", case.name);
        }
    }
    Ok(refused)
}

/// Sets the DACL of a file. Returns the status.
fn set_list(connection: &mut Connection, owner: Session, path: &str, sddl: &str) -> Result<u32> {
    let descriptor = accounts::with_sids(sddl).parse::<SecurityDescriptor>();
    let descriptor = descriptor.map_err(|error| anyhow!("{sddl}: {error}"))?;
    let mut bytes = Vec::new();
    descriptor.encode(&mut bytes);
    let requests = [
        Request::open(path, WRITE_DAC),
        Request::set_security(FILE_BEFORE, DACL, &bytes),
        Request::close(FILE_BEFORE),
    ];
    let responses = connection.compound(owner, &requests)?;
    responses[0].expect("the open of the owner")?;
    Ok(responses[1].status)
}

/// The rights of all accounts to all files.
fn matrix(server: &Server) -> Result<Matrix> {
    let mut matrix = Matrix::new();
    for account in &ACCOUNTS {
        let mut connection = Connection::open(server.tcp)?;
        let session = connection.log_in(account.user, "data")?;
        for case in &CASES {
            let rights = rights_of(&mut connection, session, case)
                .with_context(|| format!("{}, {}", account.user.name, case.name))?;
            matrix.insert((account.user.name, case.name), rights);
        }
        single_rights(&mut connection, session, account.user.name, &mut matrix)?;
    }
    Ok(matrix)
}

/// The rights of the user to the file of a case, without those of single opens.
fn rights_of(connection: &mut Connection, session: Session, case: &Case) -> Result<Rights> {
    let open = |access| Request::open(&case.file(), access).with_maximal_access();
    let requests = [
        open(MAXIMUM_ALLOWED),
        Request::granted_access(FILE_BEFORE),
        Request::close(FILE_BEFORE),
    ];
    let responses = connection.compound(session, &requests)?;
    if responses[0].status != ACCESS_DENIED {
        responses[0].expect("the open for all rights")?;
        responses[1].expect("the query")?;
        let all = responses[1].data().first_chunk().copied();
        return Ok(Rights {
            maximal: responses[0].maximal_access()?,
            all: Some(u32::from_le_bytes(all.context("four bytes")?)),
            single: 0,
        });
    }
    let requests = [open(READ_ATTRIBUTES), Request::close(FILE_BEFORE)];
    let responses = connection.compound(session, &requests)?;
    responses[0].expect("the open for the attributes")?;
    Ok(Rights {
        maximal: responses[0].maximal_access()?,
        ..Rights::default()
    })
}

/// Opens each file with each right alone.
fn single_rights(
    connection: &mut Connection,
    session: Session,
    account: &'static str,
    matrix: &mut Matrix,
) -> Result<()> {
    let each = CASES
        .iter()
        .flat_map(|case| RIGHTS.map(|right| (case, right)));
    let opens: Vec<_> = each.collect();
    for opens in opens.chunks(AT_ONCE) {
        let mut asked = BTreeMap::new();
        for (case, right) in opens {
            let requests = [
                Request::open(&case.file(), *right),
                Request::close(FILE_BEFORE),
            ];
            asked.insert(connection.post(session, &requests)?, (case, right));
        }
        for response in connection.collect(2 * opens.len())? {
            let Some((case, right)) = asked.get(&response.message_id) else {
                continue;
            };
            if response.status == ACCESS_DENIED {
                continue;
            }
            response.expect(&format!("{account}, {}, {right:#x}", case.name))?;
            let rights = matrix.get_mut(&(account, case.name));
            rights.context("all cases were asked for")?.single |= **right;
        }
    }
    Ok(())
}
