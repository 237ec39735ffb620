//! `opm serve` as a process: its port, its log and its end.

use crate::harness::{http_get, mainstay};
use mainstay_registry::client::RegistryConnection;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

const PACKAGE: &str = "schema: olm.package\nname: kiwi\ndefaultChannel: stable\n";
const CHANNEL: &str =
    "schema: olm.channel\npackage: kiwi\nname: stable\nentries:\n- name: kiwi.v1.0.0\n";
const BUNDLE: &str = "schema: olm.bundle\npackage: kiwi\nname: kiwi.v1.0.0\nimage: example.com/kiwi:1\n\
                      properties:\n- type: olm.package\n  value: {packageName: kiwi, version: 1.0.0}\n";

fn write(folder: &Path, files: &[(&str, &str)]) {
    std::fs::create_dir_all(folder).expect("a folder");
    for (name, text) in files {
        std::fs::write(folder.join(name), text).expect("a file");
    }
}

fn catalog(folder: &Path) {
    write(folder, &[("a.yaml", PACKAGE), ("b.yaml", CHANNEL), ("c.yaml", BUNDLE)]);
}

fn opm(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = mainstay();
    command.arg("opm").args(arguments).current_dir(folder);
    command
}

/// A process that serves; killed when dropped.
struct OpmServe {
    child: Child,
    log: BufReader<ChildStderr>,
}

impl OpmServe {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut child = opm(folder, &[&["serve"], arguments].concat())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let log = BufReader::new(child.stderr.take().expect("its log is piped"));
        Self { child, log }
    }

    /// The log up to a line with these words.
    fn until(&mut self, words: &str) -> String {
        let mut output = String::new();
        while !output.lines().last().is_some_and(|line| line.contains(words)) {
            let read = self.log.read_line(&mut output).expect("its log is text");
            assert!(read > 0, "it ended without a word of `{words}`:\n{output}");
        }
        output
    }

    /// Stops it; returns whether it succeeded, and its log.
    fn stop(mut self, signal: &str) -> (bool, String) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([&format!("-{signal}"), &id]).status();
        assert!(sent.expect("kill runs").success());
        let mut output = String::new();
        self.log.read_to_string(&mut output).expect("its log is text");
        (self.child.wait().expect("it ends").success(), output)
    }
}

impl Drop for OpmServe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn opm_serve_follows_its_folder_and_stops_on_sigterm() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("configs");
    catalog(&place);
    let mut serving = OpmServe::start(folder.path(), &["configs", "-p", "0", "--pprof-addr", ""]);
    let output = serving.until("serving registry");
    assert!(
        output.contains("level=info msg=\"serving registry\" configs=configs port="),
        "{output}"
    );
    let port = output.trim_end().rsplit('=').next().expect("a port");
    let address = format!("127.0.0.1:{port}");
    let names = |address: &str| {
        let (status, body) = http_get(address, "/catalogs/configs/api/v1/metas?package=kiwi");
        assert_eq!(status, 200);
        body.matches("\"name\":\"kiwi.v").count()
    };
    let before = names(&address);

    // Two errors in one edit: both are reported with their places, and the content stays.
    write(&place, &[("b.yaml", "schema: olm.channel\nname: [\n"), ("d.yaml", "schema: 7\n")]);
    let output = serving.until("the one before still is");
    assert!(output.contains("b.yaml:") && output.contains("d.yaml:1"), "{output}");
    assert_eq!(names(&address), before);

    std::fs::remove_file(place.join("d.yaml")).expect("removed");
    let second = BUNDLE.replace("1.0.0", "1.1.0");
    write(
        &place,
        &[
            ("b.yaml", &format!("{CHANNEL}- name: kiwi.v1.1.0\n  replaces: kiwi.v1.0.0\n")),
            ("d.yaml", &second),
        ],
    );
    serving.until("serving changed catalog");
    assert!(names(&address) > before);
    let (success, output) = serving.stop("TERM");
    assert!(success && output.contains("msg=\"shutting down server\""), "{output}");
}

