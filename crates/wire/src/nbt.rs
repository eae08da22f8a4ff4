//! The framing of SMB messages in a byte stream: a four-byte header before each message, in the
//! format of direct TCP (port 445) or of the NetBIOS session service (port 139). \[MS-SMB2\] 2.1,
//! RFC 1001 and 1002

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::open_enum::open_enum;

/// Length in bytes of the header before each frame, in direct TCP and in the NetBIOS session
/// service.
pub const FRAME_HEADER_LEN: usize = 4;
/// Maximum length in bytes of a message in direct TCP, where the length has 24 bits. \[MS-SMB2\]
/// 2.1
pub const MAX_DIRECT_LEN: u32 = 0x00FF_FFFF;
/// Maximum length in bytes of a message in the NetBIOS session service, where the length has 17
/// bits. RFC 1002 4.3.1
pub const MAX_SESSION_LEN: u32 = 0x0001_FFFF;

/// The header before each SMB message in direct TCP (port 445): a zero byte and a 24-bit length.
/// \[MS-SMB2\] 2.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectHeader {
    /// Length in bytes of the SMB message after the header, at most [`MAX_DIRECT_LEN`].
    pub length: u32,
}

impl DirectHeader {
    /// Decodes the 4-byte header before an SMB message in direct TCP. Fails unless the first byte
    /// is zero.
    pub fn decode(header: [u8; FRAME_HEADER_LEN]) -> Result<Self, DecodeError> {
        let length = u32::from_be_bytes(header);
        match header[0] {
            0 => Ok(Self { length }),
            _ => Err(invalid("StreamProtocolLength", length)),
        }
    }

    /// Encodes the 4-byte header; `None` when the message is longer than [`MAX_DIRECT_LEN`].
    pub fn encode(&self) -> Option<[u8; FRAME_HEADER_LEN]> {
        (self.length <= MAX_DIRECT_LEN).then(|| self.length.to_be_bytes())
    }
}

open_enum! {
    /// The type of a frame in the NetBIOS session service. RFC 1002 4.3.1
    SessionPacketType(u8) {
        /// The frame carries an SMB message.
        MESSAGE = 0x00,
        /// The client requests a session, with the names of server and client.
        REQUEST = 0x81,
        /// The server accepts the session.
        POSITIVE_RESPONSE = 0x82,
        /// The server refuses the session.
        NEGATIVE_RESPONSE = 0x83,
        /// The server redirects the client to another address.
        RETARGET_RESPONSE = 0x84,
        /// The frame is a keep-alive without contents. The receiver ignores it.
        KEEP_ALIVE = 0x85,
    }
}

/// The header before each frame in the NetBIOS session service (port 139). RFC 1002 4.3.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionHeader {
    /// Type of the frame: an SMB message, or a control message such as a session request.
    pub packet_type: SessionPacketType,
    /// Length of the frame after its 4-byte header, in bytes.
    pub length: u32,
}

impl SessionHeader {
    /// Decodes the 4-byte header of a frame in the NetBIOS session service. Fails unless the seven
    /// reserved flags are zero.
    pub fn decode(header: [u8; FRAME_HEADER_LEN]) -> Result<Self, DecodeError> {
        let [packet_type, flags, high, low] = header;
        if flags > 1 {
            return Err(invalid("FLAGS", u32::from(flags)));
        }
        Ok(Self {
            packet_type: SessionPacketType(packet_type),
            length: u32::from_be_bytes([0, flags, high, low]),
        })
    }

    /// Encodes the 4-byte header of the frame; `None` when the frame is longer than
    /// [`MAX_SESSION_LEN`].
    pub fn encode(&self) -> Option<[u8; FRAME_HEADER_LEN]> {
        let [_, flags, high, low] = self.length.to_be_bytes();
        (self.length <= MAX_SESSION_LEN).then_some([self.packet_type.0, flags, high, low])
    }
}

/// Length of a NetBIOS name in bytes: 15 characters and a suffix for the type. RFC 1001 5.2
const NAME_LEN: usize = 16;
/// Length of the encoded first label in bytes: each half of a byte becomes one character. RFC 1001
/// 14.1
const ENCODED_NAME_LEN: u8 = 32;
/// The character for the value 0.
const ZERO_CHAR: u8 = b'A';
/// Maximum length of a label of a scope in bytes. RFC 1002 4.1
const MAX_LABEL_LEN: u8 = 63;
/// Maximum length of an encoded name with its scope in bytes. RFC 1002 4.1
const MAX_ENCODED_LEN: usize = 255;

