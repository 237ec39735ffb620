//! Figures: a measured value with its unit, the median of several runs, and its text on the page.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The unit of a value. The serialized name is that of the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Unit {
    /// Operations per second.
    #[serde(rename = "/s")]
    Rate,
    /// Seconds.
    #[serde(rename = "s")]
    Time,
    /// Bytes of memory, of files or of text.
    #[serde(rename = "B")]
    Size,
    /// Bytes per second.
    #[serde(rename = "B/s")]
    Speed,
    /// A ratio.
    #[serde(rename = "times")]
    Times,
    /// The share of one processor core that was busy.
    #[serde(rename = "of a core")]
    Share,
    /// A number of requests, packages and the like.
    #[serde(rename = "number")]
    Number,
}

/// One measured value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    /// The value in the unit, rounded to six significant digits.
    pub(crate) value: f64,
    pub(crate) unit: Unit,
    /// The runs, if the value is a median.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(crate) runs: Option<Runs>,
}

/// The runs of a median.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Runs {
    #[serde(rename = "runs")]
    pub(crate) count: usize,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Figure {
    pub(crate) fn new(value: f64, unit: Unit) -> Self {
        // Nanoseconds on the clock suggest more precision than a measurement has.
        let value = format!("{value:.5e}").parse().unwrap_or(value);
        Self { value, unit, runs: None }
    }

    /// Operations per time.
    pub(crate) fn rate(count: usize, elapsed: Duration) -> Self {
        Self::new(float(count as u64) / elapsed.as_secs_f64(), Unit::Rate)
    }

    pub(crate) fn time(time: Duration) -> Self {
        Self::new(time.as_secs_f64(), Unit::Time)
    }

    pub(crate) fn size(bytes: u64) -> Self {
        Self::new(float(bytes), Unit::Size)
    }

    /// Bytes per time.
    pub(crate) fn speed(bytes: u64, elapsed: Duration) -> Self {
        Self::new(float(bytes) / elapsed.as_secs_f64(), Unit::Speed)
    }

    pub(crate) fn times(ratio: f64) -> Self {
        Self::new(ratio, Unit::Times)
    }

    /// Processor time as a share of the time that one core had.
    pub(crate) fn share(part: Duration, whole: Duration) -> Self {
        Self::new(part.as_secs_f64() / whole.as_secs_f64(), Unit::Share)
    }

    pub(crate) fn number(count: usize) -> Self {
        Self::new(float(count as u64), Unit::Number)
    }

    /// A total number per operation.
    pub(crate) fn each(count: usize, pieces: usize) -> Self {
        Self::new(float(count as u64) / float(pieces.max(1) as u64), Unit::Number)
    }

    /// The ratio to another figure; none for zero or another unit.
    pub(crate) fn ratio_to(self, other: Self) -> Option<Self> {
        let ratio = self.value / other.value;
        (self.unit == other.unit && ratio.is_finite()).then(|| Self::times(ratio))
    }
}

/// Counts and sizes are far below the precision of a double.
#[expect(clippy::cast_precision_loss, reason = "far below the precision of a double")]
pub(crate) fn float(count: u64) -> f64 {
    count as f64
}

/// The median, the upper one of an even number, with the range of all.
pub(crate) fn median(figures: &[Figure]) -> Option<Figure> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(|a, b| a.value.total_cmp(&b.value));
    let (least, most) = (sorted.first()?.value, sorted.last()?.value);
    let runs = Some(Runs { count: sorted.len(), least, most });
    sorted.get(sorted.len() / 2).map(|middle| Figure { runs, ..*middle })
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value;
        match self.unit {
            Unit::Time => f.write_str(&time(value)),
            Unit::Size => write!(f, "{} MB", grouped(value / 1e6, 1)),
            Unit::Speed => write!(f, "{} MB/s", significant(value / 1e6)),
            Unit::Times if value < 0.000_5 => f.write_str("below 0.001"),
            Unit::Times if value < 0.1 => write!(f, "{value:.3}"),
            Unit::Rate | Unit::Times => f.write_str(&significant(value)),
            // The kernel counts in hundredths of a second: less is indistinguishable from zero.
            Unit::Share if value < 0.001 => f.write_str("below 0.1 %"),
            Unit::Share => write!(f, "{:.1} %", value * 100.0),
            Unit::Number if value.fract() == 0.0 => f.write_str(&grouped(value, 0)),
            Unit::Number => f.write_str(&grouped(value, 1)),
        }
    }
}

