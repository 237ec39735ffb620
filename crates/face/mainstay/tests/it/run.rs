//! `mainstay run` against an existing cluster.

use crate::harness::{Up, http_get, mainstay, tls_cluster, until, until_gone};
use crate::run_packages::{direct_client, token, token_of};
use mainstay_api::resources::{CATALOG_SOURCE, CLUSTER_CATALOG, OPERATOR_GROUP};
use mainstay_client::Cluster;
use mainstay_object::{Object, builtin};
use mainstay_testdata::skipped;
use mainstay_testkit::own_address;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::json;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// A running `mainstay run`; killed when dropped.
pub(crate) struct Run {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

fn command(kubeconfig: &Path, data: &Path) -> Command {
    let mut command = mainstay();
    command.args(["run", "--listen", "127.0.0.1:0", "--kubeconfig"]).arg(kubeconfig);
    command.arg("--data-dir").arg(data);
    command
}

impl Run {
    pub(crate) fn start(kubeconfig: &Path, data: &Path, arguments: &[&str]) -> Self {
        let mut command = command(kubeconfig, data);
        command.args(arguments);
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let stdout = BufReader::new(child.stdout.take().expect("its output is piped"));
        Self { child, stdout }
    }

    /// Its output up to a line with this beginning.
    pub(crate) fn until(&mut self, word: &str) -> String {
        let mut said = String::new();
        while !said.lines().last().is_some_and(|line| line.starts_with(word)) {
            let read = self.stdout.read_line(&mut said).expect("its output is text");
            assert!(read > 0, "it ended without a word of `{word}`:\n{said}");
        }
        said
    }

