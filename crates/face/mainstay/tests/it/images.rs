//! Image registry of `mainstay up`: `--image`, and push and pull by other programs.

use crate::harness::{Up, http_get, mainstay};
use mainstay_testdata::skipped;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/sample");

/// The registry's address in the output of `up`.
fn registry(said: &str) -> &str {
    let line = said.lines().find_map(|line| line.strip_prefix("registry    http://"));
    line.expect("the address of the registry is told")
}

fn skopeo(arguments: &[&str]) -> Option<Output> {
    let output = Command::new("skopeo").args(arguments).output().ok();
    if output.is_none() {
        skipped("push and pull with skopeo: it is not on PATH");
    }
    output
}

#[test]
fn images_are_served_at_the_reported_address_and_kept_for_the_next_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let data = data.to_str().expect("temporary paths are text");
    let image = format!("--image=localhost/sample:v1={SAMPLE}");
    let other = format!("--image=quay.io/fruit/sample={SAMPLE}");
    let up = Up::start(folder.path(), &["--data-dir", data, &image, &other]);
    let address = registry(&up.output).to_owned();
    assert!(up.output.contains("image       localhost/sample:v1 sha256:"), "{}", up.output);
    // Clients read here whether to authenticate.
    assert_eq!(http_get(&address, "/v2/").0, 401);
    let (_, names) = http_get(&address, "/v2/_catalog");
    assert_eq!(names, "{\"repositories\":[\"quay.io/fruit/sample\",\"sample\"]}");
    let (status, manifest) = http_get(&address, "/v2/sample/manifests/v1");
    assert_eq!(
        (status, http_get(&address, "/v2/quay.io/fruit/sample/manifests/latest")),
        (200, (200, manifest))
    );
    push_and_pull(folder.path(), &address, &login(&up.output));
    assert!(up.stop("TERM").0);

    // The data folder has the images, and the registry its port.
    let up = Up::start(folder.path(), &["--data-dir", data]);
    assert_eq!(registry(&up.output), address);
    assert_eq!(http_get(&address, "/v2/sample/manifests/v1").0, 200);
}

/// The credentials file in the output of `up`.
fn login(said: &str) -> PathBuf {
    let line = said.lines().find_map(|line| line.strip_prefix("login       "));
    PathBuf::from(line.expect("the password of the registry is told"))
}

fn push_and_pull(folder: &Path, address: &str, login: &Path) {
    let run = |arguments: &[&str]| {
        let output = skopeo(arguments)?;
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "skopeo {arguments:?}: {error}");
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let at = |name: &str| format!("docker://{address}/{name}");
    let layout = format!("oci:{}:v1", folder.join("layout").display());
    let policy = "--insecure-policy";
    let pulled =
        run(&[policy, "copy", "--all", "--src-tls-verify=false", &at("sample:v1"), &layout]);
    if pulled.is_none() {
        return;
    }
    let (insecure, target) = ("--dest-tls-verify=false", at("pushed/sample:v2"));
    let refused = skopeo(&[policy, "copy", "--all", insecure, &layout, &target]);
    assert!(refused.is_some_and(|output| !output.status.success()), "nobody pushes by default");
    let login = login.to_str().expect("temporary paths are text");
    run(&[policy, "copy", "--all", insecure, "--dest-authfile", login, &layout, &target]);
    let digest =
        |name: &str| run(&["inspect", "--tls-verify=false", "--format={{.Digest}}", &at(name)]);
    assert_eq!(digest("pushed/sample:v2"), digest("sample:v1"));
    // A layout of skopeo is an image source, too.
    let layout = folder.join("layout");
    let image = format!("--image=localhost/again:v1={}", layout.display());
    let up = Up::start(folder, &["--in-memory", &image]);
    assert!(up.output.contains("image       localhost/again:v1 sha256:"), "{}", up.output);
}

#[test]
fn invalid_image_source_is_refused_before_anything_is_served() {
    let folder = tempfile::tempdir().expect("a folder");
    let image = format!("--image=localhost/sample:v1={}", folder.path().display());
    let output = mainstay().args(["up", "--in-memory", "--listen=127.0.0.1:0", &image]).output();
    let output = output.expect("mainstay runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(
        error.contains("localhost/sample:v1") && error.contains("neither a bundle nor a catalog"),
        "{error}"
    );
}

