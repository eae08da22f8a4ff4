//! The decision whether another channel sends a request of a lost channel again.
//! \[MS-SMB2\] 3.2.7.1
//!
//! A request in flight on a lost channel has one of three fates: the server executed it, the server
//! never will, or a buffer of the server holds it and the server executes it later. Dialects 3.x
//! exclude the last one by Channel.ChannelSequence: the server stores the highest value of each
//! open.
//! It refuses WRITE, SET_INFO and IOCTL on that open with a lower value, and a replay while older
//! requests are pending (FILE_NOT_AVAILABLE). \[MS-SMB2\] 3.3.5.2.10 So a request is safe to repeat
//! if executing it twice has the same effect: a WRITE at an offset, but not an append, and not a
//! rename. Requests by name are not covered: a late CREATE that truncates would delete bytes that
//! were written since.
//!
//! A READ removes data from a pipe, so it is not repeated on pipes.

use wire::access::{CreateDisposition, CreateOptions};
use wire::dialect::Dialect;
use wire::fsctl::CtlCode;
use wire::query_info::InfoType;

use super::effect::Fate;
use super::request::{Create, FileRef, Request, Step};
use super::session::Session;

/// The action of the client for an unanswered request of a lost connection while the session has
/// another connection: fail it, send it as a replay, or send it unchanged. In ascending order of
/// preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Plan {
    /// The client fails the request, because it cannot find out whether the server executed the
    /// request.
    GiveUp,
    /// The client sends the request as a replay with a higher ChannelSequence: the server
    /// recognizes a request that it has executed, or a second execution has the same effect.
    Replay,
    /// The client sends the request unchanged.
    Again,
}

/// Maximum number of times that the client sends an unanswered request again after it lost another
/// connection. The limit exists because the request may be the reason why connections break.
pub const RESENDS_MAX: u8 = 4;

/// Prepares a request of a lost connection for another connection of `session`: marks it as a
/// replay if necessary, and counts the repetition. `fate` says whether the client had sent it.
/// Returns `false` if the request must fail instead.
#[must_use]
pub fn resend(request: &mut Request, fate: Fate, session: &Session) -> bool {
    let plan = plan(request, fate, session.negotiated.dialect);
    if plan == Plan::GiveUp || request.resent >= RESENDS_MAX {
        return false;
    }
    if fate == Fate::Sent {
        request.resent += 1;
    }
    // A replay stays one, because the original may still arrive.
    request.is_replay |= plan == Plan::Replay;
    true
}

/// Prepares a request of a lost session for the session that replaces it. `fate` says whether the
/// client had sent it. Returns `false` if the request must fail instead.
///
/// The login of the new session names the lost one, and the server ends that one first, with its
/// pending requests (\[MS-SMB2\] 3.3.5.5.3). So a late first try cannot overtake anything, and a
/// request may be repeated if executing it twice has the same effect, in every dialect. The client
/// has reclaimed the open of the request, or fails the request. A CREATE and a LOCK are repeated as
/// well: the caller finds out from the response whether the first one took effect.
#[must_use]
pub fn resume(request: &mut Request, fate: Fate) -> bool {
    if fate == Fate::Unsent {
        return true;
    }
    let steps = &request.steps;
    let is_alone = steps.len() == 1;
    let plans = (steps.iter().enumerate()).map(|(index, step)| match step {
        Step::Logoff => Plan::GiveUp,
        Step::Lock { .. } if is_alone => Plan::Replay,
        // The server may have preserved the open of the first try. Then it knows the CreateGuid.
        Step::Create(create) if create.create_guid.is_some() => Plan::Replay,
        Step::Create(create) if can_be_reopened(create) => match is_alone {
            true => Plan::Replay,
            false => Plan::Again,
        },
        step if changes_new_open_alike(step) => Plan::Again,
        step => of_step(step, &steps[index + 1..]),
    });
    let least = plans.min().unwrap_or(Plan::GiveUp);
    if least == Plan::GiveUp {
        return false;
    }
    // The limit of repetitions counts the channels of one session.
    request.resent = 1;
    request.is_replay |= least == Plan::Replay;
    true
}

