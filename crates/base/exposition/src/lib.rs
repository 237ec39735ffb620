//! Counts in the text format of Prometheus.
//!
//! Whoever is asked writes a [`Page`] from what it has: nothing is registered, and a series that
//! nobody writes is not there.

mod histogram;

pub use histogram::Histogram;

use std::fmt::{Display, Write};

/// A page that is being written.
#[derive(Clone, Debug, Default)]
pub struct Page(String);

impl Page {
    /// Begins a name: what kind of value it has (`counter`, `gauge`, …) and what it means.
    pub fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail, here and below.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    /// One value, with its labels in the order given.
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

    /// A name with one value and no labels.
    pub fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.head(name, kind, help);
        self.line(name, &[], value);
    }

    /// What was written.
    pub fn text(self) -> String {
        self.0
    }

    /// The lines of a histogram, with its labels in order of their names.
    pub fn histogram(&mut self, name: &str, labels: &[(&str, &str)], tally: &Histogram) {
        let at = labels.partition_point(|(name, _)| *name < "le");
        for (bound, sum) in tally.sums() {
            let mut labels = labels.to_vec();
            labels.insert(at, ("le", &bound));
            self.line(&format!("{name}_bucket"), &labels, sum);
        }
        self.line(&format!("{name}_sum"), labels, tally.sum());
        self.line(&format!("{name}_count"), labels, tally.count());
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
        let mut tally = Histogram::new(&[0.5]);
        tally.add(0.25);
        tally.add(2.0);
        page.histogram("c", &[("a", "1"), ("z", "2")], &tally);
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
