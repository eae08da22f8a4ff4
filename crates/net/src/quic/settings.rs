//! Parameters of QUIC connections.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use quinn_proto::congestion::{ControllerFactory, Cubic, CubicConfig, NewRenoConfig};
use quinn_proto::{IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};
use ring::UdpBuffers;

use super::congestion::{Bbr, BbrFactory};

/// Range of a window in bytes: from the length of a few small messages to more than any known path
/// holds.
const WINDOWS: RangeInclusive<u32> = 64 << 10..=1 << 30;
/// Range of the largest datagram in bytes: from what every path supports to the MTU of a loopback
/// interface. RFC 9000 14
const DATAGRAMS: RangeInclusive<u16> = 1200..=65_487;
/// Largest idle time-out: a day.
const IDLE_MAX: Duration = Duration::from_secs(86_400);

/// Algorithm that controls the sending rate of a QUIC connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Congestion {
    /// CUBIC: treats loss as congestion. RFC 9438
    Cubic,
    /// BBR: measures bandwidth and round-trip time, and keeps the sending rate if packets are lost
    /// on a path that is not full.
    #[default]
    Bbr,
    /// NewReno: treats loss as congestion, and recovers slowly. RFC 9002 7
    NewReno,
}

impl Congestion {
    const ALL: [Self; 3] = [Self::Cubic, Self::Bbr, Self::NewReno];

    /// Returns the name of the controller in configurations: `cubic`, `bbr` or `newreno`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
            Self::NewReno => "newreno",
        }
    }

    /// The controller of a connection.
    pub(super) fn of(connection: &quinn_proto::Connection) -> Self {
        let controller = connection.congestion_state().clone_box().into_any();
        if controller.is::<Bbr>() {
            Self::Bbr
        } else if controller.is::<Cubic>() {
            Self::Cubic
        } else {
            Self::NewReno
        }
    }
}

/// Parameters of one end of a QUIC connection. The defaults fit most networks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Flow control window in bytes: maximum of received bytes that the application has not read,
    /// from 64 KiB to 1 GiB. Default: 32 MiB. It limits the bit rate to the window per round-trip
    /// time, and to about a quarter of that if packets are lost: 10 Gbit/s with 27 ms, with losses
    /// 2 Gbit/s with 30 ms.
    pub receive_window: u32,
    /// Maximum number of sent bytes that the peer has not acknowledged, from 64 KiB to 1 GiB.
    /// Default: 32 MiB.
    pub send_window: u32,
    /// Largest datagram that path MTU discovery tries, from 1200 to 65,487 bytes without the
    /// headers of UDP and IP. A value above the MTU of the path only costs a few lost probes.
    /// Default: 8952.
    pub max_datagram: u16,
    /// Congestion controller of the connection, for the data that this end sends. Default: BBR.
    pub congestion: Congestion,
    /// Time without a packet from the peer after which the connection counts as lost: more than
    /// zero, at most a day. Default: 30 seconds.
    pub idle_timeout: Duration,
    /// Time without a packet after which this end sends a PING; `None` disables it. Must be shorter
    /// than `idle_timeout`. Default: 10 seconds.
    pub keep_alive: Option<Duration>,
    /// Whether the server offers short WRITEs to Samba clients with a slow QUIC library, which need
    /// hours for large files otherwise. A client ignores this. Default: yes.
    pub limit_samba_writes: bool,
    /// Size in bytes of the kernel's receive buffer, and of its send buffer, of each UDP socket.
    /// Default: 8 MiB.
    pub socket_buffer: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            receive_window: 32 << 20,
            send_window: 32 << 20,
            // An Ethernet frame of 9,000 bytes, less the headers of IPv6 and UDP.
            max_datagram: 8952,
            congestion: Congestion::default(),
            // Windows and Samba use the same value.
            idle_timeout: Duration::from_secs(30),
            keep_alive: Some(Duration::from_secs(10)),
            limit_samba_writes: true,
            socket_buffer: 8 << 20,
        }
    }
}

/// The reason why a parameter in [`Settings`] is out of its range, or why its text is malformed.
/// Its `Display` form is a message for users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError(String);

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SettingsError {}

impl FromStr for Settings {
    type Err = SettingsError;

