//! The client of one authentication: a mechanism, in SPNEGO or without it. RFC 4178, [MS-SPNG] 3.1

use wire::spnego::{MechList, NegState, NegTokenInit, NegTokenResp, Oid, Token};
use zeroize::Zeroizing;

use crate::login::{Entropy, FileTime};
use crate::mechanism::{
    InitiatorContext, InitiatorError, InitiatorMechanism, InitiatorProgress, Integrity,
};
use crate::ntlm::initiator::{Credentials, NtlmInitiator};

/// Whether an [`Initiator`] wraps the tokens of its mechanism in SPNEGO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// SPNEGO tokens carry the tokens of the mechanism.
    Spnego,
    /// The client sends the tokens of the mechanism without SPNEGO around them.
    Raw,
}

/// The client's state for one authentication, with NTLM or another mechanism. The caller sends the
/// token of [`start`](Self::start), then passes each token of the server to [`step`](Self::step)
/// until it returns [`InitiatorStep::Done`] or an error.
pub struct Initiator {
    mechanism: Box<dyn InitiatorMechanism>,
    framing: Framing,
    mech_list: Vec<u8>,
    state: State,
}

enum State {
    /// The list of mechanisms is sent; the server has not yet selected the mechanism.
    Offered,
    /// The mechanism exchanges tokens.
    Exchanging,
    /// The mechanism has its keys; the server's last token is missing.
    Established {
        session_key: Option<Zeroizing<[u8; 16]>>,
        integrity: Option<Box<dyn Integrity>>,
    },
    Finished,
}

/// The result of [`Initiator::step`] for one security token of the server: a token that the client
/// sends back, or success with the session key.
#[derive(Debug)]
pub enum InitiatorStep {
    /// The authentication needs another exchange. The client sends this security token and waits
    /// for the server's next token.
    Continue(Vec<u8>),
    /// The authentication succeeded. The value is the 16-byte Session.SessionKey. `None` for an
    /// anonymous client: a key from public constants would protect nothing.
    Done(Option<Zeroizing<[u8; 16]>>),
}

impl Initiator {
    /// Creates an authentication with NTLM as the only mechanism. `framing` selects SPNEGO tokens
    /// or raw NTLM messages.
    ///
    /// `target_name` is the service principal name of the server ("cifs/server"). The client sends
    /// it, and the server may check it.
    pub fn new(credentials: Credentials, target_name: &str, framing: Framing) -> Self {
        let mechanism = NtlmInitiator::new(credentials, target_name);
        Self::with_mechanism(Box::new(mechanism), framing)
    }

    /// Creates an authentication with the given mechanism as the only one. `framing` selects SPNEGO
    /// tokens or raw tokens of the mechanism.
    pub fn with_mechanism(mechanism: Box<dyn InitiatorMechanism>, framing: Framing) -> Self {
        let offer = [mechanism.oid()];
        Self::of(&offer, mechanism, framing)
    }

