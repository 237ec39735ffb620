use super::*;
use crate::pki::Pki;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::AUTHORIZATION;
use mainstay_object::{Object, Objects};
use serde_json::Value;
use std::collections::BTreeMap;

/// Objects by `resource/namespace/name`.
struct StoredObjects(BTreeMap<String, Value>);

impl StoredObjects {
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

impl Objects for StoredObjects {
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

fn token_claims<'a>() -> TokenClaims<'a> {
    TokenClaims {
        namespace: "ns",
        account: "sa",
        uid: "u1",
        audiences: &[],
        seconds: 600,
        bound: [None, None],
        warn_after: None,
    }
}

fn invalid(reason: &str) -> TokenError {
    TokenError::invalid(reason)
}

const INVALID_SIGNATURE: &str = "go-jose/go-jose: error in cryptographic primitive";
const INVALIDATED: &str = "service account token has been invalidated";

fn claims_of(token: &str) -> Value {
    let claims = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap()
}

const fn bound_object<'a>(kind: &'a str, name: &'a str, uid: &'a str) -> BoundObject<'a> {
    BoundObject { kind, name, uid }
}

#[tokio::test]
async fn token_proves_its_service_account() {
    let authn = authenticator(clock());
    let bound = [Some(bound_object("pod", "p", "u2")), Some(bound_object("node", "n", ""))];
    let issued = authn.issue(&TokenClaims { bound, ..token_claims() });
    assert_eq!(issued.issued_at, "2026-01-02T03:04:05Z");
    assert_eq!(claims_of(&issued.token)["exp"], clock().now().as_second() + 600);
    let verified = authn.verify(&issued.token, &[], &StoredObjects::new()).unwrap();
    let identity = verified.identity;
    assert_eq!(identity.user(), "system:serviceaccount:ns:sa");
    assert_eq!(identity.uid(), "u1");
    assert_eq!(
        identity.groups(),
        ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]
    );
    let extra =
        |key: &str| identity.extra()[&format!("authentication.kubernetes.io/{key}")].clone();
    assert_eq!(extra("pod-name"), ["p"]);
    assert_eq!(extra("pod-uid"), ["u2"]);
    assert_eq!(extra("node-name"), ["n"]);
    assert!(extra("credential-id")[0].starts_with("JTI="), "{:?}", extra("credential-id"));
    assert_eq!(identity.extra().len(), 4);
    assert_eq!(verified.audiences, [ISSUER]);
}

#[tokio::test]
async fn token_ends_with_its_expiry_its_service_account_and_its_bound_object() {
    let authn = authenticator(clock());
    for (kind, path, name, uid) in [
        ("pod", "pods/ns/p", "p", "u2"),
        ("secret", "secrets/ns/s", "s", "u3"),
        ("node", "nodes//n", "n", "u4"),
    ] {
        let bound = [Some(bound_object(kind, name, uid)), None];
        let token = authn.issue(&TokenClaims { bound, ..token_claims() }).token;
        let verify = |objects: &StoredObjects| authn.verify(&token, &[], objects).err();
        assert_eq!(verify(&StoredObjects::new()), None);
        let mut objects = StoredObjects::new();
        objects.0.get_mut(path).unwrap()["metadata"]["uid"] = json!("x");
        let reason =
            format!("{kind} UID (x) does not match service account {kind} ref claim ({uid})");
        assert_eq!(verify(&objects), Some(invalid(&reason)));
        for (deleted, expected) in
            [("2026-01-02T03:03:05Z", None), ("2026-01-02T03:03:04Z", Some(invalid(INVALIDATED)))]
        {
            let mut objects = StoredObjects::new();
            objects.0.get_mut(path).unwrap()["metadata"]["deletionTimestamp"] = json!(deleted);
            assert_eq!(verify(&objects), expected);
        }
        objects.0.remove(path);
        assert_eq!(verify(&objects), Some(invalid(INVALIDATED)));
    }
    let token = authn.issue(&token_claims()).token;
    let mut objects = StoredObjects::new();
    let account = "serviceaccounts/ns/sa";
    objects.0.get_mut(account).unwrap()["metadata"]["deletionTimestamp"] =
        json!("2026-01-01T00:00:00Z");
    let verify = |objects: &StoredObjects| authn.verify(&token, &[], objects).err().unwrap();
    assert_eq!(verify(&objects), invalid("service account ns/sa has been deleted"));
    objects.0.get_mut(account).unwrap()["metadata"]["uid"] = json!("x");
    assert_eq!(verify(&objects), invalid("service account UID (x) does not match claim (u1)"));
    objects.0.remove(account);
    assert_eq!(verify(&objects), invalid("serviceaccounts \"sa\" not found"));
    let expired = invalid("service account token has expired");
    for (seconds, expected) in [(600, None), (660, None), (661, Some(expired))] {
        let time = clock().now() + jiff::SignedDuration::from_secs(seconds);
        let later = Authenticator { clock: Clock::starting_at(time), ..authn.clone() };
        assert_eq!(later.verify(&token, &[], &StoredObjects::new()).err(), expected);
    }
}

