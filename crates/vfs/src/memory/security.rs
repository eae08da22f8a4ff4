//! Security descriptors of files in memory. They follow the rules of a posix share: a descriptor
//! decides about opens, and a change of it changes the mode.

use proto::file::{LocalOpen, OpenPlan, Outcome, SecurityChange};
use proto::token::Token;
use wire::Status;
use wire::access::AccessMask;
use wire::security::{SecurityDescriptor, SecurityInformation, Sid};

use super::State;
use super::tree::{Location, Node, NodeId};
use crate::security::{self, Creator, Owners, PosixAcl};

/// The nine permission bits of a mode.
const PERMISSIONS: u32 = 0o777;

impl State {
    pub(super) fn query_security(&self, file: LocalOpen) -> Result<Outcome, Status> {
        let id = self.open_of(file)?.node;
        Ok(Outcome::Security(Box::new(self.descriptor(id))))
    }

    /// The stored descriptor of a node, or the one that stands for its mode.
    fn descriptor(&self, id: NodeId) -> SecurityDescriptor {
        let node = self.tree.node(id);
        let of_mode = || {
            let is_directory = self.tree.metadata(id, "").is_directory();
            let (uid, gid) = (node.uid, node.gid);
            let list = PosixAcl::of_mode(node.mode);
            let default = is_directory.then(PosixAcl::default);
            security::describe(Owners { uid, gid }, &list, default.as_ref())
        };
        node.security.as_deref().cloned().unwrap_or_else(of_mode)
    }

    pub(super) fn set_security(
        &mut self,
        file: LocalOpen,
        change: &SecurityChange,
    ) -> Result<Outcome, Status> {
        let open = self.open_of(file)?;
        let (id, token) = (open.node, open.token.clone());
        self.change_security(id, &token, change)?;
        Ok(Outcome::Done)
    }

    fn change_security(
        &mut self,
        id: NodeId,
        token: &Token,
        change: &SecurityChange,
    ) -> Result<(), Status> {
        let current = self.descriptor(id);
        let new = security::apply(&current, change);
        let node = self.tree.node(id);
        let mut owners = Owners {
            uid: node.uid,
            gid: node.gid,
        };
        for (new, current) in [(&new.owner, &current.owner), (&new.group, &current.group)] {
            let is_own = |sid: &Sid| {
                sid.to_unix_user() == Some(owners.uid) || sid.to_unix_group() == Some(owners.gid)
            };
            let may_be = |sid| is_own(sid) || token.is_root() || token.has_sid(sid);
            if new != current && !new.as_ref().is_some_and(may_be) {
                return Err(Status::INVALID_OWNER);
            }
        }
        let uid = new.owner.as_ref().and_then(Sid::to_unix_user);
        let gid = new.group.as_ref().and_then(Sid::to_unix_group);
        owners.uid = uid.unwrap_or(owners.uid);
        owners.gid = gid.unwrap_or(owners.gid);
        let is_directory = self.tree.metadata(id, "").is_directory();
        let mode = match change.parts.contains(SecurityInformation::DACL) {
            true if token.is_root() || token.uid == node.uid || token.uid == owners.uid => {
                security::mode_of(&new, owners, is_directory)?
            }
            true => return Err(Status::ACCESS_DENIED),
            false => node.mode,
        };
        let now = self.tree.now;
        let node = self.tree.node_mut(id);
        node.mode = node.mode & !PERMISSIONS | mode & PERMISSIONS;
        (node.uid, node.gid) = (owners.uid, owners.gid);
        node.security = Some(Box::new(new));
        node.changed = now;
        Ok(())
    }

    /// The rights that the stored descriptor of a node grants; `None` if its mode decides.
    pub(super) fn granted(
        &self,
        token: &Token,
        location: &Location,
        id: NodeId,
    ) -> Option<AccessMask> {
        if token.is_root() {
            return None;
        }
        let mut granted = granted_by(self.tree.node(id), token)?;
        granted |= AccessMask::FILE_READ_ATTRIBUTES;
        let may_remove = self.tree.may_remove(token, location, id);
        let parent = self.tree.get(location.parent);
        let of_parent = parent.and_then(|parent| granted_by(parent, token));
        let deletes_child = of_parent.map_or(may_remove, |granted| {
            granted.contains(AccessMask::FILE_DELETE_CHILD)
        });
        if deletes_child {
            granted |= AccessMask::DELETE;
        }
        match may_remove {
            true => Some(granted),
            false => Some(granted.without(AccessMask::DELETE)),
        }
    }

    /// Checks that the descriptor of a directory lets a user create a file in it.
    pub(super) fn check_parent(
        &self,
        token: &Token,
        parent: NodeId,
        is_directory: bool,
    ) -> Result<(), Status> {
        let needed = match is_directory {
            true => AccessMask::FILE_ADD_SUBDIRECTORY,
            false => AccessMask::FILE_ADD_FILE,
        };
        let granted = granted_by(self.tree.node(parent), token);
        match granted.is_some_and(|granted| !token.is_root() && !granted.contains(needed)) {
            true => Err(Status::ACCESS_DENIED),
            false => Ok(()),
        }
    }

    /// Gives a new node the descriptor that it inherits and that the client sent.
    pub(super) fn secure(
        &mut self,
        plan: &OpenPlan,
        parent: NodeId,
        id: NodeId,
    ) -> Result<(), Status> {
        let node = self.tree.node(id);
        let creator = Creator {
            owner: Sid::unix_user(node.uid),
            group: Sid::unix_group(node.gid),
        };
        let is_directory = self.tree.metadata(id, "").is_directory();
        let of_parent = self.tree.node(parent).security.as_ref();
        let inherited = of_parent.map(|of| security::inherited(of, creator, is_directory));
        if let Some(inherited) = inherited.transpose()?.flatten() {
            let change = security::change_of_inherited(inherited);
            self.change_security(id, &plan.token, &change)?;
        }
        if let Some(sent) = &plan.security {
            self.change_security(id, &plan.token, &security::change_of_new(sent))?;
        }
        Ok(())
    }
}

/// The rights that the stored descriptor of a node grants; `None` if it has none.
fn granted_by(node: &Node, token: &Token) -> Option<AccessMask> {
    let descriptor = node.security.as_ref()?;
    let owners = Owners {
        uid: node.uid,
        gid: node.gid,
    };
    Some(security::granted(descriptor, token, owners))
}
