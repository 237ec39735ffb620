//! Expensive bodies: the administrator sends each, so that no limit for other users applies, while
//! another connection of the administrator must be served.

mod bodies;

use self::bodies::{Hostile, many};
use crate::report::Report;
use crate::server::{RESPONSE_TIMEOUT, Server};
use crate::wire::Response;
use anyhow::Context as _;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::time::timeout;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// The limit of processor time per body, in milliseconds.
const MAX_PROCESSOR_TIME: u64 = 4000;
/// The limit of peak memory per body, beyond the memory before it.
const MAX_MEMORY: u64 = 256 << 20;
/// The limit of a stored object's JSON, in bytes; that of etcd.
const MAX_STORED_SIZE: usize = 1_572_864;

/// Sends every body, and checks time, memory, size and the administrator's other requests.
pub(crate) async fn run(program: &Path, report: &mut Report) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let mut server = Server::start(program, folder.path(), &["--in-memory"]).await?;
    prepare(&server).await?;
    let bodies = bodies::hostile_requests()?;
    let row = report.row("input", "hostile bodies", 55);
    let before = server.memory("VmRSS")?;
    let (mut slowest, mut costliest, mut largest) = (Duration::ZERO, 0, 0);
    let mut answered = 0_usize;
    for hostile in &bodies {
        server.reset_peak()?;
        let (time, memory) = (server.processor_time()?, server.memory("VmRSS")?);
        let sent = send(&server, hostile);
        let mut sent = Box::pin(sent);
        let mut worst = Duration::ZERO;
        let outcome = loop {
            let begun = beginning();
            tokio::select! {
                outcome = &mut sent => break outcome,
                asked = server.ask("GET", "/api/v1/namespaces/default", None) => {
                    worst = worst.max(begun.elapsed());
                    match asked {
                        Ok(asked) if asked.status == 200 => answered += 1,
                        Ok(asked) => row.finding(format!("beside {}: {}", hostile.what, asked.text())),
                        Err(error) => row.finding(format!("beside {}: {error:#}", hostile.what)),
                    }
                }
            }
        };
        drop(sent);
        slowest = slowest.max(worst);
        let time = server.processor_time()?.saturating_sub(time);
        let memory = server.memory("VmHWM")?.saturating_sub(memory);
        costliest = costliest.max(time);
        largest = largest.max(memory);
        let what = &hostile.what;
        row.tried();
        match outcome {
            Ok(response) if response.status < 500 => {}
            Ok(response) => row.finding(format!("{what}: {} {}", response.status, response.text())),
            // A closed connection in the middle of a too large body is a valid rejection.
            Err(error) if hostile.body.len() > 3 << 20 => drop(error),
            Err(error) => row.finding(format!("{what}: {error:#}")),
        }
        if time > MAX_PROCESSOR_TIME {
            row.finding(format!("{what}: {time} ms of processor time"));
        }
        if memory > MAX_MEMORY {
            row.finding(format!("{what}: {} MB of memory", memory >> 20));
        }
        if worst > RESPONSE_TIMEOUT / 4 {
            row.finding(format!("{what}: the administrator waited {worst:?}"));
        }
        if let Err(error) = server.alive().await {
            row.finding(format!("after {what}: {error:#}"));
            drop(server);
            server = Server::start(program, folder.path(), &["--in-memory"]).await?;
            prepare(&server).await?;
        }
    }
    row.note(&format!(
        "at most {costliest} ms of processor time and {} MB; {answered} requests beside them, the slowest {} ms",
        largest >> 20,
        slowest.as_millis()
    ));
    row.done();
    growth(&server, report).await?;
    let row = report.row("input", "memory after hostile bodies", 1);
    let after = server.memory("VmRSS")?;
    row.check(after < before + (192 << 20), || {
        format!("{} MB before, {} MB after", before >> 20, after >> 20)
    });
    row.note(&format!("{} MB before, {} MB after", before >> 20, after >> 20));
    row.done();
    server.stop().await
}

