//! The share of pipes: every command that comes on IPC$. \[MS-SMB2\] 3.3.5.9, 3.3.5.12, 3.3.5.13,
//! 3.3.5.15.10
//!
//! A pipe is an open that no file system knows of: what the client writes is taken as remote
//! procedure calls at once, and what they come to waits in the pipe until it is read. It has a
//! table of its own, so that what handles files never meets one. What a pipe is not for is refused
//! with the statuses of Samba.

mod calls;
mod control;
mod endpoint;
mod info;
mod instance;
mod open;
mod service;
mod state;
mod transfer;

use alloc::sync::Arc;
use alloc::vec::Vec;

use spin::Mutex;
use wire::{Command, FileId, Status, change_notify, close, flush, lock, query_directory};

use crate::account::{AccountQuery, KnownAccount};
use crate::server::Server;
use crate::server::context::{Context, Progress, RelatedOpen, Reply};
use crate::server::open::malformed;
use crate::time::Now;
use calls::{Called, Caller, Policies};
pub(crate) use instance::Pipe;
use service::Service;
use state::State;
pub(crate) use transfer::Step;

/// Starts a request of any command.
pub(crate) fn start(context: &mut Context<'_>, message: &[u8]) -> Result<Progress<Step>, Status> {
    match context.header.command {
        Command::CREATE => open::start(context, message),
        Command::READ => transfer::read(context, message),
        Command::WRITE => transfer::write(context, message),
        Command::IOCTL => control::start(context, message),
        Command::QUERY_INFO => info::query(context, message),
        Command::SET_INFO => info::set(context, message),
        Command::CLOSE => {
            let request = close::Request::decode(message).map_err(malformed)?;
            close(context, request.file_id)
        }
        Command::FLUSH => {
            // The pipe has already taken the written data.
            let request = flush::Request::decode(message).map_err(malformed)?;
            context.pipe(request.file_id)?;
            let reply = Reply::message(|out| flush::Response.encode(out));
            Ok(Progress::Done(reply))
        }
        Command::LOCK => {
            let request = lock::Request::decode(message).map_err(malformed)?;
            context.pipe(request.file_id)?;
            Err(Status::INVALID_HANDLE)
        }
        Command::QUERY_DIRECTORY => {
            let request = query_directory::Request::decode(message).map_err(malformed)?;
            context.pipe(request.file_id)?;
            Err(Status::NOT_SUPPORTED)
        }
        Command::CHANGE_NOTIFY => {
            let request = change_notify::Request::decode(message).map_err(malformed)?;
            context.pipe(request.file_id)?;
            Err(Status::INVALID_PARAMETER)
        }
        // No pipe has an oplock that could break.
        _ => Err(Status::INVALID_PARAMETER),
    }
}

/// Only the request that takes the pipe out of the table closes it. Waiting reads fail.
fn close(context: &mut Context<'_>, id: FileId) -> Result<Progress<Step>, Status> {
    let pipe = context.pipe(id)?;
    let taken = context.session.pipes.lock().remove(&pipe.id.volatile);
    let pipe = taken.ok_or(Status::FILE_CLOSED)?;
    context.post(pipe.end());
    let response = close::Response::default();
    let reply = Reply::message(|out| response.encode(out));
    Ok(Progress::Done(reply))
}

impl Context<'_> {
    /// The pipe that a request names. It becomes the open of the compound.
    /// \[MS-SMB2\] 3.3.5.2.7.2
    fn pipe(&mut self, id: FileId) -> Result<Arc<Pipe>, Status> {
        let id = match (id, *self.related_open) {
            (FileId::RELATED, RelatedOpen::Open(id)) => id,
            (FileId::RELATED, RelatedOpen::Failed(status)) => return Err(status),
            (id, _) => id,
        };
        let pipe = self.session.pipes.lock().get(&id.volatile).cloned();
        let pipe = pipe.filter(|pipe| pipe.id == id && pipe.tree == self.tree.id);
        let pipe = pipe.ok_or(Status::FILE_CLOSED)?;
        *self.related_open = RelatedOpen::Open(id);
        Ok(pipe)
    }
}

/// Runs a conversation with the RPC service on the pipe `pipe`, such as `srvsvc`, without a
/// connection; for fuzzers. Writes the byte strings of `writes` to the pipe in order, until the
/// pipe refuses one. Returns all RPC fragments that a client could read, in order; `None` if no
/// pipe has this name. `look_up` translates SIDs and names.
pub fn converse(
    server: &Server,
    now: Now,
    pipe: &str,
    writes: &[&[u8]],
    look_up: impl Fn(&AccountQuery) -> Vec<Option<KnownAccount>>,
) -> Option<Vec<Vec<u8>>> {
    let service = Service::named(pipe)?;
    let mut state = State::new(service, 1);
    let policies = Mutex::<Policies>::default();
    let caller = Caller {
        server,
        now,
        is_named: true,
    };
    let mut read = Vec::new();
    for bytes in writes {
        if state.write(bytes).is_err() {
            break;
        }
        loop {
            while let Some(call) = state.next_call() {
                let called = calls::call(service, &caller, &policies, call.opnum, &call.stub);
                let result = called.map(|called| match called {
                    Called::Done(stub) => stub,
                    Called::LookUp(query, lookup) => lookup.finish(look_up(&query)),
                });
                state.answer(&call, result);
            }
            let Some((bytes, _)) = state.read(usize::MAX) else {
                break;
            };
            read.push(bytes);
        }
    }
    Some(read)
}
