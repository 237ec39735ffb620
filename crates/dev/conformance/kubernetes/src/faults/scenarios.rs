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
    /// Titles of those of which that is known.
    judged: BTreeSet<String>,
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
        let (good, judged) = (BTreeSet::new(), BTreeSet::new());
        Ok(Self { all, recordings, differences, good, judged })
    }

    /// Runs without a fault what is tried first for these.
    pub async fn prepare(&mut self, faults: &[&Fault]) {
        let titles: BTreeSet<String> = faults.iter().map(|fault| fault.by.to_string()).collect();
        self.judge(|scenario| titles.contains(&scenario.title())).await;
    }

    /// Runs some without a fault, unless that was done before.
    async fn judge(&mut self, wanted: impl Fn(&Scenario) -> bool) {
        let new =
            |scenario: &&Scenario| wanted(scenario) && !self.judged.contains(&scenario.title());
        let scenarios: Vec<&Scenario> = self.all.iter().filter(new).collect();
        if scenarios.is_empty() {
            return;
        }
        let server = Server::embedded().await;
        let judged = check::against_recordings(
            &scenarios,
            &self.recordings,
            &server,
            None,
            self.differences,
        );
        let good = judged.await.into_iter().filter(|judged| judged.verdict.is_good());
        self.good.extend(good.map(|judged| judged.scenario.title()));
        self.judged.extend(scenarios.iter().map(|scenario| scenario.title()));
    }

    /// Seeds a fault and runs scenarios until one differs, twice, each time on a fresh server: first the
    /// one that the list names, then, unless only that is wanted, those of its area, then all.
    pub async fn hunt(&mut self, fault: &Fault, only_listed: bool) -> Hunt {
        let Finder::Scenario(first) = &fault.by else {
            return Hunt::Useless(format!("{} is no scenario", fault.by));
        };
        let mut met = false;
        let is_first = |scenario: &Scenario| scenario.title() == *first;
        let is_near = |scenario: &Scenario| scenario.area == fault.area;
        if let Some(by) = self.find(fault, is_first, &mut met).await {
            return Hunt::Found(by);
        }
        if only_listed {
            return if met { Hunt::Unnoticed } else { Hunt::NotMet };
        }
        let mut by = self.find(fault, |other| is_near(other) && !is_first(other), &mut met).await;
        if by.is_none() {
            by = self.find(fault, |other| !is_near(other) && !is_first(other), &mut met).await;
        }
        match by {
            Some(by) => Hunt::Found(format!("{by}, not by {first}")),
            None if met => Hunt::Unnoticed,
            None => Hunt::NotMet,
        }
    }

    /// The title of the first of some scenarios that differs, and differs again.
    async fn find(
        &mut self,
        fault: &Fault,
        wanted: impl Fn(&Scenario) -> bool,
        met: &mut bool,
    ) -> Option<String> {
        self.judge(&wanted).await;
        let good = |scenario: &&Scenario| wanted(scenario) && self.good.contains(&scenario.title());
        let mut left: Vec<&Scenario> = self.all.iter().filter(good).collect();
        for _ in 0..TRIES {
            let title = self.first_difference(fault, &left, met).await?;
            let again: Vec<&Scenario> =
                left.iter().copied().filter(|scenario| scenario.title() == title).collect();
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
