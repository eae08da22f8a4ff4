//! How a command ends: what it says went wrong, and the code that scripts read.

use std::fmt;
use std::io;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use wire::Status;

use crate::location::LocationError;
use crate::names::NameError;
use crate::output::note;

/// The exit codes. docs/cli.md has the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Exit {
    /// All is done.
    Success = 0,
    /// Some of it is not, or failed for a reason that has no code of its own.
    Failed = 1,
    /// The command line or a file of ours is wrong.
    Usage = 2,
    /// The server cannot be found or reached, or speaks something else.
    Unreachable = 3,
    /// The login was refused.
    LoginRefused = 4,
    /// No such file, folder or share.
    NotFound = 5,
    /// Not allowed.
    Denied = 6,
    /// No room.
    Full = 7,
    /// Somebody else has it open or locked.
    InUse = 8,
    /// The connection ended in the middle.
    Lost = 9,
    /// There is something already, or still.
    Exists = 10,
    /// A name that cannot be.
    BadName = 11,
    /// The two sides differ where they must not.
    Differs = 12,
    /// Ctrl-C.
    Interrupted = 130,
}

/// What failed, and why.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The code.
    pub(crate) exit: Exit,
    /// The path or the host.
    pub(crate) subject: String,
    /// Why.
    pub(crate) reason: String,
}

/// What comes of a step of a command.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// A failure of `subject`.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "texts, paths and places alike"
    )]
    pub(crate) fn new(exit: Exit, subject: impl ToString, reason: impl ToString) -> Self {
        Self {
            exit,
            subject: subject.to_string(),
            reason: reason.to_string(),
        }
    }

    /// The command line asks for what cannot be.
    pub(crate) fn usage(subject: impl ToString, reason: impl ToString) -> Self {
        Self::new(Exit::Usage, subject, reason)
    }

    /// A name stays where it is.
    pub(crate) fn name(subject: &(impl ToString + ?Sized), error: NameError) -> Self {
        Self::new(Exit::BadName, subject.to_string(), error)
    }

    /// Something of this machine failed.
    pub(crate) fn local(subject: &(impl ToString + ?Sized), error: &io::Error) -> Self {
        Self::new(exit_of_io(error), subject.to_string(), plain_reason(error))
    }

    /// Somebody pressed Ctrl-C.
    pub(crate) fn interrupted(subject: impl ToString) -> Self {
        Self::new(Exit::Interrupted, subject, "interrupted")
    }

    /// Whether going on with other files is pointless.
    pub(crate) fn is_fatal(&self) -> bool {
        matches!(
            self.exit,
            Exit::Unreachable | Exit::LoginRefused | Exit::Lost | Exit::Full | Exit::Interrupted
        )
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.reason)
    }
}

impl From<(&str, LocationError)> for Failure {
    fn from((subject, error): (&str, LocationError)) -> Self {
        Self::usage(subject, error)
    }
}

/// The reason without the number that nobody reads.
pub(crate) fn plain_reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

fn exit_of_io(error: &io::Error) -> Exit {
    match error.kind() {
        io::ErrorKind::NotFound => Exit::NotFound,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Exit::Denied,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Exit::Full,
        io::ErrorKind::ResourceBusy | io::ErrorKind::ExecutableFileBusy => Exit::InUse,
        io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty => Exit::Exists,
        io::ErrorKind::InvalidFilename => Exit::BadName,
        _ => Exit::Failed,
    }
}

