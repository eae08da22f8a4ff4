//! Requests on files.

use wire::access::{
    AccessMask, CreateDisposition, CreateOptions, FileAttributes, ImpersonationLevel, OplockLevel,
    ShareAccess,
};
use wire::{Command, FileId, Status, Utf16, close, create, read, write};

use super::client::{Answer, Client, Message, bytes_of};
use super::rig::Rig;

impl Client {
    /// A CREATE that opens or creates a file and shares all access.
    pub(crate) fn create_message(&mut self, name: &str) -> Message {
        self.create_with(name, CreateDisposition::OPEN_IF, CreateOptions::NONE)
    }

    pub(crate) fn create_with(
        &mut self,
        name: &str,
        create_disposition: CreateDisposition,
        create_options: CreateOptions,
    ) -> Message {
        let name = wire::text::utf16(name);
        let request = create::Request {
            oplock_level: OplockLevel::NONE,
            impersonation_level: ImpersonationLevel::IMPERSONATION,
            desired_access: AccessMask(0x0013_019F),
            file_attributes: FileAttributes::NORMAL,
            share_access: ShareAccess::READ | ShareAccess::WRITE | ShareAccess::DELETE,
            create_disposition,
            create_options,
            name: Utf16(&name),
            contexts: Vec::new(),
        };
        let bytes = bytes_of(|bytes| request.encode(bytes));
        self.message(Command::CREATE, bytes)
    }

    pub(crate) fn create(&mut self, rig: &mut Rig, name: &str) -> FileId {
        let message = self.create_message(name);
        file_id(&self.ask(rig, message))
    }

    pub(crate) fn close_message(&mut self, file_id: FileId) -> Message {
        let request = close::Request {
            flags: close::CloseFlags::NONE,
            file_id,
        };
        let bytes = bytes_of(|bytes| request.encode(bytes));
        self.message(Command::CLOSE, bytes)
    }

    pub(crate) fn close(&mut self, rig: &mut Rig, file_id: FileId) -> Status {
        let message = self.close_message(file_id);
        self.ask(rig, message).status()
    }

    pub(crate) fn read_message(&mut self, file_id: FileId, length: u32) -> Message {
        let request = read::Request {
            padding: 0x50,
            flags: read::ReadFlags::NONE,
            length,
            offset: 0,
            file_id,
            minimum_count: 0,
            channel: read::Channel::NONE,
            remaining_bytes: 0,
            channel_info: &[],
        };
        let bytes = bytes_of(|bytes| request.encode(bytes));
        self.message(Command::READ, bytes)
    }

    pub(crate) fn write_message(&mut self, file_id: FileId, data: &[u8]) -> Message {
        let request = write::Request {
            offset: 0,
            file_id,
            channel: read::Channel::NONE,
            remaining_bytes: 0,
            channel_info: &[],
            flags: write::WriteFlags::NONE,
            data_offset: 112,
            data,
        };
        let bytes = bytes_of(|bytes| request.encode(bytes));
        self.message(Command::WRITE, bytes)
    }
}

/// The FileId in the response to a CREATE.
pub(crate) fn file_id(answer: &Answer) -> FileId {
    assert_eq!(answer.status(), Status::SUCCESS);
    create::Response::decode(&answer.message)
        .expect("a response")
        .file_id
}

/// The data in the response to a READ.
pub(crate) fn data(answer: &Answer) -> Vec<u8> {
    assert_eq!(answer.status(), Status::SUCCESS);
    let (_, data) = read::Response::decode(&answer.message).expect("a response");
    data.to_vec()
}
