//! Writes that may be repeated: each reads the object, and writes it only if that changes something.

use super::super::{report_warnings, write_failure};
use mainstay_cause::Cause;
use mainstay_clock::Clock;
use mainstay_command::cluster::{
    ClusterHandle, ClusterReadError, ClusterWriteError, ClusterWriter, ObjectWrite,
};
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_object::{Object, Resource};
use std::time::Duration;

/// How often a write is repeated after somebody else changed the object.
const ATTEMPTS: usize = 20;
/// The pause after the first look of a wait, which grows up to the second value.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// `Kind namespace/name`.
pub(super) fn object_text(object: &Object) -> String {
    super::super::owned::object_text(object)
}

fn namespace_of(object: &Object) -> Option<&str> {
    Some(object.namespace()).filter(|namespace| !namespace.is_empty())
}

/// Changes an object until the change is stored or is not needed. None if the object is gone.
///
/// # Errors
/// The cluster refuses or does not respond.
pub(super) async fn change(
    cluster: &impl ClusterWriter,
    io: &mut CommandIo<'_>,
    kind: &Resource,
    object: &Object,
    change: impl Fn(&Object) -> Option<Object>,
) -> Result<Option<Object>, CommandFailure> {
    let what = || format!("failed to change {}", object_text(object));
    let mut attempt = 0;
    loop {
        let found = cluster.get(kind, namespace_of(object), object.name()).await?;
        let Some(found) = found.filter(|found| found.uid() == object.uid()) else {
            return Ok(None);
        };
        let Some(changed) = change(&found) else { return Ok(Some(found)) };
        match cluster.write(kind, ObjectWrite::Replace(&changed), false).await {
            Ok(accepted) => return Ok(Some(report_warnings(io, accepted))),
            Err(ClusterWriteError::NotFound(_)) => return Ok(None),
            Err(ClusterWriteError::Conflict(_)) if attempt < ATTEMPTS => {}
            Err(error) => return Err(write_failure(what(), error)),
        }
        attempt += 1;
    }
}

/// Creates an object. None if one of the name exists.
///
/// # Errors
/// The cluster refuses or does not respond.
pub(super) async fn create(
    cluster: &impl ClusterWriter,
    io: &mut CommandIo<'_>,
    kind: &Resource,
    object: &Object,
    dry_run: bool,
) -> Result<Option<Object>, CommandFailure> {
    match cluster.write(kind, ObjectWrite::Create(object), dry_run).await {
        Ok(accepted) => Ok(Some(report_warnings(io, accepted))),
        Err(ClusterWriteError::AlreadyExists(_)) => Ok(None),
        Err(error) => {
            Err(write_failure(format!("failed to create {}", object_text(object)), error))
        }
    }
}

/// Deletes an object, never a later one of its name. A missing one is no error.
///
/// # Errors
/// The cluster refuses or does not respond.
pub(super) async fn delete(
    cluster: &impl ClusterWriter,
    io: &mut CommandIo<'_>,
    kind: &Resource,
    object: &Object,
) -> Result<(), CommandFailure> {
    match cluster.write(kind, ObjectWrite::Delete(object), false).await {
        Ok(accepted) => drop(report_warnings(io, accepted)),
        Err(ClusterWriteError::NotFound(_) | ClusterWriteError::Conflict(_)) => {}
        Err(error) => {
            return Err(write_failure(format!("failed to delete {}", object_text(object)), error));
        }
    }
    Ok(())
}

/// Deletes an object, and waits until it is gone.
///
/// # Errors
/// The cluster refuses or does not respond, or the object still exists at the end.
pub(super) async fn delete_and_wait(
    cluster: &impl ClusterWriter,
    io: &mut CommandIo<'_>,
    kind: &Resource,
    object: &Object,
    timeout: Duration,
) -> Result<(), CommandFailure> {
    delete(cluster, io, kind, object).await?;
    wait_until_gone(cluster, kind, object, timeout).await
}

/// Waits until an object is gone.
///
/// # Errors
/// The cluster does not respond, or the object still exists at the end.
pub(super) async fn wait_until_gone(
    cluster: &impl ClusterHandle,
    kind: &Resource,
    object: &Object,
    timeout: Duration,
) -> Result<(), CommandFailure> {
    let look = async || {
        let found = cluster.get(kind, namespace_of(object), object.name()).await?;
        let found = found.filter(|found| found.uid() == object.uid());
        Ok(match found {
            None => Look::Reached(()),
            Some(found) => {
                let finalizers: Vec<&str> = found.finalizers().collect();
                Look::Waiting(match finalizers.as_slice() {
                    [] => Cause::new("it is being deleted"),
                    all => Cause::new(format!("its finalizers remain: {}", all.join(", ")))
                        .remedy("check that the controllers of OLM classic and OLM v1 run"),
                })
            }
        })
    };
    let waited = wait(timeout, look).await?;
    waited.map_err(|why| {
        Cause::new(format!("{} still exists after {} s", object_text(object), timeout.as_secs()))
            .because(why)
            .into()
    })
}

/// What a look at the cluster found.
pub(super) enum Look<T> {
    /// The goal.
    Reached(T),
    /// Not yet, and why.
    Waiting(Cause),
    /// The goal cannot be reached.
    Hopeless(Cause),
}

/// Looks until the goal is reached; an inner error tells why it was not.
///
/// # Errors
/// The account may not read what is looked at, or the cluster does not respond until the end.
pub(super) async fn wait<T>(
    timeout: Duration,
    look: impl AsyncFn() -> Result<Look<T>, ClusterReadError>,
) -> Result<Result<T, Cause>, CommandFailure> {
    let clock = Clock::system();
    let begin = clock.elapsed();
    let mut pause = PAUSES.0;
    loop {
        let elapsed = clock.elapsed().saturating_sub(begin);
        match look().await {
            Ok(Look::Reached(found)) => return Ok(Ok(found)),
            Ok(Look::Hopeless(why)) => return Ok(Err(why)),
            Ok(Look::Waiting(why)) if elapsed >= timeout => return Ok(Err(why)),
            // The next response may come in time.
            Ok(Look::Waiting(_)) => {}
            Err(ClusterReadError::Failed(_)) if elapsed < timeout => {}
            Err(error) => return Err(error.into()),
        }
        tokio::time::sleep(pause.min(timeout.saturating_sub(elapsed))).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}