/// Whether a CREATE may be repeated without a CreateGuid, because the server has closed the open of
/// the first try. A file that must not exist would exist already, or be deleted.
fn can_be_reopened(create: &Create) -> bool {
    create.disposition != CreateDisposition::CREATE
        && !create.options.contains(CreateOptions::DELETE_ON_CLOSE)
}

/// Whether a step on the open of the same compound has the same effect if the compound runs twice.
/// The name must not change, nor the file end.
fn changes_new_open_alike(step: &Step) -> bool {
    const RENAMES_OR_DELETES: [u8; 4] = [10, 11, 13, 64];
    match step {
        Step::Write { file, offset, .. } => *file == FileRef::Previous && *offset != APPEND,
        Step::SetInfo {
            file,
            info_type,
            class,
            ..
        } => {
            *file == FileRef::Previous
                && is_settable_twice(*info_type, *class)
                && !RENAMES_OR_DELETES.contains(class)
        }
        Step::QueryDirectory { file, .. } => *file == FileRef::Previous,
        _ => false,
    }
}

/// Offset of a WRITE that appends. \[MS-FSA\] 2.1.5.3
const APPEND: u64 = u64::MAX;

/// Decides the action of the client for `request`, which its lost connection has not answered, if
/// the session has another connection with this dialect. `fate` says whether the client had sent
/// it. In a compound, the most restrictive step decides.
pub fn plan(request: &Request, fate: Fate, dialect: Dialect) -> Plan {
    if fate == Fate::Unsent {
        return Plan::Again;
    }
    let steps = &request.steps;
    let plans = (steps.iter().enumerate()).map(|(index, step)| of_step(step, &steps[index + 1..]));
    let least = plans.min().unwrap_or(Plan::GiveUp);
    match least {
        // These dialects have no ChannelSequence.
        Plan::Replay if dialect < Dialect::SMB_3_0 => Plan::GiveUp,
        least => least,
    }
}

fn of_step(step: &Step, later: &[Step]) -> Plan {
    match step {
        // At worst a second tree connect remains, or the tree was disconnected before.
        Step::TreeConnect(_) | Step::TreeDisconnect | Step::Logoff | Step::Echo => Plan::Again,
        // FILE_CLOSED and INVALID_OPLOCK_PROTOCOL show that the server executed it.
        Step::Close { .. } | Step::AcknowledgeOplock { .. } | Step::AcknowledgeLease { .. } => {
            Plan::Again
        }
        Step::Flush(_) | Step::Read { .. } | Step::QueryInfo { .. } => Plan::Again,
        // The position in the directory may have changed, and entries would be missing.
        Step::QueryDirectory { restart, .. } => match restart {
            true => Plan::Again,
            false => Plan::GiveUp,
        },
        // No other response reports the changes of the lost one.
        Step::ChangeNotify { .. } => Plan::GiveUp,
        Step::Create(create) => of_create(create, later),
        Step::Write { file, offset, .. } => match *offset {
            APPEND => Plan::GiveUp,
            _ => on_open(*file),
        },
        Step::SetInfo {
            file,
            info_type,
            class,
            ..
        } => match is_settable_twice(*info_type, *class) {
            true => on_open(*file),
            false => Plan::GiveUp,
        },
        // The server recognizes a lock by its sequence number. [MS-SMB2] 3.3.5.14
        Step::Lock { file, sequence, .. } => match *sequence {
            0 => Plan::GiveUp,
            _ => on_open(*file),
        },
        Step::Ioctl { file, code, .. } => of_ioctl(*file, *code),
    }
}

