//! The shares of a server, and the file system of each.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use proto::audit::Rules;
use proto::file::{LocalEvent, ShareId};
use proto::server::config::{Share, ShareKind, SyncPolicy};
use proto::server::hosts::HostRules;
use proto::server::share_users::ShareUsers;
use proto::token::Token;
use tracing::warn;
use vfs::accounts::Accounts;
use vfs::{FileSystem, posix};

use crate::codes::{Reason as _, RefusedConfig};
use crate::config::{Config, Names, ShareSection, host_rules, share_users};
use crate::error::StartError;
use crate::unix_account;

/// The shares of a server. A change of the configuration makes a new value.
#[derive(Default)]
pub(crate) struct Shares {
    /// The file systems, by increasing [`ShareId`]: those of the current shares, and those of
    /// replaced or removed shares until no tree connect uses them.
    served: Vec<Served>,
    /// The highest identifier that was used.
    last: u32,
    /// The audit rules of the current shares, by name. A share keeps them when it changes: present
    /// tree connects use them.
    audit: BTreeMap<String, Arc<Rules>>,
    /// A share uses direct I/O.
    pub(crate) is_any_direct: bool,
}

/// The file system of a share.
#[derive(Clone)]
struct Served {
    id: ShareId,
    section: Arc<ShareSection>,
    /// The path of the share without symbolic links.
    path: PathBuf,
    file_system: Arc<dyn FileSystem>,
    /// Whether later tree connects use it.
    is_current: bool,
    directory_leases: bool,
    /// The shares of the core with this file system that may be in use.
    uses: Vec<Weak<Share>>,
    /// Number of checks in a row that found no use.
    idle_checks: u32,
}

impl Served {
    fn is_used(&self) -> bool {
        self.is_current || self.uses.iter().any(|share| share.strong_count() > 0)
    }
}

/// The result of a change of the shares.
pub(crate) struct Changed {
    pub(crate) shares: Shares,
    /// The current shares in the form of the core, with IPC$.
    pub(crate) known: Vec<Arc<Share>>,
    /// Identifiers of the file systems that are new.
    pub(crate) opened: Vec<ShareId>,
    /// Identifiers of the file systems on which clients have no leases on directories any more.
    pub(crate) unleased: Vec<ShareId>,
}

impl Shares {
    /// Opens the shares of the configuration, and adds IPC$. `accounts` are the accounts that SIDs
    /// in descriptors stand for. Logs the shares with a missing directory: clients can enter them
    /// when it exists.
    ///
    /// # Errors
    /// A path is not a directory, or a `force_user` is not an account.
    pub(crate) fn open(
        sections: &[ShareSection],
        accounts: &Arc<dyn Accounts>,
    ) -> Result<Changed, StartError> {
        Self::default().changed(sections, accounts)
    }

