//! Log output: text for people, JSON or logfmt for programs.

use mainstay_cause::Cause;
use mainstay_cli::args::LogFormat;
use mainstay_clock::Clock;
use mainstay_command::report;
use serde_json::{Map, Value};
use std::fmt::{self, Write as _};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Starts the log on standard error.
pub(crate) fn start(filter: &str, format: LogFormat) -> Result<(), Cause> {
    let filter = tracing_subscriber::EnvFilter::try_new(filter).map_err(|error| {
        Cause::new(format!("--log {filter} is not a log filter"))
            .because(Cause::new(error.to_string()))
            .remedy("write it as a level (`info`) or as TARGET=LEVEL pairs")
    })?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => builder.with_ansi(report::colours_on_stderr()).init(),
        LogFormat::Json => {
            builder.event_format(LineFormat { clock: Clock::system(), json: true }).init();
        }
        LogFormat::Logfmt => {
            builder.event_format(LineFormat { clock: Clock::system(), json: false }).init();
        }
    }
    Ok(())
}

/// One line for each event, as JSON or as `key=value`.
struct LineFormat {
    clock: Clock,
    json: bool,
}

impl<S, N> FormatEvent<S, N> for LineFormat
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
        let mut fields = Fields(vec![
            ("time", self.clock.now_micro().into()),
            ("level", event.metadata().level().as_str().to_ascii_lowercase().into()),
            ("target", event.metadata().target().into()),
        ]);
        event.record(&mut fields);
        let line = if self.json { fields.json() } else { fields.logfmt() };
        writeln!(writer, "{line}")
    }
}

/// The fields of an event, in their order.
struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    fn json(self) -> String {
        let fields = self.0.into_iter().map(|(name, value)| (name.to_owned(), value));
        Value::Object(fields.collect::<Map<_, _>>()).to_string()
    }

    fn logfmt(&self) -> String {
        let mut line = String::new();
        for (name, value) in &self.0 {
            let separator = if line.is_empty() { "" } else { " " };
            let text = match value {
                Value::String(text) if is_bare_word(text) => text.clone(),
                // logfmt has the same escapes as JSON.
                value => value.to_string(),
            };
            // Writing to a string does not fail.
            let _ = write!(line, "{separator}{name}={text}");
        }
        line
    }
}

/// Whether a logfmt value needs no quotes.
fn is_bare_word(text: &str) -> bool {
    let needs_quotes = |character: char| {
        character.is_whitespace() || character.is_control() || matches!(character, '"' | '=' | '\\')
    };
    !text.is_empty() && !text.contains(needs_quotes)
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push((field.name(), format!("{value:?}").into()));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push((field.name(), value.into()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.push((field.name(), value.into()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.push((field.name(), value.into()));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.push((field.name(), value.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_is_one_line_whatever_its_fields_contain() {
        let fields = || {
            Fields(vec![
                ("level", "info".into()),
                ("object", "team/anvil".into()),
                ("steps", 3.into()),
                ("why", "two\nlines, \"quoted\" a=b".into()),
                ("empty", "".into()),
            ])
        };
        assert_eq!(
            fields().logfmt(),
            "level=info object=team/anvil steps=3 why=\"two\\nlines, \\\"quoted\\\" a=b\" empty=\"\""
        );
        let json: Value = serde_json::from_str(&fields().json()).unwrap();
        assert_eq!(json["why"], "two\nlines, \"quoted\" a=b");
        assert!(!fields().json().contains('\n'));
    }
}
