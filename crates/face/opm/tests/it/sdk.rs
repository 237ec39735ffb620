//! `operator-sdk bundle validate` beside recorded answers of operator-sdk 1.42.

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

/// What a command line did.
struct Done {
    exit: u8,
    stdout: String,
    stderr: String,
}

fn run(folder: &Path, arguments: &[&str], environment: &dyn Fn(&str) -> Option<String>) -> Done {
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
    Done { exit, stdout: text(stdout), stderr: text(stderr) }
}

/// A folder with a docker and a podman that know some images; one that is `null` they do not know.
fn tools(images: &Map<String, Value>, otherwise: &str) -> TempDir {
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

/// A text that does not depend on the compressor or on the order of what upstream says in random
/// order.
fn loose(text: &str) -> String {
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

/// Lines of the log, without times, and in an order of their own.
fn lines(text: &str) -> Vec<String> {
    let time = Regex::new(r#"time="[^"]*""#).unwrap();
    let text = time.replace_all(text, "time=\"{time}\"");
    // What follows a usage is in our own words.
    let text = text.split("\nUsage:").next().unwrap_or_default();
    let mut lines: Vec<String> = text.lines().filter(|line| !line.is_empty()).map(loose).collect();
    lines.sort();
    lines
}

/// Findings as a set.
fn outputs(result: &Value) -> (bool, Vec<(String, String)>) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut all: Vec<(String, String)> = result["outputs"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|output| (text(&output["type"]), loose(&text(&output["message"]))))
        .collect();
    all.sort();
    (result["passed"] == true, all)
}

/// What is different from what is recorded.
fn differs(recorded: &Value, done: &Done, shown: &dyn Fn(&str) -> String) -> Option<String> {
    if let Some(variants) = recorded["variants"].as_array() {
        let mut found = variants.iter().map(|variant| differs(variant, done, shown));
        return found.find(Option::is_none).unwrap_or_else(|| differs(&variants[0], done, shown));
    }
    if recorded["exit"] != done.exit {
        return Some(format!(
            "exit {} instead of {}: {}",
            done.exit, recorded["exit"], done.stderr
        ));
    }
    let (stdout, stderr) = (shown(&done.stdout), shown(&done.stderr));
    if let Some(result) = recorded.get("result") {
        let ours: Value = match serde_json::from_str(&stdout) {
            Ok(ours) => ours,
            Err(error) => return Some(format!("{error}: {stdout}")),
        };
        let (ours, wanted) = (outputs(&ours), outputs(result));
        if ours != wanted {
            let only = |one: &[(String, String)], other: &[(String, String)]| {
                one.iter()
                    .filter(|line| !other.contains(line))
                    .map(|line| line.1.clone())
                    .collect::<Vec<_>>()
            };
            return Some(format!(
                "passed {} {}, {} {} findings, ours only {:#?}, recorded only {:#?}",
                ours.0,
                wanted.0,
                ours.1.len(),
                wanted.1.len(),
                only(&ours.1, &wanted.1),
                only(&wanted.1, &ours.1)
            ));
        }
    } else {
        let wanted = recorded["stdout"].as_str().unwrap_or_default();
        if lines(&stdout) != lines(wanted) {
            return Some(format!("prints {stdout:?} instead of {wanted:?}"));
        }
    }
    let wanted = recorded["stderr"].as_str().unwrap_or_default();
    (lines(&stderr) != lines(wanted) && recorded.get("result").is_none())
        .then(|| format!("says {stderr:?} instead of {wanted:?}"))
}

/// Counts agreements; what differs must be listed in `sdk-differences.txt`, and nothing else.
#[derive(Default)]
struct Score {
    answers: usize,
    agree: usize,
    differing: BTreeMap<String, String>,
}

impl Score {
    fn judge(
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
        let done = run(folder, &words, &variable);
        let shown = |text: &str| text.replace(&bundle, "{bundle}").replace(&root, "{case}");
        self.answers += 1;
        match differs(recorded, &done, &shown) {
            None => self.agree += 1,
            Some(what) => {
                self.differing.insert(name.to_owned(), format!("{name} {given:?}: {what}"));
            }
        }
    }

    /// `listed` says whether the differences of the list are among these answers.
    fn settle(self, what: &str, listed: bool) {
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
fn written_bundles_are_judged_as_recorded() {
    let Some(data) =
        mainstay_testdata::unpack("answers/bundle-validate", "recorded answers of operator-sdk")
    else {
        return;
    };
    let mut score = Score::default();
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
        let tools = tools(&images, "TOOL: no such image: $image");
        let path = tools.path().to_string_lossy().into_owned();
        let environment = |name: &str| (name == "PATH").then(|| path.clone());
        let name = case.file_name().unwrap().to_str().unwrap();
        for recorded in answers.as_array().unwrap() {
            score.judge(name, recorded, &case, &environment);
        }
    }
    score.settle("recorded answers of operator-sdk about written bundles", true);
}

#[test]
fn published_bundles_are_judged_as_recorded() {
    let Some(data) =
        mainstay_testdata::unpack("answers/bundle-validate", "recorded answers of operator-sdk")
    else {
        return;
    };
    let Some(bundles) = mainstay_testdata::unpack("bundles-249", "published bundles") else {
        return;
    };
    let mut score = Score::default();
    for entry in fs::read_dir(data.path().join("bundle-validate/published/sdk")).unwrap() {
        let answers: Value =
            serde_json::from_slice(&fs::read(entry.unwrap().path()).unwrap()).unwrap();
        let name = answers["bundle"].as_str().unwrap();
        let folder = bundles.path().join(name);
        for recorded in answers["answers"].as_array().unwrap() {
            // The folder itself is what `{bundle}` names.
            let mut recorded = recorded.clone();
            for word in recorded["args"].as_array_mut().unwrap() {
                *word = word.as_str().unwrap().replace("{bundle}", ".").into();
            }
            score.judge(name, &recorded, &folder, &|_| None);
        }
    }
    score.settle("recorded answers of operator-sdk about published bundles", false);
}

#[test]
fn its_command_line_is_as_recorded() {
    let Some(data) =
        mainstay_testdata::unpack("answers/bundle-validate", "recorded answers of operator-sdk")
    else {
        return;
    };
    let root = data.path().join("bundle-validate");
    let recorded = fs::read(root.join("sdk-command-line.json")).unwrap();
    let recorded: Value = serde_json::from_slice(&recorded).unwrap();
    let place = tempfile::tempdir().unwrap();
    let first = fs::read_dir(root.join("cases")).unwrap().map(|entry| entry.unwrap().path());
    let first = first.min().unwrap();
    std::os::unix::fs::symlink(first.join("bundle"), place.path().join("bundle")).unwrap();
    for (name, text) in recorded["scripts"].as_object().unwrap() {
        let path = place.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{}\n", text.as_str().unwrap())).unwrap();
        let mode = if name == "notexec.sh" { 0o644 } else { 0o755 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let said = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?";
    let tools = tools(&Map::new(), said);
    let path = tools.path().to_string_lossy().into_owned();
    let environment = |name: &str| (name == "PATH").then(|| path.clone());
    let mut score = Score::default();
    for (at, answer) in recorded["answers"].as_array().unwrap().iter().enumerate() {
        score.judge(&format!("command-line-{at}"), answer, place.path(), &environment);
    }
    score.settle("recorded command lines of operator-sdk", false);
}

#[test]
fn only_its_own_name_is_meant() {
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
