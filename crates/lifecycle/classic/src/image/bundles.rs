//! Bundles by image, unpacked for the namespaces that are about to install them.
//!
//! The original has a Job do it and looks at it again and again; here a task does it, or follows the
//! Job that does ([`super::job`]), and the namespaces that asked are looked at when it has ended. What was unpacked stays for as long as
//! somebody asks for it, which is until the plan that needs it is made. What fails is tried again,
//! less and less often, when somebody still asks.

use super::job::{Jobs, Unmade};
use crate::packed;
use mainstay_catalogsources::CatalogPods;
use mainstay_client::{Backoff, Cluster};
use mainstay_clock::Clock;
use mainstay_images::{ContentError, PullError, Puller, Requester};
use mainstay_object::{NamespacedName, Object};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};

/// How many bundles are unpacked at one time.
const AT_ONCE: usize = 4;
/// The waits between two attempts; the last is how long the original keeps a failed Job.
const AGAIN: (Duration, Duration) = (Duration::from_secs(5), Duration::from_mins(5));
/// How long the other bundles of a namespace wait for one.
pub(crate) const TOGETHER: Duration = Duration::from_secs(10);

/// A bundle by image: the catalog that names it, and the image.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) catalog: NamespacedName,
    pub(crate) image: String,
}

/// How long unpacking may take, and how often it is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    /// None is without end.
    pub(crate) timeout: Option<Duration>,
    /// None is less and less often.
    pub(crate) retry: Option<Duration>,
}

/// Why a bundle is not unpacked: the reason of the Job that the original would have, and the cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Failure {
    /// The reason of a Job, as it is told.
    pub(super) fn reason_of(job: &str) -> &'static str {
        match job {
            "DeadlineExceeded" => "DeadlineExceeded",
            _ => "BackoffLimitExceeded",
        }
    }
}

/// How a bundle stands.
#[derive(Clone, Debug)]
pub(crate) enum Standing {
    /// It is being unpacked.
    Running {
        /// For how long already.
        age: Duration,
        /// Why the last attempt to pull it failed, if one did.
        error: Option<String>,
    },
    /// It is unpacked.
    Ready,
    /// It failed, and is tried again after this while.
    Failed(Failure, Duration),
}

enum State {
    /// With the error of the last attempt to pull it.
    Running(Option<String>),
    Ready(Arc<Vec<Object>>),
    Failed(Failure),
}

struct Entry {
    state: State,
    /// Since when it is in this state, by the clock's elapsed time.
    since: Duration,
    /// How long to wait after a failure.
    wait: Duration,
    backoff: Backoff,
    /// The namespaces that ask for it.
    askers: BTreeSet<NamespacedName>,
    /// Ends the work on it when nobody asks any more.
    work: Option<DropGuard>,
}

/// Hears of the namespaces that asked when a bundle is unpacked, or not.
type Subscriber = Box<dyn Fn(&NamespacedName) + Send + Sync>;

/// All bundles that are being unpacked. Cheap to clone; clones are the same.
#[derive(Clone)]
pub(crate) struct Bundles {
    inner: Arc<Inner>,
}

struct Inner {
    puller: Option<Puller>,
    /// Jobs that unpack, where they do.
    jobs: OnceLock<Jobs>,
    clock: Clock,
    entries: Mutex<BTreeMap<Key, Entry>>,
    subscribers: RwLock<Vec<Subscriber>>,
    room: Semaphore,
    stop: CancellationToken,
}

impl Bundles {
    /// Without a puller no bundle can be had.
    pub(crate) fn new(puller: Option<Puller>, clock: Clock, stop: CancellationToken) -> Self {
        let room = Semaphore::new(AT_ONCE);
        let (entries, subscribers) = (Mutex::default(), RwLock::default());
        let jobs = OnceLock::new();
        Self { inner: Arc::new(Inner { puller, jobs, clock, entries, subscribers, room, stop }) }
    }

