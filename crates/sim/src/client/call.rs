//! Requests, and the expectations of their responses.

use std::ops::Range;
use std::time::Duration;

use wire::access::{
    AccessMask, CreateDisposition, CreateOptions, FileAttributes, ImpersonationLevel, OplockLevel,
    ShareAccess,
};
use wire::create_context::{DurableReconnect, Lease, PosixRequest, RawContext, name};
use wire::fscc::FileInfoClass;
use wire::fsctl::{Chunk, CopyChunkRequest, CtlCode, ResiliencyRequest, ZeroData};
use wire::header::HEADER_LEN;
use wire::lock::{LockElement, LockFlags};
use wire::query_info::InfoType;
use wire::read::Channel;
use wire::text::utf16;
use wire::{Command, FileId, Status, Utf16};

use crate::check::caching::Delayed;
use crate::check::contents::{CELL, Filling, Key, Stamp};
use crate::check::locks::{Lock, Place};

/// The intent of a request.
#[derive(Clone, Debug)]
pub(crate) enum Intent {
    Negotiate,
    /// A leg of a login: its number, whether it renews a session, whether the password is right.
    Login {
        number: u64,
        is_again: bool,
        is_right: bool,
    },
    /// Connect to the share that is open to all users.
    Tree,
    /// Connect to a share that does not exist, or that is closed to the user.
    ForbiddenTree,
    LeaveTree,
    Logoff,
    Create(Opening),
    Close {
        slot: u64,
    },
    Read {
        slot: u64,
        cells: Range<u32>,
    },
    Write {
        slot: u64,
        cells: Range<u32>,
        stamp: Stamp,
    },
    Lock {
        slot: u64,
        lock: Lock,
        may_wait: bool,
    },
    Unlock {
        slot: u64,
        place: Place,
    },
    /// Request the resume key of an open, as the source of a copy.
    Key {
        slot: u64,
    },
    /// Make an open resilient, so that it outlives a lost connection.
    Resilient {
        slot: u64,
    },
    /// Reconnect to a resilient open.
    Reconnect {
        slot: u64,
    },
    /// Copy cells to the file of an open.
    Copy {
        slot: u64,
        fillings: Vec<(Range<u32>, Filling)>,
    },
    /// Write delayed data of a holder of caching rights.
    Flush {
        holder: u64,
        write: Delayed,
    },
    /// Acknowledge the break of a holder's rights.
    Acknowledge {
        holder: u64,
        expected: Expected,
    },
    /// Rename the file of an open.
    Rename {
        slot: u64,
        key: Key,
        to: String,
    },
    /// Delete the file of an open once all its opens are closed, or with POSIX semantics once this
    /// one is closed.
    Delete {
        slot: u64,
        key: Key,
        is_posix: bool,
    },
    List,
    /// List the directory of an open from its start, to cache the names.
    Scan {
        slot: u64,
    },
    /// A request that changes no data and may have any response.
    Any,
    /// The request must fail with any status, and without effect.
    Impossible,
    /// The request must fail with one of these statuses.
    Refused(&'static [Status]),
}

/// The expected response to an acknowledgment of a break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// Success, if the holder still has opens when the response arrives.
    Success,
    /// Any failure: the acknowledgment keeps too much, or there is nothing to acknowledge.
    Refusal,
    /// The time limit may be over.
    Anything,
}

/// The caching rights that a CREATE requests.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked {
    Nothing,
    Oplock(OplockLevel),
    Lease(Lease),
}

/// Cells to copy.
#[derive(Clone, Debug)]
pub(crate) struct Move {
    /// First cell of the source.
    pub(crate) from: u32,
    /// Cells of the target.
    pub(crate) to: Range<u32>,
}

/// An open that a client requests.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    pub(crate) slot: u64,
    /// The name, in lower case.
    pub(crate) path: String,
    pub(crate) access: AccessMask,
    pub(crate) share: ShareAccess,
    pub(crate) disposition: CreateDisposition,
    pub(crate) options: CreateOptions,
    /// Whether no other client is connected: then fewer responses are right.
    pub(crate) is_audit: bool,
    pub(crate) asked: Asked,
    /// The holder of the requested caching rights.
    pub(crate) holder: Option<u64>,
    /// Whether the open has the SMB3 POSIX extensions.
    pub(crate) is_posix: bool,
}