/// The code for what a server says.
pub(crate) fn exit_of_status(status: Status) -> Exit {
    match status {
        Status::OBJECT_NAME_NOT_FOUND
        | Status::OBJECT_PATH_NOT_FOUND
        | Status::NO_SUCH_FILE
        | Status::NOT_FOUND
        | Status::BAD_NETWORK_NAME
        | Status::FILE_DELETED
        | Status::NO_SUCH_DEVICE => Exit::NotFound,
        Status::ACCESS_DENIED
        | Status::NETWORK_ACCESS_DENIED
        | Status::PRIVILEGE_NOT_HELD
        | Status::MEDIA_WRITE_PROTECTED
        | Status::CANNOT_DELETE
        | Status::INVALID_OWNER => Exit::Denied,
        Status::DISK_FULL => Exit::Full,
        Status::SHARING_VIOLATION
        | Status::FILE_LOCK_CONFLICT
        | Status::LOCK_NOT_GRANTED
        | Status::DELETE_PENDING
        | Status::OPLOCK_NOT_GRANTED => Exit::InUse,
        Status::OBJECT_NAME_COLLISION | Status::DIRECTORY_NOT_EMPTY => Exit::Exists,
        Status::OBJECT_NAME_INVALID
        | Status::OBJECT_PATH_INVALID
        | Status::OBJECT_PATH_SYNTAX_BAD
        | Status::NAME_TOO_LONG => Exit::BadName,
        Status::LOGON_FAILURE
        | Status::WRONG_PASSWORD
        | Status::NO_SUCH_USER
        | Status::ACCOUNT_RESTRICTION
        | Status::INVALID_LOGON_HOURS
        | Status::INVALID_WORKSTATION
        | Status::PASSWORD_EXPIRED
        | Status::PASSWORD_MUST_CHANGE
        | Status::ACCOUNT_EXPIRED
        | Status::ACCOUNT_LOCKED_OUT
        | Status::ACCOUNT_DISABLED
        | Status::LOGON_TYPE_NOT_GRANTED => Exit::LoginRefused,
        Status::NETWORK_NAME_DELETED
        | Status::USER_SESSION_DELETED
        | Status::NETWORK_SESSION_EXPIRED
        | Status::VOLUME_DISMOUNTED => Exit::Lost,
        _ => Exit::Failed,
    }
}

/// What a status says, in words and by its name.
pub(crate) fn told(status: Status) -> String {
    let Some(name) = status.name() else {
        return format!("the server says {:#010x}", status.0);
    };
    let words = match status {
        Status::BAD_NETWORK_NAME => "no such share".into(),
        Status::DISK_FULL => "the disk is full".into(),
        Status::SHARING_VIOLATION => "somebody else has it open".into(),
        Status::LOGON_FAILURE => "user or password are wrong".into(),
        Status::PASSWORD_EXPIRED => "the password has expired and must be changed".into(),
        Status::PASSWORD_MUST_CHANGE => "the password must be changed before the login".into(),
        _ => name.replace('_', " ").to_lowercase(),
    };
    format!(
        "{}{} (STATUS_{name})",
        words[..1].to_uppercase(),
        &words[1..]
    )
}

/// What became of a command so far: failures are told as they happen and counted for the end.
pub(crate) struct Report {
    command: &'static str,
    failures: AtomicU64,
    successes: AtomicU64,
    state: Mutex<State>,
    is_over: AtomicBool,
}

#[derive(Default)]
struct State {
    /// The code that all failures have, while they agree.
    common: Option<Exit>,
    /// The code of the failure that ended everything.
    fatal: Option<Exit>,
    /// Writes a line where a progress bar is not in its way.
    print: Option<Print>,
}

/// Writes a line of standard error.
pub(crate) type Print = Box<dyn Fn(&str) + Send>;

impl Report {
    /// Of a command by its name.
    pub(crate) fn new(command: &'static str) -> Self {
        Self {
            command,
            failures: AtomicU64::new(0),
            successes: AtomicU64::new(0),
            state: Mutex::default(),
            is_over: AtomicBool::new(false),
        }
    }

    /// Tells a failure. One that ends everything is told once.
    pub(crate) fn failed(&self, failure: &Failure) {
        let mut state = lock(&self.state);
        let is_fatal = failure.is_fatal();
        if is_fatal && state.fatal.is_some() {
            return;
        }
        let is_first = self.failures.fetch_add(1, Ordering::Relaxed) == 0;
        state.common = match state.common {
            None if is_first => Some(failure.exit),
            common => common.filter(|exit| *exit == failure.exit),
        };
        if is_fatal {
            state.fatal = Some(failure.exit);
            self.is_over.store(true, Ordering::Relaxed);
        }
        let line = format!("smbeam: {}: {failure}", self.command);
        print_with(&state, &line);
    }