    /// The shares after a change of the configuration. An unchanged share keeps its file system,
    /// and so does one of which only the rights change. Nothing changes before the caller uses the
    /// result.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) fn changed(
        &self,
        sections: &[ShareSection],
        accounts: &Arc<dyn Accounts>,
    ) -> Result<Changed, StartError> {
        let mut changed = Changed {
            shares: Self {
                served: self.former(),
                last: self.last,
                audit: BTreeMap::new(),
                is_any_direct: self.is_any_direct || sections.iter().any(|share| share.direct),
            },
            known: vec![Arc::new(ipc())],
            opened: Vec::new(),
            unleased: Vec::new(),
        };
        let shares = &mut changed.shares;
        let mut current = Vec::new();
        for section in sections {
            let (id, is_new) = shares.serve(section, accounts)?;
            current.push(id);
            if is_new {
                changed.opened.push(id);
            }
        }
        for (section, id) in sections.iter().zip(current) {
            let rules = self.audit.get(section.name.get_ref()).cloned();
            let mut share = core_share(section, id, shares.leases_directories(id))?;
            share.audit = rules.unwrap_or_default();
            let rules = Arc::clone(&share.audit);
            shares.audit.insert(share.name.clone(), rules);
            let share = Arc::new(share);
            shares.note_use(&share);
            changed.known.push(share);
        }
        changed.unleased = shares.take_unleased();
        Ok(changed)
    }

    /// The file systems, none of them current.
    fn former(&self) -> Vec<Served> {
        let former = self.served.iter().cloned().map(|mut served| {
            served.is_current = false;
            served.uses.retain(|share| share.strong_count() > 0);
            served
        });
        former.collect()
    }

    /// The file system of a section: a present one, or a new one.
    fn serve(
        &mut self,
        section: &ShareSection,
        accounts: &Arc<dyn Accounts>,
    ) -> Result<(ShareId, bool), StartError> {
        let same =
            |served: &&mut Served| !served.is_current && served.section.has_files_of(section);
        if let Some(served) = self.served.iter_mut().find(same) {
            served.is_current = true;
            served.section = Arc::new(section.clone());
            return Ok((served.id, false));
        }
        self.last = self.last.checked_add(1).expect("fewer shares than 2^32");
        let id = ShareId(self.last);
        let service = service_token(section)?;
        let (name, path) = (section.name.get_ref(), section.path.get_ref());
        let file_system = open_directory(id, section, accounts, service)
            .map_err(|error| StartError::share(name, path, error))?;
        self.served.push(Served {
            id,
            section: Arc::new(section.clone()),
            path: real(section),
            file_system,
            is_current: true,
            directory_leases: section.directory_leases,
            uses: Vec::new(),
            idle_checks: 0,
        });
        Ok((id, true))
    }

    /// Whether clients get leases on directories: not if another share has directories of this one,
    /// because its changes break no leases here.
    fn leases_directories(&self, id: ShareId) -> bool {
        let served = self.get(id);
        let others = self.served.iter().filter(|other| other.id != id);
        let mut others = others.filter(|other| other.is_used());
        let is_alone = !others.any(|other| overlap(&other.path, &served.path));
        is_alone && served.section.directory_leases
    }

    /// Notes the leases on directories of each file system. Returns those that have none any more.
    fn take_unleased(&mut self) -> Vec<ShareId> {
        let wanted: Vec<bool> = (self.served.iter())
            .map(|served| served.is_current && self.leases_directories(served.id))
            .collect();
        let mut unleased = Vec::new();
        for (served, leases) in self.served.iter_mut().zip(wanted) {
            if std::mem::replace(&mut served.directory_leases, leases) && !leases {
                unleased.push(served.id);
            }
        }
        unleased
    }

    fn note_use(&mut self, share: &Arc<Share>) {
        let served = self.served.iter_mut().find(|served| served.id == share.id);
        let served = served.expect("the share is served");
        served.uses.push(Arc::downgrade(share));
    }

    /// The shares without the file systems that two checks in a row have found unused; `None` if
    /// nothing changes. A worker may still have to close the last file of a file system that the
    /// first check finds unused.
    pub(crate) fn pruned(&self) -> Option<Self> {
        let is_changed = |served: &Served| !served.is_used() || served.idle_checks > 0;
        if !self.served.iter().any(is_changed) {
            return None;
        }
        let served = self.served.iter().cloned().map(|mut served| {
            let is_used = served.is_used();
            served.idle_checks = if is_used { 0 } else { served.idle_checks + 1 };
            served
        });
        Some(Self {
            served: served.filter(|served| served.idle_checks < 2).collect(),
            last: self.last,
            audit: self.audit.clone(),
            is_any_direct: self.is_any_direct,
        })
    }

    /// Calls the listener with the changes that local processes make in these shares, if they have
    /// `notify`.
    pub(crate) fn listen(
        &self,
        shares: &[ShareId],
        listener: impl Fn(ShareId, &[LocalEvent]) + Clone + Send + Sync + 'static,
    ) {
        for served in shares.iter().map(|id| self.get(*id)) {
            if served.section.notify {
                let (id, listener) = (served.id, listener.clone());
                let listener = move |events: &[LocalEvent]| listener(id, events);
                served.file_system.listen(Arc::new(listener));
            }
        }
    }

    /// The configuration of the current shares.
    pub(crate) fn sections(&self) -> impl Iterator<Item = &ShareSection> {
        let current = self.served.iter().filter(|served| served.is_current);
        current.map(|served| &*served.section)
    }

    /// Selects the operations of the configuration for the audit log.
    pub(crate) fn select_audit(&self, config: &Config) {
        for section in &config.shares {
            if let Some(rules) = self.audit.get(section.name.get_ref()) {
                rules.select(config.audit.selection(section.audit.as_deref()));
            }
        }
    }

    /// The names and the file systems of the current shares.
    pub(crate) fn current(&self) -> impl Iterator<Item = (&str, &Arc<dyn FileSystem>)> {
        let current = self.served.iter().filter(|served| served.is_current);
        current.map(|served| (served.section.name.get_ref().as_str(), &served.file_system))
    }

    /// The name of a share; `None` if this value does not have it.
    pub(crate) fn find_name(&self, share: ShareId) -> Option<&str> {
        let found = self.served.binary_search_by_key(&share, |served| served.id);
        let served = &self.served[found.ok()?];
        Some(served.section.name.get_ref())
    }

    /// The name of a share.
    pub(crate) fn name(&self, share: ShareId) -> &str {
        self.get(share).section.name.get_ref()
    }

    /// The file system of a share; `None` if this value is older than the share.
    pub(crate) fn find(&self, share: ShareId) -> Option<&Arc<dyn FileSystem>> {
        let found = self.served.binary_search_by_key(&share, |served| served.id);
        found.ok().map(|index| &self.served[index].file_system)
    }

    fn get(&self, share: ShareId) -> &Served {
        let found = self.served.binary_search_by_key(&share, |served| served.id);
        &self.served[found.expect("IPC$ has no files, and each other share is served")]
    }
}

