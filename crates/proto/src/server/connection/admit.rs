//! The checks before a request runs: session, encryption, flags, signature, tree.
//! \[MS-SMB2\] 3.3.5.2.4 to 3.3.5.2.11
//!
//! The checks come in the order of Samba, which is that of Windows as its test suite knows it:
//! where several things are wrong with a request, the order says which status it gets.

use alloc::sync::Arc;

use crypto::{SigningKey, SigningNonce};
use wire::dialect::Dialect;
use wire::{Command, Flags, Header, SessionId, Status, TreeId};

use crate::server::connection::Connection;
use crate::server::connection::task::{Chain, Request, Task};
use crate::server::context::RelatedOpen;
use crate::server::session::{Rules, Session};
use crate::server::tree::TreeConnect;
use crate::time::Now;

impl Connection {
    /// Checks everything of a request but its tree, and finds its session if it has a valid one.
    pub(super) fn admit(
        &self,
        now: Now,
        task: &mut Task,
        request: &mut Request,
        message: &[u8],
    ) -> Result<(), Status> {
        let header = &request.header;
        let is_related = header.flags.contains(Flags::RELATED_OPERATIONS);
        let found = self.find_rules(session_id(header, &mut task.chain));
        let rules = found.as_ref().map(|(_, rules)| *rules);
        request.session = found.map(|(session, _)| session);
        task.chain.session = request.session.as_ref().map(|session| session.id);
        if let (Some(session), Some(rules)) = (&request.session, &rules) {
            // A login again may come unencrypted, with a signature: [MS-SMB2] 3.3.5.2.9.
            let is_login = header.command == Command::SESSION_SETUP;
            let must_encrypt = !is_login && self.must_encrypt(rules.encrypt);
            check_encryption(session, must_encrypt, task)?;
        }
        check_command(header.command)?;
        check_flags(header, self.dialect())?;
        if is_related && rules.is_none() {
            return Err(Status::INVALID_PARAMETER);
        }
        if task.encrypted_by.is_none() {
            self.check_signature(request, rules.as_ref(), message)?;
        }
        // One that opens a file itself depends on none. [MS-SMB2] 3.3.5.2.7.2
        let has_open = request.header.command != Command::CREATE;
        if let (true, true, RelatedOpen::Failed(status)) = (is_related, has_open, task.chain.open) {
            return Err(status);
        }
        match rules {
            Some(rules) => check_expiry(&rules, request.header.command, now),
            None => Ok(()),
        }
    }

    /// The session that a command cannot do without.
    pub(in crate::server) fn require_session(request: &Request) -> Result<Arc<Session>, Status> {
        request.session.clone().ok_or(Status::USER_SESSION_DELETED)
    }

    /// The tree that a request names. \[MS-SMB2\] 3.3.5.2.11
    pub(in crate::server) fn require_tree(
        &self,
        task: &mut Task,
        request: &mut Request,
        session: &Arc<Session>,
    ) -> Result<Arc<TreeConnect>, Status> {
        let named = tree_id(&request.header, &mut task.chain);
        let tree = named.and_then(|id| session.trees.lock().get(&id).cloned());
        let tree = tree.ok_or(Status::NETWORK_NAME_DELETED)?;
        task.chain.tree = Some(tree.id);
        request.share = Some(tree.share.id);
        if self.must_encrypt(tree.share.encryption_required) && task.encrypted_by.is_none() {
            task.encrypt_for = Some(session.clone());
            return Err(Status::ACCESS_DENIED);
        }
        Ok(tree)
    }

    /// The dialect. Everything that asks comes after NEGOTIATE or is one.
    pub(in crate::server) fn dialect(&self) -> Dialect {
        self.negotiated
            .as_ref()
            .map_or(Dialect::SMB_2_0_2, |negotiated| negotiated.dialect)
    }

