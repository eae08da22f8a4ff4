//! NPZ: a ZIP archive of NumPy arrays, as `numpy.savez(file, x=sample, y=[0])` writes it.

use anyhow::{Context as _, Result, bail, ensure};

use super::content::append_content;

/// Signatures of the records of a ZIP archive. APPNOTE.TXT 4.3
const LOCAL: u32 = 0x0403_4B50;
const CENTRAL: u32 = 0x0201_4B50;
const END: u32 = 0x0605_4B50;
/// Length of a local header without name and extra field, in bytes.
const LOCAL_LEN: usize = 30;
/// Length of an entry of the directory without its variable fields, in bytes.
const CENTRAL_LEN: usize = 46;
/// Length of the record at the end without a comment, in bytes.
const END_LEN: usize = 22;
/// Version 4.5: 64-bit lengths.
const VERSION: u16 = 45;
/// 1980-01-01, the first date of ZIP.
const DATE: u16 = 0x0021;
/// Length of the 64-bit lengths in a local header, in bytes.
const EXTRA_LEN: u16 = 20;
/// Id of the extra field with 64-bit lengths.
const EXTRA_ID: u16 = 1;
/// A length that is in the extra field.
const IN_EXTRA: u32 = u32::MAX;
/// The header of an array ends at a multiple of this many bytes.
const ALIGNMENT: usize = 64;

/// Appends an archive with a random array `x` of bytes and the label `y`.
pub(super) fn build(number: u64, [rows, columns]: [u64; 2], out: &mut Vec<u8>) {
    let len = (rows * columns) as usize;
    out.reserve(len + 1024);
    let shape = format!("({rows}, {columns}, 1)");
    let x = append_member(out, "x.npy", |out| {
        append_array_header("|u1", &shape, out);
        append_content(number, 0, len, out);
    });
    let y = append_member(out, "y.npy", |out| {
        append_array_header("<i8", "(1,)", out);
        out.extend_from_slice(&0_i64.to_le_bytes());
    });
    append_directory(out, &[x, y]);
}

/// A file in the archive.
struct Member {
    name: &'static str,
    offset: u32,
    crc: u32,
    len: u64,
}

fn append_member(
    out: &mut Vec<u8>,
    name: &'static str,
    content: impl FnOnce(&mut Vec<u8>),
) -> Member {
    let offset = out.len();
    let header = LOCAL_LEN + name.len() + usize::from(EXTRA_LEN);
    out.resize(offset + header, 0);
    content(out);
    let bytes = &out[offset + header..];
    let (crc, len) = (crc32fast::hash(bytes), bytes.len() as u64);
    let mut fields = Vec::with_capacity(header);
    fields.extend(LOCAL.to_le_bytes());
    // Version, flags, method "stored", time, date.
    append_u16s(&mut fields, &[VERSION, 0, 0, 0, DATE]);
    fields.extend(crc.to_le_bytes());
    fields.extend(IN_EXTRA.to_le_bytes());
    fields.extend(IN_EXTRA.to_le_bytes());
    append_u16s(&mut fields, &[name.len() as u16, EXTRA_LEN]);
    fields.extend(name.bytes());
    append_u16s(&mut fields, &[EXTRA_ID, EXTRA_LEN - 4]);
    fields.extend(len.to_le_bytes());
    fields.extend(len.to_le_bytes());
    out[offset..offset + header].copy_from_slice(&fields);
    let offset = u32::try_from(offset).expect("a sample is below 4 GiB");
    Member {
        name,
        offset,
        crc,
        len,
    }
}

/// The header of an array in format version 1.0 of NumPy.
fn append_array_header(kind: &str, shape: &str, out: &mut Vec<u8>) {
    let mut text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
    let magic = b"\x93NUMPY\x01\x00";
    let fixed = magic.len() + 2;
    let padded = (fixed + text.len() + 1).next_multiple_of(ALIGNMENT) - fixed;
    while text.len() + 1 < padded {
        text.push(' ');
    }
    text.push('\n');
    out.extend_from_slice(magic);
    append_u16s(out, &[text.len() as u16]);
    out.extend_from_slice(text.as_bytes());
}

