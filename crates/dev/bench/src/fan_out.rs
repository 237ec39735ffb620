//! Fan-out: the time until one change reaches many watches.
//!
//! Watches are opened in two ways. Go's clients, and so almost all programs with watches, share one
//! connection among a hundred watches. Other clients, and a thousand separate programs, have one
//! connection each. With separate connections, the client's own decryption is most of the measured
//! work.

use crate::api::{Api, REPEATS, collection, maps};
use crate::multiplex::{STREAMS, Stream};
use crate::process::Usage;
use anyhow::{Context, Result};
use futures::io::AsyncBufReadExt;
use futures::stream::{self, StreamExt, TryStreamExt};
use kube::api::{ListParams, Patch, PatchParams, WatchParams};
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;
use tokio::sync::mpsc;

/// The timeout for one change to reach all watches.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How watches are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionMode {
    /// As streams of HTTP/2, a hundred per connection.
    Multiplexed,
    /// Each on a connection of its own, with HTTP/1.1.
    Separate,
}

impl ConnectionMode {
    /// The prefix of its figures' keys.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Multiplexed => "watches-http2",
            Self::Separate => "watches-apart",
        }
    }
}

impl fmt::Display for ConnectionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Multiplexed => "HTTP/2",
            Self::Separate => "a connection each",
        })
    }
}

/// Records when a watch receives an event.
struct EventRecorder {
    times: mpsc::UnboundedSender<Duration>,
    clock: mainstay_clock::Clock,
}

impl EventRecorder {
    /// Records an event; false once the measurement has ended.
    fn record_event(&self) -> bool {
        self.times.send(self.clock.elapsed()).is_ok()
    }
}

/// Opens watches and changes one object several times. Returns for each change the sorted times
/// until each watch received it, and `usage` while the watches are open.
pub(crate) async fn measure(
    api: &Api,
    mode: ConnectionMode,
    watches: usize,
    usage: impl Fn() -> Result<Usage>,
) -> Result<(Vec<Vec<Duration>>, Usage)> {
    let head = maps().list(&ListParams::default().limit(1))?;
    let head: Value = serde_json::from_str(&api.client.request_text(head).await?)?;
    let version = head.pointer("/metadata/resourceVersion").and_then(Value::as_str);
    let version = version.context("the list says no resourceVersion")?;
    let (times, mut hear) = mpsc::unbounded_channel();
    let recorder = || EventRecorder { times: times.clone(), clock: api.clock };
    match mode {
        ConnectionMode::Multiplexed => multiplexed(api, watches, version, recorder).await?,
        ConnectionMode::Separate => apart(api, watches, version, recorder).await?,
    }
    let usage = usage()?;
    let mut changes = Vec::with_capacity(REPEATS);
    for change in 0..REPEATS {
        let patch = Patch::Merge(json!({"data": {"changed": format!("{mode} {change}")}}));
        let request = maps().patch("object-000000", &PatchParams::default(), &patch)?;
        let start = api.clock.elapsed();
        api.client.request_text(request).await.context("changing one config map")?;
        let mut samples = Vec::with_capacity(watches);
        while samples.len() < watches {
            let times = tokio::time::timeout(TIMEOUT, hear.recv()).await;
            let times = times.context("a watch is silent")?.context("all watches ended")?;
            samples.push(times.saturating_sub(start));
        }
        samples.sort_unstable();
        changes.push(samples);
    }
    Ok((changes, usage))
}

async fn multiplexed(
    api: &Api,
    watches: usize,
    version: &str,
    recorder: impl Fn() -> EventRecorder,
) -> Result<()> {
    let path = format!("{}?watch=true&timeoutSeconds=290&resourceVersion={version}", collection());
    let mut left = watches;
    while left > 0 {
        let mut connection = api.connector.connect().await?;
        for _ in 0..left.min(STREAMS) {
            let (stream, recorder) = (connection.open(&path).await?, recorder());
            tokio::spawn(listen(stream, recorder));
        }
        left = left.saturating_sub(STREAMS);
    }
    Ok(())
}

/// Ends with the watch or with the measurement.
async fn listen(mut stream: Stream, recorder: EventRecorder) {
    while stream.line().await && recorder.record_event() {}
}

async fn apart(
    api: &Api,
    watches: usize,
    version: &str,
    recorder: impl Fn() -> EventRecorder,
) -> Result<()> {
    let watching = WatchParams::default().timeout(290).disable_bookmarks();
    let open: Vec<_> = stream::iter(0..watches)
        .map(|_| async {
            let request = maps().watch(&watching, version)?;
            api.client.request_stream(request).await.context("opening a watch")
        })
        .buffer_unordered(64)
        .try_collect()
        .await?;
    for stream in open {
        let recorder = recorder();
        tokio::spawn(async move {
            let mut stream = std::pin::pin!(stream);
            let mut line = Vec::new();
            // Ends with the watch or with the measurement.
            while stream.read_until(b'\n', &mut line).await.is_ok_and(|count| count > 0) {
                line.clear();
                if !recorder.record_event() {
                    break;
                }
            }
        });
    }
    Ok(())
}
