//! OLM v1: invalid objects, and the messages with which the API server refuses them.

use mainstay_api::{CrdChannel, olm_v1_crds, resources};
use mainstay_client::Patch;
use mainstay_object::{Object, Resource, builtin};
use mainstay_testkit::TestCluster;
use serde_json::{Value, json};

const NOT_CHECKED: &str = "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
const DOMAIN: &str = r#"must start with a valid domain. valid domains must be alphanumeric characters (lowercase and uppercase) separated by the "." character."#;
const NAME: &str = r#"a valid name is required. valid names must contain lowercase alphanumeric characters separated only by the ".", "_", "__", "-" characters."#;
const SUBDOMAIN: &str = "must be a valid DNS1123 subdomain. It must contain only lowercase alphanumeric characters, hyphens (-) or periods (.), start and end with an alphanumeric character, and be no longer than 253 characters";

/// A cluster with the definitions of a channel.
pub(crate) async fn cluster_with(channel: CrdChannel) -> TestCluster {
    let cluster = TestCluster::bare().await;
    for crd in olm_v1_crds(channel) {
        let name = cluster.apply(crd).await.name().to_owned();
        let crds = &builtin::CUSTOM_RESOURCE_DEFINITION;
        cluster.wait_for_condition(crds, None, &name, "Established").await;
    }
    cluster
}

pub(crate) fn base(resource: &Resource) -> Value {
    let spec = match &*resource.kind {
        "ClusterCatalog" => json!({"source": {"type": "Image", "image": {"ref": "q.io/a:b"}}}),
        "ClusterExtension" => json!({
            "namespace": "a",
            "source": {"sourceType": "Catalog", "catalog": {"packageName": "b"}},
        }),
        _ => json!({
            "lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent",
            "phases": [phase(&config_map("a"))],
        }),
    };
    json!({
        "apiVersion": resource.api_version(), "kind": resource.kind,
        "metadata": {"name": "t"}, "spec": spec,
    })
}

pub(crate) fn phase(object: &Value) -> Value {
    json!({"name": "a", "objects": [object]})
}

