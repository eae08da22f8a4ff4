//! JPEG: a small gray image, with comments that fill the file to its length.
//!
//! DLIO of round v3 writes random bytes of the wanted length into files that it names JPEG. These
//! files have the same length and are valid images as well. The reader does not decode them.

use anyhow::{Context as _, Result, ensure};

use super::content::append_content;

/// Start of image, and a JFIF header of version 1.1.
const START: [u8; 20] = [
    0xFF, 0xD8, 0xFF, 0xE0, 0x00, 0x10, b'J', b'F', b'I', b'F', 0x00, 0x01, 0x01, 0x00, 0x00, 0x01,
    0x00, 0x01, 0x00, 0x00,
];
/// A baseline image of 8 x 8 gray pixels without quantization table: frame, one DC and one AC
/// Huffman code, scan, end of image. ITU-T T.81 B.2
const IMAGE: [u8; 68] = [
    // Frame: 8 bits, 8 x 8 pixels, one component with table 0.
    0xFF, 0xC0, 0x00, 0x0B, 0x08, 0x00, 0x08, 0x00, 0x08, 0x01, 0x01, 0x11, 0x00,
    // DC table 0: one code of one bit, for a difference of 0.
    0xFF, 0xC4, 0x00, 0x14, 0x00, 0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x00,
    // AC table 0: one code of one bit, for the end of a block.
    0xFF, 0xC4, 0x00, 0x14, 0x10, 0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x00,
    // Scan of the component, with the bits 00 and padding.
    0xFF, 0xDA, 0x00, 0x08, 0x01, 0x01, 0x00, 0x00, 0x3F, 0x00, 0x3F,
];
/// End of image.
const END: [u8; 2] = [0xFF, 0xD9];
/// Marker and length of a comment.
const COMMENT_HEAD: usize = 4;
/// Longest content of a comment in bytes.
const COMMENT_MAX: usize = 65_533;
/// Length of a quantization table with its marker.
const TABLE_LEN: usize = 69;

/// Appends a file of `rows` times `columns` bytes, or of the shortest possible length.
pub(super) fn build(number: u64, [rows, columns]: [u64; 2], out: &mut Vec<u8>) {
    let fixed = START.len() + TABLE_LEN + IMAGE.len() + END.len();
    let mut left = ((rows * columns) as usize).saturating_sub(fixed);
    out.extend(START);
    let mut offset = 0;
    while left >= COMMENT_HEAD {
        // A rest that is shorter than a comment joins the last one.
        let len = (left - COMMENT_HEAD).min(COMMENT_MAX - COMMENT_HEAD);
        out.extend([0xFF, 0xFE]);
        out.extend((len as u16 + 2).to_be_bytes());
        append_content(number, offset, len, out);
        offset += len as u64;
        left -= COMMENT_HEAD + len;
    }
    out.extend([0xFF, 0xDB, 0x00, 0x43, 0x00]);
    out.extend([1; 64]);
    out.extend(IMAGE);
    out.extend(END);
    // Decoders ignore bytes behind the end of the image.
    out.extend(vec![0; left]);
}

/// Checks that a file consists of segments up to the scan, and has an end of image.
pub(super) fn check(bytes: &[u8]) -> Result<()> {
    ensure!(bytes.starts_with(&[0xFF, 0xD8]), "not a JPEG file");
    let mut at = 2;
    loop {
        let head = bytes.get(at..).and_then(<[u8]>::first_chunk::<4>);
        let [mark, kind, high, low] = *head.context("the JPEG file is truncated")?;
        ensure!(mark == 0xFF, "wrong segment at byte {at} of the JPEG file");
        let len = u16::from_be_bytes([high, low]);
        ensure!(
            len >= 2,
            "wrong length of a segment at byte {at} of the JPEG file"
        );
        at += 2 + usize::from(len);
        if kind == 0xDA {
            break;
        }
    }
    let scan = bytes.get(at..).context("the JPEG file is truncated")?;
    let has_end = scan.windows(2).any(|two| two == END);
    ensure!(has_end, "the JPEG file has no end of image");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_the_wanted_length() {
        for dimensions in [
            [568, 568],
            [1, 65_533],
            [256, 257],
            [40, 7],
            [1, 164],
            [400, 400],
        ] {
            let mut file = Vec::new();
            build(5, dimensions, &mut file);
            assert_eq!(
                file.len() as u64,
                dimensions[0] * dimensions[1],
                "{dimensions:?}"
            );
            check(&file).expect("a whole file");
        }
        let mut shortest = Vec::new();
        build(5, [1, 1], &mut shortest);
        check(&shortest).expect("a whole file");
    }
}
