//! The further channels of a session, as far as the client knows them before it connects. They
//! decide which signing algorithms the client offers.

use std::net::SocketAddr;

use crypto::SigningAlgorithm;

use crate::options::{Channels, Options};

/// The further channels of a session, as far as they are known before the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Further {
    /// The session has one channel.
    None,
    /// The network interfaces of the server decide.
    Possible,
    /// The client wants several.
    Wanted,
}

impl Further {
    /// The signing algorithms to offer. AES-GMAC does not protect a session of several channels:
    /// see [`may_bind`](proto::client::Session::may_bind).
    pub(crate) fn signing_algorithms(self, wanted: &[SigningAlgorithm]) -> Vec<SigningAlgorithm> {
        let is_offered = |algorithm: &SigningAlgorithm| {
            self != Self::Wanted || *algorithm != SigningAlgorithm::AesGmac
        };
        let offered: Vec<SigningAlgorithm> = wanted.iter().copied().filter(is_offered).collect();
        if offered.is_empty() && !wanted.is_empty() {
            return vec![SigningAlgorithm::AesCmac];
        }
        offered
    }
}

impl Options {
    /// Whether a session with a server at these addresses gets further channels.
    pub(crate) fn expected_channels(
        &self,
        addresses: &[SocketAddr],
        has_rdma: impl Fn() -> bool,
    ) -> Further {
        let is_more = match &self.channels {
            Channels::Auto => false,
            Channels::Exactly(count) => *count > 1,
            Channels::Over(list) => list.len() > 1,
        };
        let is_remote = addresses.iter().any(|address| !is_loopback(*address));
        if is_more || self.moves() && has_rdma() {
            Further::Wanted
        } else if self.channels == Channels::Auto && is_remote {
            Further::Possible
        } else {
            Further::None
        }
    }
}

/// Whether an address is of this machine.
pub(crate) fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Transports;

    #[test]
    fn several_channels_exclude_gmac() {
        let local: SocketAddr = "127.0.0.1:445".parse().expect("an address");
        let remote: SocketAddr = "192.0.2.1:445".parse().expect("an address");
        let expected = |channels: Channels, address, has_rdma| {
            let options = Options::default()
                .transports(Transports::Auto)
                .channels(channels);
            options.expected_channels(&[address], || has_rdma)
        };
        assert_eq!(expected(Channels::Auto, local, false), Further::None);
        assert_eq!(expected(Channels::Auto, remote, false), Further::Possible);
        assert_eq!(expected(Channels::Auto, remote, true), Further::Wanted);
        assert_eq!(expected(Channels::Exactly(1), remote, false), Further::None);
        assert_eq!(
            expected(Channels::Exactly(2), local, false),
            Further::Wanted
        );
        let (cmac, gmac) = (SigningAlgorithm::AesCmac, SigningAlgorithm::AesGmac);
        assert_eq!(Further::Wanted.signing_algorithms(&[gmac, cmac]), [cmac]);
        assert_eq!(Further::Wanted.signing_algorithms(&[gmac]), [cmac]);
        assert_eq!(Further::Wanted.signing_algorithms(&[]), []);
        assert_eq!(
            Further::Possible.signing_algorithms(&[gmac, cmac]),
            [gmac, cmac]
        );
    }
}
