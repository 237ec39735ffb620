//! Streams of pods: log, exec, attach, port-forward and proxy, over SPDY and WebSocket.
//!
//! Nodes are simulated and run no processes. An in-process pod has a handler for its streams.
//! Annotations give a simulated pod a log and ports. Any other pod has a clear error. The checks of
//! kube-apiserver before it calls a node (options, admission, containers, pods without a node)
//! apply to all pods. So do the kubelet's errors about containers that do not run.
//!
//! ```text
//! request ─► options ─► admission ─► pod, container, node ─► handler ─┬─► WebSocket: channels
//!                                                                     ├─► SPDY: streams
//!                                                                     └─► SPDY through WebSocket
//! ```

mod channels;
mod exec;
mod forward;
mod log;
mod options;
mod proxy;
mod request;
mod simulated;
mod spdy;
mod tunnel;
mod upgrade;

pub use exec::handle as exec;
pub use forward::handle as port_forward;
pub use log::handle as log;
pub use proxy::handle as proxy;
pub use request::StreamRequest;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use mainstay_object::{Object, Reason, Status};
use mainstay_store::Store;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::sync::{Semaphore, mpsc};

/// A line that a container wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// When it was written.
    pub time: jiff::Timestamp,
    /// The line, without its end.
    pub text: String,
}

/// The log of a container.
pub struct ContainerLog {
    /// The existing lines, oldest first.
    pub existing: Vec<LogLine>,
    /// New lines. The stream is read only if the client follows the log, as fast as the client
    /// reads, and is dropped with the client.
    pub new_lines: BoxStream<'static, LogLine>,
}

impl fmt::Debug for ContainerLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContainerLog").field("existing", &self.existing).finish_non_exhaustive()
    }
}

/// The size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// Characters in a line.
    pub columns: u16,
    /// Lines.
    pub rows: u16,
}

/// A process that a client starts in a container, or attaches to.
///
/// The pipes are bounded: the faster side waits. An output ends when it is dropped.
#[derive(Debug)]
pub struct Process {
    /// The container.
    pub container: String,
    /// The command and its arguments; none to attach to the running process.
    pub command: Option<Vec<String>>,
    /// Whether the process has a terminal; all its output is in `stdout`.
    pub tty: bool,
    /// Standard input to read from, if the client sends it.
    pub stdin: Option<DuplexStream>,
    /// Standard output, if the client requested it.
    pub stdout: Option<DuplexStream>,
    /// Standard error, if the client requested it.
    pub stderr: Option<DuplexStream>,
    /// The sizes of the terminal.
    pub sizes: mpsc::Receiver<TerminalSize>,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessExit {
    /// The process ended with an exit code.
    Code(i32),
    /// The process did not run, for this reason.
    Failed(String),
}

/// A connection to a port of a pod.
pub trait PodConnection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> PodConnection for T {}

/// A port of a pod does not accept a connection; the client gets the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConnectError(pub String);

/// A pod that this process runs itself.
pub trait InProcessPod: Send + Sync + 'static {
    /// The log of a container; with `previous`, of its previous instance. None without a log.
    fn log(&self, container: &str, previous: bool) -> Option<ContainerLog>;

    /// Runs a process. The future is dropped when the client closes the connection.
    fn run(&self, process: Process) -> BoxFuture<'_, ProcessExit> {
        let reason = format!("container {:?} runs no commands", process.container);
        Box::pin(async { ProcessExit::Failed(reason) })
    }

    /// Connects to a port, for `port-forward` and `proxy`.
    fn connect(&self, port: u16) -> BoxFuture<'_, Result<Box<dyn PodConnection>, ConnectError>> {
        Box::pin(async move { Err(ConnectError(format!("nothing listens at port {port}"))) })
    }
}

/// Finds the handler of a pod.
type FindHandler = dyn Fn(&Object) -> Option<Arc<dyn InProcessPod>> + Send + Sync;

/// The most streams that are open at one time.
const MAX_SESSIONS: usize = 2000;

/// The handlers of in-process pods.
pub struct InProcessPods {
    /// By namespace and name.
    by_name: RwLock<HashMap<String, Arc<dyn InProcessPod>>>,
    /// Called in their order for a pod without a handler by name.
    finders: RwLock<Vec<Arc<FindHandler>>>,
    /// Permits for open streams.
    sessions: Arc<Semaphore>,
}

impl Default for InProcessPods {
    fn default() -> Self {
        let (by_name, finders) = (RwLock::default(), RwLock::default());
        Self { by_name, finders, sessions: Arc::new(Semaphore::new(MAX_SESSIONS)) }
    }
}

impl fmt::Debug for InProcessPods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_name.read().keys()).finish()
    }
}

impl InProcessPods {
    /// Registers the handler of a pod's log and streams.
    pub fn insert(&self, namespace: &str, name: &str, handler: Arc<dyn InProcessPod>) {
        self.by_name.write().insert(format!("{namespace}/{name}"), handler);
    }

    /// Registers a function that finds the handlers of pods without a handler by name.
    pub fn add_finder(
        &self,
        find: impl Fn(&Object) -> Option<Arc<dyn InProcessPod>> + Send + Sync + 'static,
    ) {
        self.finders.write().push(Arc::new(find));
    }

    fn find(&self, pod: &Object) -> Option<Arc<dyn InProcessPod>> {
        let key = format!("{}/{}", pod.namespace(), pod.name());
        if let Some(found) = self.by_name.read().get(&key) {
            return Some(found.clone());
        }
        // No lock is held while a finder runs, because other crates implement it.
        let finders = self.finders.read().clone();
        finders.iter().find_map(|find| find(pod))
    }

    /// The handler of a pod's log.
    fn with_log(&self, pod: &Object, store: &Store) -> Option<Arc<dyn InProcessPod>> {
        self.find(pod).or_else(|| simulated::SimulatedPod::with_log(pod, store))
    }

    /// The handler of a pod's ports.
    fn with_ports(&self, pod: &Object, store: &Store) -> Option<Arc<dyn InProcessPod>> {
        self.find(pod).or_else(|| simulated::SimulatedPod::with_ports(pod, store))
    }
}

/// The error of a subresource that needs a process: the nodes are simulated.
pub fn no_process(subresource: &str) -> Status {
    Status::new(
        Reason::MethodNotAllowed,
        format!(
            "{subresource} is not supported: the nodes of this cluster are simulated and run no processes"
        ),
    )
}

/// The error of a simulated pod without a log.
fn no_log() -> Status {
    let mut status = no_process("log");
    let hint = format!("; the annotation {} of a pod sets its log", simulated::LOG);
    status.message.push_str(&hint);
    status
}

/// The error of a simulated pod without ports.
fn no_ports(subresource: &str) -> Status {
    let mut status = no_process(subresource);
    let hint = format!(
        "; the annotation {} of a pod maps its ports to ports of this machine",
        simulated::PORTS
    );
    status.message.push_str(&hint);
    status
}
