//! Subsystems: the parts of Mainstay that a process runs side by side.
//!
//! A [`SubsystemInfo`] has the name of a subsystem, and the objects that a cluster must have first. It is
//! plain data, so the value of `--controllers`, the CustomResourceDefinitions that are applied and the
//! printed manifests all derive from one list of them. A [`Subsystem`] is one that runs, and
//! [`RunningSubsystems`] are all that a process runs: they sync together, publish one page of metrics
//! and shut down in the reverse order of their start.
//!
//! ```text
//! [SubsystemInfo] ─ select(--controllers) ─┬─► CRDs, cluster roles, permissions ─► cluster
//!                                          └─► start ─► Subsystem ─► RunningSubsystems ─► /metrics, /healthz
//! ```
//!
//! What this module does not do: apply the definitions or construct a subsystem from arguments. The
//! binary does both.

use futures::future::{BoxFuture, join_all};
use mainstay_cause::Cause;
use mainstay_client::{ControllerHandle, Counters};
use mainstay_exposition::Page;
use mainstay_object::{NamespacedName, Object};
use serde_json::Value;
use std::sync::Arc;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use crate::KeyQueue;

/// The name of a subsystem, and the objects that a cluster must have before the subsystem starts.
#[derive(Debug)]
pub struct SubsystemInfo {
    /// The name in `--controllers` and in metrics.
    pub name: &'static str,
    /// One sentence for help texts, without a period.
    pub summary: &'static str,
    /// The CustomResourceDefinitions of its APIs.
    pub definitions: fn() -> Vec<Object>,
    /// ClusterRoles for users of its APIs, most of them aggregated into `admin`, `edit` and `view`.
    pub cluster_roles: fn() -> Vec<Object>,
    /// The rules of the ClusterRole that the process needs, in the form of `rules` of a ClusterRole.
    pub permissions: fn() -> Vec<Value>,
}

/// Why a value of `--controllers` selects nothing that can run.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// The list names a subsystem that this program does not have.
    #[error("there is no subsystem `{name}`; known subsystems: {}", known.join(", "))]
    Unknown {
        /// The name as it was typed.
        name: String,
        /// The names that can be chosen.
        known: Vec<&'static str>,
    },
    /// The list excludes everything.
    #[error("the list selects no subsystem; known subsystems: {}", known.join(", "))]
    Nothing {
        /// The names that can be chosen.
        known: Vec<&'static str>,
    },
}

/// Selects subsystems as kube-controller-manager selects controllers: `*` stands for all, `NAME` adds
/// one, `-NAME` excludes one wherever it stands in the list. The order is that of `all`.
///
/// # Errors
/// [`SelectError`] if a name is unknown or nothing is left.
pub fn select(
    all: &[&'static SubsystemInfo],
    list: &[impl AsRef<str>],
) -> Result<Vec<&'static SubsystemInfo>, SelectError> {
    let known = || all.iter().map(|info| info.name).collect::<Vec<_>>();
    let mut entries = Vec::new();
    for entry in list.iter().map(AsRef::as_ref) {
        let (included, name) = match entry.strip_prefix('-') {
            Some(name) => (false, name),
            None => (true, entry),
        };
        if name != "*" && !all.iter().any(|info| info.name == name) {
            return Err(SelectError::Unknown { name: name.to_owned(), known: known() });
        }
        entries.push((included, name));
    }
    let selected = |info: &&&'static SubsystemInfo| {
        let lists = |included: bool, name: &str| entries.contains(&(included, name));
        (lists(true, "*") || lists(true, info.name))
            && !lists(false, "*")
            && !lists(false, info.name)
    };
    let found: Vec<_> = all.iter().filter(selected).copied().collect();
    if found.is_empty() { Err(SelectError::Nothing { known: known() }) } else { Ok(found) }
}

/// A subsystem that runs.
pub trait Subsystem: Send + Sync {
    /// Its name, APIs and permissions.
    fn info(&self) -> &'static SubsystemInfo;

    /// Returns once every object that it reads has been seen and every controller reconciles.
    fn synced(&self) -> BoxFuture<'_, ()>;

    /// Its metrics and health. The monitor may outlive the subsystem.
    fn monitor(&self) -> Arc<dyn Monitor>;

    /// Ends every controller and returns when they have ended. The next start finishes interrupted work.
    fn shutdown(self: Box<Self>) -> BoxFuture<'static, ()>;
}

/// Metrics and health of a running subsystem.
pub trait Monitor: Send + Sync {
    /// Writes the metrics that are its own; those of its queues are written for all subsystems at once.
    fn write_metrics(&self, page: &mut Page);

    /// Its controllers.
    fn controllers(&self) -> &[ControllerMonitor];

    /// Why the process should be restarted, one sentence for each reason: controllers that have ended
    /// although nothing stopped them.
    fn problems(&self) -> Vec<String> {
        let ended = self.controllers().iter().filter(|controller| controller.has_failed());
        ended.map(|controller| format!("the controller {} has ended", controller.name)).collect()
    }
}

/// One controller, as metrics and health checks see it.
#[derive(Clone)]
pub struct ControllerMonitor {
    name: &'static str,
    queue: KeyQueue,
    counters: Arc<Counters>,
    task: AbortHandle,
    stop: CancellationToken,
}

impl ControllerMonitor {
    pub(crate) fn new(handle: &ControllerHandle<NamespacedName>, stop: CancellationToken) -> Self {
        Self {
            name: handle.name(),
            queue: handle.queue().clone(),
            counters: Arc::clone(handle.counters()),
            task: handle.task(),
            stop,
        }
    }

