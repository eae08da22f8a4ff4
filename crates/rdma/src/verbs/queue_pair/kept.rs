//! Bytes of ours in the form that a device takes, and what is kept for that.

use std::ffi::c_int;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use ring::Memory;

use super::{VerbsQueuePair, length};
use crate::operand::{Piece, Sink};
use crate::provider::Network;
use crate::slots::{Slot, Stock};
use crate::verbs::device::{Device, Registration};
use crate::verbs::ffi;
use crate::verbs::work::Local;

/// Bytes of a piece that is copied where the device does not know it: registering costs two system
/// calls and a walk over its pages, more than copying a message.
const COPY_BYTES: usize = 8 << 10;

/// Copies under way at one time; beyond that pieces are registered.
const COPIES: usize = 64;
/// Of these, those that there is memory for until more are under way.
const COPIES_AT_FIRST: usize = 2;

/// What an operation keeps beside what it works on, until its completion.
#[derive(Default)]
pub(super) struct Kept {
    registrations: Vec<Registration>,
    copies: Vec<Slot>,
}

impl VerbsQueuePair {
    /// Where the bytes of pieces are that are only read; empty ones are left out.
    pub(super) fn pieces(&mut self, pieces: &[Piece], kept: &mut Kept) -> io::Result<Vec<Local>> {
        let device = Arc::clone(self.connected_device()?);
        let mut found = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let (memory, bytes) = (piece.memory(), piece.bytes());
            if bytes.is_empty() {
                continue;
            }
            found.push(match self.copy(memory, bytes) {
                Some(copy) => {
                    let bytes = &copy[..bytes.len()];
                    let local = local(&device, Some(copy.memory()), bytes, 0, kept)?;
                    kept.copies.push(copy);
                    local
                }
                None => local(&device, memory, bytes, 0, kept)?,
            });
        }
        Ok(found)
    }

    /// A copy of bytes that the device does not know, if they are few and there is room.
    fn copy(&mut self, memory: Option<&Memory>, bytes: &[u8]) -> Option<Slot> {
        if memory.is_some() || bytes.len() > COPY_BYTES {
            return None;
        }
        let make = || Stock::new(COPIES_AT_FIRST, COPIES, COPY_BYTES);
        let mut slot = self.copies.get_or_insert_with(make).take()?;
        slot[..bytes.len()].copy_from_slice(bytes);
        Some(slot)
    }

    /// Where a range of a sink is.
    pub(super) fn sink(
        &self,
        sink: &mut Sink,
        range: Range<usize>,
        kept: &mut Kept,
    ) -> io::Result<Local> {
        let device = self.connected_device()?;
        // iWARP names the sink on the wire, and its response is a WRITE to it: a key for these
        // bytes alone, and as long as the READ.
        let (memory, access) = match device.capabilities().network {
            Network::Iwarp => (None, ffi::ACCESS_LOCAL_WRITE | ffi::ACCESS_REMOTE_WRITE),
            _ => (sink.memory().cloned(), ffi::ACCESS_LOCAL_WRITE),
        };
        let bytes = &sink.bytes_mut()[range];
        local(device, memory.as_ref(), bytes, access, kept)
    }
}

/// Memory that the device does not know is made known for the length of the operation.
fn local(
    device: &Arc<Device>,
    memory: Option<&Memory>,
    bytes: &[u8],
    access: c_int,
    kept: &mut Kept,
) -> io::Result<Local> {
    let start = bytes.as_ptr();
    let key = match memory {
        _ if bytes.is_empty() => 0,
        Some(memory) => device.known(memory)?.local,
        None => {
            // SAFETY: the operation keeps the memory until its completion, or the end of the
            // queue pair, and `kept` is dropped with or before it.
            let made = unsafe { Registration::new(device, start, bytes.len(), access) }?;
            let key = made.keys().local;
            kept.registrations.push(made);
            key
        }
    };
    Ok(Local {
        address: start.addr() as u64,
        length: length(bytes.len()),
        key,
    })
}
