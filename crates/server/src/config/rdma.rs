//! `[rdma]`: devices and timing of SMB Direct connections.

use std::path::PathBuf;
use std::time::Duration;

use net::smbdirect::Settings;
use rdma::Choice;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::{Check, Config, ConfigError, unplaced};

/// Largest `busy_poll_us`: 10 ms.
const BUSY_POLL_MAX: u32 = 10_000;
/// Largest `moderation_us`: a longer delay is noticeable for each request.
const MODERATION_MAX: u32 = 1_000;
/// Number of completions that cause an event at once, before the time of `moderation_us` is over.
const MODERATION_COUNT: u16 = 16;

/// The section `[rdma]` of the configuration: devices and timing of SMB Direct connections.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RdmaSection {
    /// Kind of the RDMA devices: real or emulated. `None` (the default) stands for the devices of
    /// this machine.
    #[schemars(with = "Option<RdmaProvider>")]
    pub provider: Option<Spanned<RdmaProvider>>,
    /// Directory with the sockets of emulated devices; clients on this machine must use the same
    /// directory. Required with the provider `emulated`; otherwise `None`.
    pub directory: Option<PathBuf>,
    /// Microseconds that a worker continues to poll a queue pair after its last completion before
    /// it waits for an interrupt, at most 10,000. Default: 0.
    #[schemars(with = "u32")]
    pub busy_poll_us: Spanned<u32>,
    /// Microseconds that a completion event is delayed to report several completions at once, at
    /// most 1000; 0 for none. Default: 8.
    #[schemars(with = "u32")]
    pub moderation_us: Spanned<u32>,
    /// Milliseconds without a message from the client before the server sends a keep-alive message.
    /// Must be more than 0. Default: 120,000.
    #[schemars(with = "u64")]
    pub keep_alive_interval_ms: Spanned<u64>,
    /// Milliseconds that the client has to answer a keep-alive message, before the server closes
    /// the connection. Must be more than 0. Default: 5000.
    #[schemars(with = "u64")]
    pub keep_alive_timeout_ms: Spanned<u64>,
}

impl Default for RdmaSection {
    fn default() -> Self {
        Self {
            provider: None,
            directory: None,
            busy_poll_us: unplaced(0),
            moderation_us: unplaced(8),
            keep_alive_interval_ms: unplaced(120_000),
            keep_alive_timeout_ms: unplaced(5_000),
        }
    }
}

/// The value of `rdma.provider`: the kind of the RDMA devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RdmaProvider {
    /// The RDMA devices of this machine, through librdmacm and libibverbs.
    #[default]
    Verbs,
    /// Devices that the processes emulate in software, for tests with clients on the same machine.
    Emulated,
}

impl RdmaSection {
    fn wanted(&self) -> RdmaProvider {
        let provider = self.provider.as_ref();
        provider.map_or(RdmaProvider::Verbs, |provider| *provider.get_ref())
    }
}

impl Config {
    /// Returns the provider of RDMA devices that the section `[rdma]` selects: the devices of this
    /// machine, or emulated devices with their directory.
    pub fn rdma(&self) -> Choice {
        match (self.rdma.wanted(), &self.rdma.directory) {
            (RdmaProvider::Emulated, Some(directory)) => Choice::Emulated(directory.clone()),
            _ => Choice::Verbs,
        }
    }

    /// Sets the provider of RDMA devices to `choice`, for a configuration that does not come from a
    /// file.
    pub fn set_rdma(&mut self, choice: Choice) {
        let (provider, directory) = match choice {
            Choice::Verbs => (RdmaProvider::Verbs, None),
            Choice::Emulated(directory) => (RdmaProvider::Emulated, Some(directory)),
        };
        self.rdma.provider = Some(unplaced(provider));
        self.rdma.directory = directory;
    }

    /// The parameters of SMB Direct connections.
    pub(crate) fn smb_direct(&self) -> Settings {
        let micros = |time: &Spanned<u32>| Duration::from_micros((*time.get_ref()).into());
        let millis = |time: &Spanned<u64>| Duration::from_millis(*time.get_ref());
        let moderation = micros(&self.rdma.moderation_us);
        Settings {
            busy_poll: micros(&self.rdma.busy_poll_us),
            moderation: (!moderation.is_zero()).then_some((MODERATION_COUNT, moderation)),
            credit_timeout: Some(Duration::from_millis(self.limits.credit_timeout_ms)),
            keep_alive_interval: Some(millis(&self.rdma.keep_alive_interval_ms)),
            keep_alive_timeout: Some(millis(&self.rdma.keep_alive_timeout_ms)),
            ..Settings::default()
        }
    }
}