    /// Creates an authentication that offers the list `mechanisms` in SPNEGO, for tests. The client
    /// implements only NTLM, so the list must contain NTLM. When NTLM is not the first entry, the
    /// client sends its first NTLM message after the server has selected NTLM.
    ///
    /// `target_name` is the service principal name of the server ("cifs/server").
    pub fn offering(
        mechanisms: &[Oid<'_>],
        credentials: Credentials,
        target_name: &str,
        framing: Framing,
    ) -> Self {
        let mechanism = NtlmInitiator::new(credentials, target_name);
        Self::of(mechanisms, Box::new(mechanism), framing)
    }

    fn of(
        mechanisms: &[Oid<'_>],
        mechanism: Box<dyn InitiatorMechanism>,
        framing: Framing,
    ) -> Self {
        let is_first = framing == Framing::Raw || mechanisms.first() == Some(&mechanism.oid());
        Self {
            mechanism,
            framing,
            mech_list: MechList::encode(mechanisms),
            state: if is_first {
                State::Exchanging
            } else {
                State::Offered
            },
        }
    }

    /// Returns true if the next call of [`start`](Self::start) or [`step`](Self::step) may block
    /// the thread on a key distribution center or a file. A client with an event loop then makes
    /// that call on another thread.
    pub fn may_block(&self) -> bool {
        match self.state {
            State::Offered | State::Exchanging => self.mechanism.may_block(),
            State::Established { .. } | State::Finished => false,
        }
    }

    /// Creates the client's first security token, which the client sends in its first SESSION_SETUP
    /// request. `now` is the current time, `entropy` fresh random bytes.
    ///
    /// # Errors
    /// Fails when the mechanism cannot create a token for this server. NTLM does not fail here.
    pub fn start(&mut self, now: FileTime, entropy: &Entropy) -> Result<Vec<u8>, InitiatorError> {
        let first = match self.state {
            State::Exchanging => Some(self.advance(None, now, entropy)?.unwrap_or_default()),
            _ => None,
        };
        if self.framing == Framing::Raw {
            return Ok(first.unwrap_or_default());
        }
        Ok(NegTokenInit {
            mechanisms: MechList::decode(&self.mech_list).expect("encoded here"),
            mech_token: first.as_deref(),
            hint_name: None,
            mech_list_mic: None,
        }
        .encode())
    }

    /// Processes the server's next security token and returns the client's reply or the result.
    ///
    /// `now` is the current time; the client's NTLM response contains it unless the server sends a
    /// timestamp. The caller passes fresh random bytes as `entropy` in every call.
    ///
    /// # Errors
    /// Fails when the server rejects the client, or the server's token is malformed, lacks a
    /// required capability or has a wrong or missing mechListMIC. Every call after an error or
    /// [`InitiatorStep::Done`] fails.
    pub fn step(
        &mut self,
        token: &[u8],
        now: FileTime,
        entropy: &Entropy,
    ) -> Result<InitiatorStep, InitiatorError> {
        let token = self.unframe(token)?;
        match std::mem::replace(&mut self.state, State::Finished) {
            State::Offered => {
                let first = self.advance(None, now, entropy)?.unwrap_or_default();
                Ok(InitiatorStep::Continue(self.frame(first)))
            }
            State::Exchanging => {
                let inner = token.response_token.ok_or(InitiatorError::Malformed)?;
                match self.advance(Some(inner), now, entropy)? {
                    Some(next) => Ok(InitiatorStep::Continue(self.frame(next))),
                    // The server's token was the last one of both sides.
                    None => self.finish(&token),
                }
            }
            established @ State::Established { .. } => {
                self.state = established;
                self.finish(&token)
            }
            State::Finished => Err(InitiatorError::Malformed),
        }
    }

    /// Lets the mechanism process the server's token. Returns the client's next token, if the
    /// mechanism has one.
    fn advance(
        &mut self,
        token: Option<&[u8]>,
        now: FileTime,
        entropy: &Entropy,
    ) -> Result<Option<Vec<u8>>, InitiatorError> {
        match self.mechanism.step(token, now, entropy)? {
            InitiatorProgress::Continue(next) => {
                self.state = State::Exchanging;
                Ok(Some(next))
            }
            InitiatorProgress::Established(context) => {
                let InitiatorContext {
                    token,
                    session_key,
                    integrity,
                } = *context;
                self.state = State::Established {
                    session_key,
                    integrity,
                };
                Ok(token)
            }
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
        let own = self.mechanism.oid();
        let is_ours = token.mechanism.is_none_or(|chosen| chosen == own);
        if token.state == Some(NegState::REJECT) || !is_ours {
            return Err(InitiatorError::Rejected);
        }
        Ok(token)
    }

    /// The client's token as it is sent: the last one carries the mechListMIC.
    fn frame(&mut self, token: Vec<u8>) -> Vec<u8> {
        if self.framing == Framing::Raw {
            return token;
        }
        let mic = match &mut self.state {
            State::Established {
                integrity: Some(integrity),
                ..
            } => Some(integrity.sign(&self.mech_list)),
            _ => None,
        };
        NegTokenResp {
            state: Some(NegState::ACCEPT_INCOMPLETE),
            mechanism: None,
            response_token: Some(&token),
            mech_list_mic: mic.as_deref(),
        }
        .encode()
    }

    /// The 16-byte session key, available after the client's last token and before
    /// [`InitiatorStep::Done`]. The client verifies the signature of the server's last
    /// SESSION_SETUP response with a key that derives from it. `None` at any other time and for an
    /// anonymous client.
    pub fn session_key(&self) -> Option<Zeroizing<[u8; 16]>> {
        match &self.state {
            State::Established { session_key, .. } => session_key.clone(),
            _ => None,
        }
    }

    /// Processes the server's last token. A server that did not select the client's first mechanism
    /// must send a mechListMIC. RFC 4178, 5
    fn finish(&mut self, token: &NegTokenResp<'_>) -> Result<InitiatorStep, InitiatorError> {
        let State::Established {
            session_key,
            integrity,
        } = std::mem::replace(&mut self.state, State::Finished)
        else {
            return Err(InitiatorError::Malformed);
        };
        if self.framing == Framing::Spnego && token.state != Some(NegState::ACCEPT_COMPLETED) {
            return Err(InitiatorError::Rejected);
        }
        let offered = MechList::decode(&self.mech_list).expect("encoded here");
        let is_preferred = offered.iter().next() == Some(self.mechanism.oid());
        let is_proven = match (token.mech_list_mic, integrity) {
            (Some(mic), Some(mut integrity)) => integrity.verify(&self.mech_list, mic),
            (Some(_), None) => false,
            (None, _) => is_preferred || self.framing == Framing::Raw,
        };
        match is_proven || session_key.is_none() {
            true => Ok(InitiatorStep::Done(session_key)),
            false => Err(InitiatorError::MechListMicMismatch),
        }
    }
}