/// A NetBIOS name: 15 characters, padded with spaces, and a suffix byte for the type of service.
/// RFC 1001 5.2
///
/// An encoded name may have a NetBIOS scope after it, which decoding checks and discards, because
/// no current system uses scopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NetbiosName(pub [u8; NAME_LEN]);

impl NetbiosName {
    /// The suffix byte of the NetBIOS name of a client (workstation service).
    pub const WORKSTATION: u8 = 0x00;
    /// The suffix byte of the NetBIOS name of a file server.
    pub const SERVER: u8 = 0x20;
    /// The NetBIOS name that addresses any file server: "*SMBSERVER".
    pub const ANY_SERVER: Self = Self(*b"*SMBSERVER      ");

    /// Makes a NetBIOS name from `name` in upper case, padded with spaces, and `suffix`, the type
    /// of service, such as [`Self::SERVER`]. `None` when `name` is empty, longer than 15 bytes or
    /// not ASCII.
    pub fn new(name: &str, suffix: u8) -> Option<Self> {
        let mut bytes = [b' '; NAME_LEN];
        let place = bytes[..NAME_LEN - 1].get_mut(..name.len())?;
        if name.is_empty() || !name.is_ascii() {
            return None;
        }
        place.copy_from_slice(name.as_bytes());
        place.make_ascii_uppercase();
        bytes[NAME_LEN - 1] = suffix;
        Some(Self(bytes))
    }

    /// Returns the bytes of the name, without the padding and the suffix.
    pub fn name(&self) -> &[u8] {
        self.0[..NAME_LEN - 1].trim_ascii_end()
    }

    /// Returns the suffix byte: the type of service that the name belongs to.
    pub fn suffix(&self) -> u8 {
        self.0[NAME_LEN - 1]
    }

    /// Decodes a name and its scope. RFC 1001 14.1, RFC 1002 4.1
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let start = reader.position();
        let length = reader.u8("NetBIOS name")?;
        if length != ENCODED_NAME_LEN {
            return Err(invalid("NetBIOS name", u32::from(length)));
        }
        let mut name = [0; NAME_LEN];
        for byte in &mut name {
            let [high, low] = reader.array("NetBIOS name")?;
            *byte = nibble(high)? << 4 | nibble(low)?;
        }
        skip_scope(reader, start)?;
        Ok(Self(name))
    }

    /// Appends the encoded name without a scope.
    fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(ENCODED_NAME_LEN);
        for byte in self.0 {
            out.put(&[ZERO_CHAR + (byte >> 4), ZERO_CHAR + (byte & 0xF)]);
        }
        out.put_u8(0);
    }
}

/// The half byte that a character encodes.
fn nibble(ch: u8) -> Result<u8, DecodeError> {
    let value = ch.wrapping_sub(ZERO_CHAR);
    if value > 0xF {
        return Err(invalid("NetBIOS name", u32::from(ch)));
    }
    Ok(value)
}

/// Skips the labels of a scope, up to the empty label at the end of the name.
fn skip_scope(reader: &mut Reader<'_>, start: usize) -> Result<(), DecodeError> {
    loop {
        let length = reader.u8("NetBIOS scope")?;
        if length == 0 {
            return Ok(());
        }
        reader.skip("NetBIOS scope", usize::from(length))?;
        let is_too_long = reader.position() - start >= MAX_ENCODED_LEN;
        if length > MAX_LABEL_LEN || is_too_long {
            return Err(invalid("NetBIOS scope", u32::from(length)));
        }
    }
}

/// The client's first message in the NetBIOS session service, which requests a session. RFC 1002
/// 4.3.2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionRequest {
    /// NetBIOS name of the server that the client calls.
    pub called: NetbiosName,
    /// NetBIOS name of the calling client.
    pub calling: NetbiosName,
}

impl SessionRequest {
    /// Decodes the two names in a session request: the bytes after its 4-byte header. Fails when a
    /// name is truncated or malformed.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(body);
        Ok(Self {
            called: NetbiosName::read(&mut reader)?,
            calling: NetbiosName::read(&mut reader)?,
        })
    }

    /// Appends the encoded frame of 72 bytes to `out`, with its 4-byte header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put(&[SessionPacketType::REQUEST.0, 0, 0, 68]);
        self.called.encode(out);
        self.calling.encode(out);
    }
}

