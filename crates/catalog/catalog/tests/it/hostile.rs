//! Hostile input: time and memory stay proportional to its size, and errors are short and have a
//! place.
//!
//! `MAINSTAY_DEEP` makes all inputs as large as possible; without it the same shapes are small.

use mainstay_catalog::{
    Catalog, FileSource, KeptContent, Limits, LoadError, LoadOptions, MemorySource, SourceFile,
    TreeError,
};
use mainstay_testdata::{is_deep, ran, skipped};
use std::{
    fmt::Write as _,
    fs::{self, File, Permissions},
    io::{self, Read},
    os::unix::fs::{PermissionsExt as _, symlink},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// A size: the first one by default, the second one with `MAINSTAY_DEEP`.
fn size(usual: usize, deep: usize) -> usize {
    if is_deep() { deep } else { usual }
}

fn load(text: &str) -> Result<Arc<Catalog>, LoadError> {
    let files: MemorySource = [("c.yaml", text)].into_iter().collect();
    let loaded = Catalog::load_from(&files, &LoadOptions::default());
    if let Err(error) = &loaded {
        let said = error.to_string().len() + error.upstream().len();
        assert!(said < 32 * text.len() + 4096, "{said} bytes are said to {}", text.len());
    }
    loaded
}

/// `sound`, or the first problems. (The first one may report that there are too many.)
fn load_result(text: &str) -> String {
    match load(text) {
        Ok(_) => "sound".to_owned(),
        Err(error) => {
            let first: Vec<String> =
                error.problems.iter().take(2).map(ToString::to_string).collect();
            first.join("\n")
        }
    }
}

/// A package with one channel of these entries, and a bundle for each name from `v0` on.
fn package(entries: &str, bundles: usize) -> String {
    let mut text = "schema: olm.package\nname: p\ndefaultChannel: c\n---\nschema: olm.channel\n\
                    package: p\nname: c\nentries:\n"
        .to_owned();
    text.push_str(entries);
    for at in 0..bundles {
        write!(
            text,
            "---\nschema: olm.bundle\npackage: p\nname: v{at}\nimage: e.com/x:{at}\nproperties:\n\
             - type: olm.package\n  value: {{packageName: p, version: 1.0.{at}}}\n"
        )
        .unwrap();
    }
    text
}

/// The name of a shape, its entries by number, and the expected result.
type Shape = (&'static str, Box<dyn Fn(usize) -> String>, &'static str);

#[test]
fn long_channels_of_any_shape_are_checked() {
    let n = size(800, 100_000);
    let after = |at: usize| format!("- {{name: v{at}, replaces: v{}}}\n", at.wrapping_sub(1));
    // Each step is coprime with n.
    let anywhere = move |at: usize, step: usize| (at * step + 7) % n;
    let shapes: [Shape; 8] = [
        (
            "a chain",
            Box::new(move |at| if at == 0 { "- name: v0\n".to_owned() } else { after(at) }),
            "sound",
        ),
        (
            "one that skips all others",
            Box::new(move |at| {
                if at > 0 {
                    return format!("- name: v{at}\n");
                }
                let all: Vec<String> = (1..n).map(|at| format!("v{at}")).collect();
                format!("- name: v0\n  skips: [{}]\n", all.join(", "))
            }),
            "sound",
        ),
        (
            "a range on each",
            Box::new(move |at| {
                let chain =
                    if at == 0 { String::new() } else { format!(", replaces: v{}", at - 1) };
                format!("- {{name: v{at}, skipRange: \">=1.0.0 <1.0.{at}\"{chain}}}\n")
            }),
            "sound",
        ),
        ("nothing but heads", Box::new(|at| format!("- name: v{at}\n")), "multiple channel heads"),
        (
            "a circle",
            Box::new(move |at| format!("- {{name: v{at}, replaces: v{}}}\n", (at + 1) % n)),
            "no channel head found",
        ),
        (
            "a circle with a tail",
            Box::new(move |at| {
                let before = if at == 0 { n / 2 } else { at - 1 };
                format!("- {{name: v{at}, replaces: v{before}}}\n")
            }),
            "detected cycle",
        ),
        (
            "anyhow",
            Box::new(move |at| {
                let [a, b, c] = [31, 77, 101].map(|step| anywhere(at, step));
                format!("- {{name: v{at}, replaces: v{a}, skips: [v{b}, v{c}]}}\n")
            }),
            "invalid channel",
        ),
        ("one name only", Box::new(|_| "- name: v0\n".to_owned()), "duplicate entry"),
    ];
    for (shape, entry, expected) in shapes {
        let entries: String = (0..n).map(&entry).collect();
        let said = load_result(&package(&entries, n));
        assert!(said.contains(expected), "{shape}: {}", said.chars().take(300).collect::<String>());
    }
}

#[test]
fn cost_is_proportional_to_the_number_of_documents() {
    let n = size(300, 100_000);
    let many = |one: &dyn Fn(usize) -> String| (0..n).map(one).collect::<String>();
    let one = package("- name: v0\n", 1);
    let table: Vec<(&str, String, &str)> = vec![
        (
            "packages",
            many(&|at| {
                format!(
                    "---\nschema: olm.package\nname: p{at}\ndefaultChannel: c\n---\nschema: olm.channel\n\
                     package: p{at}\nname: c\nentries: [{{name: b}}]\n---\nschema: olm.bundle\n\
                     package: p{at}\nname: b\nimage: e.com/x\nproperties:\n- type: olm.package\n  \
                     value: {{packageName: p{at}, version: 1.0.0}}\n"
                )
            }),
            "sound",
        ),
        (
            "channels",
            one.clone()
                + &many(&|at| {
                    format!(
                        "---\nschema: olm.channel\npackage: p\nname: c{at}\nentries: [{{name: v0}}]\n"
                    )
                }),
            "sound",
        ),
        (
            "properties",
            one.clone()
                + &many(&|at| {
                    format!("- {{type: olm.gvk, value: {{group: g, version: v1, kind: K{at}}}}}\n")
                }),
            "sound",
        ),
        ("custom documents", many(&|at| format!("---\nschema: s{at}\n")), "sound"),
        ("keys", format!("schema: x\n{}", many(&|at| format!("k{at}: 1\n"))), "sound"),
        (
            "the same package",
            many(&|_| "---\nschema: olm.package\nname: p\n".to_owned()),
            "invalid package",
        ),
        (
            "deprecations of what is not there",
            one.clone()
                + "---\nschema: olm.deprecations\npackage: p\nentries:\n"
                + &many(&|at| {
                    format!("- {{reference: {{schema: olm.bundle, name: n{at}}}, message: m}}\n")
                }),
            "cannot deprecate bundle",
        ),
        (
            "entries without bundles",
            package(&many(&|at| format!("- name: v{at}\n")), 0),
            "no olm.bundle blobs found",
        ),
        (
            "bundles of no package",
            many(&|at| format!("---\nschema: olm.bundle\npackage: q{at}\nname: b\nimage: x\n")),
            "unknown package",
        ),
        (
            "wrong documents",
            many(&|at| format!("---\nschema: olm.package\nname: [{at}]\n")),
            "to be a string",
        ),
        ("separators", "---\n".repeat(n * 10), "missing root schema"),
        ("ends of documents", "schema: x\n...\n".repeat(n), "sound"),
        ("comments", "# c\n".repeat(n * 10), "missing root schema"),
        (
            "a range of many parts",
            package(
                &format!("- {{name: v0, skipRange: \"{}<2.0.0\"}}\n", ">=1.0.0 || ".repeat(n)),
                1,
            ),
            "sound",
        ),
        (
            "a version of many parts",
            package("- name: v0\n", 1)
                .replace("1.0.0", &format!("1.0.0-{}", vec!["a"; n].join("."))),
            "sound",
        ),
    ];
    for (what, text, expected) in table {
        let said = load_result(&text);
        assert!(said.contains(expected), "{what}: {}", said.chars().take(300).collect::<String>());
    }
}

#[test]
fn exploding_yaml_is_refused_and_long_values_are_read() {
    let n = size(20_000, 10_000_000);
    let nested = size(5_000, 200_000);
    let long = "x".repeat(n);
    let mut aliases = "schema: x\na0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    let mut merges = "schema: x\nm0: &m0 {k: v}\n".to_owned();
    for at in 1..30 {
        let list = |name: char| vec![format!("*{name}{}", at - 1); 9].join(", ");
        writeln!(aliases, "a{at}: &a{at} [{}]", list('a')).unwrap();
        writeln!(merges, "m{at}: &m{at}\n  <<: [{}]\n  k{at}: 1", list('m')).unwrap();
    }
    let table: Vec<(&str, String, &str)> = vec![
        ("aliases of aliases", aliases, "excessive aliasing"),
        ("an alias of itself", "schema: x\na: &a [*a]\n".into(), "contains itself"),
        ("lists in lists", format!("schema: x\na: {}", "[".repeat(nested)), "c.yaml:2"),
        ("maps in maps", format!("schema: x\na: {}", "{a: ".repeat(nested)), "c.yaml:2"),
        ("JSON in JSON", format!("{{\"schema\": \"x\", \"a\": {}", "[".repeat(nested)), "c.yaml:1"),
        ("a long text", format!("schema: x\na: {long}\n"), "sound"),
        (
            "a long text in quotes",
            format!("schema: x\na: \"{}\"\n", "\\u0041".repeat(n / 6)),
            "sound",
        ),
        ("a long number", format!("schema: x\na: {}\n", "9".repeat(n)), "sound"),
        (
            "a long number in JSON",
            format!("{{\"schema\": \"x\", \"a\": {}}}", "9".repeat(n)),
            "sound",
        ),
        ("a long key", format!("schema: x\n{long}: a\n"), "c.yaml:2"),
        ("a long name", format!("schema: olm.package\nname: {long}\n"), "c.yaml:1"),
        ("quotes that stay open", format!("schema: x\na: \"{long}"), "c.yaml:2"),
        ("a list that stays open", format!("schema: x\na: [{}", "b, ".repeat(n / 3)), "c.yaml:"),
        ("nothing but commas", format!("schema: x\na: [{}]\n", ",".repeat(n)), "c.yaml:2"),
        ("nothing but colons", format!("schema: x\na: {}\n", ":".repeat(n)), "c.yaml:2"),
        ("nothing but dashes", format!("schema: x\na:\n{}", "-\n".repeat(n / 2)), "sound"),
        ("many lines in one text", format!("schema: x\na: b\n{}", "  c\n".repeat(n / 4)), "sound"),
    ];
    for (what, text, expected) in table {
        let said = load_result(&text);
        assert!(said.contains(expected), "{what}: {}", said.chars().take(300).collect::<String>());
    }
    // Merges must end; their result does not matter.
    let _ = load(&merges);
}

#[test]
fn a_file_above_the_limit_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    File::create(folder.path().join("huge")).unwrap().set_len(1 << 40).unwrap();
    let error = Catalog::load(folder.path(), &LoadOptions::default()).unwrap_err();
    let said = error.to_string();
    assert_eq!(
        said,
        "huge: the file is above the limit of 536870912 bytes (split it, or list it in .indexignore)"
    );
}

