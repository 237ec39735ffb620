//! Catalog images: pulled, read, polled, and retried after failures.
//!
//! ```text
//! CatalogSource ─► request ─► follower: find ─► new digest? ─► unpack, load ─► content
//!                                ▲                                            │
//!                                └── poll interval, or a pause after an error ┘
//! ```
//!
//! As with folders, a copy on disk is served after a restart while the image cannot be pulled. The
//! poll of a pod's image is due one interval after the last poll, which may be another process's: a
//! process that restarts more often than it polls would otherwise never poll.

use crate::pods;
use crate::store::{self, CatalogStore, SourceState};
use jiff::Timestamp;
use mainstay_api::{CatalogSource, Time, names};
use mainstay_client::{Backoff, Cluster, DeleteOptions, ObjectList, Patch};
use mainstay_formats::duration;
use mainstay_images::{PullError, PulledImage, Puller, Requester};
use mainstay_object::{NamespacedName, builtin};
use parking_lot::Mutex;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// The poll interval if `spec.updateStrategy.registryPoll.interval` is no duration.
const DEFAULT_POLL_INTERVAL: Duration = Duration::from_mins(15);
/// The shortest poll interval.
const MIN_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The first and the longest wait after a failed pull; the longest is that of kubelets.
const RETRY_BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(5));
/// How long resolution waits for the first pull of an image.
const FIRST_PULL_TIMEOUT: Duration = Duration::from_secs(10);

/// The image that a CatalogSource names, and how to pull it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    image: String,
    requester: Requester,
    /// `spec.grpcPodConfig.extractContent.catalogDir`, which overrides the label of the image.
    folder: Option<String>,
    poll: Option<Duration>,
}

impl Request {
    pub(crate) fn of(source: &CatalogSource) -> Self {
        let config = source.spec.grpc_pod_config.as_ref();
        Self {
            image: source.spec.image.clone(),
            requester: requester(source),
            folder: config
                .and_then(|config| config.extract_content.as_ref())
                .map(|extract| extract.catalog_dir.clone()),
            poll: poll_interval(source).0,
        }
    }
}

/// The time of the last poll by the status of a CatalogSource; before the first poll, the creation
/// of the CatalogSource.
pub(crate) fn last_poll_time(source: &CatalogSource) -> Option<Timestamp> {
    let metadata = &source.metadata;
    let last = source.status.latest_image_registry_poll.or(metadata.creation_timestamp);
    last.map(Time::timestamp)
}

/// How long to wait until the next poll.
fn time_until_due(poll: Duration, last: Option<Timestamp>, now: Timestamp) -> Duration {
    let Some(last) = last else { return poll };
    // A clock that was set back does not make the wait longer than the interval.
    let since = Duration::try_from(now.duration_since(last)).unwrap_or_default();
    poll.saturating_sub(since)
}

/// The poll interval of a CatalogSource, and the message for the status if the spec has no valid
/// one.
pub(crate) fn poll_interval(source: &CatalogSource) -> (Option<Duration>, Option<String>) {
    let poll =
        source.spec.update_strategy.as_ref().and_then(|strategy| strategy.registry_poll.as_ref());
    let Some(poll) = poll else { return (None, None) };
    let nanos = duration::parse_go(&poll.interval).and_then(|nanos| u64::try_from(nanos).ok());
    if let Some(nanos) = nanos {
        return (Some(Duration::from_nanos(nanos).max(MIN_POLL_INTERVAL)), None);
    }
    let text = mainstay_gocompat::quote(&poll.interval);
    let digits = poll.interval.bytes().all(|byte| byte.is_ascii_digit());
    let why = if digits && !poll.interval.is_empty() {
        format!("time: missing unit in duration {text}")
    } else {
        format!("time: invalid duration {text}")
    };
    let wrong = format!(
        "error parsing spec.updateStrategy.registryPoll.interval. Using the default value of 15m0s instead. Error: {why}"
    );
    (Some(DEFAULT_POLL_INTERVAL), Some(wrong))
}

/// The requester of a catalog's images: the CatalogSource with its pull secrets.
pub fn requester(source: &CatalogSource) -> Requester {
    Requester {
        namespace: source.metadata.namespace.clone(),
        name: source.metadata.name.clone(),
        uid: source.metadata.uid.clone(),
        secrets: source.spec.secrets.clone(),
    }
}