open_enum! {
    /// The reason for which the server refuses a session of the NetBIOS session service. RFC 1002
    /// 4.3.4
    SessionError(u8) {
        /// No service listens on the called name.
        NOT_LISTENING_ON_CALLED_NAME = 0x80,
        /// No service listens for calls from the calling name.
        NOT_LISTENING_FOR_CALLING_NAME = 0x81,
        /// The called name does not exist.
        CALLED_NAME_NOT_PRESENT = 0x82,
        /// The called name exists, but the server lacks the resources for a session.
        INSUFFICIENT_RESOURCES = 0x83,
        /// Any reason without an own code.
        UNSPECIFIED = 0x8F,
    }
}

/// The server's response to a session request of the NetBIOS session service: it accepts, refuses
/// or redirects the client. RFC 1002 4.3.3 to 4.3.5
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionResponse {
    /// The server accepts the session.
    Positive,
    /// The server refuses the session, for this reason.
    Negative(SessionError),
    /// The server redirects the client to another address.
    Retarget {
        /// The IPv4 address of the other server, in network byte order.
        address: [u8; 4],
        /// The TCP port of the other server.
        port: u16,
    },
}

impl SessionResponse {
    /// Decodes the response from the bytes after a frame header of type `packet_type`. Fails when
    /// the bytes are too short, or the type is not that of a response.
    pub fn decode(packet_type: SessionPacketType, body: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(body);
        match packet_type {
            SessionPacketType::POSITIVE_RESPONSE => Ok(Self::Positive),
            SessionPacketType::NEGATIVE_RESPONSE => {
                let error = SessionError(reader.u8("ERROR_CODE")?);
                Ok(Self::Negative(error))
            }
            SessionPacketType::RETARGET_RESPONSE => Ok(Self::Retarget {
                address: reader.array("RETARGET_IP_ADDRESS")?,
                port: reader.array("PORT").map(u16::from_be_bytes)?,
            }),
            _ => Err(invalid("TYPE", u32::from(packet_type.0))),
        }
    }

    /// Appends the encoded frame to `out`, with its 4-byte header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Positive => out.put(&[SessionPacketType::POSITIVE_RESPONSE.0, 0, 0, 0]),
            Self::Negative(error) => {
                out.put(&[SessionPacketType::NEGATIVE_RESPONSE.0, 0, 0, 1]);
                out.put_u8(error.0);
            }
            Self::Retarget { address, port } => {
                out.put(&[SessionPacketType::RETARGET_RESPONSE.0, 0, 0, 6]);
                out.put(&address);
                out.put(&port.to_be_bytes());
            }
        }
    }
}

/// An encoded keep-alive frame of the NetBIOS session service, which keeps the connection open and
/// needs no response. RFC 1002 4.3.7
pub const KEEP_ALIVE: [u8; FRAME_HEADER_LEN] = [SessionPacketType::KEEP_ALIVE.0, 0, 0, 0];

