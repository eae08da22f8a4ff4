//! `smbeam share disable` and `smbeam share enable`.

use clap::Args;
use smbeam_server::control::Request;

use crate::failure::Outcome;
use crate::local_server::{LocalServer, ServerArguments};
use crate::output;
use crate::report::Report;

/// Arguments of `smbeam share disable` and `smbeam share enable`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    server: ServerArguments,
    /// Names of the shares.
    #[arg(value_name = "SHARE", required = true)]
    shares: Vec<String>,
}

impl Arguments {
    /// Disables or enables the shares.
    pub(super) fn set_enabled(&self, is_enabled: bool, report: &Report) {
        let server = match self.server.find() {
            Ok(server) => server,
            Err(failure) => return report.failed(&failure),
        };
        for share in &self.shares {
            report.take(set_enabled(&server, share, is_enabled));
        }
    }
}

fn set_enabled(server: &LocalServer, name: &str, is_enabled: bool) -> Outcome {
    let share = name.to_owned();
    let (request, state) = match is_enabled {
        true => (Request::EnableShare { share }, "enabled"),
        false => (Request::DisableShare { share }, "disabled"),
    };
    let name = crate::format::name(name);
    let is_changed: bool = server.result(&format_args!("share {name}"), &request)?;
    let already = if is_changed { "" } else { "already " };
    output::line(&format_args!("share {name}: {already}{state}"));
    Ok(())
}