/// A time in the unit that suits three digits.
fn time(seconds: f64) -> String {
    if seconds >= 1.0 {
        format!("{} s", significant(seconds))
    } else if seconds >= 1e-4 || seconds == 0.0 {
        format!("{} ms", significant(seconds * 1e3))
    } else {
        format!("{} µs", significant(seconds * 1e6))
    }
}

/// A value with as many decimals as give three significant digits.
fn significant(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        small if small < 10.0 => grouped(value, 2),
        middle if middle < 100.0 => grouped(value, 1),
        _ => grouped(value, 0),
    }
}

/// A number with so many decimals and thousands separators.
fn grouped(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let (whole, fraction) = text.split_once('.').map_or((&*text, ""), |(a, b)| (a, b));
    let mut out = String::new();
    for (at, digit) in whole.chars().enumerate() {
        let left = whole.len() - at;
        if at > 0 && left % 3 == 0 && digit.is_ascii_digit() {
            out.push(',');
        }
        out.push(digit);
    }
    if decimals > 0 {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_keeps_the_range_of_its_runs() {
        let times = [3, 1, 2].map(|ms| Figure::time(Duration::from_millis(ms)));
        let median = median(&times).unwrap();
        assert_eq!(median.to_string(), "2.00 ms");
        assert_eq!(median.runs, Some(Runs { count: 3, least: 0.001, most: 0.003 }));
        assert_eq!(super::median(&[]), None);
    }

    #[test]
    fn figures_are_formatted_with_three_digits_and_unit() {
        let time = |nanos| Figure::time(Duration::from_nanos(nanos)).to_string();
        assert_eq!(time(450), "0.45 µs");
        assert_eq!(time(64_000), "64.0 µs");
        assert_eq!(time(630_000), "0.63 ms");
        assert_eq!(time(98_760_000), "98.8 ms");
        assert_eq!(time(10_234_000_000), "10.2 s");
        assert_eq!(time(0), "0 ms");
        assert_eq!(Figure::rate(1_526_400, Duration::from_secs(1)).to_string(), "1,526,400");
        assert_eq!(Figure::size(1_014_040_000).to_string(), "1,014.0 MB");
        assert_eq!(Figure::times(0.0357).to_string(), "0.036");
        assert_eq!(Figure::times(0.0).to_string(), "below 0.001");
        assert_eq!(Figure::times(24.02).to_string(), "24.0");
        assert_eq!(Figure::each(376, 10).to_string(), "37.6");
        assert_eq!(Figure::number(20_300).to_string(), "20,300");
        let core = Duration::from_secs(10);
        assert_eq!(Figure::share(Duration::ZERO, core).to_string(), "below 0.1 %");
        assert_eq!(Figure::share(Duration::from_millis(250), core).to_string(), "2.5 %");
    }

    #[test]
    fn ratio_needs_figures_of_the_same_unit() {
        let (a, b) = (Figure::size(50), Figure::size(200));
        assert_eq!(a.ratio_to(b), Some(Figure::times(0.25)));
        assert_eq!(a.ratio_to(Figure::size(0)), None);
        assert_eq!(a.ratio_to(Figure::number(1)), None);
    }

    #[test]
    fn serialized_figure_has_six_digits_and_its_runs() {
        let runs = [1, 3].map(|third| Figure::times(f64::from(third) / 3.0));
        let text = serde_json::to_string(&median(&runs).unwrap()).unwrap();
        assert_eq!(text, r#"{"value":1.0,"unit":"times","runs":2,"least":0.333333,"most":1.0}"#);
        let read: Figure = serde_json::from_str(&text).unwrap();
        assert_eq!(Some(read), median(&runs));
        let single: Figure = serde_json::from_str(r#"{"value":2.0,"unit":"s"}"#).unwrap();
        assert_eq!(single, Figure::time(Duration::from_secs(2)));
    }
}
