//! Histograms of durations and sizes.

/// Counts of values in buckets.
#[derive(Clone, Debug)]
pub struct Histogram {
    bounds: &'static [f64],
    /// One for each bound, and one for larger values.
    counts: Vec<u64>,
    sum: f64,
}

impl Histogram {
    /// An empty histogram. The bounds must be ascending; larger values count in a bucket `+Inf`.
    pub fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    /// Counts a value.
    pub fn add(&mut self, value: f64) {
        let at = self.bounds.iter().position(|bound| value <= *bound);
        self.counts[at.unwrap_or(self.bounds.len())] += 1;
        self.sum += value;
    }

    /// The bounds as text, each with the count of values that are not larger.
    pub fn buckets(&self) -> impl Iterator<Item = (String, u64)> {
        let bounds = self.bounds.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
        let sums = self.counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        bounds.zip(sums)
    }

    /// The sum of all values.
    pub const fn sum(&self) -> f64 {
        self.sum
    }

    /// The count of all values.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative_and_end_with_the_count() {
        let mut histogram = Histogram::new(&[0.5, 1.0]);
        for value in [0.25, 0.5, 0.75, 8.0] {
            histogram.add(value);
        }
        let sums: Vec<(String, u64)> = histogram.buckets().collect();
        let expected = [("0.5", 2), ("1", 3), ("+Inf", 4)];
        assert_eq!(sums, expected.map(|(bound, sum)| (bound.to_owned(), sum)));
        assert_eq!((histogram.count(), histogram.sum()), (4, 9.5));
    }
}
