//! Catalog changes during an upgrade.

use super::installs::is_at_latest;
use crate::dependencies::{self, ANVIL, CHISEL, NEEDY, Release};
use crate::olm_cluster::{CATALOG_NAMESPACE, OlmCluster, catalog};
use crate::webhooks::edit_csv;
use mainstay_api::resources::CATALOG_SOURCE;
use mainstay_client::DeleteOptions;
use mainstay_testdata::is_deep;
use mainstay_testkit::chaos::{
    State, WriteCounter, run_in_parallel, sample_points, wait_for_end_state, wait_until_settled,
};
use mainstay_testkit::{InjectedFault, ObservedRequest};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio_util::sync::CancellationToken;

/// A catalog change while an operator is upgraded from 1.0.0 over 1.1.0 to 1.2.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// 1.3.0 is added.
    NewHead,
    /// 1.2.0 is withdrawn.
    HeadWithdrawn,
    /// Only 2.0.0 remains, which replaces all older versions.
    Replaced,
    /// The CatalogSource is deleted.
    Deleted,
    /// The CatalogSource is deleted and created again.
    Recreated,
    /// The catalog is unreadable, and then 1.3.0 is added.
    Broken,
    /// The dependency of 1.1.0 is in two other catalogs, and the second one gets the higher
    /// priority.
    Preferred,
}

const UPGRADES: [&str; 3] = ["1.0.0", "1.1.0", "1.2.0"];

/// A catalog of 2.0.0 alone.
fn replacement_catalog() -> String {
    let text = catalog(&["2.0.0"], |_, bundle| {
        edit_csv(bundle, |csv| {
            csv["metadata"]["annotations"] = json!({"olm.skipRange": "<2.0.0"});
        });
    });
    let lines = text.lines().map(|line| {
        let mut document: Value = serde_json::from_str(line).unwrap();
        if document["schema"] == "olm.channel" {
            document["entries"][0]["skipRange"] = "<2.0.0".into();
        }
        document.to_string()
    });
    lines.collect::<Vec<_>>().join("\n")
}

impl Change {
    const ALL: [Self; 7] = [
        Self::NewHead,
        Self::HeadWithdrawn,
        Self::Replaced,
        Self::Deleted,
        Self::Recreated,
        Self::Broken,
        Self::Preferred,
    ];

