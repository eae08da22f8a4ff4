//! Durable opens, and CREATEs that reconnect to them.

use wire::access::OplockLevel;
use wire::create_context::{
    DURABLE_REQUEST_DATA, DurableFlags, DurableReconnect, DurableReconnectV2, DurableRequestV2,
    DurableResponseV2, RawContext, find, name,
};
use wire::fsctl::{CtlCode, ResiliencyRequest};
use wire::ioctl::{IoctlFlags, Request};
use wire::{Command, FileId, Guid, Status, create};

use super::client::{Answer, Client, Message, bytes_of};
use super::oplocks::Ask;
use super::rig::Rig;

impl Message {
    /// The same CREATE with one more context.
    pub(crate) fn with_context(self, name: &'static [u8], data: &[u8]) -> Self {
        let mut request = create::Request::decode(&self.bytes).expect("a CREATE");
        request.contexts.push(RawContext { name, data });
        let bytes = bytes_of(|bytes| request.encode(bytes));
        Self { bytes, ..self }
    }
}

impl Client {
    /// A CREATE of `f` that requests a durable open of version 1.
    pub(crate) fn durable_message(&mut self, ask: Ask) -> Message {
        let message = self.open_message("f", ask);
        message.with_context(name::DURABLE_REQUEST, &DURABLE_REQUEST_DATA)
    }

    /// A CREATE of `f` that requests a durable open of version 2.
    pub(crate) fn durable_v2_message(&mut self, ask: Ask, timeout_ms: u32, guid: u8) -> Message {
        let data = DurableRequestV2 {
            timeout_ms,
            flags: DurableFlags::NONE,
            create_guid: Guid([guid; 16]),
        };
        let message = self.open_message("f", ask);
        message.with_context(name::DURABLE_REQUEST_V2, &data.encode())
    }

    /// Opens `f` durably with an exclusive share mode and a batch oplock.
    pub(crate) fn open_durable(&mut self, rig: &mut Rig) -> FileId {
        let message = self.durable_message(Ask::alone(OplockLevel::BATCH));
        let answer = self.ask(rig, message);
        assert!(is_durable(&answer));
        create::Response::decode(&answer.message)
            .expect("a response")
            .file_id
    }

    /// A CREATE that reconnects by DHnC.
    pub(crate) fn reconnect_message(&mut self, file_id: FileId) -> Message {
        let message = self.open_message("", Ask::level(OplockLevel::NONE));
        message.with_context(
            name::DURABLE_RECONNECT,
            &DurableReconnect { file_id }.encode(),
        )
    }

    /// Reconnects by DHnC. Returns the status.
    pub(crate) fn reconnect(&mut self, rig: &mut Rig, file_id: FileId) -> Status {
        let message = self.reconnect_message(file_id);
        self.ask(rig, message).status()
    }

    /// Reconnects by DH2C. Returns the status.
    pub(crate) fn reconnect_v2(&mut self, rig: &mut Rig, file_id: FileId, guid: u8) -> Status {
        let data = DurableReconnectV2 {
            file_id,
            create_guid: Guid([guid; 16]),
            flags: DurableFlags::NONE,
        };
        let message = self.open_message("", Ask::level(OplockLevel::NONE));
        let message = message.with_context(name::DURABLE_RECONNECT_V2, &data.encode());
        self.ask(rig, message).status()
    }

    /// Sends FSCTL_LMR_REQUEST_RESILIENCY. Returns the status.
    pub(crate) fn make_resilient(&mut self, rig: &mut Rig, file_id: FileId, ms: u32) -> Status {
        let input = ResiliencyRequest { timeout_ms: ms }.encode();
        let request = Request {
            ctl_code: CtlCode::LMR_REQUEST_RESILIENCY,
            file_id,
            flags: IoctlFlags::IS_FSCTL,
            max_input_response: 0,
            max_output_response: 0,
            input: &input,
            output: &[],
        };
        let bytes = bytes_of(|bytes| request.encode(bytes));
        self.ask_body(rig, Command::IOCTL, bytes).status()
    }
}

/// Whether the response to a CREATE grants a durable open of version 1.
pub(crate) fn is_durable(answer: &Answer) -> bool {
    let response = create::Response::decode(&answer.message).expect("a response");
    find(&response.contexts, name::DURABLE_REQUEST).is_some()
}

/// Milliseconds of a durable open of version 2 that the response to a CREATE grants.
pub(crate) fn durable_timeout(answer: &Answer) -> Option<u32> {
    let response = create::Response::decode(&answer.message).expect("a response");
    let data = find(&response.contexts, name::DURABLE_REQUEST_V2)?;
    Some(DurableResponseV2::decode(data).expect("8 bytes").timeout_ms)
}
