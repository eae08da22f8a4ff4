//! NEGOTIATE: the dialect and the capabilities of both peers. \[MS-SMB2\] 3.3.5.3, 3.3.5.4

use alloc::vec;
use alloc::vec::Vec;

use crypto::{Cipher, SigningAlgorithm};
use wire::dialect::{Capabilities, Dialect, SecurityMode};
use wire::negotiate::{Request, Response};
use wire::negotiate_context::{
    self as context, ContextType, Encryption, HashAlgorithm, PreauthIntegrity, RawContext, Signing,
    Transport, TransportFlags,
};
use wire::smb1::{self, DIALECT_SMB_2_002, DIALECT_SMB_2_WILDCARD};
use wire::{Command, FileTime, Flags, Guid, Header, MessageId, SessionId, Status, TreeId};

use crate::effect::{Effect, Effects, OutMessage, Outbound};
use crate::server::config::Config;
use crate::server::connection::Connection;
use crate::server::connection::reply::Answer;
use crate::server::connection::task::{self, Flow, Task};
use crate::server::context::Reply;
use crate::server::gmac::{Agreement, Offered};
use crate::server::negotiated::Negotiated;
use crate::server::sizes::Sizes;
use crate::time::Now;
use crate::violation::Violation;

/// Dialects, the newest first.
const DIALECTS: [Dialect; 5] = [
    Dialect::SMB_3_1_1,
    Dialect::SMB_3_0_2,
    Dialect::SMB_3_0,
    Dialect::SMB_2_1,
    Dialect::SMB_2_0_2,
];

/// The content of the contexts of a client of dialect 3.1.1. \[MS-SMB2\] 3.3.5.4
#[derive(Default)]
struct Offer {
    hashes: Option<Vec<HashAlgorithm>>,
    ciphers: Option<Vec<context::Cipher>>,
    signing: Option<Vec<context::SigningAlgorithm>>,
    transport: Option<TransportFlags>,
    /// Whether the client offers the SMB3 POSIX extensions.
    posix: bool,
}

impl Connection {
    /// Answers the first message of SMB2.
    pub(super) fn negotiate(&mut self, now: Now, message: &[u8]) -> Result<Flow, Status> {
        let request = Request::decode(message).map_err(|_| Status::INVALID_PARAMETER)?;
        if request.dialects.is_empty() {
            return Err(Status::INVALID_PARAMETER);
        }
        let dialect = best_dialect(&self.config, &request.dialects).ok_or(Status::NOT_SUPPORTED)?;
        let offer = match dialect {
            Dialect::SMB_3_1_1 => Some(read_contexts(&request)?),
            _ => None,
        };
        let negotiated = self.agree(dialect, &request, offer.as_ref());
        let salt = self.entropy.bytes();
        let contexts = match &offer {
            Some(offer) => answer_contexts(&negotiated, offer, &salt),
            None => Vec::new(),
        };
        if dialect == Dialect::SMB_3_1_1 {
            self.preauth.update(message);
        }
        let reply = self.negotiate_reply(now, &negotiated, &contexts);
        self.negotiated = Some(negotiated);
        Ok(Flow::Done(reply))
    }

    fn agree(&self, dialect: Dialect, request: &Request<'_>, offer: Option<&Offer>) -> Negotiated {
        let config = &self.config;
        let has_large_mtu = dialect >= Dialect::SMB_2_1 && self.carrier.large_frames;
        let cipher = match offer {
            Some(offer) => best_cipher(config, offer),
            None => implied_cipher(config, dialect, request),
        };
        let is_asked = request.capabilities.contains(Capabilities::MULTI_CHANNEL);
        let is_multichannel = config.multichannel && dialect >= Dialect::SMB_3_0 && is_asked;
        let agreed = agree_signing(config, dialect, offer, cipher, is_multichannel);
        let mut capabilities = Capabilities::NONE;
        if has_large_mtu {
            capabilities |= Capabilities::LARGE_MTU;
        }
        if dialect >= Dialect::SMB_2_1 {
            capabilities |= Capabilities::LEASING;
        }
        // impacket does not announce it, and fails where the server does.
        let asks_for_directories = request
            .capabilities
            .contains(Capabilities::DIRECTORY_LEASING);
        if dialect >= Dialect::SMB_3_0 && asks_for_directories {
            capabilities |= Capabilities::DIRECTORY_LEASING;
        }
        if agreed.is_multichannel {
            capabilities |= Capabilities::MULTI_CHANNEL;
        }
        // [MS-SMB2] 3.3.5.4: in 3.1.1 the context says it.
        if offer.is_none() && cipher.is_some() {
            capabilities |= Capabilities::ENCRYPTION;
        }
        Negotiated {
            dialect,
            cipher,
            signing: agreed.signing,
            has_large_mtu,
            capabilities,
            security_mode: security_mode(config),
            client_guid: request.client_guid,
            client_capabilities: request.capabilities,
            client_security_mode: request.security_mode,
            encrypts: agreed.encrypts,
            transport_security: self.accepts_transport_security(offer),
            has_posix: offer.is_some_and(|offer| offer.posix) && self.has_posix_share(),
        }
    }

