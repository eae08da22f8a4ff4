//! Rename, hard link and removal of files in memory.

use proto::file::{FileKind, LocalOpen, Outcome, Replace};
use proto::path::SharePath;
use wire::Status;

use super::State;
use super::tree::{Location, NodeId, ROOT};
use crate::rights;

impl State {
    pub(super) fn rename(
        &mut self,
        file: LocalOpen,
        to: &SharePath,
        replace: Replace,
    ) -> Result<Outcome, Status> {
        let (node, from) = self.named(file)?;
        let token = self.open_of(file)?.token.clone();
        if !self.tree.may_remove(&token, &from, node) {
            return Err(Status::ACCESS_DENIED);
        }
        let target = self.target(file, to)?;
        if self.tree.is_beneath(target.parent, node) {
            return Err(Status::INVALID_PARAMETER);
        }
        if let Some(other) = self
            .tree
            .child(target.parent, to.name())
            .map(|child| child.node)
        {
            let is_same = target.parent == from.parent && crate::fold::same(&from.name, to.name());
            if !is_same {
                self.make_way(file, &target, other, replace)?;
            }
        }
        // The open keeps the node alive while it has no name.
        self.tree.unlink(from.parent, &from.name);
        self.tree.link(target.parent, &target.name, node);
        for open in self.opens.values_mut() {
            if open.node == node && open.location == from {
                open.location = target.clone();
            }
        }
        Ok(Outcome::Renamed(target.path))
    }

    pub(super) fn link(
        &mut self,
        file: LocalOpen,
        to: &SharePath,
        replace: bool,
    ) -> Result<Outcome, Status> {
        let (node, _) = self.named(file)?;
        if self.tree.node(node).kind() == FileKind::Directory {
            return Err(Status::FILE_IS_A_DIRECTORY);
        }
        let target = self.target(file, to)?;
        if let Some(other) = self
            .tree
            .child(target.parent, to.name())
            .map(|child| child.node)
        {
            if other == node && replace {
                return Ok(Outcome::Done);
            }
            self.make_way(file, &target, other, replace.into())?;
        }
        self.tree.link(target.parent, &target.name, node);
        Ok(Outcome::Done)
    }

    pub(super) fn unlink(&mut self, file: LocalOpen, path: &SharePath) -> Result<Outcome, Status> {
        let (node, location) = match self.other_name(file, path)? {
            Some(location) => (self.open_of(file)?.node, location),
            None => self.named(file)?,
        };
        if !self
            .tree
            .may_remove(&self.open_of(file)?.token, &location, node)
        {
            return Err(Status::ACCESS_DENIED);
        }
        if self.tree.node(node).kind() == FileKind::Directory {
            self.check_empty(file)?;
        }
        self.tree.unlink(location.parent, &location.name);
        Ok(Outcome::Done)
    }

    /// Another name of the open's file: a hard link.
    fn other_name(&self, file: LocalOpen, path: &SharePath) -> Result<Option<Location>, Status> {
        let open = self.open_of(file)?;
        if open.location.path == *path || path.is_root() {
            return Ok(None);
        }
        Ok(match self.tree.find(&open.token, path) {
            Ok((location, Some(node))) if node == open.node => Some(location),
            Ok(_) | Err(_) => None,
        })
    }

    pub(super) fn check_empty(&self, file: LocalOpen) -> Result<Outcome, Status> {
        let open = self.open_of(file)?;
        if self.tree.node(open.node).kind() != FileKind::Directory {
            return Err(Status::NOT_A_DIRECTORY);
        }
        match self.tree.children(open.node).is_empty() {
            true => Ok(Outcome::Done),
            false => Err(Status::DIRECTORY_NOT_EMPTY),
        }
    }

    pub(super) fn check_delete(&self, file: LocalOpen) -> Result<Outcome, Status> {
        let open = self.open_of(file)?;
        let metadata = self.tree.metadata(open.node, "");
        if open.node == ROOT || rights::is_read_only(&metadata) {
            return Err(Status::CANNOT_DELETE);
        }
        match self.tree.may_remove(&open.token, &open.location, open.node) {
            true => Ok(Outcome::Done),
            false => Err(Status::ACCESS_DENIED),
        }
    }

