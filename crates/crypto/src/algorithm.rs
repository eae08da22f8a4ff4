//! The algorithms, their identifiers on the wire, and the order in which smbeam prefers them.
#![forbid(unsafe_code)]

/// Length in bytes of a signature and of an authentication tag, for every algorithm.
/// [MS-SMB2] 2.2.1, 2.2.41
pub const TAG_LEN: usize = 16;

/// An algorithm that signs SMB2 messages. The client and the server negotiate it. [MS-SMB2]
/// 2.2.3.1.7
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SigningAlgorithm {
    /// HMAC-SHA256, cut to 16 bytes. Dialects 2.0.2 and 2.1 always use it; dialect 3.1.1 can
    /// negotiate it.
    HmacSha256,
    /// AES-128-CMAC. Dialects 3.0 and 3.0.2 always use it; dialect 3.1.1 uses it unless the peers
    /// negotiate another algorithm.
    AesCmac,
    /// AES-128-GMAC. Only dialect 3.1.1 uses it, when the peers negotiate it.
    AesGmac,
}

impl SigningAlgorithm {
    /// Returns the usual name of the algorithm: `HMAC-SHA256`, `AES-CMAC` or `AES-GMAC`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HmacSha256 => "HMAC-SHA256",
            Self::AesCmac => "AES-CMAC",
            Self::AesGmac => "AES-GMAC",
        }
    }

    /// Returns the algorithm with this SigningAlgorithmId of the NEGOTIATE context; `None` for an
    /// unknown identifier. [MS-SMB2] 2.2.3.1.7
    pub const fn from_id(id: u16) -> Option<Self> {
        match id {
            0 => Some(Self::HmacSha256),
            1 => Some(Self::AesCmac),
            2 => Some(Self::AesGmac),
            _ => None,
        }
    }

    /// The SigningAlgorithmId of the algorithm on the wire: 0, 1 or 2. [MS-SMB2] 2.2.3.1.7
    pub const fn id(self) -> u16 {
        match self {
            Self::HmacSha256 => 0,
            Self::AesCmac => 1,
            Self::AesGmac => 2,
        }
    }
}

/// A cipher that encrypts SMB2 messages, in dialect 3.0 and later. [MS-SMB2] 2.2.3.1.2
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cipher {
    /// AES-CCM with a 128-bit key: the only cipher of dialects 3.0 and 3.0.2.
    Aes128Ccm,
    /// AES-GCM with a 128-bit key, in dialect 3.1.1 only.
    Aes128Gcm,
    /// AES-CCM with a 256-bit key, in dialect 3.1.1 only.
    Aes256Ccm,
    /// AES-GCM with a 256-bit key, in dialect 3.1.1 only.
    Aes256Gcm,
}

impl Cipher {
    /// Returns the usual name of the cipher, such as `AES-128-GCM`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes128Ccm => "AES-128-CCM",
            Self::Aes128Gcm => "AES-128-GCM",
            Self::Aes256Ccm => "AES-256-CCM",
            Self::Aes256Gcm => "AES-256-GCM",
        }
    }

    /// Returns the cipher with this identifier of the NEGOTIATE context; `None` for an unknown
    /// identifier. [MS-SMB2] 2.2.3.1.2
    pub const fn from_id(id: u16) -> Option<Self> {
        match id {
            1 => Some(Self::Aes128Ccm),
            2 => Some(Self::Aes128Gcm),
            3 => Some(Self::Aes256Ccm),
            4 => Some(Self::Aes256Gcm),
            _ => None,
        }
    }

    /// The identifier of the cipher on the wire: 1 to 4. [MS-SMB2] 2.2.3.1.2
    pub const fn id(self) -> u16 {
        match self {
            Self::Aes128Ccm => 1,
            Self::Aes128Gcm => 2,
            Self::Aes256Ccm => 3,
            Self::Aes256Gcm => 4,
        }
    }

    /// Length of the cipher's nonce in bytes: 11 for CCM, 12 for GCM. The nonce is the start of the
    /// 16-byte Nonce field of the transform header. [MS-SMB2] 2.2.41
    pub const fn nonce_len(self) -> usize {
        match self {
            Self::Aes128Ccm | Self::Aes256Ccm => 11,
            Self::Aes128Gcm | Self::Aes256Gcm => 12,
        }
    }

    /// Length of the cipher's key in bytes: 16 or 32. [MS-SMB2] 3.1.4.2
    pub const fn key_len(self) -> usize {
        match self {
            Self::Aes128Ccm | Self::Aes128Gcm => 16,
            Self::Aes256Ccm | Self::Aes256Gcm => 32,
        }
    }
}

/// All signing algorithms, the preferred one first. The order is that of their speed: GMAC
/// processes several blocks at once, CMAC one after the other, and HMAC-SHA256 is the slowest on a
/// processor with AES instructions.
pub const SIGNING_PREFERENCE: [SigningAlgorithm; 3] = [
    SigningAlgorithm::AesGmac,
    SigningAlgorithm::AesCmac,
    SigningAlgorithm::HmacSha256,
];

/// All ciphers, the preferred one first: GCM before CCM, because CCM is slower, and 128 before 256
/// bits, as in Windows and Samba.
pub const CIPHER_PREFERENCE: [Cipher; 4] = [
    Cipher::Aes128Gcm,
    Cipher::Aes256Gcm,
    Cipher::Aes128Ccm,
    Cipher::Aes256Ccm,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_round_trip() {
        for algorithm in SIGNING_PREFERENCE {
            assert_eq!(SigningAlgorithm::from_id(algorithm.id()), Some(algorithm));
        }
        for cipher in CIPHER_PREFERENCE {
            assert_eq!(Cipher::from_id(cipher.id()), Some(cipher));
        }
        assert_eq!(SigningAlgorithm::from_id(3), None);
        assert_eq!(Cipher::from_id(0), None);
        assert_eq!(Cipher::from_id(5), None);
    }
}
