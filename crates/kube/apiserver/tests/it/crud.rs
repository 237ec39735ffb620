//! Create, get and update.

use crate::harness::{AS_METADATA, AS_TABLE, Api, MAPS, config_map, map};
use http::Method;
use serde_json::json;

#[tokio::test]
async fn a_created_object_has_the_fields_of_the_server_and_reads_back_unchanged() {
    let api = Api::new().await;
    let created = api.post(MAPS, &config_map("a")).await;
    assert_eq!(created, 201);
    let created = created.ok();
    let meta = &created["metadata"];
    assert_eq!(meta["namespace"], "default");
    // The clock runs during the test.
    assert!(meta["creationTimestamp"].as_str().unwrap().starts_with("2026-01-02T03:"));
    assert_eq!(meta["uid"].as_str().unwrap().len(), 36);
    assert!(meta["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap() > 0);
    assert_eq!(api.get(&map("a")).await.ok(), created);
}

#[tokio::test]
async fn names_are_generated_from_their_prefix() {
    let api = Api::new().await;
    let mut body = config_map("");
    body["metadata"] = json!({"generateName": "pre-"});
    let one = api.post(MAPS, &body).await.ok();
    let two = api.post(MAPS, &body).await.ok();
    let name = |object: &serde_json::Value| object["metadata"]["name"].as_str().unwrap().to_owned();
    assert!(name(&one).starts_with("pre-") && name(&one).len() == 9);
    assert_ne!(name(&one), name(&two));
}

#[tokio::test]
async fn labels_with_the_object_name_contain_the_generated_name() {
    let api = Api::new().await;
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "job-"},
        "spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}],
        }}},
    });
    let created = api.post("/apis/batch/v1/namespaces/default/jobs", &job).await.ok();
    let name = &created["metadata"]["name"];
    assert!(name.as_str().unwrap().starts_with("job-"));
    for label in ["job-name", "batch.kubernetes.io/job-name"] {
        assert_eq!(created["spec"]["template"]["metadata"]["labels"][label], *name);
        assert_eq!(created["metadata"]["labels"][label], *name);
    }
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "ns-"},
    });
    let created = api.post("/api/v1/namespaces", &namespace).await.ok();
    assert_eq!(
        created["metadata"]["labels"]["kubernetes.io/metadata.name"],
        created["metadata"]["name"]
    );
}

#[tokio::test]
async fn refusals_have_the_texts_of_kube_apiserver() {
    let api = Api::new().await;
    api.post(MAPS, &config_map("a")).await.ok();
    let with = |key: &str, value: serde_json::Value| {
        let mut body = config_map("b");
        body["metadata"][key] = value;
        body
    };
    for (path, body, code, message) in [
        (MAPS, config_map("a"), 409, "configmaps \"a\" already exists"),
        (
            MAPS,
            config_map(""),
            422,
            "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required",
        ),
        (
            "/api/v1/namespaces/nope/configmaps",
            config_map("x"),
            404,
            "namespaces \"nope\" not found",
        ),
        (
            MAPS,
            with("namespace", json!("other")),
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            MAPS,
            with("resourceVersion", json!("5")),
            500,
            "resourceVersion should not be set on objects to be created",
        ),
        (
            MAPS,
            with("labels", json!({"a b": "c"})),
            422,
            "ConfigMap \"b\" is invalid: metadata.labels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        ),
        (
            MAPS,
            with("finalizers", json!(["plain"])),
            422,
            "ConfigMap \"b\" is invalid: metadata.finalizers[0]: Invalid value: \"plain\": name is neither a standard finalizer name nor is it fully qualified",
        ),
        (
            MAPS,
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}}),
            400,
            "Secret in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion",
        ),
        (
            MAPS,
            json!({"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "b"}}),
            400,
            "ConfigMap in version \"v2\" cannot be handled as a ConfigMap: no kind \"ConfigMap\" is registered for version \"v2\" in scheme \"pkg/runtime/scheme.go:111\"",
        ),
    ] {
        let response = api.post(path, &body).await;
        assert_eq!(response.refused(), (code, message.to_owned()));
    }
    let missing = api.get(&map("zz")).await;
    assert_eq!(missing.refused(), (404, "configmaps \"zz\" not found".to_owned()));
    let details = &missing.json()["details"];
    assert_eq!((&details["name"], &details["kind"]), (&json!("zz"), &json!("configmaps")));
}

