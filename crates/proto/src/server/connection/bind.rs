//! SESSION_SETUP that binds a further connection to a session. \[MS-SMB2\] 3.3.5.5.2
//!
//! The client proves twice that the session is its own: it signs with the key of the session, and
//! it logs in once more as the same user. The login gives the connection a separate signing key;
//! the encryption keys of the session do not change.

use alloc::sync::Arc;

use crypto::derive::channel_signing_key;
use crypto::{SigningAlgorithm, SigningKey};
use wire::dialect::Dialect;
use wire::{Flags, SessionId, Status};

use crate::login::Accepted;
use crate::server::channel::Channel;
use crate::server::connection::Connection;
use crate::server::connection::admit::is_signed_with;
use crate::server::connection::task::Request;
use crate::server::ledger::Resource;
use crate::server::negotiated::Negotiated;
use crate::server::session::{Origin, Session};
use crate::server::session_setup::{is_of_same_user, key_schedule, short_key};
use crate::time::Now;

impl Connection {
    /// The session that a leg of a binding means, if this connection may carry it. If the signature
    /// of the request is valid, the answer is signed with the key of the session, be it a success
    /// or an error: the client knows no other key yet. AES-GMAC signs it only with an unused nonce.
    ///
    /// The checks come in the order of Samba, which is that of Windows as smbtorture
    /// smb2.session.bind_negative_* knows it. As on Windows, and other than on Samba, the
    /// ClientGuid may be another (smb2.session.bind_negative_smb3signCtoHd): it proves nothing.
    pub(in crate::server) fn bindable(
        &self,
        now: Now,
        request: &mut Request,
        message: &[u8],
    ) -> Result<Arc<Session>, Status> {
        let header = &request.header;
        if header.session_id == SessionId(0) {
            return Err(Status::INVALID_PARAMETER);
        }
        let found = self.server.sessions.lock().get(header.session_id).cloned();
        let session = found.ok_or(Status::USER_SESSION_DELETED)?;
        let rules = session.rules().ok_or(Status::USER_SESSION_DELETED)?;
        let is_signed = header.flags.contains(Flags::SIGNED);
        let key = session.origin.signing_key.clone();
        let is_bound = self.sessions.contains_key(&session.id);
        let is_verified = key
            .as_ref()
            .is_some_and(|key| is_signed && is_signed_with(key, header, message));
        let policy = self.config.gmac_channels;
        if !session.origin.may_bind(policy) {
            return Err(Status::REQUEST_NOT_ACCEPTED);
        }
        if is_verified && !is_bound {
            request.sign.clone_from(&key);
        }
        let negotiated = self.negotiated.as_ref().expect("NEGOTIATE came first");
        check_signing_algorithm(negotiated, &session.origin)?;
        if negotiated.dialect < Dialect::SMB_3_0 || !self.config.multichannel {
            return Err(Status::REQUEST_NOT_ACCEPTED);
        }
        let is_alike = negotiated.dialect == session.origin.dialect
            && negotiated.cipher == session.origin.cipher;
        if !is_signed || !is_alike {
            return Err(Status::INVALID_PARAMETER);
        }
        if is_bound {
            return Err(Status::REQUEST_NOT_ACCEPTED);
        }
        // Guest and anonymous sessions have no keys.
        if key.is_none() {
            return Err(Status::NOT_SUPPORTED);
        }
        if !is_verified {
            return Err(Status::ACCESS_DENIED);
        }
        if rules.expires.is_some_and(|expires| expires <= now.instant) {
            return Err(Status::NETWORK_SESSION_EXPIRED);
        }
        let limit = self.config.limits.channels_per_session;
        if !session.channels.has_room(limit) {
            return Err(Status::INSUFFICIENT_RESOURCES);
        }
        Ok(session)
    }

    /// The login of a binding succeeded: from now on the connection carries the session. The last
    /// answer is signed with the key of the new channel. \[MS-SMB2\] 3.3.5.5.3
    pub(in crate::server) fn bind(
        &mut self,
        request: &mut Request,
        session: &Arc<Session>,
        preauth: &crypto::PreauthHash,
        accepted: &Accepted,
    ) -> Result<(), Status> {
        // Windows and Samba say so, where [MS-SMB2] 3.3.5.5.3 has NOT_SUPPORTED.
        if !is_of_same_user(session, accepted) {
            return Err(Status::ACCESS_DENIED);
        }
        let negotiated = self.negotiated.as_ref().expect("NEGOTIATE came first");
        let schedule = key_schedule(negotiated.dialect, preauth);
        let key = channel_signing_key(schedule, &short_key(&accepted.session_key));
        let key = Arc::new(SigningKey::new(negotiated.signing, &key));
        let charge = session.user.charge(Resource::Connections, 1)?;
        let limit = self.config.limits.channels_per_session;
        let channel = Channel::new(Some(key.clone()));
        session.channels.bind(self.id, channel, limit)?;
        self.sessions.insert(session.id, session.clone());
        self.charges.insert(session.id, charge);
        self.logins.deadline = None;
        request.sign = Some(key);
        Ok(())
    }
}

/// GMAC is for all channels of a session or for none. smbtorture
/// smb2.session.bind_negative_smb3signGtoCs and signCtoGs
fn check_signing_algorithm(negotiated: &Negotiated, origin: &Origin) -> Result<(), Status> {
    let is_gmac = |algorithm| algorithm == SigningAlgorithm::AesGmac;
    match (is_gmac(origin.signing), is_gmac(negotiated.signing)) {
        (true, false) => Err(Status::REQUEST_OUT_OF_SEQUENCE),
        (false, true) => Err(Status::NOT_SUPPORTED),
        _ => Ok(()),
    }
}
