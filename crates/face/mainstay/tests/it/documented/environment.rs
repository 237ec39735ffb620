//! The environment of a page's commands: a folder with the files that the page mentions, a cluster with
//! the sample catalog, and the program under its three names.

use super::page::{ROOT, Statement};
use super::plan::{self, Treatment};
use crate::harness::Up;
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/sample");
const PROGRAM: &str = env!("CARGO_BIN_EXE_mainstay");

/// A child process that is killed when dropped.
struct ChildProcess(Child);

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // `timeout` forwards the signal.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// The environment of a page.
pub(super) struct Environment {
    running: RefCell<Vec<ChildProcess>>,
    up: Option<Up>,
    /// A bare cluster, without controllers.
    bare: OnceCell<Up>,
    /// The first of four free ports.
    port: u16,
    programs: RefCell<BTreeMap<String, bool>>,
    folder: TempDir,
}

impl Environment {
    pub(super) fn new(page: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["bin", "home", "work", "tmp", "up", "bare"] {
            std::fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        let text = std::fs::read_to_string(Path::new(ROOT).join(page)).expect("the page");
        let link =
            |name: &str| symlink(PROGRAM, folder.path().join("bin").join(name)).expect("a link");
        link("mainstay");
        for name in ["opm", "operator-sdk"] {
            // Pages that make the link themselves shall have made it.
            if !(text.contains("ln -s mainstay") && text.contains(&format!("/{name}\""))) {
                link(name);
            }
        }
        let mut environment = Self {
            running: RefCell::default(),
            up: None,
            bare: OnceCell::new(),
            port: free_ports(),
            programs: RefCell::default(),
            folder,
        };
        environment.write_files(page, &text);
        if text.contains("kubectl") && !page.contains("guide") {
            let sample = format!("mine={SAMPLE}");
            let folder = environment.folder.path().join("up");
            environment.up = Some(Up::start(&folder, &["--in-memory", "--catalog", &sample]));
            if environment.has_program("kubectl") {
                environment
                    .run_to_exit("kubectl create namespace team-a", &[0])
                    .expect("a namespace");
            }
        }
        environment
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// The address of the cluster's image registry.
    fn registry(&self) -> String {
        let output = self.up.as_ref().map(|up| up.output.as_str()).unwrap_or_default();
        let line = output.lines().find_map(|line| line.strip_prefix("registry"));
        line.map(|address| address.trim().trim_start_matches("http://").to_owned())
            .unwrap_or_default()
    }

    /// Whether the page's folder has an entry.
    pub(super) fn has(&self, name: &str) -> bool {
        self.work().join(name).exists()
    }

    /// Whether a program is installed.
    pub(super) fn has_program(&self, name: &str) -> bool {
        let known = self.programs.borrow().get(name).copied();
        known.unwrap_or_else(|| {
            let found = self.bash("command -v -- \"$0\"").arg(name).output();
            let found = found.is_ok_and(|output| output.status.success());
            self.programs.borrow_mut().insert(name.to_owned(), found);
            found
        })
    }

    /// Writes the files that a page mentions.
    fn write_files(&self, page: &str, text: &str) {
        let work = self.work();
        let scripts = "crates/face/mainstay/tests/scripts";
        copy(&Path::new(ROOT).join(scripts), &work.join(scripts));
        copy(Path::new(SAMPLE), &work.join("crates/face/mainstay/sample"));
        let kiwi = Path::new(ROOT).join("docs/guide/kiwi");
        copy(&kiwi, &work.join("kiwi"));
        let file = |name: &str, text: &str| {
            let path = work.join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        };
        match page {
            "docs/administrators.md" | "docs/catalogs.md" | "docs/extensions.md" => {
                copy(Path::new(SAMPLE), &work.join("my-catalog"));
                copy(&kiwi, &work.join("my-bundle"));
                for name in ["kiwi", "my-bundle"] {
                    file(&format!("{name}/metadata/annotations.yaml"), ANNOTATIONS);
                }
                file("icon.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>");
                file("README.md", "A teapot.\n");
                file("template.yaml", TEMPLATE);
                file("catalog.yaml", &kiwi_catalog(GRAPH_CHANNEL));
                file("kiwi-catalog/kiwi.yaml", &kiwi_catalog(GRAPH_CHANNEL));
                file("old-catalog/kiwi.yaml", &kiwi_catalog(STRANDED_CHANNEL));
                file("other-catalog/kiwi.yaml", &kiwi_catalog(LATER_CHANNEL));
                file("wrong-catalog/kiwi.yaml", BROKEN_CATALOG);
                copy(&kiwi, &work.join("bundles/kiwi"));
                copy(&kiwi, &work.join("wrong-bundle"));
                file("wrong-bundle/metadata/annotations.yaml", ANNOTATIONS);
                let csv = "wrong-bundle/manifests/kiwi.clusterserviceversion.yaml";
                let text = std::fs::read_to_string(work.join(csv)).expect("a bundle");
                let text = text.replacen("\n  version:", "\n  versio:", 1);
                let text = text.replace("   serviceAccountName:", "   serviceAccountNam:");
                file(csv, &text);
            }
            "docs/resolving.md" => {
                let prefix = text.find("```json\n{\"namespace\"").expect("a universe");
                let universe = text[prefix..].lines().skip(1);
                let universe: Vec<&str> =
                    universe.take_while(|line| !line.starts_with("```")).collect();
                file("universe.json", &universe.join("\n"));
                copy(Path::new(SAMPLE), &work.join("catalog"));
                self.published_catalog("catalog-community-v4.19", "community");
                self.published_catalog("catalog-certified-v4.14", "certified");
            }
            _ => {}
        }
    }

    /// Copies a published catalog from the test data.
    fn published_catalog(&self, archive: &str, name: &str) {
        let data = mainstay_testdata::unpack(archive, "the published catalog");
        if let Some(data) = data {
            let within = std::fs::read_dir(data.path()).expect("a folder").next();
            let catalog = within.expect("a catalog").expect("an entry").path();
            copy(&catalog, &self.work().join(name));
        }
    }

    /// Runs a statement; returns how its result differs from the page.
    pub(super) fn run(&self, statement: &Statement, treatment: Treatment) -> Result<(), String> {
        let (before, text, after) = plan::adapted_statement(statement, self.port, &self.registry());
        if let Some(before) = before {
            self.run_to_exit(before, &[0]).map_err(|error| format!("before it: {error}"))?;
        }
        match treatment {
            Treatment::Exits(codes) => {
                let output = self.run_to_exit(&text, codes)?;
                shows(statement.output.as_deref().unwrap_or_default(), &output)?;
            }
            Treatment::ExitsWithOtherOutput(codes) => drop(self.run_to_exit(&text, codes)?),
            Treatment::RunsUntilReady(ready) => drop(self.run_until_ready(&text, ready)?),
            Treatment::RunsToTheEndOfThePage(ready) => {
                self.running.borrow_mut().push(self.run_until_ready(&text, ready)?);
            }
            Treatment::Skipped(_) => {}
        }
        if let Some(after) = after {
            self.run_to_exit(after, &[0]).map_err(|error| format!("after it: {error}"))?;
        }
        Ok(())
    }

    fn bash(&self, script: &str) -> Command {
        let at = |name: &str| self.folder.path().join(name);
        let mut path = at("bin").into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut command = Command::new("timeout");
        command
            .args(["120", "bash", "-euo", "pipefail", "-c", script])
            .current_dir(self.work())
            .env("PATH", path)
            .env("HOME", at("home"))
            .env("XDG_DATA_HOME", at("home/data"))
            .env("TMPDIR", at("tmp"))
            .env("KUBECACHEDIR", at("home/cache"))
            .env("NO_COLOR", "1")
            .env("PYTHONUNBUFFERED", "1")
            .env_remove("XDG_RUNTIME_DIR")
            .env_remove("MAINSTAY_LOG")
            .env_remove("KUBECONFIG")
            .stdin(Stdio::null());
        let up = if script.contains("mainstay run") {
            let start = || Up::start(&self.folder.path().join("bare"), &["--in-memory", "--bare"]);
            Some(self.bare.get_or_init(start))
        } else {
            self.up.as_ref()
        };
        if let Some(up) = up {
            command.env("KUBECONFIG", &up.kubeconfig);
        }
        command
    }

    fn run_to_exit(&self, text: &str, codes: &[i32]) -> Result<String, String> {
        let output = self.bash(text).output().expect("bash runs");
        let code = output.status.code().unwrap_or(-1);
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        if codes.contains(&code) {
            return Ok(stdout);
        }
        let error = String::from_utf8_lossy(&output.stderr);
        Err(format!("`{text}` ended with {code}:\n{stdout}{error}"))
    }

    fn run_until_ready(&self, text: &str, ready: &str) -> Result<ChildProcess, String> {
        let text = text.split(" #").next().unwrap_or(text).trim_end().trim_end_matches('&');
        // The documented port may be taken here, as on any reader's machine.
        let free = match text.split_whitespace().next() {
            Some("mainstay") if !text.contains("--listen") => " --listen 127.0.0.1:0".to_owned(),
            Some("opm") if !text.contains("-p ") => format!(" -p {}", self.port + 3),
            _ => String::new(),
        };
        let script = format!("exec {text}{free} 2>&1");
        let child = self.bash(&script).stdout(Stdio::piped()).spawn().expect("bash runs");
        let mut running = ChildProcess(child);
        let mut out = BufReader::new(running.0.stdout.take().expect("it is piped"));
        let mut output = String::new();
        loop {
            let from = output.len();
            let read = out.read_line(&mut output).expect("text");
            if read == 0 {
                return Err(format!("`{text}` ended before it was ready:\n{output}"));
            }
            if output[from..].contains(ready) {
                break;
            }
        }
        // The rest of the output is read, so that the process does not block.
        std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
        Ok(running)
    }
}

/// Checks the output against the lines on the page; `…` matches anything.
fn shows(expected: &str, output: &str) -> Result<(), String> {
    let mut lines = output.lines();
    for wanted in expected.lines().map(str::trim_end) {
        if wanted.trim_start().starts_with('…') || wanted.is_empty() {
            continue;
        }
        if !lines.any(|line| line.trim_end() == wanted) {
            return Err(format!("the page shows `{wanted}`, and it said:\n{output}"));
        }
    }
    Ok(())
}

/// Four ports in a row that are free.
fn free_ports() -> u16 {
    let open = |port: u16| TcpListener::bind(("127.0.0.1", port));
    let first = |_: u32| {
        let port = open(0).ok()?.local_addr().ok()?.port();
        (0..4)
            .all(|offset| port.checked_add(offset).is_some_and(|port| open(port).is_ok()))
            .then_some(port)
    };
    (0..100).find_map(first).expect("free ports")
}

/// Copies a folder.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            std::fs::copy(&from, &to).expect("a copy");
        }
    }
}

