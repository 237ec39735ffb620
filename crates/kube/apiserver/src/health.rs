//! Health endpoints: `/readyz`, `/livez` and `/healthz`.
//!
//! A component that clients rely on takes a [`Gate`] first and opens it when the component works.
//! `/readyz` succeeds when all gates are open. `/livez` and `/healthz` say only that the process
//! answers: restarting a server because a controller has not synced would not help it sync.
//!
//! The checks of kube-apiserver exist by name, because monitors ask for them. Their work is complete
//! before this server begins to answer, so they always succeed. The etcd checks of `/readyz` fail
//! while changes are not saved.
//!
//! The responses have kube-apiserver's format, because people and scripts read them. One thing
//! differs: a closed gate says why, where kube-apiserver withholds reasons.

use mainstay_store::{EngineError, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The gates that must be open before the server is ready. Clones share the gates.
#[derive(Clone, Debug)]
pub struct Readiness(Arc<watch::Sender<Vec<State>>>);

#[derive(Clone, Debug)]
struct State {
    name: String,
    /// Why the gate is closed; none when it is open.
    closed: Option<String>,
}

/// One gate of a [`Readiness`], closed until it is opened.
#[derive(Clone, Debug)]
pub struct Gate {
    readiness: Readiness,
    name: String,
}

/// A response of `/livez`, `/healthz` or `/readyz`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthReport {
    /// HTTP status code: 200 or 500.
    pub code: u16,
    /// Plain text.
    pub text: String,
}

/// Checks of every endpoint, in kube-apiserver's order.
const ALWAYS: [&str; 28] = [
    "ping",
    "log",
    "etcd",
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/aggregator-reload-proxy-client-cert",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
];

/// The checks that fail while changes are not saved.
const STORAGE: [&str; 2] = ["etcd", "etcd-readiness"];

impl Default for Readiness {
    /// No gates: ready.
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Vec::new())))
    }
}

impl Readiness {
    /// Returns the gate of this name; creates it closed if it is new.
    pub fn gate(&self, name: &str) -> Gate {
        self.0.send_if_modified(|gates| {
            let new = !gates.iter().any(|gate| gate.name == name);
            if new {
                let closed = Some("not reached yet".to_owned());
                gates.push(State { name: name.to_owned(), closed });
            }
            new
        });
        Gate { readiness: self.clone(), name: name.to_owned() }
    }

    /// Whether all gates are open.
    pub fn is_ready(&self) -> bool {
        all_open(&self.0.borrow())
    }

    /// Waits until all gates are open.
    pub async fn wait_until_ready(&self) {
        // The sender lives as long as `self`, so the wait ends only when all gates are open.
        let _ = self.0.subscribe().wait_for(|gates| all_open(gates)).await;
    }

    /// The closed gates, each with the reason.
    pub fn closed_gates(&self) -> Vec<(String, String)> {
        let gates = self.0.borrow();
        gates.iter().filter_map(|gate| Some((gate.name.clone(), gate.closed.clone()?))).collect()
    }

    /// Whether a health endpoint or check has this path.
    pub(crate) fn has_path(&self, path: &str) -> bool {
        self.report(path, false, &[], None).is_some()
    }

