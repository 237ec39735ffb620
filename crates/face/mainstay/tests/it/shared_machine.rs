//! Shared machines: hostile files of other users, and full disks.

use crate::harness::{Up, mainstay, tls_client, tls_cluster};
use mainstay_object::{Object, builtin};
use mainstay_testdata::skipped;
use serde_json::json;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The id of a user that does not exist.
const OTHER_USER: u32 = 12_345;

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary paths are text")
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo runs").success());
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect()
}

/// The error output of an `up` that is refused as a usage error.
fn refusal(arguments: &[&str]) -> String {
    let output = mainstay().args(["up", "--listen", "127.0.0.1:0"]).args(arguments).output();
    refused(&output.expect("mainstay runs"))
}

fn refused(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    error
}

/// A folder like `/tmp`.
fn folder_like_tmp() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o1777)).expect("opened");
    folder
}

#[test]
fn start_refuses_a_fifo_or_the_link_of_another_user_where_it_writes() {
    let folder_like_tmp = folder_like_tmp();
    let at = |name: &str| folder_like_tmp.path().join(name);
    fifo(&at("fifo"));
    let error = refusal(&["--in-memory", "--kubeconfig", text(&at("fifo"))]);
    assert!(error.contains("it is a fifo") && error.contains("--kubeconfig PATH"), "{error}");
    let error = refusal(&["--in-memory", "--audit-log", text(&at("fifo"))]);
    assert!(error.contains("nobody reads") && error.contains("--audit-log FILE"), "{error}");
    // The lock and the catalog list of a data folder.
    for (folder, file) in [("store", "lock"), ("", "catalogs.json")] {
        let data = at(&format!("data-{file}"));
        fs::create_dir_all(data.join(folder)).expect("made");
        fifo(&data.join(folder).join(file));
        let error = refusal(&["--data-dir", text(&data)]);
        let says = error.to_lowercase().contains("a fifo");
        assert!(says && error.contains(file), "{error}");
    }
    symlink(at("victim"), at("link")).expect("linked");
    if lchown(at("link"), Some(OTHER_USER), None).is_err() {
        return skipped("links of another user: only root can make them");
    }
    for flag in ["--kubeconfig", "--audit-log"] {
        let error = refusal(&["--in-memory", flag, text(&at("link"))]);
        assert!(error.contains("another user (12345)"), "{flag}: {error}");
    }
    assert!(!at("victim").exists());
}

#[test]
fn data_folder_of_another_user_or_writable_by_all_is_refused() {
    let folder_like_tmp = folder_like_tmp();
    let error = refusal(&["--data-dir", text(folder_like_tmp.path())]);
    assert!(error.contains("everybody") && error.contains("--data-dir DIR"), "{error}");
    assert_eq!(names(folder_like_tmp.path()), Vec::<String>::new());
    let data = folder_like_tmp.path().join("data");
    fs::create_dir(&data).expect("made");
    if lchown(&data, Some(OTHER_USER), None).is_err() {
        return skipped("folders of another user: only root can make them");
    }
    let error = refusal(&["--data-dir", text(&data)]);
    assert!(error.contains("another user (12345)") && error.contains("--data-dir DIR"), "{error}");
    // The default folders, too.
    for inner in ["store", "pki", "served", "pulled"] {
        let data = folder_like_tmp.path().join(format!("with-{inner}"));
        fs::create_dir_all(data.join(inner)).expect("made");
        lchown(data.join(inner), Some(OTHER_USER), None).expect("given away");
        let error = refusal(&["--data-dir", text(&data)]);
        assert!(error.contains(inner) && error.contains("another user (12345)"), "{error}");
    }
}

