//! Forged tokens, certificates and headers.

use super::{Client, shows_canary};
use crate::report::Report;
use crate::server::{ATTACKER_NAMESPACE, Server, VICTIM_NAMESPACE};
use crate::wire::Identity;
use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use std::sync::Arc;

/// The path that every forged request reads.
fn secret() -> String {
    format!("/api/v1/namespaces/{VICTIM_NAMESPACE}/secrets/canary")
}

/// Tokens, forged in every known way.
pub(super) async fn tokens(server: &Server, report: &mut Report) -> anyhow::Result<()> {
    let row = report.row("access", "forged tokens", 174);
    let good = server.token(ATTACKER_NAMESPACE, "mallory", &json!({})).await?;
    let mut forged = token_forgeries(&good)?;
    let foreign = json!({"audiences": ["somebody-else"]});
    forged.push((
        "of another audience".to_owned(),
        server.token(ATTACKER_NAMESPACE, "mallory", &foreign).await?,
    ));
    forged.push(("of a deleted account".to_owned(), token_of_deleted(server).await?));
    for (what, token) in &forged {
        let mut connection = server.connect(&Identity::Anonymous).await?;
        let value = format!("Bearer {token}");
        let response =
            connection.request("GET", &secret(), &[("authorization", &value)], b"").await;
        let response = response.with_context(|| format!("a token {what}"))?;
        // An empty token is no token: the request is anonymous.
        let refused = response.status == 401 || (token.is_empty() && response.status == 403);
        row.check(refused, || format!("a token {what}: {} {}", response.status, response.text()));
    }
    // The same tokens in other APIs that accept tokens.
    let admin_like = &forged[0].1;
    let protocol = format!("base64url.bearer.authorization.k8s.io.{}", BASE64.encode(admin_like));
    let places: [(&str, Vec<(&str, String)>); 5] = [
        ("in the query", Vec::new()),
        ("in a cookie", vec![("cookie", format!("token={admin_like}"))]),
        (
            "as basic credentials",
            vec![("authorization", format!("Basic {}", BASE64.encode("admin:admin")))],
        ),
        (
            "twice",
            vec![
                ("authorization", "Bearer x".to_owned()),
                ("authorization", format!("Bearer {admin_like}")),
            ],
        ),
        (
            "as a WebSocket protocol",
            vec![
                ("upgrade", "websocket".to_owned()),
                ("connection", "Upgrade".to_owned()),
                ("sec-websocket-version", "13".to_owned()),
                ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==".to_owned()),
                ("sec-websocket-protocol", format!("v4.channel.k8s.io, {protocol}")),
            ],
        ),
    ];
    for (what, headers) in &places {
        let path = if headers.is_empty() {
            format!("{}?access_token={admin_like}", secret())
        } else {
            secret()
        };
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut connection = server.connect(&Identity::Anonymous).await?;
        let response = connection.request("GET", &path, &headers, b"").await?;
        row.check(response.is_refusal() || response.status == 400, || {
            format!("a token {what}: {} {}", response.status, response.text())
        });
    }
    // The valid token works, so that the errors above are meaningful.
    let mut connection = server.connect(&Identity::Token(good)).await?;
    let own = format!("/api/v1/namespaces/{ATTACKER_NAMESPACE}/secrets");
    let response = connection.request("GET", &own, &[], b"").await?;
    row.check(response.status == 200, || format!("the good token: {}", response.status));
    row.done();
    Ok(())
}

async fn token_of_deleted(server: &Server) -> anyhow::Result<String> {
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "gone"}});
    let accounts = format!("/api/v1/namespaces/{ATTACKER_NAMESPACE}/serviceaccounts");
    server.must("POST", &accounts, Some(&account)).await?;
    let token = server.token(ATTACKER_NAMESPACE, "gone", &json!({})).await?;
    server.must("DELETE", &format!("{accounts}/gone"), None).await?;
    Ok(token)
}

