//! Catalogs that change while an operator is upgraded from them.

use super::installs::known_latest;
use super::state::{State, ends_as};
use super::{Count, points, settled, side_by_side};
use crate::dependencies::{self, ANVIL, CHISEL, NEEDY, Release};
use crate::webhooks::edit_csv;
use crate::world::{CATALOGS, World, catalog};
use mainstay_api::resources::CATALOG_SOURCE;
use mainstay_client::DeleteOptions;
use mainstay_testkit::{Asked, Fate};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio_util::sync::CancellationToken;

/// What becomes of the catalog of an operator that is at 1.0.0, and is to walk over 1.1.0 to 1.2.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// There is also 1.3.0.
    NewHead,
    /// 1.2.0 is withdrawn.
    HeadWithdrawn,
    /// There is 2.0.0 alone, which follows whatever is older.
    Replaced,
    /// There is no catalog any more.
    Deleted,
    /// It goes and comes again.
    MadeAnew,
    /// Nothing can be read of it, and then there is also 1.3.0.
    Broken,
    /// What 1.1.0 needs is in two other catalogs, and the one that came second comes first.
    Preferred,
}

const UPGRADES: [&str; 3] = ["1.0.0", "1.1.0", "1.2.0"];

/// A catalog of 2.0.0 alone.
fn anew() -> String {
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
        Self::MadeAnew,
        Self::Broken,
        Self::Preferred,
    ];

    /// The versions that the operator may have come to when it meets the change, and rests at without
    /// it. What is chosen once is installed, whatever the catalog says since.
    fn met_at(self) -> &'static [&'static str] {
        match self {
            Self::NewHead | Self::MadeAnew | Self::Broken => &UPGRADES[2..],
            Self::HeadWithdrawn => &UPGRADES[1..],
            Self::Preferred => &UPGRADES[..2],
            Self::Replaced | Self::Deleted => &UPGRADES,
        }
    }

    async fn happen(self, world: &World) {
        let options = DeleteOptions::default();
        let cluster = world.cluster.cluster();
        match self {
            Self::NewHead => world.publish(&["1.0.0", "1.1.0", "1.2.0", "1.3.0"]),
            Self::HeadWithdrawn => world.publish(&UPGRADES[..2]),
            Self::Replaced => world.publish_text(&anew()),
            Self::Deleted | Self::MadeAnew => {
                cluster
                    .ensure_deleted(&CATALOG_SOURCE, Some(CATALOGS), "cat", &options)
                    .await
                    .unwrap();
                world.cluster.wait_gone(&CATALOG_SOURCE, Some(CATALOGS), "cat").await;
                if self == Self::MadeAnew {
                    world.source("cat", 0).await;
                }
            }
            Self::Broken => {
                world.publish_text("{\"schema\": ");
                world.publish(&["1.0.0", "1.1.0", "1.2.0", "1.3.0"]);
            }
            Self::Preferred => world.source("second", 20).await,
        }
    }

    /// What comes last of the upgrade.
    const fn head(self) -> &'static str {
        if matches!(self, Self::Preferred) { "anvil.v1.1.0" } else { "anvil.v1.2.0" }
    }

    /// An operator that is at 1.0.0, without controllers.
    async fn ready(self, offered: &[&str]) -> World {
        let mut world = World::start(&UPGRADES[..1]).await;
        world.group("og").await;
        world.subscribe(json!({})).await;
        world.succeeded("anvil.v1.0.0").await;
        world.subscription(known_latest).await;
        world.pause().await;
        if self == Self::Preferred {
            for (name, priority) in [("first", 10), ("second", 0)] {
                let folder = tempfile::tempdir().unwrap();
                let text = dependencies::catalog(&[CHISEL], &|_, _| (), &[]);
                std::fs::write(folder.path().join("catalog.json"), text).unwrap();
                world.others.push((name, folder));
                world.source(name, priority).await;
            }
            let needy = Release { version: "1.1.0", replaces: Some("1.0.0"), ..NEEDY };
            let all = [ANVIL, needy];
            let offered = &all[..offered.len().min(all.len())];
            world.publish_text(&dependencies::catalog(offered, &|_, _| (), &[]));
        } else {
            world.publish(offered);
        }
        world
    }

    /// Where an operator comes to that meets the change at rest.
    async fn end(self, at: usize) -> State {
        if self == Self::Preferred && at == 0 {
            // Nothing is chosen before it.
            let world = self.ready(&UPGRADES).await;
            self.happen(&world).await;
            let count = Count::default();
            let classic = world.begin_over(&count.over(&world));
            world.succeeded(self.head()).await;
            let end = settled(&world, &count).await;
            classic.shutdown().await;
            return end;
        }
        let mut world = self.ready(&UPGRADES[..=at]).await;
        world.resume().await;
        let version = format!("anvil.v{}", UPGRADES[at]);
        world.succeeded(&version).await;
        world
            .subscription(move |subscription| {
                known_latest(subscription)
                    && subscription.str(&["status", "installedCSV"]) == Some(&version)
            })
            .await;
        world.left_alone().await;
        world.pause().await;
        let count = Count::default();
        let classic = world.begin_over(&count.over(&world));
        self.happen(&world).await;
        let end = settled(&world, &count).await;
        classic.shutdown().await;
        end
    }

    async fn ends(self) -> Vec<State> {
        let mut ends = Vec::new();
        for version in self.met_at() {
            let at = UPGRADES.iter().position(|upgrade| upgrade == version).unwrap();
            ends.push(self.end(at).await);
        }
        ends
    }

    /// The change happens at a write of the upgrade; the controllers may be killed by it.
    async fn met(self, at: usize, kills: bool, ends: &[State]) {
        let killed = if kills { ", which kills the controllers" } else { "" };
        let how = || format!("{self:?} at write {at}{killed}");
        let world = self.ready(&UPGRADES).await;
        let reached = CancellationToken::new();
        let reach = reached.clone();
        let begun = Count::default();
        let hears = begun.clone();
        let doomed = world.cluster.troubled(move |asked| {
            hears.hear(asked);
            if asked.is_write() && asked.writes >= at {
                reach.cancel();
            }
            if kills && reach.is_cancelled() { Fate::Lost } else { Fate::Pass }
        });
        let first = world.begin_over(&doomed);
        // Another run may take fewer writes: then it is met when all is done.
        let done = async {
            world.succeeded(self.head()).await;
            settled(&world, &begun).await;
        };
        tokio::select! {
            () = reached.cancelled() => {}
            () = done => reached.cancel(),
        }
        let count = Count::default();
        let second = if kills {
            first.shutdown().await;
            self.happen(&world).await;
            world.begin_over(&count.over(&world))
        } else {
            self.happen(&world).await;
            first
        };
        ends_as(&world, ends, how).await;
        count.calm(how).await;
        second.shutdown().await;
    }
}

