//! RBAC: decisions compared with a naive evaluation of the rules, and attempts of privilege
//! escalation.

use crate::harness::{Api, MAPS};
use http::Method;
use mainstay_auth::Identity;
use mainstay_auth::authz::{Attributes, Authorizer, Decision};
use mainstay_clock::Clock;
use mainstay_object::Object;
use mainstay_store::{Change, Key, Options, Precondition, Store};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const RBAC: &str = "rbac.authorization.k8s.io";

/// A deterministic pseudo-random generator.
struct Random(u64);

impl Random {
    fn below(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }

    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        from[self.below(from.len())]
    }

    fn sample(&mut self, from: &[&'static str], minimum: usize) -> Vec<&'static str> {
        let count = minimum + self.below(3);
        (0..count).map(|_| self.pick(from)).collect()
    }
}

const VERBS: &[&str] = &["get", "list", "watch", "create", "update", "delete", "bind", "*"];
const GROUPS: &[&str] = &["", "apps", "batch", "*"];
const RESOURCES: &[&str] =
    &["pods", "pods/log", "deployments", "deployments/scale", "*/scale", "*/log", "jobs", "*"];
const NAMES: &[&str] = &["a", "b", "c"];
const PATHS: &[&str] = &["/healthz", "/metrics", "/logs/*", "/a/b*", "/a/*", "*"];
const NAMESPACES: &[&str] = &["one", "two", "three"];
const USERS: &[&str] = &["ann", "bob", "cleo", "system:serviceaccount:one:sa"];
const TEAMS: &[&str] = &["red", "blue", "system:authenticated"];

/// RBAC objects as plain values, which the naive evaluation reads.
#[derive(Default)]
struct RbacState {
    /// By resource, namespace and name.
    objects: BTreeMap<(&'static str, String, String), Value>,
}

impl RbacState {
    fn rule(random: &mut Random) -> Value {
        if random.below(8) == 0 {
            return json!({"nonResourceURLs": random.sample(PATHS, 1), "verbs": random.sample(VERBS, 1)});
        }
        let mut rule = json!({
            "apiGroups": random.sample(GROUPS, 1), "resources": random.sample(RESOURCES, 1),
            "verbs": random.sample(VERBS, 1),
        });
        if random.below(3) == 0 {
            rule["resourceNames"] = json!(random.sample(NAMES, 1));
        }
        rule
    }

    fn subject(random: &mut Random) -> Value {
        match random.below(4) {
            0 => json!({"kind": "Group", "name": random.pick(TEAMS)}),
            1 => {
                json!({"kind": "ServiceAccount", "name": "sa", "namespace": random.pick(NAMESPACES)})
            }
            2 => json!({"kind": "ServiceAccount", "name": "sa"}),
            _ => json!({"kind": "User", "name": random.pick(USERS)}),
        }
    }

    /// Creates, changes or removes a random object; returns its key.
    fn mutate(&mut self, random: &mut Random) -> (&'static str, String, String) {
        let cluster = random.below(2) == 0;
        let namespace = if cluster { "" } else { random.pick(NAMESPACES) };
        let name = format!("n{}", random.below(12));
        let is_role = random.below(2) == 0;
        let resource = match (is_role, cluster) {
            (true, true) => "rbac.authorization.k8s.io/clusterroles",
            (true, false) => "rbac.authorization.k8s.io/roles",
            (false, true) => "rbac.authorization.k8s.io/clusterrolebindings",
            (false, false) => "rbac.authorization.k8s.io/rolebindings",
        };
        let key = (resource, namespace.to_owned(), name);
        if random.below(6) == 0 {
            self.objects.remove(&key);
            return key;
        }
        let object = if is_role {
            let rules: Vec<Value> = (0..random.below(4)).map(|_| Self::rule(random)).collect();
            json!({"rules": rules})
        } else {
            let kind = if cluster || random.below(2) == 0 { "ClusterRole" } else { "Role" };
            let subjects: Vec<Value> =
                (0..random.below(3)).map(|_| Self::subject(random)).collect();
            let role = format!("n{}", random.below(12));
            json!({"roleRef": {"apiGroup": RBAC, "kind": kind, "name": role}, "subjects": subjects})
        };
        self.objects.insert(key.clone(), object);
        key
    }

    /// Writes the object of a key to the store, or deletes it.
    async fn store_object(&self, store: &Store, key: &(&'static str, String, String)) {
        let place = Key::new(key.0, key.1.as_str(), key.2.as_str());
        let outcome = if let Some(value) = self.objects.get(key) {
            let mut object = Object::from_value(value.clone()).unwrap();
            object.set(&["metadata", "name"], key.2.clone().into());
            let change =
                Change::Put { key: place, object: &object, expect: Precondition::Any, guard: None };
            store.commit(change).await
        } else if store.get(&place).is_some() {
            store.commit(Change::Delete { key: place, expect: Precondition::Any }).await
        } else {
            return;
        };
        outcome.unwrap();
    }

    /// The naive evaluation: all bindings, subjects and rules in order of names; bindings of the
    /// cluster come first.
    fn decide(&self, attributes: &Attributes<'_>) -> Decision {
        let mut missing: Vec<String> = Vec::new();
        for resource in ["clusterrolebindings", "rolebindings"] {
            for ((of, namespace, name), binding) in &self.objects {
                let is_binding = *of == format!("{RBAC}/{resource}");
                if !is_binding || (resource == "rolebindings" && namespace != attributes.namespace)
                {
                    continue;
                }
                let subjects = binding["subjects"].as_array().unwrap();
                let subject =
                    subjects.iter().find(|one| is_subject(one, attributes.identity, namespace));
                let Some(subject) = subject else { continue };
                let role = binding["roleRef"]["name"].as_str().unwrap();
                let (roles, kind) = match binding["roleRef"]["kind"].as_str().unwrap() {
                    "Role" => (("rbac.authorization.k8s.io/roles", namespace.as_str()), "Role"),
                    _ => (("rbac.authorization.k8s.io/clusterroles", ""), "ClusterRole"),
                };
                let Some(rules) = self.objects.get(&(roles.0, roles.1.to_owned(), role.to_owned()))
                else {
                    let text = format!("{}.{RBAC} {role:?} not found", kind.to_lowercase());
                    if !missing.contains(&text) {
                        missing.push(text);
                    }
                    continue;
                };
                if rules["rules"].as_array().unwrap().iter().any(|rule| allows(rule, attributes)) {
                    let (binding_kind, name) = match resource {
                        "rolebindings" => ("RoleBinding", format!("{name}/{namespace}")),
                        _ => ("ClusterRoleBinding", name.clone()),
                    };
                    let subject_name = subject["name"].as_str().unwrap();
                    let subject_name =
                        match (subject["kind"].as_str().unwrap(), &subject["namespace"]) {
                            ("ServiceAccount", Value::Null) => {
                                format!("{subject_name}/{namespace}")
                            }
                            ("ServiceAccount", place) => {
                                format!("{subject_name}/{}", place.as_str().unwrap())
                            }
                            _ => subject_name.to_owned(),
                        };
                    let subject = subject["kind"].as_str().unwrap();
                    return Decision::Allow(format!(
                        "RBAC: allowed by {binding_kind} {name:?} of {kind} {role:?} to {subject} {subject_name:?}"
                    ));
                }
            }
        }
        Decision::NoOpinion(match missing.as_slice() {
            [] => String::new(),
            [one] => format!("RBAC: {one}"),
            all => format!("RBAC: [{}]", all.join(", ")),
        })
    }
}

fn is_subject(subject: &Value, identity: &Identity, place: &str) -> bool {
    let name = subject["name"].as_str().unwrap();
    match subject["kind"].as_str().unwrap() {
        "User" => name == identity.user(),
        "Group" => identity.groups().iter().any(|group| group == name),
        _ => {
            let namespace = subject["namespace"].as_str().unwrap_or(place);
            !namespace.is_empty()
                && identity.user() == format!("system:serviceaccount:{namespace}:{name}")
        }
    }
}

fn allows(rule: &Value, attributes: &Attributes<'_>) -> bool {
    let values = |field: &str| -> Vec<String> {
        let list = rule[field].as_array();
        list.into_iter().flatten().map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let has =
        |field: &str, wanted: &str| values(field).iter().any(|word| word == "*" || word == wanted);
    if !has("verbs", attributes.verb) {
        return false;
    }
    if !attributes.is_resource {
        return values("nonResourceURLs").iter().any(|url| match url.strip_suffix('*') {
            Some(prefix) => attributes.path.starts_with(prefix),
            None => attributes.path == url,
        });
    }
    let full_name = match attributes.subresource {
        "" => attributes.resource.to_owned(),
        below => format!("{}/{below}", attributes.resource),
    };
    let below = format!("*/{}", attributes.subresource);
    let names = values("resourceNames");
    has("apiGroups", attributes.group)
        && values("resources").iter().any(|word| {
            word == "*"
                || *word == full_name
                || (!attributes.subresource.is_empty() && *word == below)
        })
        && (names.is_empty() || names.iter().any(|name| name == attributes.name))
}

fn identity(random: &mut Random) -> Identity {
    let groups: Vec<String> = random.sample(TEAMS, 0).into_iter().map(str::to_owned).collect();
    Identity::new(random.pick(USERS), groups)
}

fn attributes<'a>(random: &mut Random, identity: &'a Identity) -> Attributes<'a> {
    let verb = random.pick(&VERBS[..VERBS.len() - 1]);
    if random.below(8) == 0 {
        let path =
            random.pick(&["/healthz", "/metrics", "/logs/x", "/logs", "/a/b", "/a/bc", "/a"]);
        return Attributes::path(identity, verb, path);
    }
    let group = random.pick(&GROUPS[..3]);
    Attributes::resource(identity, verb, group, random.pick(&["pods", "deployments", "jobs"]))
        .with_subresource(random.pick(&["", "", "log", "scale"]))
        .in_namespace(random.pick(&["", "one", "two", "three"]))
        .with_name(random.pick(&["", "a", "b", "d"]))
}

/// Ten thousand requests: a hundred for each of a hundred states, each of which changes the
/// previous one.
#[tokio::test]
async fn decisions_equal_those_of_a_naive_evaluation() {
    let clock = Clock::starting_at("2026-01-02T03:04:05Z".parse().unwrap());
    let store = Store::in_memory(Options::new(clock));
    let authorizer = Authorizer::new(store.clone());
    let mut random = Random(0x5eed_0fa1_1ac4_0001);
    let mut state = RbacState::default();
    let (mut allowed, mut unresolved) = (0, 0);
    for round in 0..100 {
        for _ in 0..(if round == 0 { 60 } else { 5 }) {
            let key = state.mutate(&mut random);
            state.store_object(&store, &key).await;
        }
        let new_authorizer = Authorizer::new(store.clone());
        for _ in 0..100 {
            let user = identity(&mut random);
            let attributes = attributes(&mut random, &user);
            let decision = authorizer.decide(&attributes);
            assert_eq!(decision, state.decide(&attributes), "{attributes:?}");
            assert_eq!(
                decision,
                new_authorizer.decide(&attributes),
                "an updated index and a new one agree"
            );
            allowed += usize::from(decision.is_allowed());
            unresolved += usize::from(!decision.is_allowed() && !decision.reason().is_empty());
        }
    }
    // Both decisions are frequent.
    assert!((1_500..8_500).contains(&allowed), "{allowed} of 10000");
    assert!(unresolved > 200, "{unresolved} with missing roles");
}

#[tokio::test]
async fn an_additional_rule_removes_no_permission() {
    let clock = Clock::starting_at("2026-01-02T03:04:05Z".parse().unwrap());
    let store = Store::in_memory(Options::new(clock));
    let authorizer = Authorizer::new(store.clone());
    let mut random = Random(0x5eed_0fa1_1ac4_0002);
    let mut state = RbacState::default();
    for _ in 0..60 {
        let key = state.mutate(&mut random);
        state.store_object(&store, &key).await;
    }
    let identities: Vec<Identity> = (0..400).map(|_| identity(&mut random)).collect();
    let questions: Vec<Attributes<'_>> =
        identities.iter().map(|identity| attributes(&mut random, identity)).collect();
    let allowed = |authorizer: &Authorizer| -> Vec<bool> {
        questions.iter().map(|attributes| authorizer.decide(attributes).is_allowed()).collect()
    };
    let mut before = allowed(&authorizer);
    let roles: Vec<_> =
        state.objects.keys().filter(|key| key.0.ends_with("roles")).cloned().collect();
    for _ in 0..60 {
        let key = &roles[random.below(roles.len())];
        let rule = RbacState::rule(&mut random);
        state.objects.get_mut(key).unwrap()["rules"].as_array_mut().unwrap().push(rule);
        state.store_object(&store, key).await;
        let after = allowed(&authorizer);
        assert!(before.iter().zip(&after).all(|(before, after)| *after || !before));
        before = after;
    }
}

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
const CLUSTER_ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const CLUSTER_BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

fn role(kind: &str, name: &str, rules: &Value) -> Value {
    json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": kind, "metadata": {"name": name},
        "rules": rules,
    })
}

