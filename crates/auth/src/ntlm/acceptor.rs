//! The server's side of NTLMv2. [MS-NLMP] 3.2.5

use std::sync::Arc;

use crypto::fixed_time_eq;
use wire::ntlmssp::{
    Authenticate, AvFlags, AvId, AvPairs, Challenge, Flags, Negotiate, Ntlmv2Response, Version,
    text, utf16,
};
use wire::spnego::Oid;
use zeroize::Zeroizing;

use crate::mechanism::{Established, Integrity, Mechanism, Progress};
use crate::ntlm::keys::{
    Key, NtHash, NtlmIntegrity, Role, exchange, message_mic, nt_proof, session_base_key,
};
use crate::realm::{Entropy, FileTime, Realm, Refusal, User, UserKind};
use crate::users::Account;

/// What of the client's offer is taken. [MS-NLMP] 2.2.2.5
const TAKEN: Flags = Flags(
    Flags::UNICODE.0
        | Flags::EXTENDED_SESSION_SECURITY.0
        | Flags::REQUEST_TARGET.0
        | Flags::SIGN.0
        | Flags::SEAL.0
        | Flags::NTLM.0
        | Flags::ALWAYS_SIGN.0
        | Flags::VERSION.0
        | Flags::KEY_128.0
        | Flags::KEY_EXCHANGE.0
        | Flags::KEY_56.0,
);

/// One NTLM authentication.
pub(crate) struct NtlmAcceptor {
    realm: Arc<Realm>,
    state: State,
}

enum State {
    Start,
    Challenged(Challenged),
    Finished,
}

/// The first two messages, which the MIC of the third covers.
struct Challenged {
    negotiate: Vec<u8>,
    challenge: Vec<u8>,
    server_challenge: [u8; 8],
    flags: Flags,
}

impl NtlmAcceptor {
    pub(crate) fn new(realm: Arc<Realm>) -> Self {
        Self {
            realm,
            state: State::Start,
        }
    }

    fn challenge(
        &mut self,
        token: &[u8],
        now: FileTime,
        entropy: &Entropy,
    ) -> Result<Vec<u8>, Refusal> {
        let offered = Negotiate::decode(token)
            .map_err(|_| Refusal::Malformed)?
            .flags;
        // Extended session security is asked of who gives a name: smbclient offers none when it
        // comes as nobody.
        let charset = charset(offered)?;
        let taken = Flags(offered.0 & TAKEN.0) | charset;
        let flags = taken | Flags::TARGET_INFO | Flags::TARGET_TYPE_SERVER;
        let server_challenge = *entropy.first_chunk().expect("32 bytes");
        let target_name = spell(&self.realm.names.netbios_computer, charset);
        let target_info = target_info(&self.realm, now);
        let challenge = Challenge {
            flags,
            target_name: &target_name,
            server_challenge,
            target_info: &target_info,
            version: flags
                .contains(Flags::VERSION)
                .then_some(Version::WINDOWS_10),
        }
        .encode();
        self.state = State::Challenged(Challenged {
            negotiate: token.to_vec(),
            challenge: challenge.clone(),
            server_challenge,
            flags,
        });
        Ok(challenge)
    }
}

impl Mechanism for NtlmAcceptor {
    fn oid(&self) -> Oid<'static> {
        Oid::NTLMSSP
    }

    fn step(&mut self, token: &[u8], now: FileTime, entropy: &Entropy) -> Progress {
        let result = match std::mem::replace(&mut self.state, State::Finished) {
            State::Start => self.challenge(token, now, entropy).map(Progress::Continue),
            State::Challenged(first) => authenticate(&self.realm, &first, token)
                .map(|established| Progress::Established(Box::new(established))),
            State::Finished => Err(Refusal::Malformed),
        };
        result.unwrap_or_else(Progress::Refused)
    }
}

/// How names are spelt: in UTF-16, or in the code page of a client that does not offer it.
/// v9u-smb2 does not; Windows and Samba let it in. [MS-NLMP] 2.2.2.5
fn charset(offered: Flags) -> Result<Flags, Refusal> {
    [Flags::UNICODE, Flags::OEM]
        .into_iter()
        .find(|charset| offered.contains(*charset))
        .ok_or(Refusal::Downgrade)
}

/// Nobody says which code page it is; ASCII is in all of them.
fn spell(name: &str, charset: Flags) -> Vec<u8> {
    if charset == Flags::UNICODE {
        return utf16(name);
    }
    let ascii = |c: char| u8::try_from(c).ok().filter(u8::is_ascii).unwrap_or(b'_');
    name.chars().map(ascii).collect()
}

