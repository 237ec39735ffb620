//! Who may do what: decisions beside a plain reading of the rules, and attempts to gain more.

use crate::harness::{Api, MAPS};
use http::Method;
use mainstay_auth::Identity;
use mainstay_auth::authz::{Attributes, Authorizer, Decision};
use mainstay_clock::Clock;
use mainstay_object::Object;
use mainstay_store::{Change, Expect, Key, Options, Store};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const RBAC: &str = "rbac.authorization.k8s.io";

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }

    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        from[self.below(from.len())]
    }

    fn some(&mut self, from: &[&'static str], least: usize) -> Vec<&'static str> {
        let count = least + self.below(3);
        (0..count).map(|_| self.pick(from)).collect()
    }
}

const VERBS: &[&str] = &["get", "list", "watch", "create", "update", "delete", "bind", "*"];
const GROUPS: &[&str] = &["", "apps", "batch", "*"];
const RESOURCES: &[&str] =
    &["pods", "pods/log", "deployments", "deployments/scale", "*/scale", "*/log", "jobs", "*"];
const NAMES: &[&str] = &["a", "b", "c"];
const PATHS: &[&str] = &["/healthz", "/metrics", "/logs/*", "/a/b*", "/a/*", "*"];
const PLACES: &[&str] = &["one", "two", "three"];
const USERS: &[&str] = &["ann", "bob", "cleo", "system:serviceaccount:one:sa"];
const TEAMS: &[&str] = &["red", "blue", "system:authenticated"];

/// Everything as plain values: what the naive reading reads.
#[derive(Default)]
struct World {
    /// By resource, namespace and name.
    objects: BTreeMap<(&'static str, String, String), Value>,
}

impl World {
    fn rule(dice: &mut Dice) -> Value {
        if dice.below(8) == 0 {
            return json!({"nonResourceURLs": dice.some(PATHS, 1), "verbs": dice.some(VERBS, 1)});
        }
        let mut rule = json!({
            "apiGroups": dice.some(GROUPS, 1), "resources": dice.some(RESOURCES, 1),
            "verbs": dice.some(VERBS, 1),
        });
        if dice.below(3) == 0 {
            rule["resourceNames"] = json!(dice.some(NAMES, 1));
        }
        rule
    }

    fn subject(dice: &mut Dice) -> Value {
        match dice.below(4) {
            0 => json!({"kind": "Group", "name": dice.pick(TEAMS)}),
            1 => json!({"kind": "ServiceAccount", "name": "sa", "namespace": dice.pick(PLACES)}),
            2 => json!({"kind": "ServiceAccount", "name": "sa"}),
            _ => json!({"kind": "User", "name": dice.pick(USERS)}),
        }
    }

    /// Makes, changes or removes one object; gives its key.
    fn stir(&mut self, dice: &mut Dice) -> (&'static str, String, String) {
        let cluster = dice.below(2) == 0;
        let namespace = if cluster { "" } else { dice.pick(PLACES) };
        let name = format!("n{}", dice.below(12));
        let is_role = dice.below(2) == 0;
        let resource = match (is_role, cluster) {
            (true, true) => "rbac.authorization.k8s.io/clusterroles",
            (true, false) => "rbac.authorization.k8s.io/roles",
            (false, true) => "rbac.authorization.k8s.io/clusterrolebindings",
            (false, false) => "rbac.authorization.k8s.io/rolebindings",
        };
        let key = (resource, namespace.to_owned(), name);
        if dice.below(6) == 0 {
            self.objects.remove(&key);
            return key;
        }
        let object = if is_role {
            let rules: Vec<Value> = (0..dice.below(4)).map(|_| Self::rule(dice)).collect();
            json!({"rules": rules})
        } else {
            let kind = if cluster || dice.below(2) == 0 { "ClusterRole" } else { "Role" };
            let subjects: Vec<Value> = (0..dice.below(3)).map(|_| Self::subject(dice)).collect();
            let role = format!("n{}", dice.below(12));
            json!({"roleRef": {"apiGroup": RBAC, "kind": kind, "name": role}, "subjects": subjects})
        };
        self.objects.insert(key.clone(), object);
        key
    }

    /// Brings the store to what the world has at a key.
    async fn keep(&self, store: &Store, key: &(&'static str, String, String)) {
        let place = Key::new(key.0, key.1.as_str(), key.2.as_str());
        let outcome = if let Some(value) = self.objects.get(key) {
            let mut object = Object::from_value(value.clone()).unwrap();
            object.set(&["metadata", "name"], key.2.clone().into());
            let change =
                Change::Put { key: place, object: &object, expect: Expect::Any, guard: None };
            store.commit(change).await
        } else if store.get(&place).is_some() {
            store.commit(Change::Delete { key: place, expect: Expect::Any }).await
        } else {
            return;
        };
        outcome.unwrap();
    }

    /// A plain reading: every binding, every subject, every rule, every word. The first binding by
    /// name that allows it, those of the cluster first.
    fn decide(&self, asked: &Attributes<'_>) -> Decision {
        let mut missing: Vec<String> = Vec::new();
        for resource in ["clusterrolebindings", "rolebindings"] {
            for ((of, namespace, name), binding) in &self.objects {
                let here = *of == format!("{RBAC}/{resource}");
                if !here || (resource == "rolebindings" && namespace != asked.namespace) {
                    continue;
                }
                let subjects = binding["subjects"].as_array().unwrap();
                let subject = subjects.iter().find(|one| is(one, asked.identity, namespace));
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
                if rules["rules"].as_array().unwrap().iter().any(|rule| allows(rule, asked)) {
                    let (what, name) = match resource {
                        "rolebindings" => ("RoleBinding", format!("{name}/{namespace}")),
                        _ => ("ClusterRoleBinding", name.clone()),
                    };
                    let whom = subject["name"].as_str().unwrap();
                    let whom = match (subject["kind"].as_str().unwrap(), &subject["namespace"]) {
                        ("ServiceAccount", Value::Null) => format!("{whom}/{namespace}"),
                        ("ServiceAccount", place) => format!("{whom}/{}", place.as_str().unwrap()),
                        _ => whom.to_owned(),
                    };
                    let subject = subject["kind"].as_str().unwrap();
                    return Decision::Allow(format!(
                        "RBAC: allowed by {what} {name:?} of {kind} {role:?} to {subject} {whom:?}"
                    ));
                }
            }
        }
        Decision::NoOpinion(match missing.as_slice() {
            [] => String::new(),
            [one] => format!("RBAC: {one}"),
            several => format!("RBAC: [{}]", several.join(", ")),
        })
    }
}

fn is(subject: &Value, identity: &Identity, place: &str) -> bool {
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

fn allows(rule: &Value, asked: &Attributes<'_>) -> bool {
    let words = |field: &str| -> Vec<String> {
        let list = rule[field].as_array();
        list.into_iter().flatten().map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let has =
        |field: &str, wanted: &str| words(field).iter().any(|word| word == "*" || word == wanted);
    if !has("verbs", asked.verb) {
        return false;
    }
    if !asked.is_resource {
        return words("nonResourceURLs").iter().any(|url| match url.strip_suffix('*') {
            Some(prefix) => asked.path.starts_with(prefix),
            None => asked.path == url,
        });
    }
    let whole = match asked.subresource {
        "" => asked.resource.to_owned(),
        below => format!("{}/{below}", asked.resource),
    };
    let below = format!("*/{}", asked.subresource);
    let names = words("resourceNames");
    has("apiGroups", asked.group)
        && words("resources").iter().any(|word| {
            word == "*" || *word == whole || (!asked.subresource.is_empty() && *word == below)
        })
        && (names.is_empty() || names.iter().any(|name| name == asked.name))
}

fn identity(dice: &mut Dice) -> Identity {
    let groups: Vec<String> = dice.some(TEAMS, 0).into_iter().map(str::to_owned).collect();
    Identity::new(dice.pick(USERS), groups)
}

fn question<'a>(dice: &mut Dice, identity: &'a Identity) -> Attributes<'a> {
    let verb = dice.pick(&VERBS[..VERBS.len() - 1]);
    if dice.below(8) == 0 {
        let path = dice.pick(&["/healthz", "/metrics", "/logs/x", "/logs", "/a/b", "/a/bc", "/a"]);
        return Attributes::path(identity, verb, path);
    }
    let group = dice.pick(&GROUPS[..3]);
    Attributes::resource(identity, verb, group, dice.pick(&["pods", "deployments", "jobs"]))
        .with_subresource(dice.pick(&["", "", "log", "scale"]))
        .in_namespace(dice.pick(&["", "one", "two", "three"]))
        .with_name(dice.pick(&["", "a", "b", "d"]))
}

/// Ten thousand requests in a hundred worlds, of which each is the last one with some changes.
#[tokio::test]
async fn decisions_are_those_of_a_plain_reading_of_the_rules() {
    let clock = Clock::starting_at("2026-01-02T03:04:05Z".parse().unwrap());
    let store = Store::in_memory(Options::new(clock));
    let authorizer = Authorizer::new(store.clone());
    let mut dice = Dice(0x5eed_0fa1_1ac4_0001);
    let mut world = World::default();
    let (mut allowed, mut unresolved) = (0, 0);
    for round in 0..100 {
        for _ in 0..(if round == 0 { 60 } else { 5 }) {
            let key = world.stir(&mut dice);
            world.keep(&store, &key).await;
        }
        let anew = Authorizer::new(store.clone());
        for _ in 0..100 {
            let who = identity(&mut dice);
            let asked = question(&mut dice, &who);
            let decision = authorizer.decide(&asked);
            assert_eq!(decision, world.decide(&asked), "{asked:?}");
            assert_eq!(decision, anew.decide(&asked), "an index that followed, and a new one");
            allowed += usize::from(decision.is_allowed());
            unresolved += usize::from(!decision.is_allowed() && !decision.reason().is_empty());
        }
    }
    // Both answers are met often.
    assert!((1_500..8_500).contains(&allowed), "{allowed} of 10000");
    assert!(unresolved > 200, "{unresolved} with missing roles");
}

#[tokio::test]
async fn a_rule_more_takes_no_permission_away() {
    let clock = Clock::starting_at("2026-01-02T03:04:05Z".parse().unwrap());
    let store = Store::in_memory(Options::new(clock));
    let authorizer = Authorizer::new(store.clone());
    let mut dice = Dice(0x5eed_0fa1_1ac4_0002);
    let mut world = World::default();
    for _ in 0..60 {
        let key = world.stir(&mut dice);
        world.keep(&store, &key).await;
    }
    let identities: Vec<Identity> = (0..400).map(|_| identity(&mut dice)).collect();
    let questions: Vec<Attributes<'_>> =
        identities.iter().map(|who| question(&mut dice, who)).collect();
    let allowed = |authorizer: &Authorizer| -> Vec<bool> {
        questions.iter().map(|asked| authorizer.decide(asked).is_allowed()).collect()
    };
    let mut before = allowed(&authorizer);
    let roles: Vec<_> =
        world.objects.keys().filter(|key| key.0.ends_with("roles")).cloned().collect();
    for _ in 0..60 {
        let key = &roles[dice.below(roles.len())];
        let rule = World::rule(&mut dice);
        world.objects.get_mut(key).unwrap()["rules"].as_array_mut().unwrap().push(rule);
        world.keep(&store, key).await;
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
async fn a_role_is_in_force_with_the_answer_to_its_write_and_a_removed_one_is_not() {
    let api = Api::new().await;
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]);
    let looks = async || api.call(Method::GET, MAPS, &[AS_EVE], "").await.code;
    assert_eq!(looks().await, 403);
    for _ in 0..20 {
        api.post(ROLES, &role("Role", "r", &rules)).await.ok();
        assert_eq!(looks().await, 403);
        api.post(BINDINGS, &binding("RoleBinding", "b", "Role", "r")).await.ok();
        assert_eq!(looks().await, 200);
        api.patch(&format!("{ROLES}/r"), "merge", &json!({"rules": []})).await.ok();
        assert_eq!(looks().await, 403);
        api.patch(&format!("{ROLES}/r"), "merge", &json!({"rules": rules})).await.ok();
        assert_eq!(looks().await, 200);
        api.delete(&format!("{BINDINGS}/b"), &Value::Null).await.ok();
        assert_eq!(looks().await, 403);
        api.delete(&format!("{ROLES}/r"), &Value::Null).await.ok();
    }
}

/// Eve may write roles and bindings, and read config maps; nothing else.
async fn with_eve() -> Api {
    let api = Api::new().await;
    let rules = json!([
        {"apiGroups": [RBAC], "resources": ["*"], "verbs": ["create", "update", "patch", "get"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
    ]);
    api.post(CLUSTER_ROLES, &role("ClusterRole", "eve", &rules)).await.ok();
    let bound = binding("ClusterRoleBinding", "eve", "ClusterRole", "eve");
    api.post(CLUSTER_BINDINGS, &bound).await.ok();
    api
}

#[tokio::test]
async fn nobody_grants_what_they_do_not_hold() {
    let api = with_eve().await;
    let secrets = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]);
    let paths = json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]);
    let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    let escalate = json!([{"apiGroups": [RBAC], "resources": ["roles"], "verbs": ["escalate"]}]);
    // Victims that are there already.
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
    // What she holds she may grant.
    let held = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]);
    let granted = role("Role", "held", &held).to_string();
    assert_eq!(api.call(post.clone(), ROLES, &[AS_EVE], granted).await.code, 201);
    let bound = binding("RoleBinding", "held", "Role", "held").to_string();
    assert_eq!(api.call(post, BINDINGS, &[AS_EVE], bound).await.code, 201);
}

