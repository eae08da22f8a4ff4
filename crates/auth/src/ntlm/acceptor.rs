//! The NTLMv2 server. [MS-NLMP] 3.2.5

use std::sync::Arc;

use crypto::fixed_time_eq;
use wire::ntlmssp::{
    Authenticate, AvFlags, AvId, AvPairs, Challenge, Flags, Negotiate, Ntlmv2Response, Version,
    text, utf16,
};
use wire::spnego::Oid;
use wire::upcase::is_same_name;
use zeroize::Zeroizing;

use crate::app_password::{APP_PASSWORDS_MAX, AppPassword};
use crate::config::{AcceptorConfig, GuestLogins};
use crate::login::{Claim, Entropy, FileTime, Refusal, User, UserKind};
use crate::mechanism::{Established, Integrity, Mechanism, Progress};
use crate::ntlm::keys::{
    Key, NtHash, NtlmIntegrity, Role, exchange, message_mic, nt_proof, session_base_key,
};
use crate::users::Account;

/// The flags that the server grants when the client offers them. [MS-NLMP] 2.2.2.5
const SUPPORTED: Flags = Flags(
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
    config: Arc<AcceptorConfig>,
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
    pub(crate) fn new(config: Arc<AcceptorConfig>) -> Self {
        Self {
            config,
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
        // log_in() requires extended session security of every client with a user name. An
        // anonymous smbclient does not offer it.
        let charset = charset(offered)?;
        let granted = Flags(offered.0 & SUPPORTED.0) | charset;
        let flags = granted | Flags::TARGET_INFO | Flags::TARGET_TYPE_SERVER;
        let server_challenge = *entropy.first_chunk().expect("32 bytes");
        let target_name = encode(&self.config.names.netbios_computer, charset);
        let target_info = target_info(&self.config, now);
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

    fn claim(&self, token: &[u8]) -> Option<Claim> {
        let State::Challenged(first) = &self.state else {
            return None;
        };
        let message = Authenticate::decode(token).ok()?;
        let decoded = |name: &[u8]| match first.flags.contains(Flags::UNICODE) {
            true => text(name),
            false => text(&utf16_from_oem(name).ok()?),
        };
        let user = decoded(message.user)?;
        let is_guest = find(&self.config, &user).is_none() && may_be_guest(&self.config, &user);
        Some(Claim {
            needs_password: !is_anonymous(&message) && !is_guest,
            user,
            workstation: decoded(message.workstation).unwrap_or_default(),
        })
    }

    fn step(&mut self, token: &[u8], now: FileTime, entropy: &Entropy) -> Progress {
        let result = match std::mem::replace(&mut self.state, State::Finished) {
            State::Start => self.challenge(token, now, entropy).map(Progress::Continue),
            State::Challenged(first) => authenticate(&self.config, &first, token, now)
                .map(|established| Progress::Established(Box::new(established))),
            State::Finished => Err(Refusal::Malformed),
        };
        result.unwrap_or_else(Progress::Refused)
    }
}

/// The character set of names: UTF-16, or a code page when the client does not offer UTF-16.
/// v9u-smb2 does not offer it; Windows and Samba accept that client. [MS-NLMP] 2.2.2.5
fn charset(offered: Flags) -> Result<Flags, Refusal> {
    [Flags::UNICODE, Flags::OEM]
        .into_iter()
        .find(|charset| offered.contains(*charset))
        .ok_or(Refusal::Downgrade)
}

/// Encodes a name. No field names the code page of an OEM string, so it is limited to ASCII, which
/// all code pages contain.
fn encode(name: &str, charset: Flags) -> Vec<u8> {
    if charset == Flags::UNICODE {
        return utf16(name);
    }
    let ascii = |c: char| u8::try_from(c).ok().filter(u8::is_ascii).unwrap_or(b'_');
    name.chars().map(ascii).collect()
}

/// Converts a name from a code page to UTF-16.
fn utf16_from_oem(name: &[u8]) -> Result<Vec<u8>, Refusal> {
    if !name.is_ascii() {
        return Err(Refusal::Malformed);
    }
    Ok(name.iter().flat_map(|byte| [*byte, 0]).collect())
}

/// The target info of the CHALLENGE. Its timestamp makes the client send a MIC.
/// [MS-NLMP] 3.2.5.1.1
fn target_info(config: &AcceptorConfig, now: FileTime) -> Vec<u8> {
    let names = &config.names;
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

/// Processes the AUTHENTICATE, after the conversion of its names to UTF-16.
fn authenticate(
    config: &AcceptorConfig,
    first: &Challenged,
    token: &[u8],
    now: FileTime,
) -> Result<Established, Refusal> {
    let message = Authenticate::decode(token).map_err(|_| Refusal::Malformed)?;
    if first.flags.contains(Flags::UNICODE) {
        return log_in(config, first, (token, now), &message);
    }
    let [user, domain, workstation] =
        [message.user, message.domain, message.workstation].map(utf16_from_oem);
    let message = Authenticate {
        user: &user?,
        domain: &domain?,
        workstation: &workstation?,
        ..message
    };
    log_in(config, first, (token, now), &message)
}

/// Authenticates the user of an AUTHENTICATE. [MS-NLMP] 3.2.5.1.2
fn log_in(
    config: &AcceptorConfig,
    first: &Challenged,
    (token, now): (&[u8], FileTime),
    message: &Authenticate<'_>,
) -> Result<Established, Refusal> {
    if is_anonymous(message) {
        return anonymous(config, first, message);
    }
    // NTLMv2 session security requires extended session security.
    let required = charset(first.flags)? | Flags::EXTENDED_SESSION_SECURITY;
    let is_agreed = first.flags.contains(required) && message.flags.contains(required);
    if !is_agreed {
        return Err(Refusal::Downgrade);
    }
    let response = ntlmv2_response(message)?;
    let name = text(message.user).ok_or(Refusal::Malformed)?;
    let account = find(config, &name);

    let proven = prove(account, &name, message, first.server_challenge, &response);
    let Some(account) = account else {
        return guest(config, message, &response, name);
    };
    let Some(Proven {
        response_key,
        app_password,
    }) = proven
    else {
        return Err(Refusal::BadPassword);
    };

    let base = session_base_key(&response_key, &response.proof);
    let (key, flags) = exported_session_key(&base, first, message)?;
    check_mic(&key, first, token, message, &response)?;
    if account.is_disabled {
        return Err(Refusal::Disabled);
    }
    if app_password.is_some_and(|password| password.has_expired(now)) {
        return Err(Refusal::Expired);
    }
    let user = User {
        name: account.name.clone(),
        domain: lossy(message.domain),
        unix: account.unix.clone(),
        kind: UserKind::Named,
        app_password: app_password.map(|password| password.rights.clone()),
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

/// A password of an account that a client has proved.
struct Proven<'a> {
    response_key: Key,
    /// `None` for the main password.
    app_password: Option<&'a AppPassword>,
}

/// Finds the password of the account that the client proves: the main one or an app password.
///
/// An unknown name takes as much time as a wrong password, and so does any number of app passwords:
/// each time, the server computes the key and the proof of all possible passwords.
fn prove<'a>(
    account: Option<&'a Account>,
    name: &str,
    message: &Authenticate<'_>,
    server_challenge: [u8; 8],
    response: &Ntlmv2Response<'_>,
) -> Option<Proven<'a>> {
    let dummy = NtHash::from_password("dummy");
    let main = account.map(|account| (&account.nt_hash, None));
    let app_passwords = account.map_or(&[][..], |account| &account.app_passwords);
    let app_passwords = app_passwords
        .iter()
        .map(|password| (&password.nt_hash, Some(password)));
    let mut passwords = main.into_iter().chain(app_passwords);
    let mut proven = None;
    for _ in 0..=APP_PASSWORDS_MAX {
        let password = passwords.next();
        let nt_hash = password.map_or(&dummy, |(nt_hash, _)| nt_hash);
        let response_key = nt_hash.response_key(name, message.domain);
        let proof = nt_proof(&response_key, server_challenge, response.client_data);
        let is_proven = fixed_time_eq(&proof[..], &response.proof);
        let app_password = password.filter(|_| is_proven);
        if let Some((_, app_password)) = app_password {
            proven = Some(Proven {
                response_key,
                app_password,
            });
        }
    }
    proven
}

/// The account of a user name. A client may send `user@domain`; the server ignores the domain.
fn find<'r>(config: &'r AcceptorConfig, name: &str) -> Option<&'r Account> {
    let users = &config.users;
    users
        .find(name)
        .or_else(|| users.find(name.rsplit_once('@')?.0))
}

