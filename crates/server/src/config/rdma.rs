//! `[rdma]`: who makes the connections of SMB Direct.

use std::path::PathBuf;

use rdma::Choice;
use serde::Deserialize;
use toml::Spanned;

use super::{Check, Config, ConfigError};

/// `[rdma]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RdmaSection {
    /// Whose devices; those of this machine where it is left out.
    pub provider: Option<Spanned<RdmaProvider>>,
    /// Where peers on this machine meet that emulate devices.
    pub directory: Option<PathBuf>,
}

/// `provider`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RdmaProvider {
    /// Those of librdmacm and libibverbs.
    #[default]
    Verbs,
    /// Nobody's: clients on the same machine, for tests.
    Emulated,
}

impl RdmaSection {
    fn wanted(&self) -> RdmaProvider {
        let provider = self.provider.as_ref();
        provider.map_or(RdmaProvider::Verbs, |provider| *provider.get_ref())
    }
}

impl Config {
    /// Who makes the connections of SMB Direct, checked by [`Config::parse`].
    pub fn rdma(&self) -> Choice {
        match (self.rdma.wanted(), &self.rdma.directory) {
            (RdmaProvider::Emulated, Some(directory)) => Choice::Emulated(directory.clone()),
            _ => Choice::Verbs,
        }
    }

    /// Says it in place of a file.
    pub fn set_rdma(&mut self, choice: Choice) {
        let (provider, directory) = match choice {
            Choice::Verbs => (RdmaProvider::Verbs, None),
            Choice::Emulated(directory) => (RdmaProvider::Emulated, Some(directory)),
        };
        self.rdma = RdmaSection {
            provider: Some(super::unplaced(provider)),
            directory,
        };
    }
}

impl Check<'_> {
    pub(super) fn rdma(&self, rdma: &RdmaSection) -> Result<(), ConfigError> {
        let is_emulated = rdma.wanted() == RdmaProvider::Emulated;
        let what = match (is_emulated, &rdma.directory) {
            (true, None) => "rdma.provider: `emulated` needs rdma.directory",
            (false, Some(_)) => "rdma.directory: only rdma.provider `emulated` has one",
            _ => return Ok(()),
        };
        let nowhere = super::unplaced(RdmaProvider::Verbs);
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
    fn an_emulation_has_a_directory() {
        assert_eq!(parse(""), Ok(Choice::Verbs));
        assert_eq!(parse("[rdma]\nprovider = \"verbs\"\n"), Ok(Choice::Verbs));
        let text = "[rdma]\nprovider = \"emulated\"\ndirectory = \"/run/x\"\n";
        assert_eq!(parse(text), Ok(Choice::Emulated("/run/x".into())));
        let error = parse("[rdma]\nprovider = \"emulated\"\n").expect_err("no directory");
        let wanted = "smbeam.toml, line 2: rdma.provider: `emulated` needs rdma.directory";
        assert_eq!(error, wanted);
        let error = parse("[rdma]\ndirectory = \"/run/x\"\n").expect_err("no emulation");
        assert!(error.contains("only rdma.provider `emulated`"), "{error}");
    }
}