impl CatalogStore {
    /// Follows an image; returns after the first successful read if the CatalogSource does not
    /// poll.
    pub(crate) async fn run_image(
        &self,
        key: &NamespacedName,
        request: &Request,
        before: Option<String>,
    ) {
        let Some(puller) = &self.puller() else { return };
        self.open_endpoint(key, before.as_deref()).await;
        let mut backoff = Backoff::new(RETRY_BACKOFF.0, RETRY_BACKOFF.1);
        let mut digest = None;
        loop {
            let error: Arc<Mutex<Option<String>>> = Arc::default();
            let retried = Arc::clone(&error);
            let mut loading =
                std::pin::pin!(self.load_image(key, puller, request, digest.clone(), retried));
            let in_time = tokio::time::timeout(FIRST_PULL_TIMEOUT, &mut loading).await;
            let loaded = if let Ok(loaded) = in_time {
                loaded
            } else {
                let error = error.lock().take();
                self.report_slow_pull(key, &request.image, error);
                loading.await
            };
            let wait = if let Some(found) = loaded {
                digest = Some(found);
                backoff.reset();
                request.poll
            } else {
                Some(backoff.fail())
            };
            match wait {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return,
            }
        }
    }

    /// Polls the image of a catalog pod, and deletes the pod when the tag has another digest: the
    /// next pod runs the new image. The poll itself needs no pod, unlike upstream's. If the tag
    /// changed while no process ran, the digest in the pod's status or annotation shows it. The
    /// first poll is due one interval after the last poll, which may have been before a restart.
    pub(crate) async fn run_poll(
        &self,
        key: &NamespacedName,
        request: &Request,
        last: Option<Timestamp>,
    ) {
        let (Some(puller), Some(poll), Some(cluster)) =
            (self.puller(), request.poll, self.cluster())
        else {
            return;
        };
        let mut known = None;
        let mut wait = time_until_due(poll, last, self.now());
        loop {
            tokio::time::sleep(wait).await;
            wait = poll;
            let found = match puller.pull(&request.image, &request.requester).await {
                Ok(found) => found,
                Err(error) => {
                    tracing::warn!(catalog = %key, %error, "a catalog image cannot be looked at again");
                    continue;
                }
            };
            self.record_poll(key);
            let checked = match delete_outdated_pods(&cluster, key, &found, known.as_ref()).await {
                Ok(()) => Some(found.digest),
                Err(error) => {
                    tracing::warn!(catalog = %key, %error, "the pod of a catalog is not exchanged");
                    None
                }
            };
            known = checked.or(known);
        }
    }

    /// Pulls and reads the image once; returns its digest if it could be read.
    async fn load_image(
        &self,
        key: &NamespacedName,
        puller: &Puller,
        request: &Request,
        before: Option<String>,
        retried: Arc<Mutex<Option<String>>>,
    ) -> Option<String> {
        let on_retry = move |error: PullError| *retried.lock() = Some(error.to_string());
        let (image, requester) = (&request.image, &request.requester);
        let found = puller.pull_with_retries(image, requester, on_retry).await;
        let last_poll = request.poll.map(|_| self.now());
        let digest = found.as_ref().ok().map(|image| image.digest.clone());
        if digest.is_some() && digest == before {
            let same = SourceState { last_poll, ..SourceState::default() };
            self.update_state(key, same, None);
            return digest;
        }
        let (puller, image, folder) =
            (puller.clone(), request.image.clone(), request.folder.clone());
        let copy = self.copy_path(key);
        let first = self.state(key).is_none_or(|state| state.content.is_none());
        let modified = self.modification_time(key);
        let name = key.clone();
        let loaded = tokio::task::spawn_blocking(move || {
            let mut is_pulled = false;
            let catalog = found.map_err(|error| error.to_string()).and_then(|found| {
                is_pulled = true;
                puller.catalog(&found, folder.as_deref()).map_err(|why| format!("{image}: {why}"))
            });
            let unreadable = is_pulled && catalog.is_err();
            let state = match catalog {
                Ok(catalog) => {
                    if let Some(copy) = &copy {
                        store::save_copy_of(&name, &image, copy, &catalog);
                    }
                    let content = store::content(catalog, modified);
                    content.index.warm();
                    SourceState { content: Some(content), ..SourceState::default() }
                }
                Err(failure) => {
                    let copy = copy.filter(|_| first);
                    let content =
                        copy.and_then(|copy| store::load_copy_of(&name, &image, &copy, modified));
                    SourceState { content, failure: Some(failure), ..SourceState::default() }
                }
            };
            (state, unreadable)
        });
        let (state, unreadable) = loaded.await.unwrap_or_else(|error| {
            let failure = Some(format!("loading the catalog ended unexpectedly: {error}"));
            (SourceState { failure, ..SourceState::default() }, false)
        });
        if unreadable && self.fall_back_to_pod(key, &request.image) {
            tracing::info!(catalog = %key, image = request.image, "an image that cannot be read here runs as a pod");
        }
        let good = state.failure.is_none();
        self.update_state(key, SourceState { last_poll, ..state }, None);
        digest.filter(|_| good)
    }

