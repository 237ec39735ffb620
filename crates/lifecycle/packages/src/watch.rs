//! Watches: the events of a client, computed as a difference of states.
//!
//! A watch keeps which PackageManifests its client knows, and compares them with the state after each
//! change. A slow client gets the difference to the latest state only, so no queue grows and no other
//! request waits for it.

use crate::handler::{ResponseBody, expired, json, revision};
use crate::query::Query;
use crate::select::{PackageKey, SelectedPackage, Selection};
use crate::state::{PackageApi, State};
use crate::table::{PackageManifest, Representation};
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream;
use http::Response;
use mainstay_object::Status;
use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Interval, Sleep};

/// The time between two bookmarks.
const BOOKMARK_INTERVAL: Duration = Duration::from_mins(1);
/// The time after which a watch without `timeoutSeconds` ends.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(45);

/// An event that is not sent yet.
enum WatchEvent {
    Added(Box<SelectedPackage>),
    Modified(Box<SelectedPackage>),
    Deleted(Box<PackageManifest>),
    /// The bookmark after the initial events.
    InitialEventsEnd(u64),
}

/// A watch: what its client knows, and the events that are not sent yet.
struct WatchStream {
    packages: PackageApi,
    selection: Selection,
    representation: Representation,
    known_manifests: BTreeMap<PackageKey, PackageManifest>,
    events: VecDeque<WatchEvent>,
    /// The revision of the state that `known_manifests` and `events` come from.
    revision: u64,
    changes: watch::Receiver<u64>,
    bookmarks: Option<Interval>,
    end: Pin<Box<Sleep>>,
    columns_sent: bool,
}

impl PackageApi {
    pub(crate) async fn watch(
        &self,
        selection: Selection,
        representation: Representation,
        query: &Query,
    ) -> Result<Response<ResponseBody>, Status> {
        let after = revision(query)?;
        let initial = query.text("sendInitialEvents");
        if !initial.is_empty() && query.text("resourceVersionMatch") != "NotOlderThan" {
            return Err(Status::bad_request(
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ));
        }
        let bookmarks = query.flag("allowWatchBookmarks");
        let sends_initial_end = bookmarks && initial == "true";
        // The watch begins with all PackageManifests on request, or without a resourceVersion.
        let sends_initial = initial == "true" || after == 0 && initial.is_empty();
        let seconds = query.text("timeoutSeconds").parse().ok().filter(|seconds| *seconds > 0);
        let timeout = seconds.map_or(DEFAULT_TIMEOUT, Duration::from_secs);
        let changes = self.inner.revision.subscribe();
        let selected = selection.clone();
        let started = self.run_blocking(move |packages| {
            let state = packages.state();
            let items = packages.select(&state, &selected);
            let known_manifests = match (sends_initial, after) {
                (_, after) if after > state.revision => None,
                (true, _) => Some(BTreeMap::new()),
                (false, 0) => Some(manifests_by_key(&items)),
                (false, after) => packages.manifests_at(&state, &items, after, &selected),
            };
            known_manifests.map(|known_manifests| {
                (
                    state.revision,
                    difference(&state, &known_manifests, &items),
                    manifests_by_key(&items),
                )
            })
        });
        let started = started.await.ok_or_else(|| Status::internal("the watch could not begin"))?;
        let Some((revision, mut events, known_manifests)) = started else {
            // An ERROR event with 410 makes the client list again.
            let event = event_line("ERROR", expired(after).to_value().to_string().as_bytes());
            return Ok(json(ResponseBody::Whole(event)));
        };
        if sends_initial_end {
            events.push_back(WatchEvent::InitialEventsEnd(revision));
        }
        let watch_stream = WatchStream {
            packages: self.clone(),
            selection,
            representation,
            known_manifests,
            events,
            revision,
            changes,
            bookmarks: bookmarks.then(|| {
                let mut interval = tokio::time::interval(BOOKMARK_INTERVAL);
                interval.reset();
                interval
            }),
            end: Box::pin(tokio::time::sleep(timeout)),
            columns_sent: false,
        };
        let events = stream::unfold(watch_stream, |mut watch_stream| async move {
            watch_stream.next().await.map(|line| (line, watch_stream))
        });
        Ok(json(ResponseBody::Stream(events.boxed())))
    }

    /// The PackageManifests at an earlier revision: the current ones with all later changes undone. None
    /// if the changes since then are not kept.
    fn manifests_at(
        &self,
        state: &State,
        items: &[SelectedPackage],
        revision: u64,
        selection: &Selection,
    ) -> Option<BTreeMap<PackageKey, PackageManifest>> {
        if revision < state.changes_complete_since || revision > state.revision {
            return None;
        }
        let mut known_manifests = manifests_by_key(items);
        for change in state.changes_since(revision) {
            let key = (change.catalog.clone(), change.package.clone());
            let namespace =
                selection.visible_namespace(&change.catalog, &self.inner.global_namespace);
            let before = change.before.clone().zip(namespace);
            match before.filter(|(summary, namespace)| selection.matches(summary, namespace)) {
                // The old revision differs from the current one, so the package counts as changed.
                Some((summary, namespace)) => {
                    known_manifests.insert(key, PackageManifest { summary, namespace, revision });
                }
                None => drop(known_manifests.remove(&key)),
            }
        }
        Some(known_manifests)
    }
}

