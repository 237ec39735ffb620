//! Waiting for a state of an object with a watch.

use mainstay_cause::Cause;
use mainstay_client::{Cluster, ObjectList, Selection, WatchEvent};
use mainstay_object::{Object, Resource};
use std::time::Duration;

/// The time limit of a step. Steps take milliseconds; the rest is for busy machines.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Lists and watches the objects of a kind in a namespace until `matches` returns a value for one of
/// them.
///
/// # Errors
/// `wanted` with the last observed object, if none matches in time.
pub(crate) async fn wait_until<T>(
    cluster: &Cluster,
    resource: &Resource,
    namespace: &str,
    wanted: &str,
    mut matches: impl FnMut(&Object) -> Option<T>,
) -> Result<T, Cause> {
    let mut last_object = None;
    let watching = watch_until(cluster, resource, namespace, &mut last_object, &mut matches);
    match tokio::time::timeout(TIMEOUT, watching).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Cause::new(wanted).because(Cause::new(error.to_string()))),
        Err(_) => Err(Cause::new(wanted).because(Cause::new(match last_object {
            Some(object) => format!(
                "this did not happen within {} s; last state: {}",
                TIMEOUT.as_secs(),
                summary(&object)
            ),
            None => format!("no object was found within {} s", TIMEOUT.as_secs()),
        }))),
    }
}

async fn watch_until<T>(
    cluster: &Cluster,
    resource: &Resource,
    namespace: &str,
    last_object: &mut Option<Object>,
    matches: &mut impl FnMut(&Object) -> Option<T>,
) -> Result<T, mainstay_client::Error> {
    loop {
        let list = cluster.list(resource, Some(namespace), &ObjectList::default()).await?;
        for object in list.items {
            if let Some(value) = matches(&object) {
                return Ok(value);
            }
            *last_object = Some(object);
        }
        let selection = Selection::all(resource.clone()).namespace(namespace);
        let mut watch = cluster.watch(&selection, &list.resource_version).await?;
        while let Some(event) = watch.next().await {
            match event {
                Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                    if let Some(value) = matches(&object) {
                        return Ok(value);
                    }
                    *last_object = Some(object);
                }
                Ok(WatchEvent::Deleted(_) | WatchEvent::Bookmark(_)) => {}
                // The watch expired or the connection broke: begin again with a list.
                Err(_) => break,
            }
        }
    }
}

/// Waits until an object is deleted.
///
/// # Errors
/// The object still exists at the time limit.
pub(crate) async fn wait_until_deleted(
    cluster: &Cluster,
    resource: &Resource,
    namespace: &str,
    name: &str,
) -> Result<(), Cause> {
    let watching = async {
        loop {
            let params = ObjectList::fields(format!("metadata.name={name}"));
            let list = cluster.list(resource, Some(namespace), &params).await?;
            if list.items.is_empty() {
                return Ok::<(), mainstay_client::Error>(());
            }
            let selection = Selection::all(resource.clone())
                .namespace(namespace)
                .fields(format!("metadata.name={name}"));
            let mut watch = cluster.watch(&selection, &list.resource_version).await?;
            while let Some(Ok(event)) = watch.next().await {
                if matches!(event, WatchEvent::Deleted(_)) {
                    return Ok(());
                }
            }
        }
    };
    let wanted = || {
        Cause::new(format!("the deletion of {} {namespace}/{name} does not finish", resource.kind))
    };
    match tokio::time::timeout(TIMEOUT, watching).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(wanted().because(Cause::new(error.to_string()))),
        Err(_) => {
            let why = format!("it still exists after {} s", TIMEOUT.as_secs());
            Err(wanted().because(Cause::new(why)))
        }
    }
}

/// A summary of the status, in a line.
fn summary(object: &Object) -> String {
    let status =
        object.get(&["status"]).map_or_else(|| "no status".to_owned(), ToString::to_string);
    let mut end = status.len().min(600);
    while !status.is_char_boundary(end) {
        end -= 1;
    }
    format!("{} {}: {}", object.kind(), object.key(), &status[..end])
}
