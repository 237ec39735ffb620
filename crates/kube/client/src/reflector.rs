//! Reflector: the list and watch that keeps a cache up to date, independent of its type.
//!
//! All caches share one copy of this code: a program has dozens of them, each with a type of its
//! own.

use crate::backoff::now;
use crate::watch::{ObjectWatch, SERVER_TIMEOUT, WatchEvent};
use crate::{Backoff, Cluster, Error, ObjectList, Selection};
use mainstay_object::{NamespacedName, Object};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

/// The timeout of a silent stream: a little longer than the server keeps one open.
const STREAM_TIMEOUT: Duration = SERVER_TIMEOUT.saturating_add(Duration::from_secs(30));
/// The longest delay between attempts.
const BACKOFF_CAP: Duration = Duration::from_secs(30);
/// The first part of a pause, which a caller cannot end.
const MIN_PAUSE: Duration = Duration::from_secs(1);
/// The number of objects in a page of a list.
const PAGE: u32 = 500;
/// A shorter stream counts as a failure.
const MIN_STREAM_DURATION: Duration = Duration::from_secs(1);

/// The receiver of the objects of a selection.
pub(crate) trait ReflectorTarget: Send + Sync {
    /// Starts a list of all objects, which takes effect when it is complete.
    fn begin_list(&self) -> Box<dyn Listing>;
    /// An object is new or has changed.
    fn put(&self, object: &Object);
    /// An object is gone.
    fn remove(&self, key: &NamespacedName);
}

/// A list of all objects in progress.
pub(crate) trait Listing: Send {
    /// The next object.
    fn add(&mut self, object: &Object);
    /// The list is complete: objects that were not added are gone.
    fn finish(self: Box<Self>);
}

/// How far a cache is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheProgress {
    /// The number of complete lists.
    pub lists: u64,
    /// Why the server refuses to list or to watch; none if it does not, or has not been asked yet.
    pub refusal: Option<Arc<str>>,
}

/// What a reflector and its cache share.
#[derive(Default)]
pub(crate) struct ReflectorState {
    /// The last received revision; zero before the first list is complete.
    pub(crate) revision: watch::Sender<u64>,
    pub(crate) progress: watch::Sender<CacheProgress>,
    /// Ends the pause after a failed attempt.
    pub(crate) retry: Notify,
}

/// The last revision of a reflector, and the error that interrupted it.
type Interrupted = (Option<String>, Error);

/// Lists and watches the objects of a selection.
pub(crate) struct Reflector {
    cluster: Cluster,
    selection: Selection,
    state: Arc<ReflectorState>,
    target: Box<dyn ReflectorTarget>,
}

impl Reflector {
    pub(crate) fn new(
        cluster: Cluster,
        selection: Selection,
        state: Arc<ReflectorState>,
        target: Box<dyn ReflectorTarget>,
    ) -> Self {
        Self { cluster, selection, state, target }
    }

    /// Lists and watches in a task of its own until the token is cancelled. Must be called inside a
    /// tokio runtime.
    pub(crate) fn start(self, stop: CancellationToken) {
        tokio::spawn(async move {
            stop.run_until_cancelled(self.run()).await;
        });
    }

    async fn run(&self) {
        let mut backoff = Backoff::new(Duration::from_millis(100), BACKOFF_CAP);
        let mut position: Option<String> = None;
        loop {
            let outcome = match position.take() {
                None => self.relist().await,
                Some(revision) => self.follow(revision, &mut backoff).await,
            };
            match outcome {
                Ok(revision) => position = Some(revision),
                Err((revision, error)) => {
                    if error.is_forbidden() {
                        self.set_refusal(Some(error.to_string().into()));
                    }
                    if error.is_expired() {
                        position = None;
                    } else {
                        position = revision;
                    }
                    let wait = backoff.fail();
                    tracing::warn!(
                        resource = %self.selection.resource.group_resource(),
                        error = &error as &dyn std::error::Error,
                        ?wait,
                        "cannot follow objects, trying again"
                    );
                    self.pause(wait).await;
                }
            }
        }
    }

    /// Waits before another attempt. [`Cache::retry_now`](crate::Cache::retry_now) ends the pause, but not within its
    /// first second: callers may call it often.
    async fn pause(&self, wait: Duration) {
        let shortest = wait.min(MIN_PAUSE);
        tokio::time::sleep(shortest).await;
        // Whichever comes first.
        let _ =
            tokio::time::timeout(wait.saturating_sub(shortest), self.state.retry.notified()).await;
    }

    /// Lists all objects page by page, so that only one page of complete objects is in memory. The
    /// revision is that of the first page.
    async fn relist(&self) -> Result<String, Interrupted> {
        let selection = &self.selection;
        let mut params = ObjectList {
            labels: selection.labels.clone(),
            fields: selection.fields.clone(),
            metadata_only: selection.metadata_only,
            limit: PAGE,
            ..ObjectList::default()
        };
        let mut listing = self.target.begin_list();
        let mut revision = None;
        loop {
            let page = self
                .cluster
                .list(&selection.resource, selection.namespace.as_deref(), &params)
                .await
                .map_err(|error| (None, error))?;
            for object in &page.items {
                listing.add(object);
            }
            revision.get_or_insert(page.resource_version);
            if page.continue_token.is_empty() {
                break;
            }
            params.continue_token = page.continue_token;
        }
        listing.finish();
        let revision = revision.unwrap_or_default();
        self.progress(&revision, true);
        self.state.progress.send_modify(|progress| progress.lists += 1);
        Ok(revision)
    }

    /// Watches from a revision to the end of the stream and returns the last revision.
    async fn follow(
        &self,
        mut revision: String,
        backoff: &mut Backoff,
    ) -> Result<String, Interrupted> {
        let mut watch: ObjectWatch = match self.cluster.watch(&self.selection, &revision).await {
            Ok(watch) => watch,
            Err(error) => return Err((Some(revision), error)),
        };
        self.set_refusal(None);
        let started = now();
        loop {
            let event = match tokio::time::timeout(STREAM_TIMEOUT, watch.next()).await {
                Ok(Some(Ok(event))) => event,
                Ok(Some(Err(error))) => {
                    if started.elapsed() >= MIN_STREAM_DURATION {
                        backoff.reset();
                    }
                    return Err((Some(revision), error));
                }
                Ok(None) | Err(_) => break,
            };
            backoff.reset();
            revision = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    self.target.put(&object);
                    object.resource_version().to_owned()
                }
                WatchEvent::Deleted(object) => {
                    self.target.remove(&object.key());
                    object.resource_version().to_owned()
                }
                WatchEvent::Bookmark(revision) => revision,
            };
            self.progress(&revision, false);
        }
        if started.elapsed() < MIN_STREAM_DURATION {
            // A server that ends streams at once must not be called in a tight loop.
            tokio::time::sleep(backoff.fail()).await;
        } else {
            backoff.reset();
        }
        Ok(revision)
    }

    fn set_refusal(&self, refusal: Option<Arc<str>>) {
        self.state.progress.send_if_modified(|progress| {
            let differs = progress.refusal != refusal;
            progress.refusal = refusal;
            differs
        });
    }

    fn progress(&self, revision: &str, synced: bool) {
        let revision: u64 = revision.parse().unwrap_or(u64::from(synced));
        self.state.revision.send_if_modified(|current| {
            let newer = *current < revision;
            if newer {
                *current = revision;
            }
            newer
        });
    }
}
