//! A client that checks the files after all other clients have finished.

use std::collections::VecDeque;

use wire::FileId;
use wire::access::{AccessMask, CreateDisposition, CreateOptions, ShareAccess};

use super::act::NAMES;
use super::call::{Call, Intent, Opening};
use super::{Client, Order, Shared};
use crate::check::contents::CELLS;

/// Number of cells of one READ of the audit.
const STEP: u32 = 100;

impl Client {
    /// Makes the client read every file with an exclusive open: so it finds open files and lost
    /// writes.
    #[must_use]
    pub(crate) fn auditing(mut self) -> Self {
        self.quota = 0;
        self.audit = Some(NAMES.iter().map(|name| (*name).into()).collect());
        self
    }

    /// Checks the next file after the last one.
    pub(super) fn look(&mut self, shared: &mut Shared<'_>) {
        if self.ledger.in_flight() > 0 {
            shared.orders.push(Order::Think);
            return;
        }
        let is_rich = self.can_send(6);
        let names = self.audit.as_mut().map(VecDeque::pop_front);
        match names.flatten() {
            None => return shared.orders.push(Order::HangUp),
            Some(name) if is_rich => self.read_all(&name, shared),
            Some(name) => {
                let names = self.audit.as_mut().expect("it is an audit");
                names.push_front(name);
                self.submit(vec![Call::echo()], shared);
            }
        }
        shared.orders.push(Order::Think);
    }

    fn read_all(&mut self, name: &str, shared: &mut Shared<'_>) {
        let how = (CreateDisposition::OPEN, CreateOptions::NON_DIRECTORY_FILE);
        let create = self.opening(
            name,
            (AccessMask::FILE_READ_DATA, ShareAccess::NONE),
            how,
            shared,
        );
        let Intent::Create(Opening { slot, .. }) = create.intent else {
            unreachable!("a create creates");
        };
        let mut calls = vec![create];
        for start in (0..CELLS).step_by(STEP as usize) {
            calls.push(Call::read(slot, FileId::RELATED, start..start + STEP));
        }
        calls.push(Call::close(slot, FileId::RELATED, true));
        // The server closes the open before the client receives its response.
        self.is_closing(slot, shared);
        for call in &mut calls[1..] {
            call.is_related = true;
        }
        self.submit(calls, shared);
    }
}
