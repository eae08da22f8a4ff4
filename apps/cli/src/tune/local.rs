//! Examines this machine and its server.

use std::path::{Path, PathBuf};

use serde_json::json;
use smbeam_server::tune::{Profile, advise, gather, measure_crypto, mount_options};

use super::arguments::Arguments;
use super::configuration::load;
use super::{apply, print};
use crate::exit::Exit;
use crate::failure::Outcome;
use crate::local_server::LocalServer;
use crate::output;

/// The configuration file of the packages.
const SYSTEM_FILE: &str = "/etc/smbeam/smbeam.toml";

/// Prints the findings, or applies their changes.
pub(super) fn examine(arguments: &Arguments) -> Outcome {
    let server = running(arguments)?;
    let file = configuration_file(arguments, server.as_ref());
    let config = file.as_deref().map(load).transpose()?;
    let status = server.as_ref().map(|server| &server.status);
    let mut facts = gather(config.as_ref(), status, arguments.measure);
    facts.crypto = measure_crypto();
    let profile = Profile::from(arguments.profile);
    let findings = advise(&facts, profile);
    if arguments.apply {
        return apply::apply(
            &findings,
            file.as_deref(),
            &arguments.files,
            arguments.dry_run,
        );
    }
    if arguments.json {
        let options = mount_options(profile, facts.kernel.cpus, None);
        let options = options
            .into_iter()
            .map(|(name, value)| match value.as_str() {
                "" => name.to_owned(),
                _ => format!("{name}={value}"),
            });
        output::line(&json!({
            "profile": profile.name(),
            "configuration": file,
            "findings": findings,
            "mount_options": options.collect::<Vec<_>>().join(","),
            "facts": facts,
        }));
        return Ok(());
    }
    print::findings(&findings);
    Ok(())
}

/// The running server that the options choose. Without these options, there may be none.
fn running(arguments: &Arguments) -> Outcome<Option<LocalServer>> {
    match arguments.server.find() {
        Ok(server) => Ok(Some(server)),
        Err(failure) if arguments.server.has_socket() || failure.exit == Exit::Usage => {
            Err(failure)
        }
        Err(_) => Ok(None),
    }
}

/// The named file, else that of the running server, else that of the packages if it exists.
fn configuration_file(arguments: &Arguments, server: Option<&LocalServer>) -> Option<PathBuf> {
    let of_server = || server.and_then(|server| server.status.server.config.clone());
    let of_system = || Some(PathBuf::from(SYSTEM_FILE)).filter(|file| file.exists());
    let named = arguments.server.file().map(Path::to_owned);
    named.or_else(of_server).or_else(of_system)
}