fn binding(kind: &str, name: &str, role_kind: &str, role: &str) -> Value {
    json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": kind, "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": role_kind, "name": role},
        "subjects": [{"kind": "User", "apiGroup": RBAC, "name": "eve"}],
    })
}

const AS_EVE: (&str, &str) = ("impersonate-user", "eve");

#[tokio::test]
async fn roles_and_bindings_take_effect_with_the_response_to_their_write() {
    let api = Api::new().await;
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]);
    let list_code = async || api.call(Method::GET, MAPS, &[AS_EVE], "").await.code;
    assert_eq!(list_code().await, 403);
    for _ in 0..20 {
        api.post(ROLES, &role("Role", "r", &rules)).await.ok();
        assert_eq!(list_code().await, 403);
        api.post(BINDINGS, &binding("RoleBinding", "b", "Role", "r")).await.ok();
        assert_eq!(list_code().await, 200);
        api.patch(&format!("{ROLES}/r"), "merge", &json!({"rules": []})).await.ok();
        assert_eq!(list_code().await, 403);
        api.patch(&format!("{ROLES}/r"), "merge", &json!({"rules": rules})).await.ok();
        assert_eq!(list_code().await, 200);
        api.delete(&format!("{BINDINGS}/b"), &Value::Null).await.ok();
        assert_eq!(list_code().await, 403);
        api.delete(&format!("{ROLES}/r"), &Value::Null).await.ok();
    }
}