impl Check<'_> {
    pub(super) fn rdma(&self, rdma: &RdmaSection) -> Result<(), ConfigError> {
        let times = [
            ("busy_poll_us", &rdma.busy_poll_us, BUSY_POLL_MAX),
            ("moderation_us", &rdma.moderation_us, MODERATION_MAX),
        ];
        for (key, time, most) in times {
            if *time.get_ref() > most {
                let what = format!("rdma.{key}: more than {most} microseconds");
                return Err(self.error(time, what));
            }
        }
        let silences = [
            ("interval", &rdma.keep_alive_interval_ms),
            ("timeout", &rdma.keep_alive_timeout_ms),
        ];
        for (name, value) in silences {
            if *value.get_ref() == 0 {
                let what = format!("rdma.keep_alive_{name}_ms: must be more than 0");
                return Err(self.error(value, what));
            }
        }
        let is_emulated = rdma.wanted() == RdmaProvider::Emulated;
        let what = match (is_emulated, &rdma.directory) {
            (true, None) => "rdma.provider: `emulated` needs rdma.directory",
            (false, Some(_)) => "rdma.directory: it is only valid with rdma.provider `emulated`",
            _ => return Ok(()),
        };
        let nowhere = unplaced(RdmaProvider::Verbs);
        let place = rdma.provider.as_ref().unwrap_or(&nowhere);
        Err(self.error(place, what.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn parse(text: &str) -> Result<Choice, String> {
        let config = Config::parse(Path::new("smbeam.toml"), text);
        config
            .map(|config| config.rdma())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn times_are_microseconds_and_have_a_limit() {
        let settings = |text: &str| {
            let config = Config::parse(Path::new("smbeam.toml"), text).expect("good");
            let settings = config.smb_direct();
            (settings.busy_poll, settings.moderation)
        };
        let micros = Duration::from_micros;
        assert_eq!(settings(""), (micros(0), Some((16, micros(8)))));
        let text = "[rdma]\nbusy_poll_us = 50\nmoderation_us = 0\n";
        assert_eq!(settings(text), (micros(50), None));
        for (key, most) in [("busy_poll_us", 10_000), ("moderation_us", 1_000)] {
            let error = parse(&format!("[rdma]\n{key} = {}\n", most + 1)).expect_err("too long");
            let wanted = format!("smbeam.toml, line 2: rdma.{key}: more than {most} microseconds");
            assert_eq!(error, wanted);
        }
    }

    #[test]
    fn keep_alive_times_have_a_minimum() {
        let parse = |text: &str| Config::parse(Path::new("smbeam.toml"), text);
        let settings = |text: &str| parse(text).expect("it is right").smb_direct();
        let second = Duration::from_secs(1);
        let default = settings("");
        assert_eq!(default.keep_alive_interval, Some(120 * second));
        assert_eq!(default.keep_alive_timeout, Some(5 * second));
        let keys = "keep_alive_interval_ms = 2000\nkeep_alive_timeout_ms = 1000\n";
        let other = settings(&format!("[rdma]\n{keys}"));
        assert_eq!(other.keep_alive_interval, Some(2 * second));
        assert_eq!(other.keep_alive_timeout, Some(second));
        let error = parse("[rdma]\nkeep_alive_timeout_ms = 0\n").expect_err("no time");
        let wanted = "smbeam.toml, line 2: rdma.keep_alive_timeout_ms: must be more than 0";
        assert_eq!(error.to_string(), wanted);
    }

    #[test]
    fn emulated_devices_need_a_directory() {
        assert_eq!(parse(""), Ok(Choice::Verbs));
        assert_eq!(parse("[rdma]\nprovider = \"verbs\"\n"), Ok(Choice::Verbs));
        let text = "[rdma]\nprovider = \"emulated\"\ndirectory = \"/run/x\"\n";
        assert_eq!(parse(text), Ok(Choice::Emulated("/run/x".into())));
        let error = parse("[rdma]\nprovider = \"emulated\"\n").expect_err("no directory");
        let wanted = "smbeam.toml, line 2: rdma.provider: `emulated` needs rdma.directory";
        assert_eq!(error, wanted);
        let error = parse("[rdma]\ndirectory = \"/run/x\"\n").expect_err("no emulation");
        assert!(
            error.contains("only valid with rdma.provider `emulated`"),
            "{error}"
        );
    }
}
