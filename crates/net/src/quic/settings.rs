//! How connections behave.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use quinn_proto::congestion::{ControllerFactory, Cubic, CubicConfig, NewRenoConfig};
use quinn_proto::{IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};
use ring::UdpBuffers;

use super::congestion::{Bbr, BbrFactory};

/// Bytes of a window: what a small message needs with what is beside it, and what no path is
/// known to hold.
const WINDOWS: RangeInclusive<u32> = 64 << 10..=1 << 30;
/// Bytes of the largest datagram that is tried: what every path takes, and what a frame of the
/// largest loopback does. RFC 9000 14
const DATAGRAMS: RangeInclusive<u16> = 1200..=65_487;
/// The longest silence that is allowed, a day.
const IDLE_MAX: Duration = Duration::from_secs(86_400);

/// How fast a sender goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Congestion {
    /// Takes loss for congestion. RFC 9438
    Cubic,
    /// Measures bandwidth and round trip, and goes on where packets are lost on a path that is
    /// not full.
    #[default]
    Bbr,
    /// Takes loss for congestion, and recovers slowly. RFC 9002 7
    NewReno,
}

impl Congestion {
    const ALL: [Self; 3] = [Self::Cubic, Self::Bbr, Self::NewReno];

    /// Its name in configurations.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
            Self::NewReno => "newreno",
        }
    }

    /// Who decides for that connection.
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

/// Settings of one side of a connection. The default is good for most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes that the peer may have sent and nobody read. At least what the path carries in one
    /// round trip, and in four where packets are lost: what comes after one that was lost waits
    /// for it to come again. 32 MiB are 10 Gbit/s over 27 ms, or with losses 2 Gbit/s over 30 ms.
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
    /// Tells Samba's clients that have a QUIC library of their own of small WRITEs, so that large
    /// files do not take them hours. For a side that listens.
    pub spare_samba: bool,
    /// Bytes that the kernel keeps for each socket and direction.
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
            // What Windows and Samba use.
            idle_timeout: Duration::from_secs(30),
            keep_alive: Some(Duration::from_secs(10)),
            spare_samba: true,
            socket_buffer: 8 << 20,
        }
    }
}

/// What is wrong with settings.
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

    /// Words with commas between them, on top of the default: `congestion=NAME`,
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
                    let bad = || SettingsError(format!("`{word}`: want cubic, bbr or newreno"));
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
                        "`{word}` is none of congestion=NAME, receive-window=KIB, \
                         send-window=KIB, datagram=BYTES, idle-timeout=SECONDS, \
                         keep-alive=SECONDS, keep-alive=off"
                    )));
                }
            }
        }
        settings.checked()
    }
}

/// Bytes of so many KiB, or more than any window may have.
#[must_use]
pub fn kib_to_bytes(kib: u32) -> u32 {
    kib.saturating_mul(1024)
}

impl Settings {
    /// The same, if it can be had.
    ///
    /// # Errors
    /// Which is out of its range.
    pub fn checked(self) -> Result<Self, SettingsError> {
        let bad = |what: String| Err(SettingsError(what));
        if !WINDOWS.contains(&self.receive_window) || !WINDOWS.contains(&self.send_window) {
            let (least, most) = (WINDOWS.start() >> 10, WINDOWS.end() >> 10);
            return bad(format!("windows are {least} to {most} KiB"));
        }
        if !DATAGRAMS.contains(&self.max_datagram) {
            let (least, most) = (DATAGRAMS.start(), DATAGRAMS.end());
            return bad(format!("datagrams are {least} to {most} bytes"));
        }
        if self.idle_timeout.is_zero() || self.idle_timeout > IDLE_MAX {
            return bad(format!(
                "the idle time-out is 1 to {} seconds",
                IDLE_MAX.as_secs()
            ));
        }
        match self.keep_alive {
            Some(time) if time.is_zero() || time >= self.idle_timeout => {
                bad("keep-alive is shorter than the idle time-out, or off".to_owned())
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
    fn what_cannot_be_had_is_refused() {
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
