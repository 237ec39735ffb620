//! Every package of a published catalog, with nothing but `kubectl apply`.
//!
//! The expected outcome of each package follows from the catalog's text. A head that needs other
//! packages is refused with an error that names them. Every other head reaches `Succeeded`, and then
//! accounts, rules and pod templates on the cluster are those of its ClusterServiceVersion.

use crate::harness::{Kubectl, Up, tls_cluster, until};
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION, SUBSCRIPTION};
use mainstay_catalog::{Bundle, Catalog, LoadOptions, Package};
use mainstay_client::{Cluster, ObjectList};
use mainstay_object::builtin::{CLUSTER_ROLE, DEPLOYMENT, NAMESPACE, ROLE, SERVICE_ACCOUNT};
use mainstay_object::{Object, Resource};
use mainstay_testdata::{is_deep, ran, sample, unpack};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

const ARCHIVE: &str = "catalog-certified-v4.14";

/// The kinds that bundles of this catalog use and no bundle provides: those of the Prometheus operator.
const MONITORS: [(&str, &str); 2] =
    [("ServiceMonitor", "servicemonitors"), ("PrometheusRule", "prometheusrules")];

fn monitor(kind: &str, plural: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.monitoring.coreos.com")},
        "spec": {
            "group": "monitoring.coreos.com", "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    })
}

/// Applies manifests with kubectl if it is installed, through the API otherwise.
struct Applier {
    kubectl: Option<Kubectl>,
    cluster: Cluster,
}

impl Applier {
    async fn apply(&self, resource: &Resource, value: Value) {
        if let Some(kubectl) = &self.kubectl {
            let text = value.to_string();
            tokio::task::block_in_place(|| kubectl.run(&["apply", "-f", "-"], &text));
        } else {
            let object = Object::from_value(value).expect("an object");
            self.cluster.apply(resource, &object, "test").await.expect("applied");
        }
    }

    /// Creates a namespace with a fitting OperatorGroup and a Subscription.
    async fn subscribe(
        &self,
        namespace: &str,
        package: &str,
        channel: &str,
        start: Option<&str>,
        csv: &Object,
    ) {
        self.apply(
            &NAMESPACE,
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        )
        .await;
        let mut group = json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
            "metadata": {"name": "group", "namespace": namespace}, "spec": {},
        });
        if supports(csv, "OwnNamespace") {
            group["spec"]["targetNamespaces"] = json!([namespace]);
        }
        self.apply(&mainstay_api::resources::OPERATOR_GROUP, group).await;
        let mut subscription = json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "metadata": {"name": package, "namespace": namespace},
            "spec": {"name": package, "channel": channel, "source": "certified", "sourceNamespace": "olm"},
        });
        if let Some(start) = start {
            subscription["spec"]["startingCSV"] = start.into();
        }
        self.apply(&SUBSCRIPTION, subscription).await;
    }
}

fn supports(csv: &Object, mode: &str) -> bool {
    csv.array(&["spec", "installModes"])
        .iter()
        .any(|install_mode| install_mode["type"] == mode && install_mode["supported"] == true)
}