/// A share in the form of the core.
fn core_share(
    section: &ShareSection,
    id: ShareId,
    directory_leases: bool,
) -> Result<Share, StartError> {
    Ok(Share {
        id,
        name: section.name.get_ref().clone(),
        kind: ShareKind::Disk,
        comment: section.comment.clone(),
        read_only: section.read_only,
        listed: !section.hidden,
        encryption_required: section.encryption_required,
        oplocks: section.oplocks,
        directory_leases,
        durable_handles: section.durable_handles,
        notify: section.notify,
        sync: section.sync.into(),
        users: share_users(section),
        hosts: host_rules(&section.hosts_allow, &section.hosts_deny),
        guest: section.guest,
        force_token: force_token(section)?,
        access_based_enumeration: section.access_based_enumeration,
        audit: Arc::default(),
        posix: section.posix && section.names == Names::Map,
    })
}

/// The path of a share without symbolic links, as far as it exists.
fn real(section: &ShareSection) -> PathBuf {
    let path = section.path.get_ref();
    path.canonicalize().unwrap_or_else(|_| path.clone())
}

fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

fn open_directory(
    id: ShareId,
    section: &ShareSection,
    accounts: &Arc<dyn Accounts>,
    service: Option<Arc<Token>>,
) -> io::Result<Arc<dyn FileSystem>> {
    let default = posix::Options::default();
    // The descriptors protect the files from users. From local ones, the mode does.
    let (file_mode, directory_mode) = match service {
        Some(_) => (0o600, 0o700),
        None => (default.file_mode, default.directory_mode),
    };
    let options = posix::Options {
        direct: section.direct,
        names: section.names.into(),
        security_attribute: section.acl_xattr.into(),
        hides_unreadable: section.access_based_enumeration,
        large_streams: section.large_streams,
        file_mode,
        directory_mode,
        ..default
    };
    let path = section.path.get_ref();
    let mut directory = posix::Posix::new(id, path, options)?.with_accounts(Arc::clone(accounts));
    if let Some(service) = service {
        directory = directory.with_service_account(service);
    }
    match directory.check_root() {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Err(error),
        Err(error) => warn!(
            share = section.name.get_ref(),
            path = %path.display(),
            %error,
            code = RefusedConfig::ShareDirectory.code(),
            "the directory of the share is missing: refusing clients until it exists"
        ),
    }
    Ok(Arc::new(directory))
}