const ANNOTATIONS: &str = "annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: kiwi
  operators.operatorframework.io.bundle.channels.v1: stable
  operators.operatorframework.io.bundle.channel.default.v1: stable
";

const TEMPLATE: &str = "schema: olm.template.basic
entries:
- {schema: olm.package, name: kiwi, defaultChannel: stable}
- {schema: olm.channel, package: kiwi, name: stable, entries: [{name: kiwi.v1.0.0}]}
";

/// The channel whose graph the page shows.
const GRAPH_CHANNEL: &str = "schema: olm.channel
package: kiwi
name: stable
entries:
- {name: kiwi.v1.0.0}
- {name: kiwi.v1.1.0, replaces: kiwi.v1.0.0}
- {name: kiwi.v1.2.0, replaces: kiwi.v1.0.0, skips: [kiwi.v1.1.0, kiwi.v0.9.0]}
- {name: kiwi.v2.0.0, replaces: kiwi.v1.2.0, skipRange: '>=1.0.0 <1.2.0'}
---
schema: olm.deprecations
package: kiwi
entries:
- reference: {schema: olm.bundle, name: kiwi.v1.2.0}
  message: it leaks
";

/// A channel without an update from 1.0.0 to the head.
const STRANDED_CHANNEL: &str = "schema: olm.channel
package: kiwi
name: stable
entries:
- {name: kiwi.v1.0.0}
- {name: kiwi.v1.1.0, skips: [kiwi.v1.0.0]}
- {name: kiwi.v2.0.0, skips: [kiwi.v1.1.0]}
";

