//! Clusters on which `run` does not start, because other controllers do the same work there.

use super::TIMEOUT;
use crate::embedded::chain;
use crate::layout;
use crate::subsystems::Selected;
use mainstay_cause::Cause;
use mainstay_client::{Cluster, ObjectList};
use mainstay_object::builtin;

/// The Deployment of upstream's controller of ClusterCatalogs.
const CATALOGD: &str = "catalogd-controller-manager";
/// The Deployment of upstream's controller of ClusterExtensions.
const OPERATOR_CONTROLLER: &str = "operator-controller-controller-manager";

/// Refuses to run beside Operator Lifecycle Manager: each would revert the changes of the other.
pub(super) async fn refuse_beside_olm(cluster: &Cluster, selected: &Selected) -> Result<(), Cause> {
    let mut causes = Vec::new();
    if selected.contains(&mainstay_classic::SUBSYSTEM) {
        let params = ObjectList::labels("app in (olm-operator, catalog-operator)");
        causes.extend(running_deployments(cluster, &params, "classic").await?);
    }
    if selected.contains(&mainstay_extensions::SUBSYSTEM) {
        for name in [CATALOGD, OPERATOR_CONTROLLER] {
            let params = ObjectList::fields(format!("metadata.name={name}"));
            causes.extend(running_deployments(cluster, &params, "extensions").await?);
        }
    }
    if causes.is_empty() {
        return Ok(());
    }
    Err(Cause::new("Operator Lifecycle Manager runs on this cluster already").because_all(causes))
}

/// The Deployments of Operator Lifecycle Manager that do what `subsystem` would do, each with its remedy.
async fn running_deployments(
    cluster: &Cluster,
    params: &ObjectList,
    subsystem: &str,
) -> Result<Vec<Cause>, Cause> {
    let unknown = |why: Cause, remedy: &str| {
        Cause::new("the Deployments of Operator Lifecycle Manager cannot be read")
            .because(why)
            .remedy(remedy)
    };
    let elsewhere =
        "check that the cluster runs, or name another one with --kubeconfig FILE or --context NAME";
    let list = async { cluster.list(&builtin::DEPLOYMENT, None, params).await };
    let deployments = match tokio::time::timeout(TIMEOUT, list).await {
        Ok(Ok(deployments)) => deployments,
        Ok(Err(error)) => {
            let remedy = match error.status().map(|status| status.code) {
                Some(401) => {
                    "check the credentials of the kubeconfig, or name another one with --kubeconfig FILE or --context NAME"
                }
                Some(403) => "use an account with the ClusterRole `cluster-admin`",
                _ => elsewhere,
            };
            return Err(unknown(chain(&error), remedy));
        }
        Err(_) => {
            let why = format!("it did not respond within {} s", TIMEOUT.as_secs());
            return Err(unknown(Cause::new(why), elsewhere));
        }
    };
    let olm_deployments = deployments
        .items
        .iter()
        .filter(|deployment| deployment.i64(&["spec", "replicas"]) != Some(0));
    let causes = olm_deployments.map(|deployment| {
        let (namespace, name) = (deployment.namespace(), deployment.name());
        Cause::new(format!("Deployment {namespace}/{name} belongs to it")).remedy(format!(
            "stop it: kubectl --namespace {namespace} scale deployment {name} --replicas=0; or leave its work to it with --controllers '*,-{subsystem}'"
        ))
    });
    Ok(causes.collect())
}

/// Refuses a cluster of `mainstay up`, whose controllers run in the API server's process.
pub(super) async fn refuse_embedded_controllers(cluster: &Cluster) -> Result<(), Cause> {
    // Without permission to list Leases of all namespaces, the election finds the Lease held.
    let Ok(leases) = layout::embedded_leases(cluster).await else { return Ok(()) };
    let Some(lease) = leases.first() else { return Ok(()) };
    let (namespace, name) = (lease.namespace(), lease.name());
    Err(Cause::new("the controllers of this cluster already run in the process of its API")
        .because(Cause::new(format!("Lease {namespace}/{name} is held by `mainstay up`")))
        .remedy("use the cluster as it is, or start it with `mainstay up --bare`"))
}
