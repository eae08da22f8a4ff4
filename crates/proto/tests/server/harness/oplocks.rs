//! Opens that request oplocks, and oplock breaks.

use wire::access::{
    AccessMask, CreateDisposition, CreateOptions, FileAttributes, ImpersonationLevel, OplockLevel,
    ShareAccess,
};
use wire::fscc::{FileInfoClass, FileRenameInformation, InfoType};
use wire::header::Target;
use wire::oplock_break::{Notification, OplockBreak, Request};
use wire::{AsyncId, Command, FileId, Flags, MessageId, Status, Utf16, create, set_info};

use super::client::{Answer, Client, Message, Options, bytes_of};
use super::rig::Rig;

/// Rights to read and write.
pub(crate) const DATA: AccessMask = AccessMask(0x0013_019F);
/// FILE_READ_ATTRIBUTES, FILE_WRITE_ATTRIBUTES and SYNCHRONIZE.
pub(crate) const STAT: AccessMask = AccessMask(0x0010_0180);
/// MessageId and command of a break notification.
const UNASKED: (MessageId, Command) = (MessageId::UNSOLICITED, Command::OPLOCK_BREAK);

/// The parameters of a CREATE.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) level: OplockLevel,
    pub(crate) access: AccessMask,
    pub(crate) share: ShareAccess,
    pub(crate) disposition: CreateDisposition,
    pub(crate) options: CreateOptions,
}

impl Ask {
    /// Reads and writes, shares all access, requests this oplock.
    pub(crate) const fn level(level: OplockLevel) -> Self {
        Self {
            level,
            access: DATA,
            share: ShareAccess(7),
            disposition: CreateDisposition::OPEN_IF,
            options: CreateOptions::NONE,
        }
    }

    /// The same, but shares no access.
    pub(crate) const fn alone(level: OplockLevel) -> Self {
        Self {
            share: ShareAccess::NONE,
            ..Self::level(level)
        }
    }

    /// Accesses attributes only.
    pub(crate) const fn stat(level: OplockLevel) -> Self {
        Self {
            access: STAT,
            ..Self::level(level)
        }
    }

    /// The CREATE of a file.
    pub(crate) fn request(self, name: Utf16<'_>) -> create::Request<'_> {
        create::Request {
            oplock_level: self.level,
            impersonation_level: ImpersonationLevel::IMPERSONATION,
            desired_access: self.access,
            file_attributes: FileAttributes::NORMAL,
            share_access: self.share,
            create_disposition: self.disposition,
            create_options: self.options,
            name,
            contexts: Vec::new(),
        }
    }

    /// Truncates the file.
    pub(crate) const fn overwrite() -> Self {
        Self {
            disposition: CreateDisposition::OVERWRITE_IF,
            ..Self::level(OplockLevel::NONE)
        }
    }
}

/// An oplock break notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Break {
    pub(crate) file_id: FileId,
    pub(crate) level: OplockLevel,
}

impl Client {
    /// A client in `files` with credits for waiting requests.
    pub(crate) fn with_credits(rig: &mut Rig) -> Self {
        let mut client = Self::in_share(rig, Options::default(), "alice", "files");
        let bytes = bytes_of(|bytes| wire::echo::Request.encode(bytes));
        let mut message = client.message(Command::ECHO, bytes);
        message.header.credits = 64;
        client.ask(rig, message);
        client
    }

    /// Opens a file of any name; the response comes at once.
    pub(crate) fn open_other(&mut self, rig: &mut Rig, name: &str, ask: Ask) -> FileId {
        let message = self.open_message(name, ask);
        created(&self.ask(rig, message)).0
    }

    /// A SET_INFO that renames an open file and replaces an existing one.
    pub(crate) fn rename_message(&mut self, file_id: FileId, to: &str) -> Message {
        let name = wire::text::utf16(to);
        let mut buffer = Vec::new();
        FileRenameInformation {
            is_replacing: true,
            root_directory: 0,
            name: Utf16(&name),
        }
        .encode(&mut buffer);
        let request = set_info::Request {
            info_type: InfoType::FILE,
            file_info_class: FileInfoClass::RENAME.0,
            additional_information: 0,
            file_id,
            buffer: &buffer,
        };
        let bytes = bytes_of(|bytes| request.encode(bytes));
        self.message(Command::SET_INFO, bytes)
    }

