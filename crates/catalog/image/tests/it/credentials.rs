//! Credentials and proxies.

use base64::Engine as _;
use mainstay_image::{
    credentials::{Keyring, Login, default_files},
    registry::{Dialer, NoProxy, Proxies, Proxy, RegistrySecret, TcpDialer},
};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

fn auth(text: &str) -> serde_json::Value {
    json!({"auth": base64::engine::general_purpose::STANDARD.encode(text)})
}

fn name(login: Option<&Login>) -> String {
    match login {
        None => "nobody".to_owned(),
        Some(Login::Password { name, password }) => format!("{name}/{}", password.reveal()),
        Some(Login::Identity(token)) => format!("token {}", token.reveal()),
    }
}

#[tokio::test]
async fn most_specific_key_wins() {
    let file = json!({"auths": {
        "quay.io": auth("host:1"),
        "https://quay.io/org": auth("org:2"),
        "quay.io/org/name": auth("name:with:colons"),
        "https://index.docker.io/v1/": auth("docker:4"),
        "https://old.test/v2/": auth("old:5"),
        "*.wild.test:5000": auth("wild:6"),
        "a.wild.test:5000": auth("tame:7"),
        "identity.test": {"auth": "", "identitytoken": "idt"},
        "plain.test": {"username": "plain", "password": "8"},
        "empty.test": {},
        "padded.test": auth("padded:9\0\0"),
    }});
    let mut keyring = Keyring::new();
    keyring.add_file("first", file.to_string().as_bytes()).unwrap();
    let second = json!({"auths": {"quay.io": auth("second:x"), "late.test": auth("late:10")}});
    keyring.add_file("second", second.to_string().as_bytes()).unwrap();
    keyring.add_file("old", json!({"cfg.test": auth("cfg:11")}).to_string().as_bytes()).unwrap();
    keyring.add("added.test", "added", RegistrySecret::new("12"));
    for (repository, want) in [
        ("quay.io/x", "host/1"),
        ("quay.io/org/x", "org/2"),
        ("quay.io/organisation/x", "host/1"),
        ("quay.io/org/name", "name/with:colons"),
        ("quay.io/org/name/deeper", "name/with:colons"),
        ("docker.io/library/busybox", "docker/4"),
        ("old.test/x", "old/5"),
        ("b.wild.test:5000/x", "wild/6"),
        ("a.wild.test:5000/x", "tame/7"),
        ("a.b.wild.test:5000/x", "nobody"),
        ("b.wild.test/x", "nobody"),
        ("identity.test/x", "token idt"),
        ("plain.test/x", "plain/8"),
        ("empty.test/x", "nobody"),
        ("padded.test/x", "padded/9"),
        ("late.test/x", "late/10"),
        ("cfg.test/x", "cfg/11"),
        ("added.test/x", "added/12"),
        ("quay.io.evil.test/x", "nobody"),
    ] {
        assert_eq!(name(keyring.login(repository).await.unwrap().as_ref()), want, "{repository}");
    }
    assert!(!format!("{keyring:?}").contains("with:colons"));
}

#[test]
fn credential_errors_do_not_contain_credentials() {
    for (text, says) in [
        ("{\"auths\": {\"a\": {\"auth\": s3cret}}}".to_owned(), "line 1, column"),
        (
            json!({"auths": {"a": {"auth": "s3cret!"}}}).to_string(),
            "the entry for \"a\" is not base64",
        ),
        (json!({"auths": {"a": auth("s3cret")}}).to_string(), "has no colon"),
        (json!({"auths": {"a": auth("n:s3cret\r\nx")}}).to_string(), "line break"),
        (json!({"auths": "s3cret"}).to_string(), "not a credentials file"),
        (json!({"credsStore": "../../s3cret"}).to_string(), "other characters"),
        (json!({"credHelpers": {"a": "x y"}}).to_string(), "other characters"),
    ] {
        let error = Keyring::new().add_file("place", text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
        assert!(!error.contains("s3cret") || text.contains("../.."), "{error}");
    }
}

#[test]
fn default_files_are_those_of_docker_and_podman() {
    let lookup = |known: &'static [(&str, &str)]| {
        move |name: &str| known.iter().find(|one| one.0 == name).map(|one| one.1.to_owned())
    };
    let paths = |known| -> Vec<String> {
        default_files(lookup(known))
            .iter()
            .map(|path: &PathBuf| path.display().to_string())
            .collect()
    };
    assert_eq!(paths(&[("REGISTRY_AUTH_FILE", "/x.json"), ("HOME", "/h")]), ["/x.json"]);
    assert_eq!(
        paths(&[("HOME", "/h"), ("XDG_RUNTIME_DIR", "/run/1")]),
        [
            "/run/1/containers/auth.json",
            "/h/.config/containers/auth.json",
            "/h/.docker/config.json",
            "/h/.dockercfg"
        ]
    );
    assert_eq!(paths(&[("DOCKER_CONFIG", "/d")]), ["/d/config.json"]);
    assert!(paths(&[]).is_empty());
}

