//! Paths that different parts of a server might interpret differently.

use super::{Client, shows_canary};
use crate::report::Report;
use crate::server::{ATTACKER_NAMESPACE, Server, VICTIM_NAMESPACE};
use crate::wire::Identity;

pub(super) async fn run(
    server: &Server,
    attacker: &Identity,
    report: &mut Report,
) -> anyhow::Result<()> {
    let row = report.row("access", "path tricks of a namespace's admin", 130);
    let mut client = Client::new(server, attacker);
    for path in tricks() {
        for method in ["GET", "DELETE"] {
            // A request may succeed in the attacker's own namespace; only the victim's counts.
            let answered = client.request(method, &path, &[], b"").await;
            let fine = answered.as_ref().map_or(true, |response| !shows_canary(&response.body));
            row.check(fine, || format!("{method} {path}"));
        }
    }
    let kept = server
        .ask("GET", &format!("/api/v1/namespaces/{VICTIM_NAMESPACE}/secrets/canary"), None)
        .await?;
    row.check(kept.status == 200, || format!("the Secret is gone: {}", kept.text()));
    row.done();
    Ok(())
}

fn tricks() -> Vec<String> {
    let target = format!("namespaces/{VICTIM_NAMESPACE}/secrets/canary");
    let own = format!("/api/v1/namespaces/{ATTACKER_NAMESPACE}");
    let mut out = vec![
        format!("/api/v1/{target}"),
        format!("/api/v1/{target}/"),
        format!("//api/v1/{target}"),
        format!("/api//v1/{target}"),
        format!("/api/v1//{target}"),
        format!("/./api/v1/{target}"),
        format!("/api/./v1/{target}"),
        format!("/api/v1/{target}?namespace={ATTACKER_NAMESPACE}"),
        format!("/api/v1/{target};namespace={ATTACKER_NAMESPACE}"),
        format!("/api/v1/{target}#/{ATTACKER_NAMESPACE}"),
        format!("/API/V1/{target}"),
        format!("/api/v1/{}", target.to_uppercase()),
        format!("https://localhost/api/v1/{target}"),
        format!("http://{ATTACKER_NAMESPACE}/api/v1/{target}"),
        format!("/healthz/../api/v1/{target}"),
        format!("/version/..%2fapi/v1/{target}"),
        format!("/openapi/v3/../../api/v1/{target}"),
        format!("/apis/apps/v1/../../../api/v1/{target}"),
        "/api/v1/secrets".to_owned(),
        "/api/v1/secrets?fieldSelector=metadata.namespace=attacker".to_owned(),
        "/api/v1/secrets?fieldSelector=metadata.name=canary&watch=1&timeoutSeconds=1".to_owned(),
        format!("/api/v1/watch/{target}?timeoutSeconds=1"),
        format!("/api/v1/watch/namespaces/{VICTIM_NAMESPACE}/secrets?timeoutSeconds=1"),
        "/api/v1/watch/secrets?timeoutSeconds=1".to_owned(),
        format!("/api/v1/proxy/namespaces/{VICTIM_NAMESPACE}/secrets/canary"),
        format!("/api/v1/namespaces/{VICTIM_NAMESPACE}/secrets/canary/status"),
        format!("/api/v1/namespaces/{VICTIM_NAMESPACE}/secrets?limit=1"),
        format!("/api/v1/namespaces/{VICTIM_NAMESPACE}/secrets?resourceVersion=0"),
        format!("/api/v1/namespaces/{VICTIM_NAMESPACE}?pretty=true"),
        format!("/api/v2/{target}"),
        format!("/api/v1/namespaces/{VICTIM_NAMESPACE}/secrets/canary?pretty=true&dryRun=All"),
    ];
    // Path traversal from one namespace to another.
    let dots = [
        "..",
        "%2e%2e",
        "%2E%2e",
        ".%2e",
        "%2e.",
        "%252e%252e",
        "..;",
        "..%00",
        "%c0%ae%c0%ae",
        "..%5c",
        "%2e%2e%2f",
        "...",
        ". .",
        "..%20",
        "..\u{2025}",
    ];
    let slashes = ["/", "%2f", "%2F", "%5c", "\\", "//", "/./", ";/", "%252f", "%c0%af"];
    for dot in dots {
        for slash in slashes {
            // Bytes that are invalid in a request head are tried as escapes only.
            if (dot.to_owned() + slash).bytes().any(|byte| byte <= b' ' || byte > 126) {
                continue;
            }
            out.push(format!(
                "{own}{slash}{dot}{slash}{VICTIM_NAMESPACE}{slash}secrets{slash}canary"
            ));
        }
        if dot.bytes().all(|byte| byte > b' ' && byte < 127) {
            out.push(format!("{own}/secrets/{dot}/{dot}/{VICTIM_NAMESPACE}/secrets/canary"));
            out.push(format!(
                "{own}/pods/x/proxy/{dot}/{dot}/{dot}/{dot}/{VICTIM_NAMESPACE}/secrets/canary"
            ));
            out.push(format!("{own}/services/x/proxy/{dot}/{dot}/secrets/canary"));
        }
    }
    for odd in ["%00", "%0a", "%0d%0a", "%20", "%09", "%7f", "%ff", "+", "*", "@", ":", ",", "%25"]
    {
        out.push(format!("/api/v1/namespaces/{VICTIM_NAMESPACE}{odd}/secrets/canary"));
        out.push(format!("/api/v1/namespaces/{VICTIM_NAMESPACE}/secrets{odd}/canary"));
        out.push(format!("/api/v1/namespaces/{VICTIM_NAMESPACE}/secrets/canary{odd}"));
        out.push(format!(
            "/api/v1/namespaces/{ATTACKER_NAMESPACE}{odd}{VICTIM_NAMESPACE}/secrets/canary"
        ));
    }
    out
}
