//! A share that reports changes by another process, and that process.

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

use crate::share::LocalDirectory;

/// Environment variable of the other process: its working directory.
const DIRECTORY: &str = "SMBEAM_OTHER_DIRECTORY";
const SCRIPT: &str = "SMBEAM_OTHER_SCRIPT";
/// Timeout for an expected event.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A directory, and the changes that its share reports.
pub(crate) struct Watched {
    pub(crate) local: LocalDirectory,
    heard: Arc<Heard>,
    marks: usize,
}

#[derive(Default)]
struct Heard {
    events: Mutex<Vec<LocalEvent>>,
    came: Condvar,
    /// The test holds this lock while the share must wait.
    gate: Mutex<()>,
}

impl Watched {
    /// A share with these directories.
    pub(crate) fn new(directories: &[&str]) -> Self {
        let local = LocalDirectory::new(Options::default());
        for directory in directories {
            let open = local.share.directory(directory);
            local.share.close(open);
        }
        let heard = Arc::new(Heard::default());
        let listener = heard.clone();
        local.posix.listen(Arc::new(move |events| {
            drop(listener.gate.lock());
            let mut all = listener
                .events
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            all.extend_from_slice(events);
            listener.came.notify_all();
        }));
        Self {
            local,
            heard,
            marks: 0,
        }
    }

    /// Watches a directory, and waits until the whole tree has marks.
    pub(crate) fn watch(&mut self, directory: &str, is_tree: bool) -> LocalOpen {
        let list = AccessMask::FILE_LIST_DIRECTORY;
        let opened = self.local.share.open_for(directory, list);
        let file = opened.expect("the directory exists").file;
        self.local
            .share
            .unit(&FileOp::OnOpen(file, Operation::Watch { is_tree }))
            .expect("a watch");
        let directory = if directory.is_empty() { "." } else { directory };
        assert_eq!(self.reported(directory), []);
        file
    }

    /// Runs a script in another process in the directory: one command a line.
    pub(crate) fn elsewhere(&self, script: &str) {
        let test = std::env::current_exe().expect("the test knows itself");
        let done = Command::new(test)
            .args(["--exact", "watched::the_other_process", "--nocapture"])
            .env(DIRECTORY, self.local.path(""))
            .env(SCRIPT, script)
            .output()
            .expect("another process");
        assert!(done.status.success(), "{done:?}");
    }

    /// The changes reported so far. It creates a file with a marker name in `directory` to find the
    /// end.
    pub(crate) fn reported(&mut self, directory: &str) -> Vec<LocalEvent> {
        self.marks += 1;
        let mark = format!("mark{}", self.marks);
        self.elsewhere(&format!("touch {directory}/{mark}"));
        self.reported_until(|event| path_of(event).is_some_and(|path| path.ends_with(&mark)))
    }

    /// The changes reported before this event.
    pub(crate) fn reported_until(&self, is_last: impl Fn(&LocalEvent) -> bool) -> Vec<LocalEvent> {
        let events = self.heard.events.lock();
        let mut events = events.unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(at) = events.iter().position(&is_last) {
                let mut reported: Vec<_> = events.drain(..=at).collect();
                reported.pop();
                // Every watch receives the marker.
                let is_mark = |event: &LocalEvent| {
                    path_of(event).is_some_and(|path| path.rsplit('/').any(is_mark_name))
                };
                reported.retain(|event| !is_mark(event));
                return reported;
            }
            let (waited, late) = self
                .heard
                .came
                .wait_timeout(events, TIMEOUT)
                .unwrap_or_else(PoisonError::into_inner);
            events = waited;
            assert!(!late.timed_out(), "it never came, but {events:?}");
        }
    }

    /// Blocks the share from reporting while `run` runs.
    pub(crate) fn while_it_waits(&self, run: impl FnOnce()) {
        let gate = self.heard.gate.lock();
        run();
        drop(gate);
    }
}

/// Whether a name is a marker.
pub(crate) fn is_mark_name(name: &str) -> bool {
    name.starts_with("mark")
}

/// The name in an event.
pub(crate) fn path_of(event: &LocalEvent) -> Option<&str> {
    match event {
        LocalEvent::Change(change) => Some(change.path.as_str()),
        LocalEvent::Lost(_) | LocalEvent::Removed(_) => None,
    }
}

/// Actions and names in a short form: `+a`, `-a`, `*a`, `<a`, `>a`; `?` for a loss, `!` for a
/// deleted directory.
pub(crate) fn in_short(events: &[LocalEvent]) -> Vec<String> {
    let short = |event: &LocalEvent| {
        let LocalEvent::Change(change) = event else {
            return match event {
                LocalEvent::Removed(_) => "!".to_owned(),
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

/// Not a test: [`Watched::elsewhere`] starts this function in another process.
#[test]
fn the_other_process() {
    let (Ok(local), Ok(script)) = (std::env::var(DIRECTORY), std::env::var(SCRIPT)) else {
        return;
    };
    std::env::set_current_dir(local).expect("the directory exists");
    for line in script.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if let Err(error) = obey(&words) {
            // A random script may name files that do not exist.
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
        // Creates `count` files.
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
