//! Local bytes in the form that a device takes, and the resources for that.

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

/// Largest piece in bytes that is copied if the device has not registered it. A registration costs
/// two system calls and a walk over the pages, more than the copy of a message.
const COPY_BYTES: usize = 8 << 10;

/// Number of copies in flight; further pieces are registered.
const COPIES: usize = 64;
/// Number of copies in the first allocation.
const COPIES_AT_FIRST: usize = 2;

/// Resources of an operation beside its memory. The operation owns them until its completion.
#[derive(Default)]
pub(super) struct Retained {
    registrations: Vec<Registration>,
    copies: Vec<Slot>,
}

impl VerbsQueuePair {
    /// Locates the bytes of pieces that the device only reads. Empty pieces are left out.
    pub(super) fn pieces(
        &mut self,
        pieces: &[Piece],
        retained: &mut Retained,
    ) -> io::Result<Vec<Local>> {
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
                    let local = local(&device, Some(copy.memory()), bytes, 0, retained)?;
                    retained.copies.push(copy);
                    local
                }
                None => local(&device, memory, bytes, 0, retained)?,
            });
        }
        Ok(found)
    }

    /// Copies bytes that the device has not registered, if they are few and a slot is free.
    fn copy(&mut self, memory: Option<&Memory>, bytes: &[u8]) -> Option<Slot> {
        if memory.is_some() || bytes.len() > COPY_BYTES {
            return None;
        }
        let make = || Stock::new(COPIES_AT_FIRST, COPIES, COPY_BYTES);
        let mut slot = self.copies.get_or_insert_with(make).take()?;
        slot[..bytes.len()].copy_from_slice(bytes);
        Some(slot)
    }

    /// Locates a range of a sink.
    pub(super) fn sink(
        &self,
        sink: &mut Sink,
        range: Range<usize>,
        retained: &mut Retained,
    ) -> io::Result<Local> {
        let device = self.connected_device()?;
        // iWARP names the sink on the wire, and the response is a WRITE to it: so the key covers
        // these bytes only, and lives as long as the READ.
        let (memory, access) = match device.capabilities().network {
            Network::Iwarp => (None, ffi::ACCESS_LOCAL_WRITE | ffi::ACCESS_REMOTE_WRITE),
            _ => (sink.memory().cloned(), ffi::ACCESS_LOCAL_WRITE),
        };
        let bytes = &sink.bytes_mut()[range];
        local(device, memory.as_ref(), bytes, access, retained)
    }
}

/// Locates bytes, and registers unregistered memory for the length of the operation.
fn local(
    device: &Arc<Device>,
    memory: Option<&Memory>,
    bytes: &[u8],
    access: c_int,
    retained: &mut Retained,
) -> io::Result<Local> {
    let start = bytes.as_ptr();
    let key = match memory {
        _ if bytes.is_empty() => 0,
        Some(memory) => device.known(memory)?.local,
        None => {
            // SAFETY: the operation owns the memory until its completion, or until the end of the
            // queue pair, and `retained` is dropped with it or before it.
            let made = unsafe { Registration::new(device, start, bytes.len(), access) }?;
            let key = made.keys().local;
            retained.registrations.push(made);
            key
        }
    };
    Ok(Local {
        address: start.addr() as u64,
        length: length(bytes.len()),
        key,
    })
}
