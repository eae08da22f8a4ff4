//! Whether a request whose channel was lost is sent again on another one. \[MS-SMB2\] 3.2.7.1
//!
//! What may have happened to a request that left and was not answered? It was done; or it was
//! not and never will be; or it lies in a buffer of the server and will be done later. Against
//! the last, dialects 3.x have Channel.ChannelSequence: the server remembers the highest one of
//! each open and refuses WRITE, SET_INFO and IOCTL on that open that come with a lower one, and a
//! replay while older ones are still under way (FILE_NOT_AVAILABLE). \[MS-SMB2\] 3.3.5.2.10 That
//! leaves the first two, and so it makes safe what may as well be done twice: a WRITE to a place,
//! not an append. It does not make safe a second rename. And it says nothing of what works by
//! name: a CREATE that truncates, done late, would wipe out what was written since.
//!
//! Pipes are not files: a READ takes out what it tells. Whoever reads pipes gives up.

use wire::access::{CreateDisposition, CreateOptions};
use wire::dialect::Dialect;
use wire::fsctl::CtlCode;
use wire::query_info::InfoType;

use super::effect::Fate;
use super::request::{Create, FileRef, Request, Step};
use super::session::Session;

/// What to do with a request that got no answer, while another channel of its session lives.
/// The later, the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Plan {
    /// Give up: whether it was done cannot be found out.
    GiveUp,
    /// Send it with a higher ChannelSequence and as a replay: the server knows what it has done,
    /// or it does not matter.
    Replay,
    /// Send it as it is.
    Again,
}

/// How often a request is sent again before it is given up on: channels that it breaks, one after
/// the other, are not worth more of them.
pub const RESENDS_MAX: u8 = 4;

/// Makes a request of a lost channel ready to be sent on another one of `session`. `false`: it is
/// given up on.
#[must_use]
pub fn resend(request: &mut Request, fate: Fate, session: &Session) -> bool {
    let plan = plan(request, fate, session.negotiated.dialect);
    if plan == Plan::GiveUp || request.resent >= RESENDS_MAX {
        return false;
    }
    if fate == Fate::Sent {
        request.resent += 1;
    }
    // Once a replay, always one: the first may still come.
    request.is_replay |= plan == Plan::Replay;
    true
}

/// Offset of a WRITE that appends. \[MS-FSA\] 2.1.5.3
const APPEND: u64 = u64::MAX;

/// What to do with `request`. Of a compound the step that allows the least decides.
pub fn plan(request: &Request, fate: Fate, dialect: Dialect) -> Plan {
    if fate == Fate::Unsent {
        return Plan::Again;
    }
    let steps = &request.steps;
    let plans = (steps.iter().enumerate()).map(|(index, step)| of_step(step, &steps[index + 1..]));
    let least = plans.min().unwrap_or(Plan::GiveUp);
    match least {
        // There is no ChannelSequence.
        Plan::Replay if dialect < Dialect::SMB_3_0 => Plan::GiveUp,
        least => least,
    }
}

fn of_step(step: &Step, later: &[Step]) -> Plan {
    match step {
        // At worst there is one tree more, or one was left already.
        Step::TreeConnect(_) | Step::TreeDisconnect | Step::Logoff | Step::Echo => Plan::Again,
        // FILE_CLOSED says that it was done; and INVALID_OPLOCK_PROTOCOL.
        Step::Close { .. } | Step::AcknowledgeOplock { .. } | Step::AcknowledgeLease { .. } => {
            Plan::Again
        }
        Step::Flush(_) | Step::Read { .. } | Step::QueryInfo { .. } => Plan::Again,
        // The place in the directory may have moved, and entries would be missing.
        Step::QueryDirectory { restart, .. } => match restart {
            true => Plan::Again,
            false => Plan::GiveUp,
        },
        // The changes of the answer that was lost are told by no other.
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
        // By its number the server knows a lock that it has. [MS-SMB2] 3.3.5.14
        Step::Lock { file, sequence, .. } => match *sequence {
            0 => Plan::GiveUp,
            _ => on_open(*file),
        },
        Step::Ioctl { file, code, .. } => of_ioctl(*file, *code),
    }
}

/// What changes an open that was there before is guarded by the ChannelSequence of that open. One
/// that is opened by the same compound has none yet.
fn on_open(file: FileRef) -> Plan {
    match file {
        FileRef::Id(_) => Plan::Replay,
        FileRef::Previous => Plan::GiveUp,
    }
}

/// By its CreateGuid the server knows an open that it has made. Without one only what opens and
/// closes again leaves nothing behind: an open that nobody knows would hold its share modes and
/// oplocks for as long as the session lasts.
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

/// Whether setting it to the same value again changes nothing: not names.
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
        // A copy within one file may overlap; a pipe has heard it.
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
            allocation: None,
            query_maximal_access: false,
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