/// A name of a code page as UTF-16.
fn widen(name: &[u8]) -> Result<Vec<u8>, Refusal> {
    if !name.is_ascii() {
        return Err(Refusal::Malformed);
    }
    Ok(name.iter().flat_map(|byte| [*byte, 0]).collect())
}

/// [MS-NLMP] 3.2.5.1.1: the timestamp makes the client send a MIC.
fn target_info(realm: &Realm, now: FileTime) -> Vec<u8> {
    let names = &realm.names;
    let mut info = Vec::new();
    for (id, name) in [
        (AvId::NETBIOS_DOMAIN_NAME, &names.netbios_domain),
        (AvId::NETBIOS_COMPUTER_NAME, &names.netbios_computer),
        (AvId::DNS_DOMAIN_NAME, &names.dns_domain),
        (AvId::DNS_COMPUTER_NAME, &names.dns_computer),
    ] {
        AvPairs::push(&mut info, id, &utf16(name));
    }
    AvPairs::push(&mut info, AvId::TIMESTAMP, &now.0.to_le_bytes());
    AvPairs::push(&mut info, AvId::EOL, &[]);
    info
}

/// Reads the third message, with its names in UTF-16.
fn authenticate(realm: &Realm, first: &Challenged, token: &[u8]) -> Result<Established, Refusal> {
    let message = Authenticate::decode(token).map_err(|_| Refusal::Malformed)?;
    if first.flags.contains(Flags::UNICODE) {
        return log_in(realm, first, token, &message);
    }
    let [user, domain, workstation] =
        [message.user, message.domain, message.workstation].map(widen);
    let message = Authenticate {
        user: &user?,
        domain: &domain?,
        workstation: &workstation?,
        ..message
    };
    log_in(realm, first, token, &message)
}

/// [MS-NLMP] 3.2.5.1.2
fn log_in(
    realm: &Realm,
    first: &Challenged,
    token: &[u8],
    message: &Authenticate<'_>,
) -> Result<Established, Refusal> {
    if is_anonymous(message) {
        return anonymous(realm, first, message);
    }
    // Without extended session security there is no NTLMv2 session security.
    let required = charset(first.flags)? | Flags::EXTENDED_SESSION_SECURITY;
    let is_agreed = first.flags.contains(required) && message.flags.contains(required);
    if !is_agreed {
        return Err(Refusal::Downgrade);
    }
    let response = ntlmv2_response(message)?;
    let name = text(message.user).ok_or(Refusal::Malformed)?;
    let account = find(realm, &name);

    // An unknown name costs what a wrong password costs: hash, proof, comparison.
    let nobody = NtHash::from_password("nobody");
    let nt_hash = account.map_or(&nobody, |account| &account.nt_hash);
    let response_key = nt_hash.response_key(&name, message.domain);
    let proof = nt_proof(&response_key, first.server_challenge, response.client_data);
    let is_proven = fixed_time_eq(&proof[..], &response.proof);
    let Some(account) = account else {
        return guest(realm, message, &response, name);
    };
    if !is_proven {
        return Err(Refusal::BadPassword);
    }

    let base = session_base_key(&response_key, &response.proof);
    let (key, flags) = exported_session_key(&base, first, message)?;
    check_mic(&key, first, token, message, &response)?;
    if account.is_disabled {
        return Err(Refusal::Disabled);
    }
    let user = User {
        name: account.name.clone(),
        domain: lossy(message.domain),
        unix: account.unix.clone(),
        kind: UserKind::Named,
    };
    let integrity = NtlmIntegrity::new(Role::Server, &key, flags);
    Ok(established(
        user,
        &key[..],
        Some(Box::new(integrity)),
        message,
        Some(&response),
    ))
}

/// A client may spell its name `user@domain`; the domain counts for nothing here.
fn find<'r>(realm: &'r Realm, name: &str) -> Option<&'r Account> {
    let users = &realm.users;
    users
        .find(name)
        .or_else(|| users.find(name.rsplit_once('@')?.0))
}

/// [MS-NLMP] 3.2.5.1.2: no name, no response but perhaps one zero byte of LM.
fn is_anonymous(message: &Authenticate<'_>) -> bool {
    message.user.is_empty()
        && message.nt_response.is_empty()
        && matches!(message.lm_response, [] | [0])
}