    /// Has Jobs unpack from now on.
    pub(crate) fn by_jobs(&self, cluster: &Cluster, images: &CatalogPods) {
        let bundles = self.clone();
        let gone = move |bundle: &str| bundles.look_again(bundle);
        let stop = self.inner.stop.clone();
        let jobs = Jobs::start(cluster, self.inner.clock, images, gone, stop);
        // The first one counts.
        let _ = self.inner.jobs.set(jobs);
    }

    /// A Job of a bundle is gone: whoever waits for its end or its next try need not wait longer.
    fn look_again(&self, bundle: &str) {
        let mut askers = BTreeSet::new();
        for (key, entry) in self.inner.entries.lock().iter_mut() {
            if matches!(entry.state, State::Failed(_)) && packed::name_of(&key.image) == bundle {
                entry.wait = Duration::ZERO;
                askers.extend(entry.askers.iter().cloned());
            }
        }
        self.tell(&askers);
    }

    fn tell(&self, askers: &BTreeSet<NamespacedName>) {
        for hear in self.inner.subscribers.read().iter() {
            askers.iter().for_each(hear);
        }
    }

    /// Calls `hear` with each namespace that asked for a bundle which is settled now, or which could not
    /// be pulled at the first attempt.
    pub(crate) fn subscribe(&self, hear: impl Fn(&NamespacedName) + Send + Sync + 'static) {
        self.inner.subscribers.write().push(Box::new(hear));
    }

    /// The bundles that are ready and asked for by a namespace.
    pub(crate) fn ready(&self, namespace: &NamespacedName) -> BTreeMap<Key, Arc<Vec<Object>>> {
        let entries = self.inner.entries.lock();
        let mine = entries.iter().filter(|(_, entry)| entry.askers.contains(namespace));
        mine.filter_map(|(key, entry)| match &entry.state {
            State::Ready(objects) => Some((key.clone(), Arc::clone(objects))),
            _ => None,
        })
        .collect()
    }

    /// What a namespace asks for from now on; what nobody asks for any more is forgotten.
    pub(crate) fn keep(&self, namespace: &NamespacedName, wanted: &BTreeSet<Key>) {
        self.inner.entries.lock().retain(|key, entry| {
            if !wanted.contains(key) {
                entry.askers.remove(namespace);
            }
            !entry.askers.is_empty()
        });
    }

    /// How a bundle stands; begins to unpack it if that is to be done.
    pub(crate) fn ask(
        &self,
        namespace: &NamespacedName,
        key: &Key,
        asking: &Requester,
        patience: Patience,
    ) -> Standing {
        let now = self.inner.clock.elapsed();
        let mut entries = self.inner.entries.lock();
        let fresh = || Entry {
            state: State::Failed(Failure { reason: "", message: String::new() }),
            since: now,
            wait: Duration::ZERO,
            backoff: Backoff::new(AGAIN.0, AGAIN.1),
            askers: BTreeSet::new(),
            work: None,
        };
        let entry = entries.entry(key.clone()).or_insert_with(fresh);
        entry.askers.insert(namespace.clone());
        let age = now.saturating_sub(entry.since);
        match &entry.state {
            State::Ready(_) => Standing::Ready,
            State::Running(error) => Standing::Running { age, error: error.clone() },
            State::Failed(failure) if age < entry.wait => {
                Standing::Failed(failure.clone(), entry.wait.saturating_sub(age))
            }
            State::Failed(_) => {
                (entry.state, entry.since) = (State::Running(None), now);
                let (bundles, key, asking) = (self.clone(), key.clone(), asking.clone());
                let stop = self.inner.stop.child_token();
                entry.work = Some(stop.clone().drop_guard());
                tokio::spawn(async move {
                    let unpack = Box::pin(bundles.unpack(key, asking, patience));
                    stop.run_until_cancelled(unpack).await;
                });
                Standing::Running { age: Duration::ZERO, error: None }
            }
        }
    }

