//! The last use of each app password, in a file of the state directory.
//!
//! A line of the file has the time in seconds since 1970, the user name and the name of the app
//! password, with tabs between them. The names have no control characters.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use auth::Users;
use tracing::warn;

/// Name of the file in the state directory.
const FILE: &str = "app-password-use";

/// Maximum number of remembered app passwords. The oldest uses are forgotten first.
const ENTRIES_MAX: usize = 16_384;

/// Maximum length of the file in bytes: all entries, with names of 256 characters.
const FILE_LEN_MAX: u64 = 16 << 20;

/// Shortest time between two writes of the file.
const WRITE_INTERVAL: Duration = Duration::from_secs(10);

/// The last uses of app passwords, by user name and name of the app password. A time is a number of
/// seconds since 1970, UTC.
pub type AppPasswordUses = BTreeMap<(String, String), i64>;

/// The last uses of app passwords, and the file with them.
#[derive(Debug)]
pub(crate) struct LastUse {
    path: PathBuf,
    state: Mutex<State>,
    /// Held by the one thread that writes the file.
    writing: Mutex<()>,
}

#[derive(Debug)]
struct State {
    uses: AppPasswordUses,
    /// Whether `uses` differs from the file.
    is_new: bool,
    written: Option<Instant>,
    /// The logged error of the last write.
    error: Option<String>,
}

/// Reads the last uses of app passwords that a server keeps in its state directory. Without the
/// file there are none. Lines that are not valid are left out.
///
/// # Errors
/// The file cannot be read or is longer than 16 MiB.
pub fn app_password_uses(state_directory: &Path) -> io::Result<AppPasswordUses> {
    let file = match fs::File::open(state_directory.join(FILE)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(AppPasswordUses::new()),
        opened => opened?,
    };
    let mut text = String::new();
    file.take(FILE_LEN_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_LEN_MAX {
        return Err(io::Error::other("the file is longer than 16 MiB"));
    }
    Ok(text.lines().filter_map(parse).collect())
}

fn parse(line: &str) -> Option<((String, String), i64)> {
    let mut fields = line.split('\t');
    let time = fields.next()?.parse().ok()?;
    let (account, password) = (fields.next()?, fields.next()?);
    Some(((account.to_owned(), password.to_owned()), time))
}

impl LastUse {
    /// Reads the file in this directory. Without a usable file, no use is known.
    pub(crate) fn load(state_directory: &Path) -> Self {
        let path = state_directory.join(FILE);
        let uses = app_password_uses(state_directory).unwrap_or_else(|error| {
            warn!(file = %path.display(), %error, "cannot read the last uses of app passwords");
            AppPasswordUses::new()
        });
        Self {
            path,
            writing: Mutex::default(),
            state: Mutex::new(State {
                uses,
                is_new: false,
                written: None,
                error: None,
            }),
        }
    }

    /// Notes that a user logged in with an app password at this time, in seconds since 1970.
    pub(crate) fn note(&self, account: &str, password: &str, now: i64) {
        let mut state = self.lock();
        let key = (account.to_owned(), password.to_owned());
        if state.uses.len() >= ENTRIES_MAX && !state.uses.contains_key(&key) {
            let oldest = state.uses.iter().min_by_key(|(_, time)| **time);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                state.uses.remove(&oldest);
            }
        }
        state.is_new |= state.uses.insert(key, now) != Some(now);
    }

    /// Writes the file if it is not up to date and the last write is long enough ago, or if the
    /// server stops. Forgets the app passwords that `users` has not. May block.
    pub(crate) fn write_if_due(&self, users: &Users, stops: bool) {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.lock();
        let is_recent = |written: Instant| written.elapsed() < WRITE_INTERVAL;
        if !state.is_new || (!stops && state.written.is_some_and(is_recent)) {
            return;
        }
        state.uses.retain(|(account, password), _| {
            let account = users.find(account);
            account.is_some_and(|account| account.app_password(password).is_some())
        });
        state.written = Some(Instant::now());
        state.is_new = false;
        let uses = state.uses.clone();
        // A login on a worker must not wait for the disk.
        drop(state);
        let written = write(&self.path, &uses);
        let error = written.err().map(|error| error.to_string());
        let mut state = self.lock();
        if let Some(error) = error
            .as_ref()
            .filter(|error| state.error.as_ref() != Some(*error))
        {
            let file = self.path.display();
            warn!(%file, %error, "cannot write the last uses of app passwords");
        }
        state.error = error;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Replaces the file by a rename. The directory may be missing.
fn write(path: &Path, uses: &AppPasswordUses) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let temporary = path.with_extension("new");
    let mut text = String::new();
    for ((account, password), time) in uses {
        text.push_str(&format!("{time}\t{account}\t{password}\n"));
    }
    let mut options = fs::OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    options.open(&temporary)?.write_all(text.as_bytes())?;
    fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use auth::{Account, AppPassword, AppPasswordRights, NtHash};

    use super::*;

    fn users(passwords: &[&str]) -> Users {
        let mut account = Account::new("alice", "secret").expect("a good name");
        let app_password = |name: &&str| AppPassword {
            rights: AppPasswordRights {
                name: (*name).to_owned(),
                shares: Vec::new(),
                read_only: false,
            },
            nt_hash: NtHash::from_password("x"),
            expires: None,
        };
        account.app_passwords = passwords.iter().map(app_password).collect();
        let mut users = Users::default();
        users.insert(account);
        users
    }

    #[test]
    fn uses_survive_a_restart_and_removed_passwords_are_forgotten() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let state = directory.path().join("state");
        let users = users(&["my phone"]);
        let first = LastUse::load(&state);
        first.write_if_due(&users, true);
        assert!(!state.exists(), "nothing to write");
        first.note("alice", "my phone", 100);
        first.note("alice", "removed", 100);
        first.write_if_due(&users, false);
        first.note("alice", "my phone", 200);
        first.write_if_due(&users, false);
        let of_phone = |expected: i64| {
            let key = ("alice".to_owned(), "my phone".to_owned());
            let uses = app_password_uses(&state).expect("a good file");
            assert_eq!(uses, AppPasswordUses::from([(key, expected)]));
        };
        // The second write waits.
        of_phone(100);
        first.write_if_due(&users, true);
        of_phone(200);
        let second = LastUse::load(&state);
        assert_eq!(second.lock().uses.len(), 1);
    }

    #[test]
    fn lines_that_are_not_valid_are_left_out_and_uses_have_a_limit() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let text = "nonsense\n12\talice\n\u{e4}\ta\tb\n12\talice\tphone\n";
        fs::write(directory.path().join(FILE), text).expect("writable");
        let uses = app_password_uses(directory.path()).expect("a readable file");
        assert_eq!(uses.len(), 1);
        fs::write(directory.path().join(FILE), b"\xff").expect("writable");
        app_password_uses(directory.path()).expect_err("not UTF-8");
        let last_use = LastUse::load(directory.path());
        for number in 0..=ENTRIES_MAX {
            let time = i64::try_from(number).expect("small");
            last_use.note("alice", &number.to_string(), time);
        }
        let state = last_use.lock();
        assert_eq!(state.uses.len(), ENTRIES_MAX);
        assert!(
            !state
                .uses
                .contains_key(&("alice".to_owned(), "0".to_owned()))
        );
    }
}
