//! Faults in Kubernetes: the embedded API has one, and the scenarios are held against their recordings.

use super::list::{Fault, Finder};
use super::report::Hunt;
use crate::check::{self, AT_A_TIME, Judged, Verdict};
use crate::differences::Differences;
use crate::recording::Recording;
use crate::scenario::Scenario;
use crate::server::Server;
use futures::StreamExt;
use std::collections::{BTreeMap, BTreeSet};

/// How many scenarios that differed once are given a second try.
const TRIES: usize = 3;

/// Finds faults with scenarios.
pub struct Hunter<'a> {
    all: &'a [Scenario],
    recordings: BTreeMap<(String, String), Recording>,
    differences: &'a Differences,
    /// Titles of the scenarios that are as they shall be without a fault; only these can tell.
    good: BTreeSet<String>,
    /// Whether that is known of all of them.
    judged_all: bool,
}

impl<'a> Hunter<'a> {
    /// With all scenarios and what is recorded of them.
    ///
    /// # Errors
    ///
    /// A file that is no recording.
    pub fn new(
        home: &std::path::Path,
        all: &'a [Scenario],
        differences: &'a Differences,
    ) -> anyhow::Result<Self> {
        let recordings = check::recordings(home, all)?;
        Ok(Self { all, recordings, differences, good: BTreeSet::new(), judged_all: false })
    }

    /// Runs without a fault what is tried first for these.
    pub async fn prepare(&mut self, faults: &[&Fault]) {
        let titles: BTreeSet<String> = faults.iter().map(|fault| fault.by.to_string()).collect();
        let wanted: Vec<&Scenario> =
            self.all.iter().filter(|scenario| titles.contains(&scenario.title())).collect();
        self.judge(&wanted).await;
    }

    async fn judge(&mut self, scenarios: &[&Scenario]) {
        let server = Server::embedded().await;
        let judged =
            check::against_recordings(scenarios, &self.recordings, &server, None, self.differences);
        let good = judged.await.into_iter().filter(|judged| judged.verdict.is_good());
        self.good.extend(good.map(|judged| judged.scenario.title()));
    }

    /// Seeds a fault and runs scenarios until one differs, twice, each time on a fresh server: first the
    /// one that the list names, then those of its area, then all.
    pub async fn hunt(&mut self, fault: &Fault) -> Hunt {
        let Finder::Scenario(first) = &fault.by else {
            return Hunt::Useless(format!("{} is no scenario", fault.by));
        };
        let mut met = false;
        let named: Vec<&Scenario> = self.chosen(|title, _| title == first.as_str());
        if let Some(by) = self.find(fault, &named, &mut met).await {
            return Hunt::Found(by);
        }
        if !self.judged_all {
            let rest: Vec<&Scenario> =
                self.all.iter().filter(|it| !self.good.contains(&it.title())).collect();
            self.judge(&rest).await;
            self.judged_all = true;
        }
        let mut rest: Vec<&Scenario> = self.chosen(|title, _| title != first.as_str());
        rest.sort_by_key(|scenario| scenario.area != fault.area);
        match self.find(fault, &rest, &mut met).await {
            Some(by) => Hunt::Found(format!("{by}, not by {first}")),
            None if met => Hunt::Unnoticed,
            None => Hunt::NotMet,
        }
    }

    fn chosen(&self, wanted: impl Fn(&str, &Scenario) -> bool) -> Vec<&'a Scenario> {
        let is_wanted = |scenario: &&Scenario| {
            let title = scenario.title();
            self.good.contains(&title) && wanted(&title, scenario)
        };
        self.all.iter().filter(is_wanted).collect()
    }

    /// The title of the first of some scenarios that differs, and differs again.
    async fn find(&self, fault: &Fault, scenarios: &[&Scenario], met: &mut bool) -> Option<String> {
        let mut left: Vec<&Scenario> = scenarios.to_vec();
        for _ in 0..TRIES {
            let title = self.first_difference(fault, &left, met).await?;
            let again: Vec<&Scenario> =
                left.iter().copied().filter(|it| it.title() == title).collect();
            if self.first_difference(fault, &again, met).await.is_some() {
                return Some(title);
            }
            left.retain(|scenario| scenario.title() != title);
        }
        None
    }

    /// Seeds a fault, runs scenarios on a fresh server until the first difference, and takes it out.
    async fn first_difference(
        &self,
        fault: &Fault,
        scenarios: &[&Scenario],
        met: &mut bool,
    ) -> Option<String> {
        if scenarios.is_empty() {
            return None;
        }
        // The controllers shall be up before anything is wrong.
        let server = Server::embedded().await;
        mainstay_fault::seed(Some(&fault.name));
        let judge = |scenario| {
            check::against_recording(scenario, &self.recordings, &server, None, self.differences)
        };
        let mut judged =
            futures::stream::iter(scenarios.iter().copied()).map(judge).buffer_unordered(AT_A_TIME);
        let mut found = None;
        while let Some(Judged { scenario, verdict }) = judged.next().await {
            if matches!(verdict, Verdict::Different(_) | Verdict::Broken(..)) {
                found = Some(scenario.title());
                break;
            }
        }
        drop(judged);
        *met |= mainstay_fault::was_met();
        mainstay_fault::seed(None);
        found
    }
}
