//! Hostile bodies: lists of maximum length, depth, width, numbers, text, patches, YAML, protobuf
//! and compression.

use super::MAPS;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;

/// One hostile request.
pub(super) struct Hostile {
    pub(super) what: String,
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) media: &'static str,
    pub(super) encoding: Option<&'static str>,
    pub(super) body: Vec<u8>,
}

fn hostile(what: &str, method: &'static str, path: &str, body: impl Into<Vec<u8>>) -> Hostile {
    let media = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    Hostile {
        what: what.to_owned(),
        method,
        path: path.to_owned(),
        media,
        encoding: None,
        body: body.into(),
    }
}

fn object_with_metadata(metadata: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
}

/// A list of maximum length.
pub(super) fn many(count: usize, item: impl Fn(usize) -> Value) -> Value {
    Value::Array((0..count).map(item).collect())
}

/// A Pod with a field at a path in its spec.
fn pod_with(place: &str, field: &str, value: Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "x"}], "securityContext": {}},
    });
    if let Some(parent) = pod.pointer_mut(&format!("/spec{place}")) {
        parent[field] = value;
    }
    pod
}

fn gzip(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// All hostile requests.
pub(super) fn hostile_requests() -> anyhow::Result<Vec<Hostile>> {
    let mut out = Vec::new();
    let mut add = |what: &str, method: &'static str, path: &str, body: Vec<u8>| {
        out.push(hostile(what, method, path, body));
    };
    let owner = |at: usize, uid: &str| json!({"apiVersion": "v1", "kind": "Pod", "name": format!("n{at}"), "uid": uid});
    let text = |value: &Value| value.to_string().into_bytes();
    // Lists in metadata.
    let metadata: [(&str, Value); 6] = [
        (
            "owners that differ",
            json!({"name": "o", "ownerReferences": many(9500, |at| owner(at, &format!("{at}")))}),
        ),
        (
            "owners that are the same",
            json!({"name": "o", "ownerReferences": many(9500, |_| owner(1, "u"))}),
        ),
        (
            "finalizers",
            json!({"name": "o", "finalizers": many(60_000, |at| json!(format!("a.example/{at}")))}),
        ),
        (
            "finalizers that are the same",
            json!({"name": "o", "finalizers": many(60_000, |_| json!("a.example/x"))}),
        ),
        (
            "labels",
            json!({"name": "o", "labels": (0..60_000).map(|at| (format!("l{at}"), json!("v"))).collect::<serde_json::Map<_, _>>()}),
        ),
        (
            "managed fields",
            json!({"name": "o", "managedFields": many(6000, |at| json!({"manager": format!("m{at}"), "operation": "Apply", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}}))}),
        ),
    ];
    for (what, metadata) in &metadata {
        add(what, "POST", MAPS, text(&object_with_metadata(metadata)));
        add(
            &format!("{what}, as a patch"),
            "PATCH",
            &format!("{MAPS}/target"),
            text(&json!({"metadata": metadata})),
        );
    }
    // Lists in pods, each at a path in the spec.
    let pods = "/api/v1/namespaces/default/pods";
    let container = "/containers/0";
    let port = |at: usize| json!({"containerPort": at + 1, "hostPort": at + 1});
    let mount = |at: usize| json!({"name": "v", "mountPath": format!("/m{at}")});
    let spread = |at: usize| json!({"maxSkew": 1, "topologyKey": format!("k{at}"), "whenUnsatisfiable": "DoNotSchedule"});
    let alias = |at: usize| json!({"ip": "10.0.0.1", "hostnames": [format!("h{at}")]});
    let lists: Vec<(&str, &str, &str, Value)> = vec![
        (
            "containers",
            "",
            "containers",
            many(20_000, |at| json!({"name": format!("c{at}"), "image": "x"})),
        ),
        (
            "containers of one name",
            "",
            "containers",
            many(20_000, |_| json!({"name": "c", "image": "x"})),
        ),
        ("ports", container, "ports", many(30_000, |at| json!({"containerPort": at + 1}))),
        ("host ports", container, "ports", many(20_000, port)),
        ("variables", container, "env", many(40_000, |at| json!({"name": format!("V{at}")}))),
        ("variables of one name", container, "env", many(40_000, |_| json!({"name": "V"}))),
        (
            "volumes",
            "",
            "volumes",
            many(20_000, |at| json!({"name": format!("v{at}"), "emptyDir": {}})),
        ),
        ("mounts", container, "volumeMounts", many(20_000, mount)),
        ("mounts of one path", container, "volumeMounts", many(20_000, |_| mount(0))),
        (
            "tolerations",
            "",
            "tolerations",
            many(20_000, |at| json!({"key": format!("k{at}"), "operator": "Exists"})),
        ),
        ("host aliases", "", "hostAliases", many(20_000, alias)),
        (
            "pull secrets",
            "",
            "imagePullSecrets",
            many(40_000, |at| json!({"name": format!("s{at}")})),
        ),
        ("spread constraints", "", "topologySpreadConstraints", many(9000, spread)),
        (
            "gates",
            "",
            "schedulingGates",
            many(30_000, |at| json!({"name": format!("a.example/{at}")})),
        ),
        (
            "readiness gates",
            "",
            "readinessGates",
            many(30_000, |at| json!({"conditionType": format!("a.example/{at}")})),
        ),
        (
            "sysctls",
            "/securityContext",
            "sysctls",
            many(30_000, |at| json!({"name": format!("kernel.a{at}"), "value": "1"})),
        ),
        (
            "claims",
            "",
            "resourceClaims",
            many(20_000, |at| json!({"name": format!("c{at}"), "resourceClaimName": "x"})),
        ),
    ];
    for (what, place, field, list) in lists {
        add(what, "POST", pods, text(&pod_with(place, field, list)));
    }
    // Lists of other kinds.
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let others: Vec<(&str, String, Value)> = vec![
        (
            "rules of a role",
            format!("{rbac}/roles"),
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}, "rules": many(15_000, |at| json!({"apiGroups": [""], "resources": [format!("r{at}")], "verbs": ["get"]}))}),
        ),
        (
            "a rule of many names",
            format!("{rbac}/roles"),
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r2"}, "rules": [{"apiGroups": many(20_000, |at| json!(format!("g{at}"))), "resources": many(20_000, |at| json!(format!("r{at}"))), "verbs": many(20_000, |at| json!(format!("v{at}")))}]}),
        ),
        (
            "subjects",
            format!("{rbac}/rolebindings"),
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "b"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}, "subjects": many(15_000, |at| json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": format!("u{at}")}))}),
        ),
        (
            "ports of a service",
            "/api/v1/namespaces/default/services".to_owned(),
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": many(25_000, |at| json!({"name": format!("p{at}"), "port": at + 1}))}}),
        ),
        (
            "subsets of endpoints",
            "/api/v1/namespaces/default/endpoints".to_owned(),
            json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "e"}, "subsets": many(9000, |at| json!({"addresses": [{"ip": format!("10.{}.{}.1", at / 250, at % 250)}], "ports": [{"port": 1}]}))}),
        ),
        (
            "endpoints of a slice",
            "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices".to_owned(),
            json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "e"}, "addressType": "IPv4", "endpoints": many(1000, |at| json!({"addresses": many(100, |_| json!(format!("10.0.{}.{}", at / 250, at % 250)))}))}),
        ),
        (
            "rules of a network policy",
            "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies".to_owned(),
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "n"}, "spec": {"podSelector": {}, "ingress": many(9000, |_| json!({"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.0.0.0/16"]}}]}))}}),
        ),
        (
            "rules of an ingress",
            "/apis/networking.k8s.io/v1/namespaces/default/ingresses".to_owned(),
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"}, "spec": {"rules": many(20_000, |at| json!({"host": format!("h{at}.example.com")})), "defaultBackend": {"service": {"name": "s", "port": {"number": 1}}}}}),
        ),
        (
            "webhooks",
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations".to_owned(),
            json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": {"name": "w"}, "webhooks": many(5000, |_| json!({"name": "a.b.example", "clientConfig": {"url": "https://x"}, "sideEffects": "None", "admissionReviewVersions": ["v1"]}))}),
        ),
        (
            "names of a definition",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned(),
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "as.b.example"}, "spec": {"group": "b.example", "scope": "Namespaced", "names": {"plural": "as", "kind": "A", "shortNames": many(60_000, |at| json!(format!("s{at}"))), "categories": many(60_000, |at| json!(format!("c{at}")))}, "versions": many(6000, |at| json!({"name": format!("v{at}"), "served": true, "storage": at == 0, "schema": {"openAPIV3Schema": {"type": "object"}}}))}}),
        ),
        (
            "a schema of many fields",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned(),
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "fs.b.example"}, "spec": {"group": "b.example", "scope": "Namespaced", "names": {"plural": "fs", "kind": "F"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "required": many(30_000, |at| json!(format!("f{at}"))), "properties": (0..30_000).map(|at| (format!("f{at}"), json!({"type": "string"}))).collect::<serde_json::Map<_, _>>()}}}]}}),
        ),
        (
            "keys of a selector",
            "/apis/apps/v1/namespaces/default/deployments".to_owned(),
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"selector": {"matchExpressions": many(20_000, |at| json!({"key": format!("k{at}"), "operator": "Exists"}))}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}}}),
        ),
        (
            "keys of a map",
            MAPS.to_owned(),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "k"}, "data": (0..80_000).map(|at| (format!("k{at}"), json!(""))).collect::<serde_json::Map<_, _>>()}),
        ),
        (
            "a quota of many",
            "/api/v1/namespaces/default/resourcequotas".to_owned(),
            json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": (0..20_000).map(|at| (format!("count/r{at}.b.example"), json!("1"))).collect::<serde_json::Map<_, _>>(), "scopes": many(30_000, |_| json!("BestEffort"))}}),
        ),
        (
            "defaults of a definition",
            "/apis/attack.example.com/v1/namespaces/default/bombs".to_owned(),
            json!({"apiVersion": "attack.example.com/v1", "kind": "Bomb", "metadata": {"name": "b"}, "items": many(200, |_| json!({}))}),
        ),
        (
            "defaults, many times",
            "/apis/attack.example.com/v1/namespaces/default/bombs?dryRun=All".to_owned(),
            json!({"apiVersion": "attack.example.com/v1", "kind": "Bomb", "metadata": {"name": "b"}, "items": many(200_000, |_| json!({}))}),
        ),
    ];
    for (what, path, body) in &others {
        add(what, "POST", path, text(body));
    }
    // Depth, width, numbers, text.
    let deep = |open: &str, close: &str, count: usize| {
        format!("{{\"a\": {}{}}}", open.repeat(count), close.repeat(count)).into_bytes()
    };
    add("deep lists", "POST", MAPS, deep("[", "]", 1_000_000));
    add(
        "deep objects",
        "POST",
        MAPS,
        format!("{}1{}", "{\"a\":".repeat(300_000), "}".repeat(300_000)).into_bytes(),
    );
    add("deep lists in a patch", "PATCH", &format!("{MAPS}/target"), deep("[", "]", 9_999));
    add(
        "one key a million times",
        "POST",
        MAPS,
        format!("{{{}\"a\":1}}", "\"a\":1,".repeat(400_000)).into_bytes(),
    );
    add(
        "a number of many digits",
        "POST",
        MAPS,
        format!("{{\"a\": {}}}", "9".repeat(2_000_000)).into_bytes(),
    );
    add(
        "an exponent",
        "POST",
        pods,
        text(&pod_with(container, "resources", json!({"limits": {"cpu": "1e999999999"}}))),
    );
    add("a body that is too large", "POST", MAPS, vec![b' '; 8 << 20]);
    add(
        "escapes",
        "POST",
        MAPS,
        format!("{{\"a\": \"{}\"}}", "\\u0000".repeat(400_000)).into_bytes(),
    );
    add(
        "half a surrogate",
        "POST",
        MAPS,
        format!("{{\"a\": \"{}\"}}", "\\ud800".repeat(400_000)).into_bytes(),
    );
    add("no text at all", "POST", MAPS, vec![0xff; 1 << 20]);
    let mut special = special(&text)?;
    out.append(&mut special);
    Ok(out)
}

