//! Bundle images: unpacked for the namespaces that are about to install them.
//!
//! Upstream polls a Job. In Mainstay a task unpacks the image, or follows the Job that does
//! ([`super::job`]), and its end triggers a reconciliation of the namespaces that requested it. The
//! objects are kept until no namespace requests them, which is when the InstallPlan is created. A
//! failure is retried with growing pauses while a namespace still requests the bundle.

use super::job::{Jobs, NoBundle};
use crate::bundle_config_map;
use mainstay_catalogsources::CatalogPods;
use mainstay_client::{Backoff, Cluster};
use mainstay_clock::Clock;
use mainstay_images::{ImageContentError, PullError, Puller, Requester};
use mainstay_object::{NamespacedName, Object};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};

/// How many bundles are unpacked concurrently.
const AT_ONCE: usize = 4;
/// The pauses between attempts; the longest is how long upstream keeps a failed Job.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(5), Duration::from_mins(5));
/// How long the other bundles of a namespace wait for one.
pub(crate) const MAX_BUNDLE_WAIT: Duration = Duration::from_secs(10);

/// A bundle by image: the catalog that names it, and the image.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) catalog: NamespacedName,
    pub(crate) image: String,
}

/// How long unpacking may take, and how often it is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnpackTimeouts {
    /// No timeout if `None`.
    pub(crate) timeout: Option<Duration>,
    /// Growing pauses if `None`.
    pub(crate) retry: Option<Duration>,
}

/// Why a bundle cannot be unpacked: the reason of upstream's Job, and the cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Failure {
    /// The reported reason for that of a Job.
    pub(super) fn reason_of(job: &str) -> &'static str {
        match job {
            "DeadlineExceeded" => "DeadlineExceeded",
            _ => "BackoffLimitExceeded",
        }
    }
}

/// The state of a requested bundle.
#[derive(Clone, Debug)]
pub(crate) enum UnpackState {
    /// It is being unpacked.
    Running {
        /// For how long.
        age: Duration,
        /// The error of the last pull, if it failed.
        error: Option<String>,
    },
    /// It is unpacked.
    Ready,
    /// Unpacking failed, and is retried after the duration.
    Failed(Failure, Duration),
}

enum EntryState {
    /// With the error of the last pull.
    Running(Option<String>),
    Ready(Arc<Vec<Object>>),
    Failed(Failure),
}

struct Entry {
    state: EntryState,
    /// Since when it has this state, by the clock's elapsed time.
    since: Duration,
    /// The pause after a failure.
    wait: Duration,
    backoff: Backoff,
    /// The namespaces that request it.
    requesters: BTreeSet<NamespacedName>,
    /// Cancels the unpacking when the entry is dropped.
    work: Option<DropGuard>,
}

/// Called with each namespace whose bundle was unpacked or failed.
type Subscriber = Box<dyn Fn(&NamespacedName) + Send + Sync>;

/// All requested bundles. Clones share them.
#[derive(Clone)]
pub(crate) struct Bundles {
    inner: Arc<Inner>,
}

struct Inner {
    puller: Option<Puller>,
    /// The Jobs that unpack, if they do.
    jobs: OnceLock<Jobs>,
    clock: Clock,
    entries: Mutex<BTreeMap<Key, Entry>>,
    subscribers: RwLock<Vec<Subscriber>>,
    slots: Semaphore,
    stop: CancellationToken,
}

impl Bundles {
    /// Without a puller every bundle fails.
    pub(crate) fn new(puller: Option<Puller>, clock: Clock, stop: CancellationToken) -> Self {
        let slots = Semaphore::new(AT_ONCE);
        let (entries, subscribers) = (Mutex::default(), RwLock::default());
        let jobs = OnceLock::new();
        Self { inner: Arc::new(Inner { puller, jobs, clock, entries, subscribers, slots, stop }) }
    }

    /// Lets Jobs unpack from now on.
    pub(crate) fn unpack_by_jobs(&self, cluster: &Cluster, images: &CatalogPods) {
        let bundles = self.clone();
        let gone = move |bundle: &str| bundles.retry_failed(bundle);
        let stop = self.inner.stop.clone();
        let jobs = Jobs::start(cluster, self.inner.clock, images, gone, stop);
        // Only the first call counts.
        let _ = self.inner.jobs.set(jobs);
    }