/// An API whose user `eve` may only write roles and bindings, and read ConfigMaps.
async fn with_eve() -> Api {
    let api = Api::new().await;
    let rules = json!([
        {"apiGroups": [RBAC], "resources": ["*"], "verbs": ["create", "update", "patch", "get"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
    ]);
    api.post(CLUSTER_ROLES, &role("ClusterRole", "eve", &rules)).await.ok();
    let new_binding = binding("ClusterRoleBinding", "eve", "ClusterRole", "eve");
    api.post(CLUSTER_BINDINGS, &new_binding).await.ok();
    api
}

#[tokio::test]
async fn a_user_cannot_grant_permissions_that_it_lacks() {
    let api = with_eve().await;
    let secrets = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]);
    let paths = json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]);
    let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    let escalate = json!([{"apiGroups": [RBAC], "resources": ["roles"], "verbs": ["escalate"]}]);
    // Existing roles and bindings that Eve tries to extend.
    api.post(ROLES, &role("Role", "mine", &json!([]))).await.ok();
    api.post(ROLES, &role("Role", "strong", &secrets)).await.ok();
    let mut empty = binding("RoleBinding", "empty", "Role", "strong");
    empty["subjects"] = json!([]);
    api.post(BINDINGS, &empty).await.ok();
    let aggregating = |name: &str| {
        let mut role = role("ClusterRole", name, &json!([]));
        role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
        role
    };
    api.post(CLUSTER_ROLES, &aggregating("sum")).await.ok();
    let merge = "application/merge-patch+json";
    let json_patch = "application/json-patch+json";
    let apply = "application/apply-patch+yaml";
    let mine = format!("{ROLES}/mine");
    let eve = json!({"subjects": [{"kind": "User", "apiGroup": RBAC, "name": "eve"}]});
    let (post, put, patch) = (Method::POST, Method::PUT, Method::PATCH);
    let dry = format!("{ROLES}?dryRun=All");
    let new = format!("{ROLES}/new");
    let new_binding = format!("{BINDINGS}/new?fieldManager=eve");
    let attempts: Vec<(&Method, String, &str, Value)> = vec![
        (&post, ROLES.into(), "", role("Role", "x", &secrets)),
        (&post, ROLES.into(), "", role("Role", "x", &all)),
        (&post, ROLES.into(), "", role("Role", "x", &escalate)),
        (&post, dry, "", role("Role", "x", &secrets)),
        (&post, CLUSTER_ROLES.into(), "", role("ClusterRole", "x", &paths)),
        (&post, CLUSTER_ROLES.into(), "", aggregating("x")),
        (&put, new.clone(), "", role("Role", "new", &secrets)),
        (&patch, format!("{new}?fieldManager=eve"), apply, role("Role", "new", &secrets)),
        (&put, mine.clone(), "", role("Role", "mine", &secrets)),
        (&patch, mine.clone(), merge, json!({"rules": secrets})),
        (&patch, mine.clone(), json_patch, json!([{"op": "add", "path": "/rules", "value": all}])),
        (&patch, format!("{mine}?fieldManager=e&force=true"), apply, role("Role", "mine", &all)),
        (&patch, format!("{ROLES}/strong"), merge, json!({"metadata": {"labels": {"a": "b"}}})),
        (&patch, format!("{CLUSTER_ROLES}/sum"), merge, json!({"aggregationRule": null})),
        (
            &patch,
            format!("{CLUSTER_ROLES}/sum"),
            merge,
            json!({"metadata": {"labels": {"a": "b"}}}),
        ),
        (&post, BINDINGS.into(), "", binding("RoleBinding", "x", "Role", "strong")),
        (&post, BINDINGS.into(), "", binding("RoleBinding", "x", "ClusterRole", "cluster-admin")),
        (
            &post,
            CLUSTER_BINDINGS.into(),
            "",
            binding("ClusterRoleBinding", "x", "ClusterRole", "cluster-admin"),
        ),
        (&put, format!("{BINDINGS}/new"), "", binding("RoleBinding", "new", "Role", "strong")),
        (&patch, new_binding, apply, binding("RoleBinding", "new", "Role", "strong")),
        (&patch, format!("{BINDINGS}/empty"), merge, eve.clone()),
        (&put, format!("{BINDINGS}/empty"), "", binding("RoleBinding", "empty", "Role", "strong")),
    ];
    let before = api.store.revision();
    for (method, path, media, body) in attempts {
        let media = if media.is_empty() { "application/json" } else { media };
        let headers = [AS_EVE, ("content-type", media)];
        let (code, message) =
            api.call(method.clone(), &path, &headers, body.to_string()).await.refused();
        assert_eq!(code, 403, "{method} {path}: {message}");
        let known = message.contains("is attempting to grant RBAC permissions not currently held")
            || message.contains("must have cluster-admin privileges to use the aggregationRule");
        assert!(known, "{method} {path}: {message}");
    }
    assert_eq!(api.store.revision(), before);
    // Eve may grant the permissions that she holds.
    let held_rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]);
    let granted = role("Role", "held", &held_rules).to_string();
    assert_eq!(api.call(post.clone(), ROLES, &[AS_EVE], granted).await, 201);
    let new_binding = binding("RoleBinding", "held", "Role", "held").to_string();
    assert_eq!(api.call(post, BINDINGS, &[AS_EVE], new_binding).await, 201);
}

