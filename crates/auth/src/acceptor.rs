//! The server of one authentication: SPNEGO, or NTLM without SPNEGO. RFC 4178, [MS-SPNG] 3.2

use std::sync::Arc;

use wire::ntlmssp;
use wire::spnego::{HINT_NAME, MechList, NegState, NegTokenInit, NegTokenResp, Oid, Token};
use zeroize::Zeroizing;

use crate::config::AcceptorConfig;
use crate::login::{Accepted, Claim, Entropy, FileTime, Refusal};
use crate::mechanism::{Established, Mechanism, Progress};
use crate::ntlm::acceptor::NtlmAcceptor;

/// Maximum length in bytes of a security token (one SPNEGO or NTLM message) that [`Acceptor::step`]
/// accepts: 65535, because the SecurityBufferLength of a SESSION_SETUP message has 16 bits.
/// [MS-SMB2] 2.2.5
pub const TOKEN_LEN_MAX: usize = 0xffff;

/// The server's state for one authentication of a client over SPNEGO, or over NTLM without SPNEGO.
/// The caller passes each security token of the client to [`step`](Self::step) until the
/// authentication succeeds or fails.
pub struct Acceptor {
    config: Arc<AcceptorConfig>,
    state: State,
}

/// The result of [`Acceptor::step`] for one security token of the client.
#[derive(Debug)]
pub enum Step {
    /// The authentication needs another exchange. The server sends this security token with
    /// STATUS_MORE_PROCESSING_REQUIRED and waits for the client's next token.
    Continue(Vec<u8>),
    /// The authentication succeeded. The value has the user, the keys, and the server's last
    /// security token.
    Done(Box<Accepted>),
    /// The authentication failed. The server delays its error response by a time that its
    /// configuration sets.
    Refused {
        /// The encoded SPNEGO rejection; `None` when the client does not use SPNEGO. An SMB2 error
        /// response cannot carry it.
        token: Option<Vec<u8>>,
        /// The reason, for the server's log only. The client must not learn it.
        reason: Refusal,
    },
}

enum State {
    Start,
    /// The client sends tokens of NTLM without SPNEGO.
    Raw(Box<dyn Mechanism>),
    Spnego(Spnego),
    Finished,
}

/// A SPNEGO negotiation after the choice of the mechanism.
struct Spnego {
    mechanism: Box<dyn Mechanism>,
    /// The client's MechTypeList, as encoded by the client.
    mech_list: Vec<u8>,
    /// Whether the client preferred another mechanism, so that its list requires a MIC.
    /// RFC 4178, 5
    requires_mic: bool,
}

/// Encodes the SPNEGO token of the SMB2 NEGOTIATE response. It lists NTLM as the server's only
/// mechanism; additional mechanisms of the server do not appear. [MS-SPNG] 3.2.5.2
pub fn server_hint() -> Vec<u8> {
    let mech_list = MechList::encode(&[Oid::NTLMSSP]);
    NegTokenInit {
        mechanisms: MechList::decode(&mech_list).expect("encoded here"),
        mech_token: None,
        hint_name: Some(HINT_NAME),
        mech_list_mic: None,
    }
    .encode()
}

impl Acceptor {
    /// Creates the state for the authentication of one client, before the client's first token.
    /// `config` has the accounts and the mechanisms of the server.
    pub fn new(config: Arc<AcceptorConfig>) -> Self {
        Self {
            config,
            state: State::Start,
        }
    }

    /// Returns true if [`step`](Self::step) with this token of the client may block the thread on a
    /// directory server, a key distribution center, or a file. A server with an event loop then
    /// calls `step` on another thread.
    pub fn may_block(&self, token: &[u8]) -> bool {
        match &self.state {
            State::Start => match Token::decode(token) {
                Ok(Token::Init(offer)) => match self.select(&offer) {
                    Some((is_preferred, mechanism)) => {
                        is_preferred && offer.mech_token.is_some() && mechanism.may_block()
                    }
                    None => false,
                },
                _ => false,
            },
            State::Raw(mechanism) => mechanism.may_block(),
            State::Spnego(spnego) => spnego.mechanism.may_block(),
            State::Finished => false,
        }
    }