    /// Whether any share has the SMB3 POSIX extensions.
    fn has_posix_share(&self) -> bool {
        self.server.shares().iter().any(|share| share.posix)
    }

    /// Whether the transport replaces SMB encryption: it encrypts, the configuration allows it, and
    /// the client asks for it. \[MS-SMB2\] 3.3.5.4
    ///
    /// As Samba 4.25 (smb2_negprot.c) and Windows Server 2025 have it: over QUIC alone. Unless all
    /// three are so there is no answer, and the client encrypts as without this feature.
    fn accepts_transport_security(&self, offer: Option<&Offer>) -> bool {
        let asked = TransportFlags::ACCEPT_TRANSPORT_LEVEL_SECURITY;
        let flags = offer.and_then(|offer| offer.transport);
        self.carrier.secure
            && self.config.transport_security
            && flags.is_some_and(|flags| flags.contains(asked))
    }

    fn negotiate_reply(
        &self,
        now: Now,
        negotiated: &Negotiated,
        contexts: &[(ContextType, Vec<u8>)],
    ) -> Reply {
        let config = &self.config;
        let sizes = Sizes::new(config, &self.carrier, negotiated.has_large_mtu);
        let contexts = (contexts.iter())
            .map(|(context_type, data)| RawContext {
                context_type: *context_type,
                data,
            })
            .collect();
        let response = Response {
            security_mode: negotiated.security_mode,
            dialect: negotiated.dialect,
            server_guid: config.guid,
            capabilities: negotiated.capabilities,
            max_transact_size: sizes.transact,
            max_read_size: sizes.read,
            max_write_size: self.carrier.write_hint.unwrap_or(u32::MAX).min(sizes.write),
            system_time: now.wall,
            server_start_time: FileTime(0),
            security_buffer: &config.security_blob,
            contexts,
        };
        Reply::message(|body| response.encode(body))
    }

    /// Answers an SMB1 NEGOTIATE, the only message of SMB1, if it is the first one and leads to
    /// SMB2. \[MS-SMB2\] 3.3.5.3.1, 3.3.5.3.2
    pub(super) fn smb1_negotiate(
        &mut self,
        now: Now,
        bytes: &[u8],
        effects: &mut Effects,
    ) -> Result<(), Violation> {
        let request = smb1::Negotiate::decode(bytes).map_err(Violation::Malformed)?;
        // The first message only: not even after an SMB2 NEGOTIATE that failed.
        if !self.window.take(MessageId(0), 1) {
            return Err(Violation::UnexpectedNegotiate);
        }
        let config = &self.config;
        let has_2_1 = config.max_dialect >= Dialect::SMB_2_1;
        let dialect = if has_2_1 && request.offers(DIALECT_SMB_2_WILDCARD) {
            Dialect::WILDCARD
        } else if config.min_dialect <= Dialect::SMB_2_0_2 && request.offers(DIALECT_SMB_2_002) {
            Dialect::SMB_2_0_2
        } else {
            effects.push(smb1_refusal(&request));
            return Err(Violation::UnexpectedNegotiate);
        };
        let negotiated = smb1_negotiated(config, dialect);
        let reply = self.negotiate_reply(now, &negotiated, &[]);
        // After the wildcard an SMB2 NEGOTIATE follows and decides.
        if dialect != Dialect::WILDCARD {
            self.negotiated = Some(negotiated);
        }
        let mut task = Task::new(self.task_id(), None);
        let request = task::Request::new(negotiate_header(), now.instant);
        task.answers.push(Answer::new(now.instant, request, reply));
        self.send(&mut task, effects);
        Ok(())
    }
}

/// Refuses a client that speaks nothing but SMB1. \[MS-SMB2\] 3.3.5.3 ends the connection without
/// an answer. Samba answers first, and clients rely on it: curl waits forever on a connection that
/// ends before an answer.
fn smb1_refusal(request: &smb1::Negotiate<'_>) -> Effect {
    Effect::Send(Outbound {
        messages: vec![OutMessage {
            head: request.encode_refusal(),
            payload: None,
            padding: 0,
            sign: None,
            answers: None,
        }],
        encryption: None,
        invalidate: None,
    })
}

