//! The identity of the server in logins, and the accounts that may log in.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use auth::{
    AcceptorConfig, ChangedLogins, FileTime, GuestLogins, MechanismProvider, TargetNames, UserFile,
    UserFileError, Users,
};
use proto::login::AccountsRevision;
use tracing::{error, info};
use wire::security::Sid;
use wire::upcase::upcased;

use crate::codes::{Reason as _, RefusedConfig};
use crate::config::Config;
use crate::host_name::host_name;
use crate::sids::{self, Domain, MappingError, Sids};

/// Longest NetBIOS name, in characters.
const NETBIOS_NAME_MAX: usize = 15;

/// The server's names for NTLM logins, and the accounts that may log in. A running server notices
/// changes of the user file within a second.
#[derive(Debug)]
pub struct Accounts {
    names: TargetNames,
    users: Mutex<VersionedUsers>,
    /// Mechanisms in addition to NTLM.
    mechanisms: Vec<Arc<dyn MechanismProvider>>,
    /// Domains of accounts in addition to those of the system.
    domains: Vec<Arc<dyn Domain>>,
}

#[derive(Debug)]
struct VersionedUsers {
    source: Source,
    guests: Guests,
    revision: AccountsRevision,
    /// App passwords that expired up to this time have no sessions.
    expired_until: FileTime,
}

/// The logins without a password.
#[derive(Clone, Copy, Debug)]
struct Guests {
    allows_anonymous: bool,
    logins: GuestLogins,
}

impl Guests {
    fn new(config: &Config) -> Self {
        Self {
            allows_anonymous: config.shares.iter().any(|share| share.guest),
            logins: guest_logins(config),
        }
    }
}

/// The accounts of a changed configuration.
#[derive(Debug)]
pub(crate) struct ChangedAccounts {
    /// `None` for accounts that do not change while the server runs.
    source: Option<Source>,
    guests: Guests,
}

#[derive(Debug)]
enum Source {
    File {
        file: UserFile,
        /// The logged reason why the file was not read again.
        error: Option<String>,
    },
    /// Without a user file no account exists.
    None,
    /// The accounts do not change.
    Fixed(Arc<Users>),
}

impl Source {
    fn load(config: &Config) -> Result<Self, UserFileError> {
        let Some(file) = &config.server.users else {
            return Ok(Self::None);
        };
        Ok(Self::File {
            file: UserFile::load(Path::new(file))?,
            error: None,
        })
    }

    fn users(&self) -> Arc<Users> {
        match self {
            Self::File { file, .. } => file.users(),
            Self::None => Arc::default(),
            Self::Fixed(users) => Arc::clone(users),
        }
    }
}

impl Accounts {
    /// Loads the accounts from the user file of the configuration. Without a user file no account
    /// exists.
    ///
    /// # Errors
    /// The file cannot be read, others than its owner can read it, or it is malformed.
    pub fn from_config(config: &Config) -> Result<Self, UserFileError> {
        Ok(Self::new(config, Source::load(config)?))
    }

    /// Makes accounts from `users`, which do not change while the server runs. `config` supplies
    /// the server's name for NTLM logins, and whether guests may log in.
    pub fn fixed(config: &Config, users: Users) -> Self {
        Self::new(config, Source::Fixed(Arc::new(users)))
    }

    fn new(config: &Config, source: Source) -> Self {
        Self {
            names: target_names(config.server.name.clone().unwrap_or_else(host_name)),
            users: Mutex::new(VersionedUsers {
                source,
                guests: Guests::new(config),
                revision: AccountsRevision::default(),
                expired_until: FileTime::from(SystemTime::now()),
            }),
            mechanisms: Vec::new(),
            domains: Vec::new(),
        }
    }

    /// Adds a domain: its SIDs count for accounts of Unix, and clients can ask for its names.
    pub fn add_domain(&mut self, domain: Arc<dyn Domain>) {
        self.domains.push(domain);
    }

    /// The SIDs and names of all accounts. Makes the SID of the server if it has none. Reads files
    /// and may block.
    ///
    /// # Errors
    /// The mapping file is not valid.
    pub(crate) fn sids(&self, config: &Config) -> Result<Sids, MappingError> {
        let local = sids::local_sid(&config.state_directory());
        self.sids_with(config, local)
    }

    /// As [`sids`](Self::sids), with this SID of the server.
    pub(crate) fn sids_with(&self, config: &Config, local: Sid) -> Result<Sids, MappingError> {
        let mapping = config.server.sid_map.as_deref();
        Sids::new(
            &self.names.netbios_computer,
            local,
            mapping,
            self.domains.clone(),
        )
    }

    /// Adds a mechanism.
    #[cfg(test)]
    pub(crate) fn add_mechanism(&mut self, mechanism: Arc<dyn MechanismProvider>) {
        self.mechanisms.push(mechanism);
    }

    /// The names of the server that clients see.
    pub(crate) fn names(&self) -> &TargetNames {
        &self.names
    }

    /// Loads the accounts of a changed configuration. They do not count yet.
    ///
    /// # Errors
    /// As [`from_config`](Self::from_config).
    pub(crate) fn changed(&self, config: &Config) -> Result<ChangedAccounts, UserFileError> {
        let current = &self.lock().source;
        let source = match current {
            Source::Fixed(_) => None,
            Source::None | Source::File { .. } => Some(Source::load(config)?),
        };
        if let (Source::File { file: old, .. }, Some(Source::File { file, .. })) =
            (current, &source)
        {
            check_emptied(old, file)?;
        }
        Ok(ChangedAccounts {
            source,
            guests: Guests::new(config),
        })
    }

