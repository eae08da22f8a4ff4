//! The arguments of `smbeam serve`.

use std::path::PathBuf;

use clap::Args;
use net::{Endpoint, Endpoints};
use serde::Serialize;
use smbeam_client::RdmaChoice;
use smbeam_server::config::{
    IoChoice, Layers, Levels, ListenAddress, LogFormat, LogSection, unplaced,
};
use toml::Value;

use crate::log::LEVEL_VARIABLE;

/// Arguments of `smbeam serve`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Share this directory without a configuration, with a generated user and password (a quick
    /// share).
    #[arg(conflicts_with = "config")]
    pub(super) path: Option<PathBuf>,
    /// Read this configuration file. Without a file and without a directory, the environment
    /// variables are the configuration, such as `SMBEAM_SHARE_DATA__PATH`.
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Name of the share. Default: the name of the directory.
    #[arg(long, requires = "path")]
    pub(super) name: Option<String>,
    /// IP addresses to listen on, separated by commas. A link-local one needs its interface:
    /// `fe80::1%eth0`. Default: all addresses.
    #[arg(long, requires = "path", value_name = "LIST", value_delimiter = ',')]
    pub(super) listen: Vec<ListenAddress>,
    /// Port to listen on. Default: 445 for root, 4455 for other users.
    #[arg(long, requires = "path")]
    pub(super) port: Option<u16>,
    /// Transports to listen on, separated by commas: `transport[:port]` with tcp, nbt, quic or
    /// smbdirect. Overrides the configuration file.
    #[arg(long, value_name = "LIST", conflicts_with = "port")]
    pub(super) transports: Option<Endpoints>,
    /// RDMA provider for smbdirect: `verbs` for RDMA devices, or `emulated:DIRECTORY` for clients
    /// on this machine. Overrides the configuration file.
    #[arg(long, value_name = "PROVIDER", env = "SMBEAM_RDMA")]
    pub(super) rdma: Option<RdmaChoice>,
    /// Make the share read-only.
    #[arg(long, requires = "path")]
    pub(super) read_only: bool,
    /// I/O backend: auto, uring (io_uring) or epoll.
    #[arg(long, value_parser = parse_io)]
    pub(super) io: Option<IoChoice>,
    /// Level of the log: off, error, warn, info, debug or trace, or a list such as
    /// `info,smbeam_server=debug`. Overrides the configuration file.
    #[arg(long, value_name = "LEVEL", value_parser = parse_level, env = LEVEL_VARIABLE)]
    pub(super) log_level: Option<String>,
    /// Format of the log: human or json. Overrides the configuration file.
    #[arg(long, value_name = "FORMAT", value_parser = parse_format)]
    pub(super) log_format: Option<LogFormat>,
}

fn parse_io(text: &str) -> Result<IoChoice, String> {
    text.parse()
}

fn parse_level(text: &str) -> Result<String, String> {
    text.parse::<Levels>().map(|_| text.to_owned())
}

fn parse_format(text: &str) -> Result<LogFormat, String> {
    text.parse()
}

/// The configuration of a server that is no quick share: its file, environment variables, and the
/// options of the command line.
pub(super) fn layers(arguments: &Arguments) -> Layers {
    let mut layers = Layers::new(arguments.config.as_deref()).with_environment();
    let mut add = |option: &str, key: &str, value: Option<Value>| {
        if let Some(value) = value {
            let (section, key) = key.split_once('.').expect("a full key");
            let text = format!("[{section}]\n{key} = {value}\n");
            layers = std::mem::take(&mut layers).with_option(option, text);
        }
    };
    add("--io", "server.io", arguments.io.map(text_of));
    let transports = arguments.transports.as_ref().map(|list| {
        let texts = list
            .iter()
            .map(|endpoint| Value::String(endpoint.to_string()));
        Value::Array(texts.collect())
    });
    add("--transports", "server.transports", transports);
    let level = arguments.log_level.clone().map(Value::String);
    add("--log-level", "log.level", level);
    add(
        "--log-format",
        "log.format",
        arguments.log_format.map(text_of),
    );
    layers
}

fn text_of(value: impl Serialize) -> Value {
    Value::try_from(value).expect("an enumeration of texts")
}

/// The log as the command line and the configuration want it.
pub(super) fn log_section(arguments: &Arguments, mut section: LogSection) -> LogSection {
    if let Some(level) = &arguments.log_level {
        section.level = unplaced(level.clone());
    }
    if let Some(format) = arguments.log_format {
        section.format = format;
    }
    section
}

/// A list of transports in the form of the configuration file.
pub(super) fn named(list: &Endpoints) -> Vec<toml::Spanned<String>> {
    let text = |endpoint: &Endpoint| unplaced(endpoint.to_string());
    list.iter().map(text).collect()
}
