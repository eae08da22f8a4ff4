//! NTLMv2 as a client, just enough to log in. [MS-NLMP]
//!
//! Written for the tests alone: a mistake of the crates under test must not cancel itself out here.

use anyhow::{Context as _, Result};
use md4::{Digest as _, Md4};
use md5::Md5;

/// Unicode, request target, NTLM, always sign, extended session security, target info, 128, 56.
const FLAGS: u32 = 0xa088_8205;
const SIGNATURE: &[u8] = b"NTLMSSP\0";
const HMAC_BLOCK_BYTES: usize = 64;
/// The fixed part of an AUTHENTICATE without version and MIC.
const AUTHENTICATE_BYTES: usize = 64;

/// The first message.
pub fn negotiate() -> Vec<u8> {
    [
        SIGNATURE,
        &1_u32.to_le_bytes(),
        &FLAGS.to_le_bytes(),
        &[0; 16],
    ]
    .concat()
}

/// The answer to the server's `challenge`, in which a token of another kind may be around it.
pub fn authenticate(challenge: &[u8], user: &str, password: &str) -> Result<Vec<u8>> {
    let place = challenge
        .windows(SIGNATURE.len())
        .position(|window| window == SIGNATURE);
    let challenge = &challenge[place.context("no NTLMSSP in the token")?..];
    let server_challenge = challenge.get(24..32).context("the challenge is cut")?;
    let target_info = field(challenge, 40)?;
    let mut temp = vec![1, 1, 0, 0, 0, 0, 0, 0];
    temp.extend_from_slice(&time_of(target_info));
    temp.extend_from_slice(b"nonce-18");
    temp.extend_from_slice(&[0; 4]);
    temp.extend_from_slice(target_info);
    temp.extend_from_slice(&[0; 4]);
    let hash: [u8; 16] = Md4::digest(utf16(password)).into();
    let key = hmac_md5(&hash, &[&utf16(&user.to_uppercase())]);
    let proof = hmac_md5(&key, &[server_challenge, &temp]);
    Ok(message(user, &[&proof, temp.as_slice()].concat()))
}

fn message(user: &str, response: &[u8]) -> Vec<u8> {
    let user = utf16(user);
    let lm_response = [0; 24];
    let mut head = [SIGNATURE, &3_u32.to_le_bytes()].concat();
    let mut payload = Vec::new();
    // LM response, NT response, domain, user, workstation, session key.
    for part in [&lm_response[..], response, &[], &user, &[], &[]] {
        let length = u16::try_from(part.len()).unwrap_or(u16::MAX).to_le_bytes();
        let offset = u32::try_from(AUTHENTICATE_BYTES + payload.len()).unwrap_or(u32::MAX);
        head.extend_from_slice(&[length, length].concat());
        head.extend_from_slice(&offset.to_le_bytes());
        payload.extend_from_slice(part);
    }
    head.extend_from_slice(&FLAGS.to_le_bytes());
    assert_eq!(head.len(), AUTHENTICATE_BYTES);
    [head, payload].concat()
}

/// The bytes that the length and offset at `place` of a message name.
fn field(message: &[u8], place: usize) -> Result<&[u8]> {
    let at = |place: usize| message.get(place).copied().map(usize::from);
    let word = |place: usize| Some(at(place)? | at(place + 1)? << 8);
    let length = word(place).context("no length")?;
    let offset = word(place + 4).context("no offset")?;
    message
        .get(offset..offset + length)
        .context("a field lies outside its message")
}

/// The server's time, if it sends it: attribute 7 of the target info.
fn time_of(mut target_info: &[u8]) -> [u8; 8] {
    while let [kind, 0, low, high, rest @ ..] = target_info {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        if let (7, Ok(time)) = (kind, rest[..length].try_into()) {
            return time;
        }
        target_info = &rest[length..];
    }
    [0; 8]
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// HMAC-MD5 with a key of at most a block. [RFC 2104]
fn hmac_md5(key: &[u8], parts: &[&[u8]]) -> [u8; 16] {
    assert!(
        key.len() <= HMAC_BLOCK_BYTES,
        "the key would have to be hashed"
    );
    let padded = |pad: u8| {
        let mut block = [pad; HMAC_BLOCK_BYTES];
        block
            .iter_mut()
            .zip(key)
            .for_each(|(byte, key)| *byte ^= key);
        block
    };
    let mut inner = Md5::new_with_prefix(padded(0x36));
    parts.iter().for_each(|part| inner.update(part));
    Md5::new_with_prefix(padded(0x5c))
        .chain_update(inner.finalize())
        .finalize()
        .into()
}

#[cfg(test)]
mod tests {
    use super::{hmac_md5, utf16};
    use md4::{Digest as _, Md4};

    #[test]
    fn the_example_of_the_specification_gives_its_key() {
        // [MS-NLMP] 4.2.2.1.2 and 4.2.4.1.1: User, Password, Domain.
        let hash: [u8; 16] = Md4::digest(utf16("Password")).into();
        let key = hmac_md5(&hash, &[&utf16("USERDomain")]);
        assert_eq!(
            key,
            [
                0x0c, 0x86, 0x8a, 0x40, 0x3b, 0xfd, 0x7a, 0x93, 0xa3, 0x00, 0x1e, 0xf2, 0x2e, 0xf0,
                0x2e, 0x3f
            ]
        );
    }
}
