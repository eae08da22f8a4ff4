//! Samba's client with a QUIC library of its own, 4.23 to 4.25 at least, and how it is known.
//!
//! It cuts each message into pieces of 1,452 bytes, which never fit into a packet, and lets go of a
//! piece only when exactly its bytes are acknowledged at once. Those of messages that span packets
//! never are, so it keeps them all and walks through all of them for each packet that is
//! acknowledged: the time grows with the square of what it has sent, 50 MB in half a minute and
//! 1 GiB in half a day, whoever the server is and however it acknowledges. A message that is one
//! packet is one piece and is let go. Only WRITEs are longer, and those follow MaxWriteSize.

use quinn_proto::VarInt;
use quinn_proto::coding::Codec as _;
use quinn_proto::transport_parameters::TransportParameters;

/// Bytes of a WRITE that fits into the smallest packet of QUIC, also sealed: 1,200 less 29 of the
/// packet's header and tag, 12 of the STREAM frame's header, up to 20 of an ACK, and less 4 of the
/// frame, 52 of the seal and 112 in front of the data of SMB.
pub(super) const WRITE_BYTES: u32 = 960;

/// What it says of itself in each handshake: identifiers and values. RFC 9000 18.2
const PARAMETERS: [(u64, u64); 8] = [
    // max_idle_timeout, milliseconds
    (0x01, 30_000),
    // initial_max_data, initial_max_stream_data of its own, of the other's and of one-way streams
    (0x04, 32 << 16),
    (0x05, 16 << 16),
    (0x06, 16 << 16),
    (0x07, 16 << 16),
    // initial_max_streams, both ways and one way
    (0x08, 100),
    (0x09, 100),
    // active_connection_id_limit
    (0x0e, 7),
];
/// initial_source_connection_id, which everybody makes up.
const SOURCE_ID: u64 = 0x0f;

/// Whether a client that says this of itself is Samba's.
pub(super) fn is_samba(parameters: &TransportParameters) -> bool {
    let mut bytes = Vec::new();
    parameters.write(&mut bytes);
    let said = entries(&bytes).map(|mut said| {
        said.retain(|(id, _)| *id != SOURCE_ID);
        said.sort_unstable();
        said
    });
    said.is_some_and(|said| {
        let integers = said.iter().map(|(id, value)| (*id, integer(value)));
        integers.eq(PARAMETERS.map(|(id, value)| (id, Some(value))))
    })
}

/// Each an identifier, a length and a value.
fn entries(mut bytes: &[u8]) -> Option<Vec<(u64, &[u8])>> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let id = VarInt::decode(&mut bytes).ok()?;
        let length = VarInt::decode(&mut bytes).ok()?;
        let length = usize::try_from(length.into_inner()).ok()?;
        let value = bytes.split_off(..length)?;
        entries.push((id.into_inner(), value));
    }
    Some(entries)
}

fn integer(mut value: &[u8]) -> Option<u64> {
    let number = VarInt::decode(&mut value).ok()?;
    value.is_empty().then_some(number.into_inner())
}

#[cfg(test)]
mod tests {
    use quinn_proto::Side;

    use super::*;

    /// What a client says.
    fn said(entries: &[(u64, u64)]) -> TransportParameters {
        let varint = |value: u64| {
            let mut bytes = Vec::new();
            let value = VarInt::from_u64(value).expect("small");
            value.encode(&mut bytes);
            bytes
        };
        let entry =
            |id: u64, value: &[u8]| [&varint(id)[..], &varint(value.len() as u64), value].concat();
        let mut bytes: Vec<u8> = (entries.iter())
            .flat_map(|&(id, value)| entry(id, &varint(value)))
            .collect();
        bytes.extend(entry(SOURCE_ID, &[7; 8]));
        // One that nobody knows: version_information. RFC 9368 3
        bytes.extend(entry(0x11, &[0, 0, 0, 1]));
        TransportParameters::read(Side::Server, &mut &bytes[..]).expect("good")
    }

    #[test]
    fn samba_is_known_by_all_that_it_says() {
        assert!(is_samba(&said(&PARAMETERS)));
        let mut turned = PARAMETERS;
        turned.reverse();
        assert!(is_samba(&said(&turned)), "the order tells nothing");
        for place in 0..PARAMETERS.len() {
            let mut other = PARAMETERS;
            other[place].1 += 1;
            assert!(!is_samba(&said(&other)), "{other:?}");
            let mut fewer = PARAMETERS.to_vec();
            fewer.remove(place);
            assert!(!is_samba(&said(&fewer)), "{fewer:?}");
        }
        let more = [&PARAMETERS[..], &[(0x0a, 5)]].concat();
        assert!(!is_samba(&said(&more)));
        assert!(!is_samba(&said(&[])));
    }
}
