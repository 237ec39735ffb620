//! `opm` in folders of tests, beside the commands of `mainstay`.

use mainstay_clitest::{ACCEPT_ANYTHING, CommandOutput, SOUND_CATALOG, TestFolder, block_on};
use mainstay_clock::Clock;
use std::fs;

/// `opm` in a folder of tests.
pub(crate) trait OpmFolder {
    /// `opm …`; the arguments are separated by blanks.
    fn opm(&self, arguments: &str) -> CommandOutput;

    /// `opm …` with a policy that accepts every image.
    fn opm_pulling(&self, arguments: &str) -> CommandOutput;

    /// The verdicts of both command lines on the catalog in the folder `c`: the exit code of
    /// `opm validate`, and the rules that `mainstay catalog validate` finds broken.
    fn verdicts(&self) -> (u8, Vec<String>);
}

impl OpmFolder for TestFolder {
    fn opm(&self, arguments: &str) -> CommandOutput {
        run(self, arguments, &|_| None)
    }

    fn opm_pulling(&self, arguments: &str) -> CommandOutput {
        let policy = self.path().join("policy.json");
        fs::write(&policy, ACCEPT_ANYTHING).unwrap();
        run(self, arguments, &|name| match name {
            "CONTAINERS_POLICY_JSON" => Some(policy.display().to_string()),
            "CONTAINERS_REGISTRIES_CONF" => Some("/dev/null".to_owned()),
            _ => None,
        })
    }

    fn verdicts(&self) -> (u8, Vec<String>) {
        let answer = self.catalog("validate c -o json");
        let found: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
        let problems = found["problems"].as_array().unwrap();
        let rules: Vec<String> =
            problems.iter().map(|problem| problem["rule"].as_str().unwrap().to_owned()).collect();
        assert_eq!(answer.code, u8::from(found["passed"] == false), "{answer:?}");
        (self.opm("validate c").code, rules)
    }
}

fn run(
    folder: &TestFolder,
    arguments: &str,
    environment: &dyn Fn(&str) -> Option<String>,
) -> CommandOutput {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let arguments: Vec<String> = arguments.split(' ').map(str::to_owned).collect();
    let code = block_on(mainstay_opm::run(
        &arguments,
        &mut mainstay_opm::CommandIo {
            stdin: &mut std::io::empty(),
            stdout: &mut out,
            stderr: &mut err,
            folder: folder.path().to_owned(),
            alpha: false,
            terminal: false,
            clock: Clock::system(),
            environment,
        },
    ));
    CommandOutput::of(code, out, err)
}

/// The sound catalog with documents added.
pub(crate) fn with_added(documents: &str) -> TestFolder {
    TestFolder::with(&format!("{SOUND_CATALOG}---\n{documents}"))
}