/// Returns true if a client with this name, which no account has, becomes a guest.
fn may_be_guest(config: &AcceptorConfig, name: &str) -> bool {
    let name = name.rsplit_once('@').map_or(name, |(name, _)| name);
    match config.guests {
        GuestLogins::Refused => false,
        GuestLogins::ByName => name.is_empty() || is_same_name(name, "guest"),
        GuestLogins::ByUnknownName => true,
    }
}

/// Whether the client is anonymous: no name, no NT response, and an LM response of at most one
/// zero byte. [MS-NLMP] 3.2.5.1.2
fn is_anonymous(message: &Authenticate<'_>) -> bool {
    message.user.is_empty()
        && message.nt_response.is_empty()
        && matches!(message.lm_response, [] | [0])
}

fn ntlmv2_response<'a>(message: &Authenticate<'a>) -> Result<Ntlmv2Response<'a>, Refusal> {
    /// Length of an LM or NTLMv1 response in bytes. [MS-NLMP] 2.2.2.3, 2.2.2.6
    const OLD_LEN: usize = 24;
    match message.nt_response.len() {
        0 | OLD_LEN => Err(Refusal::NtlmV1),
        _ => Ntlmv2Response::decode(message.nt_response).map_err(|_| Refusal::Malformed),
    }
}

