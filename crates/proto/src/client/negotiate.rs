//! NEGOTIATE: the offer, and the check of the server's choice. \[MS-SMB2\] 3.2.4.2.2.2, 3.2.5.2

use alloc::vec;
use alloc::vec::Vec;

use crypto::{Cipher, SigningAlgorithm};
use wire::dialect::{Capabilities, Dialect, SecurityMode};
use wire::header::HEADER_LEN;
use wire::negotiate::{Request, Response};
use wire::negotiate_context::{
    self as context, ContextType, Encryption, HashAlgorithm, NetName, POSIX_EXTENSIONS,
    PreauthIntegrity, RawContext, Signing, Transport, TransportFlags,
};
use wire::text::utf16;
use wire::{Command, DecodeError, Status, Utf16};

use super::config::{Config, Protection};
use super::connection::Connection;
use super::credits::{BYTES_PER_CREDIT, has_large_mtu};
use super::effect::Effects;
use super::encode::Body;
use super::flight::Owner;
use super::message::Message;
use super::negotiated::Negotiated;
use super::send::Envelope;
use super::session::Session;
use super::violation::Violation;
use crate::carrier::Carrier;

/// Maximum length of a READ or WRITE in bytes (8 MiB), even if configuration and server allow more:
/// a longer request would need too many credits.
pub const IO_MAX: u32 = 8 * 1024 * 1024;

impl Connection {
    /// Sends the offer.
    pub(super) fn send_negotiate(&mut self, effects: &mut Effects) -> Result<(), Violation> {
        let salt = self.entropy.bytes();
        let data = contexts(&self.config, &self.carrier, &salt);
        let contexts = data.iter().map(|(context_type, data)| RawContext {
            context_type: *context_type,
            data,
        });
        let request = Request {
            security_mode: security_mode(&self.config),
            capabilities: capabilities(&self.config),
            client_guid: self.config.client_guid,
            dialects: self.config.dialects.clone(),
            contexts: contexts.collect(),
        };
        let mut head = vec![0; HEADER_LEN];
        request.encode(&mut head);
        let body = Body {
            command: Command::NEGOTIATE,
            head,
            payload: None,
        };
        let message = self.message(body, Owner::Negotiate, &Envelope::default());
        self.preauth.update(&message.head);
        self.push(vec![message], None, effects);
        Ok(())
    }

    /// Handles the server's choice, and starts the login.
    pub(super) fn take_negotiate(
        &mut self,
        message: &Message<'_>,
        effects: &mut Effects,
    ) -> Result<(), Violation> {
        if message.header.status != Status::SUCCESS {
            return Err(Violation::Refused(message.header.status));
        }
        let response = Response::decode(message.bytes).map_err(Violation::Malformed)?;
        let negotiated = negotiated(&self.config, &self.carrier, &response)?;
        if let Some(session) = self.binding.as_ref().or(self.previous.as_ref()) {
            check_same(session, &negotiated, self.binding.is_some())?;
        }
        self.preauth.update(message.bytes);
        self.server_security_mode = response.security_mode;
        self.negotiated = Some(negotiated);
        self.start_login(effects)
    }
}

/// SecurityMode of the client.
pub(super) fn security_mode(config: &Config) -> SecurityMode {
    match config.protection {
        Protection::AsAsked => SecurityMode::SIGNING_ENABLED,
        Protection::Sign | Protection::Encrypt => {
            SecurityMode::SIGNING_ENABLED | SecurityMode::SIGNING_REQUIRED
        }
    }
}

/// Capabilities of the client, sent in dialects 3.x only. \[MS-SMB2\] 2.2.3
pub(super) fn capabilities(config: &Config) -> Capabilities {
    if !config.dialects.iter().any(|d| *d >= Dialect::SMB_3_0) {
        return Capabilities::NONE;
    }
    let mut capabilities = Capabilities::LARGE_MTU | Capabilities::LEASING;
    if config.multichannel {
        capabilities |= Capabilities::MULTI_CHANNEL;
    }
    // In 3.0 the capability stands for AES-128-CCM. In 3.1.1 a context has the ciphers, but Samba
    // (4.25) ignores it without the capability.
    let has_contexts = config.dialects.contains(&Dialect::SMB_3_1_1);
    if config.ciphers.contains(&Cipher::Aes128Ccm) || has_contexts && !config.ciphers.is_empty() {
        capabilities |= Capabilities::ENCRYPTION;
    }
    capabilities
}

