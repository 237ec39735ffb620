//! Catalogs by image: got, read, looked at again, given up.
//!
//! ```text
//! CatalogSource ─► request ─► follower: find ─► new digest? ─► unpack, load ─► content
//!                                ▲                                            │
//!                                └── poll interval, or a while after a failure ┘
//! ```
//!
//! As with folders, a copy on disk is served after a restart as long as the image cannot be had.
//! The image of a pod is due when its interval is over since the last look, whoever took that: a
//! process that is started anew more often than it polls would never look otherwise.

use crate::pods;
use crate::store::{self, CatalogState, CatalogStore};
use jiff::Timestamp;
use mainstay_api::{CatalogSource, Time, names};
use mainstay_client::{Backoff, Cluster, DeleteOptions, ListParams, Patch};
use mainstay_formats::duration;
use mainstay_images::{PullError, PulledImage, Puller, Requester};
use mainstay_object::{NamespacedName, known};
use parking_lot::Mutex;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// The interval of a poll whose own cannot be read.
const USUAL: Duration = Duration::from_mins(15);
/// No poll is closer to the one before.
const SHORTEST: Duration = Duration::from_secs(1);
/// The waits after a failure; the last is how long kubelets wait.
const AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(5));
/// How long an image may take before others stop waiting for its catalog.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a CatalogSource with an image asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    image: String,
    requester: Requester,
    /// The folder of the catalog, if the image's own word does not count.
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
            poll: interval(source).0,
        }
    }
}

/// When the image of a CatalogSource was last looked at, as far as anybody wrote that down; one that
/// never was counts from when its CatalogSource was made.
pub(crate) fn last_look(source: &CatalogSource) -> Option<Timestamp> {
    let metadata = &source.metadata;
    let last = source.status.latest_image_registry_poll.or(metadata.creation_timestamp);
    last.map(Time::timestamp)
}

/// How long to wait until an image is looked at next.
fn due(poll: Duration, last: Option<Timestamp>, now: Timestamp) -> Duration {
    let Some(last) = last else { return poll };
    // A clock that was set back makes nobody wait longer than the interval.
    let since = Duration::try_from(now.duration_since(last)).unwrap_or_default();
    poll.saturating_sub(since)
}

