//! Runs `opm` and the commands of `mainstay` in test folders.

use mainstay_clitest::{ACCEPT_ANYTHING, CommandOutput, SOUND_CATALOG, TestFolder, block_on};
use mainstay_clock::Clock;
use std::fs;

/// Runs `opm` in a test folder.
pub(crate) trait OpmFolder {
    /// Runs `opm`; blanks separate the arguments.
    fn opm(&self, arguments: &str) -> CommandOutput;

    /// Runs `opm` with an image policy that accepts every image.
    fn opm_pulling(&self, arguments: &str) -> CommandOutput;

    /// Validates the catalog in the folder `c` with both programs: returns the exit code of
    /// `opm validate`, and the rules of the findings of `mainstay catalog validate`.
    fn validate_with_both(&self) -> (u8, Vec<String>);
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

    fn validate_with_both(&self) -> (u8, Vec<String>) {
        let output = self.catalog("validate c -o json");
        let result: serde_json::Value = serde_json::from_str(&output.out).unwrap();
        let problems = result["problems"].as_array().unwrap();
        let rules: Vec<String> =
            problems.iter().map(|problem| problem["rule"].as_str().unwrap().to_owned()).collect();
        assert_eq!(output.code, u8::from(result["passed"] == false), "{output:?}");
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

/// The valid catalog with additional documents.
pub(crate) fn with_added(documents: &str) -> TestFolder {
    TestFolder::with(&format!("{SOUND_CATALOG}---\n{documents}"))
}
