//! Processor time of repeated work.

use crate::table::percentile;
use mainstay_clock::processor_time;
use std::hint::black_box;
use std::time::Duration;

/// Work that takes longer than this is not repeated.
const TIMEOUT: Duration = Duration::from_millis(500);

/// The median of so many runs after a warm-up run, and the result of the work. A long warm-up run
/// counts itself.
pub(super) fn median_time<T>(rounds: usize, mut work: impl FnMut() -> T) -> (T, Duration) {
    let begin = processor_time();
    let result = black_box(work());
    let first = processor_time().saturating_sub(begin);
    let mut times = Vec::new();
    while times.len() < rounds && processor_time().saturating_sub(begin) < TIMEOUT {
        let before = processor_time();
        let again = black_box(work());
        times.push(processor_time().saturating_sub(before));
        drop(again);
    }
    times.sort_unstable();
    (result, times.get(times.len() / 2).copied().unwrap_or(first))
}

/// Named times of many runs.
#[derive(Debug, Default)]
pub(super) struct Times(Vec<(Duration, String)>);

impl Times {
    pub(super) fn note(&mut self, time: Duration, name: impl Into<String>) {
        self.0.push((time, name.into()));
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Median, 99th percentile, maximum and the name of the maximum.
    pub(super) fn summary(&self) -> (Duration, Duration, Duration, &str) {
        let mut sorted: Vec<Duration> = self.0.iter().map(|(time, _)| *time).collect();
        sorted.sort_unstable();
        let most = self.0.iter().max();
        let (most, name) = most.map_or((Duration::ZERO, "–"), |(time, name)| (*time, name));
        (percentile(&sorted, 50), percentile(&sorted, 99), most, name)
    }
}

/// Ratios of pairs of times, whose geometric mean weighs each pair equally.
#[derive(Debug, Default)]
pub(super) struct Ratios(Vec<f64>);

impl Ratios {
    /// Adds a pair and returns its ratio; none if a time is zero, which is not compared.
    pub(super) fn note(&mut self, theirs: Duration, ours: Duration) -> Option<f64> {
        let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
        let compared = ratio.is_finite() && ratio > 0.0;
        compared.then(|| self.0.push(ratio)).map(|()| ratio)
    }

    /// The geometric mean; none without pairs.
    pub(super) fn mean(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "some thousands of pairs")]
        let count = self.0.len() as f64;
        let sum: f64 = self.0.iter().map(|ratio| ratio.ln()).sum();
        (count > 0.0).then(|| (sum / count).exp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_repeated_and_its_result_returned() {
        let mut count = 0;
        let (result, _) = median_time(5, || {
            count += 1;
            count
        });
        assert_eq!((result, count), (1, 6));
    }

    #[test]
    fn a_summary_names_the_slowest() {
        let mut times = Times::default();
        for ms in 1..=200 {
            times.note(Duration::from_millis(ms), format!("w{ms}"));
        }
        let (median_time, p99, most, name) = times.summary();
        assert_eq!((median_time.as_millis(), p99.as_millis(), most.as_millis()), (101, 199, 200));
        assert_eq!((name, times.len()), ("w200", 200));
        assert_eq!(Times::default().summary().3, "–");
    }

    #[test]
    fn geometric_mean_of_half_and_double_is_one() {
        let mut ratios = Ratios::default();
        assert_eq!(ratios.mean(), None);
        ratios.note(Duration::from_secs(2), Duration::from_secs(1));
        ratios.note(Duration::from_secs(1), Duration::from_secs(2));
        assert_eq!(ratios.note(Duration::ZERO, Duration::from_secs(1)), None);
        assert!(ratios.mean().is_some_and(|mean| (mean - 1.0).abs() < 1e-9));
    }
}
