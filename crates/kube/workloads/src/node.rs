//! Simulated nodes: objects that say they are Ready.
//!
//! They are made once, when the controllers start. Nobody sends heartbeats, because nobody asks for
//! them here: a world at rest is not written to.

use crate::Options;
use crate::common::Context;
use mainstay_client::{Backoff, Patch};
use mainstay_object::{Object, known};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::task::JoinHandle;

const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// Makes the nodes, trying again until it works.
pub(crate) fn start(context: &Context, options: Options) -> JoinHandle<()> {
    let context = context.named("kubelet");
    tokio::spawn(async move {
        let stop = context.stop.clone();
        let make = async {
            for at in 0..options.nodes {
                let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(30));
                while let Err(error) = make(&context, &options, at).await {
                    let wait = backoff.fail();
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        ?wait,
                        "cannot make a simulated node, trying again"
                    );
                    tokio::time::sleep(wait).await;
                }
            }
        };
        stop.run_until_cancelled(make).await;
    })
}

async fn make(
    context: &Context,
    options: &Options,
    at: usize,
) -> Result<(), mainstay_client::Error> {
    let wanted = node(at);
    let live = context.cluster.ensure(&known::NODE, &wanted).await?;
    let status = status(&live, at, &options.kubelet_version, &context.clock.now_rfc3339());
    context.write_status(&known::NODE, &live, status).await?;
    // Kubernetes taints new nodes until somebody has seen them ready.
    let taints = live.array(&["spec", "taints"]);
    let kept: Vec<&Value> = taints.iter().filter(|taint| taint["key"] != NOT_READY).collect();
    if kept.len() < taints.len() {
        let patch = Patch::Merge(json!({"spec": {"taints": kept}}));
        context.cluster.patch(&known::NODE, None, wanted.name(), &patch).await?;
    }
    Ok(())
}

fn name(at: usize) -> String {
    format!("node-{}", at + 1)
}

/// The address of a node, from the range that Docker networks often have.
fn address(at: usize) -> String {
    let at = at + 2;
    format!("172.18.{}.{}", at / 250, at % 250)
}

fn node(at: usize) -> Object {
    let name = name(at);
    let mut node = Object::new(&known::NODE.gvk(), &name);
    node.set_label("kubernetes.io/hostname", name.as_str());
    for prefix in ["kubernetes.io", "beta.kubernetes.io"] {
        node.set_label(&format!("{prefix}/os"), "linux");
        node.set_label(&format!("{prefix}/arch"), "amd64");
    }
    // Operators choose nodes by role, and a small cluster's nodes have every role (`master` is the
    // old name of `control-plane`, which many manifests still select).
    for role in ["control-plane", "master", "worker"] {
        node.set_label(&format!("node-role.kubernetes.io/{role}"), "");
    }
    node.set_label("mainstay.dev/simulated", "true");
    node.set(&["spec", "podCIDR"], format!("10.244.{at}.0/24").into());
    node.set(&["spec", "podCIDRs"], json!([format!("10.244.{at}.0/24")]));
    node
}

fn status(live: &Object, at: usize, version: &str, now: &str) -> Value {
    let old = live.array(&["status", "conditions"]);
    let conditions: Vec<Value> = [
        (
            "MemoryPressure",
            "False",
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
        ),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ]
    .into_iter()
    .map(|(kind, status, reason, message)| {
        let known = old.iter().find(|old| old["type"] == kind && old["status"] == status);
        known.cloned().unwrap_or_else(|| {
            json!({
                "type": kind, "status": status, "reason": reason, "message": message,
                "lastHeartbeatTime": now, "lastTransitionTime": now,
            })
        })
    })
    .collect();
    let capacity = json!({
        "cpu": "64", "memory": "256Gi", "pods": "10000", "ephemeral-storage": "1Ti",
    });
    json!({
        "addresses": [
            {"type": "InternalIP", "address": address(at)},
            {"type": "Hostname", "address": name(at)},
        ],
        "allocatable": capacity.clone(),
        "capacity": capacity,
        "conditions": conditions,
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": "00000000-0000-0000-0000-000000000000",
            "containerRuntimeVersion": "simulated://1.0.0",
            "kernelVersion": "0.0.0",
            "kubeProxyVersion": version,
            "kubeletVersion": version,
            "machineID": name(at),
            "operatingSystem": "linux",
            "osImage": "Mainstay simulated node",
            "systemUUID": name(at),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_is_ready_already_keeps_its_times() {
        let mut node = node(0);
        node.set(&["status"], status(&node, 0, "v1.35.0", "2026-01-01T00:00:00Z"));
        assert_eq!(node.condition("Ready"), Some("True"));
        let again = status(&node, 0, "v1.35.0", "2027-01-01T00:00:00Z");
        assert_eq!(node.get(&["status"]), Some(&again));
        assert_eq!(address(0), "172.18.0.2");
        assert_eq!(address(300), "172.18.1.52");
    }
}
