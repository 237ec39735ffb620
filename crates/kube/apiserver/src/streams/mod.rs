//! What goes on in a running pod: `log`, `exec`, `attach`, `portforward`.
//!
//! Nodes are simulated and run no processes. A pod that something in this process stands for has a
//! handler, which is asked here; any other pod refuses in clear words. What the original refuses
//! before it asks a node (options, containers, pods without a node) is refused for all pods alike,
//! and so is what a node says of a container that does not run.
//!
//! ```text
//! request ─► options ─► pod, container, node ─► state of the container ─► handler ─► stream
//! ```

mod log;
mod options;

use crate::handlers::Request;
use crate::http::answer::Answer;
use crate::server::ApiServer;
use futures::stream::BoxStream;
use mainstay_object::{Object, Reason, Status};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// A line that a container wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// When it was written.
    pub time: jiff::Timestamp,
    /// The line, without its end.
    pub text: String,
}

/// What a container has written and goes on to write.
pub struct Log {
    /// The lines that are kept, oldest first.
    pub kept: Vec<LogLine>,
    /// The lines that are written from now on; it is read only if the client follows the log, as
    /// fast as the client reads, and dropped with the client.
    pub coming: BoxStream<'static, LogLine>,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("kept", &self.kept).finish_non_exhaustive()
    }
}

/// What stands for a pod in this process.
pub trait NativePod: Send + Sync + 'static {
    /// What a container has written; with `previous`, the one that ran before it. None if it keeps
    /// no log.
    fn log(&self, container: &str, previous: bool) -> Option<Log>;
}

/// Finds the handler of a pod.
type Find = dyn Fn(&Object) -> Option<Arc<dyn NativePod>> + Send + Sync;

/// The pods with handlers.
#[derive(Default)]
pub(crate) struct NativePods {
    /// By namespace and name.
    named: RwLock<HashMap<String, Arc<dyn NativePod>>>,
    /// Asked in their order, if no name is known.
    finders: RwLock<Vec<Arc<Find>>>,
}

impl fmt::Debug for NativePods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.named.read().keys()).finish()
    }
}

impl NativePods {
    fn of(&self, pod: &Object) -> Option<Arc<dyn NativePod>> {
        let key = format!("{}/{}", pod.namespace(), pod.name());
        if let Some(found) = self.named.read().get(&key) {
            return Some(found.clone());
        }
        // Finders are code of others: no lock is held while they look.
        let finders = self.finders.read().clone();
        finders.iter().find_map(|find| find(pod))
    }
}

impl ApiServer {
    /// Puts a handler behind a pod: its log and its streams are asked of the handler.
    pub fn put_native_pod(&self, namespace: &str, name: &str, handler: Arc<dyn NativePod>) {
        self.native_pods.named.write().insert(format!("{namespace}/{name}"), handler);
    }

    /// Puts handlers behind all pods for which `find` has one, where none has been put by name.
    pub fn put_native_pods(
        &self,
        find: impl Fn(&Object) -> Option<Arc<dyn NativePod>> + Send + Sync + 'static,
    ) {
        self.native_pods.finders.write().push(Arc::new(find));
    }
}

/// Answers `pods/log`, `pods/exec`, `pods/attach`, `pods/portforward`.
pub(crate) fn answer(request: &Request<'_>, subresource: &str) -> Result<Answer, Status> {
    match subresource {
        "log" => log::answer(request),
        _ => Err(no_process(subresource)),
    }
}

/// Refuses what needs a running process: the nodes are simulated.
pub(crate) fn no_process(what: &str) -> Status {
    Status::new(
        Reason::MethodNotAllowed,
        format!(
            "{what} is not supported: the nodes of this cluster are simulated and run no processes"
        ),
    )
}