/// A request without its header.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) command: Command,
    /// Space for the header, then the body.
    pub(crate) message: Vec<u8>,
    /// Credit charge, in dialects with large MTU.
    pub(crate) charge: u16,
    pub(crate) is_related: bool,
    /// Keys of the memory that the request names.
    pub(crate) memory: Vec<u32>,
    pub(crate) intent: Intent,
}

/// Returns whether the disposition truncates an existing file.
pub(super) fn overwrites(disposition: CreateDisposition) -> bool {
    matches!(
        disposition,
        CreateDisposition::SUPERSEDE
            | CreateDisposition::OVERWRITE
            | CreateDisposition::OVERWRITE_IF
    )
}

impl Call {
    pub(crate) fn new(command: Command, intent: Intent, encode: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut message = vec![0; HEADER_LEN];
        encode(&mut message);
        Self {
            command,
            message,
            charge: 1,
            is_related: false,
            memory: Vec::new(),
            intent,
        }
    }

    fn charged(mut self, cells: u32) -> Self {
        let bytes = cells as usize * CELL;
        self.charge = u16::try_from(bytes.div_ceil(65_536).max(1)).expect("files are small");
        self
    }

    pub(crate) fn echo() -> Self {
        let request = wire::echo::Request;
        Self::new(Command::ECHO, Intent::Any, |out| request.encode(out))
    }

    pub(crate) fn create(path: &str, opening: Opening) -> Self {
        let path = match opening.is_posix {
            true => utf16(&path.replace('\\', "/")),
            false => utf16(path),
        };
        let context = |name| RawContext { name, data: &[] };
        let mut contexts = vec![context(name::ON_DISK_ID), context(name::MAXIMAL_ACCESS)];
        let posix = posix_context(opening.options);
        if opening.is_posix {
            let (name, data) = (name::POSIX, &posix[..]);
            contexts.push(RawContext { name, data });
        }
        let lease;
        let oplock_level = match &opening.asked {
            Asked::Nothing => OplockLevel::NONE,
            Asked::Oplock(level) => *level,
            Asked::Lease(asked) => {
                lease = asked.encode();
                let (name, data) = (name::LEASE, &lease[..]);
                contexts.push(RawContext { name, data });
                OplockLevel::LEASE
            }
        };
        let request = wire::create::Request {
            oplock_level,
            impersonation_level: ImpersonationLevel::IMPERSONATION,
            desired_access: opening.access,
            file_attributes: FileAttributes::NONE,
            share_access: opening.share,
            create_disposition: opening.disposition,
            create_options: opening.options,
            name: Utf16(&path),
            contexts,
        };
        Self::new(Command::CREATE, Intent::Create(opening), |out| {
            request.encode(out);
        })
    }

    /// Makes an open resilient for this time.
    pub(crate) fn resilient(slot: u64, file_id: FileId, timeout: Duration) -> Self {
        let timeout_ms = u32::try_from(timeout.as_millis()).expect("a scenario has short times");
        let input = ResiliencyRequest { timeout_ms }.encode();
        let code = CtlCode::LMR_REQUEST_RESILIENCY;
        Self::ioctl(Intent::Resilient { slot }, code, file_id, &input)
    }

    /// Reconnects to an open of a lost session, with or without the context of the SMB3 POSIX
    /// extensions.
    pub(crate) fn reconnect(slot: u64, file_id: FileId, is_posix: bool) -> Self {
        let data = DurableReconnect { file_id }.encode();
        let mut contexts = vec![RawContext {
            name: name::DURABLE_RECONNECT,
            data: &data,
        }];
        let posix = posix_context(CreateOptions::NONE);
        if is_posix {
            let (name, data) = (name::POSIX, &posix[..]);
            contexts.push(RawContext { name, data });
        }
        let request = wire::create::Request {
            oplock_level: OplockLevel::NONE,
            impersonation_level: ImpersonationLevel::IMPERSONATION,
            desired_access: AccessMask::FILE_READ_ATTRIBUTES,
            file_attributes: FileAttributes::NONE,
            share_access: ShareAccess::NONE,
            create_disposition: CreateDisposition::OPEN,
            create_options: CreateOptions::NONE,
            name: Utf16(&[]),
            contexts,
        };
        Self::new(Command::CREATE, Intent::Reconnect { slot }, |out| {
            request.encode(out);
        })
    }

    pub(crate) fn close(slot: u64, file_id: FileId, wants_attributes: bool) -> Self {
        let flags = wire::close::CloseFlags(u16::from(wants_attributes));
        let request = wire::close::Request { flags, file_id };
        let intent = Intent::Close { slot };
        Self::new(Command::CLOSE, intent, |out| request.encode(out))
    }