    /// Says something that is no failure.
    pub(crate) fn note(&self, text: &str) {
        let line = format!("smbeam: {}: {text}", self.command);
        print_with(&lock(&self.state), &line);
    }

    /// Counts what went well.
    pub(crate) fn succeeded(&self) {
        self.successes.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts what went well, tells what did not.
    pub(crate) fn take(&self, outcome: Outcome) {
        match outcome {
            Ok(()) => self.succeeded(),
            Err(failure) => self.failed(&failure),
        }
    }

    /// Takes what was found; where that failed it is told, and nothing was.
    pub(crate) fn found<T>(&self, found: Outcome<Vec<T>>) -> Vec<T> {
        found.unwrap_or_else(|failure| {
            self.failed(&failure);
            Vec::new()
        })
    }

    /// Whether something happened after which going on is pointless.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// How many failed.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Lets lines go through a progress bar, or no longer.
    pub(crate) fn print_through(&self, print: Option<Print>) {
        lock(&self.state).print = print;
    }

    /// The code to end with: of what ended everything; of the failures where all have the same one
    /// and nothing went well; 1 where some of it failed.
    pub(crate) fn exit(&self) -> Exit {
        let state = lock(&self.state);
        if let Some(fatal) = state.fatal {
            return fatal;
        }
        if self.failures() == 0 {
            return Exit::Success;
        }
        match state.common {
            Some(common) if self.successes.load(Ordering::Relaxed) == 0 => common,
            _ => Exit::Failed,
        }
    }
}

fn print_with(state: &State, line: &str) {
    match &state.print {
        Some(print) => print(line),
        None => note(&line),
    }
}

/// Locks what a thread that panicked may have held: counters and lists stay sound.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(exit: Exit) -> Failure {
        Failure::new(exit, "x", "y")
    }

    fn quiet() -> Report {
        let report = Report::new("test");
        report.print_through(Some(Box::new(|_| {})));
        report
    }

    #[test]
    fn nothing_failed() {
        let report = quiet();
        report.succeeded();
        assert_eq!(report.exit(), Exit::Success);
    }

    #[test]
    fn one_reason_gives_its_code() {
        let report = quiet();
        report.failed(&failure(Exit::NotFound));
        report.failed(&failure(Exit::NotFound));
        assert_eq!(report.exit(), Exit::NotFound);
        report.succeeded();
        assert_eq!(report.exit(), Exit::Failed);
    }

    #[test]
    fn several_reasons_give_one() {
        let report = quiet();
        report.failed(&failure(Exit::NotFound));
        report.failed(&failure(Exit::Denied));
        report.failed(&failure(Exit::NotFound));
        assert_eq!(report.exit(), Exit::Failed);
    }

    #[test]
    fn what_ends_everything_gives_its_code() {
        let report = quiet();
        report.succeeded();
        report.failed(&failure(Exit::NotFound));
        assert!(!report.is_over());
        report.failed(&failure(Exit::Lost));
        report.failed(&failure(Exit::Lost));
        assert!(report.is_over());
        assert_eq!((report.exit(), report.failures()), (Exit::Lost, 2));
    }

    #[test]
    fn statuses_are_told_by_word_and_name() {
        assert_eq!(
            told(Status::OBJECT_NAME_NOT_FOUND),
            "Object name not found (STATUS_OBJECT_NAME_NOT_FOUND)"
        );
        assert_eq!(
            told(Status::BAD_NETWORK_NAME),
            "No such share (STATUS_BAD_NETWORK_NAME)"
        );
        assert_eq!(told(Status(0xC123_4567)), "the server says 0xc1234567");
        assert_eq!(exit_of_status(Status::DISK_FULL), Exit::Full);
    }

    #[test]
    fn errors_of_this_machine_are_told_without_numbers() {
        let error = io::Error::from_raw_os_error(28);
        let failure = Failure::local("/x", &error);
        assert_eq!(failure.exit, Exit::Full);
        assert_eq!(failure.to_string(), "/x: No space left on device");
    }
}
