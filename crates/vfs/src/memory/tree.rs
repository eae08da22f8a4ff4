//! The tree of files in memory.

use std::collections::BTreeMap;

use proto::ea::Ea;
use proto::file::{FileKey, FileKind, Metadata, StreamId, VolumeId};
use proto::path::SharePath;
use proto::token::Token;
use wire::access::FileAttributes;
use wire::posix::PosixFileType;
use wire::reparse::{ReparsePoint, ReparseTag};
use wire::security::SecurityDescriptor;
use wire::{FileTime, Status};

use super::bytes::{Bytes, PAGE};
use crate::rights::{self, Permissions};
use crate::{attributes, fold};

/// Identifier of a node.
pub(crate) type NodeId = u64;

/// The root directory of the share.
pub(crate) const ROOT: NodeId = 1;

/// A file or directory.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) content: Content,
    pub(crate) stored: FileAttributes,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// The stored security descriptor; `None` if the mode stands for it.
    pub(crate) security: Option<Box<SecurityDescriptor>>,
    pub(crate) created: FileTime,
    pub(crate) accessed: FileTime,
    pub(crate) written: FileTime,
    pub(crate) changed: FileTime,
    /// Number of names.
    pub(crate) links: u32,
    /// Number of opens. A file without names exists until its last close.
    pub(crate) opens: u32,
    /// Reserved space in bytes.
    pub(crate) reserved: u64,
    /// The named streams by folded name. Each is a node with data and without attributes.
    pub(crate) streams: BTreeMap<String, Child>,
    /// The encoded reparse point.
    pub(crate) reparse: Option<Vec<u8>>,
    pub(crate) eas: Vec<Ea>,
}

/// The contents of a node.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    File(Bytes),
    /// The entries by folded name, and the parent directory.
    Directory(BTreeMap<String, Child>, NodeId),
}

/// An entry of a directory.
#[derive(Clone, Debug)]
pub(crate) struct Child {
    pub(crate) name: String,
    pub(crate) node: NodeId,
}

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) parent: NodeId,
    pub(crate) name: String,
    pub(crate) path: SharePath,
}

/// All files of a share.
#[derive(Debug)]
pub(crate) struct Tree {
    nodes: BTreeMap<NodeId, Node>,
    next: NodeId,
    /// The time of the present operation.
    pub(crate) now: FileTime,
}

impl Tree {
    /// A tree with a root directory of this owner.
    pub(crate) fn new(now: FileTime, uid: u32, gid: u32, mode: u32) -> Self {
        let mut tree = Self {
            nodes: BTreeMap::new(),
            next: ROOT,
            now,
        };
        let token = Token::new(uid, gid, Vec::new());
        let content = Content::Directory(BTreeMap::new(), ROOT);
        let root = tree.add(content, &token, mode, FileAttributes::NONE);
        assert_eq!(root, ROOT);
        tree.node_mut(root).links = 1;
        tree
    }

    /// A node that exists.
    pub(crate) fn node(&self, id: NodeId) -> &Node {
        self.nodes
            .get(&id)
            .expect("a node with names or opens is in the tree")
    }