#[tokio::test]
async fn unknown_paths_methods_and_media_types_have_different_codes() {
    let api = Api::new().await;
    api.post(MAPS, &config_map("a")).await.ok();
    let ask = |method: Method, path: String, headers: Vec<(&'static str, &'static str)>| {
        let api = &api;
        async move { api.call(method, &path, &headers, "{}").await.code }
    };
    for (method, path, headers, code) in [
        (Method::GET, "/nope".to_owned(), vec![], 404),
        (Method::GET, "/apis/nope.io/v1/things".to_owned(), vec![], 404),
        (Method::GET, "/api/v1/namespaces/default/namespaces".to_owned(), vec![], 404),
        (Method::GET, "/api/v1/configmaps/a".to_owned(), vec![], 404),
        (Method::GET, map("a/nope"), vec![], 404),
        (Method::POST, "/api/v1/configmaps".to_owned(), vec![], 405),
        (Method::POST, map("a"), vec![], 405),
        (Method::PUT, MAPS.to_owned(), vec![], 405),
        (Method::POST, "/version".to_owned(), vec![], 405),
        (Method::GET, map("a"), vec![("accept", "application/cbor")], 406),
        (
            Method::POST,
            MAPS.to_owned(),
            vec![("content-type", "application/vnd.kubernetes.protobuf")],
            400,
        ),
        (Method::PATCH, map("a"), vec![("content-type", "application/apply-patch+cbor")], 415),
        (Method::PATCH, map("a"), vec![("content-type", "text/plain")], 415),
    ] {
        assert_eq!(ask(method.clone(), path.clone(), headers).await, code, "{method} {path}");
    }
}

#[tokio::test]
async fn bodies_have_a_maximum_size() {
    let api = Api::new().await;
    let mut body = config_map("big");
    body["data"]["k"] = "x".repeat(3 * 1024 * 1024).into();
    let (code, message) = api.post(MAPS, &body).await.refused();
    assert_eq!((code, &*message), (413, "Request entity too large: limit is 3145728"));
}

#[tokio::test]
async fn yaml_bodies_are_read() {
    let api = Api::new().await;
    let body = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yml}\ndata: {k: \"1\"}\n";
    let headers = [("content-type", "application/yaml")];
    let created = api.call(Method::POST, MAPS, &headers, body).await.ok();
    assert_eq!(created["data"]["k"], "1");
}

#[tokio::test]
async fn a_dry_run_changes_nothing() {
    let api = Api::new().await;
    let created = api.post(&format!("{MAPS}?dryRun=All"), &config_map("a")).await;
    assert_eq!(created, 201);
    assert!(created.ok()["metadata"]["uid"].is_string());
    assert_eq!(api.get(&map("a")).await, 404);
    let path = "/api/v1/namespaces/nope/configmaps?dryRun=All";
    assert_eq!(api.post(path, &config_map("a")).await, 404);
    assert_eq!(api.post(&format!("{MAPS}?dryRun=Some"), &config_map("a")).await, 422);

    api.post(MAPS, &config_map("a")).await.ok();
    let mut changed = config_map("a");
    changed["data"]["k"] = "w".into();
    let put = api.put(&format!("{}?dryRun=All", map("a")), &changed).await.ok();
    assert_eq!(put["data"]["k"], "w");
    api.delete(&format!("{}?dryRun=All", map("a")), &json!(null)).await.ok();
    assert_eq!(api.get(&map("a")).await.ok()["data"]["k"], "v");
}

