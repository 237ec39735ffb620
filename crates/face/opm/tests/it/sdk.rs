//! `operator-sdk bundle validate` compared with recorded answers of operator-sdk 1.42.

use mainstay_clitest::block_on;
use mainstay_clock::Clock;
use mainstay_opm::{CommandIo, sdk};
use regex::Regex;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use tempfile::TempDir;

/// The output of a command line.
struct SdkOutput {
    exit: u8,
    stdout: String,
    stderr: String,
}

fn run(
    folder: &Path,
    arguments: &[&str],
    environment: &dyn Fn(&str) -> Option<String>,
) -> SdkOutput {
    let words = ["bundle", "validate"].iter().chain(arguments).map(|word| (*word).to_owned());
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let exit = block_on(sdk::run(
        &words.collect::<Vec<_>>(),
        &mut CommandIo {
            stdin: &mut std::io::empty(),
            stdout: &mut stdout,
            stderr: &mut stderr,
            folder: folder.to_owned(),
            alpha: false,
            terminal: false,
            clock: Clock::system(),
            environment,
        },
    ));
    let text = |bytes| String::from_utf8(bytes).unwrap();
    SdkOutput { exit, stdout: text(stdout), stderr: text(stderr) }
}

/// A folder with a fake docker and podman that know some images; a `null` image is unknown.
fn fake_tools(images: &Map<String, Value>, otherwise: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for tool in ["docker", "podman"] {
        let mut script = "#!/bin/sh\nimage=$2\n[ \"$1\" = manifest ] && image=$3\n".to_owned();
        script.push_str("case $image in\n");
        for (image, printed) in images.iter().filter(|(_, printed)| !printed.is_null()) {
            writeln!(script, "'{image}') [ \"$1\" = pull ] || cat <<'END'\n{printed}\nEND\n;;")
                .unwrap();
        }
        let otherwise = otherwise.replace("TOOL", tool);
        writeln!(script, "*) echo \"{otherwise}\" >&2; exit 1;;\nesac").unwrap();
        let path = folder.path().join(tool);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

/// Normalizes a text: without compressed sizes, and without the random order of upstream.
fn normalize(text: &str) -> String {
    let size = Regex::new(r"size=~[^,]* ,").unwrap();
    let text = size.replace_all(text, "size=~ ,").into_owned();
    let random =
        ["Migrate the API(s) for", "Bundle validation errors: ", "error validating object: ["];
    if !random.iter().any(|word| text.contains(word)) {
        return text;
    }
    let mut letters: Vec<char> = text.chars().collect();
    letters.sort_unstable();
    letters.into_iter().collect()
}

/// The sorted lines of a log, without times.
fn log_lines(text: &str) -> Vec<String> {
    let time = Regex::new(r#"time="[^"]*""#).unwrap();
    let text = time.replace_all(text, "time=\"{time}\"");
    // The usage texts are our own.
    let text = text.split("\nUsage:").next().unwrap_or_default();
    let mut lines: Vec<String> =
        text.lines().filter(|line| !line.is_empty()).map(normalize).collect();
    lines.sort();
    lines
}

/// The sorted findings.
fn outputs(result: &Value) -> (bool, Vec<(String, String)>) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut all: Vec<(String, String)> = result["outputs"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|output| (text(&output["type"]), normalize(&text(&output["message"]))))
        .collect();
    all.sort();
    (result["passed"] == true, all)
}

/// The difference to the recorded answer, if there is one.
fn difference(
    recorded: &Value,
    output: &SdkOutput,
    with_placeholders: &dyn Fn(&str) -> String,
) -> Option<String> {
    if let Some(variants) = recorded["variants"].as_array() {
        let mut found =
            variants.iter().map(|variant| difference(variant, output, with_placeholders));
        return found
            .find(Option::is_none)
            .unwrap_or_else(|| difference(&variants[0], output, with_placeholders));
    }
    if recorded["exit"] != output.exit {
        return Some(format!(
            "exit {} instead of {}: {}",
            output.exit, recorded["exit"], output.stderr
        ));
    }
    let (stdout, stderr) = (with_placeholders(&output.stdout), with_placeholders(&output.stderr));
    if let Some(result) = recorded.get("result") {
        let ours: Value = match serde_json::from_str(&stdout) {
            Ok(ours) => ours,
            Err(error) => return Some(format!("{error}: {stdout}")),
        };
        let (ours, expected) = (outputs(&ours), outputs(result));
        if ours != expected {
            let only = |one: &[(String, String)], other: &[(String, String)]| {
                one.iter()
                    .filter(|line| !other.contains(line))
                    .map(|line| line.1.clone())
                    .collect::<Vec<_>>()
            };
            return Some(format!(
                "passed {} {}, {} {} findings, ours only {:#?}, recorded only {:#?}",
                ours.0,
                expected.0,
                ours.1.len(),
                expected.1.len(),
                only(&ours.1, &expected.1),
                only(&expected.1, &ours.1)
            ));
        }
    } else {
        let expected = recorded["stdout"].as_str().unwrap_or_default();
        if log_lines(&stdout) != log_lines(expected) {
            return Some(format!("prints {stdout:?} instead of {expected:?}"));
        }
    }
    let expected = recorded["stderr"].as_str().unwrap_or_default();
    (log_lines(&stderr) != log_lines(expected) && recorded.get("result").is_none())
        .then(|| format!("says {stderr:?} instead of {expected:?}"))
}

/// Counts equal answers. Exactly the differing ones must be listed in `sdk-differences.txt`.
#[derive(Default)]
struct Comparison {
    answers: usize,
    agree: usize,
    differing: BTreeMap<String, String>,
}

impl Comparison {
    fn compare(
        &mut self,
        name: &str,
        recorded: &Value,
        folder: &Path,
        environment: &dyn Fn(&str) -> Option<String>,
    ) {
        let root = folder.to_string_lossy().into_owned();
        let bundle = format!("{root}/bundle");
        let given = recorded["args"].as_array().unwrap().iter().map(|word| {
            word.as_str().unwrap().replace("{bundle}", &bundle).replace("{case}", &root)
        });
        let given: Vec<String> = given.collect();
        let words: Vec<&str> = given.iter().map(String::as_str).collect();
        let variables = recorded["env"].as_object();
        let variable = |name: &str| {
            let own = variables.and_then(|all| all.get(name)).and_then(Value::as_str);
            own.map(|text| text.replace("{case}", &root)).or_else(|| environment(name))
        };
        let output = run(folder, &words, &variable);
        let with_placeholders =
            |text: &str| text.replace(&bundle, "{bundle}").replace(&root, "{case}");
        self.answers += 1;
        match difference(recorded, &output, &with_placeholders) {
            None => self.agree += 1,
            Some(what) => {
                self.differing.insert(name.to_owned(), format!("{name} {given:?}: {what}"));
            }
        }
    }

    /// Asserts that exactly the listed answers differ. `listed` says whether the list is about these
    /// answers.
    fn assert_differences(self, what: &str, listed: bool) {
        let listed: Vec<&str> = include_str!("sdk-differences.txt")
            .lines()
            .filter(|line| listed && !line.starts_with('#') && !line.is_empty())
            .filter_map(|line| line.split(' ').next())
            .collect();
        let differing: Vec<&str> = self.differing.keys().map(String::as_str).collect();
        let new = self.differing.iter().filter(|(name, _)| !listed.contains(&name.as_str()));
        let new: Vec<&String> = new.map(|(_, what)| what).collect();
        mainstay_testdata::ran(&format!("{what}: {} of {} agree", self.agree, self.answers));
        assert_eq!(differing, listed, "{what}: {new:#?}");
    }
}

#[test]
fn written_bundles_have_the_recorded_findings() {
    let Some(data) =
        mainstay_testdata::unpack("answers/bundle-validate", "recorded answers of operator-sdk")
    else {
        return;
    };
    let mut comparison = Comparison::default();
    let mut cases: Vec<_> = fs::read_dir(data.path().join("bundle-validate/cases"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    cases.sort();
    let json =
        |path: &Path| -> Option<Value> { serde_json::from_slice(&fs::read(path).ok()?).ok() };
    for case in cases {
        let Some(answers) = json(&case.join("sdk.json")) else { continue };
        let images = json(&case.join("images.json"));
        let images = images.and_then(|images| images.as_object().cloned()).unwrap_or_default();
        let tools = fake_tools(&images, "TOOL: no such image: $image");
        let path = tools.path().to_string_lossy().into_owned();
        let environment = |name: &str| (name == "PATH").then(|| path.clone());
        let name = case.file_name().unwrap().to_str().unwrap();
        for recorded in answers.as_array().unwrap() {
            comparison.compare(name, recorded, &case, &environment);
        }
    }
    comparison.assert_differences("recorded answers of operator-sdk about written bundles", true);
}

#[test]
fn published_bundles_have_the_recorded_findings() {
    let Some(data) =
        mainstay_testdata::unpack("answers/bundle-validate", "recorded answers of operator-sdk")
    else {
        return;
    };
    let Some(bundles) = mainstay_testdata::unpack("bundles-249", "published bundles") else {
        return;
    };
    let mut comparison = Comparison::default();
    for entry in fs::read_dir(data.path().join("bundle-validate/published/sdk")).unwrap() {
        let answers: Value =
            serde_json::from_slice(&fs::read(entry.unwrap().path()).unwrap()).unwrap();
        let name = answers["bundle"].as_str().unwrap();
        let folder = bundles.path().join(name);
        for recorded in answers["answers"].as_array().unwrap() {
            // `{bundle}` stands for the folder itself.
            let mut recorded = recorded.clone();
            for word in recorded["args"].as_array_mut().unwrap() {
                *word = word.as_str().unwrap().replace("{bundle}", ".").into();
            }
            comparison.compare(name, &recorded, &folder, &|_| None);
        }
    }
    comparison
        .assert_differences("recorded answers of operator-sdk about published bundles", false);
}

#[test]
fn command_lines_have_the_recorded_output() {
    let Some(data) =
        mainstay_testdata::unpack("answers/bundle-validate", "recorded answers of operator-sdk")
    else {
        return;
    };
    let root = data.path().join("bundle-validate");
    let recorded = fs::read(root.join("sdk-command-line.json")).unwrap();
    let recorded: Value = serde_json::from_slice(&recorded).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let first = fs::read_dir(root.join("cases")).unwrap().map(|entry| entry.unwrap().path());
    let first = first.min().unwrap();
    std::os::unix::fs::symlink(first.join("bundle"), folder.path().join("bundle")).unwrap();
    for (name, text) in recorded["scripts"].as_object().unwrap() {
        let path = folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{}\n", text.as_str().unwrap())).unwrap();
        let mode = if name == "notexec.sh" { 0o644 } else { 0o755 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let message = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?";
    let tools = fake_tools(&Map::new(), message);
    let path = tools.path().to_string_lossy().into_owned();
    let environment = |name: &str| (name == "PATH").then(|| path.clone());
    let mut comparison = Comparison::default();
    for (at, answer) in recorded["answers"].as_array().unwrap().iter().enumerate() {
        comparison.compare(&format!("command-line-{at}"), answer, folder.path(), &environment);
    }
    comparison.assert_differences("recorded command lines of operator-sdk", false);
}

#[test]
fn only_the_name_operator_sdk_is_recognized() {
    for (name, meant) in [
        ("operator-sdk", true),
        ("/usr/bin/operator-sdk", true),
        ("operator-sdk.exe", true),
        ("opm", false),
        ("operator-sdk-2", false),
    ] {
        assert_eq!(sdk::is_program_name(name), meant, "{name}");
    }
}
