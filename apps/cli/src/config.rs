//! `smbeam config`: works with configuration files.

mod remote;
mod show;

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use smbeam_server::Finding;
use smbeam_server::config::{Config, ConfigError, Layers};

use crate::exit::Exit;
use crate::output::{self, Lines};

/// Subcommands of `smbeam config`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check a configuration file: report errors, and settings with which users or guests cannot
    /// log in (warnings).
    Check(Check),
    /// Show the values that are in effect, and the origin of each: the default, a line of a file,
    /// an environment variable.
    Show(show::Show),
    /// Print the JSON schema of configuration files, for editors.
    Schema,
    /// Print an example of a configuration file, with all keys.
    Example,
    /// Show, add and remove named remotes, in ~/.config/smbeam/config.toml.
    #[command(subcommand)]
    Remote(remote::Command),
}

/// Arguments of `smbeam config check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The configuration file.
    #[arg(default_value = "smbeam.toml")]
    file: PathBuf,
    /// Treat warnings as errors.
    #[arg(long)]
    strict: bool,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs `smbeam config`.
pub(crate) fn run(command: &Command) -> Exit {
    match command {
        Command::Check(check) => check.run(),
        Command::Show(show) => show.run(),
        Command::Schema => show::print_schema(),
        Command::Example => show::print_example(),
        Command::Remote(command) => remote::run(command),
    }
}

/// A mistake that prevents the start of a server, with its exit code.
struct Mistake {
    exit: Exit,
    /// The file with the mistake, if a line of it is known.
    file: Option<PathBuf>,
    line: Option<usize>,
    reason: String,
    /// The text for people.
    shown: String,
}

impl Check {
    fn run(&self) -> Exit {
        let (config, findings) = match examine(&self.file) {
            Ok(found) => found,
            Err(mistake) => return self.report_mistake(&mistake),
        };
        let is_error = |finding: &Finding| self.strict || finding.is_error;
        let has_errors = findings.iter().any(is_error);
        if self.json {
            output::line(&self.result(&config, &findings, !has_errors));
        } else {
            for finding in &findings {
                let word = if is_error(finding) {
                    "error"
                } else {
                    "warning"
                };
                output::note(&format_args!("{}: {word}: {finding}", self.file.display()));
            }
            if !has_errors {
                self.print(&config);
            }
        }
        if has_errors {
            Exit::Usage
        } else {
            Exit::Success
        }
    }

    fn report_mistake(&self, mistake: &Mistake) -> Exit {
        if self.json {
            let error = json!({
                "key": null,
                "file": mistake.file,
                "line": mistake.line,
                "message": mistake.reason,
            });
            output::line(&json!({
                "file": self.file,
                "good": false,
                "errors": [error],
                "warnings": [],
            }));
        } else {
            output::note(&format_args!("smbeam: {}", mistake.shown));
        }
        mistake.exit
    }

    fn result(&self, config: &Config, findings: &[Finding], good: bool) -> Value {
        let (errors, warnings): (Vec<_>, Vec<_>) = findings
            .iter()
            .partition(|finding| self.strict || finding.is_error);
        let list = |findings: Vec<&Finding>| -> Vec<Value> {
            let parts = |finding: &Finding| {
                let Finding {
                    key, line, message, ..
                } = finding;
                json!({ "key": key, "line": line, "message": message })
            };
            findings.into_iter().map(parts).collect()
        };
        let shares = config.shares.iter();
        let shares = shares
            .map(|share| json!({ "name": share.name.get_ref(), "path": share.path.get_ref() }));
        json!({
            "file": self.file,
            "good": good,
            "errors": list(errors),
            "warnings": list(warnings),
            "listen": strings(config.listen()),
            "transports": strings(config.endpoints()),
            "shares": shares.collect::<Vec<_>>(),
        })
    }

    fn print(&self, config: &Config) {
        let mut lines = Lines::new();
        lines.line(&format_args!("{}: good", self.file.display()));
        lines.line(&format_args!(
            "  listen: {}",
            strings(config.listen()).join(", ")
        ));
        lines.line(&format_args!(
            "  transports: {}",
            strings(config.endpoints()).join(", ")
        ));
        for share in &config.shares {
            let (name, path) = (share.name.get_ref(), share.path.get_ref().display());
            lines.line(&format_args!("  share {name}: {path}"));
        }
    }
}

/// Reads the file, opens everything that a server opens except its addresses, and finds settings
/// that do not do what they seem to do.
fn examine(file: &Path) -> Result<(Config, Vec<Finding>), Mistake> {
    let layers = Layers::new(Some(file)).with_environment();
    let config = layers.load().map_err(|error| mistake(&error.into()))?;
    // A valid configuration can still cause log lines, for example about certificates.
    let log = smbeam_server::log::start(&config.log);
    let _log = log.map_err(|reason| mistake(&anyhow::Error::msg(reason)))?;
    let shown = || file.display().to_string();
    let checked = smbeam_server::check(&config).with_context(shown);
    checked.map_err(|error| mistake(&error))?;
    let findings = smbeam_server::findings(&config).with_context(shown);
    let findings = findings.map_err(|error| mistake(&error))?;
    Ok((config, findings))
}

fn mistake(error: &anyhow::Error) -> Mistake {
    let exit = match Exit::of_server(error) {
        // Each mistake is one of the file that the command line names.
        Exit::Failed => Exit::Usage,
        exit => exit,
    };
    let of_config = error.downcast_ref::<ConfigError>();
    Mistake {
        exit,
        file: of_config.and_then(ConfigError::file),
        line: of_config.and_then(ConfigError::line),
        reason: match of_config {
            Some(error) => error.reason().to_owned(),
            None => error.root_cause().to_string(),
        },
        shown: format!("{error:#}"),
    }
}

fn strings<T: ToString>(list: impl IntoIterator<Item = T>) -> Vec<String> {
    list.into_iter().map(|item| item.to_string()).collect()
}
