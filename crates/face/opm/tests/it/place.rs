//! Folders of tests, with both command lines to run in them.

use clap::Parser;
use mainstay_cli::args::{Arguments, Command};
use mainstay_cli::{bundle, catalog, image};
use mainstay_clock::Clock;
use std::{fs, path::Path};
use tempfile::TempDir;

/// A policy that accepts every image.
const ACCEPT: &str = r#"{"default":[{"type":"insecureAcceptAnything"}]}"#;

/// The exit code and the output of a command.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u8,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Answer {
    fn of(code: u8, out: Vec<u8>, err: Vec<u8>) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code, out: text(out), err: text(err) }
    }
}

/// A folder to work in.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    /// A place with one catalog of one file.
    pub(crate) fn with(content: &str) -> Self {
        Self::new().file("c/catalog.yaml", content)
    }

    /// Writes a file.
    pub(crate) fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// `mainstay catalog …`; the arguments are separated by blanks.
    pub(crate) fn catalog(&self, arguments: &str) -> Answer {
        self.mainstay("catalog", arguments)
    }

    /// `mainstay bundle …`; the arguments are separated by blanks.
    pub(crate) fn bundle(&self, arguments: &str) -> Answer {
        self.mainstay("bundle", arguments)
    }

    /// `mainstay image …`; the arguments are separated by blanks. The policy of the machine does not
    /// count.
    pub(crate) fn image(&self, arguments: &str) -> Answer {
        let policy = self.path().join(".config/containers/policy.json");
        fs::create_dir_all(policy.parent().unwrap()).unwrap();
        fs::write(policy, ACCEPT).unwrap();
        self.mainstay("image", arguments)
    }

    fn mainstay(&self, command: &str, arguments: &str) -> Answer {
        let words = ["mainstay", command].into_iter().chain(arguments.split(' '));
        let parsed = Arguments::try_parse_from(words).unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        // Neither the user nor the machine decides a test.
        let variable = |name: &str| match name {
            "HOME" | "XDG_DATA_HOME" | "TMPDIR" => Some(self.path().display().to_string()),
            "CONTAINERS_REGISTRIES_CONF" => Some("/dev/null".to_owned()),
            _ => None,
        };
        let mut io = catalog::Io {
            stdout: &mut out,
            stderr: &mut err,
            folder: self.path().to_owned(),
            colour: false,
            terminal: false,
            variable: &variable,
        };
        let exit = match parsed.command {
            Command::Catalog(arguments) => catalog::run(arguments, &mut io),
            Command::Bundle(arguments) => bundle::run(arguments, &mut io),
            Command::Image(arguments) => image::run(*arguments, &mut io),
            _ => unreachable!("no test runs another command"),
        };
        Answer::of(exit as u8, out, err)
    }

    /// `opm …`; the arguments are separated by blanks.
    pub(crate) fn opm(&self, arguments: &str) -> Answer {
        self.opm_with(arguments, &|_| None)
    }

    /// `opm …` with a policy that accepts every image.
    pub(crate) fn opm_pulling(&self, arguments: &str) -> Answer {
        let policy = self.path().join("policy.json");
        fs::write(&policy, ACCEPT).unwrap();
        self.opm_with(arguments, &|name| match name {
            "CONTAINERS_POLICY_JSON" => Some(policy.display().to_string()),
            "CONTAINERS_REGISTRIES_CONF" => Some("/dev/null".to_owned()),
            _ => None,
        })
    }

    fn opm_with(&self, arguments: &str, environment: &dyn Fn(&str) -> Option<String>) -> Answer {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let arguments: Vec<String> = arguments.split(' ').map(str::to_owned).collect();
        let code = mainstay_opm::run(
            &arguments,
            &mut mainstay_opm::Io {
                stdin: &mut std::io::empty(),
                stdout: &mut out,
                stderr: &mut err,
                folder: self.path().to_owned(),
                alpha: false,
                terminal: false,
                clock: Clock::system(),
                environment,
            },
        );
        Answer::of(code, out, err)
    }

    /// The verdicts of both command lines on the catalog in the folder `c`: the exit code of
    /// `opm validate`, and the rules that `mainstay catalog validate` finds broken.
    pub(crate) fn verdicts(&self) -> (u8, Vec<String>) {
        let answer = self.catalog("validate c -o json");
        let found: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
        let problems = found["problems"].as_array().unwrap();
        let rules: Vec<String> =
            problems.iter().map(|problem| problem["rule"].as_str().unwrap().to_owned()).collect();
        assert_eq!(answer.code, u8::from(found["passed"] == false), "{answer:?}");
        (self.opm("validate c").code, rules)
    }
}

/// A package with one channel and one bundle.
pub(crate) const SOUND: &str = "---
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

/// The sound catalog with one thing changed.
pub(crate) fn changed(from: &str, to: &str) -> Place {
    assert!(SOUND.contains(from), "{from}");
    Place::with(&SOUND.replacen(from, to, 1))
}

/// The sound catalog with documents added.
pub(crate) fn added(documents: &str) -> Place {
    Place::with(&format!("{SOUND}---\n{documents}"))
}