/// A change on an existing open is guarded by the ChannelSequence of the open. An open of the same
/// compound does not have one yet.
fn on_open(file: FileRef) -> Plan {
    match file {
        FileRef::Id(_) => Plan::Replay,
        FileRef::Previous => Plan::GiveUp,
    }
}

/// The server recognizes an open by its CreateGuid. Without one, only a compound that opens and
/// closes leaves no state: an unknown open would hold its share modes and oplocks until the end of
/// the session.
fn of_create(create: &Create, later: &[Step]) -> Plan {
    if create.create_guid.is_some() {
        return Plan::Replay;
    }
    let changes_nothing = create.disposition == CreateDisposition::OPEN
        && !create.options.contains(CreateOptions::DELETE_ON_CLOSE);
    let is_closed = later.iter().any(|step| {
        matches!(
            step,
            Step::Close {
                file: FileRef::Previous,
                ..
            }
        )
    });
    match changes_nothing && is_closed {
        true => Plan::Again,
        false => Plan::GiveUp,
    }
}

/// Whether setting the same value again has no effect. Names are excluded.
/// \[MS-FSCC\] 2.4
fn is_settable_twice(info_type: InfoType, class: u8) -> bool {
    /// FileBasicInformation, FileDispositionInformation, FilePositionInformation,
    /// FileFullEaInformation, FileModeInformation, FileAllocationInformation,
    /// FileEndOfFileInformation, FileValidDataLengthInformation, FileDispositionInformationEx.
    const FILE: [u8; 9] = [4, 13, 14, 15, 16, 19, 20, 39, 64];
    match info_type {
        InfoType::FILE => FILE.contains(&class),
        InfoType::SECURITY => true,
        _ => false,
    }
}