    /// Whether the controller has ended although nothing stopped it.
    fn has_failed(&self) -> bool {
        self.task.is_finished() && !self.stop.is_cancelled()
    }
}

/// The subsystems of a process, in the order of their start.
#[derive(Default)]
pub struct RunningSubsystems(Vec<Box<dyn Subsystem>>);

impl RunningSubsystems {
    /// Adds a subsystem that was started after those before it.
    pub fn add(&mut self, subsystem: impl Subsystem + 'static) {
        self.0.push(Box::new(subsystem));
    }

    /// Returns once every subsystem has synced.
    pub async fn synced(&self) {
        join_all(self.0.iter().map(|subsystem| subsystem.synced())).await;
    }

    /// The monitors of all of them.
    pub fn monitors(&self) -> Monitors {
        Monitors::of(self.0.iter().map(Box::as_ref))
    }

    /// Ends all of them, the last one first, and returns when they have ended.
    pub async fn shutdown(self) {
        for subsystem in self.0.into_iter().rev() {
            subsystem.shutdown().await;
        }
    }
}

/// Metrics and health of the subsystems of a process. Clones share them.
#[derive(Clone, Default)]
pub struct Monitors(Arc<[(&'static str, Arc<dyn Monitor>)]>);

impl Monitors {
    /// The monitors of some subsystems.
    pub fn of<'s>(subsystems: impl IntoIterator<Item = &'s dyn Subsystem>) -> Self {
        let named = |subsystem: &'s dyn Subsystem| (subsystem.info().name, subsystem.monitor());
        Self(subsystems.into_iter().map(named).collect())
    }

    /// Writes the metrics of every subsystem, and those of all queues.
    pub fn write_metrics(&self, page: &mut Page) {
        for (_, monitor) in &*self.0 {
            monitor.write_metrics(page);
        }
        let controllers: Vec<_> = self.controllers().collect();
        if !controllers.is_empty() {
            write_queues(page, &controllers);
        }
    }

    /// Nothing if every subsystem is healthy.
    ///
    /// # Errors
    /// A cause that names each problem with its subsystem.
    pub fn check_health(&self) -> Result<(), Cause> {
        let of_one = |(name, monitor): &(&'static str, Arc<dyn Monitor>)| {
            let problem = |problem| Cause::new(format!("{name}: {problem}"));
            monitor.problems().into_iter().map(problem).collect::<Vec<_>>()
        };
        let problems: Vec<Cause> = self.0.iter().flat_map(of_one).collect();
        if problems.is_empty() {
            return Ok(());
        }
        Err(Cause::new("controllers do not run any more")
            .because_all(problems)
            .remedy("restart the process; its log says why they ended"))
    }

    fn controllers(&self) -> impl Iterator<Item = &ControllerMonitor> {
        self.0.iter().flat_map(|(_, monitor)| monitor.controllers())
    }
}

/// Writes the families of client-go's workqueues, once for all controllers: a family may stand on a
/// page only once.
fn write_queues(page: &mut Page, controllers: &[&ControllerMonitor]) {
    type Value = fn(&ControllerMonitor) -> f64;
    #[expect(clippy::cast_precision_loss, reason = "counts far below what a float holds")]
    let families: [(&str, &str, &str, Value); 5] = [
        ("workqueue_depth", "gauge", "Keys that wait for a worker.", |controller| {
            controller.queue.len() as f64
        }),
        ("workqueue_adds_total", "counter", "Keys that came in.", |controller| {
            controller.queue.added() as f64
        }),
        (
            "workqueue_retries_total",
            "counter",
            "Keys that are tried again after an error.",
            |controller| controller.counters.failed() as f64,
        ),
        (
            "workqueue_work_duration_seconds_sum",
            "counter",
            "Seconds that keys took.",
            |controller| controller.counters.busy().as_secs_f64(),
        ),
        (
            "workqueue_work_duration_seconds_count",
            "counter",
            "Keys that were worked on.",
            |controller| controller.counters.reconciled() as f64,
        ),
    ];
    for (name, kind, help, value) in families {
        page.head(name, kind, help);
        for controller in controllers {
            page.line(name, &[("name", controller.name)], value(controller));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static CLASSIC: SubsystemInfo = info("classic");
    static EXTENSIONS: SubsystemInfo = info("extensions");
    static ALL: [&SubsystemInfo; 2] = [&CLASSIC, &EXTENSIONS];

    const fn info(name: &'static str) -> SubsystemInfo {
        SubsystemInfo {
            name,
            summary: "",
            definitions: Vec::new,
            cluster_roles: Vec::new,
            permissions: Vec::new,
        }
    }

    fn names(list: &[&str]) -> Result<Vec<&'static str>, SelectError> {
        Ok(select(&ALL, list)?.iter().map(|info| info.name).collect())
    }

    #[test]
    fn controllers_list_adds_and_excludes_subsystems_in_any_order() {
        assert_eq!(names(&["*"]), Ok(vec!["classic", "extensions"]));
        assert_eq!(names(&["extensions", "classic"]), Ok(vec!["classic", "extensions"]));
        assert_eq!(names(&["-classic", "*"]), Ok(vec!["extensions"]));
        assert_eq!(names(&["classic"]), Ok(vec!["classic"]));
        let known = vec!["classic", "extensions"];
        let unknown = SelectError::Unknown { name: "clasic".to_owned(), known: known.clone() };
        assert_eq!(names(&["clasic"]), Err(unknown));
        assert_eq!(names(&["*", "-*"]), Err(SelectError::Nothing { known: known.clone() }));
        assert_eq!(names(&[]), Err(SelectError::Nothing { known }));
    }
}
