//! The client of one authentication: NTLMv2, in SPNEGO or without it. RFC 4178, [MS-SPNG] 3.1

use std::fmt;

use wire::spnego::{MechList, NegState, NegTokenInit, NegTokenResp, Oid, Token};
use zeroize::Zeroizing;

use crate::login::{Entropy, FileTime};
use crate::mechanism::Integrity;
use crate::ntlm::initiator::{Credentials, Response, negotiate, respond};
use crate::ntlm::keys::{Key, NtlmIntegrity};

/// The encapsulation of the NTLM messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// SPNEGO tokens carry the NTLM messages.
    Spnego,
    /// The NTLM messages are the tokens.
    Raw,
}

/// The client of one authentication, from its first token to the session key.
pub struct Initiator {
    credentials: Credentials,
    target_name: String,
    framing: Framing,
    mech_list: Vec<u8>,
    state: State,
}

enum State {
    /// The list of mechanisms is sent; the server has not yet selected NTLM.
    Offered,
    /// The NEGOTIATE is sent.
    Negotiated,
    /// The AUTHENTICATE is sent.
    Authenticated {
        key: Key,
        integrity: Box<NtlmIntegrity>,
    },
    Finished,
}

/// The result of [`Initiator::step`].
#[derive(Debug)]
pub enum InitiatorStep {
    /// The client sends this token and waits for the server's next token.
    Continue(Vec<u8>),
    /// The authentication succeeded; this is Session.SessionKey. `None` for an anonymous client:
    /// its key would derive from constants and protect nothing.
    Done(Option<Zeroizing<[u8; 16]>>),
}

/// Why a client aborts an authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitiatorError {
    /// The token is not well formed, or not valid in this state of the exchange.
    Malformed,
    /// The server does not grant Unicode, extended session security or target info.
    Downgrade,
    /// The server rejects the authentication, or selects a mechanism that the client did not offer.
    Rejected,
    /// The mechListMIC is wrong or missing: the list of mechanisms may have changed in transit.
    MechListMicMismatch,
}

impl Initiator {
    /// An authentication with NTLM as the only mechanism.
    ///
    /// `target_name` is the service principal name of the server ("cifs/server"), which the server
    /// may check.
    pub fn new(credentials: Credentials, target_name: &str, framing: Framing) -> Self {
        Self::offering(&[Oid::NTLMSSP], credentials, target_name, framing)
    }

