//! Log lines as text: time, level, message, and the fields of the event.

use std::fmt::{self, Debug, Write as _};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::escape::{push_text, push_value};

/// Formats an event as one line of text. Every value is escaped, because a peer may have chosen it.
pub(super) struct Text;

impl<S, N> FormatEvent<S, N> for Text
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let Fields {
            message, values, ..
        } = fields;
        SystemTime.format_time(&mut writer)?;
        write_level(&mut writer, *event.metadata().level())?;
        writeln!(writer, "{message}{values}")
    }
}

fn write_level(writer: &mut Writer<'_>, level: Level) -> fmt::Result {
    if !writer.has_ansi_escapes() {
        return write!(writer, " {level:>5} ");
    }
    let color = match level {
        Level::ERROR => 31,
        Level::WARN => 33,
        Level::INFO => 32,
        Level::DEBUG => 34,
        Level::TRACE => 35,
    };
    write!(writer, " \u{1b}[{color}m{level:>5}\u{1b}[0m ")
}

/// The escaped message and fields of an event.
#[derive(Default)]
pub(super) struct Fields {
    message: String,
    /// ` name=value` for each field.
    values: String,
    /// Memory for one value.
    scratch: String,
}

impl Fields {
    /// The message and the fields.
    pub(super) fn line(&self) -> String {
        format!("{}{}", self.message, self.values)
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => push_text(&mut self.message, value),
            // The `log` crate's own description of its events.
            name if name.starts_with("log.") => {}
            name => {
                self.values.extend([" ", name, "="]);
                push_value(&mut self.values, value);
            }
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = std::mem::take(&mut self.scratch);
        text.clear();
        // A value that cannot be formatted must not cost the line.
        let _ = write!(text, "{value:?}");
        self.record_str(field, &text);
        self.scratch = text;
    }
}
