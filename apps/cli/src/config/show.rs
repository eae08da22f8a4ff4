//! `smbeam config show`, `schema` and `example`.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use smbeam_server::config::{Config, EffectiveValue, Layers, Origin, Place, example, schema};

use crate::exit::Exit;
use crate::output::{self, Lines};

/// The configuration file of commands without a file.
const DEFAULT_FILE: &str = "smbeam.toml";

/// Arguments of `smbeam config show`.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The configuration file. Default: smbeam.toml in the current directory, if it exists or no
    /// environment variable sets a key.
    file: Option<PathBuf>,
    /// Show only values that differ from the defaults.
    #[arg(long)]
    changed: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(super) fn run(&self) -> Exit {
        let config = match layers(self.file.as_deref()).load() {
            Ok(config) => config,
            Err(error) => {
                output::note(&format_args!("smbeam: {error}"));
                return match Exit::of_server(&error.into()) {
                    Exit::Failed => Exit::Usage,
                    exit => exit,
                };
            }
        };
        let values = config.effective().into_iter();
        let is_shown = |value: &EffectiveValue| !self.changed || value.origin.is_some();
        let values: Vec<EffectiveValue> = values.filter(is_shown).collect();
        match self.json {
            true => output::line(&in_json(&config, &values)),
            false => print(&values),
        }
        Exit::Success
    }
}

/// The sources of the configuration of a server that runs with this file.
fn layers(file: Option<&Path>) -> Layers {
    let without = Layers::new(None).with_environment();
    match file {
        Some(file) => Layers::new(Some(file)).with_environment(),
        None if without.has_variables() && !Path::new(DEFAULT_FILE).exists() => without,
        None => Layers::new(Some(Path::new(DEFAULT_FILE))).with_environment(),
    }
}

/// Prints the values as a configuration file, with the origin of each as a comment.
fn print(values: &[EffectiveValue]) {
    let mut lines = Lines::new();
    let mut section = (String::new(), None);
    for value in values {
        let (name, key) = value.key.split_once('.').expect("a full key");
        let place = (name.to_owned(), value.share);
        if place != section {
            if !section.0.is_empty() {
                lines.line(&"");
            }
            match value.share {
                Some(_) => lines.line(&"[[share]]"),
                None => lines.line(&format_args!("[{name}]")),
            }
            section = place;
        }
        let origin = value
            .origin
            .as_ref()
            .map_or("default".to_owned(), Place::to_string);
        match &value.value {
            Some(shown) => lines.line(&format_args!("{key} = {shown}  # {origin}")),
            None => lines.line(&format_args!("# {key} is not set")),
        }
    }
    lines.flush();
}

fn in_json(config: &Config, values: &[EffectiveValue]) -> Value {
    let object = |value: &EffectiveValue| {
        let share = value.share.map(|index| config.shares[index].name.get_ref());
        let (kind, name, line) = match &value.origin {
            None => ("default", None, None),
            Some(Place { origin, line }) => match origin {
                Origin::File(file) => ("file", Some(file.display().to_string()), *line),
                Origin::Variable(name) => ("variable", Some(name.clone()), None),
                Origin::Option(name) => ("option", Some(name.clone()), None),
            },
        };
        json!({
            "key": value.key,
            "share": share,
            "value": value.value,
            "origin": { "kind": kind, "name": name, "line": line },
        })
    };
    json!({ "values": values.iter().map(object).collect::<Vec<_>>() })
}

/// Prints the JSON schema of configuration files.
pub(super) fn print_schema() -> Exit {
    match serde_json::to_string_pretty(&schema()) {
        Ok(text) => output::line(&text),
        Err(error) => output::note(&format_args!("smbeam: {error}")),
    }
    Exit::Success
}

/// Prints an example of a configuration file.
pub(super) fn print_example() -> Exit {
    let mut lines = Lines::new();
    for line in example().lines() {
        lines.line(&line);
    }
    lines.flush();
    Exit::Success
}
