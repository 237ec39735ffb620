//! The report of all faults, and whether enough were detected.

use super::list::SeededFault;
use anyhow::bail;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The percentage of faults that must be detected.
const REQUIRED_PERCENT: usize = 95;

/// The result of a fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Detection {
    /// This scenario or test passes without the fault, and failed with it twice.
    Detected(String),
    /// Nothing failed.
    Undetected,
    /// Nothing reached the faulty code.
    NotReached,
    /// The listed scenario or test cannot be used, with the reason.
    Invalid(String),
}

impl fmt::Display for Detection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Detected(by) => write!(f, "found by {by}"),
            Self::Undetected => f.write_str("NOT FOUND"),
            Self::NotReached => f.write_str("NOT FOUND: nothing comes by"),
            Self::Invalid(reason) => write!(f, "NOT FOUND: {reason}"),
        }
    }
}

/// The results of all faults.
#[derive(Debug, Default)]
pub struct FaultReport {
    detections: Vec<(SeededFault, Detection)>,
}

impl FaultReport {
    /// Adds a result, and returns its line.
    pub fn add(&mut self, fault: &SeededFault, detection: Detection) -> String {
        let line = format!("{:<10} {:<44} {detection}", fault.area, fault.name);
        self.detections.push((fault.clone(), detection));
        line
    }

    /// The undetected faults, one per line, and the total.
    pub fn total(&self) -> String {
        let undetected = self
            .detections
            .iter()
            .filter(|(_, detection)| !matches!(detection, Detection::Detected(_)));
        let mut lines: Vec<String> = undetected
            .map(|(fault, _)| {
                let reason = fault.undetected_reason.as_deref().unwrap_or("nobody knows why");
                format!("not found: {} ({}): {reason}\n", fault.name, fault.what)
            })
            .collect();
        lines.push(format!(
            "faults: {} of {} found\n",
            self.detected_count(),
            self.detections.len()
        ));
        lines.concat()
    }

    /// The number of results.
    pub fn len(&self) -> usize {
        self.detections.len()
    }

    /// Whether there are no results.
    pub fn is_empty(&self) -> bool {
        self.detections.is_empty()
    }

    fn detected_count(&self) -> usize {
        self.detections
            .iter()
            .filter(|(_, detection)| matches!(detection, Detection::Detected(_)))
            .count()
    }

    /// Checks the results.
    ///
    /// # Errors
    ///
    /// Too few faults were detected, an undetected fault has no reason in the list, or a detected
    /// one has.
    pub fn check(&self) -> anyhow::Result<()> {
        let mut problems = Vec::new();
        for (fault, detection) in &self.detections {
            match (detection, &fault.undetected_reason) {
                (Detection::Detected(_), Some(_)) => {
                    problems.push(format!("{} is found, and listed as missed", fault.name));
                }
                (Detection::Detected(_), None) | (_, Some(_)) => {}
                (_, None) => problems.push(format!("{} is not found", fault.name)),
            }
        }
        if self.detected_count() * 100 < self.detections.len() * REQUIRED_PERCENT {
            problems.push(format!("at least {REQUIRED_PERCENT} of a hundred must be found"));
        }
        if !problems.is_empty() {
            bail!("not all faults are as they shall be\n{}", problems.join("\n"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::list::Detector;

    fn report(detections: &[(Detection, Option<&str>)]) -> FaultReport {
        let mut report = FaultReport::default();
        for (at, (detection, undetected)) in detections.iter().enumerate() {
            let fault = SeededFault {
                name: format!("fault-{at}"),
                area: "access".to_owned(),
                what: "something is wrong".to_owned(),
                detected_by: Detector::Scenario("access/one".to_owned()),
                undetected_reason: undetected.map(str::to_owned),
            };
            report.add(&fault, detection.clone());
        }
        report
    }

    #[test]
    fn undetected_faults_are_reported_and_need_a_reason() {
        let detected_count = || Detection::Detected("access/one".to_owned());
        let mut detections = vec![(detected_count(), None); 39];
        detections.push((Detection::Undetected, Some("nobody looks")));
        let good = report(&detections);
        assert!(good.check().is_ok());
        assert_eq!(
            good.total(),
            "not found: fault-39 (something is wrong): nobody looks\nfaults: 39 of 40 found\n"
        );
        for problems in [
            vec![(Detection::NotReached, None); 1],
            vec![(detected_count(), Some("nobody looks"))],
            vec![(detected_count(), None), (Detection::Undetected, Some("nobody looks"))],
        ] {
            assert!(report(&problems).check().is_err(), "{problems:?}");
        }
    }
}