    /// Returns the identity that this token of the client claims, before [`step`](Self::step) with
    /// the same token checks the proof. A server limits password guesses with it, and logs it.
    /// `None` when the token claims no identity or is malformed.
    pub fn claim(&self, token: &[u8]) -> Option<Claim> {
        if token.len() > TOKEN_LEN_MAX {
            return None;
        }
        match &self.state {
            State::Raw(mechanism) => mechanism.claim(token),
            State::Spnego(spnego) => match Token::decode(token) {
                Ok(Token::Response(token)) => spnego.mechanism.claim(token.response_token?),
                _ => None,
            },
            State::Start | State::Finished => None,
        }
    }

    /// Processes the client's next security token: an SPNEGO token, or an NTLM message without
    /// SPNEGO. A malformed token, a token longer than [`TOKEN_LEN_MAX`], and every token after
    /// [`Step::Done`] or [`Step::Refused`] give [`Step::Refused`].
    ///
    /// `now` is the current time; the server's NTLM challenge contains it. `entropy` is random: the
    /// caller passes fresh bytes in every call.
    pub fn step(&mut self, token: &[u8], now: FileTime, entropy: &Entropy) -> Step {
        let state = std::mem::replace(&mut self.state, State::Finished);
        if token.len() > TOKEN_LEN_MAX {
            return refuse(Refusal::Malformed);
        }
        match state {
            State::Start if token.starts_with(&ntlmssp::SIGNATURE) => {
                let mechanism = Box::new(NtlmAcceptor::new(Arc::clone(&self.config)));
                self.step_raw(mechanism, token, now, entropy)
            }
            State::Start => self.start_spnego(token, now, entropy),
            State::Raw(mechanism) => self.step_raw(mechanism, token, now, entropy),
            State::Spnego(spnego) => self.step_spnego(spnego, token, now, entropy),
            State::Finished => refuse(Refusal::Malformed),
        }
    }

    fn step_raw(
        &mut self,
        mut mechanism: Box<dyn Mechanism>,
        token: &[u8],
        now: FileTime,
        entropy: &Entropy,
    ) -> Step {
        match mechanism.step(token, now, entropy) {
            Progress::Continue(token) => {
                self.state = State::Raw(mechanism);
                Step::Continue(token)
            }
            Progress::Established(mut established) => {
                let token = established.token.take().unwrap_or_default();
                Step::Done(Box::new(accepted(*established, token)))
            }
            Progress::Refused(reason) => Step::Refused {
                token: None,
                reason,
            },
        }
    }

    /// Processes the client's NegTokenInit, which may carry the first token of the client's first
    /// mechanism. RFC 4178, 4.2.1
    fn start_spnego(&mut self, token: &[u8], now: FileTime, entropy: &Entropy) -> Step {
        let Ok(Token::Init(offer)) = Token::decode(token) else {
            return refuse(Refusal::Malformed);
        };
        let Some((is_preferred, mechanism)) = self.select(&offer) else {
            return refuse(Refusal::NoCommonMechanism);
        };
        let spnego = Spnego {
            mechanism,
            mech_list: offer.mechanisms.as_bytes().to_vec(),
            requires_mic: !is_preferred,
        };
        match offer.mech_token.filter(|_| is_preferred) {
            Some(token) => self.step_mechanism(spnego, token, None, true, (now, entropy)),
            None => self.choose(spnego),
        }
    }

    /// The first mechanism of the client's list that the server supports, and whether it is the
    /// client's preferred one.
    fn select(&self, offer: &NegTokenInit<'_>) -> Option<(bool, Box<dyn Mechanism>)> {
        let mut offered = offer.mechanisms.iter().enumerate();
        offered.find_map(|(rank, oid)| Some((rank == 0, self.mechanism(oid)?)))
    }