fn manifests_by_key(items: &[SelectedPackage]) -> BTreeMap<PackageKey, PackageManifest> {
    items.iter().map(|item| (item.key(), item.manifest())).collect()
}

/// The events that lead from the known PackageManifests to the current ones, ordered by revision.
fn difference(
    state: &State,
    known_manifests: &BTreeMap<PackageKey, PackageManifest>,
    items: &[SelectedPackage],
) -> VecDeque<WatchEvent> {
    let mut events: Vec<(u64, WatchEvent)> = Vec::new();
    let current = manifests_by_key(items);
    let removed = known_manifests.iter().filter(|(key, _)| !current.contains_key(*key));
    for ((catalog, package), manifest) in removed {
        let is_of_package = |change: &&crate::state::PackageChange| {
            change.catalog == *catalog && change.package == *package
        };
        let revision = state
            .changes_since(manifest.revision)
            .find(is_of_package)
            .map_or(state.revision, |change| change.revision);
        let manifest = PackageManifest { revision, ..manifest.clone() };
        // Another catalog may have the package: the name now means its PackageManifest.
        let is_same_name = |item: &&SelectedPackage| {
            item.summary.name == *package && item.namespace == manifest.namespace
        };
        let other = items.iter().find(is_same_name).cloned();
        events.push((revision, WatchEvent::Deleted(Box::new(manifest))));
        events.extend(other.map(|item| (revision, WatchEvent::Added(Box::new(item)))));
    }
    for item in items {
        let revision = item.entry.revision;
        match known_manifests.get(&item.key()) {
            None => events.push((revision, WatchEvent::Added(Box::new(item.clone())))),
            Some(manifest) if manifest.revision != revision => {
                events.push((revision, WatchEvent::Modified(Box::new(item.clone()))));
            }
            Some(_) => {}
        }
    }
    events.sort_by_key(|(revision, _)| *revision);
    events.into_iter().map(|(_, event)| event).collect()
}

/// Why a watch continues or ends.
enum WakeReason {
    Changed,
    Bookmark,
    End,
}

impl WatchStream {
    /// The line of the next event; none at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            while let Some(event) = self.events.pop_front() {
                if let Some(line) = self.render_event(event).await {
                    return Some(line);
                }
            }
            match self.wait().await {
                WakeReason::Changed => self.refresh().await?,
                WakeReason::Bookmark => return Some(self.render_bookmark(self.revision, false)),
                WakeReason::End => return None,
            }
        }
    }

    async fn wait(&mut self) -> WakeReason {
        let bookmark = async {
            match &mut self.bookmarks {
                Some(interval) => drop(interval.tick().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = self.changes.changed() => if changed.is_ok() { WakeReason::Changed } else { WakeReason::End },
            () = bookmark => WakeReason::Bookmark,
            () = &mut self.end => WakeReason::End,
            () = self.packages.inner.stop.cancelled() => WakeReason::End,
        }
    }

    /// Computes the events since the last state. The state itself is not kept.
    async fn refresh(&mut self) -> Option<()> {
        let known_manifests = std::mem::take(&mut self.known_manifests);
        let selection = self.selection.clone();
        let refreshed = self.packages.run_blocking(move |packages| {
            let state = packages.state();
            let items = packages.select(&state, &selection);
            (state.revision, difference(&state, &known_manifests, &items), manifests_by_key(&items))
        });
        (self.revision, self.events, self.known_manifests) = refreshed.await?;
        Some(())
    }

    async fn render_event(&mut self, event: WatchEvent) -> Option<Bytes> {
        let (kind, manifest, item) = match event {
            WatchEvent::InitialEventsEnd(revision) => {
                return Some(self.render_bookmark(revision, true));
            }
            WatchEvent::Deleted(manifest) => ("DELETED", *manifest, None),
            WatchEvent::Added(item) => ("ADDED", item.manifest(), Some(item)),
            WatchEvent::Modified(item) => ("MODIFIED", item.manifest(), Some(item)),
        };
        let representation = self.representation;
        let status = match item {
            None => manifest.status_without_channels(),
            Some(item) => {
                self.packages
                    .run_blocking(move |packages| packages.status_for(&item, representation))
                    .await??
            }
        };
        let now = self.packages.inner.clock.now();
        let with_columns = !std::mem::replace(&mut self.columns_sent, true);
        Some(event_line(kind, &representation.render(&manifest, &status, with_columns, now)))
    }

    fn render_bookmark(&mut self, revision: u64, initial_end: bool) -> Bytes {
        let with_columns = !std::mem::replace(&mut self.columns_sent, true);
        event_line(
            "BOOKMARK",
            self.representation.bookmark(revision, initial_end, with_columns).as_bytes(),
        )
    }
}

fn event_line(kind: &str, object: &[u8]) -> Bytes {
    let head = format!("{{\"type\":\"{kind}\",\"object\":");
    [head.as_bytes(), object, b"}\n"].concat().into()
}