#[tokio::test]
async fn rules_that_mean_too_much_are_refused_before_they_are_taken_apart() {
    let api = with_eve().await;
    let words = |letter: &str| (0..200).map(|at| format!("{letter}{at}")).collect::<Vec<_>>();
    let rules = json!([{"apiGroups": words("g"), "resources": words("r"), "verbs": words("v")}]);
    let body = role("Role", "x", &rules).to_string();
    let (code, message) = api.call(Method::POST, ROLES, &[AS_EVE], body).await.refused();
    assert_eq!(code, 403);
    assert!(message.contains("the rules grant 8000000 single permissions"), "{message}");
}

#[tokio::test]
async fn roles_of_the_start_come_back_but_for_those_that_want_none_of_it() {
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
    assert_eq!(count("system:basic-user").await, 3, "taken apart into what was missing");
    assert_eq!(count("system:discovery").await, 0);
    assert_eq!(rules("system:public-info-viewer").await[0], own[0]);
    assert!(count("system:public-info-viewer").await > 1);
    assert!(count("system:node").await > 10);
    assert_eq!(again.get(&subjects).await.ok()["subjects"][0]["name"], "system:authenticated");
    assert_eq!(store.revision(), revision + 4);
    // And then there is nothing to do.
    let revision = store.revision();
    let _third = Api::on(store.clone(), clock).await;
    assert_eq!(store.revision(), revision);
}
