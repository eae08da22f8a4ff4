//! The identity of the server in logins, and the accounts that may log in.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use auth::{AcceptorConfig, MechanismProvider, TargetNames, UserFile, UserFileError, Users};
use tracing::{error, info};
use wire::upcase::upcased;

use crate::config::Config;
use crate::host_name::host_name;

/// Longest NetBIOS name, in characters.
const NETBIOS_NAME_MAX: usize = 15;

/// The server's names for NTLM logins, and the accounts that may log in. After a change of the user
/// file, the next login uses the new accounts.
#[derive(Debug)]
pub struct Accounts {
    names: TargetNames,
    allows_guest: bool,
    users: Mutex<Source>,
    /// Mechanisms in addition to NTLM.
    mechanisms: Vec<Arc<dyn MechanismProvider>>,
}

#[derive(Debug)]
enum Source {
    File(UserFile),
    Fixed(Arc<Users>),
}

impl Accounts {
    /// Loads the accounts from the user file of the configuration. Without a user file no account
    /// exists.
    ///
    /// # Errors
    /// The file cannot be read, others than its owner can read it, or it is malformed.
    pub fn from_config(config: &Config) -> Result<Self, UserFileError> {
        let source = match &config.server.users {
            Some(file) => Source::File(UserFile::load(Path::new(file))?),
            None => Source::Fixed(Arc::default()),
        };
        Ok(Self::new(config, source))
    }

    /// Makes accounts from `users`, which do not change while the server runs. `config` supplies
    /// the server's name for NTLM logins, and whether guests may log in.
    pub fn fixed(config: &Config, users: Users) -> Self {
        Self::new(config, Source::Fixed(Arc::new(users)))
    }

    fn new(config: &Config, source: Source) -> Self {
        Self {
            names: target_names(config.server.name.clone().unwrap_or_else(host_name)),
            allows_guest: config.shares.iter().any(|share| share.guest),
            users: Mutex::new(source),
            mechanisms: Vec::new(),
        }
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

    /// The accounts that may log in now. Reads the user file if it has changed.
    pub(crate) fn current(&self) -> Arc<AcceptorConfig> {
        // The thread may still have the credentials of the last file operation, which cannot read
        // the user file. If it cannot restore those of the process, the accounts stay unchanged.
        let _ = vfs::identity::own();
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        let users = match &mut *users {
            Source::Fixed(users) => Arc::clone(users),
            Source::File(file) => {
                match file.reload_if_changed() {
                    Ok(true) => info!(file = %file.path().display(), "user file reloaded"),
                    Ok(false) => {}
                    // An invalid file does not lock anyone out: the old accounts stay.
                    Err(error) => {
                        error!(%error, "cannot reload the user file: using the old accounts");
                    }
                }
                file.users()
            }
        };
        Arc::new(AcceptorConfig {
            names: self.names.clone(),
            users,
            allows_anonymous: self.allows_guest,
            allows_guest: self.allows_guest,
            mechanisms: self.mechanisms.clone(),
        })
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