/// The state after an SMB1 NEGOTIATE. Nothing is known about the client.
fn smb1_negotiated(config: &Config, dialect: Dialect) -> Negotiated {
    Negotiated {
        dialect,
        cipher: None,
        signing: SigningAlgorithm::HmacSha256,
        has_large_mtu: false,
        capabilities: Capabilities::NONE,
        security_mode: security_mode(config),
        client_guid: Guid::default(),
        client_capabilities: Capabilities::NONE,
        client_security_mode: SecurityMode::NONE,
        encrypts: false,
        transport_security: false,
        has_posix: false,
    }
}

/// The header of the SMB2 NEGOTIATE that an SMB1 one stands for. \[MS-SMB2\] 3.3.5.3.1
fn negotiate_header() -> Header {
    Header {
        credit_charge: 0,
        status: Status::SUCCESS,
        command: Command::NEGOTIATE,
        credits: 1,
        flags: Flags::NONE,
        next_command: 0,
        message_id: MessageId(0),
        target: wire::header::Target::Sync {
            process_id: 0,
            tree_id: TreeId(0),
        },
        session_id: SessionId(0),
        signature: [0; 16],
    }
}

fn security_mode(config: &Config) -> SecurityMode {
    match config.signing_required {
        true => SecurityMode::SIGNING_ENABLED | SecurityMode::SIGNING_REQUIRED,
        false => SecurityMode::SIGNING_ENABLED,
    }
}

/// The newest dialect that both sides speak.
pub(super) fn best_dialect(config: &Config, offered: &[Dialect]) -> Option<Dialect> {
    let range = config.min_dialect..=config.max_dialect;
    DIALECTS
        .into_iter()
        .find(|dialect| range.contains(dialect) && offered.contains(dialect))
}

/// \[MS-SMB2\] 3.3.5.4: each of the types that we know comes once at most, PREAUTH_INTEGRITY
/// exactly once; a type that we do not know is passed over, and so is NETNAME.
///
/// A client that does not announce encryption may list no ciphers. The specification refuses an
/// empty list from every client, but smb-rs sends one if encryption is off, and Samba 4.25 ignores
/// the list of such a client.
fn read_contexts(request: &Request<'_>) -> Result<Offer, Status> {
    let mut offer = Offer::default();
    let can_encrypt = request.capabilities.contains(Capabilities::ENCRYPTION);
    for RawContext { context_type, data } in &request.contexts {
        match *context_type {
            ContextType::PREAUTH_INTEGRITY_CAPABILITIES => {
                let decoded = PreauthIntegrity::decode(data).map(|found| found.hash_algorithms);
                set_once(&mut offer.hashes, decoded)?;
            }
            ContextType::ENCRYPTION_CAPABILITIES => {
                let decoded = Encryption::decode(data).map(|found| found.ciphers);
                if can_encrypt || !decoded.as_ref().is_ok_and(Vec::is_empty) {
                    set_once(&mut offer.ciphers, decoded)?;
                }
            }
            ContextType::SIGNING_CAPABILITIES => {
                let decoded = Signing::decode(data).map(|found| found.algorithms);
                set_once(&mut offer.signing, decoded)?;
            }
            ContextType::TRANSPORT_CAPABILITIES => {
                let decoded = Transport::decode(data).map_err(|_| Status::INVALID_PARAMETER)?;
                if offer.transport.replace(decoded.flags).is_some() {
                    return Err(Status::INVALID_PARAMETER);
                }
            }
            ContextType::POSIX_EXTENSIONS_AVAILABLE => offer.posix |= offers_posix(data)?,
            _ => {}
        }
    }
    let hashes = offer.hashes.as_ref().ok_or(Status::INVALID_PARAMETER)?;
    if hashes.contains(&HashAlgorithm::SHA_512) {
        Ok(offer)
    } else {
        Err(Status::SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP)
    }
}

fn set_once<T>(
    place: &mut Option<Vec<T>>,
    found: Result<Vec<T>, wire::DecodeError>,
) -> Result<(), Status> {
    let found = found.map_err(|_| Status::INVALID_PARAMETER)?;
    if place.is_some() || found.is_empty() {
        return Err(Status::INVALID_PARAMETER);
    }
    *place = Some(found);
    Ok(())
}