#[test]
fn too_many_indexignore_patterns_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("c.yaml"), package("- name: v0\n", 1)).unwrap();
    fs::create_dir(folder.path().join("d")).unwrap();
    fs::write(folder.path().join(".indexignore"), "*a*b*c\n".repeat(500_000)).unwrap();
    fs::write(folder.path().join("d/.indexignore"), "*a*b*c\n".repeat(200_000)).unwrap();
    let error = Catalog::load(folder.path(), &LoadOptions::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "d/.indexignore: the patterns of the tree are above 4194304 bytes (write fewer patterns, \
         for whole folders)"
    );
}

#[test]
fn huge_line_and_huge_file_of_zeros_are_reported() {
    let length = size(3 << 20, 500 << 20);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("line"), "schema: x\na: ".to_owned() + &"x".repeat(length))
        .unwrap();
    File::create(folder.path().join("zeros")).unwrap().set_len(length as u64).unwrap();
    let mut options = LoadOptions::default();
    options.limits.scalar_bytes = length / 2;
    let error = Catalog::load(folder.path(), &options).unwrap_err();
    let found: Vec<String> = error.problems.iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("line:2:4: a value of "), "{found:?}");
    assert!(found[1].starts_with("zeros:1:1: control characters"), "{found:?}");
}

#[test]
fn pipes_and_devices_are_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let mkfifo_status = Command::new("mkfifo").arg(folder.path().join("pipe")).status();
    if !mkfifo_status.is_ok_and(|status| status.success()) {
        return skipped("pipes in a catalog folder: mkfifo cannot make one");
    }
    symlink("/dev/zero", folder.path().join("zero")).unwrap();
    symlink("pipe", folder.path().join("to-pipe")).unwrap();
    symlink("/proc/self/fd/0", folder.path().join("input")).unwrap();
    fs::create_dir(folder.path().join("d")).unwrap();
    Command::new("mkfifo").arg(folder.path().join("d/.indexignore")).status().unwrap();
    let error = Catalog::load(folder.path(), &LoadOptions::default()).unwrap_err();
    let files: Vec<&str> = error.problems.iter().map(|problem| &*problem.file).collect();
    assert_eq!(files, ["d/.indexignore", "input", "pipe", "to-pipe", "zero"], "{error}");
}

