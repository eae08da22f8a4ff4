//! Opens that request leases, and lease breaks.

use wire::access::OplockLevel;
use wire::create_context::{Lease, LeaseFlags, LeaseState, LeaseV2, RawContext, name};
use wire::oplock_break::{LeaseBreak, LeaseBreakNotification, Notification, Request};
use wire::{Command, FileId, Guid, MessageId, Status, Utf16, create};

use super::client::{Answer, Client, Message, bytes_of};
use super::oplocks::Ask;
use super::rig::Rig;

/// READ_CACHING.
pub(crate) const R: LeaseState = LeaseState::READ_CACHING;
/// READ_CACHING and HANDLE_CACHING.
pub(crate) const RH: LeaseState = LeaseState(R.0 | LeaseState::HANDLE_CACHING.0);
/// All rights.
pub(crate) const RWH: LeaseState = LeaseState(RH.0 | LeaseState::WRITE_CACHING.0);

impl Client {
    /// A CREATE that requests a lease of version 2.
    pub(crate) fn lease_message(&mut self, file: &str, key: u8, rights: LeaseState) -> Message {
        let lease = Lease {
            lease_key: Guid([key; 16]),
            lease_state: rights,
            lease_flags: LeaseFlags::NONE,
            v2: Some(LeaseV2 {
                parent_lease_key: Guid::default(),
                epoch: 0,
            }),
        };
        let data = lease.encode();
        let path = wire::text::utf16(file);
        let mut request = Ask::level(OplockLevel::LEASE).request(Utf16(&path));
        request.contexts.push(RawContext {
            name: name::LEASE,
            data: &data,
        });
        let bytes = bytes_of(|bytes| request.encode(bytes));
        let mut message = self.message(Command::CREATE, bytes);
        message.header.credits = 64;
        message
    }

    /// Opens a file with a lease; the response comes at once.
    pub(crate) fn open_leased(
        &mut self,
        rig: &mut Rig,
        file: &str,
        key: u8,
        rights: LeaseState,
    ) -> (FileId, Option<Lease>) {
        let message = self.lease_message(file, key, rights);
        leased(&self.ask(rig, message))
    }

    /// Reads the next frame, which must be the notification of a lease break.
    pub(crate) fn hear_lease_break(&mut self, rig: &mut Rig) -> LeaseBreakNotification {
        let answer = self.hear_answer(rig);
        assert_eq!(answer.header.message_id, MessageId::UNSOLICITED);
        assert!(!answer.is_signed());
        assert_eq!(answer.was_encrypted, self.encrypts);
        match Notification::decode(&answer.message).expect("a notification") {
            Notification::Lease(lease) => lease,
            Notification::Oplock(oplock) => panic!("{oplock:?}"),
        }
    }

    /// Acknowledges the break of a lease. Returns the status.
    pub(crate) fn acknowledge_lease(
        &mut self,
        rig: &mut Rig,
        key: u8,
        lease_state: LeaseState,
    ) -> Status {
        let request = Request::Lease(LeaseBreak {
            lease_key: Guid([key; 16]),
            lease_state,
        });
        let bytes = bytes_of(|bytes| request.encode(bytes));
        let message = self.message(Command::OPLOCK_BREAK, bytes);
        self.say(rig, vec![message]);
        self.hear_answer(rig).status()
    }
}

/// FileId and lease in the response to a CREATE.
pub(crate) fn leased(answer: &Answer) -> (FileId, Option<Lease>) {
    assert_eq!(answer.status(), Status::SUCCESS);
    let response = create::Response::decode(&answer.message).expect("a response");
    let mut contexts = response.contexts.iter();
    let lease = contexts.find(|context| context.name == name::LEASE);
    let lease = lease.map(|context| Lease::decode(context.data).expect("a lease"));
    let is_leased = response.oplock_level == OplockLevel::LEASE;
    assert_eq!(is_leased, lease.is_some());
    (response.file_id, lease)
}
