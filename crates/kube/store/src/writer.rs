//! The writer: the only thread that changes the store.
//!
//! Data flow: queue ─► check against live objects and this batch's decisions ─► one durable append
//! ─► publish to readers and watchers ─► reply. While an append waits for the disk the next batch
//! gathers in the queue. So the number of writers determines the batch size, and no timer is
//! needed.
//!
//! It is an operating system thread, not a task: it blocks on the disk, and a blocked task would
//! delay the others of its worker.

use crate::draft::Draft;
use crate::index::{Index, Shared};
use crate::{
    CommitError, Engine, EngineError, Event, EventKind, Key, NamespaceGuard, Pool, Precondition,
    Stored,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;
use tokio::sync::oneshot;

/// How often old events and views are dropped in an idle store.
const IDLE: Duration = Duration::from_secs(10);

/// For how long the result of a probing write stays valid.
const ATTEMPT: Duration = Duration::from_secs(1);

/// A message to the writer.
pub(crate) enum Message {
    Commit(Request),
    /// Report whether changes are saved; after a failed one, probe with a write.
    Attempt(oneshot::Sender<Result<(), EngineError>>),
    /// Stop after all earlier messages.
    Close(oneshot::Sender<Result<(), EngineError>>),
}

/// A queued change.
pub(crate) struct Request {
    pub(crate) key: Key,
    /// The new object; none for a deletion.
    pub(crate) draft: Option<Draft>,
    pub(crate) expect: Precondition,
    pub(crate) guard: Option<NamespaceGuard>,
    pub(crate) answer: Answer,
}

type Outcome = Result<Arc<Stored>, CommitError>;
type Answer = oneshot::Sender<Outcome>;

pub(crate) struct Writer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) engine: Box<dyn Engine>,
    pub(crate) queue: Receiver<Message>,
    /// The shared long values.
    pub(crate) pool: Pool,
    /// The time of the last probing write.
    pub(crate) attempted: Option<Duration>,
}

/// The decisions of a batch before they are published.
#[derive(Default)]
struct Staged {
    /// The revision of the newest change.
    revision: u64,
    events: Vec<Arc<Event>>,
    /// The objects after the changes of the batch.
    objects: HashMap<Key, Option<Arc<Stored>>>,
    bytes: usize,
}

impl Staged {
    /// The object at a key after the decisions so far.
    fn current(&self, index: &Index, key: &Key) -> Option<Arc<Stored>> {
        match self.objects.get(key) {
            Some(decided) => decided.clone(),
            None => index.get(key).cloned(),
        }
    }

    /// Decides a change: its event, or the error.
    #[expect(clippy::too_many_arguments, reason = "a change, and what it is held against")]
    fn decide(
        &mut self,
        index: &Index,
        pool: &mut Pool,
        key: Key,
        draft: Option<&Draft>,
        expect: Precondition,
        guard: Option<NamespaceGuard>,
        max_object_bytes: usize,
    ) -> Outcome {
        // The guard comes first: in a terminating namespace nothing else matters.
        if let Some(guard) = guard {
            match self.current(index, &guard.alive) {
                Some(alive) if !alive.terminating => {}
                terminating => return Err(CommitError::GuardFailed { guard, terminating }),
            }
        }
        let current = self.current(index, &key);
        match (expect, &current) {
            (Precondition::Absent, Some(current)) => {
                return Err(CommitError::AlreadyExists { current: Arc::clone(current) });
            }
            (Precondition::Revision(_), None) => return Err(CommitError::Missing(key)),
            (Precondition::Revision(expected), Some(current)) if current.revision != expected => {
                return Err(CommitError::Stale { current: Arc::clone(current), expected });
            }
            _ => {}
        }
        if let Some(draft) = draft {
            draft.check_size(max_object_bytes, current.as_deref())?;
        }
        let revision = self.revision + 1;
        let (kind, object) = match (draft, &current) {
            // A write of the stored content is no change.
            (Some(draft), Some(current)) if draft.is_text_of(current) => {
                return Ok(Arc::clone(current));
            }
            (Some(draft), Some(current)) => (
                EventKind::Modified,
                draft.stored(current.key.clone(), revision, Some(current), pool),
            ),
            (Some(draft), None) => {
                (EventKind::Added, draft.stored(index.intern(&key), revision, None, pool))
            }
            (None, Some(current)) => (EventKind::Deleted, current.deleted_at(revision)),
            (None, None) => return Err(CommitError::Missing(key)),
        };
        let object = Arc::new(object);
        self.revision = revision;
        self.bytes += object.size();
        self.objects.insert(key, (kind != EventKind::Deleted).then(|| Arc::clone(&object)));
        self.events.push(Event::new(kind, Arc::clone(&object), current));
        Ok(object)
    }
}

