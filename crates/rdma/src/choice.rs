//! Selection of the provider in a configuration.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use crate::emulated::{Emulated, Faults};
use crate::provider::Provider;
use crate::verbs::Verbs;

/// The provider of RDMA connections that a configuration selects. The text form is `verbs` (devices
/// of this machine), or `emulated:DIRECTORY` (an emulation for tests).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The RDMA devices of this machine.
    #[default]
    Verbs,
    /// An emulation without a device: it connects to peers on this machine that use the same
    /// directory.
    Emulated(PathBuf),
}

/// The reason why a text selects no provider of RDMA connections. Its `Display` form is a message
/// for users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChoiceError(String);

impl fmt::Display for ChoiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text) = self;
        write!(f, "`{text}` is neither `verbs` nor `emulated:DIRECTORY`")
    }
}

impl std::error::Error for ChoiceError {}

impl FromStr for Choice {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        match text.split_once(':') {
            None if text == "verbs" => Ok(Self::Verbs),
            Some(("emulated", directory)) if !directory.is_empty() => {
                Ok(Self::Emulated(directory.into()))
            }
            _ => Err(ChoiceError(text.to_owned())),
        }
    }
}

/// The devices of InfiniBand, RoCE and iWARP that the kernel knows, one directory each.
const DEVICES: &str = "/sys/class/infiniband";

impl Choice {
    /// Returns whether this machine can have a device of the provider. This does not open the
    /// provider: for [`Choice::Verbs`] it checks whether the kernel knows any device, without the
    /// libraries.
    pub fn may_have_devices(&self) -> bool {
        match self {
            Self::Verbs => std::fs::read_dir(DEVICES).is_ok_and(|mut list| list.next().is_some()),
            Self::Emulated(_) => true,
        }
    }

    /// Returns whether the provider can reach an address of the loopback interface. Devices do not.
    pub fn reaches_loopback(&self) -> bool {
        matches!(self, Self::Emulated(_))
    }

    /// Opens the selected provider of RDMA connections.
    ///
    /// # Errors
    /// The RDMA libraries are missing, or the directory of the emulation cannot be created.
    pub fn open(&self) -> io::Result<Arc<dyn Provider>> {
        match self {
            Self::Verbs => verbs(),
            Self::Emulated(directory) => {
                let invalid = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
                let faults = Faults::from_environment().map_err(invalid)?;
                Ok(Arc::new(Emulated::new(directory, faults)?))
            }
        }
    }
}

fn verbs() -> io::Result<Arc<dyn Provider>> {
    let verbs = Verbs::load().map_err(|error| io::Error::new(io::ErrorKind::Unsupported, error))?;
    Ok(Arc::new(verbs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_read_from_text() {
        assert_eq!("verbs".parse(), Ok(Choice::Verbs));
        let directory = Choice::Emulated("/run/a:b".into());
        assert_eq!("emulated:/run/a:b".parse(), Ok(directory));
        for wrong in ["", "emulated", "emulated:", "verb", "verbs:x"] {
            let error = wrong.parse::<Choice>().expect_err("wrong");
            assert!(error.to_string().contains(wrong));
        }
    }
}
