//! The shares of a server, and the file system of each.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proto::file::{FileOp, LocalEvent, LocalOpen, ShareId};
use proto::server::config::{Share, ShareKind, SyncPolicy};
use proto::token::Token;
use tracing::warn;
use vfs::accounts::Accounts;
use vfs::{FileSystem, posix};

use crate::config::{Names, ShareSection};
use crate::error::StartError;
use crate::unix_account;

/// The shares of a server.
pub(crate) struct Shares {
    /// The shares in the form of the core, by [`ShareId`].
    pub(crate) known: Vec<Arc<Share>>,
    /// The file systems by [`ShareId`]; `None` for IPC$.
    file_systems: Vec<Option<Arc<dyn FileSystem>>>,
    /// A share uses direct I/O.
    pub(crate) is_any_direct: bool,
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
    ) -> Result<Self, StartError> {
        let mut shares = Self {
            known: vec![Arc::new(ipc())],
            file_systems: vec![None],
            is_any_direct: sections.iter().any(|section| section.direct),
        };
        let paths: Vec<_> = sections.iter().map(real).collect();
        for (index, section) in sections.iter().enumerate() {
            let mut others = paths
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != index);
            let is_shared_twice = others.any(|(_, path)| overlap(path, &paths[index]));
            shares.add(section, accounts, is_shared_twice)?;
        }
        Ok(shares)
    }

    /// Adds a share. `is_shared_twice`: another share has directories of this one. Its changes
    /// break no leases on directories here, so that clients get none.
    fn add(
        &mut self,
        section: &ShareSection,
        accounts: &Arc<dyn Accounts>,
        is_shared_twice: bool,
    ) -> Result<(), StartError> {
        let id = ShareId(u32::try_from(self.known.len()).expect("fewer shares than 2^32"));
        let name = section.name.get_ref();
        let share = Share {
            id,
            name: name.clone(),
            kind: ShareKind::Disk,
            comment: section.comment.clone(),
            read_only: section.read_only,
            listed: !section.hidden,
            encryption_required: section.encryption_required,
            oplocks: section.oplocks,
            directory_leases: section.directory_leases && !is_shared_twice,
            durable_handles: section.durable_handles,
            notify: section.notify,
            sync: section.sync.into(),
            users: (!section.users.is_empty()).then(|| section.users.clone()),
            guest: section.guest,
            force_token: force_token(section)?,
            access_based_enumeration: section.access_based_enumeration,
            posix: section.posix && section.names == Names::Map,
        };
        let path = section.path.get_ref();
        let service = service_token(section)?;
        let file_system = open_directory(id, section, accounts, service)
            .map_err(|error| StartError::share(name, path, error))?;
        self.known.push(Arc::new(share));
        self.file_systems.push(Some(file_system));
        Ok(())
    }

    /// Calls the listener with the changes that local processes make in shares with `notify`.
    pub(crate) fn listen(
        &self,
        listener: impl Fn(ShareId, &[LocalEvent]) + Clone + Send + Sync + 'static,
    ) {
        for (share, file_system) in self.known.iter().zip(&self.file_systems) {
            if let Some(file_system) = file_system.as_ref().filter(|_| share.notify) {
                let (id, listener) = (share.id, listener.clone());
                file_system.listen(Arc::new(move |events| listener(id, events)));
            }
        }
    }

    /// The shares with files, and the file system of each.
    pub(crate) fn of_files(&self) -> impl Iterator<Item = (&Arc<Share>, &Arc<dyn FileSystem>)> {
        let all = self.known.iter().zip(&self.file_systems);
        all.filter_map(|(share, file_system)| Some((share, file_system.as_ref()?)))
    }

    /// The file system of an operation.
    pub(crate) fn of_operation(&self, operation: &FileOp) -> &Arc<dyn FileSystem> {
        self.file_system(operation.share())
    }

    /// The file system of an open.
    pub(crate) fn of_open(&self, file: LocalOpen) -> &Arc<dyn FileSystem> {
        self.file_system(file.share)
    }

    /// The file system of a share.
    pub(crate) fn file_system(&self, share: ShareId) -> &Arc<dyn FileSystem> {
        self.file_systems[share.0 as usize]
            .as_ref()
            .expect("IPC$ has no files")
    }
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
        users: None,
        guest: true,
        force_token: None,
        access_based_enumeration: false,
        posix: false,
    }
}
