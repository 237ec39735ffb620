//! The command line as people and scripts meet it: arguments in, text and exit code out.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod baselines;
mod builds;
mod bundles;
mod drawn;
mod extensions;
mod findings;
mod help;
mod images;
mod journeys;
mod judged;
mod loopback;
mod queries;
mod rendering;
mod resolve;
mod shown;
mod states;
mod uninstall;
mod universes;
mod unwritten;
mod why;

use clap::Parser;
use mainstay_cli::{
    args::{Arguments, Command},
    bundle, catalog, image,
};
use std::{fs, path::Path};
use tempfile::TempDir;

/// What came of a command.
#[derive(Debug)]
struct Answer {
    code: u8,
    out: String,
    err: String,
}

/// A folder to work in.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    /// A place with one catalog of one file.
    fn with(content: &str) -> Self {
        Self::new().file("c/catalog.yaml", content)
    }

    /// Writes a file.
    fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// `mainstay catalog …`; the arguments are separated by blanks.
    fn catalog(&self, arguments: &str) -> Answer {
        self.coloured(arguments, false)
    }

    /// `mainstay bundle …`; the arguments are separated by blanks.
    fn bundle(&self, arguments: &str) -> Answer {
        self.run("bundle", arguments, false)
    }

    /// `mainstay image …`; the arguments are separated by blanks. The machine's own policy does not
    /// count.
    fn image(&self, arguments: &str) -> Answer {
        let policy = self.path().join(".config/containers/policy.json");
        fs::create_dir_all(policy.parent().unwrap()).unwrap();
        fs::write(policy, r#"{"default":[{"type":"insecureAcceptAnything"}]}"#).unwrap();
        self.run("image", arguments, false)
    }

    fn coloured(&self, arguments: &str, colour: bool) -> Answer {
        self.run("catalog", arguments, colour)
    }

    fn run(&self, command: &str, arguments: &str, colour: bool) -> Answer {
        let words = ["mainstay", command].into_iter().chain(arguments.split(' '));
        let parsed = match Arguments::try_parse_from(words) {
            Ok(parsed) => parsed,
            Err(error) => {
                let code = u8::try_from(error.exit_code()).unwrap();
                return Answer { code, out: String::new(), err: error.to_string() };
            }
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let (stdout, stderr) = (&mut out, &mut err);
        let folder = self.path().to_owned();
        // Nothing of the user or the machine shall decide a test.
        let variable = |name: &str| match name {
            "HOME" | "XDG_DATA_HOME" | "TMPDIR" => Some(self.path().display().to_string()),
            "CONTAINERS_REGISTRIES_CONF" => Some("/dev/null".to_owned()),
            _ => None,
        };
        let variable: &dyn Fn(&str) -> Option<String> = &variable;
        let mut io = catalog::Io { stdout, stderr, folder, colour, terminal: false, variable };
        let exit = match parsed.command {
            Command::Catalog(arguments) => catalog::run(arguments, &mut io),
            Command::Bundle(arguments) => bundle::run(arguments, &mut io),
            Command::Image(arguments) => image::run(*arguments, &mut io),
            _ => unreachable!("it was typed"),
        };
        let code = exit as u8;
        answer(code, out, err)
    }
}

fn answer(code: u8, out: Vec<u8>, err: Vec<u8>) -> Answer {
    Answer { code, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}

/// A package with one channel and one bundle.
const SOUND: &str = "---
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
fn changed(from: &str, to: &str) -> Place {
    assert!(SOUND.contains(from), "{from}");
    Place::with(&SOUND.replacen(from, to, 1))
}