#[test]
fn temporary_files_are_in_private_folders_with_random_names() {
    let folder_like_tmp = folder_like_tmp();
    let image = format!("--image=localhost/a:v1={}/sample", env!("CARGO_MANIFEST_DIR"));
    // A runtime folder that other users can read is not used.
    let runtime = folder_like_tmp.path().join("runtime");
    fs::create_dir(&runtime).expect("made");
    fs::set_permissions(&runtime, PermissionsExt::from_mode(0o755)).expect("opened");
    let up = Up::start_with(
        &[("TMPDIR", text(folder_like_tmp.path())), ("XDG_RUNTIME_DIR", text(&runtime))],
        &["--listen", "127.0.0.1:0", "--in-memory", &image],
    );
    let kubeconfig = up.output.lines().find_map(|line| line.strip_prefix("kubeconfig  "));
    let kubeconfig = PathBuf::from(kubeconfig.expect("the kubeconfig is told"));
    assert!(kubeconfig.starts_with(folder_like_tmp.path()) && kubeconfig.exists());
    assert_eq!(names(&runtime), Vec::<String>::new());
    let created_folders: Vec<String> =
        names(folder_like_tmp.path()).into_iter().filter(|name| name != "runtime").collect();
    assert_eq!(created_folders.len(), 2, "{created_folders:?}");
    for name in &created_folders {
        let about = folder_like_tmp.path().join(name).symlink_metadata().expect("there");
        assert!(about.is_dir() && about.mode() & 0o777 == 0o700, "{name}");
        let random = name.rsplit('-').next().expect("a name");
        assert!(random.len() == 32 && random.chars().all(|c| c.is_ascii_hexdigit()), "{name}");
    }
    assert_eq!(kubeconfig.metadata().expect("there").mode() & 0o777, 0o600);
    assert!(up.stop("TERM").0);
    assert_eq!(names(folder_like_tmp.path()), ["runtime"], "nothing is left");

    fs::set_permissions(&runtime, PermissionsExt::from_mode(0o700)).expect("closed");
    let up = Up::start_with(
        &[("TMPDIR", text(folder_like_tmp.path())), ("XDG_RUNTIME_DIR", text(&runtime))],
        &["--listen", "127.0.0.1:0", "--in-memory"],
    );
    assert_eq!(names(&runtime).len(), 1);
    assert!(up.stop("INT").0);
    assert_eq!(names(&runtime), Vec::<String>::new());
}

#[test]
fn blocked_start_ends_on_a_signal() {
    let folder = tempfile::tempdir().expect("a folder");
    let (certificate, data) = (folder.path().join("certificate"), folder.path().join("data"));
    fifo(&certificate);
    for signal in ["TERM", "INT"] {
        let mut child = mainstay()
            .args(["run", "--listen", "127.0.0.1:0", "--data-dir", text(&data)])
            .args(["--tls-cert", text(&certificate), "--tls-key", text(&certificate)])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("mainstay starts");
        // Opened for reading and writing: reading waits for data that never comes.
        let writer = fs::OpenOptions::new().write(true).open(&certificate).expect("it reads");
        let killed =
            Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
        assert!(killed.expect("kill runs").success());
        let status = child.wait().expect("it ends");
        assert_eq!(status.code(), Some(0), "it ends as it was asked to, and not by the signal");
        drop(writer);
    }
}

/// Whether small disks can be made.
fn can_mount(folder: &Path) -> bool {
    Command::new("unshare")
        .args(["-m", "mount", "-t", "tmpfs", "none", text(folder)])
        .output()
        .is_ok_and(|output| output.status.success())
}

#[test]
fn restart_on_a_full_disk_fails_at_once_with_the_cause() {
    let (before, disk) = (tempfile::tempdir().expect("a"), tempfile::tempdir().expect("a folder"));
    if !can_mount(disk.path()) {
        return skipped("a restart on a full disk: only who may mount can make a small one");
    }
    let data = before.path().join("data");
    let up = Up::start(before.path(), &["--data-dir", text(&data)]);
    let kubeconfig = up.kubeconfig.clone();
    assert!(up.stop("TERM").0, "it ends in order");
    // More nodes than before: controllers write them, and the startup waits for controllers.
    let script = format!(
        "mount -t tmpfs -o size=64m none {disk} && cp -a {data} {disk}/data && \
         cat /dev/zero > {disk}/filler 2>/dev/null; \
         exec timeout 20 {program} up --listen 127.0.0.1:0 --nodes 9 --data-dir {disk}/data \
         --kubeconfig {kubeconfig}",
        disk = text(disk.path()),
        kubeconfig = text(&kubeconfig),
        data = text(&data),
        program = env!("CARGO_BIN_EXE_mainstay"),
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]).env("NO_COLOR", "1");
    let error = refused(&command.output().expect("unshare runs")).to_lowercase();
    assert!(error.contains("no space left") && error.contains("free disk space"), "{error}");
}