fn service_token(section: &ShareSection) -> Result<Option<Arc<Token>>, StartError> {
    let Some(account) = &section.service_account else {
        return Ok(None);
    };
    let token = unix_account::service(account.get_ref());
    let token = token
        .map_err(|error| StartError::account(section.name.get_ref(), "service_account", error))?;
    Ok(Some(token))
}

fn force_token(section: &ShareSection) -> Result<Option<Arc<Token>>, StartError> {
    let Some(user) = &section.force_user else {
        return Ok(None);
    };
    let token = unix_account::token(user.get_ref())
        .map_err(|error| StartError::account(section.name.get_ref(), "force_user", error))?;
    Ok(Some(token))
}

/// IPC$, the share of named pipes. \[MS-SMB2\] 3.3.1.6
fn ipc() -> Share {
    Share {
        id: ShareId(0),
        name: "IPC$".to_owned(),
        kind: ShareKind::Pipe,
        comment: "IPC Service".to_owned(),
        read_only: false,
        listed: true,
        encryption_required: false,
        oplocks: false,
        directory_leases: false,
        durable_handles: false,
        notify: false,
        sync: SyncPolicy::default(),
        users: ShareUsers::default(),
        hosts: HostRules::default(),
        guest: true,
        force_token: None,
        access_based_enumeration: false,
        audit: Arc::default(),
        posix: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sections(text: &str) -> Vec<ShareSection> {
        let config = Config::parse(Path::new("/smbeam.toml"), text).expect("good");
        config.shares
    }

    fn changed(shares: &Shares, text: &str) -> Changed {
        let accounts: Arc<dyn Accounts> = Arc::new(vfs::accounts::UnixAccounts);
        shares.changed(&sections(text), &accounts).expect("good")
    }

    fn ids(changed: &Changed) -> Vec<u32> {
        changed.known[1..].iter().map(|share| share.id.0).collect()
    }

    #[test]
    fn an_unchanged_directory_keeps_its_file_system() {
        let one = "[[share]]\nname = \"one\"\npath = \"/proc\"\n";
        let two = "[[share]]\nname = \"two\"\npath = \"/sys\"\n";
        let first = changed(&Shares::default(), &format!("{one}{two}"));
        assert_eq!((ids(&first), first.opened.len()), (vec![1, 2], 2));
        let text = format!("{two}{one}read_only = true\n");
        let second = changed(&first.shares, &text);
        assert_eq!((ids(&second), second.opened.len()), (vec![2, 1], 0));
        assert!(second.known[2].read_only && !first.known[1].read_only);
        let third = changed(&second.shares, &format!("{one}names = \"hide\"\n"));
        assert_eq!((ids(&third), third.opened), (vec![3], vec![ShareId(3)]));
    }

    #[test]
    fn a_file_system_stays_while_a_share_of_it_is_in_use() {
        let text = "[[share]]\nname = \"one\"\npath = \"/proc\"\n";
        let mut first = changed(&Shares::default(), text);
        let used = first.known.remove(1);
        let second = changed(&first.shares, "");
        let removed = ShareId(1);
        let once = second.shares.pruned();
        assert!(once.is_none() && second.shares.find(removed).is_some());
        drop(used);
        let once = second.shares.pruned().expect("a change");
        assert!(
            once.find(removed).is_some(),
            "a worker may still close a file"
        );
        let twice = once.pruned().expect("a change");
        assert!(twice.find(removed).is_none() && twice.pruned().is_none());
    }

    #[test]
    fn shares_of_one_directory_have_no_leases_on_directories() {
        let one = "[[share]]\nname = \"one\"\npath = \"/proc\"\n";
        let two = "[[share]]\nname = \"two\"\npath = \"/proc/sys\"\n";
        let first = changed(&Shares::default(), one);
        assert!(first.known[1].directory_leases);
        let second = changed(&first.shares, &format!("{one}{two}"));
        assert!(!second.known[1].directory_leases && !second.known[2].directory_leases);
        assert!(second.unleased.contains(&ShareId(1)));
        let third = changed(&second.shares, one);
        drop((first, second));
        let fourth = changed(&third.shares, one);
        assert!(fourth.known[1].directory_leases);
    }
}