    /// Answers a health path: `/readyz`, `/livez`, `/healthz`, or one check below it such as
    /// `/readyz/ping`. None if there is no such check. `verbose` and `excluded` are the query
    /// parameters `verbose` and `exclude`; `storage_error` says why changes are not saved, if they are
    /// not.
    pub fn report(
        &self,
        path: &str,
        verbose: bool,
        excluded: &[&str],
        storage_error: Option<&str>,
    ) -> Option<HealthReport> {
        let (endpoint, check) = match path.strip_prefix('/')?.split_once('/') {
            None => (&path[1..], None),
            Some((endpoint, check)) => (endpoint, Some(check)),
        };
        let open = |name: &str| State { name: name.to_owned(), closed: None };
        let mut checks: Vec<State> = ALWAYS.iter().map(|name| open(name)).collect();
        match endpoint {
            "livez" | "healthz" => {}
            "readyz" => {
                // Their place in kube-apiserver's order.
                checks.splice(3..3, ["etcd-readiness", "informer-sync"].map(open));
                // A server that saves nothing is not ready for clients. It stays live: a restart
                // does not repair a disk.
                for check in
                    checks.iter_mut().filter(|check| STORAGE.contains(&check.name.as_str()))
                {
                    check.closed = storage_error.map(str::to_owned);
                }
                checks.extend(self.0.borrow().iter().cloned());
                checks.push(open("shutdown"));
            }
            _ => return None,
        }
        match check {
            None => Some(summarize(endpoint, &checks, verbose, excluded)),
            Some(name) => checks.iter().find(|check| check.name == name).map(|check| match &check
                .closed
            {
                None => HealthReport { code: 200, text: "ok".to_owned() },
                Some(reason) => {
                    HealthReport { code: 500, text: format!("internal server error: {reason}\n") }
                }
            }),
        }
    }
}

fn all_open(gates: &[State]) -> bool {
    gates.iter().all(|gate| gate.closed.is_none())
}

fn summarize(endpoint: &str, checks: &[State], verbose: bool, excluded: &[&str]) -> HealthReport {
    let mut lines = Vec::new();
    let mut failed = false;
    for State { name, closed } in checks {
        lines.push(match closed {
            _ if excluded.contains(&name.as_str()) => format!("[+]{name} excluded: ok\n"),
            None => format!("[+]{name} ok\n"),
            Some(reason) => {
                failed = true;
                format!("[-]{name} failed: {reason}\n")
            }
        });
    }
    let mut unknown: Vec<String> = excluded
        .iter()
        .filter(|name| !checks.iter().any(|check| check.name == **name))
        .map(|name| format!("{name:?}"))
        .collect();
    if !unknown.is_empty() {
        unknown.sort();
        unknown.dedup();
        lines.push(format!(
            "warn: some health checks cannot be excluded: no matches for {}\n",
            unknown.join(",")
        ));
    }
    let lines = lines.concat();
    if failed {
        // A failure always lists all checks.
        HealthReport { code: 500, text: format!("{lines}{endpoint} check failed\n") }
    } else if verbose {
        HealthReport { code: 200, text: format!("{lines}{endpoint} check passed\n") }
    } else {
        HealthReport { code: 200, text: "ok".to_owned() }
    }
}

impl Gate {
    /// Opens the gate.
    pub fn open(&self) {
        self.set(None);
    }

    /// Closes the gate, or updates the reason why it is closed.
    pub fn close(&self, reason: impl Into<String>) {
        self.set(Some(reason.into()));
    }

    fn set(&self, closed: Option<String>) {
        self.readiness.0.send_if_modified(|gates| {
            let Some(gate) = gates.iter_mut().find(|gate| gate.name == self.name) else {
                return false;
            };
            let changed = gate.closed != closed;
            gate.closed = closed;
            changed
        });
    }
}

/// Timeout of the check of the file system.
const STORAGE_TIMEOUT: Duration = Duration::from_secs(2);

/// The pending check of the storage. All requests meanwhile await the same check, so a file system
/// that hangs occupies one thread.
#[derive(Debug, Default)]
pub(crate) struct StorageCheck(Mutex<Option<JoinHandle<Result<(), EngineError>>>>);