/// ExportedSessionKey, and the flags that both peers negotiated. [MS-NLMP] 3.2.5.1.2
fn exported_session_key(
    key_exchange_key: &Key,
    first: &Challenged,
    message: &Authenticate<'_>,
) -> Result<(Key, Flags), Refusal> {
    let flags = Flags(message.flags.0 & first.flags.0);
    // A client that negotiates neither signing nor sealing may omit the key.
    let needs_key = flags.0 & (Flags::SIGN.0 | Flags::SEAL.0) != 0;
    let is_omitted = !needs_key && message.encrypted_session_key.is_empty();
    if !flags.contains(Flags::KEY_EXCHANGE) || is_omitted {
        return Ok((key_exchange_key.clone(), flags));
    }
    let wrapped = message
        .encrypted_session_key
        .try_into()
        .map_err(|_| Refusal::Malformed)?;
    Ok((exchange(key_exchange_key, wrapped), flags))
}

/// Verifies the MIC of the AUTHENTICATE. [MS-NLMP] 3.2.5.1.2
///
/// The client's proof covers the flag that announces the MIC, so an attacker cannot remove the
/// MIC unnoticed.
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
    config: &AcceptorConfig,
    message: &Authenticate<'_>,
    response: &Ntlmv2Response<'_>,
    name: String,
) -> Result<Established, Refusal> {
    if !may_be_guest(config, &name) {
        return Err(Refusal::BadUser);
    }
    let user = User {
        name,
        domain: lossy(message.domain),
        unix: None,
        kind: UserKind::Guest,
        app_password: None,
    };
    Ok(established(user, &[0; 16], None, message, Some(response)))
}

/// Accepts an anonymous client. Its keys derive from zeros and protect nothing, but a client may
/// require the mechListMIC that they produce.
fn anonymous(
    config: &AcceptorConfig,
    first: &Challenged,
    message: &Authenticate<'_>,
) -> Result<Established, Refusal> {
    if !config.allows_anonymous {
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
        app_password: None,
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
        // Zeros mean: no channel bindings. [MS-NLMP] 2.2.2.1
        channel_bindings: bindings.filter(|bindings| *bindings != [0; 16]),
        workstation: lossy(message.workstation),
    }
}

/// A name for logs; U+FFFD when it is not valid UTF-16.
fn lossy(utf16: &[u8]) -> String {
    text(utf16).unwrap_or_else(|| "\u{fffd}".into())
}