/// Negotiate contexts of 3.1.1. \[MS-SMB2\] 3.2.4.2.2.2
fn contexts(config: &Config, carrier: &Carrier, salt: &[u8]) -> Vec<(ContextType, Vec<u8>)> {
    let integrity = PreauthIntegrity {
        hash_algorithms: vec![HashAlgorithm::SHA_512],
        salt,
    };
    let mut contexts = vec![(
        ContextType::PREAUTH_INTEGRITY_CAPABILITIES,
        integrity.encode(),
    )];
    if !config.ciphers.is_empty() {
        let ciphers = config.ciphers.iter();
        let ciphers = ciphers.map(|cipher| context::Cipher(cipher.id())).collect();
        let data = Encryption { ciphers }.encode();
        contexts.push((ContextType::ENCRYPTION_CAPABILITIES, data));
    }
    if !config.signing_algorithms.is_empty() {
        let algorithms = config.signing_algorithms.iter();
        let algorithms = algorithms.map(|a| context::SigningAlgorithm(a.id()));
        let algorithms = algorithms.collect();
        let data = Signing { algorithms }.encode();
        contexts.push((ContextType::SIGNING_CAPABILITIES, data));
    }
    if offers_transport_security(config, carrier) {
        let flags = TransportFlags::ACCEPT_TRANSPORT_LEVEL_SECURITY;
        let data = Transport { flags }.encode();
        contexts.push((ContextType::TRANSPORT_CAPABILITIES, data));
    }
    if config.posix {
        let data = POSIX_EXTENSIONS.0.to_vec();
        contexts.push((ContextType::POSIX_EXTENSIONS_AVAILABLE, data));
    }
    let name = utf16(&config.server_name);
    let data = NetName(Utf16(&name)).encode();
    contexts.push((ContextType::NETNAME_NEGOTIATE_CONTEXT_ID, data));
    contexts
}

/// Whether the client offers that the transport replaces encryption.
fn offers_transport_security(config: &Config, carrier: &Carrier) -> bool {
    carrier.secure && config.transport_security && config.protection != Protection::Encrypt
}

/// Checks the server's choice. \[MS-SMB2\] 3.2.5.2
fn negotiated(
    config: &Config,
    carrier: &Carrier,
    response: &Response<'_>,
) -> Result<Negotiated, Violation> {
    let dialect = response.dialect;
    if !config.dialects.contains(&dialect) {
        return Err(Violation::NegotiateTampered(
            "the server chose a dialect that was not offered",
        ));
    }
    let (cipher, signing_algorithm) = match dialect {
        Dialect::SMB_3_1_1 => chosen(config, &response.contexts)?,
        _ => implied(config, response),
    };
    if config.protection == Protection::Encrypt && cipher.is_none() {
        return Err(Violation::LoginUntrusted(
            "the server does not support encryption",
        ));
    }
    let limit = match has_large_mtu(dialect, response.capabilities) {
        true => config.max_io.clamp(BYTES_PER_CREDIT, IO_MAX),
        false => BYTES_PER_CREDIT,
    };
    let bounded = |field, size| at_least_a_credit(field, size).map(|size| size.min(limit));
    let (sent, received) = (carrier.max_payload_out(), carrier.max_payload_in());
    let by_rdma = carrier.max_transfer();
    let max_read = bounded("MaxReadSize", response.max_read_size)?.min(received.max(by_rdma));
    let max_write = bounded("MaxWriteSize", response.max_write_size)?.min(sent.max(by_rdma));
    let max_transact = bounded("MaxTransactSize", response.max_transact_size)?;
    Ok(Negotiated {
        dialect,
        capabilities: response.capabilities,
        server_guid: response.server_guid,
        cipher,
        signing_algorithm,
        max_read,
        max_write,
        max_transact: max_transact.min(sent).min(received),
        max_inline_read: max_read.min(received),
        max_inline_write: max_write.min(sent),
        transport_security: transport_security(config, carrier, response)?,
        posix: has_posix(config, dialect, &response.contexts)?,
    })
}

