//! The log can say which permission refuses an access.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use proto::path::SharePath;
use proto::report::NeededAccess;
use vfs::posix::Options;
use vfs::{Denial, FileSystem as _, Permission, identity};
use wire::access::AccessMask;

use crate::share::{LocalDirectory, user};

const READ: NeededAccess = NeededAccess::Open(AccessMask::FILE_READ_DATA);
const WRITE: NeededAccess = NeededAccess::Open(AccessMask::FILE_WRITE_DATA);
const DELETE: NeededAccess = NeededAccess::Open(AccessMask::DELETE);
const CHMOD: NeededAccess = NeededAccess::Open(AccessMask::WRITE_DAC);

/// The tree of a user with the id 2001: `open` (0755), `open/file` (0600), `open/shared` (0666),
/// `closed` (0700), `closed/file`, and `all` (1777) with `all/file`.
fn tree() -> LocalDirectory {
    let local = LocalDirectory::new(Options::default());
    let ann = local.as_user(user(2001, &[]));
    let mode = |name: &str, mode| {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(local.path(name), mode).expect("a chmod");
    };
    mode("", 0o777);
    for (directory, permissions) in [("open", 0o755), ("closed", 0o700), ("all", 0o1777)] {
        ann.directory(directory);
        ann.file(&format!("{directory}/file"), b"data");
        mode(&format!("{directory}/file"), 0o600);
        mode(directory, permissions);
    }
    ann.file("open/shared", b"data");
    mode("open/shared", 0o666);
    local
}

/// The path that refuses the first of these accesses to the user 2002, and the missing permission.
fn denied(local: &LocalDirectory, needs: &[(&str, NeededAccess)]) -> Option<(String, Denial)> {
    let needs: Vec<_> = needs
        .iter()
        .map(|(path, access)| (SharePath::from_trusted(path), *access))
        .collect();
    let denial = local.posix.find_denial(&user(2002, &[]), &needs);
    denial.map(|denial| (denial.path.as_str().to_owned(), denial))
}

#[test]
fn a_denial_names_path_permission_mode_and_owner() {
    if !identity::switches() {
        println!("skipped: only root can become others");
        return;
    }
    let local = tree();
    let check = |needs: &[(&str, NeededAccess)], path: &str, missing, mode: u32| {
        let (found, denial) = denied(&local, needs).expect("a denial");
        assert_eq!((&*found, denial.missing), (path, missing), "{needs:?}");
        assert_eq!(denial.mode & 0o7777, mode, "{needs:?}");
        assert_eq!((denial.uid, denial.gid), (2001, 2001), "{needs:?}");
    };
    let search = Some(Permission::Search);
    let write = Some(Permission::Write);
    check(&[("closed/file", READ)], "closed", search, 0o700);
    check(&[("CLOSED/FILE", READ)], "closed", search, 0o700);
    check(
        &[("open/file", READ)],
        "open/file",
        Some(Permission::Read),
        0o600,
    );
    check(&[("open/file", WRITE)], "open/file", write, 0o600);
    check(&[("open/new", WRITE)], "open", write, 0o755);
    check(&[("open/shared", DELETE)], "open", write, 0o755);
    let owner = Some(Permission::Ownership);
    check(&[("all/file", DELETE)], "all", owner, 0o1777);
    check(&[("open/shared", CHMOD)], "open/shared", owner, 0o666);
    let rename = [
        ("all/new", NeededAccess::Add),
        ("open/new", NeededAccess::Add),
    ];
    check(&rename, "open", write, 0o755);
    // Not the permissions refuse this.
    check(&[("open/shared", WRITE)], "open/shared", None, 0o666);
    assert_eq!(denied(&local, &[("missing/file", READ)]), None);
}