#[test]
fn unreadable_folders_and_files_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("c.yaml"), package("- name: v0\n", 1)).unwrap();
    let closed = folder.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::write(folder.path().join("secret"), "schema: x\n").unwrap();
    fs::set_permissions(&closed, Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(folder.path().join("secret"), Permissions::from_mode(0o000)).unwrap();
    if fs::read_dir(&closed).is_ok() {
        return skipped("a folder without permission: this account may read everything");
    }
    let error = Catalog::load(folder.path(), &LoadOptions::default()).unwrap_err();
    let found: Vec<(&str, &str)> =
        error.problems.iter().map(|problem| (&*problem.file, problem.message.as_str())).collect();
    assert_eq!(
        found,
        [
            ("closed", "cannot list the folder: permission denied"),
            ("secret", "cannot read the file: permission denied"),
        ]
    );
    fs::set_permissions(&closed, Permissions::from_mode(0o700)).unwrap();
    ran("a folder without permission");
}

/// A source whose file has other content each time it is opened.
struct Moving {
    texts: Vec<String>,
    opened: AtomicUsize,
}

impl FileSource for Moving {
    fn name(&self) -> String {
        "moving".to_owned()
    }

    fn files(&self) -> Result<Vec<SourceFile>, TreeError> {
        Ok(vec![SourceFile { path: "c.yaml".to_owned(), fault: None, upstream: None }])
    }

