//! The tree connects and opens of a session, which stay valid when the session is resumed.
//!
//! After the loss of all connections the client logs in again, and the server gives other numbers
//! to the same objects. A request of a program refers to a [`TreeState`] and an [`OpenState`], so
//! that the client can send it with the numbers that are valid at that time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use proto::client::request::{Attributes, Create, Created, Durability, DurableGrant, LeaseRequest};
use wire::access::{AccessMask, CreateDisposition, CreateOptions, FileAttributes};
use wire::{FileId, Guid};

use crate::io::leases::{LeaseState, WriteGuard};
use crate::io::slot::lock;
use crate::io::tree::TreeState;
use crate::path;

/// Rights of an open that reads only. An open with any other right is not opened again by its path:
/// its changes could reach another file.
const READ_ONLY: AccessMask = AccessMask(
    AccessMask::FILE_READ_DATA.0
        | AccessMask::FILE_READ_ATTRIBUTES.0
        | AccessMask::FILE_READ_EA.0
        | AccessMask::FILE_EXECUTE.0
        | AccessMask::READ_CONTROL.0
        | AccessMask::SYNCHRONIZE.0
        | AccessMask::GENERIC_READ.0,
);

/// The objects of a session that a request refers to.
#[derive(Default)]
pub(crate) struct Objects {
    /// `None` outside of a share.
    pub(crate) tree: Option<Arc<TreeState>>,
    /// The open that the request uses or, if it is a CREATE, makes.
    pub(crate) open: Option<Arc<OpenState>>,
    /// A WRITE that must be done before the client acknowledges a break of the lease.
    pub(crate) _write: Option<WriteGuard>,
}

/// An open of a file.
pub(crate) struct OpenState {
    pub(crate) tree: Arc<TreeState>,
    /// The lease that its CREATE requested.
    pub(crate) lease: Option<Arc<LeaseState>>,
    /// Whether a byte-range lock was requested. Another open would not have it.
    has_locked: AtomicBool,
    inner: Mutex<Inner>,
}

struct Inner {
    phase: Phase,
    /// The CREATE of the open, with the current path.
    create: Create,
    durable: Option<DurableGrant>,
    /// Attributes in the response to the CREATE.
    attributes: Attributes,
}

enum Phase {
    /// The CREATE has no response yet, or failed.
    Opening,
    Open(FileId),
    /// The server closed the open; the reason.
    Lost(Arc<str>),
}

