//! AES-GMAC in sessions of several channels. \[MS-SMB2\] 3.2.4.1.1, 3.3.4.1.1
//!
//! AES-GMAC requires that a key never signs two messages with one nonce, and the nonce is the
//! MessageId with the direction. Session.SigningKey signs messages of several connections, which
//! count their MessageIds separately. So a server chooses one of these defenses for clients that
//! announce MULTI_CHANNEL, and signs a binding only with a nonce that no other message has.

use alloc::collections::BTreeSet;

use crypto::SigningAlgorithm;
use spin::Mutex;
use wire::MessageId;

/// How many nonces of bindings a session remembers. Further bindings are answered unsigned.
const BINDINGS_MAX: usize = 64;

/// The setting for clients that announce MULTI_CHANNEL and offer AES-GMAC as their best signing
/// algorithm. AES-GMAC must not use a nonce twice with one key, but the connections of a session
/// share a key and count nonces separately. So the server protects such sessions in another way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GmacChannels {
    /// The session is encrypted; SESSION_SETUP is signed with AES-CMAC if the client offers it. A
    /// client that offers no cipher is signed with AES-CMAC. If it offers neither, the session has
    /// one channel.
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
            (Self::Encrypt, _) if has_cipher => agreement(other.unwrap_or(best), true, true),
            (Self::Encrypt | Self::Cmac, Some(other)) => agreement(other, true, false),
            (Self::Allow, _) => agreement(best, true, false),
            (Self::Encrypt | Self::Cmac | Self::Single, _) => agreement(best, false, false),
        }
    }
}

/// The nonces that Session.SigningKey has used for answers to bindings.
#[derive(Debug)]
pub(super) struct BindingNonces {
    /// No message of the first channel with a smaller MessageId is signed with the key: the session
    /// did not exist.
    first_signed: MessageId,
    used: Mutex<BTreeSet<u64>>,
}

impl BindingNonces {
    /// Those of a session that signs the messages of its first channel from a MessageId on.
    pub(super) fn new(first_signed: MessageId) -> Self {
        Self {
            first_signed,
            used: Mutex::new(BTreeSet::new()),
        }
    }

    /// Takes the nonce of an answer on another channel. Returns whether it was unused.
    pub(super) fn take(&self, id: MessageId) -> bool {
        let mut used = self.used.lock();
        id < self.first_signed && used.len() < BINDINGS_MAX && used.insert(id.0)
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
        assert_eq!(agree(GmacChannels::Encrypt, gmac_alone), (gmac, true, true));
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

    #[test]
    fn a_nonce_is_taken_once() {
        let nonces = BindingNonces::new(MessageId(2));
        assert!(nonces.take(MessageId(1)));
        assert!(!nonces.take(MessageId(1)));
        assert!(!nonces.take(MessageId(2)));
        let many = BindingNonces::new(MessageId(1000));
        let taken = (0..1000).filter(|id| many.take(MessageId(*id))).count();
        assert_eq!(taken, BINDINGS_MAX);
    }
}