impl Writer {
    /// Runs until the store is closed or no handle is left.
    pub(crate) fn run(mut self) {
        let mut closing = None;
        let mut trim = true;
        while closing.is_none() {
            let first = if trim {
                match self.queue.recv_timeout(IDLE) {
                    Ok(message) => message,
                    Err(RecvTimeoutError::Disconnected) => break,
                    Err(RecvTimeoutError::Timeout) => {
                        trim = self.trim();
                        continue;
                    }
                }
            } else {
                match self.queue.recv() {
                    Ok(message) => message,
                    Err(_) => break,
                }
            };
            trim = true;
            closing = self.batch(first);
        }
        let result = self.engine.close();
        if let Err(error) = &result {
            tracing::error!("closing the store: {error}");
        }
        self.shared.close();
        if let Some(answer) = closing {
            // The caller may have stopped waiting.
            let _ = answer.send(result);
        }
    }

    /// Commits one message and those queued behind it; returns a request to close.
    fn batch(&mut self, first: Message) -> Option<oneshot::Sender<Result<(), EngineError>>> {
        let limits = self.shared.options.batch;
        let (mut answers, mut attempts) = (Vec::new(), Vec::new());
        let mut next = Some(first);
        let mut closing = None;
        let index = self.shared.index.read();
        let mut staged = Staged { revision: index.revision, ..Staged::default() };
        while let Some(message) = next.take() {
            let request = match message {
                Message::Commit(request) => request,
                Message::Attempt(answer) => {
                    attempts.push(answer);
                    break;
                }
                Message::Close(answer) => {
                    closing = Some(answer);
                    break;
                }
            };
            let Request { key, draft, expect, guard, answer } = request;
            let max_bytes = self.shared.options.max_object_bytes;
            let pool = &mut self.pool;
            let outcome =
                staged.decide(&index, pool, key, draft.as_ref(), expect, guard, max_bytes);
            answers.push((answer, outcome));
            if answers.len() >= limits.max_changes || staged.bytes >= limits.max_bytes {
                break;
            }
            next = self.queue.try_recv().ok();
        }
        drop(index);
        self.finish(&staged.events, answers);
        for answer in attempts {
            // The caller may have stopped waiting.
            let _ = answer.send(self.attempt());
        }
        closing
    }

    /// Whether changes are saved; after a failed one, by a write without effect.
    fn attempt(&mut self) -> Result<(), EngineError> {
        let trouble = self.shared.trouble.lock().clone();
        let Some(trouble) = trouble else { return Ok(()) };
        let now = self.shared.options.clock.elapsed();
        if self.attempted.is_some_and(|before| now.saturating_sub(before) < ATTEMPT) {
            return Err(trouble);
        }
        self.attempted = Some(now);
        let outcome = self.engine.attempt();
        if outcome.is_ok() {
            tracing::info!("changes are saved again");
        }
        *self.shared.trouble.lock() = outcome.clone().err();
        outcome
    }

    /// Makes a batch durable and visible, then replies.
    fn finish(&mut self, events: &[Arc<Event>], answers: Vec<(Answer, Outcome)>) {
        if events.is_empty() {
            return answer(answers);
        }
        if let Err(error) = self.engine.append(events) {
            tracing::error!("{error}");
            *self.shared.trouble.lock() = Some(error.clone());
            self.shared.refusal.send_replace(Some(error.clone()));
            // A refusal may depend on a change of this batch that now fails.
            let refused = |(to, _)| (to, Err(CommitError::Engine(error.clone())));
            return answer(answers.into_iter().map(refused).collect());
        }
        *self.shared.trouble.lock() = None;
        let options = &self.shared.options;
        let now = options.clock.elapsed();
        let mut topics: Vec<_> = Vec::new();
        let mut index = self.shared.index.write();
        for event in events {
            index.publish(event, now, options);
            let resource = &event.object.key.resource;
            let topic = &index.resource_state(resource).topic;
            if !topics.iter().any(|other| Arc::ptr_eq(other, topic)) {
                topics.push(Arc::clone(topic));
            }
        }
        drop(index);
        answer(answers);
        for topic in topics {
            topic.wake();
        }
        let shared = &self.shared;
        self.engine.maintain(&|| shared.index.read().view());
    }

    fn trim(&self) -> bool {
        let options = &self.shared.options;
        self.shared.index.write().trim(options.clock.elapsed(), options)
    }
}

impl Drop for Writer {
    /// Watches end however the writer ends.
    fn drop(&mut self) {
        self.shared.close();
    }
}

fn answer(answers: Vec<(Answer, Outcome)>) {
    for (to, outcome) in answers {
        // The caller may have stopped waiting; the change stands.
        let _ = to.send(outcome);
    }
}