#[tokio::test]
async fn an_update_needs_the_current_revision_or_none() {
    let api = Api::new().await;
    let first = api.post(MAPS, &config_map("a")).await.ok();
    let mut second = first.clone();
    second["data"]["k"] = "2".into();
    let stored = api.put(&map("a"), &second).await.ok();
    assert_ne!(stored["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    let (code, message) = api.put(&map("a"), &second).await.refused();
    assert_eq!(code, 409);
    assert_eq!(
        message,
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again"
    );
    second["metadata"]["resourceVersion"] = json!(null);
    second["data"]["k"] = "3".into();
    assert_eq!(api.put(&map("a"), &second).await.ok()["data"]["k"], "3");
    second["metadata"]["uid"] = "other".into();
    assert_eq!(api.put(&map("a"), &second).await, 409);
}

#[tokio::test]
async fn fields_of_the_server_cannot_be_changed() {
    let api = Api::new().await;
    let created = api.post(MAPS, &config_map("a")).await.ok();
    let mut sent = created.clone();
    sent["metadata"]["creationTimestamp"] = "2000-01-01T00:00:00Z".into();
    sent["metadata"]["generation"] = 7.into();
    let stored = api.put(&map("a"), &sent).await.ok();
    assert_eq!(stored, created, "nothing changed, so nothing was written");
}

#[tokio::test]
async fn deletion_fields_are_immutable() {
    let api = Api::new().await;
    api.post(MAPS, &config_map("a")).await.ok();
    for (field, value, shown) in [
        ("deletionTimestamp", json!("2000-01-01T00:00:00Z"), "\"2000-01-01T00:00:00Z\""),
        ("deletionGracePeriodSeconds", json!(5), "5"),
    ] {
        let expected = format!(
            "ConfigMap \"a\" is invalid: metadata.{field}: Invalid value: {shown}: field is immutable"
        );
        let mut sent = config_map("a");
        sent["metadata"][field] = value.clone();
        assert_eq!(api.put(&map("a"), &sent).await.refused(), (422, expected.clone()));
        let patch = json!({"metadata": {field: value}});
        for kind in ["merge", "strategic-merge"] {
            assert_eq!(api.patch(&map("a"), kind, &patch).await.refused(), (422, expected.clone()));
        }
    }
    // The stored deletion fields may be sent unchanged; another grace period is refused.
    let held = json!({"metadata": {"finalizers": ["a.b/c"]}});
    api.patch(&map("a"), "merge", &held).await.ok();
    api.delete(&map("a"), &json!(null)).await.ok();
    let terminating = api.get(&map("a")).await.ok();
    assert_eq!(api.put(&map("a"), &terminating).await.ok(), terminating);
    let earlier = json!({"metadata": {"deletionTimestamp": "2000-01-01T00:00:00Z"}});
    assert_eq!(api.patch(&map("a"), "merge", &earlier).await.ok(), terminating);
    let grace = json!({"metadata": {"deletionGracePeriodSeconds": 7}});
    assert_eq!(api.patch(&map("a"), "merge", &grace).await.refused().0, 422);
}

#[tokio::test]
async fn a_body_with_another_name_is_refused_before_the_lookup() {
    let api = Api::new().await;
    api.post(MAPS, &config_map("a")).await.ok();
    let name = |sent: &str, url: &str| {
        format!("the name of the object ({sent}) does not match the name on the URL ({url})")
    };
    let namespace =
        "the namespace of the provided object does not match the namespace sent on the request";
    for url in ["a", "missing"] {
        let mut body = config_map("b");
        assert_eq!(api.put(&map(url), &body).await.refused(), (400, name("b", url)));
        body["metadata"]["namespace"] = "other".into();
        assert_eq!(api.put(&map(url), &body).await.refused(), (400, namespace.to_owned()));
        body["metadata"] = json!({});
        let nameless = format!(
            "the name of the object ({url} based on URL) was undeterminable: name must be provided"
        );
        assert_eq!(api.put(&map(url), &body).await.refused(), (400, nameless));
    }
    assert_eq!(api.put(&map("missing"), &config_map("missing")).await.refused().0, 404);
}

#[tokio::test]
async fn an_invalid_revision_is_refused_with_the_error_of_kube_apiserver() {
    let api = Api::new().await;
    api.post(MAPS, &config_map("a")).await.ok();
    for (version, why) in [
        ("x", "invalid syntax"),
        ("+1", "invalid syntax"),
        ("99999999999999999999", "value out of range"),
    ] {
        let expected = (500, format!("strconv.ParseUint: parsing \"{version}\": {why}"));
        let patch = json!({"metadata": {"resourceVersion": version}});
        assert_eq!(api.patch(&map("a"), "merge", &patch).await.refused(), expected);
        let mut sent = config_map("a");
        sent["metadata"]["resourceVersion"] = version.into();
        assert_eq!(api.put(&map("a"), &sent).await.refused(), expected);
    }
}

#[tokio::test]
async fn a_too_large_config_map_is_refused_without_a_field() {
    let api = Api::new().await;
    let mut body = config_map("big");
    body["data"]["k"] = "x".repeat(1024 * 1024 + 1).into();
    let why = "ConfigMap \"big\" is invalid: []: Too long: may not be more than 1048576 bytes";
    assert_eq!(api.post(MAPS, &body).await.refused(), (422, why.to_owned()));
}

#[tokio::test]
async fn field_validation_ignores_warns_or_refuses_unknown_and_duplicate_fields() {
    let api = Api::new().await;
    let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"NAME"},"dat":{},"data":{"k":"1","k":"2"}}"#;
    let post = |query: &str, name: &str| {
        let (path, body) = (format!("{MAPS}{query}"), body.replace("NAME", name));
        let api = &api;
        async move { api.call(Method::POST, &path, &[], body).await }
    };
    let warned = post("", "a").await;
    assert_eq!(warned, 201);
    assert_eq!(
        warned.warnings(),
        ["299 - \"unknown field \\\"dat\\\"\"", "299 - \"duplicate field \\\"data.k\\\"\""]
    );
    assert!(warned.ok().get("dat").is_none());
    assert!(post("?fieldValidation=Ignore", "b").await.warnings().is_empty());
    let (code, message) = post("?fieldValidation=Strict", "c").await.refused();
    assert_eq!(code, 400);
    assert_eq!(
        message,
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown field \"dat\", duplicate field \"data.k\""
    );
    assert_eq!(post("?fieldValidation=Maybe", "d").await, 422);
}

