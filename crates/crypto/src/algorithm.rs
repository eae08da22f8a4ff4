//! The algorithms, their identifiers on the wire, and the order in which smbeam prefers them.
#![forbid(unsafe_code)]

/// Length in bytes of a signature and of an authentication tag, for every algorithm.
/// [MS-SMB2] 2.2.1, 2.2.41
pub const TAG_LEN: usize = 16;

/// An algorithm for signatures. [MS-SMB2] 2.2.3.1.7
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
    /// The algorithm with this SigningAlgorithmId; `None` for an unknown one. [MS-SMB2] 2.2.3.1.7
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

/// A cipher for encrypted messages. [MS-SMB2] 2.2.3.1.2
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cipher {
    /// AES-128-CCM: the only cipher of dialects 3.0 and 3.0.2.
    Aes128Ccm,
    /// AES-128-GCM.
    Aes128Gcm,
    /// AES-256-CCM.
    Aes256Ccm,
    /// AES-256-GCM.
    Aes256Gcm,
}

impl Cipher {
    /// The cipher with this identifier; `None` for an unknown one. [MS-SMB2] 2.2.3.1.2
    pub const fn from_id(id: u16) -> Option<Self> {
        match id {
            1 => Some(Self::Aes128Ccm),
            2 => Some(Self::Aes128Gcm),
            3 => Some(Self::Aes256Ccm),
            4 => Some(Self::Aes256Gcm),
            _ => None,
        }
    }

    /// The identifier on the wire. [MS-SMB2] 2.2.3.1.2
    pub const fn id(self) -> u16 {
        match self {
            Self::Aes128Ccm => 1,
            Self::Aes128Gcm => 2,
            Self::Aes256Ccm => 3,
            Self::Aes256Gcm => 4,
        }
    }

    /// Length of the nonce in bytes: it is the start of the 16-byte Nonce of the transform header.
    /// [MS-SMB2] 2.2.41
    pub const fn nonce_len(self) -> usize {
        match self {
            Self::Aes128Ccm | Self::Aes256Ccm => 11,
            Self::Aes128Gcm | Self::Aes256Gcm => 12,
        }
    }

    /// Length of the key in bytes. [MS-SMB2] 3.1.4.2
    pub const fn key_len(self) -> usize {
        match self {
            Self::Aes128Ccm | Self::Aes128Gcm => 16,
            Self::Aes256Ccm | Self::Aes256Gcm => 32,
        }
    }
}

/// Every signing algorithm, the preferred one first.
///
/// GMAC computes several blocks at once, CMAC one after the other. HMAC-SHA256 is the slowest on a
/// processor with AES instructions.
pub const SIGNING_PREFERENCE: [SigningAlgorithm; 3] = [
    SigningAlgorithm::AesGmac,
    SigningAlgorithm::AesCmac,
    SigningAlgorithm::HmacSha256,
];

/// Every cipher, the preferred one first: GCM before CCM, because the MAC of CCM is serial,
/// and 128 before 256 bits, as in Windows and Samba.
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
