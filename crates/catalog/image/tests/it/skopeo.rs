//! Third-party clients against our registry, if they are installed.

use crate::layouts::sample;
use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use mainstay_clock::Clock;
use mainstay_image::{
    layout,
    manifest::{ImageIndex, media_type},
    platform::Platform,
    serve::{RegistryHandler, RegistrySettings},
    store::ImageStore,
};
use std::{convert::Infallible, path::Path};
use tokio::{net::TcpListener, process::Command};

/// Runs skopeo and returns its output.
async fn skopeo(folder: &Path, arguments: &[&str]) -> String {
    let policy = folder.join("policy.json");
    std::fs::write(&policy, r#"{"default":[{"type":"insecureAcceptAnything"}]}"#).unwrap();
    let output = Command::new("skopeo")
        .arg("--policy")
        .arg(&policy)
        .args(arguments)
        .env("HOME", folder)
        .env("XDG_RUNTIME_DIR", folder)
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "skopeo {arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn skopeo_pushes_to_our_registry_and_pulls_from_it() {
    if Command::new("skopeo").arg("--version").output().await.is_err() {
        mainstay_testdata::skipped("skopeo against our registry: it is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let domain = listener.local_addr().unwrap().to_string();
    let theirs = ImageStore::open(folder.path().join("theirs")).unwrap();
    let registry =
        RegistryHandler::new(theirs.clone(), RegistrySettings::new(&domain), Clock::system());
    let serving = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let registry = registry.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request| {
                    let registry = registry.clone();
                    async move { Ok::<_, Infallible>(registry.handle(request).await) }
                });
                let server = auto::Builder::new(TokioExecutor::new());
                let _ = server.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });

    let ours = ImageStore::open(folder.path().join("ours")).unwrap();
    let mut arm = sample(&ours, "for arm");
    arm.platform = Some(Platform::linux("arm64"));
    let amd = sample(&ours, "for amd");
    let index = ImageIndex::oci(vec![amd.clone(), arm]);
    let index = ours.put_json(media_type::OCI_INDEX, &index).unwrap();
    let path = folder.path().join("layout");
    layout::write_folder(&ours, &[("v1".to_owned(), index.clone())], &path).unwrap();
    let source = format!("oci:{}:v1", path.display());
    let target = format!("docker://{domain}/org/name:v1");
    let root = folder.path();

    skopeo(root, &["copy", "--all", "--dest-tls-verify=false", &source, &target]).await;
    let repository = format!("{domain}/org/name");
    let tagged = format!("{repository}:v1").parse().unwrap();
    assert_eq!(theirs.resolve(&tagged).unwrap().unwrap().digest, index.digest);
    let said =
        skopeo(root, &["list-tags", "--tls-verify=false", &format!("docker://{repository}")]).await;
    assert!(said.contains("\"v1\""), "{said}");
    let said = skopeo(root, &["inspect", "--raw", "--tls-verify=false", &target]).await;
    assert_eq!(said.as_bytes(), ours.bytes(&index.digest, 1 << 20).unwrap());

    // Images are mounted, pulled in three formats, and read again.
    let other = format!("docker://{domain}/other:v1");
    let options = ["copy", "--src-tls-verify=false", "--dest-tls-verify=false"];
    skopeo(root, &[&options[..], &["--all", &target, &other]].concat()).await;
    for (form, name) in [("oci-archive", "a.tar"), ("docker-archive", "b.tar"), ("oci", "c")] {
        let path = root.join(name);
        let tag = if form == "docker-archive" { "quay.io/a/b:v1" } else { "v1" };
        let to = format!("{form}:{}:{tag}", path.display());
        let platform = ["--override-arch", "amd64", "--override-os", "linux"];
        skopeo(root, &[&platform[..], &["copy", "--src-tls-verify=false", &target, &to]].concat())
            .await;
        let back = ImageStore::open(root.join(format!("back of {name}"))).unwrap();
        let read = layout::read(&back, &path).unwrap();
        assert_eq!(read.len(), 1, "{form}");
        if form != "docker-archive" {
            assert_eq!(read[0].descriptor.digest, amd.digest, "{form}");
        }
    }
    // skopeo reads archives that this crate writes.
    for form in ["oci-archive", "docker-archive"] {
        let path = root.join(format!("ours {form}.tar"));
        let file = std::fs::File::create(&path).unwrap();
        if form == "oci-archive" {
            layout::write_archive(&ours, &[("v2".to_owned(), amd.clone())], file).unwrap();
        } else {
            let names = vec!["quay.io/a/b:v2".to_owned()];
            layout::write_docker_archive(&ours, &[(names, amd.clone())], file).unwrap();
        }
        let from = format!("{form}:{}", path.display());
        let to = format!("docker://{domain}/{form}:v2");
        skopeo(root, &["copy", "--dest-tls-verify=false", &from, &to]).await;
    }
    serving.abort();
    mainstay_testdata::ran("skopeo against our registry");
}