fn ntlmv2_response<'a>(message: &Authenticate<'a>) -> Result<Ntlmv2Response<'a>, Refusal> {
    /// Bytes of an LM or NTLMv1 response. [MS-NLMP] 2.2.2.3, 2.2.2.6
    const OLD_LEN: usize = 24;
    match message.nt_response.len() {
        0 | OLD_LEN => Err(Refusal::NtlmV1),
        _ => Ntlmv2Response::decode(message.nt_response).map_err(|_| Refusal::Malformed),
    }
}

/// The key, and the flags that both sides agreed on. [MS-NLMP] 3.2.5.1.2
fn exported_session_key(
    key_exchange_key: &Key,
    first: &Challenged,
    message: &Authenticate<'_>,
) -> Result<(Key, Flags), Refusal> {
    let flags = Flags(message.flags.0 & first.flags.0);
    // Who neither signs nor seals may leave the key out.
    let is_silent = flags.0 & (Flags::SIGN.0 | Flags::SEAL.0) == 0;
    let is_left_out = is_silent && message.encrypted_session_key.is_empty();
    if !flags.contains(Flags::KEY_EXCHANGE) || is_left_out {
        return Ok((key_exchange_key.clone(), flags));
    }
    let wrapped = message
        .encrypted_session_key
        .try_into()
        .map_err(|_| Refusal::Malformed)?;
    Ok((exchange(key_exchange_key, wrapped), flags))
}

/// The client says in what its proof covers whether it sent a MIC, so that nobody on the way can
/// take the MIC out. [MS-NLMP] 3.2.5.1.2
fn check_mic(
    key: &Key,
    first: &Challenged,
    token: &[u8],
    message: &Authenticate<'_>,
    response: &Ntlmv2Response<'_>,
) -> Result<(), Refusal> {
    if !response.av_flags().contains(AvFlags::MIC) {
        return Ok(());
    }
    let mic = message.mic.ok_or(Refusal::MicMismatch)?;
    let expected = message_mic(key, &first.negotiate, &first.challenge, token);
    if fixed_time_eq(&expected[..], &mic) {
        Ok(())
    } else {
        Err(Refusal::MicMismatch)
    }
}

fn guest(
    realm: &Realm,
    message: &Authenticate<'_>,
    response: &Ntlmv2Response<'_>,
    name: String,
) -> Result<Established, Refusal> {
    if !realm.allows_guest {
        return Err(Refusal::BadUser);
    }
    let user = User {
        name,
        domain: lossy(message.domain),
        unix: None,
        kind: UserKind::Guest,
    };
    Ok(established(user, &[0; 16], None, message, Some(response)))
}

/// Nobody's keys are made of zeros. They protect nothing, but a client may want the mechListMIC
/// that they make.
fn anonymous(
    realm: &Realm,
    first: &Challenged,
    message: &Authenticate<'_>,
) -> Result<Established, Refusal> {
    if !realm.allows_anonymous {
        return Err(Refusal::Anonymous);
    }
    let zeros = Zeroizing::new([0; 16]);
    let integrity = exported_session_key(&zeros, first, message)
        .ok()
        .map(|(key, flags)| NtlmIntegrity::new(Role::Server, &key, flags))
        .map(|integrity| Box::new(integrity) as Box<dyn Integrity>);
    let user = User {
        name: String::new(),
        domain: lossy(message.domain),
        unix: None,
        kind: UserKind::Anonymous,
    };
    Ok(established(user, &[0; 16], integrity, message, None))
}

fn established(
    user: User,
    key: &[u8],
    integrity: Option<Box<dyn Integrity>>,
    message: &Authenticate<'_>,
    response: Option<&Ntlmv2Response<'_>>,
) -> Established {
    let pair = |id| AvPairs::new(response?.target_info).find(id);
    let bindings = pair(AvId::CHANNEL_BINDINGS).and_then(|value| value.try_into().ok());
    Established {
        token: None,
        user,
        full_session_key: Zeroizing::new(key.to_vec()),
        integrity,
        target_name: pair(AvId::TARGET_NAME)
            .and_then(text)
            .filter(|name| !name.is_empty()),
        // Zeros say that there are none. [MS-NLMP] 2.2.2.1
        channel_bindings: bindings.filter(|bindings| *bindings != [0; 16]),
        workstation: lossy(message.workstation),
    }
}

/// Names for logs need not be exact.
fn lossy(utf16: &[u8]) -> String {
    text(utf16).unwrap_or_else(|| "\u{fffd}".into())
}
