//! The log of the server: text or JSON on standard error, or messages for journald.
//!
//! A thread that logs puts a line into a queue (`queue`), and another thread writes it. Places that
//! log often are limited (`rate`). In text, values of peers are escaped (`escape`).

mod escape;
mod journal;
mod queue;
mod rate;
mod text;

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd as _;
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tracing::{Dispatch, error, level_filters::LevelFilter};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layered, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry, registry};

use self::journal::JournalLayer;
use self::queue::{Line, LogThread, Queue};
use self::rate::{RateLimit, RateLimitLayer};
use crate::config::{Levels, LogFormat, LogSection, LogTarget};

use crate::journal::{Message, Priority};

pub(crate) use self::escape::is_invisible;
pub(crate) use self::rate::UNLIMITED;

/// The handle of the running log of the process. Dropping it writes the queued lines, for at most
/// one second.
pub struct Log {
    settings: LogSettings,
    queue: Queue,
    _thread: LogThread,
}

/// A handle that changes the running log of the process from any thread. A clone refers to the same
/// log.
#[derive(Clone)]
pub struct LogSettings {
    levels: Handle<Targets, Registry>,
    rate_limited: Arc<AtomicBool>,
    form: Arc<Mutex<Form>>,
    lines: Handle<Lines<Limited>, Limited>,
    /// The lines of the log thread itself.
    reports: Handle<Lines<Own>, Own>,
    queue: Queue,
    output: Arc<File>,
}

/// The destination and the format of lines.
type Form = (LogTarget, LogFormat);
/// A layer that formats events and writes them.
type Lines<S> = Box<dyn Layer<S> + Send + Sync>;
/// The layers below the one that writes.
type Limited = Layered<RateLimitLayer, Layered<reload::Layer<Targets, Registry>, Registry>>;
/// The same for the events of the log thread itself.
type Own = Layered<Targets, Registry>;

impl std::fmt::Debug for LogSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogSettings")
            .field("format", &self.format())
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log")
            .field("format", &self.format())
            .finish_non_exhaustive()
    }
}

/// Starts the log of the process: it writes events of `tracing`, and panics, to standard error or
/// to journald. `section` sets its destination, format and levels. Only one call per process is
/// allowed.
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
    let (reports, own_lines) = reports(format, Arc::clone(&output));
    let (queue, thread) = queue::start(Arc::clone(&output), Arc::clone(&rate_limit), reports)
        .map_err(|error| failed(&error))?;
    let (levels, handle) = reload::Layer::new(levels);
    let rate_limited = Arc::new(AtomicBool::new(section.rate_limited));
    let (written, lines) = reload::Layer::new(layer((section.target, format), &queue));
    registry()
        .with(levels)
        .with(RateLimitLayer {
            limit: rate_limit,
            is_active: Arc::clone(&rate_limited),
        })
        .with(written)
        .try_init()
        .map_err(|error| failed(&error))?;
    std::panic::set_hook(Box::new(log_panic));
    let settings = LogSettings {
        levels: handle,
        rate_limited,
        form: Arc::new(Mutex::new((section.target, format))),
        lines,
        reports: own_lines,
        queue: queue.clone(),
        output,
    };
    Ok(Log {
        settings,
        queue,
        _thread: thread,
    })
}

impl LogSettings {
    /// Changes the running log to the values of `section`. Lines that wait in the queue keep their
    /// format.
    ///
    /// # Errors
    /// `log.level` is not valid. Then nothing has changed.
    pub fn change(&self, section: &LogSection) -> Result<(), String> {
        let Levels(levels) = section.levels()?;
        let ended = |error: reload::Error| error.to_string();
        self.levels.reload(levels).map_err(ended)?;
        self.rate_limited
            .store(section.rate_limited, Ordering::Relaxed);
        let mut form = self.form.lock().unwrap_or_else(PoisonError::into_inner);
        if *form != (section.target, section.format) {
            *form = (section.target, section.format);
            let lines = layer(*form, &self.queue);
            self.lines.reload(lines).map_err(ended)?;
            let own_lines = formatted(section.format, Arc::clone(&self.output));
            self.reports.reload(own_lines).map_err(ended)?;
        }
        Ok(())
    }

    /// Returns the format of log lines (text or JSON).
    pub fn format(&self) -> LogFormat {
        let (_, format) = self.form();
        format
    }

    fn form(&self) -> Form {
        *self.form.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    /// Returns a handle that changes the log.
    pub fn settings(&self) -> LogSettings {
        self.settings.clone()
    }

    /// Returns the format of log lines (text or JSON).
    pub fn format(&self) -> LogFormat {
        self.settings.format()
    }

    /// Writes the text as one line of the log as it is, without time and level. It goes through the
    /// queue of the log, so it appears in order with other lines.
    pub fn line(&self, text: &dyn std::fmt::Display) {
        let line = match self.settings.form() {
            (LogTarget::Stderr, _) => Line::Text(format!("{text}\n").into_bytes()),
            (LogTarget::Journald, _) => {
                let message = Message::new(Priority::Info, &text.to_string());
                Line::Journal(message.into_bytes())
            }
        };
        self.queue.push(line);
    }
}

/// The layer that makes lines of events.
fn layer((target, format): Form, queue: &Queue) -> Lines<Limited> {
    match target {
        LogTarget::Stderr => formatted(format, queue.clone()),
        LogTarget::Journald => JournalLayer(queue.clone()).boxed(),
    }
}

/// The layer that formats events and writes them.
fn formatted<S, W>(format: LogFormat, writer: W) -> Lines<S>
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
fn reports(format: LogFormat, output: Arc<File>) -> (Dispatch, Handle<Lines<Own>, Own>) {
    // Without a filter, it would enable the events of all other threads.
    let own = Targets::new().with_target("smbeam_server::log", LevelFilter::INFO);
    let (lines, handle) = reload::Layer::new(formatted(format, output));
    (Dispatch::new(registry().with(own).with(lines)), handle)
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