pub(crate) fn config_map(name: &str) -> Value {
    json!({"object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}})
}

pub(crate) fn image(reference: &str) -> Value {
    json!({"source": {"image": {"ref": reference}}})
}

/// JSON merge patch.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let fields = target.as_object_mut().unwrap();
    for (key, value) in patch {
        if value.is_null() {
            fields.remove(key);
        } else {
            merge(fields.entry(key).or_insert(Value::Null), value);
        }
    }
}

/// Creates the valid object of a kind with each change of its spec, and compares the errors; without
/// errors, the object must be accepted.
async fn check_creation(cluster: &TestCluster, resource: &Resource, cases: &[(Value, &[&str])]) {
    for (change, errors) in cases {
        let mut object = base(resource);
        merge(&mut object["spec"], change);
        let object = Object::from_value(object).unwrap();
        let result = cluster.cluster().try_create(resource, &object).await;
        assert_eq!(message(result), expected(resource, errors), "{} {change}", resource.kind);
    }
}

/// Patches the object, or its status, by each change in order, and compares the errors.
async fn check_changes(
    cluster: &TestCluster,
    resource: &Resource,
    status: bool,
    cases: &[(Value, &[&str])],
) {
    for (change, errors) in cases {
        let patch = Patch::Merge(change.clone());
        let result = if status {
            cluster.cluster().patch_status(resource, None, "t", &patch).await
        } else {
            cluster.cluster().patch(resource, None, "t", &patch).await
        };
        assert_eq!(message(result), expected(resource, errors), "{} {change}", resource.kind);
    }
}

pub(crate) fn message(result: mainstay_client::Result<Object>) -> String {
    result.map_or_else(|error| error.to_string(), |_| String::new())
}

/// The message of an invalid object; empty without errors.
fn expected(resource: &Resource, errors: &[&str]) -> String {
    let list = match errors {
        [] => return String::new(),
        [error] => (*error).to_owned(),
        errors => format!("[{}]", errors.join(", ")),
    };
    format!("{}.{} \"t\" is invalid: {list}", resource.kind, resource.group)
}

pub(crate) async fn create(cluster: &TestCluster, resource: &Resource) {
    let object = Object::from_value(base(resource)).unwrap();
    cluster.cluster().create(resource, &object).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_cluster_catalogs_are_refused() {
    let cluster = cluster_with(CrdChannel::Standard).await;
    let catalogs = &resources::CLUSTER_CATALOG;
    let at = |reference: &str, text: &str| {
        format!("spec.source.image.ref: Invalid value: {reference:?}: {text}")
    };
    let digest = |digits: &str| format!("q.io/a@sha256:{digits}");
    let (short, odd) = (digest(&"a".repeat(31)), digest(&"g".repeat(32)));
    let long_tag = format!("q.io/a:{}", "t".repeat(128));
    let polled = digest(&"a".repeat(32));
    let long = format!("q.io/a:{}", "t".repeat(1000));
    check_creation(&cluster, catalogs, &[
        (json!({}), &[]),
        (image(&polled), &[]),
        (image("q.io"), &[&at("q.io", NAME), &at("q.io", "must end with a digest or a tag")]),
        (image("/a:b"), &[&at("/a:b", DOMAIN)]),
        (image("q.io/a"), &[&at("q.io/a", "must end with a digest or a tag")]),
        (image(&long_tag), &[&at(&long_tag, "tag is invalid. the tag must not be more than 127 characters")]),
        (image("q.io/a:-"), &[&at("q.io/a:-", r#"tag is invalid. valid tags must begin with a word character (alphanumeric + "_") followed by word characters or ".", and "-" characters"#)]),
        (image(&short), &[&at(&short, "digest is not valid. the encoded string must be at least 32 characters")]),
        (image(&odd), &[&at(&odd, "digest is not valid. the encoded string must only contain hex characters (A-F, a-f, 0-9)")]),
        (image(&long), &["spec.source.image.ref: Too long: may not be more than 1000 bytes", NOT_CHECKED]),
        (json!({"source": {"image": null}}), &["spec.source: Invalid value: image is required when source type is Image, and forbidden otherwise"]),
        (json!({"source": {"type": "Git"}}), &[r#"spec.source.type: Unsupported value: "Git": supported values: "Image""#, NOT_CHECKED]),
        (
            json!({"source": {"image": {"ref": polled, "pollIntervalMinutes": 1}}}),
            &["spec.source.image: Invalid value: cannot specify pollIntervalMinutes while using digest-based image"],
        ),
        (
            json!({"source": {"image": {"pollIntervalMinutes": 0}}}),
            &["spec.source.image.pollIntervalMinutes: Invalid value: 0: spec.source.image.pollIntervalMinutes in body should be greater than or equal to 1"],
        ),
        (
            json!({"availabilityMode": "Off"}),
            &[r#"spec.availabilityMode: Unsupported value: "Off": supported values: "Unavailable", "Available""#, NOT_CHECKED],
        ),
    ])
    .await;
    create(&cluster, catalogs).await;
    let resolved = |reference: &str| json!({"status": {"resolvedSource": {"type": "Image", "image": {"ref": reference}}}});
    check_changes(&cluster, catalogs, true, &[
        (resolved("q.io/a:b"), &[r#"status.resolvedSource.image.ref: Invalid value: "q.io/a:b": must end with a digest"#]),
        (resolved(&polled), &[]),
        (json!({"status": {"urls": {"base": "a b"}}}), &[r#"status.urls.base: Invalid value: "a b": must be a valid URL"#]),
        (json!({"status": {"urls": {"base": "ftp://a"}}}), &[r#"status.urls.base: Invalid value: "ftp://a": scheme must be either http or https"#]),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_cluster_extensions_are_refused() {
    let cluster = cluster_with(CrdChannel::Standard).await;
    let extensions = &resources::CLUSTER_EXTENSION;
    let catalog = |change: Value| json!({"source": {"catalog": change}});
    let version = |text: &str| {
        format!("spec.source.catalog.version: Invalid value: {text:?}: invalid version expression")
    };
    check_creation(&cluster, extensions, &[
        (json!({"serviceAccount": {"name": "a.b"}}), &[]),
        (catalog(json!({"version": ">=1.0.0 <2, v3 || ~>4.x", "channels": ["a.b"]})), &[]),
        (catalog(json!({"version": "1.0.0 - 2.0.0"})), &[&version("1.0.0 - 2.0.0")]),
        (catalog(json!({"version": "01.0.0"})), &[&version("01.0.0")]),
        (catalog(json!({"version": "==1.0.0"})), &[&version("==1.0.0")]),
        (json!({"namespace": "A"}), &[r#"spec.namespace: Invalid value: "A": namespace must be a valid DNS1123 label"#]),
        (json!({"serviceAccount": {}}), &["spec.serviceAccount: Invalid value: 0: spec.serviceAccount in body should have at least 1 properties"]),
        (json!({"serviceAccount": {"name": "A"}}), &[&format!("spec.serviceAccount.name: Invalid value: \"A\": name {SUBDOMAIN}")]),
        (catalog(json!({"packageName": "A"})), &[&format!("spec.source.catalog.packageName: Invalid value: \"A\": packageName {SUBDOMAIN}")]),
        (catalog(json!({"channels": ["a", "A"]})), &[r#"spec.source.catalog.channels[1]: Invalid value: "A": channels entries must be valid DNS1123 subdomains"#]),
        (json!({"source": {"catalog": null}}), &["spec.source: Invalid value: catalog is required when sourceType is Catalog, and forbidden otherwise"]),
        (json!({"install": {}}), &["spec.install: Invalid value: at least one of [preflight] are required when install is specified"]),
        (json!({"install": {"preflight": {}}}), &["spec.install.preflight.crdUpgradeSafety: Required value", NOT_CHECKED]),
        // The standard channel prunes the experimental fields.
        (json!({"config": 1, "progressDeadlineMinutes": 1}), &[]),
    ])
    .await;
    create(&cluster, extensions).await;
    check_changes(&cluster, extensions, false, &[
        (json!({"spec": {"namespace": "b"}}), &[r#"spec.namespace: Invalid value: "b": namespace is immutable"#]),
        (
            json!({"spec": {"source": {"catalog": {"packageName": "c"}}}}),
            &[r#"spec.source.catalog.packageName: Invalid value: "c": packageName is immutable"#],
        ),
        (json!({"spec": {"serviceAccount": {"name": "a"}}}), &[]),
        (
            json!({"spec": {"serviceAccount": {"name": "b"}}}),
            &[r#"spec.serviceAccount.name: Invalid value: "b": name is immutable once set but may be cleared"#],
        ),
        (json!({"spec": {"serviceAccount": null}}), &[]),
    ])
    .await;
    check_changes(&cluster, extensions, true, &[(
        json!({"status": {"install": {"bundle": {"name": "A", "version": "x"}}}}),
        &[
            &format!("status.install.bundle.name: Invalid value: \"A\": packageName {SUBDOMAIN}"),
            r#"status.install.bundle.version: Invalid value: "x": version must be well-formed semver"#,
        ],
    )])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_experimental_fields_are_refused() {
    let cluster = cluster_with(CrdChannel::Experimental).await;
    check_creation(&cluster, &resources::CLUSTER_EXTENSION, &[
        (json!({"config": {"configType": "Inline", "inline": {"a": {"b": 1}}}, "progressDeadlineMinutes": 10}), &[]),
        (json!({"config": {"configType": "Inline"}}), &["spec.config: Invalid value: inline is required when configType is Inline, and forbidden otherwise"]),
        (
            json!({"config": {"configType": "Inline", "inline": {}}}),
            &["spec.config.inline: Invalid value: 0: spec.config.inline in body should have at least 1 properties"],
        ),
        (
            json!({"progressDeadlineMinutes": 721}),
            &["spec.progressDeadlineMinutes: Invalid value: 721: spec.progressDeadlineMinutes in body should be less than or equal to 720"],
        ),
    ])
    .await;
    let sets = &resources::CLUSTER_OBJECT_SET;
    let probe = |selector: Value, assertion: Value| json!({"progressionProbes": [{"selector": selector, "assertions": [assertion]}]});
    let labelled = json!({"type": "Label", "label": {"matchLabels": {"a": "b"}}});
    let equal = json!({"type": "FieldsEqual", "fieldsEqual": {"fieldA": "a", "fieldB": "b.c"}});
    let many: Vec<Value> = (0..51).map(|index| config_map(&format!("a{index}"))).collect();
    check_creation(&cluster, sets, &[
        (probe(labelled.clone(), equal.clone()), &[]),
        (
            json!({"phases": [{"name": "a-", "objects": []}]}),
            &[r#"spec.phases[0].name: Invalid value: "a-": the value must consist of only lowercase alphanumeric characters and hyphens, and must start and end with an alphanumeric character."#],
        ),
        (
            json!({"phases": [phase(&json!({}))]}),
            &["spec.phases[0].objects[0]: Invalid value: exactly one of the fields in [object ref] must be set"],
        ),
        (
            json!({"phases": [{"name": "a", "objects": many}]}),
            &["spec.phases[0].objects: Too many: 51: must have at most 50 items", NOT_CHECKED],
        ),
        (
            probe(json!({"type": "GroupKind"}), equal),
            &["spec.progressionProbes[0].selector: Invalid value: groupKind is required when type is GroupKind, and forbidden otherwise"],
        ),
        (
            probe(json!({"type": "Label", "label": {}}), json!({"type": "FieldValue", "fieldValue": {"fieldPath": "a..b", "value": "c"}})),
            &[
                r#"spec.progressionProbes[0].assertions[0].fieldValue.fieldPath: Invalid value: "a..b": must contain a valid field path. valid fields contain upper or lower-case alphanumeric characters separated by the "." character."#,
                "spec.progressionProbes[0].selector.label: Invalid value: exactly one of matchLabels or matchExpressions must be set",
            ],
        ),
        (
            probe(labelled, json!({"type": "ConditionEqual"})),
            &["spec.progressionProbes[0].assertions[0]: Invalid value: conditionEqual is required when type is ConditionEqual, and forbidden otherwise"],
        ),
    ])
    .await;
    create(&cluster, sets).await;
    check_changes(&cluster, sets, false, &[
        (json!({"spec": {"phases": []}}), &["spec.phases: Invalid value: phases is immutable"]),
        (json!({"spec": {"revision": 2}}), &["spec.revision: Invalid value: 2: revision is immutable"]),
        (
            json!({"spec": {"collisionProtection": "None"}}),
            &[r#"spec.collisionProtection: Invalid value: "None": collisionProtection is immutable"#],
        ),
        (json!({"spec": {"lifecycleState": "Archived"}}), &[]),
        (json!({"spec": {"lifecycleState": "Active"}}), &[r#"spec.lifecycleState: Invalid value: "Active": cannot un-archive"#]),
    ])
    .await;
    let observed =
        |digest: &str| json!({"status": {"observedPhases": [{"name": "a", "digest": digest}]}});
    check_changes(&cluster, sets, true, &[
        (observed("sha256"), &[r#"status.observedPhases[0].digest: Invalid value: "sha256": digest must be in the format '<algorithm>:<hex>'"#]),
        (observed("sha256:0a"), &[]),
        (observed("sha256:0b"), &["status.observedPhases: Invalid value: observedPhases is immutable"]),
    ])
    .await;
}
