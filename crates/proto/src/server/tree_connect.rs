//! TREE_CONNECT: a session enters a share. \[MS-SMB2\] 3.3.1.9, 3.3.5.7
//!
//! The root directory of a share may be missing, such as the mount point of a disk that is not
//! plugged in. So each TREE_CONNECT to a disk share waits until the file system has found it.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use wire::access::AccessMask;
use wire::dialect::Dialect;
use wire::header::Target;
use wire::tree_connect::{Request, Response, ShareCapabilities, ShareFlags, ShareType};
use wire::upcase::is_same_name;
use wire::{Status, TreeId};

use crate::audit::{Action, Operation};
use crate::effect::{Effect, Effects, Outcome};
use crate::file::FileOp;
use crate::login::Account;
use crate::report::{Report, ShareRefusal};
use crate::server::audit::{self, Draft};
use crate::server::config::{Share, ShareKind};
use crate::server::connection::Connection;
use crate::server::connection::task::{self, Flow, Task, Then};
use crate::server::context::Reply;
use crate::server::session::{Session, SessionState};
use crate::server::tree::TreeConnect;
use crate::violation::Violation;

/// Everything that a file knows of. \[MS-DTYP\] 2.4.3, FILE_ALL_ACCESS
const FULL_ACCESS: AccessMask = AccessMask(0x001F_01FF);
/// Read, list, execute. \[MS-DTYP\] 2.4.3, FILE_GENERIC_READ and FILE_GENERIC_EXECUTE
const READ_ACCESS: AccessMask = AccessMask(0x0012_00A9);

impl Connection {
    /// Starts to enter a share.
    pub(super) fn tree_connect(
        &mut self,
        task: &mut Task,
        request: &mut task::Request,
        message: &[u8],
        effects: &mut Effects,
    ) -> Result<Flow, Status> {
        let session = Self::require_session(request)?;
        let connect = Request::decode(message).map_err(|_| Status::INVALID_PARAMETER)?;
        // [MS-SMB2] 3.3.5.7: an attacker in the network must not choose the share.
        let is_guarded = task.encrypted_by.is_some() || request.sign.is_some();
        let has_keys = session.signing_key(self.id).is_some();
        if self.dialect() >= Dialect::SMB_3_1_1 && has_keys && !is_guarded {
            return Ok(Flow::End(Violation::NotSigned(session.id)));
        }
        let path = connect.path.decode().ok_or(Status::BAD_NETWORK_NAME)?;
        let share = self.find_share(&session, share_name(&path), effects)?;
        request.share = Some(share.id);
        if share.audit.selection().has_any(Operation::Connect) {
            let action = Action::Connect { refusal: None };
            request.audit = Some(Draft::new(&session, &share, action));
        }
        if let Err(refusal) = self.check_entry(&share, &session) {
            let account = session.state.lock().account.clone();
            let report = Report::ShareRefused(account, share.name.clone(), refusal);
            effects.push(Effect::Report(Box::new(report)));
            let draft = request.audit.iter_mut();
            draft.for_each(|draft| draft.refuse(refusal));
            return Err(Status::ACCESS_DENIED);
        }
        if share.kind == ShareKind::Pipe {
            return self.finish_tree_connect(task, request, &session, share);
        }
        let token = share.force_token.clone();
        let token = token.unwrap_or_else(|| session.state.lock().account.token.clone());
        let op = self.allocate_op();
        let find = FileOp::FindRoot {
            share: share.id,
            token,
        };
        effects.push(Effect::File(op, find));
        Ok(Flow::Wait(op, Then::TreeConnect(session, share)))
    }

    /// Continues when the file system has looked for the root directory.
    pub(super) fn resume_tree_connect(
        &mut self,
        task: &mut Task,
        request: &mut task::Request,
        (session, share): (&Session, Arc<Share>),
        outcome: Outcome,
    ) -> Result<Flow, Status> {
        outcome.expect_file()?;
        self.finish_tree_connect(task, request, session, share)
    }

    fn finish_tree_connect(
        &mut self,
        task: &mut Task,
        request: &mut task::Request,
        session: &Session,
        share: Arc<Share>,
    ) -> Result<Flow, Status> {
        let tree = self.enter(session, share)?;
        if let Target::Sync { tree_id, .. } = &mut request.header.target {
            *tree_id = tree.id;
        }
        task.chain.tree = Some(tree.id);
        let encrypt = tree.share.encryption_required || session.state.lock().encrypt;
        Ok(Flow::Done(reply(&tree, self.must_encrypt(encrypt))))
    }