/// The results of kube-apiserver 1.35.4 for the same tokens.
#[tokio::test]
async fn forged_and_foreign_tokens_are_invalid() {
    let authn = authenticator(clock());
    let objects = StoredObjects::new();
    let token = authn.issue(&token_claims()).token;
    let parts: Vec<&str> = token.split('.').collect();
    let encode = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let mut claims = claims_of(&token);
    claims["kubernetes.io"]["serviceaccount"]["name"] = json!("admin");
    let changed = encode(claims.clone());
    let with_head = |head: Value| format!("{}.{}.{}", encode(head), parts[1], parts[2]);
    let foreign = authenticator(clock()).issue(&token_claims()).token;
    let no_key = || invalid("invalid signature, no keys found");
    let cases = [
        (String::new(), TokenError::Foreign),
        ("a.b".to_owned(), TokenError::Foreign),
        ("a.b.c".to_owned(), TokenError::Foreign),
        ("a.b.c.d".to_owned(), TokenError::Foreign),
        (format!("{token}.x"), TokenError::Foreign),
        ("x".repeat(LONG), TokenError::Foreign),
        (format!("{}.{}.{}", parts[0], parts[1], "A".repeat(LONG)), TokenError::Foreign),
        (format!("{}.{}.", parts[0], parts[1]), invalid(INVALID_SIGNATURE)),
        (format!("{}.{changed}.{}", parts[0], parts[2]), invalid(INVALID_SIGNATURE)),
        (format!("{}.{changed}.", encode(json!({"alg": "none"}))), invalid(INVALID_SIGNATURE)),
        (with_head(json!({"alg": "HS256"})), invalid(INVALID_SIGNATURE)),
        (with_head(json!({"alg": "RS256"})), invalid(INVALID_SIGNATURE)),
        (with_head(json!({"alg": "ES384"})), invalid(INVALID_SIGNATURE)),
        (with_head(json!({})), invalid(INVALID_SIGNATURE)),
        (
            with_head(json!({"alg": "ES256", "crit": ["b64"], "b64": false})),
            invalid(INVALID_SIGNATURE),
        ),
        (with_head(json!({"alg": "ES256", "kid": "x"})), no_key()),
        (with_head(json!({"alg": "ES256", "kid": 7})), TokenError::Foreign),
        (format!("{token}="), TokenError::Foreign),
        (foreign, no_key()),
    ];
    for (token, expected) in cases {
        assert_eq!(authn.verify(&token, &[], &objects).err(), Some(expected), "{token}");
    }
    // Tokens with a valid signature and invalid claims.
    let audience = format!(
        "token audiences [\"somebody\"] is invalid for the target audiences [\"{ISSUER}\"]"
    );
    let number = "go-jose/go-jose/jwt: expected number value to unmarshal NumericDate";
    for (field, value, expected) in [
        ("iss", json!("https://elsewhere"), TokenError::Foreign),
        ("exp", json!("soon"), invalid(number)),
        ("exp", json!(-1), invalid("service account token has expired")),
        ("nbf", json!(i64::MAX), invalid("service account token is not valid yet")),
        ("iat", json!(1e300), invalid("service account token is issued in the future")),
        ("aud", json!("somebody"), invalid(&audience)),
        ("kubernetes.io", json!({}), invalid("resource name may not be empty")),
        ("kubernetes.io", json!(7), invalid("resource name may not be empty")),
    ] {
        let mut claims = claims_of(&token);
        claims[field] = value;
        let token = authn.keys.sign(&claims);
        assert_eq!(authn.verify(&token, &[], &objects).err(), Some(expected), "{field}");
    }
    assert_eq!(TokenError::Foreign.to_string(), "invalid bearer token");
    assert_eq!(invalid("why").to_string(), "[invalid bearer token, why]");
}

