//! The inodes that the kernel knows, with their numbers and names.
//!
//! An inode has the number of its file on the server, so that it is the same after the kernel has
//! forgotten it. A number that the server gives to two files stands for the first one; the other
//! one gets a number that no server uses here. The kernel counts its references to an inode by
//! lookups; an inode leaves the table when the last one is forgotten.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use fuser::Errno;

use crate::names::join;
use crate::opens::Opens;

/// Number of the root. FUSE_ROOT_ID
pub(crate) const ROOT: u64 = 1;
/// First of the numbers for files with a missing or used number on the server.
const OWN_NUMBERS: u64 = 1 << 63;
/// Largest number of inodes: about 1 GiB of memory. The kernel forgets inodes when it needs memory.
const INODES_MAX: usize = 4 << 20;
/// Largest number of known names of a file with hard links. The oldest is dropped.
const NAMES_MAX: usize = 32;
/// Largest number of components of a path. A server cannot make a path longer by a loop.
const DEPTH_MAX: usize = 4096;

/// A name in a directory: the number of the directory, and the name on the server.
pub(crate) type Name = (u64, String);

/// What a response of the server shows of the identity of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    /// Number of the file on the server.
    pub(crate) id: Option<u64>,
    pub(crate) created: SystemTime,
    pub(crate) is_directory: bool,
}

/// What makes two responses show one file. The server can use the id of a removed file again, and
/// two volumes below a share can use one id; they differ in the time of creation.
type Key = (u64, SystemTime, bool);

impl Identity {
    /// `None` for a file without an id.
    fn key(&self) -> Option<Key> {
        self.id.map(|id| (id, self.created, self.is_directory))
    }
}

/// An inode that a lookup found or made.
pub(crate) struct Bound {
    pub(crate) ino: u64,
    pub(crate) generation: u64,
}

struct Inode {
    generation: u64,
    /// References of the kernel.
    lookups: u64,
    identity: Identity,
    /// The names that lead to the file, the latest last. Empty for a removed file.
    names: Vec<Name>,
    /// Number of names in this directory that the table has.
    children: usize,
    opens: Arc<Opens>,
}

/// The table of inodes.
pub(crate) struct Inodes {
    /// Path of the root in the share.
    base: String,
    by_number: HashMap<u64, Inode>,
    by_name: HashMap<Name, u64>,
    by_key: HashMap<Key, u64>,
    next_own: u64,
    next_generation: u64,
}

impl Inodes {
    /// A table with the root, which is the directory `base` of the share.
    pub(crate) fn new(base: &str) -> Self {
        let root = Inode {
            generation: 0,
            lookups: 1,
            identity: Identity {
                id: None,
                created: SystemTime::UNIX_EPOCH,
                is_directory: true,
            },
            names: Vec::new(),
            children: 0,
            opens: Opens::new(ROOT),
        };
        Self {
            base: base.to_owned(),
            by_number: HashMap::from([(ROOT, root)]),
            by_name: HashMap::new(),
            by_key: HashMap::new(),
            next_own: OWN_NUMBERS,
            next_generation: 1,
        }
    }

    /// Returns the number of inodes.
    pub(crate) fn len(&self) -> usize {
        self.by_number.len()
    }

    /// Returns the path of an inode in the share.
    ///
    /// # Errors
    /// ESTALE: the table does not have the inode. ENOENT: the file was removed. ELOOP: the path
    /// has no end.
    pub(crate) fn path(&self, ino: u64) -> Result<String, Errno> {
        let mut components = Vec::new();
        let mut at = ino;
        while at != ROOT {
            let inode = self.by_number.get(&at).ok_or(Errno::ESTALE)?;
            let (parent, name) = inode.names.last().ok_or(Errno::ENOENT)?;
            components.push(name.as_str());
            if components.len() > DEPTH_MAX {
                return Err(Errno::ELOOP);
            }
            at = *parent;
        }
        let path = components.iter().rev();
        Ok(path.fold(self.base.clone(), |path, name| join(&path, name)))
    }

    /// Returns the opens of an inode.
    pub(crate) fn opens(&self, ino: u64) -> Result<Arc<Opens>, Errno> {
        let inode = self.by_number.get(&ino).ok_or(Errno::ESTALE)?;
        Ok(Arc::clone(&inode.opens))
    }

