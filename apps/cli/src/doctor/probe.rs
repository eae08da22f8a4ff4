//! A NEGOTIATE without a login, which shows what a server offers: dialect, protection and clock.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant, SystemTime};

use wire::dialect::{Capabilities, Dialect, SecurityMode};
use wire::header::{Flags, HEADER_LEN, Header, Target};
use wire::negotiate::{Request, Response};
use wire::negotiate_context::{
    Cipher, ContextType, Encryption, HashAlgorithm, PreauthIntegrity, RawContext, Signing,
    SigningAlgorithm,
};
use wire::{Command, Guid, MessageId, SessionId, Status, TreeId, smb1};

/// Longest response in bytes that is read.
const RESPONSE_MAX: usize = 64 << 10;
/// Dialects of SMB 1 that old servers know.
const OLD_DIALECTS: [&[u8]; 2] = [b"NT LM 0.12", b"LANMAN2.1"];

/// What a server offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    pub(super) dialect: Dialect,
    pub(super) requires_signing: bool,
    /// Name of the cipher; `None` if the server offers none.
    pub(super) cipher: Option<String>,
    pub(super) guid: Guid,
    pub(super) capabilities: Capabilities,
    /// Time of the server in seconds minus that of this machine.
    pub(super) clock_difference: i64,
    pub(super) round_trip: Duration,
}

/// The answer of a server to NEGOTIATE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The server speaks SMB 2 or 3.
    Offer(Offer),
    /// The server refuses the negotiation.
    Refused(Status),
    /// The server speaks SMB 1 only.
    OnlySmb1,
    /// The answer is not one of SMB, or there is none: the reason.
    NotSmb(String),
}

/// Negotiates on a new connection over direct TCP. Each step has the time limit.
pub(super) fn negotiate(address: SocketAddr, limit: Duration) -> Answer {
    match exchange(address, &request(), limit) {
        Ok((message, round_trip)) => read(&message, round_trip),
        Err(error) => match speaks_smb1(address, limit) {
            true => Answer::OnlySmb1,
            false => Answer::NotSmb(error.to_string()),
        },
    }
}

fn read(message: &[u8], round_trip: Duration) -> Answer {
    if message.starts_with(&smb1::PROTOCOL_ID) {
        return Answer::OnlySmb1;
    }
    let header = match Header::decode(message) {
        Ok(header) => header,
        Err(error) => return Answer::NotSmb(format!("its answer is not SMB: {error}")),
    };
    if header.status != Status::SUCCESS {
        return Answer::Refused(header.status);
    }
    match Response::decode(message) {
        Ok(response) => Answer::Offer(offer(&response, round_trip)),
        Err(error) => Answer::NotSmb(format!("its NEGOTIATE response is malformed: {error}")),
    }
}

fn offer(response: &Response<'_>, round_trip: Duration) -> Offer {
    let of_context = response.contexts.iter().find_map(|context| {
        let is_cipher = context.context_type == ContextType::ENCRYPTION_CAPABILITIES;
        let ciphers = Encryption::decode(context.data)
            .ok()
            .filter(|_| is_cipher)?;
        let chosen = ciphers.ciphers.first()?;
        (chosen.0 != 0).then(|| cipher_name(*chosen))
    });
    // In 3.0 and 3.0.2 the capability stands for AES-128-CCM. [MS-SMB2] 2.2.4
    let has_capability = response.capabilities.contains(Capabilities::ENCRYPTION)
        && response.dialect != Dialect::SMB_3_1_1;
    Offer {
        dialect: response.dialect,
        requires_signing: response
            .security_mode
            .contains(SecurityMode::SIGNING_REQUIRED),
        cipher: of_context.or_else(|| has_capability.then(|| "AES-128-CCM".to_owned())),
        guid: response.server_guid,
        capabilities: response.capabilities,
        clock_difference: seconds(response.system_time.0) - now(),
        round_trip,
    }
}

fn cipher_name(cipher: Cipher) -> String {
    let known = smbeam_client::Cipher::from_id(cipher.0);
    known.map_or_else(
        || format!("cipher {}", cipher.0),
        |known| known.name().to_owned(),
    )
}

/// A time of Windows in seconds since 1970. \[MS-DTYP\] 2.3.3
fn seconds(time: u64) -> i64 {
    const EPOCH: i64 = 11_644_473_600;
    i64::try_from(time / 10_000_000).unwrap_or(i64::MAX) - EPOCH
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_secs()).unwrap_or(i64::MAX)
}

