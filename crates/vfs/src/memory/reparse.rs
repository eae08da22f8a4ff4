//! Reparse points of files in memory.

use proto::file::{FileKind, FoundLink, LocalOpen, Outcome};
use proto::path::SharePath;
use proto::token::Token;
use wire::Status;
use wire::reparse::ReparseTag;

use super::State;
use super::tree::NodeId;
use crate::attributes;

impl State {
    pub(super) fn read_reparse(&self, file: LocalOpen) -> Result<Outcome, Status> {
        let node = self.tree.node(self.open_of(file)?.node);
        let data = node.reparse.clone().ok_or(Status::NOT_A_REPARSE_POINT)?;
        Ok(Outcome::Reparse(data))
    }

    pub(super) fn set_reparse(
        &mut self,
        file: LocalOpen,
        tag: ReparseTag,
        data: &[u8],
    ) -> Result<Outcome, Status> {
        let id = self.open_of(file)?.node;
        let is = self.tree.node(id).reparse_tag();
        if is != ReparseTag::NONE && is != tag {
            return Err(Status::IO_REPARSE_TAG_MISMATCH);
        }
        if self.tree.node(id).kind() == FileKind::Directory {
            self.check_empty(file)?;
        }
        self.replace_reparse(id, Some(data.to_vec()));
        Ok(Outcome::Done)
    }

    pub(super) fn remove_reparse(
        &mut self,
        file: LocalOpen,
        tag: ReparseTag,
    ) -> Result<Outcome, Status> {
        let id = self.open_of(file)?.node;
        match self.tree.node(id).reparse_tag() {
            ReparseTag::NONE => Err(Status::NOT_A_REPARSE_POINT),
            is if is != tag => Err(Status::IO_REPARSE_TAG_MISMATCH),
            _ => {
                self.replace_reparse(id, None);
                Ok(Outcome::Done)
            }
        }
    }

    fn replace_reparse(&mut self, id: NodeId, data: Option<Vec<u8>>) {
        let now = self.tree.now;
        let node = self.tree.node_mut(id);
        node.stored = attributes::with_reparse(node.stored, data.is_some());
        node.reparse = data;
        node.changed = now;
    }

    /// The first reparse point on a path.
    pub(super) fn first_reparse(&self, token: &Token, path: &SharePath) -> Option<FoundLink> {
        let mut at = SharePath::root();
        for (index, component) in path.components().enumerate() {
            at = at.join(component);
            let (_, node) = self.tree.find(token, &at).ok()?;
            if let Some(data) = &self.tree.node(node?).reparse {
                let (depth, data) = (index + 1, data.clone());
                return Some(FoundLink { depth, data });
            }
        }
        None
    }
}