    /// Returns the name of an inode that has one name, as far as the table knows.
    pub(crate) fn only_name(&self, ino: u64) -> Option<Name> {
        match self.by_number.get(&ino)?.names.as_slice() {
            [name] => Some(name.clone()),
            _ => None,
        }
    }

    /// Whether an inode is a directory.
    pub(crate) fn is_directory(&self, ino: u64) -> bool {
        let inode = self.by_number.get(&ino);
        inode.is_some_and(|inode| inode.identity.is_directory)
    }

    /// Returns the inode that a name leads to, as far as the table knows.
    pub(crate) fn child(&self, parent: u64, name: &str) -> Option<u64> {
        self.by_name.get(&(parent, name.to_owned())).copied()
    }

    /// Returns the names in a directory that the table knows, and whether they are directories.
    pub(crate) fn children(&self, parent: u64) -> Vec<(String, bool)> {
        let names = self.by_name.iter();
        let of_parent = names.filter(|((above, _), _)| *above == parent);
        let known = of_parent.map(|((_, name), ino)| (name.clone(), self.is_directory(*ino)));
        known.collect()
    }

    /// Takes note of a file that a response of the server shows under a name, and of one reference
    /// of the kernel to it.
    ///
    /// # Errors
    /// ENFILE: the table is full. ESTALE: the table does not have the directory.
    pub(crate) fn bind(&mut self, name: &Name, identity: Identity) -> Result<Bound, Errno> {
        if !self.by_number.contains_key(&name.0) {
            return Err(Errno::ESTALE);
        }
        let ino = match self.known(name, &identity) {
            Some(ino) => ino,
            None => self.add(identity)?,
        };
        self.name(ino, name);
        let inode = self.by_number.get_mut(&ino).ok_or(Errno::ESTALE)?;
        inode.lookups += 1;
        Ok(Bound {
            ino,
            generation: inode.generation,
        })
    }

    /// Returns the inode of the file, if the table has it.
    fn known(&self, name: &Name, identity: &Identity) -> Option<u64> {
        let here = self.by_name.get(name).copied();
        let Some(id) = identity.id else {
            let is_same = |ino: &u64| {
                let found = &self.by_number[ino].identity;
                found.id.is_none() && found.is_directory == identity.is_directory
            };
            return here.filter(is_same);
        };
        // A file with a number of its own has it because another file has the same id.
        let has_id = |ino: &u64| self.by_number[ino].identity.id == Some(id);
        let same_kind =
            |ino: &u64| self.by_number[ino].identity.is_directory == identity.is_directory;
        if let Some(ino) = here.filter(has_id).filter(same_kind) {
            return Some(ino);
        }
        let ino = self.by_key.get(&identity.key()?).copied()?;
        let is_removed = self.by_number[&ino].names.is_empty();
        let is_above = identity.is_directory && self.is_above(ino, name.0);
        (!is_removed && !is_above).then_some(ino)
    }

    /// Whether a directory is `below`, or above it.
    fn is_above(&self, ino: u64, below: u64) -> bool {
        let mut at = below;
        for _ in 0..DEPTH_MAX {
            if at == ino {
                return true;
            }
            match self.by_number.get(&at).and_then(|it| it.names.last()) {
                Some((parent, _)) => at = *parent,
                None => return false,
            }
        }
        true
    }

    fn add(&mut self, identity: Identity) -> Result<u64, Errno> {
        if self.by_number.len() >= INODES_MAX {
            return Err(Errno::ENFILE);
        }
        let generation = self.next_generation;
        self.next_generation += 1;
        let ino = self.number(&identity);
        let lookups = self.retire(ino);
        let inode = Inode {
            generation,
            lookups,
            identity,
            names: Vec::new(),
            children: 0,
            opens: Opens::new(ino),
        };
        self.by_number.insert(ino, inode);
        if let Some(key) = identity.key() {
            self.by_key.insert(key, ino);
        }
        Ok(ino)
    }

    /// The number for a new inode: its id, unless another file has that number.
    fn number(&mut self, identity: &Identity) -> u64 {
        let is_free = |ino: &u64| {
            let found = self.by_number.get(ino);
            found.is_none_or(|it| it.names.is_empty() && it.children == 0 && it.opens.is_empty())
        };
        let is_valid = |id: &u64| (ROOT + 1..OWN_NUMBERS).contains(id);
        if let Some(id) = identity.id.filter(is_valid).filter(is_free) {
            return id;
        }
        self.next_own += 1;
        self.next_own
    }