/// Checks that a size is at least 65,536. \[MS-SMB2\] 3.2.5.2
fn at_least_a_credit(field: &'static str, size: u32) -> Result<u32, Violation> {
    if size >= BYTES_PER_CREDIT {
        return Ok(size);
    }
    let value = size.into();
    Err(Violation::Malformed(DecodeError::Invalid { field, value }))
}

/// Cipher and signing algorithm before 3.1.1: of the capability and of the dialect.
fn implied(config: &Config, response: &Response<'_>) -> (Option<Cipher>, SigningAlgorithm) {
    if response.dialect < Dialect::SMB_3_0 {
        return (None, SigningAlgorithm::HmacSha256);
    }
    let can_encrypt = response.capabilities.contains(Capabilities::ENCRYPTION)
        && config.ciphers.contains(&Cipher::Aes128Ccm);
    (
        can_encrypt.then_some(Cipher::Aes128Ccm),
        SigningAlgorithm::AesCmac,
    )
}

/// The choices in the contexts: each at most once, the hash exactly once, and only offered values.
fn chosen(
    config: &Config,
    contexts: &[RawContext<'_>],
) -> Result<(Option<Cipher>, SigningAlgorithm), Violation> {
    let hash = one(
        contexts,
        ContextType::PREAUTH_INTEGRITY_CAPABILITIES,
        |data| PreauthIntegrity::decode(data).map(|found| found.hash_algorithms),
    )?;
    if hash != Some(HashAlgorithm::SHA_512) {
        return Err(Violation::NegotiateTampered(
            "the server chose no hash, or one that was not offered",
        ));
    }
    let cipher = one(contexts, ContextType::ENCRYPTION_CAPABILITIES, |data| {
        Encryption::decode(data).map(|found| found.ciphers)
    })?;
    let cipher = match cipher {
        None | Some(context::Cipher::NONE) => None,
        Some(id) => {
            let cipher = Cipher::from_id(id.0).filter(|cipher| config.ciphers.contains(cipher));
            Some(cipher.ok_or(Violation::NegotiateTampered(
                "the server chose a cipher that was not offered",
            ))?)
        }
    };
    let signing = one(contexts, ContextType::SIGNING_CAPABILITIES, |data| {
        Signing::decode(data).map(|found| found.algorithms)
    })?;
    // [MS-SMB2] 3.2.5.2: without the context it is AES-CMAC.
    let signing = signing.map_or(Some(SigningAlgorithm::AesCmac), |id| {
        let offered = &config.signing_algorithms;
        SigningAlgorithm::from_id(id.0).filter(|algorithm| offered.contains(algorithm))
    });
    let signing = signing.ok_or(Violation::NegotiateTampered(
        "the server chose a signing algorithm that was not offered",
    ))?;
    Ok((cipher, signing))
}

/// Whether the server agrees that the transport replaces encryption. Only the client may offer
/// that.
fn transport_security(
    config: &Config,
    carrier: &Carrier,
    response: &Response<'_>,
) -> Result<bool, Violation> {
    let mut found = (response.contexts.iter())
        .filter(|context| context.context_type == ContextType::TRANSPORT_CAPABILITIES);
    let Some(context) = found
        .next()
        .filter(|_| response.dialect == Dialect::SMB_3_1_1)
    else {
        return Ok(false);
    };
    if found.next().is_some() {
        return Err(Violation::NegotiateTampered("a context occurs twice"));
    }
    let flags = Transport::decode(context.data)
        .map_err(Violation::Malformed)?
        .flags;
    let is_accepted = flags.contains(TransportFlags::ACCEPT_TRANSPORT_LEVEL_SECURITY);
    if is_accepted && !offers_transport_security(config, carrier) {
        return Err(Violation::NegotiateTampered(
            "the server chose transport security that was not offered",
        ));
    }
    Ok(is_accepted)
}

/// Whether the server has the SMB3 POSIX extensions. Only the client may offer them. "SMB3 POSIX
/// Protocol Extensions"
fn has_posix(
    config: &Config,
    dialect: Dialect,
    contexts: &[RawContext<'_>],
) -> Result<bool, Violation> {
    let is_meant = |context: &&RawContext<'_>| {
        context.context_type == ContextType::POSIX_EXTENSIONS_AVAILABLE
            && context.data == POSIX_EXTENSIONS.0
    };
    let found = contexts.iter().filter(is_meant).count();
    match (dialect == Dialect::SMB_3_1_1, found) {
        (false, _) | (_, 0) => Ok(false),
        (true, 1) if config.posix => Ok(true),
        (true, 1) => Err(Violation::NegotiateTampered(
            "the server chose POSIX extensions that were not offered",
        )),
        (true, _) => Err(Violation::NegotiateTampered("a context occurs twice")),
    }
}

/// The single choice in the single context of a type.
fn one<T: Copy>(
    contexts: &[RawContext<'_>],
    context_type: ContextType,
    decode: impl Fn(&[u8]) -> Result<Vec<T>, DecodeError>,
) -> Result<Option<T>, Violation> {
    let mut found = contexts.iter().filter(|c| c.context_type == context_type);
    let Some(context) = found.next() else {
        return Ok(None);
    };
    if found.next().is_some() {
        return Err(Violation::NegotiateTampered("a context occurs twice"));
    }
    match decode(context.data).map_err(Violation::Malformed)?[..] {
        [choice] => Ok(Some(choice)),
        _ => Err(Violation::NegotiateTampered(
            "a context has no choice, or several",
        )),
    }
}

/// Checks that a further channel has the same server and the same result as its session, or that a
/// login in place of a lost session has the same result. A server may have another ServerGuid after
/// a restart. \[MS-SMB2\] 3.2.5.2
fn check_same(session: &Session, channel: &Negotiated, is_binding: bool) -> Result<(), Violation> {
    let Negotiated {
        dialect,
        capabilities,
        server_guid,
        cipher,
        signing_algorithm,
        max_read,
        max_write,
        max_transact: _,
        max_inline_read,
        max_inline_write,
        transport_security,
        posix,
    } = &session.negotiated;
    let is_same = *dialect == channel.dialect
        && *capabilities == channel.capabilities
        && (!is_binding || *server_guid == channel.server_guid)
        && *cipher == channel.cipher
        && *signing_algorithm == channel.signing_algorithm
        // Messages that one channel leaves to its transport would be unprotected on the other.
        && *transport_security == channel.transport_security
        && *posix == channel.posix;
    // Data that fit one channel must fit each, also without RDMA. Other buffers are short, or can
    // be shortened.
    let fits_inline = *max_inline_read <= channel.max_inline_read
        && *max_inline_write <= channel.max_inline_write;
    let fits = *max_read <= channel.max_read
        && *max_write <= channel.max_write
        && (fits_inline || !session.is_protected(false));
    if is_same && fits {
        Ok(())
    } else {
        Err(Violation::NegotiateTampered(match is_binding {
            true => "a channel negotiated other values than its session",
            false => "the server negotiated other values than before the loss",
        }))
    }
}

#[cfg(test)]
mod tests {
    use wire::Guid;

    use super::*;

    #[test]
    fn posix_extensions_are_those_that_both_ends_name() {
        let named = RawContext {
            context_type: ContextType::POSIX_EXTENSIONS_AVAILABLE,
            data: &POSIX_EXTENSIONS.0,
        };
        let other = RawContext {
            data: &[0; 16],
            ..named
        };
        let asking = Config {
            posix: true,
            ..Config::new(Guid([1; 16]), "nas")
        };
        let found = |contexts: &[RawContext<'_>]| has_posix(&asking, Dialect::SMB_3_1_1, contexts);
        assert_eq!(found(&[named]), Ok(true));
        assert_eq!(found(&[other]), Ok(false));
        assert_eq!(found(&[]), Ok(false));
        assert!(found(&[named, named]).is_err());
        assert_eq!(has_posix(&asking, Dialect::SMB_3_0_2, &[named]), Ok(false));
        let silent = Config {
            posix: false,
            ..asking.clone()
        };
        assert!(has_posix(&silent, Dialect::SMB_3_1_1, &[named]).is_err());
        let offers = |config: &Config| {
            let contexts = contexts(config, &Carrier::TCP, &[0; 32]);
            let kind = ContextType::POSIX_EXTENSIONS_AVAILABLE;
            contexts.iter().any(|(found, _)| *found == kind)
        };
        assert!(offers(&asking) && !offers(&silent));
    }
}
