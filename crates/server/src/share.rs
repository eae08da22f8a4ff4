//! Shares: what the core knows of them, and the file system behind each.

use std::sync::Arc;

use proto::file::{FileOp, LocalEvent, LocalOpen, ShareId};
use proto::server::config::{Share, ShareKind};
use proto::token::Token;
use vfs::{FileSystem, posix};

use crate::config::ShareSection;
use crate::error::StartError;
use crate::unix_account;

/// The shares of a server.
pub(crate) struct Shares {
    /// As the core knows them, by [`ShareId`].
    pub(crate) known: Vec<Arc<Share>>,
    /// The file system behind each; none behind IPC$.
    file_systems: Vec<Option<Arc<dyn FileSystem>>>,
    /// Whether bytes of any of them go past the page cache.
    pub(crate) is_any_direct: bool,
}

impl Shares {
    /// IPC$ and the folders of the configuration.
    pub(crate) fn open(sections: &[ShareSection]) -> Result<Self, StartError> {
        let mut shares = Self {
            known: vec![Arc::new(ipc())],
            file_systems: vec![None],
            is_any_direct: sections.iter().any(|section| section.direct),
        };
        for section in sections {
            shares.add(section)?;
        }
        Ok(shares)
    }

    fn add(&mut self, section: &ShareSection) -> Result<(), StartError> {
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
            notify: section.notify,
            users: (!section.users.is_empty()).then(|| section.users.clone()),
            guest: section.guest,
            force_token: force_token(section)?,
        };
        let file_system = open_folder(id, section)
            .map_err(|error| StartError::share(name, section.path.get_ref(), error))?;
        self.known.push(Arc::new(share));
        self.file_systems.push(Some(file_system));
        Ok(())
    }

    /// From now on tells this one what others do to the folders that may be watched.
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

    /// The file system that an operation is for.
    pub(crate) fn of_operation(&self, operation: &FileOp) -> &Arc<dyn FileSystem> {
        self.file_system(operation.share())
    }

    /// The file system of an open.
    pub(crate) fn of_open(&self, file: LocalOpen) -> &Arc<dyn FileSystem> {
        self.file_system(file.share)
    }

    fn file_system(&self, share: ShareId) -> &Arc<dyn FileSystem> {
        self.file_systems[share.0 as usize]
            .as_ref()
            .expect("nothing is opened on IPC$")
    }
}

fn open_folder(id: ShareId, section: &ShareSection) -> std::io::Result<Arc<dyn FileSystem>> {
    let options = posix::Options {
        direct: section.direct,
        ..posix::Options::default()
    };
    let folder = posix::Posix::new(id, section.path.get_ref(), options)?;
    Ok(Arc::new(folder))
}

fn force_token(section: &ShareSection) -> Result<Option<Arc<Token>>, StartError> {
    let Some(user) = &section.force_user else {
        return Ok(None);
    };
    let token = unix_account::token(user.get_ref())
        .map_err(|error| StartError::account(section.name.get_ref(), error))?;
    Ok(Some(token))
}

/// The share of pipes. \[MS-SMB2\] 3.3.1.6
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
        notify: false,
        users: None,
        guest: true,
        force_token: None,
    }
}
