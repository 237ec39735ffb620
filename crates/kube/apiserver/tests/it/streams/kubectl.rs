//! The real kubectl on pods with handlers, over the TLS port.

use super::client::Shell;
use super::{pod, running, state};
use crate::harness::Api;
use mainstay_apiserver::pki::Pki;
use mainstay_clock::Clock;
use mainstay_store::{Options, Store};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use tokio::net::TcpListener;

/// Whether the search path has a kubectl that asks for WebSocket first.
fn has_kubectl() -> bool {
    let version = Command::new("kubectl").args(["version", "--client", "-o", "json"]).output();
    let minor = version.ok().and_then(|output| {
        let version: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
        version["clientVersion"]["minor"].as_str()?.trim_end_matches('+').parse::<u32>().ok()
    });
    minor.is_some_and(|minor| minor >= 32)
}

/// Exit code, output and error of a call.
async fn call(
    kubeconfig: PathBuf,
    arguments: &[&str],
    input: Option<PathBuf>,
) -> (i32, String, String) {
    let mut command = Command::new("kubectl");
    command.arg("--kubeconfig").arg(kubeconfig).args(arguments);
    command.stdin(input.map_or_else(Stdio::null, |it| std::fs::File::open(it).unwrap().into()));
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_runs_commands_in_pods_with_handlers() {
    if !has_kubectl() {
        eprintln!(
            "skipped: kubectl exec on pods with handlers: no kubectl of 1.32 or newer on PATH"
        );
        return;
    }
    let clock = Clock::system();
    let pki = Pki::ephemeral(&clock, &[]).unwrap();
    let authenticator = pki.authenticator(clock).unwrap();
    let api = Api::with(Store::in_memory(Options::new(clock)), clock, authenticator).await;
    for name in ["p", "sim"] {
        pod(&api, name, &["c"], true).await;
        state(&api, name, running()).await;
    }
    api.server.put_native_pod("default", "p", Arc::new(Shell));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (server, stop) = (api.server.clone(), api.stop.clone());
    let tls = pki.server_config().unwrap();
    let port = tokio::spawn(async move { server.serve(listener, tls, stop).await });
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    pki.write_kubeconfig(&file("kubeconfig"), &format!("https://{address}"), "test").unwrap();
    let input = "line\n".repeat(50_000);
    std::fs::write(file("input"), &input).unwrap();

    let run = |arguments: &'static [&str], input| call(file("kubeconfig"), arguments, input);
    let said = run(&["exec", "p", "--", "say", "a b"], None).await;
    assert_eq!(said, (0, "a b".to_owned(), "done".to_owned()));
    let (code, _, error) = run(&["exec", "p", "--", "exit", "3"], None).await;
    assert_eq!((code, error.trim()), (3, "command terminated with exit code 3"));
    let (code, output, error) = run(&["exec", "-i", "p", "--", "cat"], Some(file("input"))).await;
    assert_eq!((code, output == input), (0, true), "{error}");
    for (arguments, what) in [
        (&["exec", "sim", "--", "ls"][..], "exec is not supported: the nodes of this cluster"),
        (&["logs", "sim"], "log is not supported: the nodes of this cluster"),
        (&["port-forward", "sim", "18080:80"], "portforward is not supported: the nodes of this"),
        (&["port-forward", "p", "18080:80"], "only logs, exec and attach of this pod are"),
        (&["exec", "p", "--", "none"], "no such command"),
    ] {
        let (code, _, error) = run(arguments, None).await;
        assert_eq!((code, error.contains(what)), (1, true), "{arguments:?}: {error}");
    }
    api.stop.cancel();
    port.await.unwrap();
}