#[test]
fn proxies_are_parsed_as_in_go() {
    let proxies = Proxies::from_environment(|name| match name {
        "https_proxy" => Some("proxy.test:3128".to_owned()),
        "HTTP_PROXY" => Some("http://name:pass%40word@proxy.test".to_owned()),
        _ => None,
    });
    let proxies = proxies.unwrap();
    assert_eq!(proxies.https, "http://proxy.test:3128".parse().ok());
    assert!(!format!("{proxies:?}").contains("word"));
    assert!("socks5://proxy".parse::<Proxy>().is_ok());
    assert!("ftp://proxy".parse::<Proxy>().is_err());
    let none = NoProxy::new("a.test, .b.test,*.c.test,10.0.0.0/8,192.168.1.1,d.test:8080,fd00::/8");
    for (host, port, want) in [
        ("a.test", 443, true),
        ("x.a.test", 443, true),
        ("xa.test", 443, false),
        ("b.test", 443, false),
        ("x.b.test", 443, true),
        ("x.c.test", 443, true),
        ("10.1.2.3", 443, true),
        ("11.1.2.3", 443, false),
        ("192.168.1.1", 80, true),
        ("d.test", 8080, true),
        ("d.test", 443, false),
        ("[fd00::1]", 443, true),
        ("fe00::1", 443, false),
        ("localhost", 443, true),
        ("127.0.0.1", 443, true),
        ("[::1]", 443, true),
        ("elsewhere.test", 443, false),
    ] {
        assert_eq!(none.covers(host, port), want, "{host}:{port}");
    }
    assert!(NoProxy::new("*").covers("anything", 1));
}