    /// Retries the bundle of a deleted Job at once.
    fn retry_failed(&self, bundle: &str) {
        let mut requesters = BTreeSet::new();
        for (key, entry) in self.inner.entries.lock().iter_mut() {
            if matches!(entry.state, EntryState::Failed(_))
                && bundle_config_map::name_of(&key.image) == bundle
            {
                entry.wait = Duration::ZERO;
                requesters.extend(entry.requesters.iter().cloned());
            }
        }
        self.notify(&requesters);
    }

    fn notify(&self, requesters: &BTreeSet<NamespacedName>) {
        for subscriber in self.inner.subscribers.read().iter() {
            requesters.iter().for_each(subscriber);
        }
    }

    /// Calls `notify` with each namespace whose bundle was unpacked or failed, or whose first pull
    /// failed.
    pub(crate) fn subscribe(&self, notify: impl Fn(&NamespacedName) + Send + Sync + 'static) {
        self.inner.subscribers.write().push(Box::new(notify));
    }

    /// The unpacked bundles that a namespace requests.
    pub(crate) fn ready(&self, namespace: &NamespacedName) -> BTreeMap<Key, Arc<Vec<Object>>> {
        let entries = self.inner.entries.lock();
        let requested = entries.iter().filter(|(_, entry)| entry.requesters.contains(namespace));
        requested
            .filter_map(|(key, entry)| match &entry.state {
                EntryState::Ready(objects) => Some((key.clone(), Arc::clone(objects))),
                _ => None,
            })
            .collect()
    }

    /// Limits the requests of a namespace to these bundles. Drops bundles that no namespace
    /// requests any more.
    pub(crate) fn keep(&self, namespace: &NamespacedName, wanted: &BTreeSet<Key>) {
        self.inner.entries.lock().retain(|key, entry| {
            if !wanted.contains(key) {
                entry.requesters.remove(namespace);
            }
            !entry.requesters.is_empty()
        });
    }

    /// Requests a bundle for a namespace. Starts the unpacking if it is due, and returns the state.
    pub(crate) fn request(
        &self,
        namespace: &NamespacedName,
        key: &Key,
        requester: &Requester,
        timeouts: UnpackTimeouts,
    ) -> UnpackState {
        let now = self.inner.clock.elapsed();
        let mut entries = self.inner.entries.lock();
        let fresh = || Entry {
            state: EntryState::Failed(Failure { reason: "", message: String::new() }),
            since: now,
            wait: Duration::ZERO,
            backoff: Backoff::new(BACKOFF.0, BACKOFF.1),
            requesters: BTreeSet::new(),
            work: None,
        };
        let entry = entries.entry(key.clone()).or_insert_with(fresh);
        entry.requesters.insert(namespace.clone());
        let age = now.saturating_sub(entry.since);
        match &entry.state {
            EntryState::Ready(_) => UnpackState::Ready,
            EntryState::Running(error) => UnpackState::Running { age, error: error.clone() },
            EntryState::Failed(failure) if age < entry.wait => {
                UnpackState::Failed(failure.clone(), entry.wait.saturating_sub(age))
            }
            EntryState::Failed(_) => {
                (entry.state, entry.since) = (EntryState::Running(None), now);
                let (bundles, key, requester) = (self.clone(), key.clone(), requester.clone());
                let stop = self.inner.stop.child_token();
                entry.work = Some(stop.clone().drop_guard());
                tokio::spawn(async move {
                    let unpack = Box::pin(bundles.unpack(key, requester, timeouts));
                    stop.run_until_cancelled(unpack).await;
                });
                UnpackState::Running { age: Duration::ZERO, error: None }
            }
        }
    }

