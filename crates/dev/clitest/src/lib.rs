//! Test helpers for command lines: working folders, a registry on loopback, and clusters in this process.
//!
//! Tests of `mainstay` and of `opm` pass arguments, and check exit code, output and files.
//! [`TestFolder`] provides a folder of its own, an environment that does not depend on user and
//! machine, and a few catalogs and bundles. The tests of `opm` add its commands themselves.

#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "helpers of tests fail as tests do"
)]

mod direct_cluster;
mod loopback;
mod no_cluster;

pub use direct_cluster::DirectCluster;
pub use loopback::LoopbackRegistry;
pub use no_cluster::{NoCluster, no_cluster};

use clap::Parser;
use mainstay_cli::args::{Arguments, Command};
use mainstay_command::cluster::{ClusterHandle, ConnectionArguments};
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_content::{bundle, catalog, image};
use serde_json::Value;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// An image policy that accepts every image.
pub const ACCEPT_ANYTHING: &str = r#"{"default":[{"type":"insecureAcceptAnything"}]}"#;

/// Runs a command to completion, as the program does.
pub fn block_on<T>(command: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.unwrap();
    let output = runtime.block_on(command);
    runtime.shutdown_background();
    output
}

/// The exit code and the output of a command.
#[derive(Debug)]
pub struct CommandOutput {
    /// The exit code.
    pub code: u8,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl CommandOutput {
    /// The output of a command that ran.
    pub fn of(code: u8, out: Vec<u8>, err: Vec<u8>) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code, out: text(out), err: text(err) }
    }

    /// The output of a command whose arguments are invalid.
    pub fn refused(error: &clap::Error) -> Self {
        let code = u8::try_from(error.exit_code()).unwrap();
        Self { code, out: String::new(), err: error.to_string() }
    }

    /// The standard output of a successful command, as JSON.
    pub fn json(&self) -> Value {
        assert_eq!(self.code, 0, "{self:?}");
        serde_json::from_str(&self.out).unwrap()
    }
}

/// A temporary working folder.
pub struct TestFolder(TempDir);

impl TestFolder {
    /// An empty folder.
    #[expect(clippy::new_without_default, reason = "a folder is made, which is no default")]
    pub fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    /// A folder with a catalog in one file.
    pub fn with(content: &str) -> Self {
        Self::new().file("c/catalog.yaml", content)
    }

    /// A folder with the bundle `b`: [`CSV`] and [`ANNOTATIONS`].
    pub fn with_bundle() -> Self {
        Self::new()
            .file("b/manifests/csv.yaml", CSV)
            .file("b/metadata/annotations.yaml", ANNOTATIONS)
            .file("b/tests/scorecard/config.yaml", "kind: Configuration\n")
            .file("b/README.md", "not part of the image")
    }

    /// A folder with [`SOUND_CATALOG`], in which one text is replaced.
    pub fn with_changed(from: &str, to: &str) -> Self {
        assert!(SOUND_CATALOG.contains(from), "{from}");
        Self::with(&SOUND_CATALOG.replacen(from, to, 1))
    }

    /// Writes a file.
    #[must_use]
    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Runs `mainstay catalog …`; the arguments are separated by blanks.
    pub fn catalog(&self, arguments: &str) -> CommandOutput {
        self.run("catalog", arguments, false)
    }

    /// The same with a cluster; `'a b'` is one argument.
    pub fn catalog_on<C: ClusterHandle>(
        &self,
        arguments: &str,
        connect: impl AsyncFnOnce(&ConnectionArguments) -> Result<C, CommandFailure>,
    ) -> CommandOutput {
        let quoted = arguments.split('\'').enumerate();
        let words = quoted.flat_map(|(at, part)| match at % 2 {
            0 => part.split_whitespace().collect(),
            _ => vec![part],
        });
        self.run_words("catalog", words, false, connect)
    }

    /// The same with coloured output.
    pub fn coloured(&self, arguments: &str) -> CommandOutput {
        self.run("catalog", arguments, true)
    }

    /// Runs `mainstay bundle …`; the arguments are separated by blanks.
    pub fn bundle(&self, arguments: &str) -> CommandOutput {
        self.run("bundle", arguments, false)
    }

    /// Runs `mainstay image …`; the arguments are separated by blanks. The machine's image policy
    /// is ignored.
    pub fn image(&self, arguments: &str) -> CommandOutput {
        let policy = self.path().join(".config/containers/policy.json");
        fs::create_dir_all(policy.parent().unwrap()).unwrap();
        fs::write(policy, ACCEPT_ANYTHING).unwrap();
        self.run("image", arguments, false)
    }

    fn run(&self, command: &str, arguments: &str, colour: bool) -> CommandOutput {
        self.run_words(command, arguments.split(' '), colour, no_cluster)
    }

    fn run_words<'a, C: ClusterHandle>(
        &self,
        command: &'a str,
        arguments: impl Iterator<Item = &'a str>,
        colour: bool,
        connect: impl AsyncFnOnce(&ConnectionArguments) -> Result<C, CommandFailure>,
    ) -> CommandOutput {
        let words = ["mainstay", command].into_iter().chain(arguments);
        let parsed = match Arguments::try_parse_from(words) {
            Ok(parsed) => parsed,
            Err(error) => return CommandOutput::refused(&error),
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        // Isolates the test from user and machine.
        let variable = |name: &str| match name {
            "HOME" | "XDG_DATA_HOME" | "TMPDIR" => Some(self.path().display().to_string()),
            "CONTAINERS_REGISTRIES_CONF" => Some("/dev/null".to_owned()),
            _ => None,
        };
        let stdin = &mut std::io::empty();
        let mut io = CommandIo {
            colour,
            variable: &variable,
            ..CommandIo::unattended(stdin, &mut out, &mut err, self.path())
        };
        let exit = match parsed.command {
            Command::Catalog(arguments) => block_on(catalog::run(arguments, &mut io, connect)),
            Command::Bundle(arguments) => block_on(bundle::run(arguments, &mut io)),
            Command::Image(arguments) => block_on(image::run(*arguments, &mut io)),
            _ => unreachable!("no other command is typed above"),
        };
        CommandOutput::of(exit as u8, out, err)
    }
}

/// A package with one channel and one bundle.
pub const SOUND_CATALOG: &str = "---
schema: olm.package
name: foo
defaultChannel: preview
---
schema: olm.channel
package: foo
name: preview
entries:
- name: foo.v0.1.0
---
schema: olm.bundle
package: foo
name: foo.v0.1.0
image: example.com/foo:v0.1.0
properties:
- type: olm.package
  value: {packageName: foo, version: 0.1.0}
";

/// A ClusterServiceVersion without validation findings.
pub const CSV: &str = "apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: kiwi.v1.0.0
  annotations: {alm-examples: '[]'}
spec:
  displayName: Kiwi
  version: 1.0.0
  minKubeVersion: 1.25.0
  installModes:
  - {type: AllNamespaces, supported: true}
  install:
    strategy: deployment
    spec: {deployments: []}
";

/// The annotations of its bundle.
pub const ANNOTATIONS: &str = "annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: kiwi
  operators.operatorframework.io.bundle.channels.v1: stable
  operators.operatorframework.io.test.config.v1: tests/scorecard/
  com.redhat.openshift.versions: v4.12
";