/// Forgeries of a valid token, each with a description.
fn token_forgeries(good: &str) -> anyhow::Result<Vec<(String, String)>> {
    let parts: Vec<&str> = good.split('.').collect();
    let [head, claims, signature] = parts[..] else { anyhow::bail!("a token has three parts") };
    let read = |part: &str| -> anyhow::Result<Value> {
        Ok(serde_json::from_slice(&BASE64.decode(part)?)?)
    };
    let (header, payload) = (read(head)?, read(claims)?);
    let encode = |value: &Value| BASE64.encode(value.to_string());
    let elevated: Vec<(&str, Value)> = {
        let with = |change: &dyn Fn(&mut Value)| {
            let mut claims = payload.clone();
            change(&mut claims);
            claims
        };
        vec![
            (
                "of an administrator's account",
                with(&|claims| {
                    claims["sub"] = json!(
                        "system:serviceaccount:kube-system:clusterrole-aggregation-controller"
                    );
                    claims["kubernetes.io"]["namespace"] = json!("kube-system");
                    claims["kubernetes.io"]["serviceaccount"]["name"] =
                        json!("clusterrole-aggregation-controller");
                }),
            ),
            ("of system:admin", with(&|claims| claims["sub"] = json!("system:admin"))),
            ("with groups", with(&|claims| claims["groups"] = json!(["system:masters"]))),
            ("that never ends", with(&|claims| claims["exp"] = json!(99_999_999_999_u64))),
            (
                "of the victim's account",
                with(&|claims| {
                    claims["sub"] =
                        json!(format!("system:serviceaccount:{VICTIM_NAMESPACE}:default"));
                }),
            ),
            ("as it is", payload.clone()),
        ]
    };
    let random = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)
        .map_err(|error| anyhow::anyhow!("{error}"))?;
    let own = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random)
        .map_err(|error| anyhow::anyhow!("{error}"))?;
    let sign = |text: &str| -> anyhow::Result<String> {
        let new_signature =
            own.sign(&random, text.as_bytes()).map_err(|error| anyhow::anyhow!("{error}"))?;
        Ok(BASE64.encode(new_signature.as_ref()))
    };
    let mut out = Vec::new();
    for (what, claims) in &elevated {
        let body = encode(claims);
        if *what != "as it is" {
            out.push((format!("{what}, old signature"), format!("{head}.{body}.{signature}")));
        }
        for algorithm in ["none", "None", "NONE", "nOnE", ""] {
            let mut header = header.clone();
            header["alg"] = json!(algorithm);
            let text = format!("{}.{body}", encode(&header));
            out.push((format!("{what}, alg {algorithm:?} and no signature"), format!("{text}.")));
            out.push((
                format!("{what}, alg {algorithm:?}, old signature"),
                format!("{text}.{signature}"),
            ));
        }
        for (algorithm, method) in [
            ("HS256", hmac::HMAC_SHA256),
            ("HS384", hmac::HMAC_SHA384),
            ("HS512", hmac::HMAC_SHA512),
        ] {
            for key in ["", "secret", header["kid"].as_str().unwrap_or_default()] {
                let mut header = header.clone();
                header["alg"] = json!(algorithm);
                let text = format!("{}.{body}", encode(&header));
                let tag = hmac::sign(&hmac::Key::new(method, key.as_bytes()), text.as_bytes());
                out.push((
                    format!("{what}, {algorithm} with the key {key:?}"),
                    format!("{text}.{}", BASE64.encode(tag.as_ref())),
                ));
            }
        }
        for (trick, value) in [
            ("kid", json!("../../etc/passwd")),
            ("kid", json!("' OR 1=1")),
            ("kid", json!("")),
            ("kid", Value::Null),
            ("jku", json!("https://127.0.0.1:1/keys")),
            ("x5u", json!("https://127.0.0.1:1/cert")),
            ("jwk", json!({"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"})),
            ("x5c", json!(["AAAA"])),
            ("crit", json!(["exp"])),
        ] {
            let mut header = header.clone();
            header[trick] = value.clone();
            let text = format!("{}.{body}", encode(&header));
            out.push((
                format!("{what}, own key, {trick} {value}"),
                format!("{text}.{}", sign(&text)?),
            ));
        }
        let text = format!("{head}.{body}");
        out.push((format!("{what}, own key"), format!("{text}.{}", sign(&text)?)));
        out.push((format!("{what}, zero signature"), format!("{text}.{}", BASE64.encode([0; 64]))));
        out.push((format!("{what}, empty signature"), format!("{text}.")));
    }
    // Each part, damaged at several places.
    for (at, part) in parts.iter().enumerate() {
        for place in [0, 1, part.len() / 3, part.len() / 2] {
            let mut bytes = part.as_bytes().to_vec();
            bytes[place] = if bytes[place] == b'A' { b'B' } else { b'A' };
            let mut changed: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
            changed[at] = String::from_utf8(bytes)?;
            out.push((format!("damaged at {place} of part {at}"), changed.join(".")));
        }
        for length in [0, 1, part.len() / 2, part.len() - 3] {
            let mut changed: Vec<&str> = parts.clone();
            changed[at] = &part[..length];
            out.push((format!("cut at {length} of part {at}"), changed.join(".")));
        }
    }
    for (what, token) in [
        ("with four parts", format!("{good}.{signature}")),
        ("with two parts", format!("{head}.{claims}")),
        ("with an empty part", format!("{head}..{signature}")),
        ("doubled", format!("{good},{good}")),
        ("of dots", "..".to_owned()),
        ("that is empty", String::new()),
        ("of a megabyte less", "A".repeat(100_000)),
        ("with padding", format!("{head}=.{claims}=.{signature}==")),
        ("in capitals", good.to_uppercase()),
        ("nested", BASE64.encode(good)),
    ] {
        out.push((what.to_owned(), token));
    }
    // ECDSA signatures are malleable: the twin of a signature is valid for the same claims, so it
    // is no forgery. Only changed claims count.
    Ok(out)
}

