//! Open and creation of files in memory.

use proto::file::{Existing, FileKind, KindWanted, LocalOpen, OpenPlan, Opened, ReopenPlan};
use wire::Status;
use wire::access::{AccessMask, FileAttributes};

use super::bytes::Bytes;
use super::tree::{Content, Location, NodeId, ROOT};
use super::{Open, State};
use crate::{attributes, disposition, rights};

impl State {
    pub(super) fn open(&mut self, plan: &OpenPlan) -> Result<Opened, Status> {
        if plan.share != self.share {
            return Err(Status::INVALID_PARAMETER);
        }
        if let Some(stream) = plan.path.stream() {
            return self.open_stream(plan, stream);
        }
        let found = self.tree.find(&plan.token, &plan.path);
        let is_missing = match &found {
            Err(status) => *status == Status::OBJECT_PATH_NOT_FOUND,
            Ok((_, node)) => node.is_none(),
        };
        if is_missing && self.first_reparse(&plan.token, &plan.path).is_some() {
            return Err(Status::STOPPED_ON_SYMLINK);
        }
        let (location, node) = found?;
        match node {
            Some(node) => self.open_existing(plan, location, node),
            None => self.create(plan, location),
        }
    }

    /// Opens the file with this handle: the number of its node, which no other node ever has.
    pub(super) fn reopen(&mut self, plan: &ReopenPlan) -> Result<Opened, Status> {
        if plan.share != self.share {
            return Err(Status::INVALID_PARAMETER);
        }
        let number = <[u8; 8]>::try_from(plan.handle.0.as_slice());
        let node = NodeId::from_le_bytes(number.map_err(|_| Status::OBJECT_NAME_NOT_FOUND)?);
        let location = self.tree.location_of(node);
        let location = location.ok_or(Status::OBJECT_NAME_NOT_FOUND)?;
        let plan = OpenPlan {
            share: plan.share,
            token: plan.token.clone(),
            path: location.path.clone(),
            access: plan.access,
            implied_access: AccessMask::NONE,
            existing: Existing::Open,
            kind: KindWanted::Any,
            attributes: FileAttributes::NONE,
            allocation: 0,
            security: None,
            open_link: true,
            posix: None,
        };
        self.tree.find(&plan.token, &plan.path)?;
        self.open_existing(&plan, location, node)
    }

    fn open_existing(
        &mut self,
        plan: &OpenPlan,
        location: Location,
        node: NodeId,
    ) -> Result<Opened, Status> {
        let file = self.tree.metadata(node, &location.name);
        disposition::existing(plan, &file)?;
        let maximal = self.maximal(plan, &location, node);
        let granted = rights::grant(maximal, plan.access, plan.implied_access, &file)?;
        Ok(self.opened(plan, location, node, (false, granted, maximal)))
    }

    fn create(&mut self, plan: &OpenPlan, location: Location) -> Result<Opened, Status> {
        let granted = disposition::absent(plan)?;
        if !self
            .tree
            .permissions(&plan.token, location.parent)
            .changes_names()
        {
            return Err(Status::ACCESS_DENIED);
        }
        let is_directory = plan.kind == KindWanted::Directory;
        self.check_parent(&plan.token, location.parent, is_directory)?;
        let node = self.make(plan);
        let reserved = self.reserve_new(node, plan.allocation);
        if let Err(status) = reserved.and_then(|()| self.secure(plan, location.parent, node)) {
            self.tree.forget(node);
            return Err(status);
        }
        self.tree.link(location.parent, &location.name, node);
        let maximal = self.maximal(plan, &location, node) | granted;
        Ok(self.opened(plan, location, node, (true, granted, maximal)))
    }

    /// Creates a file or directory that has no name yet.
    fn make(&mut self, plan: &OpenPlan) -> NodeId {
        let (content, kind, mode) = match plan.kind {
            KindWanted::Directory => {
                let content = Content::Directory(std::collections::BTreeMap::new(), ROOT);
                (content, FileKind::Directory, self.options.directory_mode)
            }
            KindWanted::Any | KindWanted::File => (
                Content::File(Bytes::default()),
                FileKind::File,
                self.options.file_mode,
            ),
        };
        let mode = plan.posix.map_or(mode, |posix| posix.mode);
        let stored = attributes::of_new(plan.attributes, kind);
        self.tree.add(content, &plan.token, mode, stored)
    }

    fn reserve_new(&mut self, node: NodeId, allocation: u64) -> Result<(), Status> {
        match self.tree.node(node).kind() {
            FileKind::File => self.reserve(node, allocation),
            FileKind::Directory | FileKind::Link | FileKind::Special => Ok(()),
        }
    }

    fn maximal(&self, plan: &OpenPlan, location: &Location, node: NodeId) -> AccessMask {
        if let Some(granted) = self.granted(&plan.token, location, node) {
            return granted;
        }
        let file = self.tree.metadata(node, &location.name);
        let has = self.tree.permissions(&plan.token, node);
        let is_asked = !location.path.is_root() || plan.access.contains(AccessMask::DELETE);
        let may_remove = is_asked && self.tree.may_remove(&plan.token, location, node);
        rights::maximal(&plan.token, &file, has, may_remove)
    }

    /// Adds an open to the table.
    fn opened(
        &mut self,
        plan: &OpenPlan,
        location: Location,
        node: NodeId,
        (created, granted, maximal): (bool, AccessMask, AccessMask),
    ) -> Opened {
        let slot = self.next_slot;
        self.next_slot += 1;
        self.tree.node_mut(node).opens += 1;
        let path = location.path.clone();
        let metadata = self.tree.metadata(node, &location.name);
        let access = granted | plan.implied_access;
        let open = Open {
            node,
            base: None,
            location,
            token: plan.token.clone(),
            access,
            listing: None,
        };
        self.opens.insert(slot, open);
        let file = LocalOpen {
            share: self.share,
            slot,
        };
        Opened {
            file,
            created,
            granted,
            maximal,
            metadata,
            path,
        }
    }
}
