//! Waiting for a ClusterExtension: its object is polled until a goal, an end or a time limit.

use super::state::{self, InstallStage};
use mainstay_api::names::olm_v1::{CONTENT_MANAGER_CACHE_FINALIZER, UNPACK_CACHE_FINALIZER};
use mainstay_api::resources::CLUSTER_EXTENSION;
use mainstay_cause::Cause;
use mainstay_clock::Clock;
use mainstay_command::cluster::{ClusterHandle, ClusterReadError};
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_command::text::escape_controls;
use mainstay_object::Object;
use std::time::Duration;

/// The pause after the first response, which grows up to the second value.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(2));

/// The times at which an object is read.
struct Polling {
    clock: Clock,
    begin: Duration,
    timeout: Duration,
    pause: Duration,
}

impl Polling {
    fn begin(timeout: Duration) -> Self {
        let clock = Clock::system();
        Self { begin: clock.elapsed(), clock, timeout, pause: PAUSES.0 }
    }

    fn elapsed(&self) -> Duration {
        self.clock.elapsed().saturating_sub(self.begin)
    }

    /// Whether the time limit is reached.
    fn is_over(&self) -> bool {
        self.elapsed() >= self.timeout
    }

    /// Waits until the next time.
    async fn pause(&mut self) {
        let remaining = self.timeout.saturating_sub(self.elapsed());
        tokio::time::sleep(self.pause.min(remaining)).await;
        self.pause = (self.pause * 2).min(PAUSES.1);
    }
}

/// Why a wait ended without its goal.
#[derive(Debug)]
pub(super) enum Unfinished {
    /// The controller gave up.
    Stopped(Object),
    /// The time is over.
    TimedOut(Object),
    /// The object is deleted, or another object has its name.
    Deleted,
}

/// Waits until an object meets the goal, and returns that object. An empty `uid` means any object of the
/// name. On a terminal, each new state is shown.
///
/// # Errors
/// The account may not read the object, or the cluster does not respond until the end.
pub(super) async fn wait(
    cluster: &impl ClusterHandle,
    io: &mut CommandIo<'_>,
    (name, uid): (&str, &str),
    timeout: Duration,
    is_reached: impl Fn(&Object) -> bool,
) -> Result<Result<Object, Unfinished>, CommandFailure> {
    let mut polling = Polling::begin(timeout);
    let mut displayed = String::new();
    loop {
        let is_over = polling.is_over();
        match cluster.get(&CLUSTER_EXTENSION, None, name).await {
            Ok(None) => return Ok(Err(Unfinished::Deleted)),
            Ok(Some(found)) if !uid.is_empty() && found.uid() != uid => {
                return Ok(Err(Unfinished::Deleted));
            }
            Ok(Some(found)) if is_reached(&found) => return Ok(Ok(found)),
            Ok(Some(found)) if state::install_stage(&found) == InstallStage::Stopped => {
                return Ok(Err(Unfinished::Stopped(found)));
            }
            Ok(Some(found)) if is_over => return Ok(Err(Unfinished::TimedOut(found))),
            Ok(Some(found)) => display_state(io, &found, &mut displayed),
            // The next response may come in time.
            Err(ClusterReadError::Failed(_)) if !is_over => {}
            Err(error) => return Err(error.into()),
        }
        polling.pause().await;
    }
}

/// Waits until an object is gone. Returns it if it still exists at the end. Only reads the object, as an
/// account may delete and get it, and not watch it.
///
/// # Errors
/// The account may not read the object, or the cluster does not respond until the end.
pub(super) async fn wait_until_gone(
    cluster: &impl ClusterHandle,
    extension: &Object,
    timeout: Duration,
) -> Result<Option<Object>, CommandFailure> {
    let end = wait_until_gone_or(cluster, extension, timeout, |_| false).await?;
    Ok(end.err())
}

/// Waits until an object is gone or meets a goal. Returns the object as it then is, none if it is gone; the
/// error of the inner result is the object at the end of the time.
///
/// # Errors
/// The account may not read the object, or the cluster does not respond until the end.
async fn wait_until_gone_or(
    cluster: &impl ClusterHandle,
    extension: &Object,
    timeout: Duration,
    is_reached: impl Fn(&Object) -> bool,
) -> Result<Result<Option<Object>, Object>, CommandFailure> {
    let mut polling = Polling::begin(timeout);
    loop {
        let is_over = polling.is_over();
        match cluster.get(&CLUSTER_EXTENSION, None, extension.name()).await {
            Ok(Some(found)) if found.uid() == extension.uid() => {
                if is_reached(&found) {
                    return Ok(Ok(Some(found)));
                }
                if is_over {
                    return Ok(Err(found));
                }
            }
            Ok(_) => return Ok(Ok(None)),
            // The next response may come in time.
            Err(ClusterReadError::Failed(_)) if !is_over => {}
            Err(error) => return Err(error.into()),
        }
        polling.pause().await;
    }
}

/// The finalizers of a controller of OLM v1: without them, its work on a deleted extension is done.
const CONTROLLER_FINALIZERS: [&str; 2] = [UNPACK_CACHE_FINALIZER, CONTENT_MANAGER_CACHE_FINALIZER];

/// Waits until the controller of an extension has ended its work on it, once the extension is deleted. Returns
/// the extension as it then is, none if it is gone; the error of the inner result is the object at the end of
/// the time.
///
/// # Errors
/// The account may not read the object, or the cluster does not respond until the end.
pub(crate) async fn wait_until_controller_ends(
    cluster: &impl ClusterHandle,
    extension: &Object,
    timeout: Duration,
) -> Result<Result<Option<Object>, Object>, CommandFailure> {
    let is_ended = |extension: &Object| {
        let mut finalizers = extension.finalizers();
        extension.is_terminating() && !finalizers.any(|name| CONTROLLER_FINALIZERS.contains(&name))
    };
    wait_until_gone_or(cluster, extension, timeout, is_ended).await
}

/// Shows a state on a terminal, once.
fn display_state(io: &mut CommandIo<'_>, extension: &Object, displayed: &mut String) {
    if !io.terminal {
        return;
    }
    let obstacles = obstacles(extension);
    let line = obstacles.first().map(|cause| cause.what().to_owned()).unwrap_or_default();
    if line != *displayed {
        let _ = writeln!(io.stderr, "waiting: {line}");
        *displayed = line;
    }
}

/// Why the goal is not reached. If the controller has no more to do, it is the installed bundle.
fn obstacles(extension: &Object) -> Vec<Cause> {
    let obstacles = state::obstacles(extension);
    match state::installed_bundle(extension) {
        Some(bundle) if obstacles.is_empty() => {
            let installed =
                format!("{} version {} is installed", bundle.name, bundle.version_text());
            vec![Cause::new(escape_controls(&installed))]
        }
        _ => obstacles,
    }
}

impl Unfinished {
    /// The cause that the ClusterExtension did not reach the goal.
    pub(super) fn cause(&self, name: &str, goal: &str, timeout: Duration) -> Cause {
        let (within, extension) = match self {
            Self::Deleted => {
                return Cause::new(format!("ClusterExtension {name:?} was deleted meanwhile"));
            }
            Self::Stopped(extension) => (String::new(), extension),
            Self::TimedOut(extension) => (format!(" within {} s", timeout.as_secs()), extension),
        };
        Cause::new(format!("ClusterExtension {name:?} did not finish {goal}{within}"))
            .because_all(obstacles(extension))
    }
}