    /// \[MS-SMB2\] 3.3.5.2.4: a signed request, and any request of a session that requires it, has
    /// a valid signature. Its answer is signed, even if it says that the signature is wrong.
    fn check_signature(
        &self,
        request: &mut Request,
        rules: Option<&Rules>,
        message: &[u8],
    ) -> Result<(), Status> {
        let header = &request.header;
        let is_signed = header.flags.contains(Flags::SIGNED);
        let (Some(session), Some(rules)) = (&request.session, rules) else {
            return match (is_signed, header.command) {
                (false, _) => Ok(()),
                (true, Command::NEGOTIATE) => Err(Status::INVALID_PARAMETER),
                // The legs of a first login cannot be signed: no key exists yet.
                (true, Command::SESSION_SETUP) => Ok(()),
                (true, _) => Err(Status::USER_SESSION_DELETED),
            };
        };
        // Of a session that is encrypted, only a login comes unencrypted: signed. Samba's client
        // signs it, and expects the signature of the answer.
        if !is_signed && !rules.signing_required && !self.must_encrypt(rules.encrypt) {
            return Ok(());
        }
        let key = session.signing_key(self.id).ok_or(Status::ACCESS_DENIED)?;
        request.sign = Some(key.clone());
        if is_signed && is_signed_with(&key, header, message) {
            Ok(())
        } else {
            Err(Status::ACCESS_DENIED)
        }
    }
}

/// Whether a request bears the signature of a key. \[MS-SMB2\] 3.1.5.1
pub(super) fn is_signed_with(key: &SigningKey, header: &Header, message: &[u8]) -> bool {
    let nonce = SigningNonce {
        message_id: header.message_id.0,
        from_server: false,
        is_cancel: header.command == Command::CANCEL,
    };
    key.verify(nonce, &[message], &header.signature)
}

/// The session that a request means. \[MS-SMB2\] 3.3.5.2.7.2
fn session_id(header: &Header, chain: &mut Chain) -> SessionId {
    let handed_down = chain.session.take();
    if header.flags.contains(Flags::RELATED_OPERATIONS) {
        handed_down.unwrap_or_default()
    } else {
        chain.open = RelatedOpen::None;
        header.session_id
    }
}

/// The tree that a request means. \[MS-SMB2\] 3.3.5.2.7.2
fn tree_id(header: &Header, chain: &mut Chain) -> Option<TreeId> {
    let handed_down = chain.tree.take();
    if header.flags.contains(Flags::RELATED_OPERATIONS) {
        handed_down
    } else {
        header.tree_id()
    }
}

/// Checks that a request is encrypted if it must be, and by its own session. Samba requires that
/// session too; Windows accepts the encryption of any session of the connection.
/// \[MS-SMB2\] 3.3.5.2.9
fn check_encryption(
    session: &Arc<Session>,
    must_encrypt: bool,
    task: &mut Task,
) -> Result<(), Status> {
    match task.encrypted_by {
        Some(encrypting) if encrypting != session.id => Err(Status::ACCESS_DENIED),
        Some(_) => Ok(()),
        None if must_encrypt => {
            task.encrypt_for = Some(session.clone());
            Err(Status::ACCESS_DENIED)
        }
        None => Ok(()),
    }
}

/// Samba and Windows answer a command that they do not know.
fn check_command(command: Command) -> Result<(), Status> {
    if command.0 <= Command::OPLOCK_BREAK.0 {
        Ok(())
    } else {
        Err(Status::INVALID_PARAMETER)
    }
}

fn check_flags(header: &Header, dialect: Dialect) -> Result<(), Status> {
    let mut allowed = Flags::RELATED_OPERATIONS | Flags::SIGNED | Flags::DFS_OPERATIONS;
    if header.command == Command::CANCEL {
        allowed |= Flags::ASYNC_COMMAND;
    }
    if dialect >= Dialect::SMB_3_0 {
        allowed |= Flags::REPLAY_OPERATION;
    }
    if dialect >= Dialect::SMB_3_1_1 || header.command == Command::NEGOTIATE {
        allowed |= Flags::PRIORITY_MASK;
    }
    if header.flags.without(allowed).is_empty() {
        Ok(())
    } else {
        Err(Status::INVALID_PARAMETER)
    }
}

/// \[MS-SMB2\] 3.3.5.2.9: when the login has run out, only what renews it and what ends things goes
/// on; CANCEL and ECHO too, as Windows does (smb2.session.expire2).
fn check_expiry(rules: &Rules, command: Command, now: Now) -> Result<(), Status> {
    let is_always_allowed = matches!(
        command,
        Command::SESSION_SETUP
            | Command::LOGOFF
            | Command::CLOSE
            | Command::LOCK
            | Command::CANCEL
            | Command::ECHO
    );
    if is_always_allowed || rules.expires.is_none_or(|expires| now.instant < expires) {
        Ok(())
    } else {
        Err(Status::NETWORK_SESSION_EXPIRED)
    }
}
