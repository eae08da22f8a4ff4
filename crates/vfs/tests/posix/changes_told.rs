//! What a share tells of changes that another process makes, and that other process.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use proto::file::{FileOp, LocalEvent, LocalOpen, Operation};
use vfs::FileSystem;
use vfs::posix::Options;
use wire::access::AccessMask;
use wire::fscc::FileAction;

use crate::share::Folder;

/// Names the folder to the other process, and what it is to do there.
const FOLDER: &str = "SMBEAM_OTHER_FOLDER";
const SCRIPT: &str = "SMBEAM_OTHER_SCRIPT";
/// How long to wait for what has to come, before the test fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder, and what its share tells of it.
pub(crate) struct Watched {
    pub(crate) folder: Folder,
    heard: Arc<Heard>,
    marks: usize,
}

#[derive(Default)]
struct Heard {
    events: Mutex<Vec<LocalEvent>>,
    came: Condvar,
    /// Held by who wants the share to wait.
    gate: Mutex<()>,
}

impl Watched {
    /// A folder with these directories.
    pub(crate) fn new(directories: &[&str]) -> Self {
        let folder = Folder::new(Options::default());
        for directory in directories {
            let open = folder.share.directory(directory);
            folder.share.close(open);
        }
        let heard = Arc::new(Heard::default());
        let listener = heard.clone();
        folder.posix.listen(Arc::new(move |events| {
            drop(listener.gate.lock());
            let mut all = listener
                .events
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            all.extend_from_slice(events);
            listener.came.notify_all();
        }));
        Self {
            folder,
            heard,
            marks: 0,
        }
    }

    /// Watches a directory, and waits until all below it is watched, too.
    pub(crate) fn watch(&mut self, directory: &str, is_tree: bool) -> LocalOpen {
        let list = AccessMask::FILE_LIST_DIRECTORY;
        let opened = self.folder.share.open_for(directory, list);
        let file = opened.expect("it is there").file;
        self.folder
            .share
            .unit(&FileOp::OnOpen(file, Operation::Watch { is_tree }))
            .expect("a watch");
        let directory = if directory.is_empty() { "." } else { directory };
        assert_eq!(self.told(directory), []);
        file
    }

    /// Lets another process do something in the folder: one thing a line.
    pub(crate) fn elsewhere(&self, script: &str) {
        let test = std::env::current_exe().expect("the test knows itself");
        let done = Command::new(test)
            .args(["--exact", "changes_told::the_other_process", "--nocapture"])
            .env(FOLDER, self.folder.path(""))
            .env(SCRIPT, script)
            .output()
            .expect("another process");
        assert!(done.status.success(), "{done:?}");
    }

    /// What was told by now and was not asked for, but the name of a file in this directory that
    /// says so.
    pub(crate) fn told(&mut self, directory: &str) -> Vec<LocalEvent> {
        self.marks += 1;
        let mark = format!("mark{}", self.marks);
        self.elsewhere(&format!("touch {directory}/{mark}"));
        self.told_until(|event| path_of(event).is_some_and(|path| path.ends_with(&mark)))
    }

    /// What was told up to this event, without it.
    pub(crate) fn told_until(&self, is_last: impl Fn(&LocalEvent) -> bool) -> Vec<LocalEvent> {
        let events = self.heard.events.lock();
        let mut events = events.unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(at) = events.iter().position(&is_last) {
                let mut told: Vec<_> = events.drain(..=at).collect();
                told.pop();
                // A mark is told to all that watch.
                let is_mark = |event: &LocalEvent| {
                    path_of(event).is_some_and(|path| path.rsplit('/').any(is_mark_name))
                };
                told.retain(|event| !is_mark(event));
                return told;
            }
            let (waited, late) = self
                .heard
                .came
                .wait_timeout(events, PATIENCE)
                .unwrap_or_else(PoisonError::into_inner);
            events = waited;
            assert!(!late.timed_out(), "it never came, but {events:?}");
        }
    }

    /// Keeps the share from telling while something is done.
    pub(crate) fn while_it_waits(&self, run: impl FnOnce()) {
        let gate = self.heard.gate.lock();
        run();
        drop(gate);
    }
}

/// Whether a name is one that says that all before it was told.
pub(crate) fn is_mark_name(name: &str) -> bool {
    name.starts_with("mark")
}

/// The name that an event is about.
pub(crate) fn path_of(event: &LocalEvent) -> Option<&str> {
    match event {
        LocalEvent::Change(change) => Some(change.path.as_str()),
        LocalEvent::Lost(_) | LocalEvent::Gone(_) => None,
    }
}

/// Actions and names, in short: `+a`, `-a`, `*a`, `<a`, `>a`; `?` where something is lost, `!`
/// where the directory is gone.
pub(crate) fn in_short(events: &[LocalEvent]) -> Vec<String> {
    let short = |event: &LocalEvent| {
        let LocalEvent::Change(change) = event else {
            return match event {
                LocalEvent::Gone(_) => "!".to_owned(),
                _ => "?".to_owned(),
            };
        };
        let sign = match change.action {
            FileAction::ADDED => '+',
            FileAction::REMOVED => '-',
            FileAction::MODIFIED => '*',
            FileAction::RENAMED_OLD_NAME => '<',
            FileAction::RENAMED_NEW_NAME => '>',
            other => panic!("{other:?}"),
        };
        format!("{sign}{}", change.path)
    };
    events.iter().map(short).collect()
}

/// Not a test of its own: what [`Watched::elsewhere`] starts.
#[test]
fn the_other_process() {
    let (Ok(folder), Ok(script)) = (std::env::var(FOLDER), std::env::var(SCRIPT)) else {
        return;
    };
    std::env::set_current_dir(folder).expect("the folder is there");
    for line in script.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if let Err(error) = obey(&words) {
            // A random script does not know what is there.
            assert!(words[0].starts_with('~'), "{line}: {error}");
        }
    }
}

fn obey(words: &[&str]) -> std::io::Result<()> {
    match words {
        ["touch" | "~touch", file] => File::create(file).map(drop),
        ["write", file] => OpenOptions::new()
            .append(true)
            .open(file)?
            .write_all(b"more"),
        ["chmod", file] => {
            let mut permissions = fs::metadata(file)?.permissions();
            permissions.set_readonly(true);
            fs::set_permissions(file, permissions)
        }
        ["mkdir" | "~mkdir", directory] => fs::create_dir(directory),
        ["rename" | "~rename", from, to] => rename_free(from, to),
        ["rm" | "~rm", file] => fs::remove_file(file),
        ["rmdir" | "~rmdir", directory] => fs::remove_dir_all(directory),
        // So many files.
        ["fill", directory, count] => {
            for number in 0..count.parse().expect("a number") {
                let _: u32 = number;
                File::create(format!("{directory}/f{number}"))?;
            }
            Ok(())
        }
        _ => panic!("{words:?}"),
    }
}

fn rename_free(from: &str, to: &str) -> std::io::Result<()> {
    match Path::new(to).exists() {
        true => Err(std::io::ErrorKind::AlreadyExists.into()),
        false => fs::rename(from, to),
    }
}
