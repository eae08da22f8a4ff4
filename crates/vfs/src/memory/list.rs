//! Directory listings in memory.

use std::collections::VecDeque;

use proto::file::{DirectoryEntry, DirectoryPlan, FileKind, LocalOpen, Outcome, Select};
use wire::Status;

use super::State;
use super::tree::{Content, NodeId, ROOT};
use crate::rights;

impl State {
    /// Returns entries of the directory. The listing has the entries at its start, without those
    /// removed since then.
    pub(super) fn read_directory(
        &mut self,
        file: LocalOpen,
        plan: &DirectoryPlan,
    ) -> Result<Outcome, Status> {
        let DirectoryPlan {
            restart,
            select,
            limit,
        } = plan;
        let node = self.directory_of(file)?;
        let fresh = self.entries(node, select);
        let open = self.open_mut(file)?;
        if *restart || open.listing.is_none() {
            open.listing = Some(fresh);
        }
        let left = open.listing.get_or_insert_default();
        let count = left.len().min(*limit as usize);
        Ok(Outcome::Directory(left.drain(..count).collect()))
    }

    fn directory_of(&self, file: LocalOpen) -> Result<NodeId, Status> {
        let open = self.open_of(file)?;
        if self.tree.node(open.node).kind() != FileKind::Directory {
            return Err(Status::INVALID_PARAMETER);
        }
        if !open.access.intersects(rights::READ_DATA) {
            return Err(Status::ACCESS_DENIED);
        }
        Ok(open.node)
    }

    fn entries(&self, node: NodeId, select: &Select) -> VecDeque<DirectoryEntry> {
        let entry = |name: &str, id| DirectoryEntry {
            name: name.to_owned(),
            metadata: self.tree.metadata(id, name),
        };
        if let Select::Name(name) = select {
            let child = self.tree.child(node, name);
            return child
                .map(|child| entry(&child.name, child.node))
                .into_iter()
                .collect();
        }
        let dots = [(".", node), ("..", self.above(node))];
        let children = self
            .tree
            .children(node)
            .values()
            .map(|c| (c.name.as_str(), c.node));
        let all = dots.into_iter().chain(children);
        all.filter(|(name, _)| crate::selects(select, name))
            .map(|(name, id)| entry(name, id))
            .collect()
    }

    /// The parent directory. The root is its own parent, so that a listing shows nothing outside
    /// the share.
    fn above(&self, node: NodeId) -> NodeId {
        match &self.tree.node(node).content {
            Content::Directory(_, above) if self.tree.node(node).links > 0 => *above,
            Content::Directory(..) | Content::File(_) => ROOT,
        }
    }
}
