//! The watched directories, and the watches that a change in a directory matches.
//!
//! A file handle identifies a directory, and a rename does not change it. The location of a
//! directory is known relative to its nearest watched ancestor only, and only that is needed.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use proto::file::FileKey;
use proto::path::SharePath;
use ring::FileHandle;

/// Maximum depth of a directory: a path has no more components. It bounds the walk to the root if
/// lost renames produce a cycle.
const DEPTH_MAX: usize = 4096;

/// The directories of a share that have a mark.
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: HashMap<FileHandle, Node>,
    by_key: HashMap<FileKey, FileHandle>,
    /// The watches by the slot of their open.
    watches: HashMap<u64, Watch>,
}

#[derive(Debug)]
struct Node {
    key: FileKey,
    /// Parent and name of the directory, if known. They are known for every descendant of a watched
    /// tree.
    parent: Option<(FileHandle, String)>,
    /// Descriptor of the directory; present for a directory that itself has a watch.
    fd: Option<Arc<OwnedFd>>,
    /// Number of watches of this directory.
    watches: usize,
    /// Number of these watches that include the tree.
    trees: usize,
    /// Number of watches of a subdirectory, which receive the removal of that subdirectory.
    child_watches: usize,
}

#[derive(Debug)]
struct Watch {
    directory: FileHandle,
    parent: Option<FileHandle>,
    is_tree: bool,
}

/// A directory to mark.
#[derive(Clone, Debug)]
pub(super) struct MarkTarget {
    pub(super) handle: FileHandle,
    pub(super) key: FileKey,
    pub(super) fd: Arc<OwnedFd>,
}

/// A directory that no longer needs its mark, and the route to it.
#[derive(Debug)]
pub(super) struct Unused {
    pub(super) handle: FileHandle,
    pub(super) route: Option<Route>,
}

/// The route to a directory: an open directory, and a relative path that may be empty.
#[derive(Clone, Debug)]
pub(super) struct Route {
    pub(super) from: Arc<OwnedFd>,
    pub(super) path: String,
}

impl Tree {
    /// Number of directories in the tree.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether any watch includes a tree.
    pub(super) fn has_trees(&self) -> bool {
        self.watches.values().any(|watch| watch.is_tree)
    }

    /// Adds a watch of an open directory; `parent` is its parent directory.
    pub(super) fn watch(
        &mut self,
        slot: u64,
        directory: MarkTarget,
        parent: Option<MarkTarget>,
        is_tree: bool,
    ) {
        self.unwatch(slot);
        let watch = Watch {
            directory: directory.handle.clone(),
            parent: parent.as_ref().map(|parent| parent.handle.clone()),
            is_tree,
        };
        let node = self.node(&directory.handle, directory.key);
        node.fd.get_or_insert(directory.fd);
        node.watches += 1;
        node.trees += usize::from(is_tree);
        if let Some(parent) = parent {
            let node = self.node(&parent.handle, parent.key);
            node.fd.get_or_insert(parent.fd);
            node.child_watches += 1;
        }
        self.watches.insert(slot, watch);
    }

    /// Removes the watch of an open. Returns whether it existed: then `sweep` may remove
    /// directories.
    pub(super) fn unwatch(&mut self, slot: u64) -> bool {
        let Some(watch) = self.watches.remove(&slot) else {
            return false;
        };
        if let Some(node) = self.nodes.get_mut(&watch.directory) {
            node.watches -= 1;
            node.trees -= usize::from(watch.is_tree);
        }
        if let Some(node) = watch.parent.and_then(|parent| self.nodes.get_mut(&parent)) {
            node.child_watches -= 1;
        }
        true
    }

    /// Sets parent and name of a directory in a watched tree.
    pub(super) fn attach(
        &mut self,
        handle: &FileHandle,
        key: FileKey,
        parent: &FileHandle,
        name: &str,
    ) {
        self.node(handle, key).parent = Some((parent.clone(), name.to_owned()));
    }

    fn node(&mut self, handle: &FileHandle, key: FileKey) -> &mut Node {
        self.by_key.insert(key, handle.clone());
        self.nodes.entry(handle.clone()).or_insert(Node {
            key,
            parent: None,
            fd: None,
            watches: 0,
            trees: 0,
            child_watches: 0,
        })
    }

    /// Changes parent and name of a known directory. Returns whether it is known.
    pub(super) fn move_to(
        &mut self,
        handle: &FileHandle,
        to: Option<(FileHandle, String)>,
    ) -> bool {
        let node = self.nodes.get_mut(handle);
        node.map(|node| node.parent = to).is_some()
    }

