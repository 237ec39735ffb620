//! One measured thing: how it is printed, how several runs of it become one, and how it compares.

use crate::table::{megabytes, millis};
use std::fmt;
use std::time::Duration;

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Figure {
    /// How often per second.
    Rate(f64),
    /// How long.
    Time(Duration),
    /// How much memory or text, in bytes.
    Size(u64),
}

impl Figure {
    /// So many pieces of work in so much time.
    pub(crate) fn rate(count: usize, elapsed: Duration) -> Self {
        #[expect(
            clippy::cast_precision_loss,
            reason = "counts of a benchmark are far below the precision of a double"
        )]
        let count = count as f64;
        Self::Rate(count / elapsed.as_secs_f64())
    }

    /// The same work of several runs as one figure: the median, except that a size is that of the
    /// first run. A process that has been through one run holds memory that it could give back, and
    /// a server that is not ours cannot be started afresh for every run.
    pub(crate) fn of_runs(runs: &[Self]) -> Option<Self> {
        if let Some(Self::Size(_)) = runs.first() {
            return runs.first().copied();
        }
        median(runs)
    }

    /// How many times the other figure this one is.
    pub(crate) fn ratio(self, other: Self) -> String {
        let ratio = self.value() / other.value();
        if !ratio.is_finite() {
            "–".to_owned()
        } else if ratio < 10.0 {
            format!("{ratio:.2}")
        } else {
            format!("{ratio:.0}")
        }
    }

    fn value(self) -> f64 {
        #[expect(
            clippy::cast_precision_loss,
            reason = "bytes of a process are far below the precision of a double"
        )]
        match self {
            Self::Rate(rate) => rate,
            Self::Time(time) => time.as_secs_f64(),
            Self::Size(size) => size as f64,
        }
    }
}

/// The middle one; of an even number the upper of the two.
pub(crate) fn median(figures: &[Figure]) -> Option<Figure> {
    sorted(figures).get(figures.len() / 2).copied()
}

/// From the smallest to the largest, as text.
pub(crate) fn spread(figures: &[Figure]) -> String {
    let sorted = sorted(figures);
    match (sorted.first(), sorted.last()) {
        (Some(first), Some(last)) => format!("{first} … {last}"),
        _ => "–".to_owned(),
    }
}

fn sorted(figures: &[Figure]) -> Vec<Figure> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(|a, b| a.value().total_cmp(&b.value()));
    sorted
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(rate) => write!(f, "{rate:.0}"),
            Self::Time(time) => f.write_str(&millis(*time)),
            Self::Size(size) => f.write_str(&megabytes(*size)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_runs_a_time_is_the_median_and_a_size_the_first() {
        let times = [3, 1, 2].map(|it| Figure::Time(Duration::from_millis(it)));
        assert_eq!(Figure::of_runs(&times), Some(Figure::Time(Duration::from_millis(2))));
        assert_eq!(spread(&times), "1.00 ms … 3.00 ms");
        let sizes = [3, 1, 2].map(Figure::Size);
        assert_eq!(Figure::of_runs(&sizes), Some(Figure::Size(3)));
        assert_eq!(Figure::of_runs(&[]), None);
    }

    #[test]
    fn a_ratio_says_how_many_times_the_other_this_is() {
        assert_eq!(Figure::Size(50).ratio(Figure::Size(200)), "0.25");
        assert_eq!(Figure::Rate(300.0).ratio(Figure::Rate(20.0)), "15");
        assert_eq!(Figure::Size(1).ratio(Figure::Size(0)), "–");
    }
}