const LONG: usize = 20_000;

#[tokio::test]
async fn token_is_valid_for_its_audiences_only() {
    let authn = authenticator(clock());
    let vault = ["vault".to_owned()];
    let token = authn.issue(&TokenClaims { audiences: &vault, ..token_claims() }).token;
    let objects = StoredObjects::new();
    assert!(authn.verify(&token, &[], &objects).is_err());
    let requested = ["other".to_owned(), "vault".to_owned()];
    assert_eq!(authn.verify(&token, &requested, &objects).unwrap().audiences, ["vault"]);
    // A token without audiences is for this server.
    for none in [Value::Null, json!([])] {
        let mut claims = claims_of(&token);
        claims["aud"] = none;
        let token = authn.keys.sign(&claims);
        assert_eq!(authn.verify(&token, &[], &objects).unwrap().audiences, [ISSUER]);
        assert!(authn.verify(&token, &requested, &objects).is_err());
    }
}

#[tokio::test]
async fn tokens_of_older_keys_are_accepted_and_the_newest_key_signs() {
    let (objects, new) = (StoredObjects::new(), Pki::ephemeral(&clock(), &[]).unwrap());
    let foreign = authenticator(clock()).issue(&token_claims()).token;
    let first = Pki::ephemeral(&clock(), &[]).unwrap();
    let old = Authenticator::new(first.token_key_pkcs8(), clock()).unwrap();
    let rotated =
        Authenticator::with_keys(new.token_key_pkcs8(), [first.token_key_pkcs8()], clock())
            .unwrap();
    let (before, after) = (old.issue(&token_claims()).token, rotated.issue(&token_claims()).token);
    assert!(rotated.verify(&before, &[], &objects).is_ok());
    assert!(rotated.verify(&after, &[], &objects).is_ok());
    assert!(rotated.verify(&foreign, &[], &objects).is_err());
    assert!(old.verify(&after, &[], &objects).is_err());
    // A token without a key id is checked against each key.
    let without_key_id = |token: &str| {
        let (_, rest) = token.split_once('.').unwrap();
        format!("{}.{rest}", URL_SAFE_NO_PAD.encode(r#"{"alg":"ES256"}"#))
    };
    // The header is signed, so another header makes the signature invalid.
    assert_eq!(
        rotated.verify(&without_key_id(&before), &[], &objects),
        Err(invalid(INVALID_SIGNATURE))
    );
    let keys: Value = serde_json::from_str(&rotated.openid_keys()).unwrap();
    assert_eq!(keys["keys"].as_array().unwrap().len(), 2);
}

/// A change of a Secret and its ServiceAccount.
type SecretChange<'a> = &'a dyn Fn(&mut Value, &mut Value);

#[tokio::test]
async fn legacy_token_is_valid_while_its_secret_contains_it() {
    use base64::engine::general_purpose::STANDARD;
    let authn = authenticator(clock());
    let token = authn.issue_for_secret("ns", "sa", "u1", "s");
    let objects = |token: &str, change: SecretChange<'_>| {
        let mut objects = StoredObjects::new();
        let mut secret = objects.0.remove("secrets/ns/s").unwrap();
        let mut account = objects.0.remove("serviceaccounts/ns/sa").unwrap();
        secret["data"] = json!({"token": STANDARD.encode(token)});
        change(&mut secret, &mut account);
        objects.0.insert("secrets/ns/s".to_owned(), secret);
        objects.0.insert("serviceaccounts/ns/sa".to_owned(), account);
        objects
    };
    let verify = |objects: &StoredObjects| authn.verify(&token, &[], objects);
    let verified = verify(&objects(&token, &|_, _| {})).unwrap();
    assert_eq!(verified.identity.user(), "system:serviceaccount:ns:sa");
    assert!(verified.identity.extra().is_empty());
    assert_eq!(
        verified.secret_use.map(|secret_use| (secret_use.secret, secret_use.day)),
        Some(("s".into(), "2026-01-02".into()))
    );
    assert_eq!(verified.warning, None);
    for day in ["2026-01-02", "2026-01-03"] {
        let recorded = objects(&token, &|secret, _| {
            secret["metadata"]["labels"] = json!({"kubernetes.io/legacy-token-last-used": day});
        });
        assert_eq!(verify(&recorded).unwrap().secret_use, None);
    }
    let auto_generated = objects(&token, &|_, account| account["secrets"] = json!([{"name": "s"}]));
    assert!(verify(&auto_generated).unwrap().warning.is_some());
    let cases: [(SecretChange<'_>, &str); 6] = [
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
    for (change, reason) in cases {
        assert_eq!(verify(&objects(&token, change)), Err(invalid(reason)));
    }
    for (claim, reason) in [
        ("sub", "sub claim is missing"),
        ("kubernetes.io/serviceaccount/secret.name", "secretName claim is missing"),
    ] {
        let mut claims = claims_of(&token);
        claims.as_object_mut().unwrap().remove(claim);
        let result = authn.verify(&authn.keys.sign(&claims), &[], &StoredObjects::new());
        assert_eq!(result, Err(invalid(reason)));
    }
}

#[tokio::test]
async fn keys_of_all_algorithms_sign_tokens() {
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair};
    let random = SystemRandom::new();
    let p384 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, &random).unwrap();
    let rsa = x509_parser::pem::Pem::iter_from_buffer(include_bytes!("rsa.pem"))
        .next()
        .unwrap()
        .unwrap()
        .contents;
    for (key, algorithm, kind) in [(p384.as_ref(), "ES384", "EC"), (&rsa, "RS256", "RSA")] {
        let authn = Authenticator::new(key, clock()).unwrap();
        let token = authn.issue(&token_claims()).token;
        assert!(authn.verify(&token, &[], &StoredObjects::new()).is_ok());
        assert_eq!(
            authn.verify(&format!("{}AAAA", &token[..token.len() - 4]), &[], &StoredObjects::new()),
            Err(invalid(INVALID_SIGNATURE))
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
    // kube-apiserver's id of the same key.
    let rsa = Authenticator::new(&rsa, clock()).unwrap();
    let keys: Value = serde_json::from_str(&rsa.openid_keys()).unwrap();
    assert_eq!(keys["keys"][0]["kid"], "8ieSITPg93sqehURJxX7SDAru3VF33wOLz8E3S0EoDM");
    assert!(Authenticator::new(b"junk", clock()).is_err());
}

fn identify(authn: &Authenticator, header: &[&str]) -> Result<Proof, Status> {
    let mut headers = HeaderMap::new();
    for header in header {
        headers.append(AUTHORIZATION, header.parse().unwrap());
    }
    authn.identify(None, &headers, &StoredObjects::new())
}

#[tokio::test]
async fn first_valid_credential_identifies_the_sender_and_an_invalid_one_gets_401() {
    let authn = authenticator(clock());
    let token = authn.issue(&token_claims()).token;
    let valid = format!("bearer {token}");
    let anonymous = Identity::anonymous();
    assert_eq!(identify(&authn, &[]).unwrap().identity, anonymous);
    assert_eq!(identify(&authn, &[&format!("Basic {token}")]).unwrap().identity, anonymous);
    assert_eq!(identify(&authn, &["Bearer x"]), Err(Status::unauthorized()));
    assert_eq!(identify(&authn, &[&valid]).unwrap().identity.uid(), "u1");
    assert_eq!(identify(&authn, &[&valid, "Bearer x"]).unwrap().identity.uid(), "u1");
    assert_eq!(identify(&authn, &["Bearer x", &valid]), Err(Status::unauthorized()));
    let spaced = identify(&authn, &[&format!("Bearer  {token}")]).unwrap();
    assert_eq!((spaced.identity, spaced.warnings.len()), (anonymous, 1));
}

#[tokio::test]
async fn token_requests_have_the_results_of_kube_apiserver() {
    let authn = authenticator(clock());
    let objects = StoredObjects::new();
    let account = objects.get("serviceaccounts", "ns", "sa").unwrap();
    let create = |request: Value| {
        authn.create_token(Object::from_value(request).unwrap(), &account, &objects)
    };
    let response = create(json!({"spec": {}})).unwrap();
    assert_eq!(response.i64(&["spec", "expirationSeconds"]), Some(3600));
    assert_eq!(response.str(&["status", "expirationTimestamp"]), Some("2026-01-02T04:04:05Z"));
    assert_eq!(response.name(), "sa");
    let bound_to = |kind: &str, name: &str, uid: &str| json!({"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": name, "uid": uid}}});
    let response = create(bound_to("Pod", "p", "")).unwrap();
    let token = response.str(&["status", "token"]).unwrap();
    let pod = "authentication.kubernetes.io/pod-uid";
    assert_eq!(authn.verify(token, &[], &objects).unwrap().identity.extra()[pod], ["u2"]);
    // A kubelet's token lives longer than its expiration timestamp.
    let mut kubelet_request = bound_to("Pod", "p", "");
    kubelet_request["spec"]["expirationSeconds"] = json!(3607);
    let response = create(kubelet_request).unwrap();
    assert_eq!(response.str(&["status", "expirationTimestamp"]), Some("2026-01-02T04:04:12Z"));
    let claims = claims_of(response.str(&["status", "token"]).unwrap());
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
        (bound_to("Pod", "q", ""), "pods \"q\" not found"),
        (bound_to("Node", "q", ""), "nodes \"q\" not found"),
        (
            bound_to("Pod", "p", "u9"),
            "Operation cannot be fulfilled on Pod \"p\": the UID in the bound object reference (u9) does not match the UID in record. The object might have been deleted and then recreated",
        ),
        (bound_to("ConfigMap", "c", ""), "cannot bind token to object of type /v1, Kind=ConfigMap"),
    ];
    for (request, expected) in cases {
        assert_eq!(create(request).unwrap_err().message, expected);
    }
}

