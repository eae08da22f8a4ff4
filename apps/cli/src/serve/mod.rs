//! `smbeam serve`: runs a server.

mod arguments;
mod commands;
mod instructions;
mod quick;
mod reload;
mod service;
mod signals;

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use smbeam_server::config::{Config, LogFormat, LogSection};
use smbeam_server::control::{self, ControlSocket};
use smbeam_server::log::Log;
use smbeam_server::metrics::Endpoint;
use smbeam_server::{Accounts, InheritedSockets, Listening, Observer, Server, Shown, log_findings};
use tracing::{error, info};

pub(crate) use self::arguments::Arguments;
use self::arguments::{layers, log_section};
use self::commands::ControlCommands;
use self::instructions::Instructions;
use self::quick::QuickShare;
use self::reload::{Load, Reload};
use self::service::Service;
use self::signals::{Request, Signals};
use crate::exit::{Exit, code_of};
use crate::output;

/// Runs `smbeam serve`, and reports its failure in the format of the log.
pub(crate) fn run(arguments: &Arguments) -> Exit {
    if !has_source(arguments) {
        let why = "nothing to serve: give a directory, --config, or environment variables such as \
                   SMBEAM_SHARE_DATA__PATH";
        output::note(&format_args!("smbeam: {why}"));
        return Exit::Usage;
    }
    let mut log = None;
    let served = match &arguments.path {
        Some(path) => serve_path(arguments, path, &mut log),
        None => serve_config(arguments, &mut log),
    };
    let Err(error) = served else {
        return Exit::Success;
    };
    if is_json(arguments, log.as_ref()) {
        // Without a log, the configuration is not valid. The failure is JSON all the same.
        let section = log_section(arguments, json_section());
        log = log.or_else(|| smbeam_server::log::start(&section).ok());
    }
    match &log {
        Some(log) if log.format() == LogFormat::Json => {
            let code = code_of(&error);
            error!(code, "{error:#}");
        }
        _ => output::note(&format_args!("smbeam: {error:#}")),
    }
    Exit::of_server(&error)
}

/// Whether a directory, a file or an environment variable names something to serve.
fn has_source(arguments: &Arguments) -> bool {
    let layers = layers(arguments);
    arguments.path.is_some() || layers.file().is_some() || layers.has_variables()
}

/// Whether the log is JSON, or would be.
fn is_json(arguments: &Arguments, log: Option<&Log>) -> bool {
    let of_file = || arguments.config.as_deref().map(LogFormat::of_file);
    let wanted = || {
        arguments
            .log_format
            .or_else(of_file)
            .unwrap_or(LogFormat::Human)
    };
    log.map_or_else(wanted, Log::format) == LogFormat::Json
}

fn json_section() -> LogSection {
    LogSection {
        format: LogFormat::Json,
        ..LogSection::default()
    }
}

/// Runs a server with the configuration of a file, of environment variables and of options.
fn serve_config(arguments: &Arguments, log: &mut Option<Log>) -> anyhow::Result<()> {
    let layers = layers(arguments);
    let rdma = arguments.rdma.clone();
    let load = move || {
        let mut config = layers.load()?;
        if let Some(choice) = &rdma {
            config.set_rdma(choice.clone());
        }
        Ok(config)
    };
    let config = load()?;
    let log = log.insert(start_log(&config)?);
    log_findings(&config);
    let place = || match config.file() {
        Some(file) => file.display().to_string(),
        None => "environment variables".to_owned(),
    };
    let accounts = Accounts::from_config(&config).with_context(place)?;
    let running = Running {
        log,
        config: &config,
        load: Some(Arc::new(load)),
    };
    running.serve(accounts, |_| {})
}

/// Shares one directory for a generated user.
fn serve_path(arguments: &Arguments, path: &Path, log: &mut Option<Log>) -> anyhow::Result<()> {
    let (share, accounts) = QuickShare::new(arguments, path)?;
    let log = &*log.insert(start_log(&share.config)?);
    let running = Running {
        log,
        config: &share.config,
        load: None,
    };
    running.serve(accounts, |server| {
        let listening = server.listening();
        let instructions = Instructions {
            share: &share,
            listening: &listening,
            certificate: server.certificate(),
        };
        if log.format() == LogFormat::Json {
            return output::line(&instructions.json());
        }
        for line in instructions.lines() {
            output::line(&line);
        }
    })
}

