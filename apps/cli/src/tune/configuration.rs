//! The configuration of a server on this machine.

use std::path::Path;

use smbeam_server::config::{Config, Layers};

use crate::failure::{Failure, Outcome};

/// Loads a configuration.
pub(super) fn load(file: &Path) -> Outcome<Config> {
    let loaded = Layers::new(Some(file)).with_environment().load();
    loaded.map_err(|error| Failure::usage(file.display(), error))
}