    /// Ends an inode. Another file gets its number: the file was removed, and the server uses its
    /// id again. The kernel has another inode for another generation. Returns the references of
    /// the kernel to the number, which it forgets all together.
    fn retire(&mut self, ino: u64) -> u64 {
        let Some(old) = self.by_number.remove(&ino) else {
            return 0;
        };
        if let Some(key) = old.identity.key()
            && self.by_key.get(&key) == Some(&ino)
        {
            self.by_key.remove(&key);
        }
        old.lookups
    }

    /// Lets a name lead to an inode.
    fn name(&mut self, ino: u64, name: &Name) {
        let before = self.by_name.insert(name.clone(), ino);
        if before == Some(ino) {
            let names = &mut self.by_number.get_mut(&ino).expect("it is named").names;
            // Paths are made of the latest name.
            if let Some(at) = names.iter().position(|it| it == name) {
                let latest = names.len() - 1;
                names.swap(at, latest);
            }
            return;
        }
        if let Some(old) = before {
            self.drop_name(old, name);
        }
        let inode = self.by_number.get_mut(&ino).expect("it was found or added");
        let most = match inode.identity.is_directory {
            true => 1,
            false => NAMES_MAX,
        };
        let dropped: Vec<Name> = match inode.names.len() >= most {
            true => inode.names.drain(..=inode.names.len() - most).collect(),
            false => Vec::new(),
        };
        inode.names.push(name.clone());
        self.add_child(name.0);
        for name in dropped {
            self.by_name.remove(&name);
            self.drop_child(name.0);
        }
    }

    /// Takes note that a name leads to no file any more. Returns the inode that it led to.
    pub(crate) fn unlinked(&mut self, parent: u64, name: &str) -> Option<u64> {
        let name = (parent, name.to_owned());
        let ino = self.by_name.remove(&name)?;
        self.drop_name(ino, &name);
        Some(ino)
    }

    /// Takes note of a rename. The file at the new name was replaced.
    pub(crate) fn renamed(&mut self, from: (u64, &str), to: &Name) {
        self.unlinked(to.0, &to.1);
        let from = (from.0, from.1.to_owned());
        if let Some(ino) = self.by_name.remove(&from) {
            self.name(ino, to);
            self.drop_name(ino, &from);
        }
    }

    fn drop_name(&mut self, ino: u64, name: &Name) {
        if let Some(inode) = self.by_number.get_mut(&ino) {
            let before = inode.names.len();
            inode.names.retain(|it| it != name);
            if inode.names.len() < before {
                self.drop_child(name.0);
            }
        }
    }

    fn add_child(&mut self, parent: u64) {
        if let Some(parent) = self.by_number.get_mut(&parent) {
            parent.children += 1;
        }
    }

    fn drop_child(&mut self, parent: u64) {
        if let Some(inode) = self.by_number.get_mut(&parent) {
            inode.children = inode.children.saturating_sub(1);
            self.remove_unused(parent);
        }
    }

    /// Drops references of the kernel.
    pub(crate) fn forget(&mut self, ino: u64, count: u64) {
        if let Some(inode) = self.by_number.get_mut(&ino) {
            inode.lookups = inode.lookups.saturating_sub(count);
            self.remove_unused(ino);
        }
    }