/// How many writes the upgrade takes.
async fn writes(change: Change) -> usize {
    let world = change.ready(&UPGRADES).await;
    let count = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&count);
    let cluster = world.cluster.troubled(move |asked: &Asked| {
        if asked.is_write() {
            seen.fetch_max(asked.writes + 1, Ordering::SeqCst);
        }
        Fate::Pass
    });
    let classic = world.begin_over(&cluster);
    world.succeeded(change.head()).await;
    classic.shutdown().await;
    count.load(Ordering::SeqCst)
}

async fn met_at_each_write(changes: &[Change], few: usize) {
    for change in changes {
        // The last ones may come otherwise in another run.
        let last = writes(*change).await.saturating_sub(6);
        let ends = change.ends().await;
        let ends = &ends;
        let both = points(last, few).into_iter().flat_map(|at| [(at, false), (at, true)]);
        let what = format!("{change:?} at each of {last} writes of an upgrade");
        side_by_side(&what, both.map(|(at, kills)| change.met(at, kills, ends))).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn latest_catalog_content_wins_at_any_write_of_an_upgrade() {
    met_at_each_write(&Change::ALL[..3], 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn catalog_deleted_or_broken_during_an_upgrade_stops_no_started_install() {
    met_at_each_write(&Change::ALL[3..], 3).await;
}