    /// Parses words with commas between them, which change the default: `congestion=NAME`,
    /// `receive-window=KIB`, `send-window=KIB`, `datagram=BYTES`, `idle-timeout=SECONDS`,
    /// `keep-alive=SECONDS` or `keep-alive=off`.
    fn from_str(text: &str) -> Result<Self, SettingsError> {
        let mut settings = Self::default();
        for word in text.split(',').map(str::trim) {
            let number = |text: &str| {
                let bad = |_| SettingsError(format!("`{word}`: `{text}` is not a number"));
                text.parse::<u32>().map_err(bad)
            };
            let seconds = |text: &str| Ok(Duration::from_secs(number(text)?.into()));
            match word.split_once('=').unwrap_or((word, "")) {
                ("congestion", name) => {
                    let found = Congestion::ALL.into_iter().find(|one| one.name() == name);
                    let bad = || SettingsError(format!("`{word}`: use cubic, bbr or newreno"));
                    settings.congestion = found.ok_or_else(bad)?;
                }
                ("receive-window", kib) => settings.receive_window = kib_to_bytes(number(kib)?),
                ("send-window", kib) => settings.send_window = kib_to_bytes(number(kib)?),
                ("datagram", bytes) => {
                    settings.max_datagram = u16::try_from(number(bytes)?).unwrap_or(u16::MAX);
                }
                ("idle-timeout", text) => settings.idle_timeout = seconds(text)?,
                ("keep-alive", "off") => settings.keep_alive = None,
                ("keep-alive", text) => settings.keep_alive = Some(seconds(text)?),
                _ => {
                    return Err(SettingsError(format!(
                        "unknown word `{word}`: use congestion=NAME, receive-window=KIB, \
                         send-window=KIB, datagram=BYTES, idle-timeout=SECONDS, \
                         keep-alive=SECONDS or keep-alive=off"
                    )));
                }
            }
        }
        settings.checked()
    }
}

/// Converts a number of KiB to bytes. Returns 4 GiB less one byte if the result does not fit.
#[must_use]
pub fn kib_to_bytes(kib: u32) -> u32 {
    kib.saturating_mul(1024)
}

impl Settings {
    /// Checks the ranges of all parameters and returns them unchanged.
    ///
    /// # Errors
    /// A parameter is out of its range.
    pub fn checked(self) -> Result<Self, SettingsError> {
        let bad = |what: String| Err(SettingsError(what));
        if !WINDOWS.contains(&self.receive_window) || !WINDOWS.contains(&self.send_window) {
            let (least, most) = (WINDOWS.start() >> 10, WINDOWS.end() >> 10);
            return bad(format!("a window must have {least} to {most} KiB"));
        }
        if !DATAGRAMS.contains(&self.max_datagram) {
            let (least, most) = (DATAGRAMS.start(), DATAGRAMS.end());
            return bad(format!(
                "the largest datagram must have {least} to {most} bytes"
            ));
        }
        if self.idle_timeout.is_zero() || self.idle_timeout > IDLE_MAX {
            return bad(format!(
                "the idle time-out must be 1 to {} seconds",
                IDLE_MAX.as_secs()
            ));
        }
        match self.keep_alive {
            Some(time) if time.is_zero() || time >= self.idle_timeout => {
                bad("the keep-alive time must be shorter than the idle time-out".to_owned())
            }
            _ => Ok(self),
        }
    }

    pub(crate) fn socket(&self) -> UdpBuffers {
        UdpBuffers {
            receive_bytes: self.socket_buffer,
            send_bytes: self.socket_buffer,
        }
    }

    /// The parameters in the form of quinn-proto. The peer may open `streams` streams.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_change_the_default() {
        let text = "congestion=newreno,receive-window=1024, send-window=2048,datagram=1452,\
                    idle-timeout=60,keep-alive=off";
        let wanted = Settings {
            receive_window: 1 << 20,
            send_window: 2 << 20,
            max_datagram: 1452,
            congestion: Congestion::NewReno,
            idle_timeout: Duration::from_secs(60),
            keep_alive: None,
            ..Settings::default()
        };
        assert_eq!(text.parse(), Ok(wanted));
        let five: Settings = "keep-alive=5".parse().expect("good");
        assert_eq!(five.keep_alive, Some(Duration::from_secs(5)));
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for text in [
            "",
            "fast",
            "congestion",
            "congestion=vegas",
            "receive-window=63",
            "send-window=1048577",
            "send-window=4294967295",
            "datagram=1199",
            "datagram=65488",
            "datagram=70000",
            "idle-timeout=0",
            "idle-timeout=86401",
            "idle-timeout=x",
            "keep-alive=0",
            "keep-alive=30",
        ] {
            assert!(text.parse::<Settings>().is_err(), "{text}");
        }
    }
}