    async fn unpack(&self, key: Key, requester: Requester, timeouts: UnpackTimeouts) {
        let outcome = match self.inner.jobs.get() {
            Some(jobs) => self.unpack_by_job(jobs, &key, &requester, timeouts).await,
            None => self.unpack_in_process(&key, &requester, timeouts).await,
        };
        let outcome = outcome.map(Arc::new);
        let requesters = {
            let mut entries = self.inner.entries.lock();
            let Some(entry) = entries.get_mut(&key) else { return };
            entry.since = self.inner.clock.elapsed();
            match outcome {
                Ok(objects) => entry.state = EntryState::Ready(objects),
                Err(failure) => {
                    let wait = entry.backoff.fail();
                    entry.wait = timeouts.retry.unwrap_or(wait);
                    entry.state = EntryState::Failed(failure);
                }
            }
            entry.requesters.clone()
        };
        self.notify(&requesters);
    }

    /// Records the error of a pull that is retried, so that Subscriptions report it at once.
    fn report_retry(&self, key: &Key, message: String) {
        let requesters = {
            let mut entries = self.inner.entries.lock();
            let Some(entry) = entries.get_mut(key) else { return };
            match &mut entry.state {
                EntryState::Running(error) if error.as_ref() != Some(&message) => {
                    *error = Some(message);
                }
                _ => return,
            }
            entry.requesters.clone()
        };
        self.notify(&requesters);
    }

    /// Unpacks a bundle in this process.
    async fn unpack_in_process(
        &self,
        key: &Key,
        requester: &Requester,
        timeouts: UnpackTimeouts,
    ) -> Result<Vec<Object>, Failure> {
        // The timeout includes the wait for earlier bundles.
        let unpacked = async {
            let _slot = self.inner.slots.acquire().await.ok();
            self.objects(key, requester).await
        };
        let timeout = timeouts.timeout.unwrap_or(Duration::MAX);
        match tokio::time::timeout(timeout, unpacked).await {
            Ok(Ok(objects)) => Ok(objects),
            Ok(Err(error)) => {
                Err(Failure { reason: "BackoffLimitExceeded", message: error.to_string() })
            }
            Err(_) => Err(Failure {
                reason: "DeadlineExceeded",
                message: format!("{} was not unpacked within {} s", key.image, timeout.as_secs()),
            }),
        }
    }

    /// Unpacks a bundle by a Job. The deadline of the Job counts.
    async fn unpack_by_job(
        &self,
        jobs: &Jobs,
        key: &Key,
        requester: &Requester,
        timeouts: UnpackTimeouts,
    ) -> Result<Vec<Object>, Failure> {
        let image = &*key.image;
        match jobs.unpack(image, requester, timeouts).await {
            Ok(objects) => Ok(objects),
            Err(NoBundle::Failed(failure)) => Err(failure),
            Err(NoBundle::Nothing) => {
                let failed = |error: &dyn Error| Failure {
                    reason: "BackoffLimitExceeded",
                    message: error.to_string(),
                };
                let objects = self.objects(key, requester).await.map_err(|error| failed(&error))?;
                let stored = jobs.store_bundle(image, requester, &objects).await;
                stored.map_err(|error| failed(&error))?;
                Ok(objects)
            }
        }
    }

    async fn objects(&self, key: &Key, requester: &Requester) -> Result<Vec<Object>, ReadError> {
        let image = &*key.image;
        let Some(puller) = self.inner.puller.clone() else {
            return Err(ReadError::NoImages { image: image.to_owned() });
        };
        let (bundles, of) = (self.clone(), key.clone());
        let on_retry = move |error: PullError| bundles.report_retry(&of, error.to_string());
        let found = puller.pull_with_retries(image, requester, on_retry).await;
        let found = found?;
        let image = image.to_owned();
        let read =
            move || puller.bundle(&found).map_err(|source| ReadError::Content { image, source });
        tokio::task::spawn_blocking(read).await?
    }
}

/// The objects of a bundle image cannot be read.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    /// This process pulls no images.
    #[error("bundles by image are not unpacked here: {image}")]
    NoImages {
        /// The image.
        image: String,
    },
    /// The image cannot be pulled.
    #[error(transparent)]
    Pull(#[from] PullError),
    /// The image is not a bundle.
    #[error("{image}: {source}")]
    Content {
        /// The image.
        image: String,
        /// Why not.
        source: ImageContentError,
    },
    /// The thread that read the image ended.
    #[error("reading a bundle ended unexpectedly: {0}")]
    Join(#[from] tokio::task::JoinError),
}