    /// Stops it; returns the rest of its output.
    pub(crate) fn stop(mut self) -> String {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill runs").success());
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).expect("its output is text");
        assert!(self.child.wait().expect("it ends").success());
        rest
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The error output of a refused run.
fn refusal(kubeconfig: &Path, data: &Path) -> String {
    let output = command(kubeconfig, data).output().expect("it runs");
    assert!(!output.status.success());
    String::from_utf8(output.stderr).expect("text")
}

pub(crate) fn catalog(folder: &Path) -> String {
    let folder = folder.join("catalog");
    std::fs::create_dir_all(&folder).expect("a folder");
    let text = "{schema: olm.package, name: kiwi, defaultChannel: stable}\n---\n{schema: olm.channel, package: kiwi, name: stable, entries: [{name: kiwi.v1.0.0}]}\n---\n{schema: olm.bundle, package: kiwi, name: kiwi.v1.0.0, image: example.com/kiwi:1, properties: [{type: olm.package, value: {packageName: kiwi, version: 1.0.0}}]}\n";
    std::fs::write(folder.join("catalog.yaml"), text).expect("a file");
    format!("fruit={}", folder.display())
}

async fn ready(cluster: &Cluster) {
    let state = |source: &Object| {
        let state = source.str(&["status", "connectionState", "lastObservedState"]);
        (source.name() == "fruit" && state == Some("READY")).then_some(())
    };
    until(cluster, &CATALOG_SOURCE, Some("olm"), state).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_process_leads_another_waits_and_takes_over_and_a_killed_one_resumes() {
    let folder = tempfile::tempdir().expect("a folder");
    let up = Up::start(folder.path(), &["--bare", "--in-memory"]);
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    let catalog = catalog(folder.path());
    let mut first = Run::start(&up.kubeconfig, &one, &["--catalog", &catalog]);
    let said = first.until("ready");
    let cluster = tls_cluster(&up.kubeconfig).await;
    ready(&cluster).await;
    let group = cluster.get(&OPERATOR_GROUP, Some("operators"), "global-operators").await;
    let group = group.expect("the group of those who serve all namespaces");
    // shows OG-04
    assert_eq!(group.get(&["spec", "targetNamespaces"]), None);
    let line = said.lines().find(|line| line.starts_with("health")).expect("where it is well");
    let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
    let address = address.expect("an address");
    assert_eq!(http_get(address, "/readyz"), (200, "ok".to_owned()));
    let metrics = http_get(address, "/metrics").1;
    assert!(metrics.contains("# TYPE catalog_source_count gauge\n"), "{metrics}");
    // shows MET-12
    assert!(metrics.contains("\ncatalog_source_count 1\n"), "{metrics}");

    let error = refusal(&up.kubeconfig, &one);
    assert!(error.contains("another process uses the data folder"), "{error}");
    assert!(error.contains("--data-dir DIR"), "{error}");

    let mut second = Run::start(&up.kubeconfig, &two, &["--catalog", &catalog]);
    let waits = second.until("waiting");
    assert!(waits.contains(" leads; this process takes over when it ends"), "{waits}");
    drop(first);
    // Other processes wait for the Lease's end; the restarted holder does not.
    let mut first = Run::start(&up.kubeconfig, &one, &["--catalog", &catalog]);
    first.until("ready");
    assert!(first.stop().ends_with("stopped\n"));
    second.until("ready");
    assert!(second.stop().ends_with("stopped\n"));
}

/// Applies what `mainstay manifests` prints with these arguments. Returns a kubeconfig of its
/// ServiceAccount.
async fn service_account_of_manifests(up: &Up, folder: &Path, arguments: &[&str]) -> PathBuf {
    let cluster = tls_cluster(&up.kubeconfig).await;
    let printed = mainstay().arg("manifests").args(arguments).output().expect("it runs");
    assert!(printed.status.success());
    let options = mainstay_yaml::Options::default();
    let documents = mainstay_yaml::documents(&printed.stdout, &options);
    let manifests: Vec<_> = documents.map(|document| document.expect("YAML").value).collect();
    let list = mainstay().args(["manifests", "-o", "json"]).args(arguments).output();
    let list: serde_json::Value =
        serde_json::from_slice(&list.expect("it runs").stdout).expect("JSON");
    assert_eq!(list["kind"], "List");
    assert_eq!(list["items"].as_array(), Some(&manifests));
    for manifest in manifests {
        let object = Object::from_value(manifest).expect("an object");
        let resource = match object.kind() {
            "Namespace" => builtin::NAMESPACE,
            "ServiceAccount" => builtin::SERVICE_ACCOUNT,
            "ClusterRole" => builtin::CLUSTER_ROLE,
            "ClusterRoleBinding" => builtin::CLUSTER_ROLE_BINDING,
            _ => builtin::CUSTOM_RESOURCE_DEFINITION,
        };
        cluster.apply(&resource, &object, "kubectl").await.expect("it is applied");
    }
    let token = token_of(&cluster, "olm", "mainstay").await;
    let text = std::fs::read_to_string(&up.kubeconfig).expect("the kubeconfig");
    let at = text.find("client-certificate-data").expect("the administrator's certificate");
    let line = text[..at].rfind('\n').expect("a line");
    let indent = " ".repeat(at - line - 1);
    // The rest of the file is about the user.
    let key = text.find("client-key-data").expect("the administrator's key");
    let rest = text[key..].find('\n').map_or("", |end| &text[key + end..]);
    let kubeconfig = folder.join("account");
    std::fs::write(&kubeconfig, format!("{}\n{indent}token: {token}{rest}", &text[..line]))
        .expect("a file");
    kubeconfig
}

#[tokio::test(flavor = "multi_thread")]
async fn run_works_as_the_service_account_of_the_printed_manifests() {
    let folder = tempfile::tempdir().expect("a folder");
    let up = Up::start(folder.path(), &["--bare", "--in-memory"]);
    let kubeconfig = service_account_of_manifests(&up, folder.path(), &[]).await;
    let catalog = catalog(folder.path());
    let mut run = Run::start(&kubeconfig, &folder.path().join("run"), &["--catalog", &catalog]);
    run.until("ready");
    ready(&tls_cluster(&up.kubeconfig).await).await;
    assert!(run.stop().ends_with("stopped\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn extensions_alone_run_as_their_service_account_and_serve_a_catalog_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let up = Up::start(folder.path(), &["--bare", "--in-memory"]);
    let only = ["--controllers", "extensions"];
    let kubeconfig = service_account_of_manifests(&up, folder.path(), &only).await;
    let catalog = catalog(folder.path());
    let arguments = [&only[..], &["--catalog", &catalog, "--packages-address", "192.0.2.7"]];
    let arguments = [&arguments.concat()[..], &["--catalogs-listen", "127.0.0.1:0"]].concat();
    let mut run = Run::start(&kubeconfig, &folder.path().join("run"), &arguments);
    let said = run.until("ready");
    assert!(!said.contains("packages"), "{said}");
    let cluster = tls_cluster(&up.kubeconfig).await;
    let is_serving = |catalog: &Object| {
        (catalog.name() == "fruit" && catalog.condition("Serving") == Some("True")).then_some(())
    };
    until(&cluster, &CLUSTER_CATALOG, None, is_serving).await;
    // The subsystem's Service leads to this process; nothing of OLM classic is on the cluster.
    let namespace = Some("olmv1-system");
    let slice = until(&cluster, &builtin::ENDPOINT_SLICE, namespace, is_catalog_server).await;
    assert_eq!(slice.array(&["endpoints"])[0]["addresses"][0], "192.0.2.7");
    let crd = "operatorgroups.operators.coreos.com";
    let crd = cluster.find(&builtin::CUSTOM_RESOURCE_DEFINITION, None, crd).await;
    assert_eq!(crd.expect("readable"), None);
    assert!(run.stop().ends_with("stopped\n"));
}

/// An EndpointSlice that leads to a catalog server.
fn is_catalog_server(slice: &Object) -> Option<Object> {
    (slice.label("kubernetes.io/service-name") == Some("catalogd-service")).then(|| slice.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_process_serves_the_catalogs_of_the_leader_with_the_same_ca() {
    let Some(host) = own_address() else {
        return skipped("replicas of `run`: this machine has no address but loopback");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let up = Up::start(folder.path(), &["--bare", "--in-memory"]);
    let (catalog, host) = (catalog(folder.path()), host.to_string());
    let arguments =
        ["--controllers", "extensions", "--catalog", &catalog, "--packages-address", &host];
    let mut leader = Run::start(&up.kubeconfig, &folder.path().join("one"), &arguments);
    leader.until("ready");
    let cluster = tls_cluster(&up.kubeconfig).await;
    let (slices, namespace) = (&builtin::ENDPOINT_SLICE, Some("olmv1-system"));
    let first = until(&cluster, slices, namespace, is_catalog_server).await;
    let is_serving =
        |catalog: &Object| catalog.condition("Serving").filter(|&is| is == "True").map(drop);
    until(&cluster, &CLUSTER_CATALOG, None, is_serving).await;
    let mut replica = Run::start(&up.kubeconfig, &folder.path().join("two"), &arguments);
    replica.until("waiting");
    let other =
        |slice: &Object| is_catalog_server(slice).filter(|slice| slice.name() != first.name());
    let second = until(&cluster, slices, namespace, other).await;

    let ca = cluster.get(&builtin::CONFIG_MAP, namespace, "catalogd-ca").await.expect("found");
    let ca = ca.str(&["data", "ca.crt"]).expect("the CA");
    let ca = CertificateDer::from_pem_slice(ca.as_bytes()).expect("PEM");
    for slice in [&first, &second] {
        let port = slice.array(&["ports"])[0]["port"].as_u64().expect("a port");
        let url = format!("https://{host}:{port}").parse().expect("a URL");
        let mut config = kube::Config::new(url);
        config.root_cert = Some(vec![ca.to_vec()]);
        let server = Cluster::new(kube::Client::try_from(config).expect("a client"));
        let package = server.get_raw("/catalogs/fruit/api/v1/metas?schema=olm.package").await;
        assert_eq!(package.expect("it is served")["name"], "kiwi", "{}", slice.name());
    }
    assert!(replica.stop().ends_with("stopped\n"));
    until_gone(&cluster, slices, "olmv1-system", second.name()).await;
    assert!(leader.stop().ends_with("stopped\n"));
}

#[test]
fn controller_list_that_selects_nothing_is_refused_with_the_known_names() {
    for (list, why) in
        [("clasic", "there is no subsystem `clasic`"), ("*,-*", "the list selects no subsystem")]
    {
        let output =
            mainstay().args(["manifests", "--controllers", list]).output().expect("it runs");
        assert!(!output.status.success());
        let error = String::from_utf8(output.stderr).expect("text");
        assert!(
            error.contains(why) && error.contains("known subsystems: classic, extensions"),
            "{error}"
        );
        assert!(error.contains("`-NAME` to exclude one"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn run_refuses_to_work_beside_olm() {
    let folder = tempfile::tempdir().expect("a folder");
    let up = Up::start(folder.path(), &["--bare", "--in-memory"]);
    let cluster = tls_cluster(&up.kubeconfig).await;
    for (name, subsystem) in
        [("olm-operator", "classic"), ("catalogd-controller-manager", "extensions")]
    {
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
            "spec": {
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {"containers": [{"name": "a", "image": "a"}]},
                },
            },
        });
        let deployment = Object::from_value(deployment).expect("an object");
        cluster.create(&builtin::DEPLOYMENT, &deployment).await.expect("created");
        let error = refusal(&up.kubeconfig, &folder.path().join("data"));
        for words in [
            "Operator Lifecycle Manager runs on this cluster already",
            &format!("kubectl --namespace default scale deployment {name} --replicas=0"),
            &format!("--controllers '*,-{subsystem}'"),
        ] {
            assert!(error.contains(words), "{error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn run_refuses_to_work_beside_embedded_controllers() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let arguments = ["--data-dir", data.to_str().expect("text")];
    let up = Up::start(folder.path(), &arguments);
    let error = refusal(&up.kubeconfig, &folder.path().join("run"));
    for words in [
        "the controllers of this cluster already run in the process of its API",
        "Lease olm/mainstay is held by `mainstay up`",
        "start it with `mainstay up --bare`",
    ] {
        assert!(error.contains(words), "{error}");
    }
    drop(up);
    // The same cluster without the controllers.
    let up = Up::start(folder.path(), &[&arguments[..], &["--bare"]].concat());
    let mut run = Run::start(&up.kubeconfig, &folder.path().join("run"), &[]);
    run.until("ready");
}

#[test]
fn missing_cluster_is_reported_with_a_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = refusal(&folder.path().join("none"), &folder.path().join("data"));
    assert!(error.contains("cannot be used"), "{error}");
    assert!(error.contains("--kubeconfig FILE"), "{error}");
}

#[test]
fn unreachable_cluster_is_not_reported_as_missing_permissions() {
    let folder = tempfile::tempdir().expect("a folder");
    // The port of a closed listener.
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "clusters": [{"name": "a", "cluster": {"server": format!("http://{}", port.expect("a port"))}}],
        "users": [{"name": "a", "user": {}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    });
    let file = folder.path().join("kubeconfig");
    std::fs::write(&file, kubeconfig.to_string()).expect("a file");
    let error = refusal(&file, &folder.path().join("data"));
    assert!(error.contains("cannot reach the Kubernetes API"), "{error}");
    assert!(error.contains("check that the cluster runs"), "{error}");
    assert!(!error.contains("cluster-admin"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn decisions_are_log_lines_and_flags_without_effect_are_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let up = Up::start(folder.path(), &["--bare", "--in-memory"]);
    let log = folder.path().join("log");
    let mut command = command(&up.kubeconfig, &folder.path().join("data"));
    let catalog = catalog(folder.path());
    command.args(["--catalog", &catalog, "--log-format", "json", "--interval", "15m"]);
    command.stderr(std::fs::File::create(&log).expect("a file"));
    let mut run = Run::spawn(command);
    let said = run.until("ready");
    assert!(said.contains("--interval has no effect: Mainstay watches"), "{said}");
    ready(&tls_cluster(&up.kubeconfig).await).await;
    run.stop();
    let log = std::fs::read_to_string(&log).expect("a text");
    let lines: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let told = |line: &&serde_json::Value| {
        line["kind"] == "CatalogSource"
            && line["object"] == "olm/fruit"
            && line["decision"] == "READY"
    };
    let told = lines.iter().find(told).unwrap_or_else(|| panic!("{log}"));
    assert_eq!((&told["level"], &told["target"]), (&json!("info"), &json!("mainstay::decision")));
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_over_tls_are_for_permitted_users() {
    let folder = tempfile::tempdir().expect("a folder");
    let up = Up::start(folder.path(), &["--bare", "--in-memory"]);
    let self_signed =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let (certificate, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
    std::fs::write(&certificate, self_signed.cert.pem()).expect("a file");
    std::fs::write(&key, self_signed.signing_key.serialize_pem()).expect("a file");
    let mut command = command(&up.kubeconfig, &folder.path().join("data"));
    command.arg("--tls-cert").arg(&certificate).arg("--tls-key").arg(&key);
    let mut run = Run::spawn(command);
    let said = run.until("ready");
    let line = said.lines().find(|line| line.starts_with("health")).expect("where it is well");
    let address = line.split("https://").nth(1).and_then(|rest| rest.split('/').next());
    let address = address.expect("an address");
    let cluster = tls_cluster(&up.kubeconfig).await;
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "scraper"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "scraper", "namespace": "default"}],
    });
    let role = Object::from_value(role).expect("an object");
    cluster.create(&builtin::CLUSTER_ROLE_BINDING, &role).await.expect("it is made");
    let token = token(&cluster, "scraper").await;
    let ask = |path: &'static str, token: Option<&str>| {
        let asked = direct_client(address, token).client().clone();
        async move {
            let request = http::Request::get(path).body(Vec::new()).expect("a request");
            asked.request_text(request).await.map_err(|error| error.to_string())
        }
    };
    assert_eq!(ask("/readyz", None).await.expect("open to all"), "ok");
    // shows OLMV1-54
    assert!(ask("/metrics", None).await.is_err());
    // shows OLMV1-54
    assert!(ask("/metrics", Some(&token)).await.expect("counts").contains("csv_count"));
    run.stop();
}
