//! Images in the cluster: given with `--image`, pushed and pulled by other programs.

use crate::harness::{Up, http_get, mainstay};
use mainstay_testdata::skipped;
use std::path::Path;
use std::process::{Command, Output};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/sample");

/// Where images are served, as `up` said it.
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
fn images_are_served_where_up_says_and_kept_for_the_next_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let data = data.to_str().expect("temporary paths are text");
    let image = format!("--image=localhost/sample:v1={SAMPLE}");
    let other = format!("--image=quay.io/fruit/sample={SAMPLE}");
    let up = Up::start(folder.path(), &["--data-dir", data, &image, &other]);
    let address = registry(&up.said).to_owned();
    assert!(up.said.contains("image       localhost/sample:v1 sha256:"), "{}", up.said);
    assert_eq!(http_get(&address, "/v2/").0, 200);
    let (_, names) = http_get(&address, "/v2/_catalog");
    assert_eq!(names, "{\"repositories\":[\"quay.io/fruit/sample\",\"sample\"]}");
    let (status, manifest) = http_get(&address, "/v2/sample/manifests/v1");
    assert_eq!(
        (status, http_get(&address, "/v2/quay.io/fruit/sample/manifests/latest")),
        (200, (200, manifest))
    );
    push_and_pull(folder.path(), &address);
    assert!(up.stop("TERM").0);

    // The data folder has them, at the same port.
    let up = Up::start(folder.path(), &["--data-dir", data]);
    assert_eq!(registry(&up.said), address);
    assert_eq!(http_get(&address, "/v2/sample/manifests/v1").0, 200);
}

fn push_and_pull(folder: &Path, address: &str) {
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
    run(&[policy, "copy", "--all", "--dest-tls-verify=false", &layout, &at("pushed/sample:v2")]);
    let digest =
        |name: &str| run(&["inspect", "--tls-verify=false", "--format={{.Digest}}", &at(name)]);
    assert_eq!(digest("pushed/sample:v2"), digest("sample:v1"));
    // What skopeo wrote is taken as an image, too.
    let layout = folder.join("layout");
    let image = format!("--image=localhost/again:v1={}", layout.display());
    let up = Up::start(folder, &["--in-memory", &image]);
    assert!(up.said.contains("image       localhost/again:v1 sha256:"), "{}", up.said);
}

#[test]
fn what_is_no_image_is_refused_before_anything_is_served() {
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
