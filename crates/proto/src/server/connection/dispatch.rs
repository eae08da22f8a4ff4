//! Which file serves which command.

use alloc::sync::Arc;

use wire::{Command, Status};

use crate::effect::{Access, Effects};
use crate::server::config::ShareKind;
use crate::server::connection::Connection;
use crate::server::connection::task::{Flow, Part, Request, Task};
use crate::server::context::{Context, Progress};
use crate::server::ioctl::validate_negotiate;
use crate::server::session::Session;
use crate::server::step::Step;
use crate::server::tree::TreeConnect;
use crate::server::{
    change_notify, close, create, echo, flush, ioctl, lock, oplock_break, pipe, query_directory,
    query_info, read, set_info, write,
};
use crate::time::Now;

impl Connection {
    /// Serves a member of a frame.
    pub(super) fn serve(
        &mut self,
        now: Now,
        task: &mut Task,
        request: &mut Request,
        part: Part<'_>,
        effects: &mut Effects,
    ) -> Result<Flow, Status> {
        let admitted = self.admit(now, task, request, part.message);
        if request.header.command == Command::CANCEL {
            // A CANCEL has no answer, not even an error. [MS-SMB2] 3.3.5.16
            if admitted.is_ok() {
                self.cancel(now, request, effects);
            }
            return Ok(Flow::Silence);
        }
        admitted?;
        let message = part.message;
        match request.header.command {
            Command::NEGOTIATE => self.negotiate(now, message),
            Command::SESSION_SETUP => self.session_setup(now, task, request, message, effects),
            Command::LOGOFF => self.logoff(now, task, request, message, effects),
            Command::TREE_CONNECT => self.tree_connect(task, request, message, effects),
            Command::TREE_DISCONNECT => self.tree_disconnect(task, request, message, effects),
            Command::ECHO => echo::serve(message).map(Flow::Done),
            Command::IOCTL if validate_negotiate::is_about_connection(message) => {
                self.connection_ioctl(message)
            }
            _ => self.serve_in_tree(now, task, request, part, effects),
        }
    }

    /// Serves a command that acts on a tree.
    fn serve_in_tree(
        &mut self,
        now: Now,
        task: &mut Task,
        request: &mut Request,
        part: Part<'_>,
        effects: &mut Effects,
    ) -> Result<Flow, Status> {
        let session = Self::require_session(request)?;
        let tree = self.require_tree(task, request, &session)?;
        let place = (session.clone(), tree.clone());
        let mut context = self.context(now, task, request, place, part.frame_offset, effects);
        context.is_last = part.is_last;
        if !part.is_last {
            // A later member may fail because it is not encrypted: then all answers are encrypted.
            context.access = Access::InMemory;
        }
        let progress = serve_command(&mut context, part.message)?;
        Ok(Flow::of(progress, session, tree))
    }

    /// The input of a handler.
    pub(super) fn context<'a>(
        &'a mut self,
        now: Now,
        task: &'a mut Task,
        request: &'a mut Request,
        (session, tree): (Arc<Session>, Arc<TreeConnect>),
        frame_offset: Option<usize>,
        effects: &'a mut Effects,
    ) -> Context<'a> {
        let (dialect, has_large_mtu) = (self.dialect(), self.has_large_mtu());
        let has_multichannel = self.has_multichannel();
        let has_posix = self.has_posix();
        let (lock_waits, op_ids) = self.waits.for_handler();
        let is_guarded = request.sign.is_some() || task.encrypt_for.is_some();
        Context {
            now,
            connection: self.id,
            dialect,
            header: request.header,
            session,
            tree,
            has_large_mtu,
            carrier: self.carrier,
            access: if is_guarded {
                Access::InMemory
            } else {
                Access::Opaque
            },
            is_encrypted: task.encrypted_by.is_some(),
            is_last: true,
            response_bytes: task.response_bytes(),
            is_cancelled: request.is_cancelled,
            is_lost: self.is_over,
            outstanding: &mut request.outstanding,
            invalidate: &mut request.invalidate,
            transferred: &mut request.transferred,
            audit: &mut request.audit,
            frame_offset,
            related_open: &mut task.chain.open,
            has_multichannel,
            has_posix,
            lock_waits,
            server: &self.server,
            config: &self.config,
            op_ids,
            effects,
        }
    }
}

/// Calls the handler of a command that acts on a tree.
fn serve_command(context: &mut Context<'_>, message: &[u8]) -> Result<Progress<Step>, Status> {
    match context.header.command {
        _ if context.tree.share.kind == ShareKind::Pipe => {
            pipe::start(context, message).map(Progress::widen)
        }
        Command::CREATE => create::start(context, message).map(Progress::widen),
        Command::CLOSE => close::start(context, message).map(Progress::widen),
        Command::FLUSH => flush::start(context, message).map(Progress::widen),
        Command::READ => read::start(context, message).map(Progress::widen),
        Command::WRITE => write::start(context, message).map(Progress::widen),
        Command::LOCK => lock::start(context, message).map(Progress::widen),
        Command::IOCTL => ioctl::start(context, message).map(Progress::widen),
        Command::QUERY_DIRECTORY => query_directory::start(context, message).map(Progress::widen),
        Command::CHANGE_NOTIFY => change_notify::start(context, message).map(Progress::widen),
        Command::QUERY_INFO => query_info::start(context, message).map(Progress::widen),
        Command::SET_INFO => set_info::start(context, message).map(Progress::widen),
        Command::OPLOCK_BREAK => oplock_break::start(context, message).map(Progress::widen),
        _ => Err(Status::INVALID_PARAMETER),
    }
}
