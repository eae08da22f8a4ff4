//! The client's side: NTLMv2, in SPNEGO or bare. RFC 4178, [MS-SPNG] 3.1

use std::fmt;

use wire::spnego::{MechList, NegState, NegTokenInit, NegTokenResp, Oid, Token};
use zeroize::Zeroizing;

use crate::mechanism::Integrity;
use crate::ntlm::initiator::{Credentials, Response, negotiate, respond};
use crate::ntlm::keys::{Key, NtlmIntegrity};
use crate::realm::{Entropy, FileTime};

/// What NTLM's messages travel in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// SPNEGO.
    Spnego,
    /// Nothing.
    Raw,
}

/// One authentication of a client, from the first token to the keys.
pub struct Initiator {
    credentials: Credentials,
    target_name: String,
    framing: Framing,
    mech_list: Vec<u8>,
    state: State,
}

enum State {
    /// The server has to choose NTLM first.
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

/// What to do after a token of the server.
#[derive(Debug)]
pub enum InitiatorStep {
    /// Send this.
    Continue(Vec<u8>),
    /// The server knows who we are; this is the session key. None when we are nobody: the one
    /// that both would come to then is known to all.
    Done(Option<Zeroizing<[u8; 16]>>),
}

/// Why a client gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitiatorError {
    /// The token is not what belongs here, or not well formed.
    Malformed,
    /// The server grants no Unicode, extended session security or target info.
    Downgrade,
    /// The server wants a mechanism that we did not offer, or refuses.
    Rejected,
    /// The mechListMIC is wrong: somebody changed the list of mechanisms.
    MechListMicMismatch,
}

impl Initiator {
    /// `target_name` is the service that is meant ("cifs/server"); the server may check it.
    pub fn new(credentials: Credentials, target_name: &str, framing: Framing) -> Self {
        Self::offering(&[Oid::NTLMSSP], credentials, target_name, framing)
    }

    /// Offers a list of mechanisms in SPNEGO. Only NTLM can follow; with another mechanism in
    /// front the server has to choose NTLM before the first message of it is sent.
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

    /// The first token.
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

    /// Takes the server's next token.
    ///
    /// # Errors
    /// When the server refuses, or what it sends cannot be trusted.
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

    /// The server's token as SPNEGO has it, whether it came in SPNEGO or not.
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

    /// The session key, before the server confirms it: its last response is signed with it.
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

    /// RFC 4178, 5: a server that did not get its client's first choice has to prove the list.
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
            Self::MechListMicMismatch => "the list of mechanisms was changed on its way",
        })
    }
}

impl std::error::Error for InitiatorError {}