    fn open(&self, _path: &str, _limit: u64) -> io::Result<Box<dyn Read + Send + '_>> {
        let at = self.opened.fetch_add(1, Ordering::Relaxed);
        match self.texts.get(at.min(self.texts.len() - 1)).map(String::as_str) {
            Some("gone") => Err(io::ErrorKind::NotFound.into()),
            text => Ok(Box::new(text.unwrap_or_default().as_bytes())),
        }
    }
}

#[test]
fn files_that_change_during_loading_give_a_result() {
    let sound = package("- name: v0\n", 1);
    let wrong = package("- name: v0\n- name: v1\n- {name: é, skips: [\"\"]}\n", 2);
    let texts = [
        sound.clone(),
        wrong.clone(),
        wrong[..wrong.len() / 2].to_owned(),
        wrong.replace("skips", "é\u{1f600}\n\n"),
        format!("{}{wrong}", "# ü\n".repeat(300)),
        "schema: [".to_owned(),
        String::new(),
        "gone".to_owned(),
    ];
    for first in &texts {
        for second in &texts {
            for third in [second, &sound] {
                let texts = vec![first.clone(), second.clone(), third.clone()];
                let moving = Moving { texts, opened: AtomicUsize::new(0) };
                if let Err(error) = Catalog::load_from(&moving, &LoadOptions::default()) {
                    assert!(!error.problems.is_empty());
                }
            }
        }
    }
}

#[test]
fn deep_folders_are_refused_and_many_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join(vec!["d"; 100].join("/"));
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("c.yaml"), "schema: x\n").unwrap();
    let error = Catalog::load(folder.path(), &LoadOptions::default()).unwrap_err();
    assert!(error.headline().contains("folders are nested deeper than 64 levels"), "{error}");
    let n = size(500, 99_999);
    let files: MemorySource = (0..n)
        .map(|at| (format!("d{}/{at}.yaml", at % 97), format!("schema: x\nname: n{at}\n")))
        .collect();
    let catalog = Catalog::load_from(&files, &LoadOptions::default()).unwrap();
    assert_eq!(catalog.others().len(), n);
}

/// Upstream's limit applies only if no content is stored; otherwise deep values are refused with
/// their place.
#[test]
fn values_are_checked_to_the_depth_of_upstream() {
    let flow = |depth: usize| format!("schema: a\nx: {}{}\n", "[".repeat(depth), "]".repeat(depth));
    let json = |depth: usize| {
        format!("{{\"schema\": \"a\", \"x\": {}{}}}", "[".repeat(depth), "]".repeat(depth))
    };
    let block = |depth: usize| {
        let lines = (1..depth).map(|level| format!("{}a:\n", " ".repeat(level)));
        format!("schema: a\nx:\n{}", lines.collect::<String>())
    };
    let load_with_depth = |file: &str, text: String, keep: KeptContent| {
        let files: MemorySource = [(file, text)].into_iter().collect();
        let limits = Limits { depth: Limits::DEEPEST, ..Limits::default() };
        Catalog::load_from(&files, &LoadOptions { limits, keep, ..LoadOptions::default() })
    };
    for keep in [KeptContent::Facts, KeptContent::Light] {
        let deep = [("f.yaml", flow(9_900)), ("j.json", json(9_900)), ("b.yaml", block(1_000))];
        for (file, text) in deep {
            let loaded = load_with_depth(file, text, keep);
            assert_eq!(loaded.is_ok(), keep == KeptContent::Facts, "{file}");
            if let Err(error) = loaded {
                assert!(error.to_string().contains("exceeded max depth of 127"), "{error}");
            }
        }
    }
    for (file, text) in [("f.yaml", flow(10_100)), ("j.json", json(10_100))] {
        let error = load_with_depth(file, text, KeptContent::Facts).unwrap_err();
        assert!(error.to_string().contains("exceeded max depth"), "{error}");
    }
}