/// How often a CatalogSource wants to be looked at, and what is wrong with how it says so.
pub(crate) fn interval(source: &CatalogSource) -> (Option<Duration>, Option<String>) {
    let poll =
        source.spec.update_strategy.as_ref().and_then(|strategy| strategy.registry_poll.as_ref());
    let Some(poll) = poll else { return (None, None) };
    let nanos = duration::parse_go(&poll.interval).and_then(|nanos| u64::try_from(nanos).ok());
    if let Some(nanos) = nanos {
        return (Some(Duration::from_nanos(nanos).max(SHORTEST)), None);
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
    (Some(USUAL), Some(wrong))
}

/// The requester of a catalog's images: its CatalogSource, with the pull secrets of that.
pub fn requester(source: &CatalogSource) -> Requester {
    Requester {
        namespace: source.metadata.namespace.clone(),
        name: source.metadata.name.clone(),
        uid: source.metadata.uid.clone(),
        secrets: source.spec.secrets.clone(),
    }
}

impl CatalogStore {
    /// Follows an image; returns when it need not be looked at again.
    pub(crate) async fn run_image(
        &self,
        key: &NamespacedName,
        request: &Request,
        before: Option<String>,
    ) {
        let Some(puller) = &self.puller() else { return };
        self.open_place(key, before.as_deref()).await;
        let mut backoff = Backoff::new(AGAIN.0, AGAIN.1);
        let mut digest = None;
        loop {
            let error: Arc<Mutex<Option<String>>> = Arc::default();
            let retried = Arc::clone(&error);
            let mut loading =
                std::pin::pin!(self.load_image(key, puller, request, digest.clone(), retried));
            let in_time = tokio::time::timeout(PATIENCE, &mut loading).await;
            let loaded = if let Ok(loaded) = in_time {
                loaded
            } else {
                let error = error.lock().take();
                self.delayed(key, &request.image, error);
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

    /// Looks at the image of a pod as often as its catalog asks for, and ends the pod when its tag is
    /// another image: the next pod gets that one. There is no pod for the look itself. That a tag became
    /// another image while no process was there to see it, the pod itself tells.
    /// The first look is due an interval after the last one, which may have been before a restart.
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
        let mut wait = due(poll, last, self.now());
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
            self.polled(key);
            let exchanged = match exchange(&cluster, key, &found, known.as_ref()).await {
                Ok(()) => Some(found.digest),
                Err(error) => {
                    tracing::warn!(catalog = %key, %error, "the pod of a catalog is not exchanged");
                    None
                }
            };
            known = exchanged.or(known);
        }
    }

    /// Looks at the image once; what it is now, if it can be had and read.
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
        let polled = request.poll.map(|_| self.now());
        let digest = found.as_ref().ok().map(|image| image.digest.clone());
        if digest.is_some() && digest == before {
            let same = CatalogState { polled, ..CatalogState::default() };
            self.take(key, same, None);
            return digest;
        }
        let (puller, image, folder) =
            (puller.clone(), request.image.clone(), request.folder.clone());
        let copy = self.copy_of(key);
        let first = self.state(key).is_none_or(|state| state.content.is_none());
        let modified = self.modified(key);
        let name = key.clone();
        let loaded = tokio::task::spawn_blocking(move || {
            let mut there = false;
            let catalog = found.map_err(|error| error.to_string()).and_then(|found| {
                there = true;
                puller.catalog(&found, folder.as_deref()).map_err(|why| format!("{image}: {why}"))
            });
            let unreadable = there && catalog.is_err();
            let state = match catalog {
                Ok(catalog) => {
                    if let Some(copy) = &copy {
                        store::keep_named(&name, &image, copy, &catalog);
                    }
                    let content = store::content(catalog, modified);
                    content.index.warm();
                    CatalogState { content: Some(content), ..CatalogState::default() }
                }
                Err(failure) => {
                    let copy = copy.filter(|_| first);
                    let content =
                        copy.and_then(|copy| store::load_copy_of(&name, &image, &copy, modified));
                    CatalogState { content, failure: Some(failure), ..CatalogState::default() }
                }
            };
            (state, unreadable)
        });
        let (state, unreadable) = loaded.await.unwrap_or_else(|error| {
            let failure = Some(format!("loading the catalog ended unexpectedly: {error}"));
            (CatalogState { failure, ..CatalogState::default() }, false)
        });
        if unreadable && self.give_to_pods(key, &request.image) {
            tracing::info!(catalog = %key, image = request.image, "an image that cannot be read here runs as a pod");
        }
        let good = state.failure.is_none();
        self.take(key, CatalogState { polled, ..state }, None);
        digest.filter(|_| good)
    }

    /// Says that an image takes long, and the error of the last attempt to pull it, so that nobody waits
    /// for its catalog any more.
    fn delayed(&self, key: &NamespacedName, image: &str, error: Option<String>) {
        if self.state(key).is_some_and(|state| state.is_loading()) {
            let failure = Some(match error {
                Some(error) => format!("{error}; the pull is tried again"),
                None => format!("the image {image} is still being pulled"),
            });
            self.take(key, CatalogState { failure, ..CatalogState::default() }, None);
        }
    }
}

/// Ends the pods of a catalog if its image is another one than they run. That is what it was at the
/// look before (`known`); at the first look of this process, what the pods themselves say.
async fn exchange(
    cluster: &Cluster,
    key: &NamespacedName,
    found: &PulledImage,
    known: Option<&String>,
) -> mainstay_client::Result<()> {
    let (pod, namespace) = (&known::POD, key.namespace());
    let params = ListParams::labels(format!("{}={}", names::CATALOG_SOURCE, key.name));
    let pods = cluster.list(pod, namespace, &params).await?.items;
    let running = || pods.iter().filter(|one| !one.is_terminating());
    let another = match known {
        Some(before) => *before != found.digest,
        None => running().any(|one| pods::runs(one, &found.digests) == Some(false)),
    };
    if another {
        return cluster
            .delete_collection(pod, namespace, &params, &DeleteOptions::default())
            .await
            .map(drop);
    }
    for one in running().filter(|one| pods::runs(one, &found.digests).is_none()) {
        // Whoever looks after a restart shall know it.
        let patch = Patch::Merge(json!({"metadata": {
            "uid": one.uid(), "annotations": {pods::IMAGE: found.digest},
        }}));
        match cluster.patch(pod, namespace, one.name(), &patch).await {
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
            ("1ms", SHORTEST, None),
            ("often", USUAL, Some("invalid duration \"often\"")),
            ("10", USUAL, Some("missing unit in duration \"10\"")),
            ("-1s", USUAL, Some("invalid duration \"-1s\"")),
        ] {
            let mut source = CatalogSource::new("ns", "cat");
            let poll = RegistryPoll { interval: text.to_owned() };
            let strategy = UpdateStrategy { registry_poll: Some(poll) };
            source.spec.update_strategy = Some(strategy);
            let why = why.map(|why| format!("{error}{why}"));
            // shows E053
            assert_eq!(interval(&source), (Some(wanted), why), "{text}");
        }
        assert_eq!(interval(&CatalogSource::new("ns", "cat")), (None, None));
    }

    #[test]
    fn image_poll_is_due_one_interval_after_the_last_poll_across_restarts() {
        const MINUTE: i64 = 60;
        let at = |minute: i64| Timestamp::from_second(minute * MINUTE).unwrap();
        let source = |made: Option<i64>, polled: Option<i64>| {
            let mut source = CatalogSource::new("ns", "cat");
            source.metadata.creation_timestamp = made.map(|minute| Time::new(at(minute)));
            source.status.latest_image_registry_poll = polled.map(|minute| Time::new(at(minute)));
            source
        };
        let now = 1000;
        // Interval, made, last look, and the wait, in minutes.
        for (poll, made, polled, wait) in [
            // Never looked at: from when it was made.
            (10, Some(1000), None, 10),
            (10, Some(996), None, 6),
            (10, Some(100), None, 0),
            (10, None, None, 10),
            // The last look counts, not when it was made.
            (10, Some(100), Some(999), 9),
            (10, Some(100), Some(990), 0),
            (10, Some(100), Some(500), 0),
            (1440, Some(100), Some(400), 840),
            // Written by somebody whose clock is ahead.
            (10, Some(100), Some(1200), 10),
        ] {
            let poll = Duration::from_mins(poll);
            let wanted = Duration::from_mins(wait);
            // shows K17 CAT-08
            assert_eq!(due(poll, last_look(&source(made, polled)), at(now)), wanted);
        }
    }
}
