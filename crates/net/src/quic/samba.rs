//! Detects Samba clients with a slow QUIC library, in Samba 4.23 to 4.25 at least.
//!
//! The client divides each message into pieces of 1,452 bytes, which never fit into one packet. It
//! frees a piece only if one acknowledgement covers exactly its bytes, which never happens for
//! messages of several packets. So it keeps all pieces, and searches all of them for each
//! acknowledgement: its time grows with the square of the sent data. It needs half a minute for
//! 50 MB and half a day for 1 GiB, with every server. A message in one packet is one piece, and is
//! freed. Only WRITEs are longer, and their length follows MaxWriteSize.

use quinn_proto::VarInt;
use quinn_proto::coding::Codec as _;
use quinn_proto::transport_parameters::TransportParameters;

/// Longest WRITE, in bytes, that fits into the smallest packet of QUIC, also when it is encrypted:
/// 1,200 minus 29 for header and tag of the packet, 12 for the STREAM frame, up to 20 for an ACK, 4
/// for the prefix, 52 for the transform header and 112 for SMB in front of the data.
pub(super) const WRITE_BYTES: u32 = 960;

/// The transport parameters of these clients: identifiers and values. RFC 9000 18.2
const PARAMETERS: [(u64, u64); 8] = [
    // max_idle_timeout, milliseconds
    (0x01, 30_000),
    // initial_max_data; initial_max_stream_data of local, remote and unidirectional streams
    (0x04, 32 << 16),
    (0x05, 16 << 16),
    (0x06, 16 << 16),
    (0x07, 16 << 16),
    // initial_max_streams, bidirectional and unidirectional
    (0x08, 100),
    (0x09, 100),
    // active_connection_id_limit
    (0x0e, 7),
];
/// initial_source_connection_id, which is random.
const SOURCE_ID: u64 = 0x0f;

/// Returns true if a client with these transport parameters is such a Samba client.
pub(super) fn is_samba(parameters: &TransportParameters) -> bool {
    let mut bytes = Vec::new();
    parameters.write(&mut bytes);
    let found = entries(&bytes).map(|mut found| {
        found.retain(|(id, _)| *id != SOURCE_ID);
        found.sort_unstable();
        found
    });
    found.is_some_and(|found| {
        let integers = found.iter().map(|(id, value)| (*id, integer(value)));
        integers.eq(PARAMETERS.map(|(id, value)| (id, Some(value))))
    })
}

/// Parses entries of identifier, length and value.
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

    /// The parameters of a client.
    fn parameters(entries: &[(u64, u64)]) -> TransportParameters {
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
        // An unknown parameter: version_information. RFC 9368 3
        bytes.extend(entry(0x11, &[0, 0, 0, 1]));
        TransportParameters::read(Side::Server, &mut &bytes[..]).expect("good")
    }

    #[test]
    fn samba_is_detected_by_all_its_parameters() {
        assert!(is_samba(&parameters(&PARAMETERS)));
        let mut turned = PARAMETERS;
        turned.reverse();
        assert!(is_samba(&parameters(&turned)), "the order does not count");
        for place in 0..PARAMETERS.len() {
            let mut other = PARAMETERS;
            other[place].1 += 1;
            assert!(!is_samba(&parameters(&other)), "{other:?}");
            let mut fewer = PARAMETERS.to_vec();
            fewer.remove(place);
            assert!(!is_samba(&parameters(&fewer)), "{fewer:?}");
        }
        let more = [&PARAMETERS[..], &[(0x0a, 5)]].concat();
        assert!(!is_samba(&parameters(&more)));
        assert!(!is_samba(&parameters(&[])));
    }
}
