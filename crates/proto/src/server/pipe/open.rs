//! CREATE on IPC$: a pipe is opened. \[MS-SMB2\] 3.3.5.9

use alloc::sync::Arc;

use wire::access::{FileAttributes, OplockLevel};
use wire::create::{CreateAction, Request, Response, ResponseFlags};
use wire::create_context::name;
use wire::{FileId, FileTime, Status};

use super::instance::Pipe;
use super::service::Service;
use super::transfer::Step;
use crate::server::context::{Context, Progress, RelatedOpen, Reply};
use crate::server::ledger::Resource;
use crate::server::open::malformed;

/// Pipes that one session has open at one time. Clients open one for each interface that they
/// call, and close it soon. Each may hold some 60 KiB: a few anonymous
/// sessions must not add up to much.
const MAX_PIPES: usize = 64;
/// AllocationSize of a pipe in bytes, as with Windows and Samba.
pub(super) const ALLOCATION: u64 = 4096;

/// Opens a pipe. As with Samba neither rights nor dispositions matter.
pub(super) fn start(context: &mut Context<'_>, message: &[u8]) -> Result<Progress<Step>, Status> {
    let request = Request::decode(message).map_err(malformed)?;
    let reconnects = [name::DURABLE_RECONNECT, name::DURABLE_RECONNECT_V2];
    let mut contexts = request.contexts.iter();
    if contexts.any(|context| reconnects.contains(&context.name)) {
        return Err(Status::OBJECT_NAME_NOT_FOUND);
    }
    let path = request.name.decode().ok_or(Status::OBJECT_NAME_INVALID)?;
    let service = find(&path).ok_or(Status::OBJECT_NAME_NOT_FOUND)?;
    let pipe = Arc::new(make(context, service)?);
    register(context, &pipe)?;
    *context.related_open = RelatedOpen::Open(pipe.id);
    let response = describe(pipe.id);
    let reply = Reply::message(|out| response.encode(out));
    Ok(Progress::Done(reply))
}

/// The service behind `srvsvc`, `\srvsvc`, `\PIPE\srvsvc`, in any case: clients write all of these.
pub(super) fn find(path: &str) -> Option<Service> {
    let path = path.strip_prefix('\\').unwrap_or(path);
    let name = match path.split_once('\\') {
        Some((directory, name)) if directory.eq_ignore_ascii_case("pipe") => name,
        Some(_) => return None,
        None => path,
    };
    Service::named(name)
}

fn make(context: &Context<'_>, service: Service) -> Result<Pipe, Status> {
    let limit = context.config.limits.pipes_per_connection;
    let (pipes, user) = (&context.session.origin.quotas.pipes, &context.session.user);
    let place = pipes.add_for(limit, user, Resource::Pipes)?;
    let id = context.server.new_file_id();
    // Not 0, which asks for a group where a client says it.
    let group = u32::try_from(id.volatile % 0xFFFF_FFFF).expect("the rest is smaller") + 1;
    Ok(Pipe::new(place, id, context.tree.id, service, group))
}

/// Enters a pipe in its session's table. Fails where the session or tree ended meanwhile: the end
/// of either removes it from its table first.
fn register(context: &Context<'_>, pipe: &Arc<Pipe>) -> Result<(), Status> {
    let session = &context.session;
    let mut pipes = session.pipes.lock();
    if pipes.len() >= MAX_PIPES {
        return Err(Status::INSUFFICIENT_RESOURCES);
    }
    pipes.insert(pipe.id.volatile, pipe.clone());
    drop(pipes);
    let is_there = session.trees.lock().contains_key(&pipe.tree);
    if !is_there && session.pipes.lock().remove(&pipe.id.volatile).is_some() {
        return Err(Status::NETWORK_NAME_DELETED);
    }
    Ok(())
}

fn describe(file_id: FileId) -> Response<'static> {
    Response {
        oplock_level: OplockLevel::NONE,
        flags: ResponseFlags::NONE,
        create_action: CreateAction::OPENED,
        creation_time: FileTime(0),
        last_access_time: FileTime(0),
        last_write_time: FileTime(0),
        change_time: FileTime(0),
        allocation_size: ALLOCATION,
        end_of_file: 0,
        file_attributes: FileAttributes::NORMAL,
        file_id,
        contexts: alloc::vec::Vec::new(),
    }
}
