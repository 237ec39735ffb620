use super::*;
use crate::pki::Pki;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::AUTHORIZATION;
use mainstay_object::{Object, Objects};
use serde_json::Value;
use std::collections::BTreeMap;

/// Objects by `resource/namespace/name`.
struct World(BTreeMap<String, Value>);

impl World {
    fn new() -> Self {
        let object = |name: &str, uid: &str| json!({"metadata": {"name": name, "namespace": "ns", "uid": uid}, "spec": {"serviceAccountName": "sa"}});
        Self(BTreeMap::from([
            ("serviceaccounts/ns/sa".to_owned(), object("sa", "u1")),
            ("pods/ns/p".to_owned(), object("p", "u2")),
            ("secrets/ns/s".to_owned(), object("s", "u3")),
            ("nodes//n".to_owned(), object("n", "u4")),
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
    pki.authenticator(clock).unwrap()
}

fn grant<'a>() -> Grant<'a> {
    Grant {
        namespace: "ns",
        account: "sa",
        uid: "u1",
        audiences: &[],
        seconds: 600,
        bound: [None, None],
        warn_after: None,
    }
}

fn because(why: &str) -> Refused {
    Refused::because(why)
}

const BROKEN: &str = "go-jose/go-jose: error in cryptographic primitive";
const GONE: &str = "service account token has been invalidated";

fn claims_of(token: &str) -> Value {
    let claims = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap()
}

const fn bound<'a>(kind: &'a str, name: &'a str, uid: &'a str) -> Bound<'a> {
    Bound { kind, name, uid }
}

#[tokio::test]
async fn a_token_proves_its_account() {
    let authn = authenticator(clock());
    let bound = [Some(bound("pod", "p", "u2")), Some(bound("node", "n", ""))];
    let issued = authn.issue(&Grant { bound, ..grant() });
    assert_eq!(issued.made, "2026-01-02T03:04:05Z");
    assert_eq!(claims_of(&issued.token)["exp"], clock().now().as_second() + 600);
    let verified = authn.verify(&issued.token, &[], &World::new()).unwrap();
    let identity = verified.identity;
    assert_eq!(identity.user(), "system:serviceaccount:ns:sa");
    assert_eq!(identity.uid(), "u1");
    assert_eq!(
        identity.groups(),
        ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]
    );
    let fact = |key: &str| identity.extra()[&format!("authentication.kubernetes.io/{key}")].clone();
    assert_eq!(fact("pod-name"), ["p"]);
    assert_eq!(fact("pod-uid"), ["u2"]);
    assert_eq!(fact("node-name"), ["n"]);
    assert!(fact("credential-id")[0].starts_with("JTI="));
    assert_eq!(identity.extra().len(), 4);
    assert_eq!(verified.audiences, [ISSUER]);
}

#[tokio::test]
async fn a_token_ends_with_its_time_its_account_and_what_it_is_bound_to() {
    let authn = authenticator(clock());
    for (kind, path, name, uid) in [
        ("pod", "pods/ns/p", "p", "u2"),
        ("secret", "secrets/ns/s", "s", "u3"),
        ("node", "nodes//n", "n", "u4"),
    ] {
        let bound = [Some(bound(kind, name, uid)), None];
        let token = authn.issue(&Grant { bound, ..grant() }).token;
        let verify = |world: &World| authn.verify(&token, &[], world).err();
        assert_eq!(verify(&World::new()), None);
        let mut world = World::new();
        world.0.get_mut(path).unwrap()["metadata"]["uid"] = json!("x");
        let why = format!("{kind} UID (x) does not match service account {kind} ref claim ({uid})");
        assert_eq!(verify(&world), Some(because(&why)));
        for (deleted, expected) in
            [("2026-01-02T03:03:05Z", None), ("2026-01-02T03:03:04Z", Some(because(GONE)))]
        {
            let mut world = World::new();
            world.0.get_mut(path).unwrap()["metadata"]["deletionTimestamp"] = json!(deleted);
            assert_eq!(verify(&world), expected);
        }
        world.0.remove(path);
        assert_eq!(verify(&world), Some(because(GONE)));
    }
    let token = authn.issue(&grant()).token;
    let mut world = World::new();
    let account = "serviceaccounts/ns/sa";
    world.0.get_mut(account).unwrap()["metadata"]["deletionTimestamp"] =
        json!("2026-01-01T00:00:00Z");
    let verify = |world: &World| authn.verify(&token, &[], world).err().unwrap();
    assert_eq!(verify(&world), because("service account ns/sa has been deleted"));
    world.0.get_mut(account).unwrap()["metadata"]["uid"] = json!("x");
    assert_eq!(verify(&world), because("service account UID (x) does not match claim (u1)"));
    world.0.remove(account);
    assert_eq!(verify(&world), because("serviceaccounts \"sa\" not found"));
    let ended = because("service account token has expired");
    for (seconds, expected) in [(600, None), (660, None), (661, Some(ended))] {
        let time = clock().now() + jiff::SignedDuration::from_secs(seconds);
        let later = Authenticator { clock: Clock::starting_at(time), ..authn.clone() };
        assert_eq!(later.verify(&token, &[], &World::new()).err(), expected);
    }
}

/// The answers of kube-apiserver 1.35.4 to the same.
#[tokio::test]
async fn forged_and_foreign_tokens_are_refused() {
    let authn = authenticator(clock());
    let world = World::new();
    let token = authn.issue(&grant()).token;
    let parts: Vec<&str> = token.split('.').collect();
    let encode = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let mut claims = claims_of(&token);
    claims["kubernetes.io"]["serviceaccount"]["name"] = json!("admin");
    let changed = encode(claims.clone());
    let with_head = |head: Value| format!("{}.{}.{}", encode(head), parts[1], parts[2]);
    let foreign = authenticator(clock()).issue(&grant()).token;
    let no_key = || because("invalid signature, no keys found");
    let cases = [
        (String::new(), Refused::Foreign),
        ("a.b".to_owned(), Refused::Foreign),
        ("a.b.c".to_owned(), Refused::Foreign),
        ("a.b.c.d".to_owned(), Refused::Foreign),
        (format!("{token}.x"), Refused::Foreign),
        ("x".repeat(LONG), Refused::Foreign),
        (format!("{}.{}.{}", parts[0], parts[1], "A".repeat(LONG)), Refused::Foreign),
        (format!("{}.{}.", parts[0], parts[1]), because(BROKEN)),
        (format!("{}.{changed}.{}", parts[0], parts[2]), because(BROKEN)),
        (format!("{}.{changed}.", encode(json!({"alg": "none"}))), because(BROKEN)),
        (with_head(json!({"alg": "HS256"})), because(BROKEN)),
        (with_head(json!({"alg": "RS256"})), because(BROKEN)),
        (with_head(json!({"alg": "ES384"})), because(BROKEN)),
        (with_head(json!({})), because(BROKEN)),
        (with_head(json!({"alg": "ES256", "crit": ["b64"], "b64": false})), because(BROKEN)),
        (with_head(json!({"alg": "ES256", "kid": "x"})), no_key()),
        (with_head(json!({"alg": "ES256", "kid": 7})), Refused::Foreign),
        (format!("{token}="), Refused::Foreign),
        (foreign, no_key()),
    ];
    for (token, expected) in cases {
        assert_eq!(authn.verify(&token, &[], &world).err(), Some(expected), "{token}");
    }
    // Signed by the right key, and still not a token of an account.
    let audience = format!(
        "token audiences [\"somebody\"] is invalid for the target audiences [\"{ISSUER}\"]"
    );
    let number = "go-jose/go-jose/jwt: expected number value to unmarshal NumericDate";
    for (field, value, expected) in [
        ("iss", json!("https://elsewhere"), Refused::Foreign),
        ("exp", json!("soon"), because(number)),
        ("exp", json!(-1), because("service account token has expired")),
        ("nbf", json!(i64::MAX), because("service account token is not valid yet")),
        ("iat", json!(1e300), because("service account token is issued in the future")),
        ("aud", json!("somebody"), because(&audience)),
        ("kubernetes.io", json!({}), because("resource name may not be empty")),
        ("kubernetes.io", json!(7), because("resource name may not be empty")),
    ] {
        let mut claims = claims_of(&token);
        claims[field] = value;
        let token = authn.keys.sign(&claims);
        assert_eq!(authn.verify(&token, &[], &world).err(), Some(expected), "{field}");
    }
    assert_eq!(Refused::Foreign.to_string(), "invalid bearer token");
    assert_eq!(because("why").to_string(), "[invalid bearer token, why]");
}

const LONG: usize = 20_000;

#[tokio::test]
async fn audiences_narrow_a_token() {
    let authn = authenticator(clock());
    let vault = ["vault".to_owned()];
    let token = authn.issue(&Grant { audiences: &vault, ..grant() }).token;
    let world = World::new();
    assert!(authn.verify(&token, &[], &world).is_err());
    let asked = ["other".to_owned(), "vault".to_owned()];
    assert_eq!(authn.verify(&token, &asked, &world).unwrap().audiences, ["vault"]);
    // A token for nobody in particular is for this server.
    for none in [Value::Null, json!([])] {
        let mut claims = claims_of(&token);
        claims["aud"] = none;
        let token = authn.keys.sign(&claims);
        assert_eq!(authn.verify(&token, &[], &world).unwrap().audiences, [ISSUER]);
        assert!(authn.verify(&token, &asked, &world).is_err());
    }
}

#[tokio::test]
async fn tokens_of_older_keys_are_accepted_and_new_ones_are_not_theirs() {
    let (world, new) = (World::new(), Pki::ephemeral(&clock(), &[]).unwrap());
    let foreign = authenticator(clock()).issue(&grant()).token;
    let first = Pki::ephemeral(&clock(), &[]).unwrap();
    let old = Authenticator::new(first.token_key_pkcs8(), clock()).unwrap();
    let rotated =
        Authenticator::with_keys(new.token_key_pkcs8(), [first.token_key_pkcs8()], clock())
            .unwrap();
    let (before, after) = (old.issue(&grant()).token, rotated.issue(&grant()).token);
    assert!(rotated.verify(&before, &[], &world).is_ok());
    assert!(rotated.verify(&after, &[], &world).is_ok());
    assert!(rotated.verify(&foreign, &[], &world).is_err());
    assert!(old.verify(&after, &[], &world).is_err());
    // A token that names no key is held against each.
    let nameless = |token: &str| {
        let (_, rest) = token.split_once('.').unwrap();
        format!("{}.{rest}", URL_SAFE_NO_PAD.encode(r#"{"alg":"ES256"}"#))
    };
    // The head is signed, so it cannot be changed either.
    assert_eq!(rotated.verify(&nameless(&before), &[], &world), Err(because(BROKEN)));
    let keys: Value = serde_json::from_str(&rotated.openid_keys()).unwrap();
    assert_eq!(keys["keys"].as_array().unwrap().len(), 2);
}

/// What is done to a Secret and its account.
type Change<'a> = &'a dyn Fn(&mut Value, &mut Value);

#[tokio::test]
async fn the_token_of_a_secret_holds_as_long_as_the_secret_has_it() {
    use base64::engine::general_purpose::STANDARD;
    let authn = authenticator(clock());
    let token = authn.issue_for_secret("ns", "sa", "u1", "s");
    let world = |token: &str, change: Change<'_>| {
        let mut world = World::new();
        let mut secret = world.0.remove("secrets/ns/s").unwrap();
        let mut account = world.0.remove("serviceaccounts/ns/sa").unwrap();
        secret["data"] = json!({"token": STANDARD.encode(token)});
        change(&mut secret, &mut account);
        world.0.insert("secrets/ns/s".to_owned(), secret);
        world.0.insert("serviceaccounts/ns/sa".to_owned(), account);
        world
    };
    let verify = |world: &World| authn.verify(&token, &[], world);
    let good = verify(&world(&token, &|_, _| {})).unwrap();
    assert_eq!(good.identity.user(), "system:serviceaccount:ns:sa");
    assert!(good.identity.extra().is_empty());
    assert_eq!(
        good.used.map(|used| (used.secret, used.day)),
        Some(("s".into(), "2026-01-02".into()))
    );
    assert_eq!(good.warning, None);
    for day in ["2026-01-02", "2026-01-03"] {
        let marked = world(&token, &|secret, _| {
            secret["metadata"]["labels"] = json!({"kubernetes.io/legacy-token-last-used": day});
        });
        assert_eq!(verify(&marked).unwrap().used, None);
    }
    let listed = world(&token, &|_, account| account["secrets"] = json!([{"name": "s"}]));
    assert!(verify(&listed).unwrap().warning.is_some());
    let cases: [(Change<'_>, &str); 6] = [
        (
            &|secret, _| secret["data"] = json!({"token": "eA=="}),
            "Token does not match server's copy",
        ),
        (&|secret, _| secret["data"] = json!({}), "Token does not match server's copy"),
        (
            &|secret, _| secret["metadata"]["deletionTimestamp"] = json!("2026-01-02T03:04:05Z"),
            "Token has been invalidated",
        ),
        (
            &|_, account| account["metadata"]["uid"] = json!("x"),
            "ServiceAccount UID (x) does not match claim (u1)",
        ),
        (
            &|_, account| account["metadata"]["deletionTimestamp"] = json!("2026-01-02T03:04:05Z"),
            "ServiceAccount ns/sa has been deleted",
        ),
        (
            &|secret, _| {
                secret["metadata"]["labels"] =
                    json!({"kubernetes.io/legacy-token-invalid-since": "2026-01-01"});
            },
            "the token in secret ns/s for service account ns/sa has been marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the 'kubernetes.io/legacy-token-invalid-since' label from the secret to temporarily allow use of this token",
        ),
    ];
    for (change, why) in cases {
        assert_eq!(verify(&world(&token, change)), Err(because(why)));
    }
    for (claim, why) in [
        ("sub", "sub claim is missing"),
        ("kubernetes.io/serviceaccount/secret.name", "secretName claim is missing"),
    ] {
        let mut claims = claims_of(&token);
        claims.as_object_mut().unwrap().remove(claim);
        let refused = authn.verify(&authn.keys.sign(&claims), &[], &World::new());
        assert_eq!(refused, Err(because(why)));
    }
}

#[tokio::test]
async fn keys_of_every_kind_sign() {
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair};
    let random = SystemRandom::new();
    let longer = EcdsaKeyPair::generate_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, &random).unwrap();
    let rsa = x509_parser::pem::Pem::iter_from_buffer(include_bytes!("rsa.pem"))
        .next()
        .unwrap()
        .unwrap()
        .contents;
    for (key, algorithm, kind) in [(longer.as_ref(), "ES384", "EC"), (&rsa, "RS256", "RSA")] {
        let authn = Authenticator::new(key, clock()).unwrap();
        let token = authn.issue(&grant()).token;
        assert!(authn.verify(&token, &[], &World::new()).is_ok());
        assert_eq!(
            authn.verify(&format!("{}AAAA", &token[..token.len() - 4]), &[], &World::new()),
            Err(because(BROKEN))
        );
        let keys: Value = serde_json::from_str(&authn.openid_keys()).unwrap();
        assert_eq!(
            (&keys["keys"][0]["alg"], &keys["keys"][0]["kty"]),
            (&json!(algorithm), &json!(kind))
        );
        let configuration = authn.openid_configuration("h:1");
        let configuration: Value = serde_json::from_str(&configuration).unwrap();
        assert_eq!(configuration["id_token_signing_alg_values_supported"], json!([algorithm]));
        assert_eq!(configuration["jwks_uri"], "https://h:1/openid/v1/jwks");
    }
    // As kube-apiserver names the same key.
    let rsa = Authenticator::new(&rsa, clock()).unwrap();
    let keys: Value = serde_json::from_str(&rsa.openid_keys()).unwrap();
    assert_eq!(keys["keys"][0]["kid"], "8ieSITPg93sqehURJxX7SDAru3VF33wOLz8E3S0EoDM");
    assert!(Authenticator::new(b"junk", clock()).is_err());
}

fn ask(authn: &Authenticator, header: &[&str]) -> Result<Proof, Status> {
    let mut headers = HeaderMap::new();
    for header in header {
        headers.append(AUTHORIZATION, header.parse().unwrap());
    }
    authn.identify(None, &headers, &World::new())
}

#[tokio::test]
async fn one_good_proof_is_enough_and_a_bad_one_is_refused() {
    let authn = authenticator(clock());
    let token = authn.issue(&grant()).token;
    let good = format!("bearer {token}");
    let stranger = Identity::anonymous();
    assert_eq!(ask(&authn, &[]).unwrap().identity, stranger);
    assert_eq!(ask(&authn, &[&format!("Basic {token}")]).unwrap().identity, stranger);
    assert_eq!(ask(&authn, &["Bearer x"]), Err(Status::unauthorized()));
    assert_eq!(ask(&authn, &[&good]).unwrap().identity.uid(), "u1");
    assert_eq!(ask(&authn, &[&good, "Bearer x"]).unwrap().identity.uid(), "u1");
    assert_eq!(ask(&authn, &["Bearer x", &good]), Err(Status::unauthorized()));
    let spaced = ask(&authn, &[&format!("Bearer  {token}")]).unwrap();
    assert_eq!((spaced.identity, spaced.warnings.len()), (stranger, 1));
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
    let to = |kind: &str, name: &str, uid: &str| json!({"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": name, "uid": uid}}});
    let answer = ask(to("Pod", "p", "")).unwrap();
    let token = answer.str(&["status", "token"]).unwrap();
    let pod = "authentication.kubernetes.io/pod-uid";
    assert_eq!(authn.verify(token, &[], &world).unwrap().identity.extra()[pod], ["u2"]);
    // What kubelets ask for lives longer than it says.
    let mut of_kubelet = to("Pod", "p", "");
    of_kubelet["spec"]["expirationSeconds"] = json!(3607);
    let answer = ask(of_kubelet).unwrap();
    assert_eq!(answer.str(&["status", "expirationTimestamp"]), Some("2026-01-02T04:04:12Z"));
    let claims = claims_of(answer.str(&["status", "token"]).unwrap());
    let now = clock().now().as_second();
    assert_eq!(claims["exp"], now + 365 * 86_400);
    assert_eq!(claims["kubernetes.io"]["warnafter"], now + 3607);
    let cases = [
        (
            json!({"spec": {"expirationSeconds": 10}}),
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 10: may not specify a duration less than 10 minutes",
        ),
        (
            json!({"spec": {"expirationSeconds": 4_294_967_297_i64}}),
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds",
        ),
        (
            json!({"metadata": {"name": "x"}}),
            "TokenRequest.authentication.k8s.io \"sa\" is invalid: metadata.name: Invalid value: \"x\": must match the service account name if specified",
        ),
        (
            json!({"metadata": {"uid": "x"}}),
            "Operation cannot be fulfilled on TokenRequest.authentication.k8s.io \"sa\": the UID in the token request (x) does not match the UID of the service account (u1)",
        ),
        (to("Pod", "q", ""), "pods \"q\" not found"),
        (to("Node", "q", ""), "nodes \"q\" not found"),
        (
            to("Pod", "p", "u9"),
            "Operation cannot be fulfilled on Pod \"p\": the UID in the bound object reference (u9) does not match the UID in record. The object might have been deleted and then recreated",
        ),
        (to("ConfigMap", "c", ""), "cannot bind token to object of type /v1, Kind=ConfigMap"),
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
        authn.answer_token_review(review, &world).map(|(review, _)| review)
    };
    let good = review(&authn.issue(&grant()).token).unwrap();
    assert_eq!(good.bool(&["status", "authenticated"]), Some(true));
    assert_eq!(good.str(&["status", "user", "username"]), Some("system:serviceaccount:ns:sa"));
    let bad = review("x.y.z").unwrap();
    assert_eq!(bad.get(&["status"]), Some(&json!({"user": {}, "error": "invalid bearer token"})));
    assert_eq!(
        review("").unwrap_err().message,
        "token is required for TokenReview in authentication"
    );
}

