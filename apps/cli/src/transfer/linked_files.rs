//! The files of a source with several names.

use std::collections::HashMap;
use std::sync::Mutex;

use super::item::Item;
use crate::file_path::FilePath;
use crate::mutex::lock;

/// Most files with several names that a transfer remembers. The names of further ones become files
/// of their own.
const MAX_FILES: usize = 1 << 20;

/// The files of the source with several names, by file system and number, each with the path of
/// its first copy.
#[derive(Default)]
pub(super) struct HardLinks(Mutex<HashMap<(u64, u64), FilePath>>);

impl HardLinks {
    /// The path of the first copy of the file of `item`; `None` if `item` is the first one.
    pub(super) fn first_of(&self, item: &Item) -> Option<FilePath> {
        let shared = item.info.shared?;
        let mut files = lock(&self.0);
        if let Some(first) = files.get(&shared) {
            return Some(first.clone());
        }
        if files.len() < MAX_FILES {
            files.insert(shared, item.target.clone());
        }
        None
    }
}