fn request() -> Vec<u8> {
    let integrity = PreauthIntegrity {
        hash_algorithms: vec![HashAlgorithm::SHA_512],
        salt: &[0x5A; 32],
    };
    let encryption = Encryption {
        ciphers: vec![
            Cipher::AES_128_GCM,
            Cipher::AES_128_CCM,
            Cipher::AES_256_GCM,
            Cipher::AES_256_CCM,
        ],
    };
    let signing = Signing {
        algorithms: vec![SigningAlgorithm::AES_GMAC, SigningAlgorithm::AES_CMAC],
    };
    let data = [
        (
            ContextType::PREAUTH_INTEGRITY_CAPABILITIES,
            integrity.encode(),
        ),
        (ContextType::ENCRYPTION_CAPABILITIES, encryption.encode()),
        (ContextType::SIGNING_CAPABILITIES, signing.encode()),
    ];
    let contexts = data.iter().map(|(context_type, data)| RawContext {
        context_type: *context_type,
        data,
    });
    let request = Request {
        security_mode: SecurityMode::SIGNING_ENABLED,
        capabilities: Capabilities::ENCRYPTION | Capabilities::LARGE_MTU,
        // Servers do not remember the client of a connection without a login.
        client_guid: Guid([0x5A; 16]),
        dialects: vec![
            Dialect::SMB_2_0_2,
            Dialect::SMB_2_1,
            Dialect::SMB_3_0,
            Dialect::SMB_3_0_2,
            Dialect::SMB_3_1_1,
        ],
        contexts: contexts.collect(),
    };
    let header = Header {
        credit_charge: 0,
        status: Status::SUCCESS,
        command: Command::NEGOTIATE,
        credits: 1,
        flags: Flags(0),
        next_command: 0,
        message_id: MessageId(0),
        target: Target::Sync {
            process_id: 0,
            tree_id: TreeId(0),
        },
        session_id: SessionId(0),
        signature: [0; 16],
    };
    let mut message = Vec::new();
    header.encode(&mut message);
    assert_eq!(message.len(), HEADER_LEN, "the body follows its header");
    request.encode(&mut message);
    message
}

/// Whether the server answers a NEGOTIATE of SMB 1.
fn speaks_smb1(address: SocketAddr, limit: Duration) -> bool {
    let request = smb1::encode_negotiate(&OLD_DIALECTS);
    let answer = exchange(address, &request, limit);
    answer.is_ok_and(|(message, _)| message.starts_with(&smb1::PROTOCOL_ID))
}

/// Sends a message and returns the answer, with the time from the one to the other.
fn exchange(
    address: SocketAddr,
    message: &[u8],
    limit: Duration,
) -> io::Result<(Vec<u8>, Duration)> {
    let mut stream = TcpStream::connect_timeout(&address, limit)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(limit))?;
    stream.set_write_timeout(Some(limit))?;
    let length = u32::try_from(message.len()).map_err(io::Error::other)?;
    let mut frame = length.to_be_bytes().to_vec();
    frame.extend_from_slice(message);
    let start = Instant::now();
    stream.write_all(&frame)?;
    let answer = receive(&mut stream, start + limit)?;
    Ok((answer, start.elapsed()))
}

/// Receives a frame of direct TCP. \[MS-SMB2\] 2.1
fn receive(stream: &mut TcpStream, deadline: Instant) -> io::Result<Vec<u8>> {
    let mut prefix = [0; 4];
    fill(stream, &mut prefix, deadline)?;
    let [0, high, middle, low] = prefix else {
        return Err(io::Error::other("its answer is not a frame of SMB"));
    };
    let length = u32::from_be_bytes([0, high, middle, low]) as usize;
    if length > RESPONSE_MAX {
        return Err(io::Error::other("its answer is too long for SMB"));
    }
    let mut message = vec![0; length];
    fill(stream, &mut message, deadline)?;
    Ok(message)
}

fn fill(stream: &mut TcpStream, mut bytes: &mut [u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(bytes) {
            Ok(0) => {
                return Err(io::Error::other(
                    "it closes the connection before an answer",
                ));
            }
            Ok(count) => bytes = &mut bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::Error::other("it does not answer in time"));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(1);

    #[test]
    fn answers_of_other_protocols_are_recognized() {
        assert_eq!(read(b"\xFFSMBr", ROUND_TRIP), Answer::OnlySmb1);
        let other = read(b"HTTP/1.1 400 Bad Request", ROUND_TRIP);
        assert!(matches!(other, Answer::NotSmb(_)), "{other:?}");
    }

    #[test]
    fn the_request_is_one_of_smb_3() {
        let message = request();
        let header = Header::decode(&message).expect("a header");
        assert_eq!(header.command, Command::NEGOTIATE);
        let request = Request::decode(&message).expect("a body");
        assert_eq!(request.dialects.last(), Some(&Dialect::SMB_3_1_1));
        assert_eq!(request.contexts.len(), 3);
    }

    #[test]
    fn times_of_windows_are_seconds() {
        assert_eq!(seconds(116_444_736_000_000_000), 0);
        assert_eq!(seconds(116_444_736_010_000_000), 1);
    }
}