    pub(super) fn look_up(&self, file: LocalOpen, path: &SharePath) -> Result<Outcome, Status> {
        let open = self.open_of(file)?;
        match self.tree.find(&open.token, path) {
            Ok((location, node)) => Ok(Outcome::Found(
                node.map(|node| self.tree.metadata(node, &location.name)),
            )),
            Err(Status::OBJECT_PATH_NOT_FOUND) => Ok(Outcome::Found(None)),
            Err(status) => Err(status),
        }
    }

    /// The file of an open and its name. Fails when the name no longer refers to the file.
    fn named(&self, file: LocalOpen) -> Result<(NodeId, Location), Status> {
        let open = self.open_of(file)?;
        if open.node == ROOT {
            return Err(Status::ACCESS_DENIED);
        }
        let is_present = self
            .tree
            .get(open.location.parent)
            .is_some_and(|parent| parent.links > 0);
        let child = is_present.then(|| self.tree.child(open.location.parent, &open.location.name));
        match child.flatten() {
            Some(child) if child.node == open.node => Ok((open.node, open.location.clone())),
            Some(_) | None => Err(Status::OBJECT_NAME_NOT_FOUND),
        }
    }

    /// The location of a new name, as spelled by the client. Fails when the token may not create
    /// it.
    fn target(&self, file: LocalOpen, to: &SharePath) -> Result<Location, Status> {
        let token = &self.open_of(file)?.token;
        if to.is_root() {
            return Err(Status::OBJECT_NAME_COLLISION);
        }
        let (parent, above) = self.tree.directory(token, &to.parent())?;
        if !self.tree.permissions(token, parent).changes_names() {
            return Err(Status::ACCESS_DENIED);
        }
        Ok(Location {
            parent,
            name: to.name().to_owned(),
            path: above.join(to.name()),
        })
    }

    /// Removes the existing file with the new name, if the plan allows it. \[MS-FSA\] 2.1.5.15.11
    fn make_way(
        &mut self,
        file: LocalOpen,
        target: &Location,
        other: NodeId,
        replace: Replace,
    ) -> Result<(), Status> {
        if replace == Replace::Nothing {
            return Err(Status::OBJECT_NAME_COLLISION);
        }
        if replace == Replace::Posix {
            return self.make_way_posix(file, target, other);
        }
        let open = self.open_of(file)?;
        let metadata = self.tree.metadata(other, "");
        let is_barred = metadata.is_directory()
            || self.tree.node(open.node).kind() == FileKind::Directory
            || replace != Replace::Any && rights::is_read_only(&metadata)
            || !self.tree.may_remove(&open.token, target, other);
        if is_barred {
            return Err(Status::ACCESS_DENIED);
        }
        self.tree.unlink(target.parent, &target.name);
        Ok(())
    }

    /// Removes the existing file with the new name as rename(2) does.
    fn make_way_posix(
        &mut self,
        file: LocalOpen,
        target: &Location,
        other: NodeId,
    ) -> Result<(), Status> {
        let open = self.open_of(file)?;
        if !self.tree.may_remove(&open.token, target, other) {
            return Err(Status::ACCESS_DENIED);
        }
        let kind_of = |node| self.tree.node(node).kind();
        match (kind_of(open.node), kind_of(other)) {
            (FileKind::Directory, FileKind::Directory) if !self.tree.children(other).is_empty() => {
                return Err(Status::DIRECTORY_NOT_EMPTY);
            }
            (FileKind::Directory, FileKind::Directory) => {}
            (FileKind::Directory, _) => return Err(Status::NOT_A_DIRECTORY),
            (_, FileKind::Directory) => return Err(Status::FILE_IS_A_DIRECTORY),
            _ => {}
        }
        self.tree.unlink(target.parent, &target.name);
        Ok(())
    }
}