fn append_directory(out: &mut Vec<u8>, members: &[Member]) {
    let start = out.len();
    for member in members {
        let len = u32::try_from(member.len).expect("a sample is below 4 GiB");
        out.extend(CENTRAL.to_le_bytes());
        append_u16s(out, &[VERSION, VERSION, 0, 0, 0, DATE]);
        for field in [member.crc, len, len] {
            out.extend(field.to_le_bytes());
        }
        append_u16s(out, &[member.name.len() as u16, 0, 0, 0, 0]);
        // A regular file with the mode 0600.
        out.extend((0o600_u32 << 16).to_le_bytes());
        out.extend(member.offset.to_le_bytes());
        out.extend(member.name.bytes());
    }
    let len = (out.len() - start) as u32;
    let start = u32::try_from(start).expect("a sample is below 4 GiB");
    let count = members.len() as u16;
    out.extend(END.to_le_bytes());
    append_u16s(out, &[0, 0, count, count]);
    out.extend(len.to_le_bytes());
    out.extend(start.to_le_bytes());
    append_u16s(out, &[0]);
}

fn append_u16s(out: &mut Vec<u8>, fields: &[u16]) {
    for field in fields {
        out.extend(field.to_le_bytes());
    }
}

/// Checks the directory and the CRC-32 of each member, as `numpy.load` does.
pub(super) fn check(bytes: &[u8]) -> Result<()> {
    let end = bytes.len().checked_sub(END_LEN).context("no ZIP archive")?;
    ensure!(
        u32_at(bytes, end)? == END,
        "no directory at the end of the ZIP archive"
    );
    let count = u16_at(bytes, end + 10)?;
    let mut at = u32_at(bytes, end + 16)? as usize;
    ensure!(count > 0, "the ZIP archive is empty");
    for _ in 0..count {
        ensure!(
            u32_at(bytes, at)? == CENTRAL,
            "wrong directory of a ZIP archive"
        );
        check_member(bytes, at)?;
        let fields = [28, 30, 32].map(|field| u16_at(bytes, at + field));
        let [name, extra, comment] = fields;
        at += CENTRAL_LEN + usize::from(name?) + usize::from(extra?) + usize::from(comment?);
    }
    Ok(())
}

/// Checks the content of the member with its entry at `entry`.
fn check_member(bytes: &[u8], entry: usize) -> Result<()> {
    let crc = u32_at(bytes, entry + 16)?;
    let len = u32_at(bytes, entry + 20)?;
    let local = u32_at(bytes, entry + 42)? as usize;
    ensure!(
        len != IN_EXTRA,
        "arrays of 4 GiB and more are not supported"
    );
    ensure!(
        u16_at(bytes, entry + 10)? == 0,
        "compressed arrays are not supported"
    );
    ensure!(
        u32_at(bytes, local)? == LOCAL,
        "wrong header in a ZIP archive"
    );
    let [name, extra] = [26, 28].map(|field| u16_at(bytes, local + field));
    let start = local + LOCAL_LEN + usize::from(name?) + usize::from(extra?);
    let content = bytes.get(start..).and_then(|rest| rest.get(..len as usize));
    let content = content.context("the ZIP archive is truncated")?;
    if crc32fast::hash(content) != crc {
        bail!("wrong CRC-32 of an array in the ZIP archive");
    }
    Ok(())
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16> {
    let field = bytes.get(at..).and_then(<[u8]>::first_chunk::<2>);
    let field = field.context("the ZIP archive is truncated")?;
    Ok(u16::from_le_bytes(*field))
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32> {
    let field = bytes.get(at..).and_then(<[u8]>::first_chunk::<4>);
    let field = field.context("the ZIP archive is truncated")?;
    Ok(u32::from_le_bytes(*field))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_starts_at_a_multiple_of_64_bytes_with_its_shape() {
        let mut header = Vec::new();
        append_array_header("|u1", "(1210, 1210, 1)", &mut header);
        assert_eq!(header.len() % ALIGNMENT, 0);
        assert!(header.starts_with(b"\x93NUMPY\x01\x00\x76\x00{'descr': '|u1', "));
        assert_eq!(header.last(), Some(&b'\n'));
    }

    #[test]
    fn a_file_has_the_array_and_little_more() {
        let mut file = Vec::new();
        build(1, [1210, 1000], &mut file);
        assert!(
            file.len() > 1_210_000 && file.len() < 1_211_000,
            "{}",
            file.len()
        );
        assert_eq!(&file[LOCAL_LEN..LOCAL_LEN + 5], b"x.npy");
    }
}