    pub(crate) fn read(slot: u64, file_id: FileId, cells: Range<u32>) -> Self {
        Self::read_to(slot, file_id, cells, (Channel::NONE, &[]))
    }

    /// The data go to the memory in the channel info.
    pub(crate) fn read_to(
        slot: u64,
        file_id: FileId,
        cells: Range<u32>,
        (channel, channel_info): (Channel, &[u8]),
    ) -> Self {
        let count = cells.end - cells.start;
        let request = wire::read::Request {
            padding: wire::read::DATA_OFFSET,
            flags: wire::read::ReadFlags::NONE,
            length: count * CELL as u32,
            offset: u64::from(cells.start) * CELL as u64,
            file_id,
            minimum_count: 0,
            channel,
            remaining_bytes: 0,
            channel_info,
        };
        let intent = Intent::Read { slot, cells };
        Self::new(Command::READ, intent, |out| request.encode(out)).charged(count)
    }

    pub(crate) fn write(slot: u64, file_id: FileId, cells: Range<u32>, stamp: Stamp) -> Self {
        let data = stamp.fill(cells.end - cells.start);
        Self::write_from(
            slot,
            file_id,
            (cells, stamp),
            (Channel::NONE, &[]),
            (0, &data),
        )
    }

    /// The data are in the memory in the channel info: this number of bytes. With `data`, some are
    /// also in the message.
    pub(crate) fn write_from(
        slot: u64,
        file_id: FileId,
        (cells, stamp): (Range<u32>, Stamp),
        (channel, channel_info): (Channel, &[u8]),
        (remaining_bytes, data): (u32, &[u8]),
    ) -> Self {
        let count = cells.end - cells.start;
        let request = wire::write::Request {
            offset: u64::from(cells.start) * CELL as u64,
            file_id,
            channel,
            remaining_bytes,
            channel_info,
            flags: wire::write::WriteFlags::NONE,
            data_offset: 0,
            data,
        };
        let intent = Intent::Write { slot, cells, stamp };
        Self::new(Command::WRITE, intent, |out| request.encode(out)).charged(count)
    }

    pub(crate) fn lock(slot: u64, file_id: FileId, lock: Lock, may_wait: bool) -> Self {
        let kind = match lock.is_exclusive {
            true => LockFlags::EXCLUSIVE_LOCK,
            false => LockFlags::SHARED_LOCK,
        };
        let flags = match may_wait {
            true => kind,
            false => kind | LockFlags::FAIL_IMMEDIATELY,
        };
        let intent = Intent::Lock {
            slot,
            lock,
            may_wait,
        };
        Self::new(Command::LOCK, intent, |out| {
            lock_request(file_id, lock.place, flags).encode(out);
        })
    }

    pub(crate) fn unlock(slot: u64, file_id: FileId, place: Place) -> Self {
        Self::new(Command::LOCK, Intent::Unlock { slot, place }, |out| {
            lock_request(file_id, place, LockFlags::UNLOCK).encode(out);
        })
    }

    /// Requests the resume key of an open.
    pub(crate) fn key(slot: u64, file_id: FileId) -> Self {
        let code = CtlCode::SRV_REQUEST_RESUME_KEY;
        Self::ioctl(Intent::Key { slot }, code, file_id, &[])
    }

    /// Copies from the open with this resume key to another open.
    pub(crate) fn copy(
        (file, source_key): (u64, [u8; 24]),
        (slot, file_id): (u64, FileId),
        ctl_code: CtlCode,
        moves: &[Move],
    ) -> Self {
        let chunks = moves.iter().map(|Move { from, to }| Chunk {
            source_offset: u64::from(*from) * CELL as u64,
            target_offset: u64::from(to.start) * CELL as u64,
            length: (to.end - to.start) * CELL as u32,
        });
        let request = CopyChunkRequest {
            source_key,
            chunks: chunks.collect(),
        };
        let filling = |each: &Move| (each.to.clone(), Filling::Cells(file, each.from));
        let fillings = moves.iter().map(filling).collect();
        let intent = Intent::Copy { slot, fillings };
        Self::ioctl(intent, ctl_code, file_id, &request.encode())
    }