/// Bodies of other media types.
fn special(text: &dyn Fn(&Value) -> Vec<u8>) -> anyhow::Result<Vec<Hostile>> {
    let target = format!("{MAPS}/target");
    let deployment = "/apis/apps/v1/namespaces/default/deployments/target";
    let typed =
        |what: &str, method: &'static str, path: &str, media: &'static str, body: Vec<u8>| {
            Hostile { media, ..hostile(what, method, path, body) }
        };
    let patch = "application/json-patch+json";
    let doubling: Vec<Value> =
        (0..60).map(|_| json!({"op": "copy", "from": "/data", "path": "/data/x"})).collect();
    let copies = many(
        9_999,
        |at| json!({"op": "copy", "from": "/metadata", "path": format!("/metadata/annotations/{at}")}),
    );
    let mut anchors = String::new();
    for at in 0..80_000 {
        writeln!(anchors, "a{at}: &a{at} 1")?;
    }
    let mut laughs = String::from(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: l}\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n",
    );
    for at in 1..12 {
        let before = format!("*a{}", at - 1);
        writeln!(laughs, "a{at}: &a{at} [{}]", vec![before; 10].join(","))?;
    }
    let mut zipped =
        typed("a bomb of gzip", "POST", MAPS, "application/json", gzip(&vec![b' '; 200 << 20])?);
    zipped.encoding = Some("gzip");
    let yaml = "application/yaml";
    Ok(vec![
        typed("copies that double", "PATCH", &target, patch, text(&Value::Array(doubling))),
        typed("copies of metadata", "PATCH", &target, patch, text(&copies)),
        typed(
            "additions in front",
            "PATCH",
            deployment,
            patch,
            text(&many(
                9_999,
                |at| json!({"op": "add", "path": "/spec/template/spec/containers/0", "value": {"name": format!("c{at}"), "image": "x"}}),
            )),
        ),
        typed(
            "tests without end",
            "PATCH",
            &target,
            patch,
            text(&many(9_999, |_| json!({"op": "test", "path": "/data/a", "value": "b"}))),
        ),
        typed(
            "too many operations",
            "PATCH",
            &target,
            patch,
            text(&many(40_000, |_| json!({"op": "test", "path": "/data/a", "value": "b"}))),
        ),
        typed(
            "a strategic merge of many",
            "PATCH",
            deployment,
            "application/strategic-merge-patch+json",
            text(
                &json!({"spec": {"template": {"spec": {"containers": many(15_000, |at| json!({"name": format!("c{at}"), "image": "x"}))}}}}),
            ),
        ),
        typed(
            "an order of many",
            "PATCH",
            deployment,
            "application/strategic-merge-patch+json",
            text(
                &json!({"spec": {"template": {"spec": {"$setElementOrder/containers": many(30_000, |at| json!({"name": format!("c{at}")}))}}}}),
            ),
        ),
        typed(
            "an apply of many",
            "PATCH",
            &format!("{deployment}?fieldManager=a&force=true"),
            "application/apply-patch+yaml",
            text(
                &json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"spec": {"containers": many(12_000, |at| json!({"name": format!("c{at}"), "image": "x"}))}}}}),
            ),
        ),
        typed(
            "an apply of many owners",
            "PATCH",
            &format!("{target}?fieldManager=a&force=true"),
            "application/apply-patch+yaml",
            text(
                &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"ownerReferences": many(9000, |at| json!({"apiVersion": "v1", "kind": "Pod", "name": "n", "uid": format!("{at}")}))}}),
            ),
        ),
        typed("a billion laughs", "POST", MAPS, yaml, laughs.into_bytes()),
        typed("deep YAML", "POST", MAPS, yaml, "[".repeat(500_000).into_bytes()),
        typed("deep block YAML", "POST", MAPS, yaml, "- ".repeat(500_000).into_bytes()),
        typed("keys that are keys", "POST", MAPS, yaml, "? ".repeat(300_000).into_bytes()),
        typed("anchors without end", "POST", MAPS, yaml, anchors.into_bytes()),
        typed("documents", "POST", MAPS, yaml, "---\n".repeat(500_000).into_bytes()),
        typed("tags", "POST", MAPS, yaml, format!("a: {}x", "!!str ".repeat(300_000)).into_bytes()),
        typed(
            "protobuf of nothing",
            "POST",
            MAPS,
            "application/vnd.kubernetes.protobuf",
            [b"k8s\0".to_vec(), vec![0x0a; 1 << 20]].concat(),
        ),
        typed(
            "protobuf of lengths",
            "POST",
            MAPS,
            "application/vnd.kubernetes.protobuf",
            [b"k8s\0".to_vec(), vec![0x12, 0xff, 0xff, 0xff, 0xff, 0x0f]].concat(),
        ),
        zipped,
    ])
}
