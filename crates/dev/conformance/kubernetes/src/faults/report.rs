//! What became of each fault, line by line, and whether that is enough.

use super::list::Fault;
use anyhow::bail;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How many of a hundred must be found.
const ENOUGH: usize = 95;

/// What became of a fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hunt {
    /// This passes without it, and failed with it twice.
    Found(String),
    /// Nothing differed.
    Unnoticed,
    /// Nothing comes by its place.
    NotMet,
    /// What shall find it cannot: why.
    Useless(String),
}

impl fmt::Display for Hunt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found(by) => write!(f, "found by {by}"),
            Self::Unnoticed => f.write_str("NOT FOUND"),
            Self::NotMet => f.write_str("NOT FOUND: nothing comes by"),
            Self::Useless(why) => write!(f, "NOT FOUND: {why}"),
        }
    }
}

/// What became of all.
#[derive(Debug, Default)]
pub struct Report {
    hunted: Vec<(Fault, Hunt)>,
}

impl Report {
    /// Takes note of what became of a fault; the line that says it.
    pub fn add(&mut self, fault: &Fault, hunt: Hunt) -> String {
        let line = format!("{:<10} {:<44} {hunt}", fault.area, fault.name);
        self.hunted.push((fault.clone(), hunt));
        line
    }

    /// Those that were not found, each on a line, and the total.
    pub fn total(&self) -> String {
        let missed = self.hunted.iter().filter(|(_, hunt)| !matches!(hunt, Hunt::Found(_)));
        let mut lines: Vec<String> = missed
            .map(|(fault, _)| {
                let why = fault.missed.as_deref().unwrap_or("nobody knows why");
                format!("not found: {} ({}): {why}\n", fault.name, fault.what)
            })
            .collect();
        lines.push(format!("faults: {} of {} found\n", self.found(), self.hunted.len()));
        lines.concat()
    }

    /// How many faults were hunted.
    pub fn len(&self) -> usize {
        self.hunted.len()
    }

    /// Whether none was hunted.
    pub fn is_empty(&self) -> bool {
        self.hunted.is_empty()
    }

    fn found(&self) -> usize {
        self.hunted.iter().filter(|(_, hunt)| matches!(hunt, Hunt::Found(_))).count()
    }

    /// # Errors
    ///
    /// Too few were found, or one was not of which the list does not say why, or one was of which it does.
    pub fn verdict(&self) -> anyhow::Result<()> {
        let mut wrong = Vec::new();
        for (fault, hunt) in &self.hunted {
            match (hunt, &fault.missed) {
                (Hunt::Found(_), Some(_)) => {
                    wrong.push(format!("{} is found, and listed as missed", fault.name));
                }
                (Hunt::Found(_), None) | (_, Some(_)) => {}
                (_, None) => wrong.push(format!("{} is not found", fault.name)),
            }
        }
        if self.found() * 100 < self.hunted.len() * ENOUGH {
            wrong.push(format!("at least {ENOUGH} of a hundred must be found"));
        }
        if !wrong.is_empty() {
            bail!("not all faults are as they shall be\n{}", wrong.join("\n"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::list::Finder;

    fn report(hunts: &[(Hunt, Option<&str>)]) -> Report {
        let mut report = Report::default();
        for (at, (hunt, missed)) in hunts.iter().enumerate() {
            let fault = Fault {
                name: format!("fault-{at}"),
                area: "access".to_owned(),
                what: "something is wrong".to_owned(),
                by: Finder::Scenario("access/one".to_owned()),
                missed: missed.map(str::to_owned),
            };
            report.add(&fault, hunt.clone());
        }
        report
    }

    #[test]
    fn what_is_missed_is_named_and_must_be_known() {
        let found = || Hunt::Found("access/one".to_owned());
        let mut hunts = vec![(found(), None); 39];
        hunts.push((Hunt::Unnoticed, Some("nobody looks")));
        let good = report(&hunts);
        assert!(good.verdict().is_ok());
        assert_eq!(
            good.total(),
            "not found: fault-39 (something is wrong): nobody looks\nfaults: 39 of 40 found\n"
        );
        for wrong in [
            vec![(Hunt::NotMet, None); 1],
            vec![(found(), Some("nobody looks"))],
            vec![(found(), None), (Hunt::Unnoticed, Some("nobody looks"))],
        ] {
            assert!(report(&wrong).verdict().is_err(), "{wrong:?}");
        }
    }
}
