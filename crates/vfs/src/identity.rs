//! The Unix credentials of a thread.
//!
//! The server runs as root, or as an ordinary user. As root, it runs the operations of a session
//! under the Unix credentials of its token: effective user, effective group and supplementary
//! groups of the *calling thread*. It sets them by system calls, which affect one thread. The C
//! library's functions of the same names would change every thread of the process. As an ordinary
//! user, all operations run as that user, and this module does nothing.
//!
//! The credentials of a thread stay set until the next switch, so a sequence of operations of one
//! user costs no system call. Before a thread acts as the server itself, it calls [`own`]: for
//! example, to submit to a ring without a personality, or to open a configuration file.
//!
//! # Why the effective user and not the file-system user
//!
//! `setfsuid` drops the file capabilities, but not CAP_SYS_RESOURCE and CAP_SYS_ADMIN. With the
//! first, a user could use the reserved blocks of ext4 and exceed a quota. It also does not report
//! failure. `setresuid(-1, uid, -1)` makes the kernel clear the whole effective set, and reports
//! failure. The real and the saved user stay root. So the thread can switch back, and processes of
//! the user cannot signal the server.
//!
//! # Fail closed
//!
//! If a switch fails, the operation fails and the thread's credentials count as unknown: the next
//! operation sets all of them. A new thread starts in the same state, because it inherits the
//! credentials of its parent but not the parent's record of them.

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

use proto::token::Token;
use rustix::process::{Gid, Uid, getegid, geteuid, getgroups};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use wire::Status;

/// Maximum number of supplementary groups in a [`Token`], the Unix credentials of a user:
/// NGROUPS_MAX of the kernel. A switch to a token with more groups fails with ACCESS_DENIED.
pub const MAX_GROUPS: usize = 65_536;

/// The id that the kernel interprets as "no change"; it is not a valid user or group.
const NO_CHANGE: u32 = u32::MAX;
/// Code of the refusal to assume an identity, in the log.
pub const REFUSED_CODE: &str = "access-identity-not-assumed";

/// The identity of the process.
struct Process {
    token: Arc<Token>,
    /// Whether the process is root, and can switch to other users.
    switches: bool,
}

thread_local! {
    /// The credentials of this thread; `None` while they are unknown.
    static CURRENT: RefCell<Option<Arc<Token>>> = const { RefCell::new(None) };
}

/// The identity of the process, determined once, before any thread switches to another user.
fn process() -> &'static Process {
    static PROCESS: OnceLock<Process> = OnceLock::new();
    PROCESS.get_or_init(|| {
        let groups = getgroups()
            .unwrap_or_default()
            .into_iter()
            .map(Gid::as_raw)
            .collect();
        let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
        Process {
            token: Arc::new(Token::new(uid, gid, groups)),
            switches: uid == 0,
        }
    })
}

/// Returns true if file operations run with the Unix credentials of each client's user, because the
/// process is root. If false, all operations have the credentials of the process.
pub fn switches() -> bool {
    process().switches
}

/// The credentials of the process.
pub(crate) fn process_token() -> Arc<Token> {
    process().token.clone()
}

/// Returns the Unix credentials with which a file operation for `token` runs: `token` itself if the
/// process is root, otherwise those of the process.
pub fn effective(token: &Arc<Token>) -> Arc<Token> {
    match process().switches {
        true => token.clone(),
        false => process().token.clone(),
    }
}

/// Switches this thread to the Unix credentials `token` of a user, until the next switch. Does
/// nothing if the process is not root.
///
/// # Errors
/// ACCESS_DENIED or another status when the kernel refuses the switch. The credentials of the
/// thread are then unknown.
pub fn assume(token: &Arc<Token>) -> Result<(), Status> {
    if !process().switches {
        return Ok(());
    }
    CURRENT.with_borrow_mut(|current| {
        let is_current = |is: &Arc<Token>| Arc::ptr_eq(is, token) || is == token;
        if current.as_ref().is_some_and(is_current) {
            return Ok(());
        }
        // Unknown until all system calls have succeeded.
        *current = None;
        switch(token)?;
        *current = Some(token.clone());
        Ok(())
    })
}

/// Switches this thread back to the Unix credentials of the server process, after [`assume`].
///
/// # Errors
/// ACCESS_DENIED or another status when the kernel refuses the switch.
pub fn own() -> Result<(), Status> {
    assume(&process().token)
}

/// Sets effective user, effective group and supplementary groups of this thread. Becomes root
/// first, because only root may set others.
fn switch(token: &Token) -> Result<(), Status> {
    let Token {
        uid, gid, groups, ..
    } = token;
    let is_invalid = *uid == NO_CHANGE || *gid == NO_CHANGE || groups.contains(&NO_CHANGE);
    if is_invalid || groups.len() > MAX_GROUPS {
        return Err(Status::ACCESS_DENIED);
    }
    let groups: Vec<Gid> = groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
    let set = || {
        set_thread_res_uid(None, Uid::ROOT, None)?;
        set_thread_groups(&groups)?;
        set_thread_res_gid(None, Gid::from_raw(*gid), None)?;
        set_thread_res_uid(None, Uid::from_raw(*uid), None)
    };
    set().map_err(|error| {
        let code = REFUSED_CODE;
        tracing::error!(%error, uid, gid, code, "cannot switch to the credentials of a user");
        Status::ACCESS_DENIED
    })
}
