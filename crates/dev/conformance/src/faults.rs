//! The proof of the harness: faults that are seeded into the server one by one, each of which the
//! scenarios must find.
//!
//! Where a fault is in the code is where `mainstay_fault::is_on` is asked for its name.

use crate::check::{self, AT_A_TIME, Judged, Verdict};
use crate::differences::Differences;
use crate::recording::Recording;
use crate::scenario::Scenario;
use crate::server::Server;
use futures::StreamExt;
use std::collections::BTreeMap;
use std::fmt;

/// A fault.
#[derive(Debug)]
pub struct Fault {
    /// What the code calls it.
    pub name: &'static str,
    /// The area whose scenarios are likely to find it; they are tried first.
    pub area: &'static str,
    /// What goes wrong.
    pub what: &'static str,
}

const fn fault(area: &'static str, name: &'static str, what: &'static str) -> Fault {
    Fault { name, area, what }
}

/// All faults.
pub const FAULTS: &[Fault] = &[];

/// What became of a fault.
#[derive(Debug)]
pub enum Hunt {
    /// This scenario found it.
    Found(String),
    /// Its place was come by, and no scenario differed.
    Unnoticed,
    /// No scenario comes by its place.
    NotMet,
}

impl fmt::Display for Hunt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found(by) => write!(f, "found by {by}"),
            Self::Unnoticed => f.write_str("NOT FOUND"),
            Self::NotMet => f.write_str("NOT FOUND: no scenario comes by"),
        }
    }
}

type Recordings = BTreeMap<(String, String), Recording>;

/// The scenarios that are as they shall be without a fault: only these can tell.
pub async fn good<'a>(
    all: &'a [Scenario],
    recordings: &Recordings,
    differences: &Differences,
) -> Vec<&'a Scenario> {
    let wanted: Vec<&Scenario> = all.iter().collect();
    let server = Server::embedded().await;
    let judged = check::against_recordings(&wanted, recordings, &server, None, differences).await;
    judged.into_iter().filter(|it| it.verdict.is_good()).map(|it| it.scenario).collect()
}

/// Seeds a fault, runs scenarios on a fresh server until the first difference, and takes it out.
pub async fn hunt(
    fault: &Fault,
    good: &[&Scenario],
    recordings: &Recordings,
    differences: &Differences,
) -> Hunt {
    let mut order: Vec<&Scenario> = good.to_vec();
    order.sort_by_key(|scenario| scenario.area != fault.area);
    // The controllers shall be up before anything is wrong.
    let server = Server::embedded().await;
    mainstay_fault::seed(Some(fault.name));
    let mut judged = futures::stream::iter(order)
        .map(|scenario| check::against_recording(scenario, recordings, &server, None, differences))
        .buffer_unordered(AT_A_TIME);
    let mut found = None;
    while let Some(Judged { scenario, verdict }) = judged.next().await {
        if matches!(verdict, Verdict::Different(_) | Verdict::Broken(..)) {
            found = Some(scenario.title());
            break;
        }
    }
    drop(judged);
    let met = mainstay_fault::was_met();
    mainstay_fault::seed(None);
    match found {
        Some(by) => Hunt::Found(by),
        None if met => Hunt::Unnoticed,
        None => Hunt::NotMet,
    }
}