fn of_ioctl(file: Option<FileRef>, code: CtlCode) -> Plan {
    match code {
        CtlCode::DFS_GET_REFERRALS
        | CtlCode::DFS_GET_REFERRALS_EX
        | CtlCode::GET_COMPRESSION
        | CtlCode::GET_REPARSE_POINT
        | CtlCode::GET_INTEGRITY_INFORMATION
        | CtlCode::QUERY_ALLOCATED_RANGES
        | CtlCode::SRV_REQUEST_RESUME_KEY
        | CtlCode::QUERY_NETWORK_INTERFACE_INFO
        | CtlCode::VALIDATE_NEGOTIATE_INFO
        | CtlCode::SRV_ENUMERATE_SNAPSHOTS => Plan::Again,
        CtlCode::SET_SPARSE
        | CtlCode::SET_ZERO_DATA
        | CtlCode::SET_COMPRESSION
        | CtlCode::SET_REPARSE_POINT
        | CtlCode::FILE_LEVEL_TRIM => file.map_or(Plan::GiveUp, on_open),
        // The ranges of a copy within one file may overlap, and a pipe consumes its input.
        _ => Plan::GiveUp,
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use wire::access::{AccessMask, FileAttributes, OplockLevel, ShareAccess};
    use wire::change_notify::CompletionFilter;
    use wire::{FileId, Guid};

    use super::*;
    use crate::client::request::Durability;

    const FILE: FileRef = FileRef::Id(FileId {
        persistent: 1,
        volatile: 2,
    });

    fn of(steps: Vec<Step>) -> Plan {
        plan(&Request::new(None, steps), Fate::Sent, Dialect::SMB_3_1_1)
    }

    fn create(disposition: CreateDisposition) -> Create {
        Create {
            name: "a".into(),
            oplock: OplockLevel::NONE,
            access: AccessMask::GENERIC_READ,
            attributes: FileAttributes::NONE,
            share: ShareAccess::READ,
            disposition,
            options: CreateOptions::NONE,
            lease: None,
            create_guid: None,
            durable: Durability::None,
            allocation: None,
            query_maximal_access: false,
            posix_mode: None,
            driver_acknowledges: false,
        }
    }

    fn write(file: FileRef, offset: u64) -> Step {
        Step::Write {
            file,
            offset,
            length: 5,
            through: false,
        }
    }

    fn read(file: FileRef) -> Step {
        Step::Read {
            file,
            offset: 0,
            length: 5,
            minimum: 0,
        }
    }

    fn close(file: FileRef) -> Step {
        Step::Close { file, query: false }
    }

    fn set(info_type: InfoType, class: u8) -> Step {
        Step::SetInfo {
            file: FILE,
            info_type,
            class,
            additional: 0,
            buffer: Vec::new(),
        }
    }

    fn ioctl(code: CtlCode) -> Step {
        Step::Ioctl {
            file: Some(FILE),
            code,
            input: Vec::new(),
            max_output: 0,
        }
    }

    fn list(restart: bool) -> Step {
        Step::QueryDirectory {
            file: FILE,
            class: 37,
            restart,
            pattern: "*".into(),
            length: 1000,
        }
    }

    fn lock(sequence: u32) -> Step {
        Step::Lock {
            file: FILE,
            sequence,
            locks: Vec::new(),
        }
    }

    fn notify() -> Step {
        Step::ChangeNotify {
            file: FILE,
            recursive: false,
            filter: CompletionFilter::NONE,
            length: 100,
        }
    }

    #[test]
    fn the_table() {
        let table = [
            (read(FILE), Plan::Again),
            (close(FILE), Plan::Again),
            (Step::Flush(FILE), Plan::Again),
            (Step::TreeConnect("a".into()), Plan::Again),
            (list(true), Plan::Again),
            (list(false), Plan::GiveUp),
            (notify(), Plan::GiveUp),
            (write(FILE, 7), Plan::Replay),
            (write(FILE, u64::MAX), Plan::GiveUp),
            (lock(0), Plan::GiveUp),
            (lock(0x11), Plan::Replay),
            (set(InfoType::FILE, 4), Plan::Replay),
            (set(InfoType::FILE, 20), Plan::Replay),
            // Rename and link.
            (set(InfoType::FILE, 10), Plan::GiveUp),
            (set(InfoType::FILE, 11), Plan::GiveUp),
            (set(InfoType::SECURITY, 0), Plan::Replay),
            (ioctl(CtlCode::QUERY_ALLOCATED_RANGES), Plan::Again),
            (ioctl(CtlCode::SET_SPARSE), Plan::Replay),
            (ioctl(CtlCode::SRV_COPYCHUNK), Plan::GiveUp),
            (ioctl(CtlCode::PIPE_TRANSCEIVE), Plan::GiveUp),
        ];
        for (step, wanted) in table {
            assert_eq!(of(vec![step.clone()]), wanted, "{step:?}");
            let request = Request::new(None, vec![step]);
            let unsent = plan(&request, Fate::Unsent, Dialect::SMB_2_0_2);
            assert_eq!(unsent, Plan::Again);
            let old = plan(&request, Fate::Sent, Dialect::SMB_2_1);
            let wanted = if wanted == Plan::Replay {
                Plan::GiveUp
            } else {
                wanted
            };
            assert_eq!(old, wanted);
        }
    }

    #[test]
    fn a_new_session_repeats_the_requests_that_have_one_effect() {
        let opens = create(CreateDisposition::OPEN);
        let makes = create(CreateDisposition::CREATE);
        let named = Create {
            create_guid: Some(Guid([1; 16])),
            ..makes.clone()
        };
        let table = [
            (read(FILE), true, false),
            (close(FILE), true, false),
            (write(FILE, 7), true, true),
            (write(FILE, u64::MAX), false, false),
            (lock(0), true, true),
            (lock(0x11), true, true),
            (set(InfoType::FILE, 20), true, true),
            (set(InfoType::FILE, 10), false, false),
            (list(false), false, false),
            (notify(), false, false),
            (Step::Logoff, false, false),
            (Step::Create(opens), true, true),
            (Step::Create(named), true, true),
            (Step::Create(makes), false, false),
        ];
        for (step, is_repeated, is_replay) in table {
            let mut request = Request::new(None, vec![step.clone()]);
            request.resent = RESENDS_MAX;
            assert_eq!(resume(&mut request, Fate::Sent), is_repeated, "{step:?}");
            assert_eq!(request.is_replay, is_replay, "{step:?}");
            let mut unsent = Request::new(None, vec![step]);
            assert!(resume(&mut unsent, Fate::Unsent) && !unsent.is_replay);
        }
    }

    #[test]
    fn a_new_session_repeats_compounds_that_have_one_effect() {
        let previous = FileRef::Previous;
        let set_previous = |class| Step::SetInfo {
            file: previous,
            info_type: InfoType::FILE,
            class,
            additional: 0,
            buffer: Vec::new(),
        };
        let repeated = |disposition, step: Step| {
            let steps = vec![Step::Create(create(disposition)), step, close(previous)];
            resume(&mut Request::new(None, steps), Fate::Sent)
        };
        let overwrite = CreateDisposition::OVERWRITE_IF;
        assert!(repeated(overwrite, write(previous, 0)));
        assert!(!repeated(overwrite, write(previous, APPEND)));
        assert!(!repeated(CreateDisposition::CREATE, write(previous, 0)));
        let open = CreateDisposition::OPEN;
        assert!(repeated(open, read(previous)) && repeated(open, set_previous(4)));
        // Rename, delete.
        assert!(!repeated(open, set_previous(10)) && !repeated(open, set_previous(13)));
    }

    #[test]
    fn a_new_session_repeats_a_compound_with_a_create_guid_as_a_replay() {
        for (create_guid, is_replay) in [(None, false), (Some(Guid([1; 16])), true)] {
            let create = Create {
                create_guid,
                ..create(CreateDisposition::OPEN_IF)
            };
            let steps = vec![Step::Create(create), read(FileRef::Previous)];
            let mut request = Request::new(None, steps);
            assert!(resume(&mut request, Fate::Sent));
            assert_eq!(request.is_replay, is_replay);
        }
    }

    #[test]
    fn a_create_is_known_by_its_guid_or_leaves_nothing_behind() {
        let opens = create(CreateDisposition::OPEN);
        let named = Create {
            create_guid: Some(Guid([1; 16])),
            ..create(CreateDisposition::CREATE)
        };
        let deletes = Create {
            options: CreateOptions::DELETE_ON_CLOSE,
            ..opens.clone()
        };
        let last = || close(FileRef::Previous);
        assert_eq!(of(vec![Step::Create(opens.clone())]), Plan::GiveUp);
        assert_eq!(of(vec![Step::Create(opens), last()]), Plan::Again);
        assert_eq!(of(vec![Step::Create(named)]), Plan::Replay);
        assert_eq!(of(vec![Step::Create(deletes), last()]), Plan::GiveUp);
        for disposition in [
            CreateDisposition::CREATE,
            CreateDisposition::OPEN_IF,
            CreateDisposition::OVERWRITE_IF,
            CreateDisposition::SUPERSEDE,
        ] {
            let steps = vec![Step::Create(create(disposition)), last()];
            assert_eq!(of(steps), Plan::GiveUp, "{disposition:?}");
        }
    }

    #[test]
    fn of_a_compound_the_step_that_allows_the_least_decides() {
        let open = || Step::Create(create(CreateDisposition::OPEN));
        let last = || close(FileRef::Previous);
        let reads = vec![open(), read(FileRef::Previous), last()];
        assert_eq!(of(reads), Plan::Again);
        // Done late, it would overwrite what was written since: nothing guards a new open.
        let writes = vec![open(), write(FileRef::Previous, 0), last()];
        assert_eq!(of(writes), Plan::GiveUp);
        assert_eq!(of(vec![write(FILE, 0), close(FILE)]), Plan::Replay);
    }
}