    /// Removes a deleted directory. Returns its key if it has a watch.
    pub(super) fn remove(&mut self, handle: &FileHandle) -> Option<FileKey> {
        let node = self.nodes.remove(handle)?;
        if self.by_key.get(&node.key) == Some(handle) {
            self.by_key.remove(&node.key);
        }
        if node.child_watches > 0 {
            for watch in self.watches.values_mut() {
                watch.parent = watch.parent.take().filter(|parent| parent != handle);
            }
        }
        if node.watches == 0 {
            return None;
        }
        self.watches.retain(|_, watch| watch.directory != *handle);
        Some(node.key)
    }

    /// The handle of the directory with this key.
    pub(super) fn handle(&self, key: FileKey) -> Option<&FileHandle> {
        self.by_key.get(&key)
    }

    /// Whether the tree contains a directory.
    pub(super) fn contains(&self, handle: &FileHandle) -> bool {
        self.nodes.contains_key(handle)
    }

    /// Whether a tree watch includes a directory.
    pub(super) fn is_covered(&self, handle: &FileHandle) -> bool {
        self.ancestors(handle).any(|node| node.trees > 0)
    }

    /// The directories with a tree watch.
    pub(super) fn roots(&self) -> Vec<FileHandle> {
        let roots = self.nodes.iter().filter(|(_, node)| node.trees > 0);
        roots.map(|(handle, _)| handle.clone()).collect()
    }

    /// The watched directories that a change of a name in a directory matches, each with the path
    /// relative to it.
    pub(super) fn observers(&self, handle: &FileHandle, name: &str) -> Vec<(FileKey, SharePath)> {
        let mut found = Vec::new();
        let mut path = name.to_owned();
        for (depth, node) in self.ancestors(handle).enumerate() {
            let sees = if depth == 0 { node.watches } else { node.trees };
            if sees > 0 {
                found.push((node.key, SharePath::from_trusted(&path)));
            }
            if let Some((_, name)) = &node.parent {
                path = format!("{name}/{path}");
            }
        }
        found
    }

    /// The watched directories that any change in a directory matches.
    pub(super) fn watched(&self, handle: &FileHandle) -> Vec<FileKey> {
        let above = self.ancestors(handle).enumerate();
        let sees = |depth, node: &Node| if depth == 0 { node.watches } else { node.trees } > 0;
        above
            .filter(|(depth, node)| sees(*depth, node))
            .map(|(_, node)| node.key)
            .collect()
    }

    /// Parent and name of a directory, if known.
    pub(super) fn parent(&self, handle: &FileHandle) -> Option<&(FileHandle, String)> {
        self.nodes.get(handle)?.parent.as_ref()
    }

    /// The route to a directory; `None` when its location is unknown.
    pub(super) fn route(&self, handle: &FileHandle) -> Option<Route> {
        let mut path = String::new();
        for node in self.ancestors(handle) {
            if let Some(fd) = &node.fd {
                let from = fd.clone();
                return Some(Route { from, path });
            }
            let (_, name) = node.parent.as_ref()?;
            path = match path.is_empty() {
                true => name.clone(),
                false => format!("{name}/{path}"),
            };
        }
        None
    }

    /// Removes the directories that no watch includes. Returns them.
    pub(super) fn sweep(&mut self) -> Vec<Unused> {
        let is_left = |handle: &FileHandle, node: &Node| {
            node.watches + node.child_watches == 0 && !self.is_covered(handle)
        };
        let left = self
            .nodes
            .iter()
            .filter(|(handle, node)| is_left(handle, node));
        let left: Vec<Unused> = left.map(|(handle, _)| self.unused(handle)).collect();
        for Unused { handle, .. } in &left {
            self.remove(handle);
        }
        for node in self.nodes.values_mut() {
            if node.watches + node.child_watches == 0 {
                node.fd = None;
            }
        }
        left
    }

    /// Removes the directories below the roots that are not in `seen`: their removal was lost.
    pub(super) fn keep_only(&mut self, seen: &HashSet<FileHandle>) {
        let is_lost = |handle: &FileHandle, node: &Node| {
            node.watches + node.child_watches == 0 && !seen.contains(handle)
        };
        let lost = self
            .nodes
            .iter()
            .filter(|(handle, node)| is_lost(handle, node));
        let lost: Vec<FileHandle> = lost.map(|(handle, _)| handle.clone()).collect();
        for handle in lost {
            self.remove(&handle);
        }
    }

    fn unused(&self, handle: &FileHandle) -> Unused {
        Unused {
            handle: handle.clone(),
            route: self.route(handle),
        }
    }

    /// A directory and its known ancestors, from the bottom up.
    fn ancestors(&self, handle: &FileHandle) -> impl Iterator<Item = &Node> {
        let above = |node: &&Node| {
            let (parent, _) = node.parent.as_ref()?;
            self.nodes.get(parent)
        };
        std::iter::successors(self.nodes.get(handle), above).take(DEPTH_MAX)
    }
}