/// A channel whose first entry is newer than the installed bundle.
const LATER_CHANNEL: &str = "schema: olm.channel
package: kiwi
name: stable
entries:
- {name: kiwi.v1.10.0, replaces: kiwi.v1.9.1}
---
schema: olm.channel
package: kiwi
name: next
entries:
- {name: kiwi.v2.0.0, replaces: kiwi.v1.10.0}
";

/// The package `kiwi` with a channel, and a bundle for each entry.
fn kiwi_catalog(channel: &str) -> String {
    let mut text =
        format!("schema: olm.package\nname: kiwi\ndefaultChannel: stable\n---\n{channel}");
    let entries = channel.lines().filter_map(|line| line.strip_prefix("- {name: "));
    for name in entries.map(|line| line.split([',', '}']).next().unwrap_or_default()) {
        let version = name.trim_start_matches("kiwi.v");
        let bundle = format!(
            "---\nschema: olm.bundle\npackage: kiwi\nname: {name}\nimage: example.com/kiwi:v{version}\n\
             properties:\n- type: olm.package\n  value: {{packageName: kiwi, version: {version}}}\n"
        );
        text.push_str(&bundle);
    }
    text
}

/// A catalog with a misspelt field in line 15 and two heads in the channel of line 40.
const BROKEN_CATALOG: &str = "---
schema: olm.package
name: kiwi
defaultChannel: stable
---
schema: olm.bundle
package: kiwi
name: kiwi.v1.0.0
image: example.com/kiwi:v1.0.0
properties:
- type: olm.package
  value:
    packageName: kiwi
    version: 1.0.0
imaeg: example.com/kiwi:v1.0.0
---
schema: olm.bundle
package: kiwi
name: kiwi.v1.1.0
image: example.com/kiwi:v1.1.0
properties:
- type: olm.package
  value: {packageName: kiwi, version: 1.1.0}
---
schema: olm.bundle
package: kiwi
name: kiwi.v1.2.0
image: example.com/kiwi:v1.2.0
properties:
- type: olm.package
  value: {packageName: kiwi, version: 1.2.0}
---
schema: olm.channel
package: kiwi
name: stable
entries:
- name: kiwi.v1.0.0
- name: kiwi.v1.1.0
  replaces: kiwi.v1.0.0
- name: kiwi.v1.2.0
  replaces: kiwi.v1.0.0
";
