//! A finding: what slows a server, the evidence, and the change.

use std::fmt::Display;

use serde::Serialize;

/// Something that slows a server or its clients, with the change that helps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The code of the finding, such as `tune-swappiness`. docs/tune.md lists all codes.
    pub code: &'static str,
    /// The examined object, such as `kernel`, `share data` or `eth0`.
    pub subject: String,
    /// What slows the server, for people.
    pub message: String,
    /// The values that show it.
    pub evidence: Vec<Evidence>,
    /// The command, or the line of a file, that changes it.
    pub advice: String,
    /// The change that `--apply` makes; empty if an administrator has to decide.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// The documentation of the setting.
    pub source: &'static str,
}

/// A value that shows a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// The value with its name and unit, such as `vm.swappiness = 60`.
    pub value: String,
    /// The file, command or measurement that the value comes from.
    pub origin: String,
}

/// A change that does no harm to other programs and that `--undo` takes back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// Sets a parameter of the kernel below /proc/sys.
    Sysctl {
        /// Its name, such as `vm.swappiness`.
        key: String,
        /// Its new value.
        value: String,
    },
    /// Sets a key of the configuration.
    Config {
        /// Its full name, such as `limits.credits`.
        key: String,
        /// Its new value, as TOML.
        value: String,
    },
}

impl Finding {
    /// Makes a finding without evidence and changes.
    pub fn new(code: &'static str, subject: impl Display, message: impl Display) -> Self {
        Self {
            code,
            subject: subject.to_string(),
            message: message.to_string(),
            evidence: Vec::new(),
            advice: String::new(),
            changes: Vec::new(),
            source: "",
        }
    }

    /// Adds a value that shows the finding, and where it was read.
    #[must_use]
    pub fn seen(mut self, value: impl Display, origin: impl Display) -> Self {
        self.evidence.push(Evidence {
            value: value.to_string(),
            origin: origin.to_string(),
        });
        self
    }

    /// Adds a parameter of the kernel, with the value that shows the finding.
    #[must_use]
    pub(crate) fn seen_sysctl(self, key: &str, value: &str) -> Self {
        let origin = format!("/proc/sys/{}", key.replace('.', "/"));
        self.seen(format_args!("{key} = {value}"), origin)
    }

    /// Sets the command or line that helps, and the documentation of the setting.
    #[must_use]
    pub fn advise(mut self, advice: impl Display, source: &'static str) -> Self {
        self.advice = advice.to_string();
        self.source = source;
        self
    }

    /// Sets parameters of the kernel as the advice, which `--apply` can set.
    #[must_use]
    pub(crate) fn advise_sysctls(self, values: &[(&str, String)], source: &'static str) -> Self {
        let set: Vec<String> = (values.iter())
            .map(|(key, value)| match value.contains(char::is_whitespace) {
                true => format!("{key}=\"{value}\""),
                false => format!("{key}={value}"),
            })
            .collect();
        let mut finding = self.advise(format_args!("sysctl -w {}", set.join(" ")), source);
        finding.changes = (values.iter())
            .map(|(key, value)| Change::Sysctl {
                key: (*key).to_owned(),
                value: value.clone(),
            })
            .collect();
        finding
    }

    /// Sets a key of the configuration as the advice. `--apply` can set it if no file does.
    #[must_use]
    pub(crate) fn advise_key(
        self,
        key: &str,
        value: impl Display,
        is_set: bool,
        source: &'static str,
    ) -> Self {
        let (section, name) = key.split_once('.').unwrap_or(("server", key));
        let line = format!("[{section}] {name} = {value}");
        let mut finding = self.advise(line, source);
        if !is_set {
            finding.changes = vec![Change::Config {
                key: key.to_owned(),
                value: value.to_string(),
            }];
        }
        finding
    }
}
