//! Figures in columns.

use std::fmt;
use std::time::Duration;

/// A table whose first row names the columns, printed as Markdown.
pub(crate) struct Table(Vec<Vec<String>>);

impl Table {
    pub(crate) fn new(columns: &[&str]) -> Self {
        Self(vec![columns.iter().map(|&it| it.to_owned()).collect()])
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.0.push(cells.into_iter().collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.0.first().map_or(0, Vec::len);
        let width = |at: usize| {
            self.0
                .iter()
                .filter_map(|row| row.get(at))
                .map(|it| it.chars().count())
                .max()
                .unwrap_or_default()
        };
        let widths: Vec<_> = (0..columns).map(width).collect();
        for (at, row) in self.0.iter().enumerate() {
            for (cell, width) in row.iter().zip(&widths) {
                write!(f, "| {cell:<width$} ")?;
            }
            writeln!(f, "|")?;
            if at == 0 {
                for width in &widths {
                    write!(f, "|{:-<1$}", "", width + 2)?;
                }
                writeln!(f, "|")?;
            }
        }
        Ok(())
    }
}

/// A rate as whole events per second.
pub(crate) fn per_second(count: usize, elapsed: Duration) -> String {
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of a benchmark are far below the precision of a double"
    )]
    let count = count as f64;
    format!("{:.0}", count / elapsed.as_secs_f64())
}

/// A duration in milliseconds, with as many decimals as say something.
pub(crate) fn millis(duration: Duration) -> String {
    let millis = duration.as_secs_f64() * 1000.0;
    if millis < 10.0 { format!("{millis:.2} ms") } else { format!("{millis:.0} ms") }
}

/// A size in megabytes of a million bytes.
pub(crate) fn megabytes(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
}

/// How much of a time another one was, in percent. The kernel counts in hundredths of a second, so
/// nothing means less than one of them.
pub(crate) fn percent(part: Duration, whole: Duration) -> String {
    if part.is_zero() {
        return "below 0.1 %".to_owned();
    }
    format!("{:.1} %", part.as_secs_f64() / whole.as_secs_f64() * 100.0)
}

/// The value below which so many percent of the sorted samples lie.
pub(crate) fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or_default()
}
