//! The NTLMv2 client. [MS-NLMP] 3.1.5

use wire::ntlmssp::{
    Authenticate, AvFlags, AvId, AvPairs, Challenge, Flags, MIC_LEN, MIC_OFFSET, Negotiate,
    Ntlmv2Response, Version, utf16,
};
use wire::spnego::Oid;
use zeroize::Zeroizing;

use crate::login::{Entropy, FileTime};
use crate::mechanism::{
    InitiatorContext, InitiatorError, InitiatorMechanism, InitiatorProgress, InitiatorProvider,
};
use crate::ntlm::keys::{
    Key, NtHash, NtlmIntegrity, Role, exchange, message_mic, nt_proof, session_base_key,
};

/// The credentials that a client authenticates with over NTLM.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// No account: the client logs in as an anonymous user. The session has no key, so its messages
    /// are neither signed nor encrypted.
    Anonymous,
    /// A user name with its domain and the hash of its password.
    User {
        /// User name of the account, as the server knows it.
        name: String,
        /// Name of the account's domain or workgroup; may be empty.
        domain: String,
        /// NT hash (MD4) of the password, which is as secret as the password.
        nt_hash: NtHash,
    },
}

impl Credentials {
    /// Creates the credentials of an account from its password, and stores only the NT hash of the
    /// password. `domain` may be empty.
    pub fn with_password(name: &str, domain: &str, password: &str) -> Self {
        let nt_hash = NtHash::from_password(password);
        Self::User {
            name: name.into(),
            domain: domain.into(),
            nt_hash,
        }
    }
}

/// The flags that the server must grant.
const REQUIRED: Flags =
    Flags(Flags::UNICODE.0 | Flags::EXTENDED_SESSION_SECURITY.0 | Flags::TARGET_INFO.0);

/// The flags that the client requests.
const REQUESTED: Flags = Flags(
    REQUIRED.0
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

impl InitiatorProvider for Credentials {
    fn start(&self, target_name: &str) -> Box<dyn InitiatorMechanism> {
        Box::new(NtlmInitiator::new(self.clone(), target_name))
    }
}

/// The client of one NTLM authentication.
pub(crate) struct NtlmInitiator {
    credentials: Credentials,
    target_name: String,
}

impl NtlmInitiator {
    pub(crate) fn new(credentials: Credentials, target_name: &str) -> Self {
        Self {
            credentials,
            target_name: target_name.into(),
        }
    }
}

impl InitiatorMechanism for NtlmInitiator {
    fn oid(&self) -> Oid<'static> {
        Oid::NTLMSSP
    }

    fn step(
        &mut self,
        token: Option<&[u8]>,
        now: FileTime,
        entropy: &Entropy,
    ) -> Result<InitiatorProgress, InitiatorError> {
        let Some(challenge) = token else {
            return Ok(InitiatorProgress::Continue(negotiate()));
        };
        let Response {
            authenticate,
            exported_session_key,
            integrity,
        } = respond(
            &self.credentials,
            &self.target_name,
            challenge,
            now,
            entropy,
        )?;
        let session_key = match self.credentials {
            Credentials::Anonymous => None,
            Credentials::User { .. } => Some(exported_session_key),
        };
        Ok(InitiatorProgress::Established(Box::new(InitiatorContext {
            token: Some(authenticate),
            session_key,
            integrity: Some(Box::new(integrity)),
        })))
    }
}

/// Encodes the NEGOTIATE message; it does not depend on the credentials. [MS-NLMP] 3.1.5.1.1
fn negotiate() -> Vec<u8> {
    let version = Some(Version::WINDOWS_10);
    Negotiate {
        flags: REQUESTED,
        domain: &[],
        workstation: &[],
        version,
    }
    .encode()
}

/// The client's last message, and its keys after it.
struct Response {
    authenticate: Vec<u8>,
    exported_session_key: Key,
    integrity: NtlmIntegrity,
}