    /// The versions that may be installed at the time of the change. A version that resolution has
    /// chosen is installed, whatever the catalog says later.
    fn versions_at_change(self) -> &'static [&'static str] {
        match self {
            Self::NewHead | Self::Recreated | Self::Broken => &UPGRADES[2..],
            Self::HeadWithdrawn => &UPGRADES[1..],
            Self::Preferred => &UPGRADES[..2],
            Self::Replaced | Self::Deleted => &UPGRADES,
        }
    }

    async fn apply(self, olm: &OlmCluster) {
        let options = DeleteOptions::default();
        let cluster = olm.cluster.cluster();
        match self {
            Self::NewHead => olm.publish(&["1.0.0", "1.1.0", "1.2.0", "1.3.0"]),
            Self::HeadWithdrawn => olm.publish(&UPGRADES[..2]),
            Self::Replaced => olm.publish_text(&replacement_catalog()),
            Self::Deleted | Self::Recreated => {
                cluster
                    .ensure_deleted(&CATALOG_SOURCE, Some(CATALOG_NAMESPACE), "cat", &options)
                    .await
                    .unwrap();
                olm.cluster.wait_gone(&CATALOG_SOURCE, Some(CATALOG_NAMESPACE), "cat").await;
                if self == Self::Recreated {
                    olm.create_catalog_source("cat", 0).await;
                }
            }
            Self::Broken => {
                olm.publish_text("{\"schema\": ");
                olm.publish(&["1.0.0", "1.1.0", "1.2.0", "1.3.0"]);
            }
            Self::Preferred => olm.create_catalog_source("second", 20).await,
        }
    }

    /// The last CSV of the upgrade.
    const fn head(self) -> &'static str {
        if matches!(self, Self::Preferred) { "anvil.v1.1.0" } else { "anvil.v1.2.0" }
    }

    /// An operator that is at 1.0.0, without controllers.
    async fn prepare(self, offered: &[&str]) -> OlmCluster {
        let mut olm = OlmCluster::start(&UPGRADES[..1]).await;
        olm.apply_group("og").await;
        olm.subscribe(json!({})).await;
        olm.wait_until_succeeded("anvil.v1.0.0").await;
        olm.wait_for_subscription(is_at_latest).await;
        olm.stop_controllers().await;
        if self == Self::Preferred {
            for (name, priority) in [("first", 10), ("second", 0)] {
                let folder = tempfile::tempdir().unwrap();
                let text = dependencies::catalog(&[CHISEL], &|_, _| (), &[]);
                std::fs::write(folder.path().join("catalog.json"), text).unwrap();
                olm.others.push((name, folder));
                olm.create_catalog_source(name, priority).await;
            }
            let needy = Release { version: "1.1.0", replaces: Some("1.0.0"), ..NEEDY };
            let all = [ANVIL, needy];
            let offered = &all[..offered.len().min(all.len())];
            olm.publish_text(&dependencies::catalog(offered, &|_, _| (), &[]));
        } else {
            olm.publish(offered);
        }
        olm
    }

    /// The end state of an operator that is idle at the time of the change.
    async fn end(self, at: usize) -> State {
        if self == Self::Preferred && at == 0 {
            // Resolution has chosen nothing before the change.
            let olm = self.prepare(&UPGRADES).await;
            self.apply(&olm).await;
            let count = WriteCounter::default();
            let classic = olm.spawn_controllers(&count.connect(&olm.cluster));
            olm.wait_until_succeeded(self.head()).await;
            let end = wait_until_settled(&olm, &count).await;
            classic.shutdown().await;
            return end;
        }
        let mut olm = self.prepare(&UPGRADES[..=at]).await;
        olm.start_controllers().await;
        let version = format!("anvil.v{}", UPGRADES[at]);
        olm.wait_until_succeeded(&version).await;
        olm.wait_for_subscription(move |subscription| {
            is_at_latest(subscription)
                && subscription.str(&["status", "installedCSV"]) == Some(&version)
        })
        .await;
        olm.wait_until_idle().await;
        olm.stop_controllers().await;
        let count = WriteCounter::default();
        let classic = olm.spawn_controllers(&count.connect(&olm.cluster));
        self.apply(&olm).await;
        let end = wait_until_settled(&olm, &count).await;
        classic.shutdown().await;
        end
    }

    async fn ends(self) -> Vec<State> {
        let mut ends = Vec::new();
        for version in self.versions_at_change() {
            let at = UPGRADES.iter().position(|upgrade| upgrade == version).unwrap();
            ends.push(self.end(at).await);
        }
        ends
    }

    /// Applies the change at a write of the upgrade, and kills the controllers there if `kills`.
    async fn met(self, at: usize, kills: bool, ends: &[State]) {
        let killed = if kills { ", which kills the controllers" } else { "" };
        let how = || format!("{self:?} at write {at}{killed}");
        let olm = self.prepare(&UPGRADES).await;
        let reached = CancellationToken::new();
        let reach = reached.clone();
        let begun = WriteCounter::default();
        let hears = begun.clone();
        let doomed = olm.cluster.with_faults(move |request| {
            hears.count_write(request);
            if request.is_write() && request.writes >= at {
                reach.cancel();
            }
            if kills && reach.is_cancelled() {
                InjectedFault::ConnectionLost
            } else {
                InjectedFault::Pass
            }
        });
        let first = olm.spawn_controllers(&doomed);
        // If this run has fewer writes, the change comes after the upgrade.
        let done = async {
            olm.wait_until_succeeded(self.head()).await;
            wait_until_settled(&olm, &begun).await;
        };
        tokio::select! {
            () = reached.cancelled() => {}
            () = done => reached.cancel(),
        }
        let count = WriteCounter::default();
        let second = if kills {
            first.shutdown().await;
            self.apply(&olm).await;
            olm.spawn_controllers(&count.connect(&olm.cluster))
        } else {
            self.apply(&olm).await;
            first
        };
        wait_for_end_state(&olm, ends, how).await;
        count.wait_until_quiet(how).await;
        second.shutdown().await;
    }
}

/// The number of writes of the upgrade.
async fn count_writes(change: Change) -> usize {
    let olm = change.prepare(&UPGRADES).await;
    let count = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&count);
    let cluster = olm.cluster.with_faults(move |request: &ObservedRequest| {
        if request.is_write() {
            seen.fetch_max(request.writes + 1, Ordering::SeqCst);
        }
        InjectedFault::Pass
    });
    let classic = olm.spawn_controllers(&cluster);
    olm.wait_until_succeeded(change.head()).await;
    classic.shutdown().await;
    count.load(Ordering::SeqCst)
}

/// Applies changes at each write of an upgrade. Without `MAINSTAY_DEEP`, every second change comes, in the middle.
async fn assert_change_at_each_write(changes: &[Change]) {
    let step = if is_deep() { 1 } else { 2 };
    for (number, change) in changes.iter().step_by(step).enumerate() {
        // The order of the last writes differs between runs.
        let last = count_writes(*change).await.saturating_sub(6);
        let ends = change.ends().await;
        let ends = &ends;
        let both = sample_points(last, 1).into_iter().flat_map(|at| [(at, false), (at, true)]);
        let chosen = both.filter(|(_, kills)| is_deep() || *kills == number.is_multiple_of(2));
        let what = format!("{change:?} at each of {last} writes of an upgrade");
        run_in_parallel(&what, chosen.map(|(at, kills)| change.met(at, kills, ends))).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn latest_catalog_content_wins_at_any_write_of_an_upgrade() {
    assert_change_at_each_write(&Change::ALL[..3]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn catalog_deleted_or_broken_during_an_upgrade_stops_no_started_install() {
    assert_change_at_each_write(&Change::ALL[3..]).await;
}