#[expect(clippy::disallowed_methods, reason = "the attacker measures how long others wait")]
fn beginning() -> Instant {
    Instant::now()
}

async fn send(server: &Server, hostile: &Hostile) -> anyhow::Result<Response> {
    let mut connection = server.connect(&server.admin()).await?;
    let mut headers = vec![("content-type", hostile.media)];
    headers.extend(hostile.encoding.map(|encoding| ("content-encoding", encoding)));
    let asked = connection.request(hostile.method, &hostile.path, &headers, &hostile.body);
    timeout(RESPONSE_TIMEOUT * 3, asked).await.context("it hangs")?
}

async fn prepare(server: &Server) -> anyhow::Result<()> {
    for name in ["target", "grows"] {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}});
        server.must("POST", MAPS, Some(&map)).await?;
    }
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "target"},
        "spec": {
            "replicas": 0, "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}},
        },
    });
    server.must("POST", "/apis/apps/v1/namespaces/default/deployments", Some(&deployment)).await?;
    // Defaults that multiply: ten of ten of ten …
    let filled: Value =
        (0..3).fold(json!("x".repeat(200)), |inner, _| Value::Array(vec![inner; 20]));
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "bombs.attack.example.com"},
        "spec": {
            "group": "attack.example.com", "scope": "Namespaced",
            "names": {"plural": "bombs", "singular": "bomb", "kind": "Bomb", "listKind": "BombList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"items": {"type": "array", "items": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    "properties": {"filled": {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": true}, "default": filled}},
                }}},
            }}}],
        },
    });
    let response = server
        .ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", Some(&definition))
        .await?;
    anyhow::ensure!(response.status < 500, "a definition with large defaults: {}", response.text());
    for _ in 0..100 {
        let list = server.ask("GET", "/apis/attack.example.com/v1/bombs", None).await?;
        if list.status == 200 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// Objects that grow by many small changes stop at the size limit.
async fn growth(server: &Server, report: &mut Report) -> anyhow::Result<()> {
    let row = report.row("input", "objects grown by patches", 60);
    let piece = "x".repeat(200_000);
    let mut refused = 0;
    for at in 0..60 {
        let patch = if at % 2 == 0 {
            json!({"data": {format!("k{at}"): piece}})
        } else {
            json!({"metadata": {"ownerReferences": many(3000, |n| json!({"apiVersion": "v1", "kind": "Pod", "name": format!("{at}-{n}"), "uid": format!("{at}-{n}")}))}, "data": {format!("k{at}"): piece}})
        };
        let response = server.ask("PATCH", &format!("{MAPS}/grows"), Some(&patch)).await?;
        refused += usize::from(response.status == 413 || response.status == 422);
        row.tried();
        if response.status >= 500 {
            row.finding(format!("a patch: {} {}", response.status, response.text()));
        }
    }
    let stored = server.ask("GET", &format!("{MAPS}/grows"), None).await?;
    row.check(stored.body.len() <= MAX_STORED_SIZE && refused > 0, || {
        format!("{} bytes are stored, {refused} patches were refused", stored.body.len())
    });
    let deployment = "/apis/apps/v1/namespaces/default/deployments/target";
    for at in 0..30 {
        let patch = json!({"spec": {"template": {"metadata": {"annotations": {format!("k{at}"): "x".repeat(8000)}}, "spec": {"containers": [
            {"name": "c", "image": "x", "args": many(40, |n| json!(format!("{at}-{n}-{}", "y".repeat(2000))))},
        ]}}}});
        let response =
            server.ask("PATCH", &format!("{deployment}?fieldManager=m{at}"), Some(&patch)).await?;
        row.check(response.status < 500, || {
            format!("a patch: {} {}", response.status, response.text())
        });
    }
    let stored = server.ask("GET", deployment, None).await?;
    row.check(stored.body.len() <= MAX_STORED_SIZE, || {
        format!("a Deployment of {} bytes", stored.body.len())
    });
    row.done();
    Ok(())
}