fn invalid(field: &'static str, value: u32) -> DecodeError {
    DecodeError::Invalid {
        field,
        value: u64::from(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn direct_headers() {
        let header = DirectHeader { length: 0x01_0203 };
        assert_eq!(header.encode(), Some([0, 1, 2, 3]));
        assert_eq!(DirectHeader::decode([0, 1, 2, 3]), Ok(header));
        assert!(DirectHeader::decode([0x85, 0, 0, 0]).is_err());
        let too_long = DirectHeader {
            length: MAX_DIRECT_LEN + 1,
        };
        assert_eq!(too_long.encode(), None);
    }

    #[test]
    fn session_headers_have_17_bits_of_length() {
        let packet_type = SessionPacketType::MESSAGE;
        let header = SessionHeader {
            packet_type,
            length: MAX_SESSION_LEN,
        };
        assert_eq!(header.encode(), Some([0, 1, 0xFF, 0xFF]));
        assert_eq!(SessionHeader::decode([0, 1, 0xFF, 0xFF]), Ok(header));
        let too_long = SessionHeader {
            packet_type,
            length: MAX_SESSION_LEN + 1,
        };
        assert_eq!(too_long.encode(), None);
        assert!(SessionHeader::decode([0, 2, 0, 0]).is_err());
        let keep_alive = SessionHeader::decode(KEEP_ALIVE).expect("a header");
        assert_eq!(keep_alive.packet_type, SessionPacketType::KEEP_ALIVE);
        assert_eq!(keep_alive.length, 0);
    }

    /// Sent by smbclient 4.25.1 to port 139 of a server that the user gave by address.
    const REQUEST: &[u8; 72] = b"\x81\0\0\x44\
        \x20DBDCDHCODACODACODBCACACACACACACA\0\
        \x20FGENCACACACACACACACACACACACACAAA\0";

    #[test]
    fn a_session_request_both_ways() {
        let request = SessionRequest {
            called: NetbiosName::new("127.0.0.1", NetbiosName::SERVER).expect("a name"),
            calling: NetbiosName::new("vm", NetbiosName::WORKSTATION).expect("a name"),
        };
        let mut frame = Vec::new();
        request.encode(&mut frame);
        assert_eq!(frame, REQUEST);
        assert_eq!(SessionRequest::decode(&frame[4..]), Ok(request));
        assert_eq!(request.called.name(), b"127.0.0.1");
        assert_eq!(request.called.suffix(), NetbiosName::SERVER);
        for end in 4..frame.len() {
            assert!(
                SessionRequest::decode(&frame[4..end]).is_err(),
                "{end} bytes"
            );
        }
    }

    #[test]
    fn the_name_of_any_server() {
        let mut encoded = Vec::new();
        NetbiosName::ANY_SERVER.encode(&mut encoded);
        assert_eq!(encoded, b"\x20CKFDENECFDEFFCFGEFFCCACACACACACA\0");
        assert_eq!(
            NetbiosName::new("*smbserver", NetbiosName::SERVER),
            Some(NetbiosName::ANY_SERVER)
        );
    }

    #[test]
    fn names_that_are_none() {
        assert_eq!(NetbiosName::new("", 0), None);
        assert_eq!(NetbiosName::new("sixteen-chars---", 0), None);
        assert_eq!(NetbiosName::new("b\u{FC}ro", 0), None);
        // The length, a character before A, a character after P, a pointer instead of a scope.
        for (at, value) in [(0, 31), (0, 0xC0), (1, b'@'), (2, b'Q'), (33, 0xC0)] {
            let mut body = REQUEST[4..].to_vec();
            body[at] = value;
            assert!(SessionRequest::decode(&body).is_err(), "{value} at {at}");
        }
    }

    #[test]
    fn a_scope_is_passed_over_and_bounded() {
        let mut body = REQUEST[4..37].to_vec();
        body.extend_from_slice(b"\x04corp\x07example\0");
        body.extend_from_slice(&REQUEST[38..]);
        let request = SessionRequest::decode(&body).expect("a request");
        assert_eq!(request.called.name(), b"127.0.0.1");
        assert_eq!(request.calling.name(), b"VM");
        let mut body = REQUEST[4..37].to_vec();
        for _ in 0..100 {
            body.extend_from_slice(b"\x01a");
        }
        let good = [&body, &b"\0"[..], &REQUEST[38..]].concat();
        assert!(SessionRequest::decode(&good).is_ok());
        body.extend_from_slice(&[1, b'a', 1, b'a', 1, b'a', 1, b'a', 1, b'a', 1, b'a']);
        let long = [&body, &body[33..], &b"\0"[..], &REQUEST[38..]].concat();
        assert!(SessionRequest::decode(&long).is_err());
    }

    #[test]
    fn session_responses_both_ways() {
        let responses: [(SessionResponse, &[u8]); 3] = [
            (SessionResponse::Positive, b"\x82\0\0\0"),
            (
                SessionResponse::Negative(SessionError::CALLED_NAME_NOT_PRESENT),
                b"\x83\0\0\x01\x82",
            ),
            (
                SessionResponse::Retarget {
                    address: [192, 0, 2, 1],
                    port: 1390,
                },
                b"\x84\0\0\x06\xC0\0\x02\x01\x05\x6E",
            ),
        ];
        for (response, frame) in responses {
            let mut written = Vec::new();
            response.encode(&mut written);
            assert_eq!(written, frame);
            let packet_type = SessionPacketType(frame[0]);
            assert_eq!(
                SessionResponse::decode(packet_type, &frame[4..]),
                Ok(response)
            );
        }
        assert!(SessionResponse::decode(SessionPacketType::NEGATIVE_RESPONSE, &[]).is_err());
        assert!(SessionResponse::decode(SessionPacketType::RETARGET_RESPONSE, &[0; 5]).is_err());
        assert!(SessionResponse::decode(SessionPacketType::MESSAGE, &[0; 6]).is_err());
    }
}
