//! Log lines as messages for journald: the text without time and level, the priority, and each
//! field of the event.

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::queue::{Line, Queue};
use super::text::Fields;
use crate::journal::{Message, Priority};

/// A layer that makes a message of each event.
pub(super) struct JournalLayer(pub(super) Queue);

impl<S: Subscriber> Layer<S> for JournalLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        self.0.push(Line::Journal(message(event)));
    }
}

fn message(event: &Event<'_>) -> Vec<u8> {
    let mut text = Fields::default();
    event.record(&mut text);
    let priority = match *event.metadata().level() {
        Level::ERROR => Priority::Error,
        Level::WARN => Priority::Warning,
        Level::INFO => Priority::Info,
        _ => Priority::Debug,
    };
    let mut message = Message::new(priority, &text.line());
    message.field("SMBEAM_MODULE", event.metadata().target());
    event.record(&mut JournalFields(&mut message));
    message.into_bytes()
}

/// Adds the fields of an event.
struct JournalFields<'a>(&'a mut Message);

impl Visit for JournalFields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        let name = field.name();
        // The message is there already. The others describe events of the `log` crate.
        if name != "message" && !name.starts_with("log.") {
            let name = name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
            let name = format!("SMBEAM_{}", name.to_ascii_uppercase());
            self.0.field(&name, value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    /// Keeps the last message.
    struct Last(std::sync::Arc<Mutex<Vec<u8>>>);

    impl<S: Subscriber> Layer<S> for Last {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            *self.0.lock().expect("no panic") = message(event);
        }
    }

    #[test]
    fn events_have_a_priority_and_their_fields() {
        let last = std::sync::Arc::<Mutex<Vec<u8>>>::default();
        let subscriber = tracing_subscriber::registry().with(Last(std::sync::Arc::clone(&last)));
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(user = "x\ny", count = 3, "login refused");
        });
        let message = last.lock().expect("no panic").clone();
        let text = String::from_utf8_lossy(&message);
        assert!(
            text.starts_with("PRIORITY=4\nSYSLOG_IDENTIFIER=smbeam\n"),
            "{text}"
        );
        assert!(
            text.contains("\nMESSAGE=login refused user=\"x\\ny\" count=3\n"),
            "{text}"
        );
        assert!(text.contains("\nSMBEAM_COUNT=3\n"), "{text}");
        let mut user = b"SMBEAM_USER\n".to_vec();
        user.extend_from_slice(&3_u64.to_le_bytes());
        user.extend_from_slice(b"x\ny\n");
        assert!(
            message.windows(user.len()).any(|part| part == user),
            "{text}"
        );
    }
}