impl OpenState {
    /// An open for the CREATE `create`, which has no response yet.
    pub(crate) fn new(
        tree: &Arc<TreeState>,
        create: Create,
        lease: Option<Arc<LeaseState>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            tree: Arc::clone(tree),
            lease,
            has_locked: AtomicBool::new(false),
            inner: Mutex::new(Inner {
                phase: Phase::Opening,
                create,
                durable: None,
                attributes: Attributes::default(),
            }),
        })
    }

    /// Takes the response to the CREATE.
    pub(crate) fn opened(&self, created: &Created) {
        if let Some(lease) = &self.lease {
            lease.grant(created);
        }
        let mut inner = lock(&self.inner);
        let Inner {
            phase,
            durable,
            attributes,
            create: _,
        } = &mut *inner;
        *phase = Phase::Open(created.file_id);
        *durable = created.durable;
        *attributes = created.attributes;
    }

    /// The FileId in the current session; an error if the server closed the open.
    pub(crate) fn file_id(&self) -> Result<FileId, Arc<str>> {
        match &lock(&self.inner).phase {
            Phase::Open(id) => Ok(*id),
            Phase::Lost(reason) => Err(Arc::clone(reason)),
            Phase::Opening => Err("the file is not open".into()),
        }
    }

    /// The durable open that the server granted.
    pub(crate) fn durable(&self) -> Option<DurableGrant> {
        lock(&self.inner).durable
    }

    /// Takes note of a byte-range lock.
    pub(crate) fn locks(&self) {
        self.has_locked.store(true, Ordering::Relaxed);
    }

    /// Whether the open has the path `from` in the share, or one below it. If so, changes the path
    /// to the same one at `to`.
    pub(crate) fn rename(&self, from: &str, to: &str) -> bool {
        let mut inner = lock(&self.inner);
        let Create {
            name, posix_mode, ..
        } = &mut inner.create;
        let Some(rest) = name.strip_prefix(from) else {
            return false;
        };
        // Directories end with `\`, files with the name of a stream. With the SMB3 POSIX extensions
        // the separator is `/`, and the other characters are parts of names.
        let ends: &[char] = match posix_mode {
            Some(_) => &['/'],
            None => &['\\', ':'],
        };
        if !rest.is_empty() && !rest.starts_with(ends) {
            return false;
        }
        *name = format!("{to}{rest}");
        true
    }

    /// The current path in the form of the protocol.
    pub(crate) fn path(&self) -> String {
        lock(&self.inner).create.name.clone()
    }

    /// Whether the client has a chance to use the open after a loss of all connections.
    pub(crate) fn may_be_reclaimed(&self) -> bool {
        let inner = lock(&self.inner);
        let is_open = matches!(inner.phase, Phase::Open(_));
        is_open && (inner.durable.is_some() || self.reads_only(&inner))
    }

    /// The CREATE that reconnects to the durable open; `None` if it is not durable.
    /// \[MS-SMB2\] 3.2.4.4
    pub(crate) fn reconnect(&self) -> Option<Create> {
        let inner = lock(&self.inner);
        let Phase::Open(id) = inner.phase else {
            return None;
        };
        inner.durable?;
        let create = &inner.create;
        // Only a lease may stand beside a reconnect, so the name is one of other opens.
        // smbtorture smb2.durable-v2-open.create-blob
        let name = match create.posix_mode {
            Some(_) => path::posix_to_mapped(&create.name)?,
            None => create.name.clone(),
        };
        Some(Create {
            name,
            posix_mode: None,
            disposition: CreateDisposition::OPEN,
            durable: Durability::Reconnect(id),
            lease: self.lease_request(&inner),
            query_maximal_access: false,
            allocation: None,
            ..create.clone()
        })
    }

    /// The CREATE that opens the file again by its path, with the CreateGuid `guid`; `None` unless
    /// the open only reads a file and has locked no bytes.
    pub(crate) fn reopen(&self, guid: Guid) -> Option<Create> {
        let inner = lock(&self.inner);
        if !self.reads_only(&inner) {
            return None;
        }
        Some(Create {
            disposition: CreateDisposition::OPEN,
            create_guid: inner.create.create_guid.map(|_| guid),
            lease: self.lease_request(&inner),
            ..inner.create.clone()
        })
    }

    fn lease_request(&self, inner: &Inner) -> Option<LeaseRequest> {
        let request = inner.create.lease?;
        let epoch = self.lease.as_ref().map_or(0, |lease| lease.now().epoch);
        Some(LeaseRequest { epoch, ..request })
    }

    fn reads_only(&self, inner: &Inner) -> bool {
        let Inner {
            create, attributes, ..
        } = inner;
        let is_plain = !create.options.contains(CreateOptions::DELETE_ON_CLOSE)
            && !attributes.attributes.contains(FileAttributes::DIRECTORY);
        let is_reading = create.access.without(READ_ONLY).is_empty();
        is_plain && is_reading && !self.has_locked.load(Ordering::Relaxed)
    }

    /// Takes the response to [`reconnect`](Self::reconnect). Returns whether it is the same open.
    pub(crate) fn reclaimed(&self, created: &Created) -> bool {
        let mut inner = lock(&self.inner);
        let Phase::Open(id) = &mut inner.phase else {
            return false;
        };
        if id.persistent != created.file_id.persistent {
            return false;
        }
        *id = created.file_id;
        drop(inner);
        if let Some(lease) = &self.lease {
            lease.grant(created);
        }
        true
    }

    /// Takes the response to `create`, which [`reopen`](Self::reopen) made. Returns whether it is
    /// the same file, and the file was not changed since the open: size and times are the same.
    pub(crate) fn reopened(&self, create: &Create, created: &Created) -> bool {
        let mut inner = lock(&self.inner);
        let of = |it: &Attributes| (it.created, it.written, it.changed, it.size);
        if of(&inner.attributes) != of(&created.attributes) {
            return false;
        }
        inner.create.create_guid = create.create_guid;
        drop(inner);
        self.opened(created);
        true
    }

    /// The server has closed the open.
    pub(crate) fn lose(&self, reason: &Arc<str>) {
        let mut inner = lock(&self.inner);
        if matches!(inner.phase, Phase::Open(_)) {
            inner.phase = Phase::Lost(Arc::clone(reason));
        }
    }

    fn is_open(&self) -> bool {
        matches!(lock(&self.inner).phase, Phase::Open(_))
    }
}

/// Smallest length of a list of which dead entries are removed.
const LIST_MIN: usize = 64;

/// The tree connects and opens of a session. A program holds them; the lists find them.
#[derive(Default)]
pub(crate) struct OpenTable {
    trees: List<TreeState>,
    opens: List<OpenState>,
}

impl OpenTable {
    pub(crate) fn add_tree(&mut self, tree: &Arc<TreeState>) {
        self.trees.add(tree);
    }

    pub(crate) fn add_open(&mut self, open: &Arc<OpenState>) {
        self.opens.add(open);
    }

    pub(crate) fn trees(&self) -> Vec<Arc<TreeState>> {
        self.trees.live().collect()
    }

    /// The opens that the server knows.
    pub(crate) fn opens(&self) -> Vec<Arc<OpenState>> {
        self.opens.live().filter(|open| open.is_open()).collect()
    }

