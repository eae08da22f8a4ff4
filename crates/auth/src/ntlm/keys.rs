//! The hashes, proofs and keys of NTLMv2. [MS-NLMP] 3.3.2, 3.4

use std::fmt;

use crypto::fixed_time_eq;
use md4::{Digest, Md4};
use md5::Md5;
use wire::ntlmssp::{Flags, MIC_LEN, MIC_OFFSET, utf16};
use wire::upcase::upcased;
use zeroize::{Zeroize, Zeroizing};

use crate::mechanism::Integrity;
use crate::ntlm::rc4::Rc4;

/// The NT hash of a password: MD4 over its UTF-16LE form, 16 bytes (NTOWFv1). [MS-NLMP] 3.3.1
///
/// The hash is as secret as the password, because it suffices for a login. Drop overwrites it with
/// zeros.
#[derive(Clone)]
pub struct NtHash([u8; 16]);

/// A key of 16 bytes. Drop overwrites it with zeros.
pub(crate) type Key = Zeroizing<[u8; 16]>;

impl NtHash {
    /// Computes the hash of a password of any length, the empty one included.
    pub fn from_password(password: &str) -> Self {
        let password = Zeroizing::new(utf16(password));
        Self(Md4::digest(password.as_slice()).into())
    }

    /// Parses a hash from 32 hexadecimal digits of either case; `None` for any other text.
    pub fn from_hex(hex: &str) -> Option<Self> {
        let mut hash = [0; 16];
        let digits = hex.as_bytes();
        if digits.len() != 32 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        for (byte, pair) in hash.iter_mut().zip(0_usize..) {
            *byte = u8::from_str_radix(hex.get(2 * pair..2 * pair + 2)?, 16).ok()?;
        }
        Some(Self(hash))
    }

    /// Formats the hash as 32 lower-case hexadecimal digits, for the user file. The digits are as
    /// secret as the password.
    pub fn to_hex(&self) -> Zeroizing<String> {
        let mut hex = Zeroizing::new(String::with_capacity(32));
        for byte in self.0 {
            for digit in [byte >> 4, byte & 15] {
                hex.push(char::from_digit(u32::from(digit), 16).expect("four bits"));
            }
        }
        hex
    }

    /// NTOWFv2: the key of the account for the user and domain names that the client sent.
    /// [MS-NLMP] 3.3.2
    pub(crate) fn response_key(&self, user: &str, domain_utf16: &[u8]) -> Key {
        hmac_md5(&self.0, &[&utf16(&upcased(user)), domain_utf16])
    }
}

impl fmt::Debug for NtHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NtHash(..)")
    }
}

impl Drop for NtHash {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// NTProofStr. [MS-NLMP] 3.3.2
pub(crate) fn nt_proof(response_key: &Key, server_challenge: [u8; 8], client_data: &[u8]) -> Key {
    hmac_md5(&response_key[..], &[&server_challenge, client_data])
}

/// SessionBaseKey, which is also the KeyExchangeKey of NTLMv2. [MS-NLMP] 3.3.2, 3.4.5.1
pub(crate) fn session_base_key(response_key: &Key, proof: &[u8; 16]) -> Key {
    hmac_md5(&response_key[..], &[proof])
}

/// Encrypts or decrypts ExportedSessionKey. [MS-NLMP] 3.1.5.1.2, 3.2.5.1.2
pub(crate) fn exchange(key_exchange_key: &Key, key: &[u8; 16]) -> Key {
    let mut exchanged = Zeroizing::new(*key);
    Rc4::new(&key_exchange_key[..]).apply(&mut exchanged[..]);
    exchanged
}

/// The MIC over the three messages, with zeros in the MIC field of the last. [MS-NLMP] 3.1.5.1.2
pub(crate) fn message_mic(
    exported_session_key: &Key,
    negotiate: &[u8],
    challenge: &[u8],
    authenticate: &[u8],
) -> Key {
    let (before, rest) = authenticate.split_at(MIC_OFFSET);
    let after = &rest[MIC_LEN..];
    let parts = [negotiate, challenge, before, &[0; MIC_LEN], after];
    hmac_md5(&exported_session_key[..], &parts)
}

fn hmac_md5(key: &[u8], parts: &[&[u8]]) -> Key {
    const BLOCK: usize = 64;
    assert!(key.len() <= BLOCK);
    let padded = |pad: u8| {
        let mut block = Zeroizing::new([pad; BLOCK]);
        block
            .iter_mut()
            .zip(key)
            .for_each(|(byte, key)| *byte ^= key);
        Md5::new_with_prefix(&block[..])
    };
    let mut inner = padded(0x36);
    parts.iter().for_each(|part| inner.update(part));
    let outer = padded(0x5c).chain_update(inner.finalize());
    Zeroizing::new(outer.finalize().into())
}

/// The role of this peer in the exchange.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Client,
    Server,
}