/// \[MS-SMB2\] 3.3.5.4 leaves the choice to the server; this server prefers the fastest.
fn best_cipher(config: &Config, offer: &Offer) -> Option<Cipher> {
    let offered = offer.ciphers.as_ref()?;
    let is_offered = |cipher: &Cipher| offered.contains(&context::Cipher(cipher.id()));
    config.ciphers.iter().copied().find(is_offered)
}

/// The signing algorithm, and what the policy for AES-GMAC makes of several channels.
fn agree_signing(
    config: &Config,
    dialect: Dialect,
    offer: Option<&Offer>,
    cipher: Option<Cipher>,
    is_multichannel: bool,
) -> Agreement {
    let offered = match offer {
        Some(offer) => offered_signing(config, offer, cipher.is_some()),
        None => Offered {
            best: implied_signing(dialect),
            other: None,
            has_cipher: cipher.is_some(),
        },
    };
    if is_multichannel {
        config.gmac_channels.agree(offered)
    } else {
        Agreement {
            signing: offered.best,
            is_multichannel,
            encrypts: false,
        }
    }
}

/// Without an offer it is AES-CMAC. \[MS-SMB2\] 3.3.5.4
fn offered_signing(config: &Config, offer: &Offer, has_cipher: bool) -> Offered {
    let offered = offer.signing.as_deref().unwrap_or_default();
    let is_offered =
        |algorithm: &SigningAlgorithm| offered.contains(&context::SigningAlgorithm(algorithm.id()));
    let mut common = config.signing_algorithms.iter().copied().filter(is_offered);
    let best = common.next().unwrap_or(SigningAlgorithm::AesCmac);
    let is_other = |algorithm: &SigningAlgorithm| *algorithm != SigningAlgorithm::AesGmac;
    Offered {
        best,
        other: common.find(is_other),
        has_cipher,
    }
}

/// In 3.0 and 3.0.2 a capability stands for AES-128-CCM.
fn implied_cipher(config: &Config, dialect: Dialect, request: &Request<'_>) -> Option<Cipher> {
    let has_cipher = dialect >= Dialect::SMB_3_0
        && request.capabilities.contains(Capabilities::ENCRYPTION)
        && config.ciphers.contains(&Cipher::Aes128Ccm);
    has_cipher.then_some(Cipher::Aes128Ccm)
}

fn implied_signing(dialect: Dialect) -> SigningAlgorithm {
    if dialect >= Dialect::SMB_3_0 {
        SigningAlgorithm::AesCmac
    } else {
        SigningAlgorithm::HmacSha256
    }
}

/// Whether the context of the SMB3 POSIX extensions names the version that the server knows. Its
/// data are GUIDs, as in Samba: another length fails the request, and unknown GUIDs have no answer.
fn offers_posix(data: &[u8]) -> Result<bool, Status> {
    let (versions, rest) = data.as_chunks();
    if versions.is_empty() || !rest.is_empty() {
        return Err(Status::INVALID_PARAMETER);
    }
    Ok(versions.contains(&context::POSIX_EXTENSIONS.0))
}

/// The answer to each context that we know. Compression and RDMA transforms are not offered: no
/// answer says so.
fn answer_contexts(
    negotiated: &Negotiated,
    offer: &Offer,
    salt: &[u8; 32],
) -> Vec<(ContextType, Vec<u8>)> {
    let integrity = PreauthIntegrity {
        hash_algorithms: Vec::from([HashAlgorithm::SHA_512]),
        salt,
    };
    let integrity_type = ContextType::PREAUTH_INTEGRITY_CAPABILITIES;
    let mut contexts = Vec::from([(integrity_type, integrity.encode())]);
    if offer.ciphers.is_some() {
        let cipher = negotiated.cipher.map_or(0, Cipher::id);
        let ciphers = Vec::from([context::Cipher(cipher)]);
        let answer = Encryption { ciphers };
        contexts.push((ContextType::ENCRYPTION_CAPABILITIES, answer.encode()));
    }
    if offer.signing.is_some() {
        let algorithm = context::SigningAlgorithm(negotiated.signing.id());
        let algorithms = Vec::from([algorithm]);
        let answer = Signing { algorithms };
        contexts.push((ContextType::SIGNING_CAPABILITIES, answer.encode()));
    }
    if negotiated.transport_security {
        let flags = TransportFlags::ACCEPT_TRANSPORT_LEVEL_SECURITY;
        let answer = Transport { flags };
        contexts.push((ContextType::TRANSPORT_CAPABILITIES, answer.encode()));
    }
    if negotiated.has_posix {
        let answer = context::POSIX_EXTENSIONS.0.to_vec();
        contexts.push((ContextType::POSIX_EXTENSIONS_AVAILABLE, answer));
    }
    contexts
}
