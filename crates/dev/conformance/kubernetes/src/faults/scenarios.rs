//! Faults in Kubernetes: scenarios run on an embedded API with a fault, and are compared with their
//! recordings.

use super::list::{Detector, SeededFault};
use super::report::Detection;
use crate::check::{self, CONCURRENCY, ScenarioComparison, ScenarioResult};
use crate::differences::Differences;
use crate::recording::Recording;
use crate::scenario::Scenario;
use crate::server::Server;
use futures::StreamExt;
use std::collections::{BTreeMap, BTreeSet};

/// How many scenarios that differed once are repeated.
const MAX_TRIES: usize = 3;

/// Detects faults with scenarios.
pub struct ScenarioDetector<'a> {
    all: &'a [Scenario],
    recordings: BTreeMap<(String, String), Recording>,
    differences: &'a Differences,
    /// Titles of the scenarios that pass without a fault; only these can detect one.
    passing: BTreeSet<String>,
    /// Titles of the scenarios that ran without a fault.
    baselined: BTreeSet<String>,
}

impl<'a> ScenarioDetector<'a> {
    /// Reads the recordings of all scenarios.
    ///
    /// # Errors
    ///
    /// A file is no recording.
    pub fn new(
        home: &std::path::Path,
        all: &'a [Scenario],
        differences: &'a Differences,
    ) -> anyhow::Result<Self> {
        let recordings = check::recordings(home, all)?;
        let (passing, baselined) = (BTreeSet::new(), BTreeSet::new());
        Ok(Self { all, recordings, differences, passing, baselined })
    }

    /// Runs the listed scenarios of these faults without a fault.
    pub async fn prepare(&mut self, faults: &[&SeededFault]) {
        let titles: BTreeSet<String> =
            faults.iter().map(|fault| fault.detected_by.to_string()).collect();
        self.run_baseline(|scenario| titles.contains(&scenario.title())).await;
    }

    /// Runs the selected scenarios without a fault, unless they ran already.
    async fn run_baseline(&mut self, selected: impl Fn(&Scenario) -> bool) {
        let new = |scenario: &&Scenario| {
            selected(scenario) && !self.baselined.contains(&scenario.title())
        };
        let scenarios: Vec<&Scenario> = self.all.iter().filter(new).collect();
        if scenarios.is_empty() {
            return;
        }
        let server = Server::embedded().await;
        let baselined = check::against_recordings(
            &scenarios,
            &self.recordings,
            &server,
            None,
            self.differences,
        );
        let passing = baselined.await.into_iter().filter(|baselined| baselined.comparison.passes());
        self.passing.extend(passing.map(|baselined| baselined.scenario.title()));
        self.baselined.extend(scenarios.iter().map(|scenario| scenario.title()));
    }

    /// Seeds a fault and runs scenarios until one fails twice, each time on a fresh server: first
    /// the listed one, then, unless `only_listed` is set, those of its area, then all.
    pub async fn detect(&mut self, fault: &SeededFault, only_listed: bool) -> Detection {
        let Detector::Scenario(first) = &fault.detected_by else {
            return Detection::Invalid(format!("{} is no scenario", fault.detected_by));
        };
        let mut reached = false;
        let is_first = |scenario: &Scenario| scenario.title() == *first;
        let is_near = |scenario: &Scenario| scenario.area == fault.area;
        if let Some(by) = self.find(fault, is_first, &mut reached).await {
            return Detection::Detected(by);
        }
        if only_listed {
            return if reached { Detection::Undetected } else { Detection::NotReached };
        }
        let mut by =
            self.find(fault, |other| is_near(other) && !is_first(other), &mut reached).await;
        if by.is_none() {
            by = self.find(fault, |other| !is_near(other) && !is_first(other), &mut reached).await;
        }
        match by {
            Some(by) => Detection::Detected(format!("{by}, not by {first}")),
            None if reached => Detection::Undetected,
            None => Detection::NotReached,
        }
    }

    /// The title of the first selected scenario that fails twice.
    async fn find(
        &mut self,
        fault: &SeededFault,
        selected: impl Fn(&Scenario) -> bool,
        reached: &mut bool,
    ) -> Option<String> {
        self.run_baseline(&selected).await;
        let passing =
            |scenario: &&Scenario| selected(scenario) && self.passing.contains(&scenario.title());
        let mut remaining: Vec<&Scenario> = self.all.iter().filter(passing).collect();
        for _ in 0..MAX_TRIES {
            let title = self.first_difference(fault, &remaining, reached).await?;
            let again: Vec<&Scenario> =
                remaining.iter().copied().filter(|scenario| scenario.title() == title).collect();
            if self.first_difference(fault, &again, reached).await.is_some() {
                return Some(title);
            }
            remaining.retain(|scenario| scenario.title() != title);
        }
        None
    }

    /// Seeds a fault, runs scenarios on a fresh server until the first difference, and removes the
    /// fault.
    async fn first_difference(
        &self,
        fault: &SeededFault,
        scenarios: &[&Scenario],
        reached: &mut bool,
    ) -> Option<String> {
        if scenarios.is_empty() {
            return None;
        }
        // Start the controllers before the fault is seeded.
        let server = Server::embedded().await;
        mainstay_fault::seed(Some(&fault.name));
        let run_baseline = |scenario| {
            check::against_recording(scenario, &self.recordings, &server, None, self.differences)
        };
        let mut baselined = futures::stream::iter(scenarios.iter().copied())
            .map(run_baseline)
            .buffer_unordered(CONCURRENCY);
        let mut found = None;
        while let Some(ScenarioResult { scenario, comparison }) = baselined.next().await {
            if matches!(
                comparison,
                ScenarioComparison::Different(_) | ScenarioComparison::Failed(..)
            ) {
                found = Some(scenario.title());
                break;
            }
        }
        drop(baselined);
        *reached |= mainstay_fault::was_reached();
        mainstay_fault::seed(None);
        found
    }
}
