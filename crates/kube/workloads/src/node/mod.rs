//! Simulated nodes: Node objects that report Ready.
//!
//! The nodes are created once, when the controllers start. Nodes that other clients create are
//! simulated as well, unless they have the label `mainstay.dev/simulated: "false"`. Each node
//! renews its lease every ten seconds; its status is only written when it changes.

mod lifecycle;
mod simulated;

pub(crate) use lifecycle::start as start_lifecycle;

use crate::Options;
use crate::common::Context;
use mainstay_client::Backoff;
use mainstay_object::{Object, builtin};
use serde_json::json;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Creates the nodes and retries until that works.
pub(crate) fn start(context: &Context, options: Options) -> JoinHandle<()> {
    let context = context.with_user_agent("kubelet");
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
    let mut live = context.cluster.ensure(&builtin::NODE, &node(at)).await?;
    let now = context.clock.now_rfc3339();
    // Controllers that taint new nodes may write first.
    while let Some(status) = simulated::status(&live, &options.kubelet_version, &now) {
        match context.write_status(&builtin::NODE, &live, status).await {
            Err(error) if error.is_conflict() => {
                live = context.cluster.get(&builtin::NODE, None, live.name()).await?;
            }
            outcome => return outcome.map(drop),
        }
    }
    Ok(())
}

fn name(at: usize) -> String {
    format!("node-{}", at + 1)
}

fn node(at: usize) -> Object {
    let name = name(at);
    let mut node = Object::new(&builtin::NODE.gvk(), &name);
    node.set_label("kubernetes.io/hostname", name.as_str());
    for prefix in ["kubernetes.io", "beta.kubernetes.io"] {
        node.set_label(&format!("{prefix}/os"), "linux");
        node.set_label(&format!("{prefix}/arch"), "amd64");
    }
    // Operators select nodes by role, and the nodes of a small cluster have every role. `master` is
    // the old name of `control-plane`, which many manifests still select.
    for role in ["control-plane", "master", "worker"] {
        node.set_label(&format!("node-role.kubernetes.io/{role}"), "");
    }
    node.set_label("mainstay.dev/simulated", "true");
    node.set(&["spec", "podCIDR"], format!("10.244.{at}.0/24").into());
    node.set(&["spec", "podCIDRs"], json!([format!("10.244.{at}.0/24")]));
    node
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_numbered() {
        let node = node(0);
        assert_eq!(
            (node.name(), node.str(&["spec", "podCIDR"])),
            ("node-1", Some("10.244.0.0/24"))
        );
    }
}