#[tokio::test]
async fn rules_with_too_many_permissions_are_refused_before_the_escalation_check() {
    let api = with_eve().await;
    let values = |letter: &str| (0..200).map(|at| format!("{letter}{at}")).collect::<Vec<_>>();
    let rules = json!([{"apiGroups": values("g"), "resources": values("r"), "verbs": values("v")}]);
    let body = role("Role", "x", &rules).to_string();
    let (code, message) = api.call(Method::POST, ROLES, &[AS_EVE], body).await.refused();
    assert_eq!(code, 403);
    assert!(message.contains("the rules grant 8000000 single permissions"), "{message}");
}

#[tokio::test]
async fn default_roles_are_restored_unless_autoupdate_is_false() {
    let clock = Clock::starting_at("2026-01-02T03:04:05Z".parse().unwrap());
    let store = Store::in_memory(Options::new(clock));
    let api = Api::on(store.clone(), clock).await;
    let at = |name: &str| format!("{CLUSTER_ROLES}/{name}");
    let off = "rbac.authorization.kubernetes.io/autoupdate";
    let none = json!({"rules": []});
    let protected = json!({"rules": [], "metadata": {"annotations": {off: "false"}}});
    let own = json!([{"apiGroups": ["mine"], "resources": ["x"], "verbs": ["get"]}]);
    api.patch(&at("system:basic-user"), "merge", &none).await.ok();
    api.patch(&at("system:discovery"), "merge", &protected).await.ok();
    api.patch(&at("system:public-info-viewer"), "merge", &json!({"rules": own})).await.ok();
    api.delete(&at("system:node"), &Value::Null).await.ok();
    let subjects = format!("{CLUSTER_BINDINGS}/system:basic-user");
    api.patch(&subjects, "merge", &json!({"subjects": []})).await.ok();
    let revision = store.revision();
    let again = Api::on(store.clone(), clock).await;
    let rules = async |name: &str| again.get(&at(name)).await.ok()["rules"].clone();
    let count = async |name: &str| rules(name).await.as_array().map_or(0, Vec::len);
    assert_eq!(count("system:basic-user").await, 3, "the missing rules were added");
    assert_eq!(count("system:discovery").await, 0);
    assert_eq!(rules("system:public-info-viewer").await[0], own[0]);
    assert!(count("system:public-info-viewer").await > 1);
    assert!(count("system:node").await > 10);
    assert_eq!(again.get(&subjects).await.ok()["subjects"][0]["name"], "system:authenticated");
    assert_eq!(store.revision(), revision + 4);
    // A third start changes nothing.
    let revision = store.revision();
    let _third = Api::on(store.clone(), clock).await;
    assert_eq!(store.revision(), revision);
}