/// AT-FBC-15: the image of a catalog is labelled, and its command serves gRPC, by default on port
/// 50051.
#[test]
fn catalog_image_is_labelled_and_its_command_serves_grpc() {
    let folder = tempfile::tempdir().expect("a folder");
    catalog(&folder.path().join("kiwi-index"));
    let run = |arguments: &[&str]| {
        let output =
            mainstay().args(arguments).current_dir(folder.path()).output().expect("it runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {error}");
        String::from_utf8(output.stdout).expect("text")
    };
    run(&["opm", "generate", "dockerfile", "kiwi-index"]);
    let dockerfile = std::fs::read_to_string(folder.path().join("kiwi-index.Dockerfile"));
    let dockerfile = dockerfile.expect("the Dockerfile");
    for line in [
        "ENTRYPOINT [\"/bin/opm\"]\n",
        "CMD [\"serve\", \"/configs\", ",
        "ADD kiwi-index /configs\n",
        "LABEL operators.operatorframework.io.index.configs.v1=/configs\n",
    ] {
        assert!(dockerfile.contains(line), "{dockerfile}");
    }
    run(&["catalog", "build", "kiwi-index", "oci:image:v1"]);
    let seen = run(&["image", "inspect", "oci:image:v1", "-o", "json"]);
    let seen: serde_json::Value = serde_json::from_str(&seen).expect("JSON");
    assert_eq!(seen["labels"]["operators.operatorframework.io.index.configs.v1"], "/configs");
    run(&["image", "unpack", "oci:image:v1", "root", "--only", "configs"]);
    let help = run(&["opm", "serve", "--help"]);
    let port = help.lines().find(|line| line.contains("--port ")).expect("its port");
    assert!(port.contains("50051"), "{port}");

    let mut serving =
        OpmServe::start(&folder.path().join("root"), &["configs", "-p", "0", "--pprof-addr", ""]);
    let output = serving.until("serving registry");
    let port = output.trim_end().rsplit('=').next().expect("a port");
    let address = format!("127.0.0.1:{port}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let heads = runtime.expect("a runtime").block_on(async {
        let address = address.parse().expect("an address");
        let connection = RegistryConnection::open(&address, Duration::from_secs(30)).await;
        let package = connection.expect("a connection").package("kiwi").await;
        let channels = package.expect("the package").channels;
        channels.into_iter().map(|channel| channel.csv_name).collect::<Vec<_>>()
    });
    assert_eq!(heads, ["kiwi.v1.0.0"]);
}

#[test]
fn termination_log_has_the_reason_of_a_failure() {
    let folder = tempfile::tempdir().expect("a folder");
    catalog(&folder.path().join("good"));
    write(&folder.path().join("bad"), &[("c.yaml", CHANNEL)]);
    for (arguments, reason) in [
        (
            &["nope"][..],
            "failed to load or rebuild cache: failed to rebuild cache: stat .: no such file or directory",
        ),
        (
            &["bad"],
            "failed to load or rebuild cache: failed to rebuild cache: build package index: process package \"kiwi\": unknown package \"kiwi\" for channel \"stable\"",
        ),
        (
            &["good", "-p", "nonsense"],
            "failed to listen: listen tcp: lookup tcp/nonsense: unknown port",
        ),
        (
            &["good", "--pprof-addr", "nonsense"],
            "could not start pprof endpoint: listen tcp: address nonsense: missing port in address",
        ),
        (
            &["good", "--cache-enforce-integrity"],
            "--cache-dir must be specified with --cache-enforce-integrity",
        ),
    ] {
        let log = folder.path().join("log");
        let _ = std::fs::remove_file(&log);
        let arguments = [&["serve", "--termination-log", "log"], arguments].concat();
        let output = opm(folder.path(), &arguments).output().expect("it ends");
        assert_eq!(output.status.code(), Some(1));
        let output = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.contains("level=fatal"), "{output}");
        assert_eq!(std::fs::read_to_string(&log).expect("the log"), reason);
    }
}

#[test]
fn cache_folder_is_checked_against_its_catalog() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| {
        let arguments = [&["serve", "good", "--cache-dir", "cache"], arguments].concat();
        let output = opm(folder.path(), &arguments).output().expect("it ends");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let place = folder.path().join("good");
    catalog(&place);
    let (code, output) = run(&[]);
    assert_eq!(code, Some(1));
    let missing = "open cache/pogreb.v1/digest: no such file or directory";
    assert!(output.contains(missing), "{output}");

    // Serving writes nothing there.
    let unchecked = ["good", "--cache-dir", "cache", "-p", "0", "--cache-enforce-integrity=false"];
    let mut serving = OpmServe::start(folder.path(), &unchecked);
    serving.until("serving registry");
    assert!(serving.stop("INT").0);
    assert!(!folder.path().join("cache").exists());

    assert_eq!(run(&["--cache-only"]), (Some(0), String::new()));
    let serving = ["good", "--cache-dir", "cache", "-p", "0"];
    let mut serving = OpmServe::start(folder.path(), &serving);
    serving.until("serving registry");
    assert!(serving.stop("INT").0);

    write(&place, &[("b.yaml", &CHANNEL.replace("stable", "other"))]);
    write(&place, &[("a.yaml", &PACKAGE.replace("stable", "other"))]);
    let (code, output) = run(&[]);
    assert_eq!(code, Some(1));
    assert!(output.contains("integrity check failed: cache requires rebuild"), "{output}");

    // A cache of upstream has a digest that covers its database: it stays unchanged.
    let database = folder.path().join("cache/pogreb.v1/db");
    write(&database, &[("main.pix", "")]);
    let mut serving = OpmServe::start(folder.path(), &["good", "--cache-dir", "cache", "-p", "0"]);
    serving.until("serving registry");
    assert!(serving.stop("TERM").0);

    let strange = folder.path().join("strange");
    write(&strange, &[("zzz", ""), ("aaa", "")]);
    let (code, output) = run(&["--cache-dir", "strange", "--cache-only"]);
    assert_eq!(code, Some(1));
    assert!(output.contains("cache directory has unexpected contents: aaa,zzz"), "{output}");
}