    /// An authentication that offers a list of mechanisms in SPNEGO, for tests: the client
    /// implements NTLM only. When NTLM is not the first of the list, the client sends its first
    /// NTLM message after the server has selected NTLM.
    pub fn offering(
        mechanisms: &[Oid<'_>],
        credentials: Credentials,
        target_name: &str,
        framing: Framing,
    ) -> Self {
        let is_first = framing == Framing::Raw || mechanisms.first() == Some(&Oid::NTLMSSP);
        Self {
            credentials,
            target_name: target_name.into(),
            framing,
            mech_list: MechList::encode(mechanisms),
            state: if is_first {
                State::Negotiated
            } else {
                State::Offered
            },
        }
    }

    /// The client's first token.
    pub fn start(&self) -> Vec<u8> {
        let negotiate = negotiate();
        if self.framing == Framing::Raw {
            return negotiate;
        }
        let is_first = matches!(self.state, State::Negotiated);
        NegTokenInit {
            mechanisms: MechList::decode(&self.mech_list).expect("encoded here"),
            mech_token: is_first.then_some(&negotiate[..]),
            hint_name: None,
            mech_list_mic: None,
        }
        .encode()
    }

    /// Processes the server's next token.
    ///
    /// `now` is the timestamp of the response unless the server sends one. The caller passes fresh
    /// random bytes as `entropy` in every call.
    ///
    /// # Errors
    /// Fails when the server rejects the client, or its token is malformed or not trustworthy.
    pub fn step(
        &mut self,
        token: &[u8],
        now: FileTime,
        entropy: &Entropy,
    ) -> Result<InitiatorStep, InitiatorError> {
        let token = self.unframe(token)?;
        match std::mem::replace(&mut self.state, State::Finished) {
            State::Offered => {
                self.state = State::Negotiated;
                Ok(InitiatorStep::Continue(frame(&negotiate(), None)))
            }
            State::Negotiated => {
                let challenge = token.response_token.ok_or(InitiatorError::Malformed)?;
                let response = respond(
                    &self.credentials,
                    &self.target_name,
                    challenge,
                    now,
                    entropy,
                )?;
                Ok(InitiatorStep::Continue(self.authenticate(response)))
            }
            State::Authenticated { key, integrity } => self.finish(&token, &key, *integrity),
            State::Finished => Err(InitiatorError::Malformed),
        }
    }

    /// The server's token as a NegTokenResp, also when the server does not use SPNEGO.
    fn unframe<'a>(&self, token: &'a [u8]) -> Result<NegTokenResp<'a>, InitiatorError> {
        if self.framing == Framing::Raw {
            return Ok(NegTokenResp {
                response_token: Some(token),
                ..NegTokenResp::default()
            });
        }
        let Ok(Token::Response(token)) = Token::decode(token) else {
            return Err(InitiatorError::Malformed);
        };
        let is_ours = token.mechanism.is_none_or(|chosen| chosen == Oid::NTLMSSP);
        if token.state == Some(NegState::REJECT) || !is_ours {
            return Err(InitiatorError::Rejected);
        }
        Ok(token)
    }

    fn authenticate(&mut self, response: Response) -> Vec<u8> {
        let Response {
            authenticate,
            exported_session_key: key,
            mut integrity,
        } = response;
        let token = match self.framing {
            Framing::Raw => authenticate,
            Framing::Spnego => frame(&authenticate, Some(&integrity.sign(&self.mech_list))),
        };
        self.state = State::Authenticated {
            key,
            integrity: Box::new(integrity),
        };
        token
    }

    /// The session key after the client's last token and before [`InitiatorStep::Done`]: the
    /// server signs its last SESSION_SETUP response with it. `None` at any other time and for an
    /// anonymous client.
    pub fn session_key(&self) -> Option<Zeroizing<[u8; 16]>> {
        match &self.state {
            State::Authenticated { key, .. } => self.secret(key),
            _ => None,
        }
    }

    fn secret(&self, key: &Key) -> Option<Key> {
        match self.credentials {
            Credentials::Anonymous => None,
            Credentials::User { .. } => Some(key.clone()),
        }
    }

    /// Processes the server's last token. A server that did not select the client's first mechanism
    /// must send a mechListMIC. RFC 4178, 5
    fn finish(
        &self,
        token: &NegTokenResp<'_>,
        key: &Key,
        mut integrity: NtlmIntegrity,
    ) -> Result<InitiatorStep, InitiatorError> {
        if self.framing == Framing::Spnego && token.state != Some(NegState::ACCEPT_COMPLETED) {
            return Err(InitiatorError::Rejected);
        }
        let offered = MechList::decode(&self.mech_list).expect("encoded here");
        let is_preferred = offered.iter().next() == Some(Oid::NTLMSSP);
        let is_proven = match token.mech_list_mic {
            Some(mic) => integrity.verify(&self.mech_list, mic),
            None => is_preferred || self.framing == Framing::Raw,
        };
        match is_proven || matches!(self.credentials, Credentials::Anonymous) {
            true => Ok(InitiatorStep::Done(self.secret(key))),
            false => Err(InitiatorError::MechListMicMismatch),
        }
    }
}

fn frame(token: &[u8], mic: Option<&[u8]>) -> Vec<u8> {
    NegTokenResp {
        state: Some(NegState::ACCEPT_INCOMPLETE),
        mechanism: None,
        response_token: Some(token),
        mech_list_mic: mic,
    }
    .encode()
}

impl fmt::Display for InitiatorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "the server's token is malformed",
            Self::Downgrade => "the server grants no extended session security",
            Self::Rejected => "the server refuses to authenticate with NTLM",
            Self::MechListMicMismatch => {
                "the MIC of the list of mechanisms is missing or does not match"
            }
        })
    }
}

impl std::error::Error for InitiatorError {}
