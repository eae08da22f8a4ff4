//! What \[MS-FSA\] decides: who may open a file beside whom, and when a file goes.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use spin::Mutex;

use crate::effect::FileKey;

/// The files that are open, and how.
#[derive(Debug, Default)]
pub(crate) struct FileTable {
    files: Mutex<BTreeMap<FileKey, FileRecord>>,
}

/// One open file.
#[derive(Debug, Default)]
struct FileRecord {
    opens: Vec<()>,
}
