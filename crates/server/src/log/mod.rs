//! The log of the server, as text or as JSON, on standard error.
//!
//! A thread that logs puts a line into a queue (`queue`), and another thread writes it. Places that
//! log often are limited (`rate`). In text, values of peers are escaped (`escape`).

mod escape;
mod queue;
mod rate;
mod text;

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd as _;
use std::panic::PanicHookInfo;
use std::sync::Arc;

use tracing::{Dispatch, error, level_filters::LevelFilter};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry, registry};

use self::queue::{LogThread, Queue};
use self::rate::{RateLimit, RateLimitLayer};
use crate::config::{Levels, LogFormat, LogSection};

pub(crate) use self::rate::UNLIMITED;

/// The handle of the running log of the process. Dropping it writes the queued lines, for at most
/// one second.
pub struct Log {
    format: LogFormat,
    levels: Handle<Targets, Registry>,
    queue: Queue,
    _thread: LogThread,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let format = &self.format;
        f.debug_struct("Log")
            .field("format", format)
            .finish_non_exhaustive()
    }
}

/// Starts the log of the process: it writes events of `tracing`, and panics, to standard error.
/// `section` sets its format and levels. Only one call per process is allowed.
///
/// # Errors
/// `log.level` is not valid, the thread of the log cannot be started, or the process logs already.
pub fn start(section: &LogSection) -> Result<Log, String> {
    let Levels(levels) = section.levels()?;
    let failed = |error: &dyn std::fmt::Display| format!("cannot start the log: {error}");
    // A descriptor, because the lock of `Stderr` would be held while a write waits.
    let output = io::stderr().as_fd().try_clone_to_owned();
    let output = Arc::new(File::from(output.map_err(|error| failed(&error))?));
    let format = section.format;
    let rate_limit = Arc::new(RateLimit::default());
    let reports = reports(format, Arc::clone(&output));
    let (queue, thread) = LogThread::start(output, Arc::clone(&rate_limit), reports)
        .map_err(|error| failed(&error))?;
    let (levels, handle) = reload::Layer::new(levels);
    registry()
        .with(levels)
        .with(RateLimitLayer {
            limit: rate_limit,
            is_active: section.rate_limited,
        })
        .with(formatted(format, queue.clone()))
        .try_init()
        .map_err(|error| failed(&error))?;
    std::panic::set_hook(Box::new(log_panic));
    Ok(Log {
        format,
        levels: handle,
        queue,
        _thread: thread,
    })
}

impl Log {
    /// Changes the levels of the running log to `log.level` of `section`. Other values of the
    /// section have no effect.
    ///
    /// # Errors
    /// `log.level` is not valid.
    pub fn set_levels(&self, section: &LogSection) -> Result<(), String> {
        let Levels(levels) = section.levels()?;
        self.levels
            .reload(levels)
            .map_err(|error| error.to_string())
    }

    /// Returns the format of log lines (text or JSON) with which the log was started.
    pub fn format(&self) -> LogFormat {
        self.format
    }

    /// Writes the text as one line of the log as it is, without time and level. It goes through the
    /// queue of the log, so it appears in order with other lines.
    pub fn line(&self, text: &dyn std::fmt::Display) {
        self.queue.push(format!("{text}\n").as_bytes());
    }
}

/// The layer that formats events and writes them.
fn formatted<S, W>(format: LogFormat, writer: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(writer)
        // An internal error would wait for the reader of the log.
        .log_internal_errors(false);
    match format {
        LogFormat::Human => {
            let is_terminal = io::stderr().is_terminal();
            layer
                .with_ansi(is_terminal)
                .event_format(text::Text)
                .boxed()
        }
        LogFormat::Json => layer.json().boxed(),
    }
}

/// Takes the events of the log thread itself. They do not go through the queue.
fn reports(format: LogFormat, output: Arc<File>) -> Dispatch {
    // Without a filter, it would enable the events of all other threads.
    let own = Targets::new().with_target("smbeam_server::log", LevelFilter::INFO);
    Dispatch::new(registry().with(own).with(formatted(format, output)))
}

/// The standard hook would write to standard error, and wait for its reader.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let place = panic
        .location()
        .map(ToString::to_string)
        .unwrap_or_default();
    let message = panic.payload_as_str().unwrap_or("unknown");
    error!(place, message, "panic");
}