    /// Reports that the pull takes long, with the error of the last attempt, so that resolution
    /// stops waiting for the catalog.
    fn report_slow_pull(&self, key: &NamespacedName, image: &str, error: Option<String>) {
        if self.state(key).is_some_and(|state| state.is_loading()) {
            let failure = Some(match error {
                Some(error) => format!("{error}; the pull is tried again"),
                None => format!("the image {image} is still being pulled"),
            });
            self.update_state(key, SourceState { failure, ..SourceState::default() }, None);
        }
    }
}

/// Deletes the pods of a catalog if they run another digest than the pulled one. The digest that
/// they run is that of the previous poll (`known`); at the first poll of this process it is the
/// digest in the status or annotation of the pods.
async fn delete_outdated_pods(
    cluster: &Cluster,
    key: &NamespacedName,
    found: &PulledImage,
    known: Option<&String>,
) -> mainstay_client::Result<()> {
    let (pod, namespace) = (&builtin::POD, key.namespace());
    let params = ObjectList::labels(format!("{}={}", names::CATALOG_SOURCE, key.name));
    let pods = cluster.list(pod, namespace, &params).await?.items;
    let running = || pods.iter().filter(|pod| !pod.is_terminating());
    let is_outdated = match known {
        Some(before) => *before != found.digest,
        None => running().any(|pod| pods::runs_image(pod, &found.digests) == Some(false)),
    };
    if is_outdated {
        return cluster
            .delete_collection(pod, namespace, &params, &DeleteOptions::default())
            .await
            .map(drop);
    }
    for running_pod in running().filter(|pod| pods::runs_image(pod, &found.digests).is_none()) {
        // The first poll after a restart compares with this digest.
        let patch = Patch::Merge(json!({"metadata": {
            "uid": running_pod.uid(), "annotations": {pods::IMAGE_ANNOTATION: found.digest},
        }}));
        match cluster.patch(pod, namespace, running_pod.name(), &patch).await {
            Err(error) if !error.is_not_found() && !error.is_conflict() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_api::{RegistryPoll, UpdateStrategy};

    #[test]
    fn poll_intervals_are_go_durations_and_invalid_ones_are_reported() {
        let error = "error parsing spec.updateStrategy.registryPoll.interval. Using the default value of 15m0s instead. Error: time: ";
        for (text, wanted, why) in [
            ("30m0s", Duration::from_mins(30), None),
            ("1ms", MIN_POLL_INTERVAL, None),
            ("often", DEFAULT_POLL_INTERVAL, Some("invalid duration \"often\"")),
            ("10", DEFAULT_POLL_INTERVAL, Some("missing unit in duration \"10\"")),
            ("-1s", DEFAULT_POLL_INTERVAL, Some("invalid duration \"-1s\"")),
        ] {
            let mut source = CatalogSource::new("ns", "cat");
            let poll = RegistryPoll { interval: text.to_owned() };
            let strategy = UpdateStrategy { registry_poll: Some(poll) };
            source.spec.update_strategy = Some(strategy);
            let why = why.map(|why| format!("{error}{why}"));
            // shows E053
            assert_eq!(poll_interval(&source), (Some(wanted), why), "{text}");
        }
        assert_eq!(poll_interval(&CatalogSource::new("ns", "cat")), (None, None));
    }

    #[test]
    fn image_poll_is_due_one_interval_after_the_last_poll_across_restarts() {
        const MINUTE: i64 = 60;
        let at = |minute: i64| Timestamp::from_second(minute * MINUTE).unwrap();
        let source = |created: Option<i64>, last_poll: Option<i64>| {
            let mut source = CatalogSource::new("ns", "cat");
            source.metadata.creation_timestamp = created.map(|minute| Time::new(at(minute)));
            source.status.latest_image_registry_poll =
                last_poll.map(|minute| Time::new(at(minute)));
            source
        };
        let now = 1000;
        // Interval, creation, last poll and wait, in minutes.
        for (poll, created, last_poll, wait) in [
            // Never polled: the interval starts at the creation.
            (10, Some(1000), None, 10),
            (10, Some(996), None, 6),
            (10, Some(100), None, 0),
            (10, None, None, 10),
            // The last poll counts, not the creation.
            (10, Some(100), Some(999), 9),
            (10, Some(100), Some(990), 0),
            (10, Some(100), Some(500), 0),
            (1440, Some(100), Some(400), 840),
            // Written by a process whose clock is ahead.
            (10, Some(100), Some(1200), 10),
        ] {
            let poll = Duration::from_mins(poll);
            let wanted = Duration::from_mins(wait);
            // shows K17 CAT-08
            assert_eq!(
                time_until_due(poll, last_poll_time(&source(created, last_poll)), at(now)),
                wanted
            );
        }
    }
}
