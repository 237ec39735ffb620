//! Start, refusal, stop and restart of `mainstay up`.

use crate::harness::{Kubectl, Up, mainstay};
use std::net::TcpListener;
use std::path::Path;

/// The error output of a refused `up`, which must exit with a non-zero status.
fn refusal(arguments: &[&str]) -> String {
    let output = mainstay().arg("up").args(arguments).output().expect("mainstay runs");
    assert!(!output.status.success(), "`up {}` should have failed", arguments.join(" "));
    String::from_utf8(output.stderr).expect("its error is text")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary paths are text")
}

#[test]
fn missing_catalog_is_refused_before_anything_changes() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let error = refusal(&["--data-dir", text(&data), "--catalog", "mine=/no/such/folder"]);
    assert!(error.contains("/no/such/folder: the catalog folder cannot be opened"), "{error}");
    assert!(!data.exists());
}

#[test]
fn busy_port_is_refused_before_anything_changes() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let busy = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = busy.local_addr().expect("its address").to_string();
    let error = refusal(&["--data-dir", text(&data), "--listen", &address]);
    assert!(error.contains(&address) && error.contains("--listen"), "{error}");
    assert!(!data.exists());
}

#[test]
fn second_up_on_a_data_folder_is_refused_and_names_the_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let first = Up::start(folder.path(), &["--data-dir", text(&data)]);
    let error = refusal(&["--data-dir", text(&data), "--listen", "127.0.0.1:0"]);
    assert!(error.contains(&first.pid().to_string()), "{error}");
    let (well, _) = first.stop("TERM");
    assert!(well, "the first one was disturbed");
}

#[test]
fn restart_keeps_all_objects() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let first = Up::start(folder.path(), &["--data-dir", text(&data)]);
    let Some(kubectl) = Kubectl::find(&first.kubeconfig, "starting again") else { return };
    let object =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept, namespace: default}\ndata: {a: b}";
    kubectl.run(&["apply", "-f", "-"], object);
    let before = kubectl.run(&["get", "cm", "kept", "-o", "json"], "");
    let (well, _) = first.stop("INT");
    assert!(well, "SIGINT ends it well");
    let second = Up::start(folder.path(), &["--data-dir", text(&data)]);
    let kubectl = Kubectl::find(&second.kubeconfig, "starting again").expect("it was there before");
    assert_eq!(kubectl.run(&["get", "cm", "kept", "-o", "json"], ""), before);
}

#[test]
fn nodes_of_the_data_folder_are_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let first = Up::start(folder.path(), &["--data-dir", text(&data), "--nodes", "3"]);
    assert!(first.output.contains("workloads   3 simulated nodes"), "{}", first.output);
    assert!(first.stop("TERM").0);
    let second = Up::start(folder.path(), &["--data-dir", text(&data)]);
    assert!(second.output.contains("workloads   3 simulated nodes"), "{}", second.output);
}

#[test]
fn damaged_store_is_reported_and_repair_keeps_the_rest() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let mut first = Up::start(folder.path(), &["--data-dir", text(&data)]);
    // Killed: the writes are in the journal only.
    first.kill();
    let store = data.join("store");
    let journal = std::fs::read_dir(&store)
        .expect("the store's folder")
        .map(|entry| entry.expect("an entry").path())
        .find(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("journal-"))
        })
        .expect("a journal");
    let mut bytes = std::fs::read(&journal).expect("the journal");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    std::fs::write(&journal, bytes).expect("written");

    let error = refusal(&["--data-dir", text(&data), "--listen", "127.0.0.1:0"]);
    assert!(error.contains(text(&journal)) && error.contains("at byte"), "{error}");
    assert!(error.contains("mainstay up --repair"), "{error}");
    let again = Up::start(folder.path(), &["--data-dir", text(&data), "--repair"]);
    let (well, _) = again.stop("TERM");
    assert!(well);
    let kept = std::fs::read_dir(&store).expect("the store's folder");
    assert!(
        kept.map(|entry| entry.expect("an entry").file_name())
            .any(|name| name.to_string_lossy().starts_with("damaged-")),
        "the files as they were are kept"
    );
}

#[test]
fn up_stops_with_open_watches() {
    let folder = tempfile::tempdir().expect("a folder");
    let up = Up::start(folder.path(), &["--in-memory"]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let cluster = runtime.block_on(crate::harness::tls_cluster(&up.kubeconfig));
    let selection = mainstay_client::Selection::all(mainstay_object::builtin::POD);
    let mut watch = runtime.block_on(cluster.watch(&selection, "")).expect("a watch");
    let (well, said) = up.stop("TERM");
    assert!(well && said.ends_with("stopped\n"), "{said}");
    // The watch ends instead of hanging.
    while let Some(Ok(_)) = runtime.block_on(watch.next()) {}
}

#[test]
fn demo_runs_its_story_to_the_end() {
    let output = mainstay().args(["demo", "--exit"]).output().expect("mainstay runs");
    let said = String::from_utf8(output.stdout).expect("its story is text");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{error}");
    assert!(said.contains("A Subscription that cannot be resolved"), "{said}");
    assert!(!said.contains('✗'), "{said}");
}