/// NTLM message signatures in both directions, for the mechListMIC. [MS-NLMP] 3.4.4.2
pub(crate) struct NtlmIntegrity {
    outbound: Signer,
    inbound: Signer,
}

struct Signer {
    key: Key,
    cipher: Rc4,
    is_encrypted: bool,
    sequence_number: u32,
}

impl NtlmIntegrity {
    pub(crate) fn new(role: Role, exported_session_key: &Key, flags: Flags) -> Self {
        let (outbound, inbound) = match role {
            Role::Client => (&CLIENT_TO_SERVER, &SERVER_TO_CLIENT),
            Role::Server => (&SERVER_TO_CLIENT, &CLIENT_TO_SERVER),
        };
        Self {
            outbound: Signer::new(outbound, exported_session_key, flags),
            inbound: Signer::new(inbound, exported_session_key, flags),
        }
    }
}

impl Integrity for NtlmIntegrity {
    fn sign(&mut self, message: &[u8]) -> Vec<u8> {
        self.outbound.sign(message).to_vec()
    }

    fn verify(&mut self, message: &[u8], mic: &[u8]) -> bool {
        fixed_time_eq(&self.inbound.sign(message), mic)
    }
}

struct Direction {
    signing: &'static [u8],
    sealing: &'static [u8],
}

/// Constants of SIGNKEY and SEALKEY, with their terminating zeros. [MS-NLMP] 3.4.5.2, 3.4.5.3
const CLIENT_TO_SERVER: Direction = Direction {
    signing: b"session key to client-to-server signing key magic constant\0",
    sealing: b"session key to client-to-server sealing key magic constant\0",
};
const SERVER_TO_CLIENT: Direction = Direction {
    signing: b"session key to server-to-client signing key magic constant\0",
    sealing: b"session key to server-to-client sealing key magic constant\0",
};

impl Signer {
    fn new(direction: &Direction, exported_session_key: &Key, flags: Flags) -> Self {
        let strength = match flags {
            _ if flags.contains(Flags::KEY_128) => 16,
            _ if flags.contains(Flags::KEY_56) => 7,
            _ => 5,
        };
        let sealing_key = digest_key(&exported_session_key[..strength], direction.sealing);
        Self {
            key: digest_key(&exported_session_key[..], direction.signing),
            cipher: Rc4::new(&sealing_key[..]),
            is_encrypted: flags.contains(Flags::KEY_EXCHANGE),
            sequence_number: 0,
        }
    }

    /// NTLMSSP_MESSAGE_SIGNATURE with extended session security. [MS-NLMP] 2.2.2.9.2, 3.4.4.2
    fn sign(&mut self, message: &[u8]) -> [u8; 16] {
        let number = self.sequence_number.to_le_bytes();
        self.sequence_number = self.sequence_number.wrapping_add(1);
        let mut signature = [0; 16];
        signature[0] = 1;
        signature[4..12].copy_from_slice(&hmac_md5(&self.key[..], &[&number, message])[..8]);
        signature[12..].copy_from_slice(&number);
        if self.is_encrypted {
            self.cipher.apply(&mut signature[4..12]);
        }
        signature
    }
}

