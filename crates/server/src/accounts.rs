//! Logins: tokens of clients go to `auth`, accounts come back with the rights they run with.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use auth::{
    Acceptor, FileTime, Realm, Refusal, Step, TargetNames, UserFile, UserFileError, UserKind, Users,
};
use proto::login::{Accepted, Account, AccountKind, Authenticate, Authenticated, ConversationId};
use tracing::{error, info, warn};
use wire::Status;

use crate::config::Config;
use crate::unix_account;
use crate::worker::Worker;

/// Logins of one connection that may be under way at one time. A client has one; more than these
/// are answered with a refusal.
const MAX_CONVERSATIONS: usize = 32;
/// Letters of a NetBIOS name.
const NETBIOS_LETTERS: usize = 15;

/// Who may log in, kept up to date with the file of users.
#[derive(Debug)]
pub struct Realms {
    names: TargetNames,
    allows_guest: bool,
    users: Mutex<Source>,
}

#[derive(Debug)]
enum Source {
    File(UserFile),
    Fixed(Arc<Users>),
}

impl Realms {
    /// The users of the configuration's file.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn from_config(config: &Config) -> Result<Self, UserFileError> {
        let source = match &config.server.users {
            Some(file) => Source::File(UserFile::load(Path::new(file))?),
            None => Source::Fixed(Arc::default()),
        };
        Ok(Self::new(config, source))
    }

    /// These users and no file.
    pub fn fixed(config: &Config, users: Users) -> Self {
        Self::new(config, Source::Fixed(Arc::new(users)))
    }

    fn new(config: &Config, source: Source) -> Self {
        Self {
            names: target_names(
                config
                    .server
                    .name
                    .clone()
                    .unwrap_or_else(crate::start::host_name),
            ),
            allows_guest: config.shares.iter().any(|share| share.guest),
            users: Mutex::new(source),
        }
    }

    /// What clients call the server.
    pub(crate) fn names(&self) -> &TargetNames {
        &self.names
    }

    /// Who may log in right now.
    fn current(&self) -> Arc<Realm> {
        // The thread may still act for the user of the last file operation, who may not read the
        // file of users. If it cannot get back, the file stays unread and the accounts as they are.
        let _ = vfs::identity::own();
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        let users = match &mut *users {
            Source::Fixed(users) => Arc::clone(users),
            Source::File(file) => {
                match file.reload_if_changed() {
                    Ok(true) => info!(file = %file.path().display(), "users read again"),
                    Ok(false) => {}
                    // A file that makes no sense for now leaves those in who were.
                    Err(error) => error!(%error, "users could not be read again"),
                }
                file.users()
            }
        };
        Arc::new(Realm {
            names: self.names.clone(),
            users,
            allows_anonymous: self.allows_guest,
            allows_guest: self.allows_guest,
        })
    }
}

fn target_names(host: String) -> TargetNames {
    let (name, domain) = match host.split_once('.') {
        Some((name, domain)) => (name.to_owned(), domain.to_owned()),
        None => (host.clone(), String::new()),
    };
    let netbios: String = name.to_uppercase().chars().take(NETBIOS_LETTERS).collect();
    TargetNames {
        netbios_computer: netbios.clone(),
        // A server without a domain is its own, as Windows and Samba have it.
        netbios_domain: netbios,
        dns_computer: host,
        dns_domain: domain,
    }
}

/// The logins of one connection that are under way.
pub(crate) struct Logins {
    worker: Rc<Worker>,
    conversations: BTreeMap<ConversationId, Acceptor>,
}

impl Logins {
    pub(crate) fn new(worker: Rc<Worker>) -> Self {
        Self {
            worker,
            conversations: BTreeMap::new(),
        }
    }

    /// Forgets a login.
    pub(crate) fn end(&mut self, conversation: ConversationId) {
        self.conversations.remove(&conversation);
    }

    /// Takes a login a leg further.
    pub(crate) fn step(&mut self, leg: Authenticate, peer: SocketAddr) -> Authenticated {
        let Authenticate {
            conversation,
            token,
        } = leg;
        let is_new = !self.conversations.contains_key(&conversation);
        if is_new && self.conversations.len() >= MAX_CONVERSATIONS {
            return Authenticated::Refused(Status::INSUFFICIENT_RESOURCES, Vec::new());
        }
        let realms = self.worker.realms();
        let acceptor = self
            .conversations
            .entry(conversation)
            .or_insert_with(|| Acceptor::new(realms.current()));
        let mut entropy = [0; 32];
        getrandom::fill(&mut entropy).expect("the kernel has random bytes");
        match acceptor.step(&token, FileTime::from(SystemTime::now()), &entropy) {
            Step::Continue(token) => Authenticated::Continue(token),
            Step::Done(accepted) => accept(*accepted, peer),
            Step::Refused { token, reason } => {
                warn!(%peer, %reason, "login refused");
                Authenticated::Refused(status_of(reason), token.unwrap_or_default())
            }
        }
    }
}

/// Finds the rights that an account runs with.
fn accept(accepted: auth::Accepted, peer: SocketAddr) -> Authenticated {
    let user = &accepted.user;
    let (kind, token) = match user.kind {
        UserKind::Named => {
            let unix = user.unix.as_deref().unwrap_or(&user.name);
            match unix_account::token(unix) {
                Ok(token) => (AccountKind::Named, token),
                Err(error) => {
                    warn!(%peer, user = %user.name, %error, "login refused");
                    return Authenticated::Refused(Status::LOGON_FAILURE, Vec::new());
                }
            }
        }
        UserKind::Guest => (AccountKind::Guest, unix_account::guest()),
        UserKind::Anonymous => (AccountKind::Anonymous, unix_account::guest()),
    };
    let session_key = if user.kind.has_keys() {
        accepted.full_session_key.to_vec()
    } else {
        Vec::new()
    };
    Authenticated::Accepted(Accepted {
        token: accepted.token,
        session_key,
        account: Account {
            name: accepted.user.name,
            kind,
            token,
        },
    })
}

/// What a client is told. It never learns whether the name or the password was wrong.
fn status_of(reason: Refusal) -> Status {
    match reason {
        Refusal::Disabled => Status::ACCOUNT_DISABLED,
        Refusal::Anonymous => Status::ACCESS_DENIED,
        Refusal::Malformed => Status::INVALID_PARAMETER,
        Refusal::BadUser
        | Refusal::BadPassword
        | Refusal::NtlmV1
        | Refusal::Downgrade
        | Refusal::MicMismatch
        | Refusal::MechListMicMismatch
        | Refusal::NoCommonMechanism => Status::LOGON_FAILURE,
    }
}
