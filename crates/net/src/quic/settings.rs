//! How connections behave.

use std::sync::Arc;
use std::time::Duration;

use quinn_proto::congestion::{ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::{IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};
use ring::UdpBuffers;

use super::congestion::BbrFactory;

/// How fast a sender goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Congestion {
    /// Takes loss for congestion. RFC 9438
    #[default]
    Cubic,
    /// Measures bandwidth and round trip: for paths that lose packets without being full.
    Bbr,
    /// Takes loss for congestion, and recovers slowly. RFC 9002 7
    NewReno,
}

/// Settings of one side of a connection. The default is good for most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes that the peer may have sent and nobody read. At least what the path carries in one
    /// round trip: 16 MiB are 10 Gbit/s over 13 ms.
    pub receive_window: u32,
    /// Bytes that are kept until the peer has acknowledged them.
    pub send_window: u32,
    /// Bytes of the largest datagram that is tried, without the headers of UDP and IP. Larger
    /// ones than the path takes cost a few probes.
    pub max_datagram: u16,
    /// How fast it sends.
    pub congestion: Congestion,
    /// Without a word from the peer for so long, it is lost.
    pub idle_timeout: Duration,
    /// After so long without a word, the peer is asked for one. `None`: never.
    pub keep_alive: Option<Duration>,
    /// Bytes that the kernel keeps for each socket and direction.
    pub socket_buffer: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            receive_window: 16 << 20,
            send_window: 16 << 20,
            // An Ethernet frame of 9,000 bytes, less the headers of IPv6 and UDP.
            max_datagram: 8952,
            congestion: Congestion::Cubic,
            // What Windows and Samba use.
            idle_timeout: Duration::from_secs(30),
            keep_alive: Some(Duration::from_secs(10)),
            socket_buffer: 8 << 20,
        }
    }
}

impl Settings {
    pub(crate) fn socket(&self) -> UdpBuffers {
        UdpBuffers {
            receive_bytes: self.socket_buffer,
            send_bytes: self.socket_buffer,
        }
    }

    /// The same in quinn-proto's words. `streams`: that the peer may open.
    pub(crate) fn transport(&self, streams: u32) -> TransportConfig {
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(self.max_datagram);
        let idle = u32::try_from(self.idle_timeout.as_millis()).unwrap_or(u32::MAX);
        let mut config = TransportConfig::default();
        config
            .max_concurrent_bidi_streams(streams.into())
            .max_concurrent_uni_streams(0_u32.into())
            .datagram_receive_buffer_size(None)
            .receive_window(self.receive_window.into())
            .stream_receive_window(self.receive_window.into())
            .send_window(self.send_window.into())
            .mtu_discovery_config(Some(discovery))
            .max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(idle))))
            .keep_alive_interval(self.keep_alive)
            .congestion_controller_factory(self.controller());
        config
    }

    fn controller(&self) -> Arc<dyn ControllerFactory + Send + Sync> {
        match self.congestion {
            Congestion::Cubic => Arc::new(CubicConfig::default()),
            Congestion::Bbr => Arc::new(BbrFactory),
            Congestion::NewReno => Arc::new(NewRenoConfig::default()),
        }
    }
}