    pub(crate) fn has_reclaimable(&self) -> bool {
        self.opens.live().any(|open| open.may_be_reclaimed())
    }
}

/// A list of objects that other owners hold.
struct List<T> {
    entries: Vec<Weak<T>>,
    /// Length at which dead entries are removed.
    full: usize,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            full: LIST_MIN,
        }
    }
}

impl<T> List<T> {
    fn add(&mut self, object: &Arc<T>) {
        if self.entries.len() >= self.full {
            self.entries.retain(|entry| entry.strong_count() > 0);
            self.full = LIST_MIN.max(2 * self.entries.len());
        }
        self.entries.push(Arc::downgrade(object));
    }

    fn live(&self) -> impl Iterator<Item = Arc<T>> {
        self.entries.iter().filter_map(Weak::upgrade)
    }
}

#[cfg(test)]
mod tests {
    use wire::access::OplockLevel;
    use wire::{FileTime, TreeId};

    use super::*;
    use crate::open_options::OpenOptions;

    const ID: FileId = FileId {
        persistent: 1,
        volatile: 2,
    };

    fn created(file_id: FileId, is_durable: bool) -> Created {
        Created {
            file_id,
            oplock: OplockLevel::NONE,
            lease_state: None,
            lease_epoch: None,
            is_lease_breaking: false,
            durable: is_durable.then_some(DurableGrant { timeout_ms: 1 }),
            action: 1,
            attributes: Attributes::default(),
            maximal_access: None,
            posix: None,
        }
    }

    fn open(options: &OpenOptions, is_durable: bool) -> Arc<OpenState> {
        let tree = TreeState::new("data", false, TreeId(1));
        let create = options.create_request("a\\b".to_owned(), Some(Guid([1; 16])));
        let open = OpenState::new(&tree, create, None);
        assert!(open.file_id().is_err() && !open.may_be_reclaimed());
        open.opened(&created(ID, is_durable));
        open
    }

    #[test]
    fn a_durable_open_is_reclaimed_under_another_number() {
        let open = open(&OpenOptions::new().write(true).create_new(true), true);
        let create = open.reconnect().expect("it is durable");
        assert_eq!(create.durable, Durability::Reconnect(ID));
        assert_eq!(create.create_guid, Some(Guid([1; 16])));
        assert_eq!(create.disposition, CreateDisposition::OPEN);
        let other = FileId {
            persistent: 7,
            volatile: 2,
        };
        assert!(!open.reclaimed(&created(other, false)));
        let next = FileId { volatile: 9, ..ID };
        assert!(open.reclaimed(&created(next, false)));
        assert_eq!(open.file_id(), Ok(next));
        assert!(open.reconnect().is_some(), "it stays durable");
        assert!(open.reopen(Guid([2; 16])).is_none(), "it writes");
    }

    #[test]
    fn only_an_unchanged_file_is_opened_again_by_its_path() {
        let guid = Guid([2; 16]);
        let reading = OpenOptions::new().read(true);
        let found = open(&reading, false);
        assert!(found.reconnect().is_none() && found.may_be_reclaimed());
        let create = found.reopen(guid).expect("it only reads");
        let mut changed = created(ID, false);
        changed.attributes.changed = FileTime(5);
        assert!(!found.reopened(&create, &changed));
        assert!(found.reopened(&create, &created(ID, true)));
        assert_eq!(found.reconnect().expect("durable").create_guid, Some(guid));
        found.locks();
        assert!(found.reopen(guid).is_none(), "it has locked bytes");
        let deletes = open(&reading.clone().delete_on_close(true), false);
        assert!(deletes.reopen(guid).is_none() && !deletes.may_be_reclaimed());
    }

    #[test]
    fn a_lost_open_has_a_reason() {
        let open = open(&OpenOptions::new().write(true), false);
        open.lose(&"why".into());
        assert_eq!(open.file_id(), Err("why".into()));
        assert!(!open.may_be_reclaimed() && open.reconnect().is_none());
    }

    #[test]
    fn a_renamed_directory_takes_its_opens_along() {
        let open = open(&OpenOptions::new().read(true), false);
        assert!(!open.rename("a\\", "x") && !open.rename("a\\bc", "x"));
        assert!(open.rename("a", "c\\d"));
        assert_eq!(open.path(), "c\\d\\b");
        assert!(open.rename("c\\d\\b", "e"));
        assert_eq!(open.path(), "e");
    }

    #[test]
    fn a_list_drops_what_was_dropped() {
        let mut list = List::default();
        let kept = Arc::new(1);
        list.add(&kept);
        for _ in 0..10 * LIST_MIN {
            list.add(&Arc::new(2));
        }
        assert!(list.entries.len() <= LIST_MIN);
        assert_eq!(list.live().collect::<Vec<_>>(), [kept]);
    }
}
