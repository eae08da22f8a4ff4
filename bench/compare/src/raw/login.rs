//! NEGOTIATE and SESSION_SETUP of dialect 3.1.1, with NTLMv2 in SPNEGO. [MS-SMB2] 3.2.4.2

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail, ensure};
use auth::{Credentials, FileTime, Framing, Initiator, InitiatorStep};
use crypto::derive::{KeySchedule, channel_signing_key};
use crypto::{PreauthHash, SigningAlgorithm, SigningKey};
use wire::dialect::{Capabilities, Dialect, SecurityMode};
use wire::negotiate_context::{
    self, ContextType, HashAlgorithm, PreauthIntegrity, RawContext, Signing,
};
use wire::{Command, Guid, SessionId, Status, negotiate, session_setup};

use super::connection::{Connection, expect};

/// Maximum number of SESSION_SETUP requests. NTLM in SPNEGO needs fewer.
const LEGS_MAX: u32 = 4;
/// Ticks of 100 ns from 1601 to 1970. [MS-DTYP] 2.3.3
const UNIX_EPOCH_TICKS: u64 = 116_444_736_000_000_000;

/// Logs in. The session is not encrypted. Its key signs the requests that must be signed.
pub(super) fn login(connection: &mut Connection, user: &str, password: &str) -> Result<()> {
    let mut preauth = PreauthHash::new();
    let algorithm = agree(connection, &mut preauth)?;
    let credentials = Credentials::with_password(user, "", password);
    let mut initiator = Initiator::new(credentials, "cifs/bench", Framing::Spnego);
    let mut token = initiator.start(now(), &auth::fresh_entropy())?;
    for _ in 0..LEGS_MAX {
        let (status, reply) = leg(connection, &mut preauth, &token)?;
        match initiator.step(&reply, now(), &auth::fresh_entropy())? {
            InitiatorStep::Continue(next) if status == Status::MORE_PROCESSING_REQUIRED => {
                token = next;
            }
            InitiatorStep::Done(Some(key)) if status == Status::SUCCESS => {
                let key = channel_signing_key(KeySchedule::Smb311(&preauth), &key);
                connection.sign_with(SigningKey::new(algorithm, &key));
                return Ok(());
            }
            _ => bail!("the login ends with {status:?}"),
        }
    }
    bail!("the login does not end")
}

/// Sends NEGOTIATE and returns the signing algorithm.
fn agree(connection: &mut Connection, preauth: &mut PreauthHash) -> Result<SigningAlgorithm> {
    let salt = auth::fresh_entropy();
    // Each connection has its own client GUID: smbd uses one process for all connections of a
    // client.
    let client_guid = *auth::fresh_entropy().first_chunk().context("32 bytes")?;
    let integrity = PreauthIntegrity {
        hash_algorithms: vec![HashAlgorithm::SHA_512],
        salt: &salt,
    };
    let signing = Signing {
        algorithms: crypto::SIGNING_PREFERENCE
            .map(|algorithm| negotiate_context::SigningAlgorithm(algorithm.id()))
            .into(),
    };
    let (integrity, signing) = (integrity.encode(), signing.encode());
    let context = |context_type, data| RawContext { context_type, data };
    let request = negotiate::Request {
        security_mode: SecurityMode::SIGNING_ENABLED,
        capabilities: Capabilities::LARGE_MTU,
        client_guid: Guid(client_guid),
        dialects: vec![Dialect::SMB_3_1_1],
        contexts: vec![
            context(ContextType::PREAUTH_INTEGRITY_CAPABILITIES, &integrity[..]),
            context(ContextType::SIGNING_CAPABILITIES, &signing[..]),
        ],
    };
    connection.put(Command::NEGOTIATE, 0, |message| request.encode(message))?;
    preauth.update(connection.unsent());
    connection.flush()?;
    let answer = connection.receive()?;
    expect(&answer, Status::SUCCESS)?;
    preauth.update(answer.message);
    let response = negotiate::Response::decode(answer.message)?;
    ensure!(
        response.dialect == Dialect::SMB_3_1_1,
        "the server chose {:?}",
        response.dialect
    );
    let mut contexts = response.contexts.iter();
    let chosen = contexts.find(|context| context.context_type == ContextType::SIGNING_CAPABILITIES);
    let Some(chosen) = chosen else {
        return Ok(SigningAlgorithm::AesCmac);
    };
    let algorithms = Signing::decode(chosen.data)?.algorithms;
    let first = algorithms.first().context("the server chose nothing")?;
    SigningAlgorithm::from_id(first.0).context("the server chose what was not offered")
}

/// Sends one SESSION_SETUP. The final response is not hashed, because its signature depends on the
/// hash.
fn leg(
    connection: &mut Connection,
    preauth: &mut PreauthHash,
    token: &[u8],
) -> Result<(Status, Vec<u8>)> {
    let request = session_setup::Request {
        flags: session_setup::RequestFlags::NONE,
        security_mode: SecurityMode::SIGNING_ENABLED,
        capabilities: Capabilities::NONE,
        channel: 0,
        previous_session_id: SessionId(0),
        security_buffer: token,
    };
    connection.put(Command::SESSION_SETUP, 0, |message| request.encode(message))?;
    preauth.update(connection.unsent());
    connection.flush()?;
    let answer = connection.receive()?;
    let (status, session_id) = (answer.header.status, answer.header.session_id);
    ensure!(
        !status.is_error() || status == Status::MORE_PROCESSING_REQUIRED,
        "{status:?}"
    );
    if status == Status::MORE_PROCESSING_REQUIRED {
        preauth.update(answer.message);
    }
    let reply = session_setup::Response::decode(answer.message)?;
    let reply = reply.security_buffer.to_vec();
    connection.session_id = session_id;
    Ok((status, reply))
}

fn now() -> FileTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let ticks = since.map_or(0, |since| since.as_nanos() / 100);
    FileTime(UNIX_EPOCH_TICKS + u64::try_from(ticks).unwrap_or(0))
}
