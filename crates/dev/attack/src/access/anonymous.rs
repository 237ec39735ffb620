//! Anonymous requests for everything in discovery.

use super::{Client, shows_canary};
use crate::report::Report;
use crate::server::{Server, VICTIM_NAMESPACE};
use crate::wire::Identity;
use serde_json::Value;

/// Paths that are public by the bootstrap role `system:public-info-viewer` and for health checks.
const PUBLIC: [&str; 4] = ["/healthz", "/livez", "/readyz", "/version"];
const OTHERS: [&str; 22] = [
    "/",
    "/api",
    "/apis",
    "/api/v1",
    "/apis/apps/v1",
    "/openapi/v2",
    "/openapi/v3",
    "/metrics",
    "/logs",
    "/logs/kubelet.log",
    "/debug/pprof",
    "/debug/pprof/profile",
    "/debug/flags/v",
    "/configz",
    "/.well-known/openid-configuration",
    "/openid/v1/jwks",
    "/swagger.json",
    "/swaggerapi",
    "/ui",
    "/metrics/slis",
    "/statusz",
    "/flagz",
];

pub(super) async fn run(server: &Server, report: &mut Report) -> anyhow::Result<()> {
    let mut paths = Vec::new();
    for (base, list) in groups(server).await? {
        for resource in list["resources"].as_array().into_iter().flatten() {
            let name = resource["name"].as_str().unwrap_or_default();
            let place = if resource["namespaced"] == true {
                format!("{base}/namespaces/{VICTIM_NAMESPACE}")
            } else {
                base.clone()
            };
            let (name, sub) =
                name.split_once('/').map_or((name, None), |(name, sub)| (name, Some(sub)));
            paths.push(match sub {
                Some(sub) => format!("{place}/{name}/canary/{sub}"),
                None => format!("{place}/{name}"),
            });
            if sub.is_none() {
                paths.push(format!("{place}/{name}/canary"));
                paths.push(format!("{place}/{name}?watch=true"));
                paths.push(format!("{base}/{name}"));
            }
        }
    }
    paths.extend(OTHERS.map(str::to_owned));
    let row = report.row("access", "anonymous requests", 1386);
    let mut client = Client::new(server, &Identity::Anonymous);
    for path in &paths {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let media =
                if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
            let body: &[u8] = if matches!(method, "GET" | "DELETE") { b"" } else { b"{}" };
            let response = client.request(method, path, &[("content-type", media)], body).await?;
            row.check(response.is_refusal(), || {
                format!("{method} {path}: {} {}", response.status, response.text())
            });
        }
    }
    for path in PUBLIC {
        let response = client.request("GET", path, &[], b"").await?;
        row.check(response.status == 200 && !shows_canary(&response.body), || {
            format!("GET {path}: {}", response.status)
        });
    }
    row.note(&format!("{} paths of discovery", paths.len()));
    row.done();
    Ok(())
}

/// All groups and versions with their lists of resources.
async fn groups(server: &Server) -> anyhow::Result<Vec<(String, Value)>> {
    let mut bases = vec!["/api/v1".to_owned()];
    let found = server.must("GET", "/apis", None).await?;
    for group in found["groups"].as_array().into_iter().flatten() {
        for version in group["versions"].as_array().into_iter().flatten() {
            bases.push(format!("/apis/{}", version["groupVersion"].as_str().unwrap_or_default()));
        }
    }
    let mut out = Vec::new();
    for base in bases {
        let list = server.must("GET", &base, None).await?;
        out.push((base, list));
    }
    Ok(out)
}
