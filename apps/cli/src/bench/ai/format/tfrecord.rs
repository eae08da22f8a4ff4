//! TFRecord: records of equal length, each an `Example` message with the fields `image` and `size`.

use anyhow::{Context as _, Result, ensure};

use super::content::append_content;

/// Bytes before the message of a record: length and checksum of the length.
const HEAD: usize = 12;
/// Bytes behind the message of a record: its checksum.
const TAIL: usize = 4;

/// Appends a file of `samples` records with random images.
pub(super) fn build(number: u64, samples: u64, dimensions: [u64; 2], out: &mut Vec<u8>) {
    let len = image_bytes(dimensions);
    out.reserve(samples as usize * record_bytes(dimensions));
    for sample in 0..samples {
        let start = out.len();
        out.resize(start + HEAD, 0);
        append_example(number, sample * len as u64, len, out);
        let message = &out[start + HEAD..];
        let (count, crc) = ((message.len() as u64).to_le_bytes(), masked_crc(message));
        out[start..start + 8].copy_from_slice(&count);
        out[start + 8..start + HEAD].copy_from_slice(&masked_crc(&count).to_le_bytes());
        out.extend(crc.to_le_bytes());
    }
}

/// Bytes of each record of a file, so that a reader finds a record without an index.
pub(crate) fn record_bytes(dimensions: [u64; 2]) -> usize {
    let len = image_bytes(dimensions);
    HEAD + example_head(len).len() + len + example_tail(len).len() + TAIL
}

fn image_bytes([rows, columns]: [u64; 2]) -> usize {
    (rows * columns) as usize
}

fn append_example(number: u64, offset: u64, len: usize, out: &mut Vec<u8>) {
    out.extend(example_head(len));
    append_content(number, offset, len, out);
    out.extend(example_tail(len));
}

/// The message before the bytes of the image. Field numbers: `Example.features` 1,
/// `Features.feature` 1 (a map: key 1, value 2), `Feature.bytes_list` 1, `BytesList.value` 1.
fn example_head(image: usize) -> Vec<u8> {
    let tail = example_tail(image).len();
    let value = 1 + varint(image).len() + image;
    let list = 1 + varint(value).len() + value;
    let key = field(1, b"image");
    let entry = key.len() + 1 + varint(list).len() + list;
    let features = 1 + varint(entry).len() + entry + tail;
    let mut head = vec![0x0A];
    head.extend(varint(features));
    head.push(0x0A);
    head.extend(varint(entry));
    head.extend(key);
    head.push(0x12);
    head.extend(varint(list));
    head.push(0x0A);
    head.extend(varint(value));
    head.push(0x0A);
    head.extend(varint(image));
    head
}

/// The message behind the bytes of the image: the map entry `size`. `Feature.int64_list` is field
/// 3, `Int64List.value` field 1 (packed).
fn example_tail(image: usize) -> Vec<u8> {
    let numbers = field(1, &varint(image));
    let feature = field(3, &numbers);
    let entry = [field(1, b"size"), field(2, &feature)].concat();
    field(1, &entry)
}

/// A field of bytes in Protocol Buffers.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    field.extend(varint(bytes.len()));
    field.extend_from_slice(bytes);
    field
}

/// A number in Protocol Buffers: 7 bits per byte.
fn varint(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// The checksum of TFRecord: CRC-32C, rotated and shifted.
fn masked_crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
        .rotate_right(15)
        .wrapping_add(0xA282_EAD8)
}

/// Checks the checksums of all records.
pub(super) fn check(mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        bytes = check_record(bytes).context("TFRecord")?;
    }
    Ok(())
}

/// Checks the first record and returns the bytes behind it.
fn check_record(bytes: &[u8]) -> Result<&[u8]> {
    const TRUNCATED: &str = "a record is truncated";
    let (count, rest) = bytes.split_first_chunk::<8>().context(TRUNCATED)?;
    let (crc, rest) = rest.split_first_chunk::<4>().context(TRUNCATED)?;
    ensure!(
        masked_crc(count) == u32::from_le_bytes(*crc),
        "wrong checksum of the length of a record"
    );
    let len = usize::try_from(u64::from_le_bytes(*count)).context(TRUNCATED)?;
    let (message, rest) = rest.split_at_checked(len).context(TRUNCATED)?;
    let (crc, rest) = rest.split_first_chunk::<4>().context(TRUNCATED)?;
    ensure!(
        masked_crc(message) == u32::from_le_bytes(*crc),
        "wrong checksum of a record"
    );
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_have_the_computed_length() {
        for dimensions in [[1, 1], [10, 12], [338, 338], [2000, 1100]] {
            let mut file = Vec::new();
            build(3, 2, dimensions, &mut file);
            assert_eq!(file.len(), 2 * record_bytes(dimensions), "{dimensions:?}");
        }
    }

    #[test]
    fn a_message_is_an_example() {
        let mut example = Vec::new();
        append_example(0, 0, 2, &mut example);
        let head = [
            0x0A, 0x20, 0x0A, 0x0F, 0x0A, 0x05, b'i', b'm', b'a', b'g', b'e', 0x12, 0x06, 0x0A,
            0x04, 0x0A, 0x02,
        ];
        assert!(example.starts_with(&head), "{example:x?}");
        let tail = [
            0x0A, 0x0D, 0x0A, 0x04, b's', b'i', b'z', b'e', 0x12, 0x05, 0x1A, 0x03, 0x0A, 0x01,
            0x02,
        ];
        assert!(example.ends_with(&tail), "{example:x?}");
        assert_eq!(example.len(), head.len() + 2 + tail.len());
    }

    #[test]
    fn the_checksum_is_the_masked_one() {
        // The check value of CRC-32C.
        assert_eq!(crc32c::crc32c(b"123456789"), 0xE306_9283);
        assert_eq!(masked_crc(b""), 0xA282_EAD8);
    }
}