    /// Removes an inode without references and without names in it.
    fn remove_unused(&mut self, ino: u64) {
        let is_unused = |it: &Inode| it.lookups == 0 && it.children == 0;
        if ino == ROOT || !self.by_number.get(&ino).is_some_and(is_unused) {
            return;
        }
        let names = self.by_number[&ino].names.clone();
        self.retire(ino);
        for name in names {
            self.by_name.remove(&name);
            self.drop_child(name.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn of(id: u64, seconds: u64, is_directory: bool) -> Identity {
        Identity {
            id: Some(id),
            created: SystemTime::UNIX_EPOCH + Duration::from_secs(seconds),
            is_directory,
        }
    }

    fn bind(inodes: &mut Inodes, parent: u64, name: &str, identity: Identity) -> u64 {
        let bound = inodes.bind(&(parent, name.to_owned()), identity);
        bound.map(|bound| bound.ino).expect("bound")
    }

    #[test]
    fn an_inode_has_the_number_of_the_server_and_the_path_of_its_names() {
        let mut inodes = Inodes::new("base");
        let directory = bind(&mut inodes, ROOT, "a", of(10, 1, true));
        let file = bind(&mut inodes, directory, "b", of(11, 1, false));
        assert_eq!((directory, file), (10, 11));
        assert_eq!(inodes.path(file).as_deref(), Ok("base/a/b"));
        assert_eq!(inodes.children(directory), [("b".to_owned(), false)]);
        assert_eq!(inodes.children(ROOT), [("a".to_owned(), true)]);
        assert_eq!(bind(&mut inodes, directory, "b", of(11, 1, false)), 11);
        inodes.renamed((ROOT, "a"), &(ROOT, "c".to_owned()));
        assert_eq!(inodes.path(file).as_deref(), Ok("base/c/b"));
        inodes.unlinked(directory, "b");
        assert_eq!(inodes.path(file), Err(Errno::ENOENT));
        assert_eq!(inodes.path(directory).as_deref(), Ok("base/c"));
    }

    #[test]
    fn a_directory_stays_while_a_name_in_it_is_known() {
        let mut inodes = Inodes::new("");
        let directory = bind(&mut inodes, ROOT, "a", of(10, 1, true));
        let file = bind(&mut inodes, directory, "b", of(11, 1, false));
        inodes.forget(directory, 1);
        assert_eq!(inodes.path(file).as_deref(), Ok("a/b"));
        inodes.forget(file, 1);
        assert_eq!(inodes.len(), 1);
        assert_eq!(inodes.path(directory), Err(Errno::ESTALE));
        inodes.forget(ROOT, 100);
        assert_eq!(inodes.path(ROOT).as_deref(), Ok(""));
    }

    #[test]
    fn hard_links_are_one_inode_and_strangers_with_one_id_are_two() {
        let mut inodes = Inodes::new("");
        let one = bind(&mut inodes, ROOT, "a", of(10, 1, false));
        assert_eq!(bind(&mut inodes, ROOT, "b", of(10, 1, false)), one);
        inodes.unlinked(ROOT, "b");
        assert_eq!(inodes.path(one).as_deref(), Ok("a"));
        let stranger = bind(&mut inodes, ROOT, "c", of(10, 2, false));
        assert!(stranger > OWN_NUMBERS);
        assert_eq!(bind(&mut inodes, ROOT, "c", of(10, 2, false)), stranger);
        assert_eq!(bind(&mut inodes, ROOT, "d", of(10, 2, false)), stranger);
        assert_eq!(bind(&mut inodes, ROOT, "a", of(10, 1, false)), one);
    }

    #[test]
    fn a_number_that_the_server_uses_again_has_another_generation() {
        let mut inodes = Inodes::new("");
        let name = |name: &str| (ROOT, name.to_owned());
        let old = inodes.bind(&name("a"), of(10, 1, false)).expect("bound");
        inodes.unlinked(ROOT, "a");
        let new = inodes.bind(&name("a"), of(10, 2, false)).expect("bound");
        assert_eq!((old.ino, new.ino), (10, 10));
        assert_ne!(old.generation, new.generation);
        // The kernel forgets both together.
        inodes.forget(10, 1);
        assert_eq!(inodes.path(10).as_deref(), Ok("a"));
        inodes.forget(10, 1);
        assert_eq!(inodes.len(), 1);
    }

    #[test]
    fn a_loop_of_directories_ends() {
        let mut inodes = Inodes::new("");
        let a = bind(&mut inodes, ROOT, "a", of(10, 1, true));
        let b = bind(&mut inodes, a, "b", of(11, 1, true));
        // The server claims that `a` is below itself.
        let again = bind(&mut inodes, b, "a", of(10, 1, true));
        assert_ne!(again, a);
        assert_eq!(inodes.path(again).as_deref(), Ok("a/b/a"));
        let bound = inodes.bind(&(99, "x".to_owned()), of(12, 1, true));
        assert_eq!(bound.map(|bound| bound.ino), Err(Errno::ESTALE));
    }

    #[test]
    fn files_without_ids_are_known_by_their_names() {
        let mut inodes = Inodes::new("");
        let without = |is_directory| Identity {
            id: None,
            ..of(0, 1, is_directory)
        };
        let one = bind(&mut inodes, ROOT, "a", without(false));
        assert_eq!(bind(&mut inodes, ROOT, "a", without(false)), one);
        assert_ne!(bind(&mut inodes, ROOT, "a", without(true)), one);
    }
}