#[tokio::test]
async fn credential_helpers_provide_logins() {
    let folder = tempfile::tempdir().unwrap();
    // A separate process writes the scripts: a file that is open for writing cannot be executed.
    let make = |name: &str, script: &str| {
        let path = folder.path().join(format!("docker-credential-{name}"));
        let written = std::process::Command::new("sh")
            .args(["-c", "printf '#!/bin/sh\\n%s\\n' \"$2\" > \"$1\" && chmod +x \"$1\"", "sh"])
            .arg(&path)
            .arg(script)
            .status();
        assert!(written.unwrap().success());
    };
    make("good", r#"read -r server; echo "{\"Username\":\"$1 $server\",\"Secret\":\"s3cret\"}""#);
    make("token", r#"echo '{"Username":"<token>","Secret":"s3cret"}'"#);
    make("none", "echo 'credentials not found in native keychain'; exit 1");
    make("bad", "echo s3cret; exit 3");
    make("garbage", "echo s3cret");
    let keyring = |file: serde_json::Value| {
        let mut keyring = Keyring::new().with_helpers_in(folder.path().to_owned());
        keyring.add_file("file", file.to_string().as_bytes()).unwrap();
        keyring
    };
    let by_host = |helper: &str| keyring(json!({"credHelpers": {"r.test": helper}}));
    let by_default = |helper: &str| keyring(json!({"auths": {"r.test": {}}, "credsStore": helper}));
    for (keyring, repository, want) in [
        (by_host("good"), "r.test/a", "get r.test/s3cret"),
        (by_host("good"), "other.test/a", "nobody"),
        (by_host("none"), "r.test/a", "nobody"),
        (by_host("token"), "r.test/a", "token s3cret"),
        (by_default("good"), "r.test/a", "get r.test/s3cret"),
        (by_default("good"), "docker.io/library/a", "get https://index.docker.io/v1//s3cret"),
    ] {
        assert_eq!(name(keyring.login(repository).await.unwrap().as_ref()), want, "{repository}");
    }
    for helper in ["bad", "garbage", "missing"] {
        let error = by_host(helper).login("r.test/a").await.unwrap_err().to_string();
        assert!(error.contains(helper) && !error.contains("s3cret"), "{error}");
    }
}

#[test]
fn grpc_uses_its_own_proxy_variables() {
    let variables = [
        ("HTTPS_PROXY", "http://web.test"),
        ("HTTP_PROXY", "http://web.test"),
        ("grpc_proxy", "socks5://small.test"),
        ("GRPC_PROXY", "http://name:word@grpc.test:3128"),
        ("NO_PROXY", "a.test:50051,.svc"),
    ];
    let found = |known: &[(&str, &str)], host: &str, port: u16| {
        let lookup = |name: &str| {
            known.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        Proxies::for_grpc(lookup).unwrap().of(false, host, port).cloned()
    };
    let proxy = |text: &str| Some(text.parse::<Proxy>().unwrap());
    let grpc = || proxy("http://name:word@grpc.test:3128");
    assert_eq!(found(&variables, "b.test", 50051), grpc());
    assert_eq!(found(&variables, "a.test", 50052), grpc());
    assert_eq!(found(&variables, "a.test", 50051), None);
    assert_eq!(found(&variables, "cat.olm.svc", 50051), None);
    assert_eq!(found(&variables, "127.0.0.1", 50051), None);
    assert_eq!(found(&variables[..3], "b.test", 1), proxy("socks5h://small.test:1080"));
    assert_eq!(found(&variables[..2], "b.test", 1), None, "those for the web lead nowhere here");
    assert!(
        Proxies::for_grpc(|name| (name == "GRPC_PROXY").then(|| "ftp://p".to_owned())).is_err()
    );
}

#[tokio::test]
async fn socks_proxy_gets_credentials_and_resolves_the_host() {
    for fine in [true, false] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut said = [0; 4];
            // Version 5, and two authentication methods: none, and a password.
            stream.read_exact(&mut said[..2]).await.unwrap();
            let ways = usize::from(said[1]);
            stream.read_exact(&mut said[..ways]).await.unwrap();
            stream.write_all(&[5, 2]).await.unwrap();
            let mut login = [0; 13];
            stream.read_exact(&mut login).await.unwrap();
            stream.write_all(&[1, u8::from(!fine)]).await.unwrap();
            if fine {
                let mut wanted = [0; 4 + 1 + 6 + 2];
                stream.read_exact(&mut wanted).await.unwrap();
                assert_eq!(wanted, *b"\x05\x01\x00\x03\x06r.test\xc3\x83");
                // The first bytes of the host arrive with the response.
                stream.write_all(b"\x05\0\0\x01\0\0\0\0\0\0hello").await.unwrap();
            }
            login
        });
        let proxy: Proxy = format!("socks5://name:s3cr%65t@{address}").parse().unwrap();
        let dial: Arc<dyn Dialer> = Arc::new(TcpDialer);
        match proxy.lead(&dial, "r.test", 50051).await {
            Ok(mut stream) => {
                let mut text = String::new();
                stream.read_to_string(&mut text).await.unwrap();
                assert!(fine && text == "hello", "{text}");
            }
            Err(error) => {
                let error = error.to_string();
                assert!(
                    !fine && error.starts_with("the proxy refuses the connection: "),
                    "{error}"
                );
                assert!(!error.contains("s3cret"), "{error}");
            }
        }
        assert_eq!(served.await.unwrap(), *b"\x01\x04name\x06s3cret");
    }
}