#[test]
fn start_on_a_full_disk_is_refused_with_the_cause() {
    let folder = tempfile::tempdir().expect("a folder");
    let mounted = |size: &str| {
        let script = format!(
            "mount -t tmpfs -o size={size} none {disk} && exec timeout 20 {program} up \
             --listen 127.0.0.1:0 --data-dir {disk}/data",
            disk = text(folder.path()),
            program = env!("CARGO_BIN_EXE_mainstay"),
        );
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", &script]).env("NO_COLOR", "1");
        command
    };
    if !can_mount(folder.path()) {
        return skipped("a full disk: only who may mount can make a small one");
    }
    // From a disk too small for the data folder to one with room for the CRDs. There the failing write
    // is one that a client waits for, or a small one after a large one.
    for size in ["4k", "8k", "16k", "32k", "64k", "128k", "384k", "528k", "552k", "600k", "768k"] {
        let error = refused(&mounted(size).output().expect("unshare runs")).to_lowercase();
        assert!(error.contains("no space left"), "{size}: {error}");
        let remedies = ["make room", "check the free space", "choose another", "name another"];
        assert!(remedies.iter().any(|remedy| error.contains(remedy)), "{size}: {error}");
    }
}

#[tokio::test]
async fn removed_data_folder_refuses_writes_and_fails_readyz() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let up = Up::start(folder.path(), &["--data-dir", text(&data), "--bare"]);
    let cluster = tls_cluster(&up.kubeconfig).await;
    let client = tls_client(&up.kubeconfig).await;
    let ask = async |path: &str| {
        let request = http::Request::get(path).body(Vec::new()).expect("a request");
        client.request_text(request).await.map_err(|error| error.to_string())
    };
    let map = |name: &str| {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "default"},
        });
        Object::from_value(map).expect("an object")
    };
    cluster.create(&builtin::CONFIG_MAP, &map("before")).await.expect("created");
    assert_eq!(ask("/readyz").await.as_deref(), Ok("ok"));
    fs::remove_dir_all(&data).expect("removed");
    let refused = cluster.create(&builtin::CONFIG_MAP, &map("after")).await.expect_err("refused");
    let status = refused.status().expect("a status");
    assert_eq!(status.code, 500, "{status:?}");
    assert!(status.message.contains("was removed"), "{}", status.message);
    let red = ask("/readyz").await.expect_err("it is not ready");
    assert!(red.contains("[-]etcd-readiness failed"), "{red}");
    // Existing objects can still be read.
    cluster.get(&builtin::CONFIG_MAP, Some("default"), "before").await.expect("read");
    assert_eq!(ask("/livez").await.as_deref(), Ok("ok"));
}

#[tokio::test]
async fn catalog_image_that_the_machines_policy_rejects_is_not_pulled() {
    let folder = tempfile::tempdir().expect("a folder");
    let policy = folder.path().join("policy.json");
    let write = |text: &str| {
        let mut file = fs::File::create(&policy).expect("made");
        file.write_all(text.as_bytes()).expect("written");
    };
    write(r#"{"default": [{"type": "reject"}]}"#);
    let kubeconfig = folder.path().join("kubeconfig");
    let up = Up::start_with(
        &[("CONTAINERS_POLICY_JSON", text(&policy))],
        &["--listen", "127.0.0.1:0", "--in-memory", "--kubeconfig", text(&kubeconfig)],
    );
    let cluster = tls_cluster(&kubeconfig).await;
    let sources = mainstay_api::resources::CATALOG_SOURCE;
    for (name, wanted) in [("rejected", "is rejected by policy"), ("twice", "duplicate key")] {
        let source = json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
            "metadata": {"name": name, "namespace": "olm"},
            "spec": {"sourceType": "grpc", "image": "registry.invalid/catalog:v1"},
        });
        let source = Object::from_value(source).expect("an object");
        cluster.create(&sources, &source).await.expect("created");
        crate::harness::until(&cluster, &sources, Some("olm"), |source| {
            let message = source.str(&["status", "message"]).unwrap_or_default();
            (source.name() == name && message.contains(wanted)).then_some(())
        })
        .await;
        write(
            r#"{"default": [{"type": "reject"}], "default": [{"type": "insecureAcceptAnything"}]}"#,
        );
    }
    drop(up);
}
