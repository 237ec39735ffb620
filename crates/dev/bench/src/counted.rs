//! Controllers on threads of their own, whose processor time and requests are counted.

use crate::figure::Figure;
use anyhow::{Context as _, Result};
use http::{Method, Request, Response};
use kube::client::Body;
use mainstay_auth::Identity;
use mainstay_client::Cluster;
use mainstay_clock::Clock;
use mainstay_testkit::TestCluster;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::runtime::{Handle, Runtime};
use tower::Service as _;

/// After so much time without a write, the controllers are idle.
const IDLE_AFTER: Duration = Duration::from_millis(300);
/// The interval between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The requests of the controllers.
#[derive(Default)]
struct Requests {
    reads: AtomicUsize,
    writes: AtomicUsize,
    /// Requests by method, kind and subresource.
    kinds: Mutex<BTreeMap<String, usize>>,
}

impl Requests {
    fn count(&self, method: &Method, path: &str) {
        let total = if method == Method::GET { &self.reads } else { &self.writes };
        total.fetch_add(1, Ordering::SeqCst);
        let parts: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let below = if parts.first() == Some(&"api") { 2 } else { 3 };
        let scope = if parts.get(below) == Some(&"namespaces") && parts.len() > below + 2 {
            below + 2
        } else {
            below
        };
        let kind = parts.get(scope).unwrap_or(&"?");
        let part = parts.get(scope + 2).map(|segment| format!("/{segment}")).unwrap_or_default();
        *self.kinds.lock().entry(format!("{method} {kind}{part}")).or_default() += 1;
    }
}

/// The requests and processor time of the controllers up to some time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ControllerUsage {
    pub(crate) reads: usize,
    pub(crate) writes: usize,
    pub(crate) processor: Duration,
}

impl ControllerUsage {
    /// The difference to an earlier usage.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            reads: self.reads - earlier.reads,
            writes: self.writes - earlier.writes,
            processor: self.processor.saturating_sub(earlier.processor),
        }
    }

    /// Writes, reads and processor time per operation.
    pub(crate) fn per_operation(self, count: usize) -> [Figure; 3] {
        let parts = u32::try_from(count.max(1)).unwrap_or(u32::MAX);
        let [writes, reads] = [self.writes, self.reads].map(|sum| Figure::each(sum, count));
        [writes, reads, Figure::time(self.processor / parts)]
    }
}

/// The threads of controllers, and the count of their requests.
pub(crate) struct CountedThreads {
    name: &'static str,
    runtime: Runtime,
    requests: Arc<Requests>,
}

impl CountedThreads {
    /// Starts threads of this name, of at most 15 letters.
    pub(crate) fn start(name: &'static str) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .thread_name(name)
            // The processor time of a terminated thread would be lost.
            .thread_keep_alive(Duration::from_hours(1))
            .build()
            .context("starting threads")?;
        Ok(Self { name, runtime, requests: Arc::default() })
    }

    /// The runtime of the threads.
    pub(crate) fn handle(&self) -> &Handle {
        self.runtime.handle()
    }

    /// A client whose requests are counted, and handled on the threads of the caller.
    pub(crate) fn client(&self, cluster: &TestCluster) -> Cluster {
        let service = cluster.server().service(Identity::admin());
        let (requests, server) = (Arc::clone(&self.requests), Handle::current());
        let service = tower::service_fn(move |request: Request<Body>| {
            requests.count(request.method(), request.uri().path());
            let mut service = service.clone();
            let response = server.spawn(async move { service.call(request).await });
            async move {
                match response.await {
                    Ok(Ok(response)) => Ok::<Response<_>, tokio::task::JoinError>(response),
                    Ok(Err(never)) => match never {},
                    Err(ended) => Err(ended),
                }
            }
        });
        Cluster::new(kube::Client::new(service, "default"))
    }

    /// The usage of the controllers so far.
    pub(crate) fn usage(&self) -> Result<ControllerUsage> {
        Ok(ControllerUsage {
            reads: self.requests.reads.load(Ordering::SeqCst),
            writes: self.requests.writes.load(Ordering::SeqCst),
            processor: processor_time(self.name)?,
        })
    }

    /// The requests since the last call, by method and kind, per operation.
    pub(crate) fn take_requests(&self, count: usize) -> String {
        let kinds = std::mem::take(&mut *self.requests.kinds.lock());
        let mut lines: Vec<(usize, String)> =
            kinds.into_iter().map(|(kind, requests)| (requests, kind)).collect();
        lines.sort_unstable_by(|a, b| b.cmp(a));
        let tenths = |requests: usize| requests * 10 / count.max(1);
        let lines = lines.iter().map(|(requests, kind)| {
            format!("{:>6}.{} {kind}\n", tenths(*requests) / 10, tenths(*requests) % 10)
        });
        lines.collect()
    }

    /// Waits until the controllers are idle; returns the time of their last write.
    pub(crate) async fn wait_until_idle(&self, clock: &Clock) -> Duration {
        let mut last = (self.requests.writes.load(Ordering::SeqCst), clock.elapsed());
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let writes = self.requests.writes.load(Ordering::SeqCst);
            let now = clock.elapsed();
            if writes != last.0 {
                last = (writes, now);
            } else if now.saturating_sub(last.1) > IDLE_AFTER {
                return last.1;
            }
        }
    }

    /// Stops the threads without waiting for what they do.
    pub(crate) fn stop(self) {
        self.runtime.shutdown_background();
    }
}

/// The processor time of the threads with this name.
fn processor_time(name: &str) -> Result<Duration> {
    let mut total = Duration::ZERO;
    for task in fs::read_dir("/proc/self/task").context("reading the threads")? {
        let task = task.context("reading the threads")?.path();
        // A thread may have ended since the listing.
        let Ok(found) = fs::read_to_string(task.join("comm")) else { continue };
        if found.trim() != name {
            continue;
        }
        let spent =
            fs::read_to_string(task.join("schedstat")).context("reading a thread's time")?;
        let nanos = spent.split_whitespace().next().and_then(|nanos| nanos.parse().ok());
        total += Duration::from_nanos(nanos.context("a thread without a time")?);
    }
    Ok(total)
}