    /// A node that exists.
    pub(crate) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        self.nodes
            .get_mut(&id)
            .expect("a node with names or opens is in the tree")
    }

    /// A node; `None` if it does not exist.
    pub(crate) fn get(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(&id)
    }

    /// Adds a node that has no name yet.
    pub(crate) fn add(
        &mut self,
        content: Content,
        token: &Token,
        mode: u32,
        stored: FileAttributes,
    ) -> NodeId {
        let (id, now) = (self.next, self.now);
        self.next += 1;
        let node = Node {
            content,
            stored,
            mode,
            uid: token.uid,
            gid: token.gid,
            security: None,
            created: now,
            accessed: now,
            written: now,
            changed: now,
            links: 0,
            opens: 0,
            reserved: 0,
            streams: BTreeMap::new(),
            reparse: None,
            eas: Vec::new(),
        };
        self.nodes.insert(id, node);
        id
    }

    /// Space that all files use, in bytes.
    pub(crate) fn used(&self) -> u64 {
        self.nodes.values().map(Node::allocation).sum()
    }

    /// The metadata of a node under a name.
    pub(crate) fn metadata(&self, id: NodeId, name: &str) -> Metadata {
        let node = self.node(id);
        let kind = node.kind();
        let type_bits = if kind == FileKind::Directory {
            0o040_000
        } else {
            0o100_000
        };
        Metadata {
            key: FileKey {
                volume: 1,
                file: id,
                stream: StreamId::DATA,
            },
            volume: VolumeId { serial: 1, tag: 0 },
            kind,
            attributes: attributes::shown(node.stored, kind, name, true),
            stored: attributes::settable(node.stored),
            size: node.size(),
            allocation: node.allocation(),
            links: node.links,
            created: node.created,
            accessed: node.accessed,
            written: node.written,
            changed: node.changed,
            mode: node.mode | type_bits,
            posix_type: node.posix_type(),
            uid: node.uid,
            gid: node.gid,
            reparse_tag: node.reparse_tag(),
        }
    }

    /// The permissions of a token on a node.
    pub(crate) fn permissions(&self, token: &Token, id: NodeId) -> Permissions {
        Permissions::of(token, &self.metadata(id, ""))
    }

    /// Whether a token may remove a name from a directory. The root, which has no name, counts as
    /// its own parent.
    pub(crate) fn may_remove(&self, token: &Token, location: &Location, id: NodeId) -> bool {
        if self.get(location.parent).is_none() {
            return false;
        }
        let parent = self.metadata(location.parent, "");
        let has = Permissions::of(token, &parent);
        rights::may_remove(token, &self.metadata(id, ""), &parent, has)
    }

    /// The entry with this name, without regard to case.
    pub(crate) fn child(&self, directory: NodeId, name: &str) -> Option<&Child> {
        self.children(directory).get(&fold::fold(name))
    }

    /// The entries of a directory.
    pub(crate) fn children(&self, directory: NodeId) -> &BTreeMap<String, Child> {
        match &self.node(directory).content {
            Content::Directory(children, _) => children,
            Content::File(_) => panic!("only directories are asked for their children"),
        }
    }

    /// The directory of a path, as spelled in the tree.
    pub(crate) fn directory(
        &self,
        token: &Token,
        path: &SharePath,
    ) -> Result<(NodeId, SharePath), Status> {
        let (mut at, mut spelled) = (ROOT, SharePath::root());
        for component in path.components() {
            if !self.permissions(token, at).execute {
                return Err(Status::ACCESS_DENIED);
            }
            let child = self
                .child(at, component)
                .ok_or(Status::OBJECT_PATH_NOT_FOUND)?;
            if self.node(child.node).kind() != FileKind::Directory {
                return Err(Status::OBJECT_PATH_NOT_FOUND);
            }
            at = child.node;
            spelled = spelled.join(&child.name);
        }
        if !self.permissions(token, at).execute {
            return Err(Status::ACCESS_DENIED);
        }
        Ok((at, spelled))
    }

    /// The location of a path, as spelled in the tree, and its node if it exists.
    pub(crate) fn find(
        &self,
        token: &Token,
        path: &SharePath,
    ) -> Result<(Location, Option<NodeId>), Status> {
        if path.is_root() {
            let location = Location {
                parent: ROOT,
                name: String::new(),
                path: SharePath::root(),
            };
            return Ok((location, Some(ROOT)));
        }
        let (parent, above) = self.directory(token, &path.parent())?;
        let child = self.child(parent, path.name());
        let name = child.map_or(path.name(), |child| &child.name);
        let location = Location {
            parent,
            name: name.to_owned(),
            path: above.join(name),
        };
        Ok((location, child.map(|child| child.node)))
    }

    /// Returns a name of a node; `None` if the node has none. Searches the whole tree.
    pub(crate) fn location_of(&self, id: NodeId) -> Option<Location> {
        let mut directories = Vec::from([(ROOT, SharePath::root())]);
        if id == ROOT {
            let (name, path) = (String::new(), SharePath::root());
            return Some(Location {
                parent: ROOT,
                name,
                path,
            });
        }
        while let Some((parent, above)) = directories.pop() {
            for child in self.children(parent).values() {
                let path = above.join(&child.name);
                if child.node == id {
                    let name = child.name.clone();
                    return Some(Location { parent, name, path });
                }
                if self.node(child.node).kind() == FileKind::Directory {
                    directories.push((child.node, path));
                }
            }
        }
        None
    }

    /// Adds a name for a node to a directory, which must not have an equal name.
    pub(crate) fn link(&mut self, parent: NodeId, name: &str, id: NodeId) {
        let now = self.now;
        let child = Child {
            name: name.to_owned(),
            node: id,
        };
        let Content::Directory(children, _) = &mut self.node_mut(parent).content else {
            panic!("only directories hold names");
        };
        let before = children.insert(fold::fold(name), child);
        assert!(before.is_none(), "a name is free before it is given");
        self.touch(parent);
        let node = self.node_mut(id);
        node.links += 1;
        node.changed = now;
        if let Content::Directory(_, above) = &mut node.content {
            *above = parent;
        }
    }

    /// Removes a name from a directory.
    pub(crate) fn unlink(&mut self, parent: NodeId, name: &str) {
        let now = self.now;
        let Content::Directory(children, _) = &mut self.node_mut(parent).content else {
            panic!("only directories hold names");
        };
        let child = children
            .remove(&fold::fold(name))
            .expect("the removed name exists");
        self.touch(parent);
        let node = self.node_mut(child.node);
        node.links -= 1;
        node.changed = now;
        self.forget(child.node);
    }

    /// Deletes a node that has neither names nor opens.
    pub(crate) fn forget(&mut self, id: NodeId) {
        let node = self.node(id);
        if node.links > 0 || node.opens > 0 {
            return;
        }
        let removed = self.nodes.remove(&id);
        for stream in removed
            .into_iter()
            .flat_map(|node| node.streams.into_values())
        {
            self.node_mut(stream.node).links = 0;
            self.forget(stream.node);
        }
    }

    /// Whether a directory is `above` itself or below it.
    pub(crate) fn is_beneath(&self, mut directory: NodeId, above: NodeId) -> bool {
        loop {
            if directory == above {
                return true;
            }
            match &self.node(directory).content {
                Content::Directory(_, parent) if directory != ROOT => directory = *parent,
                Content::Directory(..) | Content::File(_) => return false,
            }
        }
    }

    /// Updates the times of a node after a change of its contents.
    pub(crate) fn touch(&mut self, id: NodeId) {
        let now = self.now;
        let node = self.node_mut(id);
        node.written = now;
        node.changed = now;
    }
}

