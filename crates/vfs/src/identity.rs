//! Whose rights a thread has.
//!
//! The server runs as root, or as an ordinary user. As root, what is done for a session runs
//! under the Unix credentials of its token: effective user, effective group and further groups of
//! the *calling thread*, set by system calls that concern this thread alone, never by the C
//! library's functions of the same names, which change every thread of the process. As an
//! ordinary user everything runs as that user, and nothing here does anything.
//!
//! The credentials stay set until somebody sets others: many operations of one user in a row cost
//! no system call. So whatever a thread does as the server itself - submit to a ring without a
//! personality, open a file of the configuration - it does after [`own`].
//!
//! # Why the effective and not the file-system user
//!
//! `setfsuid` drops the capabilities that have to do with files, but not CAP_SYS_RESOURCE, with
//! which a user could fill what ext4 reserves for root and exceed a quota, nor CAP_SYS_ADMIN; and
//! it does not say whether it succeeded. `setresuid(-1, uid, -1)` makes the kernel clear the whole
//! effective set, and says so. The real and the saved user stay root: that is the way back, and
//! it keeps the user's own processes from signalling the server.
//!
//! # Fail closed
//!
//! A switch that fails fails the operation, and the thread's credentials count as unknown: the
//! next operation sets all of them again. A new thread begins like that too, as it inherits the
//! credentials of its parent and not the parent's knowledge of them.

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

use proto::token::Token;
use rustix::process::{Gid, Uid, getegid, geteuid, getgroups};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use wire::Status;

/// Further groups of a token at most: what the kernel takes (NGROUPS_MAX).
pub const MAX_GROUPS: usize = 65_536;

/// The id that means "leave as it is" to the kernel, and so is nobody's.
const NOBODY: u32 = u32::MAX;

/// Who the process is.
struct Process {
    token: Arc<Token>,
    /// Whether it can become others.
    switches: bool,
}

thread_local! {
    /// The credentials of this thread; `None` where they are not known.
    static CURRENT: RefCell<Option<Arc<Token>>> = const { RefCell::new(None) };
}

/// Who the process is; asked once, before any thread has become somebody else.
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
            token: Arc::new(Token { uid, gid, groups }),
            switches: uid == 0,
        }
    })
}

/// Whether operations run under the credentials of their tokens: whether the process is root.
pub fn switches() -> bool {
    process().switches
}

/// Whose rights an operation with a token has: the token's, or the process's own where it cannot
/// become others.
pub fn effective(token: &Arc<Token>) -> Arc<Token> {
    match process().switches {
        true => token.clone(),
        false => process().token.clone(),
    }
}

/// Makes this thread act for a token until somebody says otherwise. Where the process is not root
/// nothing changes.
pub fn assume(token: &Arc<Token>) -> Result<(), Status> {
    if !process().switches {
        return Ok(());
    }
    CURRENT.with_borrow_mut(|current| {
        let is_current = |is: &Arc<Token>| Arc::ptr_eq(is, token) || is == token;
        if current.as_ref().is_some_and(is_current) {
            return Ok(());
        }
        // Unknown until all of it has succeeded.
        *current = None;
        switch(token)?;
        *current = Some(token.clone());
        Ok(())
    })
}

/// Makes this thread act for the server itself.
pub fn own() -> Result<(), Status> {
    assume(&process().token)
}

/// Sets effective user and group and the further groups of this thread. As root first, since
/// nobody else may.
fn switch(token: &Token) -> Result<(), Status> {
    let Token { uid, gid, groups } = token;
    let is_nobody = *uid == NOBODY || *gid == NOBODY || groups.contains(&NOBODY);
    if is_nobody || groups.len() > MAX_GROUPS {
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
        tracing::error!(%error, uid, gid, "cannot take on the credentials of a user");
        Status::ACCESS_DENIED
    })
}