    /// Fills cells with zeros.
    pub(crate) fn zero(slot: u64, file_id: FileId, cells: Range<u32>) -> Self {
        let request = ZeroData {
            file_offset: u64::from(cells.start) * CELL as u64,
            beyond_final_zero: u64::from(cells.end) * CELL as u64,
        };
        let stamp = Stamp::default();
        let intent = Intent::Write { slot, cells, stamp };
        Self::ioctl(intent, CtlCode::SET_ZERO_DATA, file_id, &request.encode())
    }

    pub(crate) fn ioctl(intent: Intent, ctl_code: CtlCode, file_id: FileId, input: &[u8]) -> Self {
        let request = wire::ioctl::Request {
            ctl_code,
            file_id,
            max_input_response: 0,
            max_output_response: 4096,
            flags: wire::ioctl::IoctlFlags::IS_FSCTL,
            input,
            output: &[],
        };
        Self::new(Command::IOCTL, intent, |out| request.encode(out))
    }

    /// Acknowledges the break of an oplock or a lease.
    pub(crate) fn acknowledge(
        request: wire::oplock_break::Request,
        holder: u64,
        expected: Expected,
    ) -> Self {
        let intent = Intent::Acknowledge { holder, expected };
        Self::new(Command::OPLOCK_BREAK, intent, |out| request.encode(out))
    }

    pub(crate) fn change_notify(file_id: FileId, is_tree: bool, max_len: u32) -> Self {
        use wire::change_notify::{ChangeNotifyFlags, CompletionFilter, Request};

        let request = Request {
            flags: match is_tree {
                true => ChangeNotifyFlags::WATCH_TREE,
                false => ChangeNotifyFlags::NONE,
            },
            output_buffer_length: max_len,
            file_id,
            completion_filter: CompletionFilter(0xFFF),
        };
        Self::new(Command::CHANGE_NOTIFY, Intent::Any, |out| {
            request.encode(out);
        })
    }

    pub(crate) fn flush(file_id: FileId) -> Self {
        let request = wire::flush::Request {
            reserved: 0,
            file_id,
        };
        Self::new(Command::FLUSH, Intent::Any, |out| request.encode(out))
    }

    pub(crate) fn set_info(
        intent: Intent,
        file_id: FileId,
        class: FileInfoClass,
        buffer: &[u8],
    ) -> Self {
        let request = wire::set_info::Request {
            info_type: InfoType::FILE,
            file_info_class: class.0,
            additional_information: 0,
            file_id,
            buffer,
        };
        Self::new(Command::SET_INFO, intent, |out| request.encode(out))
    }

    pub(crate) fn query_info(
        file_id: FileId,
        info_type: InfoType,
        class: u8,
        max_len: u32,
    ) -> Self {
        let request = wire::query_info::Request {
            info_type,
            file_info_class: class,
            output_buffer_length: max_len,
            additional_information: 0x7,
            flags: wire::query_info::QueryInfoFlags::NONE,
            file_id,
            input: &[],
        };
        Self::new(Command::QUERY_INFO, Intent::Any, |out| request.encode(out))
    }

    pub(crate) fn query_directory(file_id: FileId, class: u8, flags: u8, pattern: &str) -> Self {
        let pattern = utf16(pattern);
        let request = wire::query_directory::Request {
            file_information_class: class,
            flags: wire::query_directory::QueryDirectoryFlags(flags),
            file_index: 0,
            file_id,
            pattern: Utf16(&pattern),
            output_buffer_length: 4096,
        };
        Self::new(Command::QUERY_DIRECTORY, Intent::List, |out| {
            request.encode(out);
        })
    }

    /// Lists a directory from its start. All simulated directories fit into one response.
    pub(crate) fn scan(slot: u64, file_id: FileId) -> Self {
        let class = FileInfoClass::NAMES.0;
        let flags = wire::query_directory::QueryDirectoryFlags::RESTART_SCANS;
        Self {
            intent: Intent::Scan { slot },
            ..Self::query_directory(file_id, class, flags.0, "*")
        }
    }
}

/// Returns the create context of the SMB3 POSIX extensions, with which all users may use the file.
fn posix_context(options: CreateOptions) -> Vec<u8> {
    let is_directory = options.contains(CreateOptions::DIRECTORY_FILE);
    let mode = if is_directory { 0o777 } else { 0o666 };
    PosixRequest { mode }.encode()
}

fn lock_request(file_id: FileId, (offset, length): Place, flags: LockFlags) -> wire::lock::Request {
    let element = LockElement {
        offset,
        length,
        flags,
    };
    wire::lock::Request {
        lock_sequence: 0,
        file_id,
        locks: vec![element],
    }
}
