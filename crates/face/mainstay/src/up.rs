//! `mainstay up`: an embedded cluster that runs until a stop signal.

use crate::embedded::{Embedded, Settings};
use crate::stop::StopSignals;
use crate::subsystems::Selected;
use crate::supervise::Startup;
use crate::wait::wait_until;
use mainstay_api::resources::{CATALOG_SOURCE, CLUSTER_CATALOG};
use mainstay_cli::config::Up;
use mainstay_command::exit::CommandFailure;
use mainstay_command::report::{ProgressReport, milliseconds, shell_word};
use mainstay_extensions::WebhookCertificates;

/// Starts the cluster, reports its components, serves until a signal, and stops.
pub(crate) async fn run(
    up: Up,
    report: ProgressReport,
    startup: Startup,
) -> Result<(), CommandFailure> {
    let mut signals = StopSignals::listen()?;
    let say = |line: &str| report.say(line);
    let subsystems = if up.bare {
        Selected::none()
    } else {
        // The cluster has neither cert-manager nor a service CA.
        Selected::parse(&up.controllers, WebhookCertificates::Own).map_err(CommandFailure::usage)?
    };
    let settings = Settings {
        data: up.data,
        listen: up.listen,
        kubeconfig: up.kubeconfig,
        catalogs: up.catalogs,
        images: up.images,
        registry: up.registry,
        nodes: up.nodes,
        profile: up.profile,
        defaults: up.defaults,
        catalog_mode: up.catalog_mode,
        repair: up.repair,
        max_object_bytes: up.max_object_bytes,
        audit_log: up.audit_log,
        network: up.network,
        protected: up.protected,
        subsystems,
    };
    let embedded = tokio::select! {
        embedded = Embedded::start(settings, &say) => embedded?,
        // The next start completes what this one began.
        () = signals.wait() => return Ok(()),
    };
    startup.done();
    report.say(format!(
        "ready       {} after {}",
        embedded.url(),
        milliseconds(embedded.startup_time())
    ));
    // Another terminal may have another current folder, so the path is absolute.
    let kubeconfig = std::path::absolute(embedded.kubeconfig())
        .unwrap_or_else(|_| embedded.kubeconfig().to_owned());
    report.command(format!("export KUBECONFIG={}", shell_word(&kubeconfig)));
    tokio::select! {
        () = report_catalogs(&embedded, &report) => signals.wait().await,
        () = signals.wait() => {}
    }
    embedded.stop().await?;
    report.say("stopped");
    Ok(())
}

/// Reports the state of each catalog as soon as it is known. Reading a catalog may take a moment, and a
/// broken catalog must not look served.
async fn report_catalogs(embedded: &Embedded, report: &ProgressReport) {
    if !embedded.runs_classic() {
        return report_cluster_catalogs(embedded, report).await;
    }
    let namespace = embedded.catalog_namespace();
    let reports = embedded.catalogs().iter().map(|(name, folder)| async move {
        let source = wait_until(embedded.cluster(), &CATALOG_SOURCE, namespace, name, |source| {
            let state = source.str(&["status", "connectionState", "lastObservedState"])?;
            let is_decided =
                source.name() == name && matches!(state, "READY" | "TRANSIENT_FAILURE");
            // A status of an earlier process counts no more.
            let address = source.str(&["status", "connectionState", "address"]);
            let own = embedded.catalog_address(name).map(|address| address.to_string());
            let is_ours = own.is_none_or(|own| address == Some(&own));
            (is_decided && is_ours).then(|| source.clone())
        })
        .await;
        // After the time limit, only the CatalogSource's status reports the state.
        let Ok(source) = source else { return };
        let state = source.str(&["status", "connectionState", "lastObservedState"]);
        let state = state.unwrap_or_default();
        report.say(format!("catalog     {namespace}/{name} {state} from {}", folder.display()));
        let message = source.str(&["status", "message"]).unwrap_or_default();
        if state != "READY" && !message.is_empty() {
            report.detail(message);
        }
        if let Some(address) = embedded.catalog_address(name) {
            report.detail(format!("grpc {address}  http://{address}/catalogs/{name}"));
        }
        if let Some(address) = embedded.cluster_catalogs_address() {
            report.detail(format!("ClusterCatalog {name}  https://{address}/catalogs/{name}"));
        }
    });
    futures::future::join_all(reports).await;
}

/// As [`report_catalogs`], without CatalogSources.
async fn report_cluster_catalogs(embedded: &Embedded, report: &ProgressReport) {
    let reports = embedded.catalogs().iter().map(|(name, folder)| async move {
        let catalog = wait_until(embedded.cluster(), &CLUSTER_CATALOG, "", name, |catalog| {
            let is_decided = catalog.name() == name && catalog.condition("Progressing").is_some();
            is_decided.then(|| catalog.clone())
        })
        .await;
        // After the time limit, only the ClusterCatalog's status reports the state.
        let Ok(catalog) = catalog else { return };
        let serves = catalog.condition("Serving") == Some("True");
        let state = if serves { "Serving" } else { "not serving" };
        report.say(format!("catalog     {name} {state} from {}", folder.display()));
        let base = catalog.str(&["status", "urls", "base"]).filter(|_| serves);
        let conditions = catalog.array(&["status", "conditions"]).iter();
        let mut failures = conditions.filter(|condition| condition["reason"] != "Succeeded");
        let failure = failures.find_map(|condition| condition["message"].as_str());
        if let Some(detail) = base.or(failure) {
            report.detail(detail);
        }
    });
    futures::future::join_all(reports).await;
}
