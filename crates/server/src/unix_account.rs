//! Unix accounts: the rights of file operations.

use std::fmt;
use std::sync::Arc;

use proto::token::{Logon, Token};

/// Reason why the Unix account of a user cannot be used for file operations.
#[derive(Debug, PartialEq, Eq)]
pub enum AccountError {
    /// The system has no Unix account with this name.
    Unknown(String),
    /// This account has the user id 0 under another name than root.
    HiddenRoot(String),
    /// The server does not run as root, so it cannot run operations as another account.
    NeedsRoot,
}

impl fmt::Display for AccountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "there is no Unix account `{name}`"),
            Self::HiddenRoot(name) => write!(
                f,
                "`{name}` has the user id 0: name another account, or root itself"
            ),
            Self::NeedsRoot => f.write_str("the server must run as root"),
        }
    }
}

impl std::error::Error for AccountError {}

/// The rights of the process.
pub(crate) fn own() -> Token {
    Token::new(
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
        rustix::process::getgroups()
            .map(|groups| {
                groups
                    .into_iter()
                    .map(rustix::process::Gid::as_raw)
                    .collect()
            })
            .unwrap_or_default(),
    )
}

/// Returns true if the server can run file operations with the permissions of each user: only if
/// the process is root. Otherwise all file operations have the permissions of the process.
pub fn may_assume_identities() -> bool {
    vfs::identity::switches()
}

/// The rights of a Unix account. Without root, all accounts have the rights of the process.
///
/// # Errors
/// There is no such account.
pub(crate) fn token(name: &str) -> Result<Arc<Token>, AccountError> {
    if !may_assume_identities() {
        return Ok(Arc::new(own()));
    }
    token_of_account(name).ok_or_else(|| AccountError::Unknown(name.into()))
}

/// The rights of a Unix account, also if this process cannot take them on. `None` if the system has
/// no such account.
pub(crate) fn token_of_account(name: &str) -> Option<Arc<Token>> {
    let user = uzers::get_user_by_name(name)?;
    let gid = user.primary_group_id();
    let groups = uzers::get_user_groups(name, gid).unwrap_or_default();
    let groups = groups
        .iter()
        .map(uzers::Group::gid)
        .filter(|other| *other != gid)
        .collect();
    Some(Arc::new(Token::new(user.uid(), gid, groups)))
}

/// The rights of a Unix account, and the names of its groups, the primary group included. Without
/// root, the names are those of the account, although the rights are those of the process; an
/// unknown account then has no groups.
///
/// # Errors
/// There is no such account.
pub(crate) fn identity(name: &str) -> Result<(Arc<Token>, Vec<String>), AccountError> {
    let token = token(name)?;
    let groups = uzers::get_user_by_name(name).and_then(|user| {
        let groups = uzers::get_user_groups(name, user.primary_group_id())?;
        let names = groups
            .iter()
            .map(|group| group.name().to_string_lossy().into_owned());
        Some(names.collect())
    });
    Ok((token, groups.unwrap_or_default()))
}

/// The rights of the account that owns all files of a share. It is root only if that is its name.
///
/// # Errors
/// There is no such account, it is root under another name, or the server is not root.
pub(crate) fn service(name: &str) -> Result<Arc<Token>, AccountError> {
    if !may_assume_identities() {
        return Err(AccountError::NeedsRoot);
    }
    let token = token(name)?;
    match token.is_root() && name != "root" {
        true => Err(AccountError::HiddenRoot(name.into())),
        false => Ok(token),
    }
}

/// The rights of guests and anonymous sessions: those of the Unix account `nobody`, without the
/// groups of users that have logged in with a password.
pub(crate) fn guest(logon: Logon) -> Arc<Token> {
    // The numbers of nobody and nogroup on Debian, for systems without this account.
    let token = token("nobody").map_or_else(
        |_| Token::new(65_534, 65_534, Vec::new()),
        |token| Token::clone(&token),
    );
    Arc::new(token.with_logon(logon))
}

/// The uid of a Unix account; `None` if the system has no such account. A client may write the name
/// in upper case.
pub(crate) fn uid(name: &str) -> Option<u32> {
    let user = uzers::get_user_by_name(name);
    let user = user.or_else(|| uzers::get_user_by_name(&name.to_lowercase()));
    Some(user?.uid())
}

/// The gid of a Unix group; `None` if the system has no such group. A client may write the name in
/// upper case.
pub(crate) fn gid(name: &str) -> Option<u32> {
    let group = uzers::get_group_by_name(name);
    let group = group.or_else(|| uzers::get_group_by_name(&name.to_lowercase()));
    Some(group?.gid())
}

/// The name of a Unix group; `None` if the system has no such group.
pub(crate) fn group_name(gid: u32) -> Option<String> {
    let group = uzers::get_group_by_gid(gid)?;
    Some(group.name().to_string_lossy().into_owned())
}

/// Returns the name of the Unix account with this user id; `None` if the system has no such
/// account.
pub fn account_name(uid: u32) -> Option<String> {
    let user = uzers::get_user_by_uid(uid)?;
    Some(user.name().to_string_lossy().into_owned())
}