    /// The acceptor of the mechanism `oid`; `None` when the server does not support it.
    fn mechanism(&self, oid: Oid<'_>) -> Option<Box<dyn Mechanism>> {
        if oid == Oid::NTLMSSP {
            return Some(Box::new(NtlmAcceptor::new(Arc::clone(&self.config))));
        }
        let mut providers = self.config.mechanisms.iter();
        let provider = providers.find(|provider| provider.oid() == oid)?;
        Some(provider.start())
    }

    /// Selects the mechanism and waits for its first token.
    fn choose(&mut self, spnego: Spnego) -> Step {
        let state = match spnego.requires_mic {
            true => NegState::REQUEST_MIC,
            false => NegState::ACCEPT_INCOMPLETE,
        };
        let mechanism = Some(spnego.mechanism.oid());
        self.state = State::Spnego(spnego);
        Step::Continue(
            NegTokenResp {
                state: Some(state),
                mechanism,
                ..NegTokenResp::default()
            }
            .encode(),
        )
    }

    fn step_spnego(
        &mut self,
        spnego: Spnego,
        token: &[u8],
        now: FileTime,
        entropy: &Entropy,
    ) -> Step {
        let Ok(Token::Response(token)) = Token::decode(token) else {
            return refuse(Refusal::Malformed);
        };
        let Some(inner) = token.response_token else {
            return refuse(Refusal::Malformed);
        };
        self.step_mechanism(spnego, inner, token.mech_list_mic, false, (now, entropy))
    }

    fn step_mechanism(
        &mut self,
        mut spnego: Spnego,
        token: &[u8],
        mic: Option<&[u8]>,
        is_first: bool,
        (now, entropy): (FileTime, &Entropy),
    ) -> Step {
        match spnego.mechanism.step(token, now, entropy) {
            Progress::Continue(token) => {
                let reply = NegTokenResp {
                    state: Some(NegState::ACCEPT_INCOMPLETE),
                    mechanism: is_first.then(|| spnego.mechanism.oid()),
                    response_token: Some(&token),
                    mech_list_mic: None,
                };
                self.state = State::Spnego(spnego);
                Step::Continue(reply.encode())
            }
            Progress::Established(established) => complete(&spnego, *established, mic),
            Progress::Refused(reason) => refuse(reason),
        }
    }
}

/// Verifies the client's mechListMIC and creates the server's. RFC 4178, 5
fn complete(spnego: &Spnego, mut established: Established, mic: Option<&[u8]>) -> Step {
    let has_keys = established.user.kind.has_keys();
    let verified = match (&mut established.integrity, mic) {
        (Some(integrity), Some(mic)) => integrity.verify(&spnego.mech_list, mic),
        (_, None) => !spnego.requires_mic,
        (None, Some(_)) => false,
    };
    // Guests and anonymous users have no secret key, so a MIC protects nothing.
    if has_keys && !verified {
        return refuse(Refusal::MechListMicMismatch);
    }
    let integrity = established
        .integrity
        .as_mut()
        .filter(|_| verified && mic.is_some());
    let our_mic = integrity.map(|integrity| integrity.sign(&spnego.mech_list));
    let token = established.token.take();
    let reply = NegTokenResp {
        state: Some(NegState::ACCEPT_COMPLETED),
        mechanism: None,
        response_token: token.as_deref(),
        mech_list_mic: our_mic.as_deref(),
    };
    Step::Done(Box::new(accepted(established, reply.encode())))
}

fn accepted(established: Established, token: Vec<u8>) -> Accepted {
    let full_session_key = established.full_session_key;
    // A shorter key is padded with zeros. [MS-SMB2] 3.3.5.5.3
    let mut session_key = Zeroizing::new([0; 16]);
    session_key
        .iter_mut()
        .zip(full_session_key.iter())
        .for_each(|(to, from)| *to = *from);
    Accepted {
        token,
        session_key,
        full_session_key,
        user: established.user,
        target_name: established.target_name,
        channel_bindings: established.channel_bindings,
        workstation: established.workstation,
    }
}

fn refuse(reason: Refusal) -> Step {
    let reject = NegTokenResp {
        state: Some(NegState::REJECT),
        ..NegTokenResp::default()
    };
    Step::Refused {
        token: Some(reject.encode()),
        reason,
    }
}
