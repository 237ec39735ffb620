//! How often something took how long, or was how large.

/// Counts of values between bounds.
#[derive(Clone, Debug)]
pub struct Histogram {
    bounds: &'static [f64],
    /// One for each bound, and one for what is above them all.
    counts: Vec<u64>,
    sum: f64,
}

impl Histogram {
    /// No values yet. The bounds grow; what is above the last of them is counted all the same.
    pub fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    /// Counts a value.
    pub fn add(&mut self, value: f64) {
        let at = self.bounds.iter().position(|bound| value <= *bound);
        self.counts[at.unwrap_or(self.bounds.len())] += 1;
        self.sum += value;
    }

    /// The bounds as they are written, and how many values are no larger.
    pub fn sums(&self) -> impl Iterator<Item = (String, u64)> {
        let bounds = self.bounds.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
        let sums = self.counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        bounds.zip(sums)
    }

    /// All values together.
    pub const fn sum(&self) -> f64 {
        self.sum
    }

    /// How many values there were.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_grow_to_the_count() {
        let mut histogram = Histogram::new(&[0.5, 1.0]);
        for value in [0.25, 0.5, 0.75, 8.0] {
            histogram.add(value);
        }
        let sums: Vec<(String, u64)> = histogram.sums().collect();
        let expected = [("0.5", 2), ("1", 3), ("+Inf", 4)];
        assert_eq!(sums, expected.map(|(bound, sum)| (bound.to_owned(), sum)));
        assert_eq!((histogram.count(), histogram.sum()), (4, 9.5));
    }
}
