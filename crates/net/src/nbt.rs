//! The NetBIOS session service: a type, flags and a length of 17 bits. RFC 1002 4.3
//!
//! A client first requests a session with a name. Like Samba, the server accepts every server name
//! (suffix 0x20): clients choose the name, and it need not be in DNS. Requests for other services,
//! such as the messenger, receive a negative response.

use wire::nbt::{
    FRAME_HEADER_LEN, NetbiosName, SessionError, SessionHeader, SessionPacketType, SessionRequest,
    SessionResponse,
};

use crate::framing::{FrameError, Next, PREFIX_LEN, message};

const _: () = assert!(PREFIX_LEN == FRAME_HEADER_LEN);

/// Longest session request in bytes: two names with their scopes. RFC 1001 14.1
const MAX_REQUEST: usize = 2 * 256;

pub(crate) fn next(
    prefix: [u8; PREFIX_LEN],
    bytes: &[u8],
    limit: usize,
    is_established: &mut bool,
) -> Result<Next, FrameError> {
    let header = SessionHeader::decode(prefix).map_err(|_| FrameError::UnknownType(prefix[0]))?;
    let len = header.length as usize;
    match header.packet_type {
        SessionPacketType::MESSAGE if *is_established => message(len, limit),
        SessionPacketType::MESSAGE => Err(FrameError::NoSession),
        // RFC 1002 4.3.6: a keep-alive has no body. If one has a body, it is skipped.
        SessionPacketType::KEEP_ALIVE if len <= MAX_REQUEST => control(bytes, len),
        SessionPacketType::REQUEST if len > MAX_REQUEST => Err(FrameError::TooLong {
            len,
            limit: MAX_REQUEST,
        }),
        SessionPacketType::REQUEST if *is_established => {
            Err(FrameError::BadSessionRequest("the session exists already"))
        }
        SessionPacketType::REQUEST => Ok(request(bytes, len, is_established)),
        other => Err(FrameError::UnknownType(other.0)),
    }
}

pub(crate) fn prefix(len: usize) -> Option<[u8; PREFIX_LEN]> {
    let length = u32::try_from(len).ok()?;
    SessionHeader {
        packet_type: SessionPacketType::MESSAGE,
        length,
    }
    .encode()
}

fn control(bytes: &[u8], len: usize) -> Result<Next, FrameError> {
    let consumed = PREFIX_LEN + len;
    if bytes.len() < consumed {
        return Ok(Next::Needs(consumed));
    }
    Ok(Next::Control {
        consumed,
        answer: Vec::new(),
    })
}

fn request(bytes: &[u8], len: usize, is_established: &mut bool) -> Next {
    let consumed = PREFIX_LEN + len;
    let Some(body) = bytes.get(PREFIX_LEN..consumed) else {
        return Next::Needs(consumed);
    };
    let Ok(request) = SessionRequest::decode(body) else {
        let reason = FrameError::BadSessionRequest("the names cannot be read");
        return refuse(SessionError::UNSPECIFIED, reason);
    };
    if request.called.suffix() != NetbiosName::SERVER {
        let name = String::from_utf8_lossy(request.called.name()).into_owned();
        let reason = FrameError::NotListening(name);
        return refuse(SessionError::CALLED_NAME_NOT_PRESENT, reason);
    }
    *is_established = true;
    Next::Control {
        consumed,
        answer: encoded(SessionResponse::Positive),
    }
}

fn refuse(error: SessionError, reason: FrameError) -> Next {
    Next::Refuse {
        answer: encoded(SessionResponse::Negative(error)),
        reason,
    }
}

fn encoded(response: SessionResponse) -> Vec<u8> {
    let mut bytes = Vec::new();
    response.encode(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Framing, Transport};

    fn session_request(called: NetbiosName) -> Vec<u8> {
        let calling = NetbiosName::new("CLIENT", NetbiosName::WORKSTATION).expect("a name");
        let mut bytes = Vec::new();
        SessionRequest { called, calling }.encode(&mut bytes);
        bytes
    }

    #[test]
    fn a_session_is_asked_for_before_messages() {
        let mut framing = Framing::new(Transport::Nbt);
        let message = [0, 0, 0, 5, 1, 2, 3, 4, 5];
        assert_eq!(framing.next(&message, 100), Err(FrameError::NoSession));
        let request = session_request(NetbiosName::ANY_SERVER);
        assert_eq!(
            framing.next(&request[..20], 100),
            Ok(Next::Needs(request.len()))
        );
        let granted = Next::Control {
            consumed: request.len(),
            answer: vec![0x82, 0, 0, 0],
        };
        assert_eq!(framing.next(&request, 100), Ok(granted));
        assert_eq!(framing.next(&message, 100), Ok(Next::Message { len: 5 }));
        assert!(framing.next(&request, 100).is_err());
    }

    #[test]
    fn other_services_get_a_negative_answer() {
        let mut framing = Framing::new(Transport::Nbt);
        let messenger = NetbiosName::new("HOST", 0x03).expect("a name");
        let refused = framing.next(&session_request(messenger), 100);
        let answer = vec![0x83, 0, 0, 1, 0x82];
        assert_eq!(
            refused,
            Ok(Next::Refuse {
                answer,
                reason: FrameError::NotListening("HOST".into())
            })
        );
        let garbage = framing.next(&[0x81, 0, 0, 2, 9, 9], 100);
        assert!(matches!(garbage, Ok(Next::Refuse { answer, .. }) if answer[4] == 0x8F));
    }

    #[test]
    fn keep_alives_are_passed_over() {
        let mut framing = Framing::new(Transport::Nbt);
        let passed = Next::Control {
            consumed: 4,
            answer: Vec::new(),
        };
        assert_eq!(framing.next(&[0x85, 0, 0, 0, 7], 100), Ok(passed));
    }

    #[test]
    fn a_length_has_17_bits() {
        let mut framing = Framing::Nbt {
            is_established: true,
        };
        assert_eq!(
            framing.next(&[0, 1, 0, 2], 1 << 20),
            Ok(Next::Message { len: 0x1_0002 })
        );
        assert!(framing.next(&[0, 2, 0, 2], 1 << 20).is_err());
        assert_eq!(framing.prefix(0x1_FFFF), Some([0, 1, 0xFF, 0xFF]));
        assert_eq!(framing.prefix(0x2_0000), None);
    }
}