fn start_log(config: &Config) -> anyhow::Result<Log> {
    smbeam_server::log::start(&config.log).map_err(anyhow::Error::msg)
}

/// The parts of a server that signals concern.
struct Running<'a> {
    log: &'a Log,
    config: &'a Config,
    /// Reads the configuration again; `None` for a quick share.
    load: Option<Arc<Load>>,
}

impl Running<'_> {
    /// Runs the server until a signal stops it.
    fn serve(self, accounts: Accounts, started: impl FnOnce(&Server)) -> anyhow::Result<()> {
        let mut signals = Signals::catch()?;
        let socket = control_socket(self.config)?;
        let metrics = Endpoint::start(&self.config.metrics)?;
        let inherited = InheritedSockets::from_environment()?;
        let server = Server::start_with(self.config, accounts, inherited)?;
        self.announce(&server);
        let file = self.config.file().and_then(|file| file.canonicalize().ok());
        if let Some(metrics) = &metrics {
            info!(address = %metrics.address(), "serving metrics");
            metrics.server_started(server.observer(), file.clone());
        }
        let reload = Reload {
            reloader: server.reloader(),
            log: self.log.settings(),
            load: self.load.clone(),
        };
        let commands = ControlCommands {
            observer: server.observer(),
            administrator: server.administrator(),
            reload: reload.clone(),
            file,
        };
        let serve_socket = |socket: ControlSocket| socket.serve(Arc::new(commands));
        let control = socket.map(serve_socket).transpose()?;
        started(&server);
        let service = Service::ready(&server.observer(), &summary(&server));
        for request in signals.requests() {
            match request {
                // The log has the result.
                Request::Reload => service.reload(|| drop(reload.run())),
                Request::Report => report(&server.observer()),
                Request::Stop(signal) => {
                    info!(signal, "stopping");
                    break;
                }
            }
        }
        drop(service);
        drop(control);
        if let Some(metrics) = &metrics {
            metrics.server_stops();
        }
        server.stop();
        Ok(())
    }

    /// Reports addresses and certificate: as lines for people, or as events of a log in JSON.
    fn announce(&self, server: &Server) {
        let is_json = self.log.format() == LogFormat::Json;
        for Listening { address, transport } in server.listening() {
            if is_json {
                info!(%address, %transport, "listening");
            } else {
                let line = format_args!("listening on {address} ({transport})");
                self.log.line(&line);
            }
        }
        if let Some(Shown {
            fingerprint,
            is_self_signed,
        }) = server.certificate()
        {
            if is_json {
                info!(sha256 = %fingerprint, is_self_signed, "certificate");
            } else {
                let suffix = if is_self_signed { ", self-signed" } else { "" };
                let line = format_args!("certificate SHA-256 {fingerprint}{suffix}");
                self.log.line(&line);
            }
        }
    }
}

/// The addresses of a server for a service manager.
fn summary(server: &Server) -> String {
    let listening = server.listening().into_iter();
    let addresses = listening.map(|it| format!("{} ({})", it.address, it.transport));
    format!("listening on {}", addresses.collect::<Vec<_>>().join(", "))
}

/// Logs a summary of the status.
fn report(observer: &Observer) {
    let status = observer.status(None);
    let connections = status.connections.len() + status.left_out.connections;
    let sessions = status.sessions.len() + status.left_out.sessions;
    let files = status.files.len() + status.left_out.files;
    info!(connections, sessions, files, "status");
}

/// Opens the socket for `smbeam status`. Without a configured path, failure to open it is not an
/// error.
fn control_socket(config: &Config) -> anyhow::Result<Option<ControlSocket>> {
    let group = config.server.control_group.as_deref();
    let bind = |path: &Path| ControlSocket::bind(path, group);
    match &config.server.control_socket {
        Some(path) if path.as_os_str().is_empty() => Ok(None),
        Some(path) => {
            let failed = || format!("server.control_socket: {}", path.display());
            bind(path).map(Some).with_context(failed)
        }
        None => {
            let path = control::default_path();
            let made = path.and_then(|path| path.as_deref().map(bind).transpose());
            // A wrong group is a mistake in the configuration.
            if let (Err(error), Some(group)) = (&made, group) {
                anyhow::bail!("server.control_group: {group}: {error}");
            }
            Ok(made.unwrap_or_else(|error| {
                info!(%error, "no control socket: smbeam status will not find this server");
                None
            }))
        }
    }
}