    /// Uses the accounts of a changed configuration. Calls `changed` as [`current`](Self::current)
    /// does.
    pub(crate) fn change(
        &self,
        accounts: ChangedAccounts,
        changed: impl Fn(&ChangedLogins, AccountsRevision),
    ) {
        let mut versioned = self.lock();
        versioned.guests = accounts.guests;
        let Some(source) = accounts.source else {
            return;
        };
        let (earlier, users) = (versioned.source.users(), source.users());
        versioned.source = source;
        versioned.revision.0 += 1;
        for logins in users.changes_since(&earlier) {
            changed(&logins, versioned.revision);
        }
    }

    /// The accounts that may log in now. Reads the user file if it has changed, so it may block.
    /// Calls `changed` for the logins that no longer count, before any login uses the new accounts:
    /// those of changed accounts and of app passwords that have expired since the last call.
    pub(crate) fn current(
        &self,
        changed: impl Fn(&ChangedLogins, AccountsRevision),
    ) -> (Arc<AcceptorConfig>, AccountsRevision) {
        // The thread may still have the credentials of the last file operation, which cannot read
        // the user file. If it cannot restore those of the process, the accounts stay unchanged.
        let _ = vfs::identity::own();
        let mut versioned = self.lock();
        let VersionedUsers {
            source,
            guests,
            revision,
            expired_until,
        } = &mut *versioned;
        if let Source::File { file, error } = source {
            let earlier = file.users();
            if reload(file, error) {
                revision.0 += 1;
                for logins in file.users().changes_since(&earlier) {
                    changed(&logins, *revision);
                }
            }
        }
        let now = FileTime::from(SystemTime::now());
        let expired = source.users().expired_between(*expired_until, now);
        *expired_until = now;
        if !expired.is_empty() {
            revision.0 += 1;
            for logins in expired {
                changed(&logins, *revision);
            }
        }
        let config = AcceptorConfig {
            names: self.names.clone(),
            users: source.users(),
            allows_anonymous: guests.allows_anonymous,
            guests: guests.logins,
            mechanisms: self.mechanisms.clone(),
        };
        (Arc::new(config), *revision)
    }

    /// The names of the groups of an account: those of the user file, and those of its Unix account
    /// (`unix`). A group of the user file hides the Unix group of the same name.
    pub(crate) fn groups(&self, account: &str, unix: Vec<String>) -> Arc<[String]> {
        group_names(&self.lock().source.users(), account, unix)
    }

    /// The accounts from the last read of the user file.
    pub(crate) fn users(&self) -> Arc<Users> {
        self.lock().source.users()
    }

    fn lock(&self) -> MutexGuard<'_, VersionedUsers> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The names of the groups of an account; see [`Accounts::groups`].
pub(crate) fn group_names(users: &Users, account: &str, unix: Vec<String>) -> Arc<[String]> {
    let of_file = users.groups().filter(|group| group.has(account));
    let of_file = of_file.map(|group| group.name.clone());
    let of_unix = unix.into_iter();
    let of_unix = of_unix.filter(|name| users.find_group(name).is_none());
    of_file.chain(of_unix).collect()
}

/// Reads the user file again if it has changed. An invalid or missing file does not lock anyone
/// out: the old accounts stay. The log has each reason once. Returns true if the accounts are new.
fn reload(file: &mut UserFile, logged: &mut Option<String>) -> bool {
    match file.reload_if_changed() {
        Ok(true) => {
            info!(file = %file.path().display(), "user file reloaded");
            *logged = None;
            true
        }
        Ok(false) => {
            if logged.take().is_some() {
                info!(file = %file.path().display(), "the old user file is back");
            }
            false
        }
        Err(error) => {
            let error = error.to_string();
            if logged.as_ref() != Some(&error) {
                let code = RefusedConfig::Users.code();
                error!(%error, code, "cannot reload the user file: using the old accounts");
                *logged = Some(error);
            }
            false
        }
    }
}

/// Another program may write the file at this moment: an empty one does not end all sessions.
fn check_emptied(old: &UserFile, new: &UserFile) -> Result<(), UserFileError> {
    let is_emptied = old.path() == new.path()
        && old.list().len() > 0
        && std::fs::metadata(new.path()).is_ok_and(|found| found.len() == 0);
    match is_emptied {
        true => Err(UserFileError::Emptied(new.path().to_owned())),
        false => Ok(()),
    }
}

pub(crate) fn guest_logins(config: &Config) -> GuestLogins {
    let mut guest_shares = config.shares.iter().filter(|share| share.guest).peekable();
    if guest_shares.peek().is_none() {
        GuestLogins::Refused
    } else if guest_shares.any(|share| share.guest_unknown_users) {
        GuestLogins::ByUnknownName
    } else {
        GuestLogins::ByName
    }
}

fn target_names(host: String) -> TargetNames {
    let (name, domain) = match host.split_once('.') {
        Some((name, domain)) => (name.to_owned(), domain.to_owned()),
        None => (host.clone(), String::new()),
    };
    let netbios: String = upcased(&name).chars().take(NETBIOS_NAME_MAX).collect();
    TargetNames {
        netbios_computer: netbios.clone(),
        // Like Windows and Samba: a server without a domain uses its own name as the domain.
        netbios_domain: netbios,
        dns_computer: host,
        dns_domain: domain,
    }
}