#[tokio::test]
async fn wrong_types_are_refused() {
    let api = Api::new().await;
    let mut body = config_map("a");
    body["data"] = json!({"k": 5});
    let (code, message) = api.post(MAPS, &body).await.refused();
    assert_eq!(code, 400);
    assert!(message.starts_with("ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal number"), "{message}");
}

#[tokio::test]
async fn an_object_is_returned_in_the_accepted_form() {
    let api = Api::new().await;
    api.post(MAPS, &config_map("a")).await.ok();
    let partial = api.get_as(&map("a"), AS_METADATA).await.ok();
    assert_eq!(partial["kind"], "PartialObjectMetadata");
    assert_eq!(partial["apiVersion"], "meta.k8s.io/v1");
    assert_eq!(partial["metadata"]["name"], "a");
    assert!(partial.get("data").is_none());
    let table = api.get_as(&map("a"), AS_TABLE).await.ok();
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["rows"][0]["cells"][0], "a");
    let pretty = api.get(&format!("{}?pretty=true", map("a"))).await;
    assert!(pretty.bytes.starts_with(b"{\n"));
}

#[tokio::test]
async fn a_new_object_with_a_revision_is_refused_except_in_a_dry_run() {
    let api = Api::new().await;
    let with = |revision: &str| {
        let mut body = config_map("a");
        body["metadata"]["resourceVersion"] = json!(revision);
        body
    };
    let dry = format!("{MAPS}?dryRun=All");
    for revision in ["5", "0", "no number"] {
        let created = api.post(&dry, &with(revision)).await.ok();
        assert_eq!(created["metadata"]["resourceVersion"], revision);
    }
    assert_eq!(api.post(MAPS, &with("5")).await, 500);
    let elsewhere = api.post(&MAPS.replace("default", "nowhere"), &with("5")).await;
    assert_eq!(elsewhere, 404);
    let created = api.post(MAPS, &with("no number")).await.ok();
    assert_ne!(created["metadata"]["resourceVersion"], "no number");
    // A dry run of an update responds with the stored revision.
    let changed = api.put(&format!("{}?dryRun=All", map("a")), &config_map("a")).await.ok();
    assert_eq!(changed["metadata"]["resourceVersion"], created["metadata"]["resourceVersion"]);
}

#[tokio::test]
async fn a_job_is_validated_before_its_pod_labels_are_set() {
    let api = Api::new().await;
    let job = |name: &str| {
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}},
        }})
    };
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let created = api.post(jobs, &job("short")).await.ok();
    assert_eq!(created["metadata"]["labels"]["job-name"], "short");
    assert_eq!(api.get(&format!("{jobs}/short")).await.ok(), created);
    let refused = api.post(jobs, &job(&"a".repeat(64))).await.json();
    let fields: Vec<&str> = refused["details"]["causes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cause| cause["field"].as_str().unwrap())
        .collect();
    assert_eq!(fields, ["spec.template.labels", "spec.template.labels"]);
}

#[tokio::test]
async fn empty_lists_differ_from_absent_ones_as_in_kube_apiserver() {
    let api = Api::new().await;
    let policies = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies";
    let policy = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "a"},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"]},
    });
    api.post(policies, &policy).await.ok();
    let path = format!("{policies}/a");
    let mut closed = policy.clone();
    closed["spec"]["ingress"] = json!([]);
    for (sent, generation) in [(&policy, 1), (&closed, 2), (&closed, 3), (&policy, 3)] {
        let changed = api.put(&path, sent).await.ok();
        assert_eq!(changed["metadata"]["generation"], generation);
        assert_eq!(changed["spec"], policy["spec"]);
    }
    let autoscalers = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
    let autoscaler = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"},
            "maxReplicas": 3, "behavior": {"scaleDown": {"policies": []}},
        },
    });
    let (code, message) = api.post(autoscalers, &autoscaler).await.refused();
    assert_eq!(code, 422);
    assert!(message.ends_with("policies: Required value: must specify at least one Policy"));
}