#[tokio::test]
async fn token_reviews_name_the_identity_or_the_error() {
    let authn = authenticator(clock());
    let objects = StoredObjects::new();
    let review = |token: &str| {
        let review = Object::from_value(json!({"spec": {"token": token}})).unwrap();
        authn.review_token(review, &objects).map(|(review, _)| review)
    };
    let valid = review(&authn.issue(&token_claims()).token).unwrap();
    assert_eq!(valid.bool(&["status", "authenticated"]), Some(true));
    assert_eq!(valid.str(&["status", "user", "username"]), Some("system:serviceaccount:ns:sa"));
    let invalid = review("x.y.z").unwrap();
    assert_eq!(
        invalid.get(&["status"]),
        Some(&json!({"user": {}, "error": "invalid bearer token"}))
    );
    assert_eq!(
        review("").unwrap_err().message,
        "token is required for TokenReview in authentication"
    );
}

#[tokio::test(start_paused = true)]
async fn token_times_follow_the_wall_clock_after_steps_and_suspends() {
    use jiff::SignedDuration;
    let (clock, hands) = Clock::adjustable("2026-01-02T03:04:05Z".parse().unwrap());
    let authn = authenticator(clock);
    let objects = StoredObjects::new();
    let hour = TokenClaims { seconds: 3600, ..token_claims() };
    let token = authn.issue(&hour).token;
    let error = |token: &str| authn.verify(token, &[], &objects).err();
    let is_authenticated = |token: &str| {
        let review = Object::from_value(json!({"spec": {"token": token}})).unwrap();
        let (review, _) = authn.review_token(review, &objects).unwrap();
        review.bool(&["status", "authenticated"]) == Some(true)
    };
    let expired = Some(invalid("service account token has expired"));
    assert_eq!(error(&token), None);
    // While the machine sleeps, no timer moves, but the token expires.
    hands.suspend(std::time::Duration::from_secs(3661));
    assert_eq!((error(&token), is_authenticated(&token)), (expired.clone(), false));
    // The clock was wrong and is set back: the token is valid at the right time.
    hands.step(SignedDuration::from_secs(-3661));
    assert_eq!((error(&token), is_authenticated(&token)), (None, true));
    // The clock is set back to before the token was issued.
    hands.step(SignedDuration::from_secs(-61));
    let early = Some(invalid("service account token is not valid yet"));
    assert_eq!((error(&token), is_authenticated(&token)), (early, false));
    // A new token follows the clock as it is now.
    let second = authn.issue(&hour).token;
    assert_eq!(error(&second), None);
    hands.step(SignedDuration::from_hours(2));
    assert_eq!(error(&second), expired);
    // Time without steps counts, too.
    let third = authn.issue(&hour).token;
    tokio::time::advance(std::time::Duration::from_secs(3661)).await;
    assert_eq!(error(&third), expired);
}