/// Client certificates of other CAs.
pub(super) async fn certificates(server: &Server, report: &mut Report) -> anyhow::Result<()> {
    let row = report.row("access", "forged client certificates", 8);
    let names: [(&str, &[&str]); 4] = [
        ("kubernetes-admin", &["system:masters"]),
        ("system:admin", &["system:masters"]),
        ("front-proxy-client", &[]),
        ("system:kube-controller-manager", &[]),
    ];
    for (name, groups) in names {
        for self_signed in [true, false] {
            let identity = forged_certificate(name, groups, self_signed)?;
            // A failed handshake is as good as an error response.
            let fine = match server.connect(&identity).await {
                Err(_) => true,
                Ok(mut connection) => {
                    let headers =
                        [("x-remote-user", "system:admin"), ("x-remote-group", "system:masters")];
                    let asked = connection.request("GET", &secret(), &headers, b"").await;
                    asked.is_err() || asked.is_ok_and(|response| response.is_refusal())
                }
            };
            row.check(fine, || format!("a certificate of {name}, self-signed {self_signed}"));
        }
    }
    row.done();
    Ok(())
}

fn forged_certificate(name: &str, groups: &[&str], self_signed: bool) -> anyhow::Result<Identity> {
    let params = |name: &str| -> anyhow::Result<CertificateParams> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        Ok(params)
    };
    let mut leaf = params(name)?;
    for group in groups {
        leaf.distinguished_name.push(DnType::OrganizationName, *group);
    }
    let key = KeyPair::generate()?;
    let chain = if self_signed {
        vec![leaf.self_signed(&key)?.der().clone()]
    } else {
        // The name of the real CA, with another key.
        let mut authority = params("kubernetes-ca")?;
        authority.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let authority_key = KeyPair::generate()?;
        let root = authority.self_signed(&authority_key)?;
        let issuer = Issuer::new(authority, authority_key);
        vec![leaf.signed_by(&key, &issuer)?.der().clone(), root.der().clone()]
    };
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    Ok(Identity::Certificate(Arc::new((chain, key))))
}

/// Headers that claim an identity, from a client without that permission.
pub(super) async fn headers(
    server: &Server,
    attacker: &Identity,
    report: &mut Report,
) -> anyhow::Result<()> {
    let row = report.row("access", "forged headers and impersonation", 24);
    let tricks: [&[(&str, &str)]; 12] = [
        &[("x-remote-user", "system:admin"), ("x-remote-group", "system:masters")],
        &[("x-remote-user", "system:admin"), ("x-remote-uid", "1"), ("x-remote-extra-a", "b")],
        &[("impersonate-user", "system:admin")],
        &[("impersonate-user", "system:admin"), ("impersonate-group", "system:masters")],
        &[
            ("impersonate-user", "system:serviceaccount:attacker:mallory"),
            ("impersonate-group", "system:masters"),
        ],
        &[("impersonate-group", "system:masters")],
        &[("impersonate-uid", "0")],
        &[("impersonate-extra-scopes", "all")],
        &[("impersonate-user", "system:serviceaccount:victim:default")],
        &[("Impersonate-User", "system:anonymous"), ("Impersonate-Group", "system:masters")],
        &[
            ("x-forwarded-user", "system:admin"),
            ("x-forwarded-for", "127.0.0.1"),
            ("x-real-ip", "127.0.0.1"),
        ],
        &[
            ("x-original-url", "/healthz"),
            ("x-rewrite-url", "/healthz"),
            ("x-http-method-override", "GET"),
        ],
    ];
    for identity in [&Identity::Anonymous, attacker] {
        let mut client = Client::new(server, identity);
        for headers in tricks {
            let response = client.request("GET", &secret(), headers, b"").await?;
            // Impersonation without a user is a bad request before authorization.
            let refused = response.is_refusal() || response.status == 400;
            row.check(refused && !shows_canary(&response.body), || {
                format!("{headers:?}: {} {}", response.status, response.text())
            });
        }
    }
    row.done();
    Ok(())
}