/// The packages and APIs that the error must name if the bundle cannot be installed; empty if it can.
fn expected_obstacles(bundle: &Bundle) -> Vec<String> {
    let mut words = Vec::new();
    words.extend(bundle.required_packages().map(|need| need.package_name));
    words.extend(bundle.required_apis().map(|need| need.kind));
    words
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The outcome of a Subscription: the succeeded CSV, or why not.
async fn outcome(
    cluster: &Cluster,
    namespace: &str,
    package: &str,
    wanted: &str,
) -> Result<(), String> {
    let refused = until(cluster, &SUBSCRIPTION, Some(namespace), |object| {
        if object.name() != package {
            return None;
        }
        if object.str(&["status", "installedCSV"]) == Some(wanted) {
            return Some(None);
        }
        let conditions = object.array(&["status", "conditions"]).iter();
        let failed = ["ResolutionFailed", "InstallPlanFailed"];
        conditions
            .filter(|condition| {
                condition["status"] == "True" && failed.contains(&text(condition, "type").as_str())
            })
            .map(|condition| Some(text(condition, "message")))
            .next()
    })
    .await;
    if let Some(message) = refused {
        return Err(message);
    }
    until(cluster, &CLUSTER_SERVICE_VERSION, Some(namespace), |object| {
        (object.name() == wanted && object.str(&["status", "phase"]) == Some("Succeeded"))
            .then_some(())
    })
    .await;
    Ok(())
}

/// Starts a cluster in memory that serves the unpacked catalog and has the APIs that no bundle
/// provides.
async fn serve(data: &Path) -> (Arc<Catalog>, Cluster, Applier, (Up, tempfile::TempDir)) {
    let content = data.join("v4.14");
    let folder = tempfile::tempdir().expect("a folder");
    let catalog = Catalog::load(&content, &LoadOptions::default()).expect("the catalog is sound");
    let argument = format!("certified={}", content.display());
    let up = Up::start(folder.path(), &["--in-memory", "--catalog", &argument]);
    let cluster = tls_cluster(&up.kubeconfig).await;
    let kubectl = Kubectl::find(&up.kubeconfig, "applying with kubectl");
    let hands = Applier { kubectl, cluster: cluster.clone() };
    for (kind, plural) in MONITORS {
        let definition = &mainstay_object::builtin::CUSTOM_RESOURCE_DEFINITION;
        hands.apply(definition, monitor(kind, plural)).await;
    }
    (catalog, cluster, hands, (up, folder))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_package_of_a_published_catalog_succeeds_or_reports_why_not() {
    let Some(data) = unpack(ARCHIVE, "the published catalog") else { return };
    let (catalog, cluster, hands, _up) = serve(data.path()).await;

    let (mut vendors, mut own_only) = (BTreeSet::new(), 0);
    let (mut succeeded, mut refused) = (0, 0);
    let packages = sample("packages of a published catalog", catalog.packages().collect(), 4);
    for package in packages {
        let (bundle, csv) = head(package, &package.default_channel);
        let namespace = format!("p-{}", package.name);
        hands.subscribe(&namespace, &package.name, &package.default_channel, None, &csv).await;
        let outcome = outcome(&cluster, &namespace, &package.name, &bundle.name).await;
        let expected_obstacles = expected_obstacles(&bundle);
        match outcome {
            Ok(()) => {
                assert_eq!(
                    expected_obstacles,
                    Vec::<String>::new(),
                    "{} should have been refused",
                    bundle.name
                );
                assert_objects_match_csv(&cluster, &namespace, &csv).await;
                succeeded += 1;
                vendors
                    .insert(csv.str(&["spec", "provider", "name"]).unwrap_or_default().to_owned());
                let others = ["SingleNamespace", "MultiNamespace", "AllNamespaces"];
                own_only += u32::from(!others.iter().any(|mode| supports(&csv, mode)));
            }
            Err(message) => {
                assert!(
                    !expected_obstacles.is_empty(),
                    "{} should succeed: {message}",
                    bundle.name
                );
                // A contradiction has sufficient reasons, a refusal all of them.
                let named =
                    expected_obstacles.iter().filter(|word| message.contains(*word)).count();
                let least = if message.starts_with("constraints not satisfiable") {
                    1
                } else {
                    expected_obstacles.len()
                };
                assert!(
                    named >= least,
                    "{}: not all of {expected_obstacles:?} in: {message}",
                    bundle.name
                );
                refused += 1;
            }
        }
    }
    let least = if is_deep() { (20, 8, 3) } else { (5, 3, 0) };
    assert!(
        succeeded >= least.0 && vendors.len() >= least.1 && own_only >= least.2,
        "{succeeded} {vendors:?} {own_only}"
    );
    ran(&format!(
        "{succeeded} packages of {} vendors succeed ({own_only} in their own namespace only), {refused} are refused with the right words",
        vendors.len()
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn long_upgrade_paths_reach_the_head_from_an_old_version() {
    let Some(data) = unpack(ARCHIVE, "the published catalog") else { return };
    let (catalog, cluster, hands, _up) = serve(data.path()).await;
    // By replaces: six upgrades and more. By skipRange: one upgrade from an old version.
    let paths = vec![
        ("hpe-csi-operator", 6),
        ("visionone-containersecurity", 6),
        ("dell-csm-operator-certified", 6),
        ("trident-operator", 1),
        ("habana-ai-operator", 1),
    ];
    for (name, least) in sample("upgrade paths of a published catalog", paths, 6) {
        let package = catalog.package(name).expect("the package");
        let (head, csv) = head(package, &package.default_channel);
        let path = longest_upgrade_path(package, &package.default_channel);
        assert!(path.len() > least, "{name}: {path:?}");
        let namespace = format!("c-{name}");
        hands.subscribe(&namespace, name, &package.default_channel, Some(&path[0]), &csv).await;
        outcome(&cluster, &namespace, name, &head.name)
            .await
            .unwrap_or_else(|why| panic!("{name}: {why}"));
        assert_objects_match_csv(&cluster, &namespace, &csv).await;
        // Each upgrade left its InstallPlan, or it was collected: the remaining ones name the path's
        // end.
        let plans = cluster
            .list(&mainstay_api::resources::INSTALL_PLAN, Some(&namespace), &ObjectList::default())
            .await
            .expect("plans");
        let mut walked: Vec<(i64, String)> = plans
            .items
            .iter()
            .map(|plan| {
                let names = plan.array(&["spec", "clusterServiceVersionNames"]);
                let name = names[0].as_str().unwrap_or_default().to_owned();
                (plan.i64(&["spec", "generation"]).unwrap_or_default(), name)
            })
            .collect();
        walked.sort();
        let walked: Vec<String> = walked.into_iter().map(|(_, name)| name).collect();
        assert!(path.ends_with(&walked), "{name}: {path:?} was walked as {walked:?}");
        ran(&format!("{name}: {} hops from {} to {}", path.len() - 1, path[0], head.name));
    }
}

fn head(package: &Package, channel: &str) -> (Arc<Bundle>, Object) {
    let head = package.channel(channel).expect("the channel").head();
    let bundle = package.bundle(&head.name).expect("the bundle");
    let csv = bundle.csv().expect("readable manifests").expect("a ClusterServiceVersion");
    (Arc::clone(bundle), csv)
}

/// The longest upgrade path to the head of a channel as documented: to the newest entry that replaces,
/// skips or covers the installed one.
fn longest_upgrade_path(package: &Package, channel: &str) -> Vec<String> {
    let channel = package.channel(channel).expect("the channel");
    let mut best = Vec::new();
    for start in channel.entries() {
        let mut path = vec![start.name.to_string()];
        loop {
            let current = path.last().expect("never empty").clone();
            let version = &package.bundle(&current).expect("the bundle").version;
            let edges = channel.entries().iter().filter(|entry| {
                let range = entry
                    .skip_range
                    .as_deref()
                    .and_then(|range| mainstay_version::Range::parse(range).ok());
                *entry.name != *current
                    && (entry.replaces.as_deref() == Some(&*current)
                        || entry.skips.iter().any(|skipped| **skipped == *current)
                        || range.is_some_and(|range| range.contains(version)))
            });
            let next = edges.max_by_key(|entry| {
                package.bundle(&entry.name).map(|bundle| bundle.version.clone())
            });
            match next {
                Some(next) if !path.contains(&next.name.to_string()) => {
                    path.push(next.name.to_string());
                }
                _ => break,
            }
        }
        if path.last().map(String::as_str) == Some(&*channel.head().name) && path.len() > best.len()
        {
            best = path;
        }
    }
    best
}

/// Checks that accounts, rules and pod templates on the cluster are those of the CSV.
async fn assert_objects_match_csv(cluster: &Cluster, namespace: &str, csv: &Object) {
    let owner = format!("olm.owner={}", csv.name());
    for (part, kind) in [("permissions", &ROLE), ("clusterPermissions", &CLUSTER_ROLE)] {
        let scope = kind.is_namespaced().then_some(namespace);
        let params = ObjectList::labels(format!("{owner},olm.owner.namespace={namespace}"));
        let live = cluster.list(kind, scope, &params).await.expect("roles");
        let live: Vec<Value> = live
            .items
            .iter()
            .map(|role| role.get(&["rules"]).cloned().unwrap_or_default())
            .collect();
        for permission in csv.array(&["spec", "install", "spec", part]) {
            let account = text(permission, "serviceAccountName");
            cluster
                .get(&SERVICE_ACCOUNT, Some(namespace), &account)
                .await
                .unwrap_or_else(|error| panic!("{}: account {account}: {error}", csv.name()));
            // For an OperatorGroup of all namespaces, the rules are also in ClusterRoles.
            assert!(
                live.iter().any(|rules| same_rules(rules, &permission["rules"])),
                "{}: no {} with the rules of {account}",
                csv.name(),
                kind.kind
            );
        }
    }
    for wanted in csv.array(&["spec", "install", "spec", "deployments"]) {
        let name = text(wanted, "name");
        let live = cluster.get(&DEPLOYMENT, Some(namespace), &name).await.expect("the Deployment");
        let live = live.get(&["spec"]).expect("a spec");
        let wanted = without_fields_of_olm(&wanted["spec"], csv);
        if let Err(at) = covers(&wanted, live, "spec") {
            panic!("{}: Deployment {name} lacks {at}", csv.name());
        }
    }
}

/// A Deployment's spec without the fields that OLM sets: the revision history limit and, for webhooks,
/// the certificate mounts.
fn without_fields_of_olm(spec: &Value, csv: &Object) -> Value {
    let mut spec = spec.clone();
    let serves = !csv.array(&["spec", "webhookdefinitions"]).is_empty();
    if let Some(fields) = spec.as_object_mut() {
        fields.remove("revisionHistoryLimit");
    }
    if let Some(pod) = spec.pointer_mut("/template/spec").filter(|_| serves) {
        for container in pod["containers"].as_array_mut().into_iter().flatten() {
            container.as_object_mut().map(|container| container.remove("volumeMounts"));
        }
        pod.as_object_mut().map(|pod| pod.remove("volumes"));
    }
    spec
}

/// Compares rules; absent and empty lists are equal.
fn same_rules(live: &Value, wanted: &Value) -> bool {
    let clean = |rules: &Value| -> Vec<Value> {
        let rules = rules.as_array().cloned().unwrap_or_default();
        let mut rules = rules;
        for rule in &mut rules {
            if let Some(fields) = rule.as_object_mut() {
                fields.retain(|_, value| {
                    !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty())
                });
            }
        }
        rules
    };
    clean(live) == clean(wanted)
}

/// Checks that `live` has all of `wanted`; lists may be longer. The error is the path of a missing
/// value.
fn covers(wanted: &Value, live: &Value, at: &str) -> Result<(), String> {
    match (wanted, live) {
        (Value::Null, _) => Ok(()),
        (Value::Object(wanted), live) => {
            for (key, value) in wanted {
                // Empty values are not stored.
                let empty = match value {
                    Value::Null | Value::Bool(false) => true,
                    Value::String(text) => text.is_empty(),
                    Value::Object(fields) => fields.is_empty(),
                    Value::Array(items) => items.is_empty(),
                    _ => false,
                };
                let found = live.get(key);
                if found.is_none() && (empty || key == "creationTimestamp") {
                    continue;
                }
                covers(value, found.unwrap_or(&Value::Null), &format!("{at}.{key}"))?;
            }
            Ok(())
        }
        (Value::Array(wanted), Value::Array(live)) if wanted.len() <= live.len() => {
            for (index, (wanted, live)) in wanted.iter().zip(live).enumerate() {
                covers(wanted, live, &format!("{at}[{index}]"))?;
            }
            Ok(())
        }
        // Quantities and int-or-string values may have another notation.
        (wanted, live) if wanted == live || canonical_scalar(wanted) == canonical_scalar(live) => {
            Ok(())
        }
        (wanted, live) => Err(format!("{at}: {wanted}, there is {live}")),
    }
}

/// A scalar as the API writes it: quantities have one form (`1024Mi` is `1Gi`), and a number equals its
/// text.
fn canonical_scalar(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    mainstay_schema::canonical_quantity(&text).unwrap_or(text)
}
