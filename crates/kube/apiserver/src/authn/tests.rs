use super::*;
use crate::pki::Pki;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mainstay_object::Object;

/// Objects by `resource/namespace/name`.
struct World(BTreeMap<String, Value>);

impl World {
    fn new() -> Self {
        let object = |name: &str, uid: &str| json!({"metadata": {"name": name, "namespace": "ns", "uid": uid}, "spec": {"serviceAccountName": "sa"}});
        Self(BTreeMap::from([
            ("serviceaccounts/ns/sa".to_owned(), object("sa", "u1")),
            ("pods/ns/p".to_owned(), object("p", "u2")),
        ]))
    }
}

impl Objects for World {
    fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Object> {
        let found = self.0.get(&format!("{resource}/{namespace}/{name}"))?;
        Object::from_value(found.clone()).ok()
    }

    fn list(&self, _: &str, _: Option<&str>) -> Vec<Object> {
        Vec::new()
    }
}

fn clock() -> Clock {
    Clock::starting_at("2026-01-02T03:04:05Z".parse().unwrap())
}

fn authenticator(clock: Clock) -> Authenticator {
    let pki = Pki::ephemeral(&clock, &[]).unwrap();
    Authenticator::new(pki.token_key_pkcs8(), clock).unwrap()
}

fn grant<'a>() -> Grant<'a> {
    Grant { namespace: "ns", account: "sa", uid: "u1", audiences: &[], seconds: 600, bound: None }
}

#[tokio::test]
async fn a_token_proves_its_account() {
    let authn = authenticator(clock());
    let bound = Some(Bound { kind: "pod", name: "p", uid: "u2" });
    let issued = authn.issue(&Grant { bound, ..grant() });
    assert_eq!(issued.expires, "2026-01-02T03:14:05Z");
    let verified = authn.verify(&issued.token, &[], &World::new()).unwrap();
    let identity = verified.identity;
    assert_eq!(identity.user(), "system:serviceaccount:ns:sa");
    assert_eq!(identity.uid(), "u1");
    assert_eq!(
        identity.groups(),
        ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]
    );
    assert_eq!(identity.extra()[POD_NAME], ["p"]);
    assert!(identity.extra()[CREDENTIAL_ID][0].starts_with("JTI="));
    assert_eq!(verified.audiences, [ISSUER]);
}

#[tokio::test]
async fn a_token_ends_with_its_time_its_account_and_its_pod() {
    let authn = authenticator(clock());
    let bound = Some(Bound { kind: "pod", name: "p", uid: "u2" });
    let token = authn.issue(&Grant { bound, ..grant() }).token;
    let verify = |world: &World| authn.verify(&token, &[], world).err();
    assert_eq!(verify(&World::new()), None);
    for (path, field) in [("serviceaccounts/ns/sa", "uid"), ("pods/ns/p", "uid")] {
        let mut world = World::new();
        world.0.get_mut(path).unwrap()["metadata"][field] = json!("other");
        assert_eq!(verify(&world), Some(Refused::Gone));
        world.0.remove(path);
        assert_eq!(verify(&world), Some(Refused::Gone));
    }
    for (seconds, expected) in [(599, None), (600, Some(Refused::Expired))] {
        let time = clock().now() + jiff::SignedDuration::from_secs(seconds);
        let later = Authenticator { clock: Clock::starting_at(time), ..authn.clone() };
        assert_eq!(later.verify(&token, &[], &World::new()).err(), expected);
    }
}

#[tokio::test]
async fn forged_and_foreign_tokens_are_refused() {
    let authn = authenticator(clock());
    let world = World::new();
    let token = authn.issue(&grant()).token;
    let parts: Vec<&str> = token.split('.').collect();
    let encode = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let mut claims: Value =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(parts[1]).unwrap()).unwrap();
    claims["kubernetes.io"]["serviceaccount"]["name"] = json!("admin");
    let changed = encode(claims.clone());
    let none = encode(json!({"alg": "none"}));
    let symmetric = encode(json!({"alg": "HS256"}));
    let critical = encode(json!({"alg": "ES256", "crit": ["b64"], "b64": false}));
    let foreign = authenticator(clock()).issue(&grant()).token;
    let cases = [
        (String::new(), Refused::Malformed),
        ("a.b".to_owned(), Refused::Malformed),
        ("a.b.c.d".to_owned(), Refused::Malformed),
        ("x".repeat(LONG), Refused::Malformed),
        (format!("{}.{}.", parts[0], parts[1]), Refused::Signature),
        (format!("{}.{changed}.{}", parts[0], parts[2]), Refused::Signature),
        (format!("{none}.{changed}."), Refused::Malformed),
        (format!("{symmetric}.{changed}.{}", parts[2]), Refused::Malformed),
        (format!("{critical}.{}.{}", parts[1], parts[2]), Refused::Malformed),
        (format!("{}.{}.{}=", parts[0], parts[1], parts[2]), Refused::Malformed),
        (foreign, Refused::Signature),
    ];
    for (token, expected) in cases {
        assert_eq!(authn.verify(&token, &[], &world).err(), Some(expected), "{token}");
    }
    // Signed by the right key, and still not a token of an account.
    for (field, value, expected) in [
        ("iss", json!("https://elsewhere"), Refused::Issuer),
        ("exp", Value::Null, Refused::Claims),
        ("nbf", json!(i64::MAX), Refused::NotYetValid),
        ("aud", json!("somebody"), Refused::Audience),
        ("sub", json!("system:serviceaccount:ns:other"), Refused::Claims),
        ("kubernetes.io", json!({}), Refused::Claims),
    ] {
        let mut claims: Value =
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(parts[1]).unwrap()).unwrap();
        claims[field] = value;
        let token = authn.key.sign(&claims);
        assert_eq!(authn.verify(&token, &[], &world).err(), Some(expected), "{field}");
    }
}

