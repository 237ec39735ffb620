//! The handle that everybody holds.

use crate::draft::{Draft, size_allowed};
use crate::engine::Probe;
use crate::engine::journal::{Journal, repair};
use crate::engine::memory::Memory;
use crate::index::Shared;
use crate::writer::{Message, Request, Writer};
use crate::{
    Change, CommitError, Engine, EngineError, Expired, Key, List, Loader, OpenError, Options,
    Recovery, Repair, Stored, Watch,
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
/// When the last clone is dropped the store is closed, which waits for writes that are under way.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    probe: Option<Probe>,
    /// None once the last handle is gone.
    queue: Option<mpsc::Sender<Message>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Store {
    /// A store that lives in memory only.
    ///
    /// # Panics
    ///
    /// If the operating system cannot start a thread.
    #[expect(clippy::expect_used, reason = "as std::thread::spawn: no store without its writer")]
    pub fn in_memory(options: Options) -> Self {
        Self::with_engine(Box::new(Memory), options).expect("a thread for the writer").0
    }

    /// The store in a folder, which is created if there is none. Blocks while it is read.
    ///
    /// Only one process at a time can have a folder open.
    pub fn open(folder: &Path, options: Options) -> Result<(Self, Recovery), OpenError> {
        let engine = Journal::new(folder, options.snapshot_after)?;
        Self::with_engine(Box::new(engine), options)
    }

    /// Makes a damaged folder usable again: keeps what reads well, says what was lost, and puts
    /// the files as they were into a folder inside it.
    ///
    /// A folder that is not damaged is not changed.
    pub fn repair(folder: &Path) -> Result<Repair, OpenError> {
        repair::repair(folder)
    }

    /// A store on an engine. Blocks while the engine loads.
    ///
    /// Called inside a tokio runtime, the store tells the time as that runtime does.
    pub fn with_engine(
        mut engine: Box<dyn Engine>,
        options: Options,
    ) -> Result<(Self, Recovery), OpenError> {
        mainstay_object::size::allow_growth(options.max_object_bytes);
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

    /// The object at a key that is given by its parts; `namespace` is empty for the whole cluster.
    pub fn find(&self, resource: &str, namespace: &str, name: &str) -> Option<Arc<Stored>> {
        self.inner.shared.index.read().find(resource, namespace, name).cloned()
    }

    /// The objects of a resource, in one namespace or in all, as they are now.
    pub fn list(&self, resource: &str, namespace: Option<&str>) -> List {
        self.inner.shared.index.read().list(resource, namespace)
    }

    /// The objects of a resource as they were at a revision.
    ///
    /// Works for the present revision, for views that were kept with [`Store::keep`], and as far
    /// back as the history of the resource reaches.
    pub fn list_at(
        &self,
        resource: &str,
        namespace: Option<&str>,
        revision: u64,
    ) -> Result<List, Expired> {
        let found = self.inner.shared.index.read().list_at(resource, namespace, revision);
        let (mut list, undo) = found?;
        list.undo(&undo);
        Ok(list)
    }

    /// Keeps a view for [`Store::list_at`]: to be called before a `continue` token is handed out.
    ///
    /// It is kept for [`Views::max_age`](crate::Views::max_age) from now, unless
    /// [`Views::max_count`](crate::Views::max_count) younger ones push it out.
    pub fn keep(&self, list: &List) {
        let Shared { index, options, .. } = &*self.inner.shared;
        index.write().pin(list, options.clock.elapsed(), options);
    }

    /// The names of all resources that have objects, and how many they have, in order of names.
    pub fn resources(&self) -> Vec<(Arc<str>, usize)> {
        let index = self.inner.shared.index.read();
        let mut resources: Vec<_> = index
            .shelves
            .iter()
            .filter(|(_, shelf)| !shelf.objects.is_empty())
            .map(|(name, shelf)| (Arc::clone(name), shelf.objects.len()))
            .collect();
        drop(index);
        resources.sort_unstable();
        resources
    }

    /// Changes one object, durably: when this returns the change survives a crash, and every
    /// reader and watcher can see it.
    ///
    /// Gives back the object as stored; for a deletion its last state at the deletion's revision.
    /// Putting what is stored already changes nothing and gives back what is stored. If the future
    /// is dropped the change may or may not happen.
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

    /// Whether changes are saved: the last one was, or after one that was not, writes succeed again; and
    /// the storage is there. Waits as long as the file system lets it; whoever calls this again and
    /// again awaits one answer before the next question.
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
        let asked = tokio::task::spawn_blocking(move || probe()).await;
        asked.unwrap_or_else(|error| Err(EngineError::Other(error.to_string().into())))
    }

    /// Why the last change was not saved; none if it was.
    pub fn trouble(&self) -> Option<EngineError> {
        self.inner.shared.trouble.lock().clone()
    }

    /// Why a change was not saved since the store was opened, even if later ones were; none if all were.
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
            // It ends with the store, which this holds.
            if refusal.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Refuses an object that is longer than the store takes, as [`Store::commit`] would.
    ///
    /// # Errors
    /// [`CommitError::TooLarge`].
    pub fn check_size(&self, key: &Key, object: &Object) -> Result<(), CommitError> {
        let limit = self.max_object_bytes();
        let Some(bytes) = Draft::longer_than(object, limit) else { return Ok(()) };
        size_allowed(bytes, object.is_terminating(), limit, self.get(key).as_deref())
    }

    /// How long an object's text may be.
    pub fn max_object_bytes(&self) -> usize {
        self.inner.shared.options.max_object_bytes
    }

    /// Follows the changes of a resource after a revision, normally that of a [`List`].
    ///
    /// A revision that the store has not reached yet is accepted: the watch then begins there.
    pub fn watch(&self, resource: &str, from_revision: u64) -> Result<Watch, Expired> {
        Watch::start(&self.inner.shared, resource, from_revision)
    }

    /// Ends the store: writes that were asked for before are finished, later ones are refused with
    /// [`CommitError::Closed`], watches end after their last event. Reading goes on.
    pub async fn close(&self) -> Result<(), EngineError> {
        let (answer, done) = oneshot::channel();
        if self.send(Message::Close(answer)).is_none() {
            return Ok(());
        }
        // The channel is dropped unanswered if the store was closing already.
        let result = done.await.unwrap_or(Ok(()));
        self.inner.join();
        result
    }

    fn send(&self, message: Message) -> Option<()> {
        self.inner.queue.as_ref()?.send(message).ok()
    }
}

impl Inner {
    /// Waits until the writer is gone, and with it its hold on the data folder.
    fn join(&self) {
        if let Some(writer) = self.writer.lock().take() {
            // A panic of the writer was already reported where it happened.
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
