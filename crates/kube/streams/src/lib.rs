//! Streams of pods: log, exec, attach, port-forward and proxy, over SPDY and WebSocket.
//!
//! Nodes are simulated and run no processes. A pod that something in this process stands for has a
//! handler, which is asked here; a simulated pod has a log and ports if its annotations say so; any
//! other pod refuses in clear words. What the original refuses before it asks a node (options,
//! admission, containers, pods without a node) is refused for all pods alike, and so is what a node
//! says of a container that does not run.
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

pub use exec::answer as exec;
pub use forward::answer as port_forward;
pub use log::answer as log;
pub use proxy::answer as proxy;
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

/// Columns and rows of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// Characters in a line.
    pub columns: u16,
    /// Lines.
    pub rows: u16,
}

/// A process that a client starts in a container, or one that runs there already.
///
/// The channels are bounded: whoever writes faster than the other side reads waits. An output ends
/// when it is dropped.
#[derive(Debug)]
pub struct Process {
    /// The container.
    pub container: String,
    /// The command and its arguments; none to attach to what runs already.
    pub command: Option<Vec<String>>,
    /// Whether there is a terminal; its output is all in `stdout`.
    pub tty: bool,
    /// What the client types, to read from, if it wants to.
    pub stdin: Option<DuplexStream>,
    /// Where output goes, if the client wants it.
    pub stdout: Option<DuplexStream>,
    /// Where errors go, if the client wants them.
    pub stderr: Option<DuplexStream>,
    /// The sizes that the terminal takes.
    pub sizes: mpsc::Receiver<TerminalSize>,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With an exit code.
    Code(i32),
    /// Not at all, and why.
    Failed(String),
}

/// Bytes both ways.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// A port of a pod takes no connection; the text is shown to the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConnectError(pub String);

/// What stands for a pod in this process.
pub trait NativePod: Send + Sync + 'static {
    /// What a container has written; with `previous`, the one that ran before it. None if it keeps
    /// no log.
    fn log(&self, container: &str, previous: bool) -> Option<Log>;

    /// Runs a process. It is dropped when the client goes.
    fn run(&self, process: Process) -> BoxFuture<'_, Exit> {
        let why = format!("container {:?} runs no commands", process.container);
        Box::pin(async { Exit::Failed(why) })
    }

    /// Connects with a port: what `port-forward` and `proxy` reach.
    fn connect(&self, port: u16) -> BoxFuture<'_, Result<Box<dyn Connection>, ConnectError>> {
        Box::pin(async move { Err(ConnectError(format!("nothing listens at port {port}"))) })
    }
}

/// Finds the handler of a pod.
type Find = dyn Fn(&Object) -> Option<Arc<dyn NativePod>> + Send + Sync;

/// Streams that are open at one time, at most.
const SESSIONS: usize = 2000;

/// The pods with handlers.
pub struct NativePods {
    /// By namespace and name.
    named: RwLock<HashMap<String, Arc<dyn NativePod>>>,
    /// Asked in their order, if no name is known.
    finders: RwLock<Vec<Arc<Find>>>,
    /// Room for streams.
    sessions: Arc<Semaphore>,
}

impl Default for NativePods {
    fn default() -> Self {
        let (named, finders) = (RwLock::default(), RwLock::default());
        Self { named, finders, sessions: Arc::new(Semaphore::new(SESSIONS)) }
    }
}

impl fmt::Debug for NativePods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.named.read().keys()).finish()
    }
}

impl NativePods {
    /// Puts a handler behind a pod: its log and its streams are asked of the handler.
    pub fn put(&self, namespace: &str, name: &str, handler: Arc<dyn NativePod>) {
        self.named.write().insert(format!("{namespace}/{name}"), handler);
    }

    /// Puts handlers behind all pods for which `find` has one, where none has been put by name.
    pub fn put_finder(
        &self,
        find: impl Fn(&Object) -> Option<Arc<dyn NativePod>> + Send + Sync + 'static,
    ) {
        self.finders.write().push(Arc::new(find));
    }

    fn of(&self, pod: &Object) -> Option<Arc<dyn NativePod>> {
        let key = format!("{}/{}", pod.namespace(), pod.name());
        if let Some(found) = self.named.read().get(&key) {
            return Some(found.clone());
        }
        // Finders are code of others: no lock is held while they look.
        let finders = self.finders.read().clone();
        finders.iter().find_map(|find| find(pod))
    }

    /// What has the log of a pod.
    fn with_log(&self, pod: &Object, store: &Store) -> Option<Arc<dyn NativePod>> {
        self.of(pod).or_else(|| simulated::Simulated::with_log(pod, store))
    }

    /// What has the ports of a pod.
    fn with_ports(&self, pod: &Object, store: &Store) -> Option<Arc<dyn NativePod>> {
        self.of(pod).or_else(|| simulated::Simulated::with_ports(pod, store))
    }
}

/// Refuses what needs a running process: the nodes are simulated.
pub fn no_process(what: &str) -> Status {
    Status::new(
        Reason::MethodNotAllowed,
        format!(
            "{what} is not supported: the nodes of this cluster are simulated and run no processes"
        ),
    )
}

/// Refuses a log of a simulated pod that has none.
fn no_log() -> Status {
    let mut status = no_process("log");
    let hint = format!("; a pod's annotation {} says what it has written", simulated::LOG);
    status.message.push_str(&hint);
    status
}

/// Refuses ports of a simulated pod that has none.
fn no_ports(what: &str) -> Status {
    let mut status = no_process(what);
    let hint = format!(
        "; a pod's annotation {} puts ports of this machine behind those of the pod",
        simulated::PORTS
    );
    status.message.push_str(&hint);
    status
}