    fn find_share(
        &self,
        session: &Session,
        name: &str,
        effects: &mut Effects,
    ) -> Result<Arc<Share>, Status> {
        let found = self.server.find_share(name);
        if found.is_none() && self.server.settings().audit {
            audit::unknown_share(session, name, effects);
        }
        found.ok_or(Status::BAD_NETWORK_NAME)
    }

    /// Whether the user of the session may enter the share.
    fn check_entry(&self, share: &Share, session: &Session) -> Result<(), ShareRefusal> {
        let state = session.state.lock();
        if self.must_encrypt(share.encryption_required) && state.encryption_keys.is_none() {
            return Err(ShareRefusal::CannotEncrypt);
        }
        if !share.hosts.admit(self.peer) {
            return Err(ShareRefusal::Host);
        }
        if !state.is_named() {
            return match share.guest {
                true => Ok(()),
                false => Err(ShareRefusal::NoGuests),
            };
        }
        let account = &state.account;
        if !is_of_app_password(share, account) {
            return Err(ShareRefusal::AppPassword);
        }
        share.users.admit(account)
    }

    fn enter(&self, session: &Session, share: Arc<Share>) -> Result<Arc<TreeConnect>, Status> {
        let is_read_only = is_reader(&share, &session.state.lock());
        let mut trees = session.trees.lock();
        if trees.len() >= self.config.limits.trees_per_session {
            return Err(Status::INSUFFICIENT_RESOURCES);
        }
        let is_usable =
            |id: &TreeId| *id != TreeId(0) && *id != TreeId::RELATED && !trees.contains_key(id);
        let id = core::iter::repeat_with(|| session.next_tree.fetch_add(1, Ordering::Relaxed))
            .map(TreeId)
            .find(is_usable)
            .expect("there are more ids than trees");
        let maximal_access = if is_read_only {
            READ_ACCESS
        } else {
            FULL_ACCESS
        };
        let tree = Arc::new(TreeConnect {
            id,
            share,
            maximal_access,
            is_read_only,
        });
        trees.insert(id, tree.clone());
        // The end of a session closes it first and clears its trees after that. So this check or
        // that removal sees a tree that was entered meanwhile.
        if session.state.lock().is_closed {
            trees.remove(&id);
            return Err(Status::USER_SESSION_DELETED);
        }
        // A change of the configuration replaces the shares first and ends the trees after that.
        if !self.server.has_share(&tree.share) {
            trees.remove(&id);
            return Err(Status::BAD_NETWORK_NAME);
        }
        Ok(tree)
    }
}

/// Whether the password of the login admits to the share. IPC$ belongs to every login.
fn is_of_app_password(share: &Share, account: &Account) -> bool {
    let Some(password) = &account.app_password else {
        return true;
    };
    let mut shares = password.shares.iter();
    password.shares.is_empty()
        || share.kind == ShareKind::Pipe
        || shares.any(|name| is_same_name(name, &share.name))
}

/// Whether the user only reads in the share.
fn is_reader(share: &Share, state: &SessionState) -> bool {
    let account = &state.account;
    let password = account.app_password.as_ref();
    match share.kind {
        ShareKind::Pipe => false,
        ShareKind::Disk if !state.is_named() => share.read_only,
        ShareKind::Disk => {
            password.is_some_and(|password| password.read_only)
                || share.users.is_reader(account, share.read_only)
        }
    }
}

/// The last part of `\\server\share`; a name alone is taken too, as Samba does.
fn share_name(path: &str) -> &str {
    let Some(unc) = path.strip_prefix("\\\\") else {
        return path;
    };
    match unc.split_once('\\') {
        Some((_server, share)) => share,
        None => path,
    }
}

fn reply(tree: &TreeConnect, must_encrypt: bool) -> Reply {
    let mut share_flags = ShareFlags::NONE;
    if must_encrypt {
        share_flags |= ShareFlags::ENCRYPT_DATA;
    }
    if tree.share.access_based_enumeration {
        share_flags |= ShareFlags::ACCESS_BASED_DIRECTORY_ENUM;
    }
    let response = Response {
        share_type: match tree.share.kind {
            ShareKind::Disk => ShareType::DISK,
            ShareKind::Pipe => ShareType::PIPE,
        },
        share_flags,
        capabilities: ShareCapabilities::NONE,
        maximal_access: tree.maximal_access,
    };
    Reply::message(|body| response.encode(body))
}