fn digest_key(key: &[u8], magic: &[u8]) -> Key {
    Zeroizing::new(
        Md5::new_with_prefix(key)
            .chain_update(magic)
            .finalize()
            .into(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(value: u128) -> Key {
        Zeroizing::new(value.to_be_bytes())
    }

    /// [MS-NLMP] 4.2.1, 4.2.2.1.1, 4.2.4.1.1
    #[test]
    fn password_hashes_are_those_of_the_specification() {
        let hash = NtHash::from_password("Password");
        assert_eq!(hash.to_hex().as_str(), "a4f49c406510bdcab6824ee7c30fd852");
        let same = NtHash::from_hex("A4F49C406510BDCAB6824EE7C30FD852").expect("hex");
        assert_eq!(
            same.response_key("user", &utf16("Domain")),
            key(0x0c868a40_3bfd7a93_a3001ef2_2ef02e3f)
        );
        assert!(NtHash::from_hex("a4f49c40").is_none());
        assert!(NtHash::from_hex(&"+1".repeat(16)).is_none());
    }

    /// [MS-NLMP] 4.2.4.1.2, 4.2.4.2.3
    #[test]
    fn session_keys_are_those_of_the_specification() {
        let response_key = key(0x0c868a40_3bfd7a93_a3001ef2_2ef02e3f);
        let proof = 0x68cd0ab8_51e51c96_aabc927b_ebef6a1c_u128.to_be_bytes();
        let base = session_base_key(&response_key, &proof);
        assert_eq!(base, key(0x8de40cca_dbc14a82_f15cb0ad_0de95ca3));
        let wrapped = exchange(&base, &[0x55; 16]);
        assert_eq!(wrapped, key(0xc5dad254_4fc97990_94ce1ce9_0bc9d03e));
        assert_eq!(
            exchange(&base, &wrapped),
            key(u128::from_be_bytes([0x55; 16]))
        );
    }

    /// [MS-NLMP] 4.2.4.4: the signature that GSS_WrapEx makes for "Plaintext" has this checksum
    /// once RC4 has passed the 18 bytes of the message.
    #[test]
    fn signing_keys_are_those_of_the_specification() {
        let flags = Flags::KEY_128 | Flags::KEY_EXCHANGE;
        let mut signer = Signer::new(
            &CLIENT_TO_SERVER,
            &key(u128::from_be_bytes([0x55; 16])),
            flags,
        );
        assert_eq!(signer.key, key(0x4788dc86_1b4782f3_5d43fd98_fe1a2d39));
        let mut sealed = utf16("Plaintext");
        signer.cipher.apply(&mut sealed);
        assert_eq!(sealed[..4], [0x54, 0xe5, 0x01, 0x65]);
        let signature = signer.sign(&utf16("Plaintext"));
        assert_eq!(
            signature,
            0x01000000_7fb38ec5_c55d4976_00000000_u128.to_be_bytes()
        );
    }

    /// The two mechListMICs of the session setup in "SMB 2 and SMB 3 security in Windows 10" by
    /// Microsoft.
    #[test]
    fn mech_list_mics_are_those_of_windows() {
        let session_key = key(0x270e1ba8_96585eeb_7af3472d_3b4c75a7);
        let list = b"\x30\x0c\x06\x0a\x2b\x06\x01\x04\x01\x82\x37\x02\x02\x0a";
        let from_client = 0x01000000_63775a9a_5fd97f06_00000000_u128.to_be_bytes();
        let from_server = 0x01000000_3b453cdc_35241642_00000000_u128.to_be_bytes();

        let mut server = NtlmIntegrity::new(Role::Server, &session_key, Flags(0xe288_8215));
        assert!(server.verify(list, &from_client));
        assert_eq!(server.sign(list), from_server);
        let mut client = NtlmIntegrity::new(Role::Client, &session_key, Flags(0xe288_8215));
        assert_eq!(client.sign(list), from_client);
        assert!(client.verify(list, &from_server));
        assert!(
            !client.verify(list, &from_server),
            "a signature is valid once"
        );
    }

    /// Both ends hash the name in upper case, so they must agree on the characters that Windows
    /// changes.
    #[test]
    fn the_response_key_depends_on_the_upper_case_of_windows() {
        let hash = NtHash::from_password("Password");
        let key = |user: &str| *hash.response_key(user, &[]);
        assert_eq!(key("j\u{f6}rg"), key("J\u{d6}RG"));
        assert_ne!(key("y\u{131}ld\u{131}z"), key("YILDIZ"));
        assert_ne!(key("\u{b5}ser"), key("\u{39c}SER"));
    }
}
