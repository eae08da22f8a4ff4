//! Extended attributes of files in memory.

use proto::ea::Ea;
use proto::file::{LocalOpen, Outcome};
use wire::Status;

use super::State;
use crate::ea::{self, Names};

impl State {
    pub(super) fn query_eas(&self, file: LocalOpen) -> Result<Outcome, Status> {
        let node = self.tree.node(self.open_of(file)?.node);
        Ok(Outcome::Eas(node.eas.clone()))
    }

    pub(super) fn set_eas(&mut self, file: LocalOpen, changes: &[Ea]) -> Result<Outcome, Status> {
        let id = self.open_of(file)?.node;
        let now = self.tree.now;
        let node = self.tree.node_mut(id);
        ea::check(&node.eas, changes, Names::Folded)?;
        for change in changes {
            ea::apply(&mut node.eas, change, Names::Folded);
        }
        node.changed = now;
        self.stat(file)
    }
}
