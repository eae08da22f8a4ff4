//! The rights in which smbd differs, each with its reason.

use super::{READ_ATTRIBUTES, Rights};

const DELETE: u32 = 0x1_0000;
/// The rights that come from the conversion of FR. [MS-SMB2] 2.2.13.1.1
const FILE_GENERIC_READ: u32 = 0x12_0089;
const READ_DATA: u32 = 1;
/// The rights to write and to append data.
const WRITES: u32 = 0x6;
const EXECUTE: u32 = 0x20;
/// READ_CONTROL and WRITE_DAC.
const OF_OWNER: u32 = 0x6_0000;

/// A difference: the rights of smbd that follow from ours, if it applies to the case.
type Difference = fn(case: &str, owns: bool, ours: Rights) -> Option<Rights>;

/// The differences by the names of their reasons.
pub(super) const REASONS: [(&str, Difference); 6] = [
    ("accounts of other machines", accounts_of_other_machines),
    ("deletion needs the directory", deletion_needs_the_directory),
    ("NULL list", null_list),
    ("group of users", group_of_users),
    ("write without read", write_without_read),
    ("refusal of the kernel", refusal_of_the_kernel),
];

/// The reason why the rights of a user to the file of a case differ; none: it is a fault.
pub(super) fn reason(key: (&str, &str), ours: Rights, theirs: Rights) -> Option<&'static str> {
    let (account, case) = key;
    let owns = account == "alice" && case != "of-bob";
    let mut reasons = REASONS.iter();
    let found = reasons.find(|(_, difference)| difference(case, owns, ours) == Some(theirs));
    found.map(|(name, _)| *name)
}

/// The owner of a file has what its list grants to accounts that the server does not have. smbd
/// grants no more than to any owner. (github.com/Cinchoo/ChoEazyCopy/issues/65)
fn accounts_of_other_machines(case: &str, owns: bool, _: Rights) -> Option<Rights> {
    let rights = READ_ATTRIBUTES | DELETE | OF_OWNER;
    (case == "administrators" && owns).then_some(Rights {
        maximal: rights,
        all: Some(rights),
        single: rights,
    })
}

/// DELETE also needs the permission of Unix to remove the name from the directory: an open fails
/// instead of the deletion later, which smbd refuses with ACCESS_DENIED.
fn deletion_needs_the_directory(case: &str, _: bool, ours: Rights) -> Option<Rights> {
    let is_closed = ["closed-directory", "delete-only", "no-delete-child"].contains(&case);
    is_closed.then(|| Rights {
        maximal: ours.maximal | DELETE,
        all: ours.all.map(|all| all | DELETE),
        single: ours.single | DELETE,
    })
}

/// A NULL list grants everything. smbd agrees about single rights, but it calculates the maximal
/// access as if the list were empty. (libcli/security/access_check.c, access_check_max_allowed)
fn null_list(case: &str, owns: bool, ours: Rights) -> Option<Rights> {
    let owner = if owns { OF_OWNER } else { 0 };
    let maximal = READ_ATTRIBUTES | DELETE | owner;
    (case == "null").then_some(Rights {
        maximal,
        all: Some(maximal),
        ..ours
    })
}

/// Every user that has logged in is a member of Users. smbd has this group only with winbindd.
/// (source3/auth/token_util.c, create_builtin_users)
fn group_of_users(case: &str, owns: bool, ours: Rights) -> Option<Rights> {
    let owner = if owns { OF_OWNER } else { 0 };
    let without = |rights: u32| rights & !FILE_GENERIC_READ | READ_ATTRIBUTES | owner;
    (case == "users").then(|| Rights {
        maximal: without(ours.maximal),
        all: ours.all.map(without),
        single: without(ours.single),
    })
}

/// An open for all rights of a user that may write and not read has the rights to write. smbd opens
/// such a file for reading and writing, and the kernel refuses.
fn write_without_read(_: &str, _: bool, ours: Rights) -> Option<Rights> {
    let all = ours.all?;
    let is_without_read = all & READ_DATA == 0 && all & WRITES != 0;
    is_without_read.then_some(Rights { all: None, ..ours })
}

/// The kernel refuses data that the descriptor grants, where the lists of Linux cannot express it:
/// for Guests, for Authenticated Users (as smbd converts them), and for reading and writing through
/// two groups. An open for all rights has the others. That of smbd fails.
fn refusal_of_the_kernel(_: &str, _: bool, ours: Rights) -> Option<Rights> {
    let refused = ours.maximal & !ours.all?;
    let is_of_data = refused != 0 && refused & !(READ_DATA | WRITES | EXECUTE) == 0;
    is_of_data.then_some(Rights { all: None, ..ours })
}