    async fn unpack(&self, key: Key, asking: Requester, patience: Patience) {
        let outcome = match self.inner.jobs.get() {
            Some(jobs) => self.by_job(jobs, &key, &asking, patience).await,
            None => self.here(&key, &asking, patience).await,
        };
        let outcome = outcome.map(Arc::new);
        let askers = {
            let mut entries = self.inner.entries.lock();
            let Some(entry) = entries.get_mut(&key) else { return };
            entry.since = self.inner.clock.elapsed();
            match outcome {
                Ok(objects) => entry.state = State::Ready(objects),
                Err(failure) => {
                    let wait = entry.backoff.fail();
                    entry.wait = patience.retry.unwrap_or(wait);
                    entry.state = State::Failed(failure);
                }
            }
            entry.askers.clone()
        };
        self.tell(&askers);
    }

    /// An attempt to pull a bundle failed and is made again: Subscriptions say why at once.
    fn report_retry(&self, key: &Key, message: String) {
        let askers = {
            let mut entries = self.inner.entries.lock();
            let Some(entry) = entries.get_mut(key) else { return };
            match &mut entry.state {
                State::Running(error) if error.as_ref() != Some(&message) => *error = Some(message),
                _ => return,
            }
            entry.askers.clone()
        };
        self.tell(&askers);
    }

    /// As this process unpacks it.
    async fn here(
        &self,
        key: &Key,
        asking: &Requester,
        patience: Patience,
    ) -> Result<Vec<Object>, Failure> {
        // Nobody waits for those before it longer than for itself.
        let unpacked = async {
            let _room = self.inner.room.acquire().await.ok();
            self.objects(key, asking).await
        };
        let timeout = patience.timeout.unwrap_or(Duration::MAX);
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

    /// As a Job unpacks it. Its own deadline counts.
    async fn by_job(
        &self,
        jobs: &Jobs,
        key: &Key,
        asking: &Requester,
        patience: Patience,
    ) -> Result<Vec<Object>, Failure> {
        let image = &*key.image;
        match jobs.unpack(image, asking, patience).await {
            Ok(objects) => Ok(objects),
            Err(Unmade::Failed(failure)) => Err(failure),
            Err(Unmade::Nothing) => {
                let failed = |error: &dyn Error| Failure {
                    reason: "BackoffLimitExceeded",
                    message: error.to_string(),
                };
                let objects = self.objects(key, asking).await.map_err(|error| failed(&error))?;
                let kept = jobs.keep(image, asking, &objects).await;
                kept.map_err(|error| failed(&error))?;
                Ok(objects)
            }
        }
    }

    async fn objects(&self, key: &Key, asking: &Requester) -> Result<Vec<Object>, ReadError> {
        let image = &*key.image;
        let Some(puller) = self.inner.puller.clone() else {
            return Err(ReadError::NoImages { image: image.to_owned() });
        };
        let (bundles, of) = (self.clone(), key.clone());
        let on_retry = move |error: PullError| bundles.report_retry(&of, error.to_string());
        let found = puller.pull_with_retries(image, asking, on_retry).await;
        let found = found?;
        let image = image.to_owned();
        let read =
            move || puller.bundle(&found).map_err(|source| ReadError::Content { image, source });
        tokio::task::spawn_blocking(read).await?
    }
}

/// The objects of a bundle by image cannot be read.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    /// There are no images here.
    #[error("bundles by image are not unpacked here: {image}")]
    NoImages {
        /// The image.
        image: String,
    },
    /// The image cannot be pulled.
    #[error(transparent)]
    Pull(#[from] PullError),
    /// The image is no bundle.
    #[error("{image}: {source}")]
    Content {
        /// The image.
        image: String,
        /// Why not.
        source: ContentError,
    },
    /// The thread that read the image ended.
    #[error("reading a bundle ended unexpectedly: {0}")]
    Join(#[from] tokio::task::JoinError),
}