/// Sends a request with these header lines; returns the status and the response.
fn send_request(address: &str, method: &str, path: &str, headers: &str) -> (u16, String) {
    let mut stream = std::net::TcpStream::connect(address).expect("a connection");
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n"
    );
    stream.write_all(head.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.expect("a status"), answer.to_lowercase())
}

/// Files below a folder that other users can read.
fn readable_by_others(folder: &Path) -> Vec<PathBuf> {
    let mode = |path: &Path| path.symlink_metadata().expect("there").permissions().mode();
    if mode(folder).trailing_zeros() >= 6 {
        return Vec::new();
    }
    let mut found = vec![folder.to_owned()];
    if folder.is_dir() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            found.extend(readable_by_others(&entry.expect("an entry").path()));
        }
    }
    found
}

#[test]
fn push_needs_the_password_and_cross_site_requests_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    // A folder that other users can read, as usual.
    std::fs::create_dir(&data).expect("made");
    std::fs::set_permissions(&data, PermissionsExt::from_mode(0o755)).expect("opened");
    let image = format!("--image=localhost/sample:v1={SAMPLE}");
    let up = Up::start(folder.path(), &["--data-dir", data.to_str().expect("text"), &image]);
    let (address, login) = (registry(&up.output).to_owned(), login(&up.output));
    assert_eq!(login, folder.path().join("kubeconfig.registry/config.json"));
    assert_eq!(login.metadata().expect("there").permissions().mode() & 0o777, 0o600);
    assert_eq!(readable_by_others(login.parent().expect("a folder")), Vec::<PathBuf>::new());
    let others = readable_by_others(&data);
    assert_eq!(others, std::slice::from_ref(&data), "what is in it is closed");

    let begin = "/v2/pushed/sample/blobs/uploads/";
    let length = "Content-Length: 0\r\n";
    let (status, answer) = send_request(&address, "POST", begin, length);
    assert_eq!(status, 401, "{answer}");
    assert!(answer.contains("www-authenticate: basic realm=\"mainstay\""), "{answer}");
    assert!(answer.contains("\"code\":\"unauthorized\""), "{answer}");
    let text = std::fs::read_to_string(&login).expect("the password");
    let text: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let basic = text["auths"][&address]["auth"].as_str().expect("an entry for the address");
    let known = format!("{length}Authorization: Basic {basic}\r\n");
    assert_eq!(send_request(&address, "POST", begin, &known).0, 202);
    for foreign in ["Origin: http://evil.example", "Origin: null", "Sec-Fetch-Site: cross-site"] {
        // Even with the password, which a browser may have stored.
        let (status, answer) =
            send_request(&address, "POST", begin, &format!("{known}{foreign}\r\n"));
        assert_eq!(status, 403, "{foreign}: {answer}");
        assert!(answer.contains("\"code\":\"denied\""), "{answer}");
        assert_eq!(
            send_request(&address, "GET", "/v2/sample/manifests/v1", &format!("{foreign}\r\n")).0,
            403
        );
    }
    assert_eq!(send_request(&address, "GET", "/v2/sample/manifests/v1", "").0, 200);

    // Our own commands find the credentials beside the kubeconfig.
    let layout = format!("oci:{}", folder.path().join("copy").display());
    let (from, to) = (format!("{address}/sample:v1"), format!("{address}/pushed/again:v1"));
    let run = |kubeconfig: Option<&Path>, arguments: &[&str]| {
        let mut command = mainstay();
        command.args(["image", "copy"]).args(arguments).env("HOME", folder.path());
        command.env_remove("KUBECONFIG").env_remove("XDG_DATA_HOME");
        if let Some(kubeconfig) = kubeconfig {
            command.env("KUBECONFIG", kubeconfig);
        }
        command.output().expect("mainstay runs")
    };
    let pulled = run(None, &[&from, &layout]);
    assert!(pulled.status.success(), "{}", String::from_utf8_lossy(&pulled.stderr));
    assert!(!run(None, &[&layout, &to]).status.success(), "there is no password");
    let pushed = run(Some(&up.kubeconfig), &[&layout, &to]);
    assert!(pushed.status.success(), "{}", String::from_utf8_lossy(&pushed.stderr));
    assert_eq!(send_request(&address, "GET", "/v2/pushed/again/manifests/v1", "").0, 200);
    assert!(up.stop("TERM").0);
    assert!(!login.exists(), "the password goes with the cluster");
}
