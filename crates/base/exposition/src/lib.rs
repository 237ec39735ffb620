//! Prometheus text format (the exposition format).
//!
//! A component writes its values onto a [`Page`] at each scrape. Nothing is registered, so a series that
//! no component writes does not exist.

mod histogram;

pub use histogram::Histogram;

use std::fmt::{Display, Write};

/// A metrics page under construction.
#[derive(Clone, Debug, Default)]
pub struct Page(String);

impl Page {
    /// Begins a metric: its type (`counter`, `gauge`, …) and its help text.
    pub fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail, here and below.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    /// Writes one sample, with its labels in the order given.
    pub fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        if !labels.is_empty() {
            self.0.push('{');
            for (at, (label, text)) in labels.iter().enumerate() {
                let comma = if at > 0 { "," } else { "" };
                let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
                let _ = write!(self.0, "{comma}{label}=\"{text}\"");
            }
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }

    /// Writes a metric with one sample and no labels.
    pub fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.head(name, kind, help);
        self.line(name, &[], value);
    }

    /// The text of the page.
    pub fn text(self) -> String {
        self.0
    }

    /// Writes the samples of a histogram, with its labels in order of their names.
    pub fn histogram(&mut self, name: &str, labels: &[(&str, &str)], histogram: &Histogram) {
        let at = labels.partition_point(|(name, _)| *name < "le");
        for (bound, sum) in histogram.buckets() {
            let mut labels = labels.to_vec();
            labels.insert(at, ("le", &bound));
            self.line(&format!("{name}_bucket"), &labels, sum);
        }
        self.line(&format!("{name}_sum"), labels, histogram.sum());
        self.line(&format!("{name}_count"), labels, histogram.count());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_histograms_end_with_infinity() {
        let mut page = Page::default();
        page.one("a_total", "counter", "All of them.", 3);
        page.line("b", &[("text", "say \"hi\"\n\\")], 0.5);
        let mut histogram = Histogram::new(&[0.5]);
        histogram.add(0.25);
        histogram.add(2.0);
        page.histogram("c", &[("a", "1"), ("z", "2")], &histogram);
        let expected = r#"# HELP a_total All of them.
# TYPE a_total counter
a_total 3
b{text="say \"hi\"\n\\"} 0.5
c_bucket{a="1",le="0.5",z="2"} 1
c_bucket{a="1",le="+Inf",z="2"} 2
c_sum{a="1",z="2"} 2.25
c_count{a="1",z="2"} 2
"#;
        assert_eq!(page.text(), expected);
    }
}
