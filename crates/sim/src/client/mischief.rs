//! Violations of the protocol, and their consequences.

use wire::{Command, FileId, SessionId, Status, TreeId};

use super::call::{Call, Intent};
use super::send::put_header;
use super::{Client, Order, Phase, Shared};
use crate::scenario::Protection;

/// Statuses for a request without a session.
const NO_SESSION: &[Status] = &[
    Status::USER_SESSION_DELETED,
    Status::ACCESS_DENIED,
    Status::INVALID_PARAMETER,
];
const NO_TREE: &[Status] = &[Status::NETWORK_NAME_DELETED];
const NO_OPEN: &[Status] = &[Status::FILE_CLOSED];
const BAD_SIGNATURE: &[Status] = &[Status::ACCESS_DENIED];

impl Client {
    pub(super) fn mischief(&mut self, shared: &mut Shared<'_>) {
        match self.choices.below(6) {
            0 => self.use_foreign_open(shared),
            1 => self.use_wrong_tree(shared),
            2 if self.protection == Protection::Signed => self.sign_wrongly(shared),
            2 | 3 => self.use_id_again(shared),
            4 => self.send_garbage(shared),
            _ => self.use_foreign_session(shared),
        }
    }

    /// Uses an open of another session, a closed open, or an unknown FileId.
    fn use_foreign_open(&mut self, shared: &mut Shared<'_>) {
        let mine = |id: &FileId| self.slots.values().any(|slot| slot.file_id == *id);
        let mut others = shared.file_ids.iter().filter(|id| !mine(id));
        let foreign = others.next_back().copied().unwrap_or(FileId {
            persistent: 1,
            volatile: self.choices.number(),
        });
        let mut call = Call::read(u64::MAX, foreign, 0..1);
        call.intent = Intent::Refused(NO_OPEN);
        self.submit(vec![call], shared);
    }

    fn use_wrong_tree(&mut self, shared: &mut Shared<'_>) {
        let tree = std::mem::replace(&mut self.tree, TreeId(0x7777));
        let mut call = Call::flush(FileId::default());
        call.intent = Intent::Refused(NO_TREE);
        self.submit(vec![call], shared);
        self.tree = tree;
    }

    /// Uses a session of another connection, or an unknown SessionId. In an encrypted frame that
    /// ends the connection.
    fn use_foreign_session(&mut self, shared: &mut Shared<'_>) {
        if self.protection != Protection::Plain {
            return self.use_wrong_tree(shared);
        }
        let session = self.session;
        self.session = SessionId(self.choices.number() | 1);
        let mut call = Call::flush(FileId::default());
        call.intent = Intent::Refused(NO_SESSION);
        self.submit(vec![call], shared);
        self.session = session;
    }

    fn sign_wrongly(&mut self, shared: &mut Shared<'_>) {
        let mut call = Call::echo();
        call.intent = Intent::Refused(BAD_SIGNATURE);
        self.submit(vec![call], shared);
        if let Some(Order::Frame(frame)) = shared.orders.last_mut() {
            frame[wire::header::SIGNATURE.start] ^= 1;
        }
    }

    /// \[MS-SMB2\] 3.3.5.2.3: ends the connection.
    fn use_id_again(&mut self, shared: &mut Shared<'_>) {
        let Some(id) = self.ledger.used() else {
            return;
        };
        let mut call = Call::echo();
        let header = self.bare_header(Command::ECHO, id);
        put_header(&header, &mut call.message);
        self.doom(call.message, shared);
    }

    fn send_garbage(&mut self, shared: &mut Shared<'_>) {
        let mut garbage = self.choices.bytes().to_vec();
        match self.choices.below(4) {
            0 => garbage[..4].copy_from_slice(&wire::header::PROTOCOL_ID),
            1 => garbage[..4].copy_from_slice(&wire::transform::PROTOCOL_ID),
            2 => garbage.clear(),
            _ => garbage[0] = 0,
        }
        self.doom(garbage, shared);
    }

    /// Sends a message that ends the connection.
    fn doom(&mut self, frame: Vec<u8>, shared: &mut Shared<'_>) {
        self.phase = Phase::Doomed;
        shared.orders.push(Order::Frame(frame));
    }
}