#[tokio::test(start_paused = true)]
async fn a_token_is_judged_by_the_wall_clock_after_steps_and_suspends() {
    use jiff::SignedDuration;
    let (clock, hands) = Clock::adjustable("2026-01-02T03:04:05Z".parse().unwrap());
    let authn = authenticator(clock);
    let world = World::new();
    let hour = Grant { seconds: 3600, ..grant() };
    let token = authn.issue(&hour).token;
    let refused = |token: &str| authn.verify(token, &[], &world).err();
    let reviewed = |token: &str| {
        let review = Object::from_value(json!({"spec": {"token": token}})).unwrap();
        let (review, _) = authn.answer_token_review(review, &world).unwrap();
        review.bool(&["status", "authenticated"]) == Some(true)
    };
    let expired = Some(because("service account token has expired"));
    assert_eq!(refused(&token), None);
    // The machine sleeps: no timer moves, and an hour is over all the same.
    hands.suspend(std::time::Duration::from_secs(3661));
    assert_eq!((refused(&token), reviewed(&token)), (expired.clone(), false));
    // The clock was wrong, and is set back: by the time that is now right, it is good.
    hands.step(SignedDuration::from_secs(-3661));
    assert_eq!((refused(&token), reviewed(&token)), (None, true));
    // A token from the future of a clock that was set back.
    hands.step(SignedDuration::from_secs(-61));
    let early = Some(because("service account token is not valid yet"));
    assert_eq!((refused(&token), reviewed(&token)), (early, false));
    // What is issued now counts from now.
    let second = authn.issue(&hour).token;
    assert_eq!(refused(&second), None);
    hands.step(SignedDuration::from_hours(2));
    assert_eq!(refused(&second), expired);
    // Time that passes counts as before.
    let third = authn.issue(&hour).token;
    tokio::time::advance(std::time::Duration::from_secs(3661)).await;
    assert_eq!(refused(&third), expired);
}
