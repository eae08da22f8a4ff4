//! The state before `--apply`.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::file;
use crate::describe::json;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};

/// Permissions of the record: its files may be private.
const MODE: u32 = 0o600;

/// The state before `--apply`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// Parameters of the kernel.
    pub(super) sysctls: BTreeMap<String, String>,
    /// Files.
    pub(super) files: Vec<FileRecord>,
    /// Directories that did not exist, the deepest first.
    pub(super) directories: Vec<PathBuf>,
}

/// The state of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileRecord {
    pub(super) path: PathBuf,
    /// Its content; `None` if it did not exist.
    pub(super) content: Option<String>,
    /// Its permissions.
    mode: u32,
}

impl FileRecord {
    /// The present state of a file.
    pub(super) fn of(path: &Path) -> Outcome<Self> {
        let failed = |error| Failure::local(&path.display(), &error);
        let (content, mode) = match fs::read_to_string(path) {
            Ok(content) => {
                let mode = fs::metadata(path).map_err(failed)?.permissions().mode();
                (Some(content), mode & 0o7777)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => (None, 0),
            Err(error) => return Err(failed(error)),
        };
        Ok(Self {
            path: path.to_owned(),
            content,
            mode,
        })
    }

    /// Restores the file.
    pub(super) fn restore(&self) -> Outcome {
        match &self.content {
            Some(content) => file::write_mode(&self.path, content, self.mode),
            None => remove(&self.path),
        }
    }
}

impl Record {
    /// Reads the record of the last `--apply`.
    pub(super) fn load(path: &Path) -> Outcome<Self> {
        let text = fs::read_to_string(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                let why = "no changes of --apply are in effect";
                Failure::new(Exit::NotFound, path.display(), why)
            }
            _ => Failure::local(&path.display(), &error),
        })?;
        serde_json::from_str(&text).map_err(|error| Failure::usage(path.display(), error))
    }

    /// Writes the record.
    pub(super) fn save(&self, path: &Path) -> Outcome {
        file::write_mode(path, &json(self), MODE)
    }

    /// Removes the record.
    pub(super) fn remove(path: &Path) -> Outcome {
        remove(path)
    }
}

fn remove(path: &Path) -> Outcome {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Failure::local(&path.display(), &error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_records_are_restored() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a/b.conf");
        let absent = FileRecord::of(&path).expect("no file");
        let missing = file::missing_directories(&path);
        assert_eq!(missing, [directory.path().join("a")]);
        file::write_mode(&path, "one\n", 0o640).expect("a file");
        let present = FileRecord::of(&path).expect("a file");
        file::write(&path, "two\n").expect("a file");
        present.restore().expect("restored");
        assert_eq!(FileRecord::of(&path).expect("a file"), present);
        assert_eq!(present.mode, 0o640);
        let record = Record {
            files: vec![absent],
            directories: missing,
            ..Record::default()
        };
        let file = directory.path().join("tune.json");
        assert!(Record::load(&file).is_err());
        record.save(&file).expect("a file");
        assert_eq!(Record::load(&file).expect("a record"), record);
        record.files[0].restore().expect("removed");
        file::remove_directories(&record.directories);
        assert!(!directory.path().join("a").exists());
    }
}
