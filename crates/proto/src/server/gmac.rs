//! AES-GMAC in sessions of several channels. \[MS-SMB2\] 3.2.4.1.1, 3.3.4.1.1
//!
//! AES-GMAC requires that a key never signs two messages with one nonce, and the nonce is the
//! MessageId with the direction. Session.SigningKey signs messages of several connections, which
//! count their MessageIds separately. So a server chooses one of these defenses for clients that
//! announce MULTI_CHANNEL, and does not sign the refusal of a binding to a session without one.

use crypto::SigningAlgorithm;

/// The server's setting for clients that can use several connections in a session and offer
/// AES-GMAC as their best signing algorithm. AES-GMAC must not use a nonce twice with one key, but
/// these connections share a key and count nonces separately. The setting selects another
/// protection: encryption (default), AES-CMAC, one connection, or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GmacChannels {
    /// The session is encrypted, and its SESSION_SETUP messages are signed with AES-CMAC. A client
    /// that offers no cipher is signed with AES-CMAC. A client that offers no signing algorithm but
    /// AES-GMAC gets one channel without encryption.
    #[default]
    Encrypt,
    /// The session is signed with AES-CMAC. It has one channel if the client does not offer that.
    Cmac,
    /// The session has one channel: the server does not announce MULTI_CHANNEL, and refuses
    /// bindings.
    Single,
    /// The session has several channels that AES-GMAC signs, as with other servers.
    Allow,
}

/// The result of the policy for one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Agreement {
    pub(super) signing: SigningAlgorithm,
    /// Whether the server announces MULTI_CHANNEL.
    pub(super) is_multichannel: bool,
    /// Whether sessions of named users are encrypted.
    pub(super) encrypts: bool,
}

/// What the client offers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offered {
    /// The best algorithm of both peers.
    pub(super) best: SigningAlgorithm,
    /// The best one but AES-GMAC; `None` if the client offers AES-GMAC alone.
    pub(super) other: Option<SigningAlgorithm>,
    pub(super) has_cipher: bool,
}

impl GmacChannels {
    /// The agreement with a client that announces MULTI_CHANNEL.
    pub(super) fn agree(self, offered: Offered) -> Agreement {
        let agreement = |signing, is_multichannel, encrypts| Agreement {
            signing,
            is_multichannel,
            encrypts,
        };
        let Offered {
            best,
            other,
            has_cipher,
        } = offered;
        if best != SigningAlgorithm::AesGmac {
            return agreement(best, true, false);
        }
        match (self, other) {
            (Self::Encrypt, Some(other)) if has_cipher => agreement(other, true, true),
            (Self::Encrypt | Self::Cmac, Some(other)) => agreement(other, true, false),
            (Self::Allow, _) => agreement(best, true, false),
            (Self::Encrypt | Self::Cmac | Self::Single, _) => agreement(best, false, false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFERED: Offered = Offered {
        best: SigningAlgorithm::AesGmac,
        other: Some(SigningAlgorithm::AesCmac),
        has_cipher: true,
    };

    #[test]
    fn the_policy_decides_for_gmac() {
        let agree = |policy: GmacChannels, offered| {
            let Agreement {
                signing,
                is_multichannel,
                encrypts,
            } = policy.agree(offered);
            (signing, is_multichannel, encrypts)
        };
        let (cmac, gmac) = (SigningAlgorithm::AesCmac, SigningAlgorithm::AesGmac);
        let no_cipher = Offered {
            has_cipher: false,
            ..OFFERED
        };
        let gmac_alone = Offered {
            other: None,
            ..OFFERED
        };
        assert_eq!(agree(GmacChannels::Encrypt, OFFERED), (cmac, true, true));
        assert_eq!(agree(GmacChannels::Encrypt, no_cipher), (cmac, true, false));
        assert_eq!(
            agree(GmacChannels::Encrypt, gmac_alone),
            (gmac, false, false)
        );
        assert_eq!(agree(GmacChannels::Cmac, OFFERED), (cmac, true, false));
        assert_eq!(agree(GmacChannels::Cmac, gmac_alone), (gmac, false, false));
        assert_eq!(agree(GmacChannels::Single, OFFERED), (gmac, false, false));
        assert_eq!(agree(GmacChannels::Allow, OFFERED), (gmac, true, false));
    }

    #[test]
    fn other_algorithms_are_kept() {
        let offered = Offered {
            best: SigningAlgorithm::AesCmac,
            ..OFFERED
        };
        let agreed = GmacChannels::Encrypt.agree(offered);
        assert_eq!(agreed.signing, SigningAlgorithm::AesCmac);
        assert!(agreed.is_multichannel && !agreed.encrypts);
    }
}
