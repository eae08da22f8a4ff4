//! The further channels of a session. \[MS-SMB2\] 3.2.4.20.8

use net::Transport;
use proto::client::Role;
use wire::dialect::{Capabilities, Dialect};

use crate::error::ConnectCause;
use crate::further_channels::is_loopback;
use crate::interfaces::Interface;
use crate::io::message::Target;
use crate::options::Channels;
use crate::session::Session;
use crate::transports::{Way, rdma_addresses, suggest};

impl Session {
    /// Opens further channels according to the options. Fewer channels are not an error.
    pub(crate) async fn open_channels(&self) {
        let options = self.options();
        let first = (self.inner.target.address, self.inner.target.transport);
        let named = options.further_channels(first);
        if named.is_empty() && !options.asks_for_interfaces() {
            return;
        }
        if !self.can_bind() {
            if !named.is_empty() {
                tracing::info!(
                    host = self.host(),
                    "the session stays on one channel: the server or the signing algorithm \
                     allows no other"
                );
            }
            return;
        }
        if options.asks_for_interfaces() && (options.moves() || !is_loopback(first.0)) {
            let interfaces = self.interfaces().await.unwrap_or_default();
            if options.moves() && self.move_to_rdma(&interfaces).await {
                return;
            }
            let suggested = match (&options.channels, first.1) {
                (Channels::Auto, transport) if !is_loopback(first.0) => {
                    let addresses = suggest(first.0, &interfaces).into_iter();
                    addresses.map(|address| (address, transport)).collect()
                }
                _ => Vec::new(),
            };
            self.bind_all(&suggested).await;
        }
        self.bind_all(&named).await;
    }

    /// Opens channels one after the other. A server that refuses one channel refuses all; a route
    /// that does not connect is not tried twice.
    async fn bind_all(&self, ways: &[Way]) {
        let mut closed = Vec::new();
        for way in ways {
            if closed.contains(way) {
                continue;
            }
            if let Err(cause) = self.bind(*way).await {
                let (address, transport) = way;
                tracing::warn!(host = self.host(), %address, %transport, error = %cause,
                    "no further channel");
                match cause {
                    ConnectCause::Io(_) => closed.push(*way),
                    ConnectCause::Violation(_) => return,
                }
            }
        }
    }

    async fn bind(&self, way: Way) -> Result<(), ConnectCause> {
        let target = with_way(&self.inner.target, way);
        let current = self.dispatch().current_session();
        let role = Role::Binding(current.expect("the first channel has set it"));
        self.inner.client.inner.open(target, role).await
    }

    /// Opens channels by SMB Direct if both ends support it, and prefers them: first one to each
    /// address that accepts it on either port, then further ones up to the wanted count.
    async fn move_to_rdma(&self, interfaces: &[Interface]) -> bool {
        let mut ways = Vec::new();
        for ports in rdma_addresses(interfaces) {
            for address in ports {
                let way = (address, Transport::SmbDirect);
                match self.bind(way).await {
                    Ok(()) => {
                        ways.push(way);
                        break;
                    }
                    Err(error) => {
                        tracing::debug!(host = self.host(), %address, %error, "no SMB Direct");
                    }
                }
            }
        }
        if ways.is_empty() {
            return false;
        }
        self.dispatch().prefer(Transport::SmbDirect);
        let options = &self.inner.client.inner.options;
        let count = options.rdma_channels(ways.len());
        let further = count.saturating_sub(ways.len());
        let more: Vec<Way> = ways.iter().copied().cycle().take(further).collect();
        self.bind_all(&more).await;
        true
    }

    fn can_bind(&self) -> bool {
        let negotiated = &self.negotiated().negotiated;
        negotiated.dialect.0 >= Dialect::SMB_3_0.0
            && negotiated
                .capabilities
                .contains(Capabilities::MULTI_CHANNEL)
            && self.negotiated().may_bind()
    }
}

/// The target of the same session over another route.
fn with_way(target: &Target, (address, transport): Way) -> Target {
    Target {
        address,
        transport,
        ..target.clone()
    }
}
