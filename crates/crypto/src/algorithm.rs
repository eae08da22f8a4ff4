//! The algorithms by name, their numbers on the wire, and the order in which we prefer them.
#![forbid(unsafe_code)]

/// Bytes of a signature and of an authentication tag, whatever the algorithm.
/// [MS-SMB2] 2.2.1, 2.2.41
pub const TAG_LEN: usize = 16;

/// How messages are signed. [MS-SMB2] 2.2.3.1.7
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SigningAlgorithm {
    /// HMAC-SHA256, cut to 16 bytes: dialects 2.0.2 and 2.1, and by negotiation.
    HmacSha256,
    /// AES-128-CMAC: dialects 3.0 and 3.0.2, and 3.1.1 unless negotiated otherwise.
    AesCmac,
    /// AES-128-GMAC: dialect 3.1.1 by negotiation.
    AesGmac,
}

impl SigningAlgorithm {
    /// The algorithm with this SigningAlgorithmId, if we know it. [MS-SMB2] 2.2.3.1.7
    pub const fn from_id(id: u16) -> Option<Self> {
        match id {
            0 => Some(Self::HmacSha256),
            1 => Some(Self::AesCmac),
            2 => Some(Self::AesGmac),
            _ => None,
        }
    }

    /// The SigningAlgorithmId on the wire. [MS-SMB2] 2.2.3.1.7
    pub const fn id(self) -> u16 {
        match self {
            Self::HmacSha256 => 0,
            Self::AesCmac => 1,
            Self::AesGmac => 2,
        }
    }
}

/// How messages are sealed. [MS-SMB2] 2.2.3.1.2
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cipher {
    /// AES-128-CCM: the only one of dialects 3.0 and 3.0.2.
    Aes128Ccm,
    /// AES-128-GCM.
    Aes128Gcm,
    /// AES-256-CCM.
    Aes256Ccm,
    /// AES-256-GCM.
    Aes256Gcm,
}

impl Cipher {
    /// The cipher with this id, if we know it. [MS-SMB2] 2.2.3.1.2
    pub const fn from_id(id: u16) -> Option<Self> {
        match id {
            1 => Some(Self::Aes128Ccm),
            2 => Some(Self::Aes128Gcm),
            3 => Some(Self::Aes256Ccm),
            4 => Some(Self::Aes256Gcm),
            _ => None,
        }
    }

    /// The id on the wire. [MS-SMB2] 2.2.3.1.2
    pub const fn id(self) -> u16 {
        match self {
            Self::Aes128Ccm => 1,
            Self::Aes128Gcm => 2,
            Self::Aes256Ccm => 3,
            Self::Aes256Gcm => 4,
        }
    }

    /// Bytes of the nonce: the first of the 16 in the transform header. [MS-SMB2] 2.2.41
    pub const fn nonce_len(self) -> usize {
        match self {
            Self::Aes128Ccm | Self::Aes256Ccm => 11,
            Self::Aes128Gcm | Self::Aes256Gcm => 12,
        }
    }

    /// Bytes of the key. [MS-SMB2] 3.1.4.2
    pub const fn key_len(self) -> usize {
        match self {
            Self::Aes128Ccm | Self::Aes128Gcm => 16,
            Self::Aes256Ccm | Self::Aes256Gcm => 32,
        }
    }
}

/// Best first. GMAC runs several blocks at once, CMAC one after the other; HMAC-SHA256 is the
/// slowest where the processor has AES instructions.
pub const SIGNING_PREFERENCE: [SigningAlgorithm; 3] = [
    SigningAlgorithm::AesGmac,
    SigningAlgorithm::AesCmac,
    SigningAlgorithm::HmacSha256,
];

/// Best first: GCM before CCM, whose MAC is serial; 128 before 256 bits, as Windows and Samba do.
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