const LONG: usize = 20_000;

#[tokio::test]
async fn audiences_narrow_a_token() {
    let authn = authenticator(clock());
    let vault = ["vault".to_owned()];
    let token = authn.issue(&Grant { audiences: &vault, ..grant() }).token;
    let world = World::new();
    assert_eq!(authn.verify(&token, &[], &world).err(), Some(Refused::Audience));
    let asked = ["other".to_owned(), "vault".to_owned()];
    assert_eq!(authn.verify(&token, &asked, &world).unwrap().audiences, ["vault"]);
}

#[tokio::test]
async fn strangers_see_health_and_version_only() {
    let authn = authenticator(clock());
    let world = World::new();
    let ask = |path: &str, header: Option<&str>| {
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            headers.insert(AUTHORIZATION, header.parse().unwrap());
        }
        authn.identify(None, path, &headers, &world)
    };
    for path in ["/healthz", "/livez", "/readyz", "/version"] {
        assert_eq!(ask(path, None), Ok(None), "{path}");
        assert_eq!(ask(path, Some("Bearer x")), Err(Status::unauthorized()), "{path}");
    }
    for path in ["/", "/api", "/readyz/etcd", "/apis", "/metrics", "/openapi/v3"] {
        assert_eq!(ask(path, None), Err(Status::unauthorized()), "{path}");
    }
    let token = authn.issue(&grant()).token;
    assert!(ask("/api", Some(&format!("bearer {token}"))).unwrap().is_some());
    assert!(ask("/api", Some(&format!("Basic {token}"))).is_err());
    let admin = Identity::admin();
    assert_eq!(
        authn.identify(Some(&admin), "/api", &HeaderMap::new(), &world),
        Ok(Some(admin.clone()))
    );
}

#[tokio::test]
async fn the_certificate_of_the_administrator_names_a_master() {
    let pki = Pki::ephemeral(&clock(), &[]).unwrap();
    let (_, pem) = x509_parser::pem::parse_x509_pem(pki.admin_pem().0.as_bytes()).unwrap();
    let identity = certificate_identity(&pem.contents).unwrap();
    assert_eq!(identity.user(), "kubernetes-admin");
    assert!(identity.is_in(crate::MASTERS));
    assert!(identity.extra()[CREDENTIAL_ID][0].starts_with("X509SHA256="));
    assert_eq!(certificate_identity(b"junk"), None);
}

#[tokio::test]
async fn token_requests_are_answered_as_by_the_original() {
    let authn = authenticator(clock());
    let world = World::new();
    let account = world.get("serviceaccounts", "ns", "sa").unwrap();
    let ask = |request: Value| {
        authn.answer_token_request(Object::from_value(request).unwrap(), &account, &world)
    };
    let answer = ask(json!({"spec": {}})).unwrap();
    assert_eq!(answer.i64(&["spec", "expirationSeconds"]), Some(3600));
    assert_eq!(answer.str(&["status", "expirationTimestamp"]), Some("2026-01-02T04:04:05Z"));
    assert_eq!(answer.name(), "sa");
    let pod = |name: &str, uid: &str| json!({"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}}});
    let answer = ask(pod("p", "")).unwrap();
    let token = answer.str(&["status", "token"]).unwrap();
    assert_eq!(authn.verify(token, &[], &world).unwrap().identity.extra()[POD_UID], ["u2"]);
    let cases = [
        (
            json!({"spec": {"expirationSeconds": 10}}),
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 10: may not specify a duration less than 10 minutes",
        ),
        (
            json!({"metadata": {"name": "x"}}),
            "TokenRequest.authentication.k8s.io \"sa\" is invalid: metadata.name: Invalid value: \"x\": must match the service account name if specified",
        ),
        (pod("q", ""), "pods \"q\" not found"),
        (
            pod("p", "u9"),
            "Operation cannot be fulfilled on Pod \"p\": the UID in the bound object reference (u9) does not match the UID in record. The object might have been deleted and then recreated",
        ),
        (
            json!({"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Node"}}}),
            "cannot bind token to object of type /v1, Kind=Node",
        ),
    ];
    for (request, expected) in cases {
        assert_eq!(ask(request).unwrap_err().message, expected);
    }
}

#[tokio::test]
async fn token_reviews_tell_who_it_is() {
    let authn = authenticator(clock());
    let world = World::new();
    let review = |token: &str| {
        let review = Object::from_value(json!({"spec": {"token": token}})).unwrap();
        authn.answer_token_review(review, &world)
    };
    let good = review(&authn.issue(&grant()).token);
    assert_eq!(good.bool(&["status", "authenticated"]), Some(true));
    assert_eq!(good.str(&["status", "user", "username"]), Some("system:serviceaccount:ns:sa"));
    let bad = review("x.y.z");
    assert_eq!(bad.get(&["status"]), Some(&json!({"user": {}, "error": "invalid bearer token"})));
}
