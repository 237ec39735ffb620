//! The handle of a store.

use crate::draft::{Draft, size_allowed};
use crate::engine::Probe;
use crate::engine::journal::{Journal, repair};
use crate::engine::memory::Memory;
use crate::index::Shared;
use crate::writer::{Message, Request, Writer};
use crate::{
    Change, CommitError, Engine, EngineError, Expired, Key, ListSnapshot, Loader, OpenError,
    Options, Recovery, Repair, Stored, WatchCursor,
};
use mainstay_object::{Object, Objects};
use parking_lot::Mutex;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{Builder, JoinHandle};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// A store of objects. Cheap to clone; clones are the same store.
///
/// Dropping the last clone closes the store, which waits for writes in progress.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    probe: Option<Probe>,
    /// None once the last handle is dropped.
    queue: Option<mpsc::Sender<Message>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Store {
    /// An in-memory store.
    ///
    /// # Panics
    ///
    /// If the operating system cannot start a thread.
    #[expect(clippy::expect_used, reason = "as std::thread::spawn: no store without its writer")]
    pub fn in_memory(options: Options) -> Self {
        Self::with_engine(Box::new(Memory), options).expect("a thread for the writer").0
    }

    /// Opens the store in a folder, which is created if it is absent. Blocks while it is read.
    ///
    /// Only one process at a time can have a folder open.
    pub fn open(folder: &Path, options: Options) -> Result<(Self, Recovery), OpenError> {
        let engine = Journal::new(folder, options.snapshot_after)?;
        Self::with_engine(Box::new(engine), options)
    }

    /// Repairs a damaged folder: keeps readable data, reports the losses, and moves the original
    /// files into a folder inside it.
    ///
    /// A sound folder is not changed.
    pub fn repair(folder: &Path) -> Result<Repair, OpenError> {
        repair::repair(folder)
    }

    /// A store on an engine. Blocks while the engine loads.
    ///
    /// Inside a tokio runtime the store uses the time of that runtime.
    pub fn with_engine(
        mut engine: Box<dyn Engine>,
        options: Options,
    ) -> Result<(Self, Recovery), OpenError> {
        mainstay_object::size::raise_defaults_limit(options.max_object_bytes);
        let mut loader = Loader::new(options.history, options.clock.elapsed());
        let recovery = engine.load(&mut loader)?;
        let (index, pool) = loader.finish();
        let probe = engine.probe();
        let shared = Arc::new(Shared::new(index, options));
        let (queue, receiver) = mpsc::channel();
        let writer =
            Writer { shared: Arc::clone(&shared), engine, queue: receiver, pool, attempted: None };
        let runtime = Handle::try_current().ok();
        let thread = Builder::new()
            .name("store".to_owned())
            .spawn(move || {
                // The clock is tokio's, which a test may have paused for its own runtime only.
                let _entered = runtime.as_ref().map(Handle::enter);
                writer.run();
            })
            .map_err(|source| OpenError::Thread { source })?;
        let writer = Mutex::new(Some(thread));
        let inner = Inner { shared, probe, queue: Some(queue), writer };
        Ok((Self { inner: Arc::new(inner) }, recovery))
    }

    /// The revision of the newest change. At least 1: zero means "any" to clients.
    pub fn revision(&self) -> u64 {
        self.inner.shared.index.read().revision
    }

    /// The object at a key.
    pub fn get(&self, key: &Key) -> Option<Arc<Stored>> {
        self.inner.shared.index.read().get(key).cloned()
    }

    /// The object at a key in parts; `namespace` is empty for cluster-scoped objects.
    pub fn find(&self, resource: &str, namespace: &str, name: &str) -> Option<Arc<Stored>> {
        self.inner.shared.index.read().find(resource, namespace, name).cloned()
    }

    /// The current objects of a resource, in one namespace or in all.
    pub fn list(&self, resource: &str, namespace: Option<&str>) -> ListSnapshot {
        self.inner.shared.index.read().list(resource, namespace)
    }

    /// The objects of a resource at a past revision.
    ///
    /// Works for the current revision, for views that were kept with [`Store::keep`], and as far
    /// back as the history of the resource reaches.
    pub fn list_at(
        &self,
        resource: &str,
        namespace: Option<&str>,
        revision: u64,
    ) -> Result<ListSnapshot, Expired> {
        let found = self.inner.shared.index.read().list_at(resource, namespace, revision);
        let (mut list, undo) = found?;
        list.undo(&undo);
        Ok(list)
    }

    /// Keeps a view for [`Store::list_at`]; call it before a `continue` token is issued.
    ///
    /// The view is kept for [`Views::max_age`](crate::Views::max_age) from now, unless
    /// [`Views::max_count`](crate::Views::max_count) younger ones displace it.
    pub fn keep(&self, list: &ListSnapshot) {
        let Shared { index, options, .. } = &*self.inner.shared;
        index.write().keep_view(list, options.clock.elapsed(), options);
    }

    /// The names of all resources with objects, and their numbers, in order of names.
    pub fn resources(&self) -> Vec<(Arc<str>, usize)> {
        let index = self.inner.shared.index.read();
        let mut resources: Vec<_> = index
            .resource_states
            .iter()
            .filter(|(_, resource_state)| !resource_state.objects.is_empty())
            .map(|(name, resource_state)| (Arc::clone(name), resource_state.objects.len()))
            .collect();
        drop(index);
        resources.sort_unstable();
        resources
    }

    /// Commits a change of one object: when this returns, the change is durable and visible to
    /// every reader and watcher.
    ///
    /// Returns the stored object; for a deletion its last state at the deletion's revision. A put
    /// of the stored content changes nothing and returns the stored object. If the future is
    /// dropped, the change may or may not be committed.
    pub async fn commit(&self, change: Change<'_>) -> Result<Arc<Stored>, CommitError> {
        let (answer, outcome) = oneshot::channel();
        let request = match change {
            Change::Put { key, object, expect, guard } => {
                let draft = Some(Draft::of(object)?);
                Request { key, draft, expect, guard, answer }
            }
            Change::Delete { key, expect } => {
                Request { key, draft: None, expect, guard: None, answer }
            }
        };
        self.send(Message::Commit(request)).ok_or(CommitError::Closed)?;
        outcome.await.unwrap_or(Err(CommitError::Closed))
    }

    /// Whether changes are saved: the storage exists, and the last write succeeded, or an attempt
    /// after a failed one did. Waits as long as the file system takes; a caller that polls awaits
    /// one result before the next call.
    pub async fn health(&self) -> Result<(), EngineError> {
        if self.trouble().is_some() {
            let (answer, outcome) = oneshot::channel();
            if self.send(Message::Attempt(answer)).is_some()
                && let Ok(outcome) = outcome.await
            {
                outcome?;
            }
        }
        let Some(probe) = self.inner.probe.clone() else { return Ok(()) };
        let probe_result = tokio::task::spawn_blocking(move || probe()).await;
        probe_result.unwrap_or_else(|error| Err(EngineError::Other(error.to_string().into())))
    }

    /// Why the last change was not saved; none if it was.
    pub fn trouble(&self) -> Option<EngineError> {
        self.inner.shared.trouble.lock().clone()
    }

    /// Why some change since the store was opened was not saved, even if later ones were; none if
    /// all were.
    pub fn refusal(&self) -> Option<EngineError> {
        self.inner.shared.refusal.borrow().clone()
    }

    /// Waits for the first [`Store::refusal`].
    pub async fn refuses(&self) -> EngineError {
        let mut refusal = self.inner.shared.refusal.subscribe();
        loop {
            if let Some(error) = refusal.borrow_and_update().clone() {
                return error;
            }
            // The channel ends with the store, which `self` keeps alive.
            if refusal.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Refuses an object that is longer than the store accepts, as [`Store::commit`] does.
    ///
    /// # Errors
    /// [`CommitError::TooLarge`].
    pub fn check_size(&self, key: &Key, object: &Object) -> Result<(), CommitError> {
        let limit = self.max_object_bytes();
        let Some(bytes) = Draft::longer_than(object, limit) else { return Ok(()) };
        size_allowed(bytes, object.is_terminating(), limit, self.get(key).as_deref())
    }

    /// The longest text of an object in bytes.
    pub fn max_object_bytes(&self) -> usize {
        self.inner.shared.options.max_object_bytes
    }

    /// Watches the changes of a resource after a revision, normally that of a [`ListSnapshot`].
    ///
    /// A future revision is accepted: the watch then begins there.
    pub fn watch(&self, resource: &str, from_revision: u64) -> Result<WatchCursor, Expired> {
        WatchCursor::start(&self.inner.shared, resource, from_revision)
    }

    /// Closes the store: queued writes are finished, later ones are refused with
    /// [`CommitError::Closed`], watches end after their last event. Reads continue.
    pub async fn close(&self) -> Result<(), EngineError> {
        let (answer, done) = oneshot::channel();
        if self.send(Message::Close(answer)).is_none() {
            return Ok(());
        }
        // The writer drops the channel if the store was closing already.
        let result = done.await.unwrap_or(Ok(()));
        self.inner.join();
        result
    }

    fn send(&self, message: Message) -> Option<()> {
        self.inner.queue.as_ref()?.send(message).ok()
    }
}

impl Inner {
    /// Waits until the writer has ended and unlocked the data folder.
    fn join(&self) {
        if let Some(writer) = self.writer.lock().take() {
            // A panic of the writer was already reported.
            let _ = writer.join();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.queue = None;
        self.join();
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "store @{}", self.revision())
    }
}

impl Objects for Store {
    fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Object> {
        self.find(resource, namespace, name).map(|stored| stored.object())
    }

    fn list(&self, resource: &str, namespace: Option<&str>) -> Vec<Object> {
        Self::list(self, resource, namespace).iter().map(|stored| stored.object()).collect()
    }
}