    pub(crate) fn open_message(&mut self, name: &str, ask: Ask) -> Message {
        let name = wire::text::utf16(name);
        let request = ask.request(Utf16(&name));
        let bytes = bytes_of(|bytes| request.encode(bytes));
        let mut message = self.message(Command::CREATE, bytes);
        message.header.credits = 64;
        message
    }

    /// Opens `f`; the response comes at once.
    pub(crate) fn open(&mut self, rig: &mut Rig, ask: Ask) -> (FileId, OplockLevel) {
        let message = self.open_message("f", ask);
        created(&self.ask(rig, message))
    }

    /// Opens `f`; the request must wait.
    pub(crate) fn open_and_wait(&mut self, rig: &mut Rig, ask: Ask) -> MessageId {
        let message = self.open_message("f", ask);
        let id = message.header.message_id;
        self.say(rig, vec![message]);
        assert!(self.hear(rig).is_none(), "it has to wait");
        id
    }

    /// Reads the next frame, which must be a break notification.
    pub(crate) fn hear_break(&mut self, rig: &mut Rig) -> Break {
        let answer = self.hear_answer(rig);
        let header = &answer.header;
        assert_eq!((header.message_id, header.command), UNASKED);
        assert!(!answer.is_signed());
        assert_eq!(answer.was_encrypted, self.encrypts);
        assert_eq!(header.credits, 0);
        assert_eq!(header.session_id.0, 0);
        broken_oplock(&answer)
    }

    /// Reads the next frame, which must hold one response.
    pub(crate) fn hear_answer(&mut self, rig: &mut Rig) -> Answer {
        let mut answers = self.hear(rig).expect("an answer");
        assert_eq!(answers.len(), 1);
        answers.remove(0)
    }

    pub(crate) fn acknowledgement(&mut self, file_id: FileId, level: u8) -> Message {
        let request = Request::Oplock(OplockBreak {
            oplock_level: OplockLevel(level),
            file_id,
        });
        let bytes = bytes_of(|bytes| request.encode(bytes));
        self.message(Command::OPLOCK_BREAK, bytes)
    }

    pub(crate) fn acknowledge(&mut self, rig: &mut Rig, file_id: FileId, level: u8) -> Status {
        let message = self.acknowledgement(file_id, level);
        let id = message.header.message_id;
        self.say(rig, vec![message]);
        let answer = self.hear_answer(rig);
        assert_eq!(answer.header.message_id, id);
        answer.status()
    }

    /// Sends a CANCEL for a request.
    pub(crate) fn cancel(&mut self, rig: &mut Rig, id: MessageId, async_id: Option<AsyncId>) {
        let bytes = bytes_of(|bytes| wire::cancel::Request.encode(bytes));
        let mut message = self.message(Command::CANCEL, bytes);
        message.header.message_id = id;
        if let Some(async_id) = async_id {
            message.header.flags |= Flags::ASYNC_COMMAND;
            message.header.target = Target::Async(async_id);
        }
        self.say(rig, vec![message]);
    }
}

/// The content of an oplock break notification.
pub(crate) fn broken_oplock(answer: &Answer) -> Break {
    match Notification::decode(&answer.message).expect("a notification") {
        Notification::Oplock(oplock) => Break {
            file_id: oplock.file_id,
            level: oplock.oplock_level,
        },
        Notification::Lease(lease) => panic!("{lease:?}"),
    }
}

/// FileId and oplock level in the response to a CREATE.
pub(crate) fn created(answer: &Answer) -> (FileId, OplockLevel) {
    assert_eq!(answer.status(), Status::SUCCESS);
    let response = create::Response::decode(&answer.message).expect("a response");
    (response.file_id, response.oplock_level)
}