/// Processes a CHALLENGE and creates the AUTHENTICATE. [MS-NLMP] 3.1.5.1.2
fn respond(
    credentials: &Credentials,
    target_name: &str,
    challenge: &[u8],
    now: FileTime,
    entropy: &Entropy,
) -> Result<Response, InitiatorError> {
    let message = Challenge::decode(challenge).map_err(|_| InitiatorError::Malformed)?;
    if !message.flags.contains(REQUIRED) {
        return Err(InitiatorError::Downgrade);
    }
    let flags = Flags(message.flags.0 & REQUESTED.0);
    let proof = Proof::new(credentials, &message, target_name, now, entropy)?;
    let random_key = Zeroizing::new(*entropy[8..].first_chunk().expect("24 bytes are left"));
    let (exported, wrapped) = match flags.contains(Flags::KEY_EXCHANGE) {
        true => (
            random_key.clone(),
            Some(exchange(&proof.session_base_key, &random_key)),
        ),
        false => (proof.session_base_key.clone(), None),
    };
    let mut authenticate = Authenticate {
        flags,
        lm_response: proof.lm_response,
        nt_response: &proof.nt_response,
        domain: &proof.domain,
        user: &proof.user,
        workstation: &[],
        encrypted_session_key: wrapped.as_ref().map_or(&[], |key| &key[..]),
        version: flags
            .contains(Flags::VERSION)
            .then_some(Version::WINDOWS_10),
        mic: Some([0; MIC_LEN]),
    }
    .encode();
    let mic = message_mic(&exported, &negotiate(), challenge, &authenticate);
    authenticate[MIC_OFFSET..MIC_OFFSET + MIC_LEN].copy_from_slice(&mic[..]);
    let integrity = NtlmIntegrity::new(Role::Client, &exported, flags);
    Ok(Response {
        authenticate,
        exported_session_key: exported,
        integrity,
    })
}

/// The fields of an AUTHENTICATE that identify the user and prove the password.
struct Proof {
    user: Vec<u8>,
    domain: Vec<u8>,
    lm_response: &'static [u8],
    nt_response: Vec<u8>,
    session_base_key: Key,
}

impl Proof {
    fn new(
        credentials: &Credentials,
        challenge: &Challenge<'_>,
        target_name: &str,
        now: FileTime,
        entropy: &Entropy,
    ) -> Result<Self, InitiatorError> {
        let Credentials::User {
            name,
            domain,
            nt_hash,
        } = credentials
        else {
            return Ok(Self::anonymous());
        };
        let (timestamp, target_info) = target_info(challenge.target_info, target_name, now)?;
        let client_challenge = *entropy.first_chunk().expect("32 bytes");
        let client_data = Ntlmv2Response::client_data(timestamp, client_challenge, &target_info);
        let domain = utf16(domain);
        let response_key = nt_hash.response_key(name, &domain);
        let proof = nt_proof(&response_key, challenge.server_challenge, &client_data);
        Ok(Self {
            user: utf16(name),
            domain,
            // Zeros replace the LMv2 response. [MS-NLMP] 3.1.5.1.2
            lm_response: &[0; 24],
            nt_response: [&proof[..], &client_data].concat(),
            session_base_key: session_base_key(&response_key, &proof),
        })
    }

    /// The fields of an anonymous user: no name, no proof, one zero byte of LM response.
    /// [MS-NLMP] 3.3.2
    fn anonymous() -> Self {
        Self {
            user: Vec::new(),
            domain: Vec::new(),
            lm_response: &[0],
            nt_response: Vec::new(),
            session_base_key: Zeroizing::new([0; 16]),
        }
    }
}

/// The timestamp and the target info of the response: the server's pairs, then the client's.
/// [MS-NLMP] 3.1.5.1.2
fn target_info(
    from_server: &[u8],
    target_name: &str,
    now: FileTime,
) -> Result<(u64, Vec<u8>), InitiatorError> {
    let mut info = Vec::new();
    let mut timestamp = now.0;
    for pair in AvPairs::new(from_server) {
        let (id, value) = pair.map_err(|_| InitiatorError::Malformed)?;
        match id {
            AvId::FLAGS | AvId::TARGET_NAME | AvId::CHANNEL_BINDINGS => continue,
            AvId::TIMESTAMP => {
                let value = value.try_into().map_err(|_| InitiatorError::Malformed)?;
                timestamp = u64::from_le_bytes(value);
            }
            _ => {}
        }
        AvPairs::push(&mut info, id, value);
    }
    AvPairs::push(&mut info, AvId::FLAGS, &AvFlags::MIC.0.to_le_bytes());
    AvPairs::push(&mut info, AvId::CHANNEL_BINDINGS, &[0; 16]);
    AvPairs::push(&mut info, AvId::TARGET_NAME, &utf16(target_name));
    AvPairs::push(&mut info, AvId::EOL, &[]);
    Ok((timestamp, info))
}