impl Node {
    /// The tag of the reparse point.
    pub(crate) fn reparse_tag(&self) -> ReparseTag {
        let reparse = self.reparse.as_deref();
        let decoded = reparse.and_then(|data| ReparsePoint::decode(data).ok());
        decoded.map_or(ReparseTag::NONE, |reparse| reparse.tag)
    }

    /// The type that clients of the SMB3 POSIX extensions see.
    pub(crate) fn posix_type(&self) -> PosixFileType {
        let reparse = self.reparse.as_deref();
        let decoded = reparse.and_then(|data| ReparsePoint::decode(data).ok());
        let of_reparse = decoded.and_then(|reparse| reparse.posix_type());
        of_reparse.unwrap_or(match self.kind() {
            FileKind::Directory => PosixFileType::DIRECTORY,
            _ => PosixFileType::FILE,
        })
    }

    /// The kind of the node: file or directory.
    pub(crate) fn kind(&self) -> FileKind {
        match &self.content {
            Content::File(_) => FileKind::File,
            Content::Directory(..) => FileKind::Directory,
        }
    }

    fn size(&self) -> u64 {
        match &self.content {
            Content::File(bytes) => bytes.len(),
            Content::Directory(..) => 0,
        }
    }

    fn allocation(&self) -> u64 {
        match &self.content {
            Content::File(bytes) => bytes
                .allocated()
                .max(self.reserved.div_ceil(PAGE).saturating_mul(PAGE)),
            Content::Directory(..) => 0,
        }
    }
}
