//! Requests, and what their answers are to be taken for.

use std::ops::Range;

use wire::access::{
    AccessMask, CreateDisposition, CreateOptions, FileAttributes, ImpersonationLevel, OplockLevel,
    ShareAccess,
};
use wire::create_context::{RawContext, name};
use wire::fscc::FileInfoClass;
use wire::header::HEADER_LEN;
use wire::lock::{LockElement, LockFlags};
use wire::query_info::InfoType;
use wire::text::utf16;
use wire::{Command, FileId, Status, Utf16};

use crate::check::contents::{CELL, Stamp};
use crate::check::locks::{Lock, Place};

/// What a client means by a request.
#[derive(Clone, Debug)]
pub(crate) enum Intent {
    Negotiate,
    /// A leg of a login; which one, whether it renews a session, whether the password is right.
    Login {
        number: u64,
        is_again: bool,
        is_right: bool,
    },
    /// Enter the share of all.
    Tree,
    /// Enter a share that is not there, or that others may enter.
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
    List,
    /// Anything that changes no bytes, and whose answer may be any.
    Any,
    /// It must fail in one of these ways.
    Refused(&'static [Status]),
}

/// An open that a client asks for.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    pub(crate) slot: u64,
    pub(crate) access: AccessMask,
    pub(crate) share: ShareAccess,
    pub(crate) disposition: CreateDisposition,
    pub(crate) options: CreateOptions,
    /// Whether nobody else is there any more: then only some answers are right.
    pub(crate) is_audit: bool,
}

/// A request without its header.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) command: Command,
    /// Room for the header, then the body.
    pub(crate) message: Vec<u8>,
    /// Credits that it uses up, where they count bytes.
    pub(crate) charge: u16,
    pub(crate) is_related: bool,
    pub(crate) intent: Intent,
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
        let path = utf16(path);
        let context = |name| RawContext { name, data: &[] };
        let request = wire::create::Request {
            oplock_level: OplockLevel::NONE,
            impersonation_level: ImpersonationLevel::IMPERSONATION,
            desired_access: opening.access,
            file_attributes: FileAttributes::NONE,
            share_access: opening.share,
            create_disposition: opening.disposition,
            create_options: opening.options,
            name: Utf16(&path),
            contexts: vec![context(name::ON_DISK_ID), context(name::MAXIMAL_ACCESS)],
        };
        Self::new(Command::CREATE, Intent::Create(opening), |out| {
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
        let count = cells.end - cells.start;
        let request = wire::read::Request {
            padding: wire::read::DATA_OFFSET,
            flags: wire::read::ReadFlags::NONE,
            length: count * CELL as u32,
            offset: u64::from(cells.start) * CELL as u64,
            file_id,
            minimum_count: 0,
            channel: wire::read::Channel::NONE,
            remaining_bytes: 0,
            channel_info: &[],
        };
        let intent = Intent::Read { slot, cells };
        Self::new(Command::READ, intent, |out| request.encode(out)).charged(count)
    }

    pub(crate) fn write(slot: u64, file_id: FileId, cells: Range<u32>, stamp: Stamp) -> Self {
        let count = cells.end - cells.start;
        let request = wire::write::Request {
            offset: u64::from(cells.start) * CELL as u64,
            file_id,
            channel: wire::read::Channel::NONE,
            remaining_bytes: 0,
            channel_info: &[],
            flags: wire::write::WriteFlags::NONE,
            data_offset: 0,
            data: &stamp.fill(count),
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

    pub(crate) fn query_info(file_id: FileId, info_type: InfoType, class: u8, room: u32) -> Self {
        let request = wire::query_info::Request {
            info_type,
            file_info_class: class,
            output_buffer_length: room,
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