impl StorageCheck {
    /// Returns why changes are not saved; none if they are.
    pub(crate) async fn storage_error(&self, store: &Store) -> Option<String> {
        let check = async {
            let mut pending = self.0.lock().await;
            let store = store.clone();
            let result =
                pending.get_or_insert_with(|| tokio::spawn(async move { store.health().await }));
            let result = result.await;
            *pending = None;
            match result {
                Ok(health) => health.err().map(|error| error.to_string()),
                Err(error) => Some(error.to_string()),
            }
        };
        let no_answer = || Some("the data folder does not answer".to_owned());
        timeout(STORAGE_TIMEOUT, check).await.unwrap_or_else(|_| no_answer())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_ready_when_every_gate_is_open() {
        let readiness = Readiness::default();
        assert!(readiness.is_ready());
        let (crds, classic) = (readiness.gate("crds"), readiness.gate("classic"));
        crds.open();
        readiness.gate("crds");
        classic.close("syncing");
        assert_eq!(readiness.closed_gates(), [("classic".to_owned(), "syncing".to_owned())]);
        classic.open();
        assert!(readiness.is_ready());
        crds.close("gone");
        assert!(!readiness.is_ready());
    }

    #[tokio::test]
    async fn wait_until_ready_ends_when_the_last_gate_opens() {
        let readiness = Readiness::default();
        let gate = readiness.gate("a");
        let ((), ()) = tokio::join!(readiness.wait_until_ready(), async { gate.open() });
    }

    #[test]
    fn responses_have_the_format_of_kube_apiserver() {
        let readiness = Readiness::default();
        readiness.gate("crds").open();
        let closed = readiness.gate("classic");
        closed.close("catalogs are not synced");
        let report = |path: &str, verbose, excluded: &[&str]| {
            readiness.report(path, verbose, excluded, None).map(|report| (report.code, report.text))
        };
        let text = |code, text: &str| Some((code, text.to_owned()));
        assert_eq!(report("/livez", false, &[]), text(200, "ok"));
        let own_lines = |path: &str, verbose, excluded: &[&str]| {
            let (code, text) = report(path, verbose, excluded).unwrap();
            let own = |line: &&str| !line.contains("poststarthook/");
            (code, text.lines().filter(own).map(ToOwned::to_owned).collect::<Vec<_>>())
        };
        let health = ["[+]ping ok", "[+]log ok", "[+]etcd ok", "[+]autoregister-completion ok"];
        let (code, lines) = own_lines("/healthz", true, &[]);
        assert_eq!((code, &lines[..4]), (200, &health.map(ToOwned::to_owned)[..]));
        assert_eq!(lines[4], "healthz check passed");
        let (code, lines) = own_lines("/readyz", false, &[]);
        assert_eq!(code, 500);
        assert_eq!(lines[3..5], ["[+]etcd-readiness ok", "[+]informer-sync ok"]);
        assert_eq!(
            lines[6..],
            [
                "[+]crds ok",
                "[-]classic failed: catalogs are not synced",
                "[+]shutdown ok",
                "readyz check failed"
            ]
        );
        assert_eq!(report("/readyz", false, &["classic"]), text(200, "ok"));
        let (code, lines) = own_lines("/readyz", true, &["z", "classic", "y"]);
        assert_eq!(code, 200);
        assert_eq!(
            lines[6..],
            [
                "[+]crds ok",
                "[+]classic excluded: ok",
                "[+]shutdown ok",
                "warn: some health checks cannot be excluded: no matches for \"y\",\"z\"",
                "readyz check passed"
            ]
        );
        assert_eq!(report("/readyz/etcd", false, &[]), text(200, "ok"));
        assert_eq!(report("/readyz/crds", false, &[]), text(200, "ok"));
        let error = "internal server error: catalogs are not synced\n";
        assert_eq!(report("/readyz/classic", false, &[]), text(500, error));
        assert_eq!(report("/readyz/nothing", false, &[]), None);
        assert_eq!(report("/livez/crds", false, &[]), None);
        assert_eq!(report("/metrics", false, &[]), None);
        let storage_error =
            |path: &str| readiness.report(path, false, &["classic"], Some("it is gone"));
        let report_unsaved = storage_error("/readyz").unwrap();
        assert_eq!(report_unsaved.code, 500);
        assert!(
            report_unsaved.text.contains("[-]etcd-readiness failed: it is gone\n"),
            "{}",
            report_unsaved.text
        );
        assert_eq!(storage_error("/readyz/etcd").unwrap().code, 500);
        assert_eq!(storage_error("/livez").unwrap().code, 200);
    }
}
