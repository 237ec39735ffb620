//! Catalog folders: which files are read, ignored and refused.

use crate::{SOUND, load};
use mainstay_catalog::{Catalog, Limits, LoadError, LoadOptions};
use std::{
    fs,
    os::unix::{fs::symlink, net::UnixListener},
    path::Path,
    sync::Arc,
};

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn read(path: &Path) -> Result<Arc<Catalog>, LoadError> {
    Catalog::load(path, &LoadOptions::default())
}

#[test]
fn files_with_any_name_and_depth_are_read_in_yaml_and_json() {
    let (package, rest) = SOUND.split_at(SOUND.find("---\nschema: olm.channel").unwrap());
    let package =
        mainstay_yaml::one(package.as_bytes(), &mainstay_yaml::Options::default()).unwrap();
    let folder = folder(&[
        ("a/b/c/package", &package.to_string()),
        (".hidden/rest.txt", rest),
        ("empty", ""),
    ]);
    assert_eq!(read(folder.path()).unwrap().packages().len(), 1);
}

#[test]
fn last_matching_indexignore_pattern_decides() {
    let bad = "just words";
    let table: &[(&[(&str, &str)], bool)] = &[
        (&[(".indexignore", "*.md\n"), ("a.md", bad), ("d/a.md", bad)], true),
        (&[(".indexignore", "/a.md\n"), ("d/a.md", bad)], false),
        (&[(".indexignore", "d/\n"), ("d/e/a.md", bad)], true),
        (&[(".indexignore", "# words\n\\#a\n"), ("#a", bad)], true),
        (&[(".indexignore", "**/objects/*.yaml\n"), ("x/objects/a.yaml", bad)], true),
        (&[(".indexignore", "*.md\n!keep.md\n"), ("keep.md", bad)], false),
        // A deeper pattern wins, also below an ignored folder.
        (&[(".indexignore", "d/\n"), ("d/.indexignore", "!a.md\n"), ("d/a.md", bad)], false),
        (&[("d/.indexignore", "*.md\n"), ("a.md", bad)], false),
        (&[("d/.indexignore", "*.md\n"), ("d/a.md", bad)], true),
        (
            &[
                (".indexignore", "**/*\n!*.json\n"),
                ("a.md", bad),
                ("a.json", "{\"schema\": \"x\"}"),
            ],
            true,
        ),
        (&[(".indexignore", "\u{feff}*.md\r\n"), ("a.md", bad)], true),
        (&[(".indexignore", "/\n"), ("a.md", bad)], false),
    ];
    for (files, sound) in table {
        assert_eq!(load(files).is_ok(), *sound, "{files:?}");
    }
}

#[test]
fn links_inside_the_folder_are_followed_and_other_links_refused() {
    let outside = folder(&[("c.yaml", SOUND)]);
    let inside = folder(&[("real", SOUND), (".indexignore", "real\n")]);
    symlink("real", inside.path().join("link.yaml")).unwrap();
    assert_eq!(read(inside.path()).unwrap().packages().len(), 1);
    symlink(outside.path().join("c.yaml"), inside.path().join("out.yaml")).unwrap();
    symlink("nowhere", inside.path().join("dangling")).unwrap();
    symlink("loop", inside.path().join("loop")).unwrap();
    fs::create_dir(inside.path().join("d")).unwrap();
    symlink("d", inside.path().join("to-d")).unwrap();
    let error = read(inside.path()).unwrap_err();
    let found: Vec<(&str, &str)> =
        error.problems.iter().map(|p| (&*p.file, p.message.as_str())).collect();
    let target = outside.path().canonicalize().unwrap().join("c.yaml");
    let leaves =
        format!("the symbolic link leaves the catalog folder (it points to {})", target.display());
    assert_eq!(
        found,
        [
            ("dangling", "the symbolic link cannot be followed: no such file or directory"),
            ("loop", "the symbolic link cannot be followed: too many levels of symbolic links"),
            ("out.yaml", leaves.as_str()),
            ("to-d", "the symbolic link points to a folder: is a directory"),
        ]
    );
    fs::write(inside.path().join(".indexignore"), "*\n!link.yaml\n").unwrap();
    assert!(read(inside.path()).is_ok(), "what is ignored cannot be wrong");
}

#[test]
fn catalog_folder_may_be_a_symbolic_link() {
    let real = folder(&[("c.yaml", SOUND)]);
    let other = tempfile::tempdir().unwrap();
    let link = other.path().join("catalog");
    symlink(real.path(), &link).unwrap();
    assert_eq!(read(&link).unwrap().packages().len(), 1);
}

#[test]
fn special_files_are_refused_without_opening_them() {
    let folder = folder(&[]);
    let _listener = UnixListener::bind(folder.path().join("socket")).unwrap();
    let error = read(folder.path()).unwrap_err();
    assert_eq!(error.problems[0].message, "neither a file nor a folder");
}

#[test]
fn missing_folder_and_file_as_folder_are_reported() {
    let folder = folder(&[("c.yaml", SOUND)]);
    let missing = read(&folder.path().join("nowhere")).unwrap_err();
    assert!(
        missing
            .headline()
            .contains("nowhere: cannot read the catalog folder: no such file or directory"),
        "{missing}"
    );
    let file = read(&folder.path().join("c.yaml")).unwrap_err();
    assert!(file.headline().contains("c.yaml: is not a directory"), "{file}");
}

#[test]
fn limits_on_files_and_scalars_are_enforced() {
    let limits = Limits { file_bytes: 100, scalar_bytes: 10, files: 3, ..Limits::default() };
    let options = LoadOptions { limits, ..LoadOptions::default() };
    let check = |files: &[(&str, &str)]| {
        Catalog::load(folder(files).path(), &options).map(|_| ()).unwrap_err().problems.remove(0)
    };
    let large = check(&[("a", &format!("schema: {}", "x".repeat(93)))]);
    assert_eq!((&*large.file, &*large.message), ("a", "the file is above the limit of 100 bytes"));
    let scalar = check(&[("a", "schema: x\nlong: 0123456789a\n")]);
    assert_eq!((scalar.line, scalar.column), (Some(2), Some(7)));
    assert_eq!(scalar.message, "a value of 11 bytes is above the limit of 10 bytes for one value");
    let many = check(&[("a", ""), ("b", ""), ("c", ""), ("d", "")]);
    assert_eq!(many.message, "there are 4 files, above the limit of 3");
}

#[test]
fn binary_and_truncated_files_are_reported_with_their_place() {
    let table: &[(&[u8], &str)] = &[
        (b"\x89PNG\r\n\x1a\n", "f:1:1: byte 0x89 is not UTF-8 text"),
        (b"schema: x\nname: caf\xe9\n", "f:2:10: byte 0xe9 is not UTF-8 text"),
        (b"schema: x\nname: \0\n", "f:2:7: control characters are not allowed"),
        (b"\xff\xfes\0c\0", "f:1:1: the text is UTF-16; only UTF-8 is read"),
        (b"schema: x\nname: \"abc", "f:2:7: found unexpected end of stream"),
        (b"{\"schema\": \"x\"}\n{\"schema\": \"x\", ", "f:2:16: EOF while parsing a value"),
    ];
    for (bytes, expected) in table {
        let folder = folder(&[]);
        fs::write(folder.path().join("f"), bytes).unwrap();
        let error = read(folder.path()).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn problems_do_not_depend_on_the_number_of_threads() {
    let names: Vec<String> = (0..40).map(|index| format!("{index:02}.yaml")).collect();
    let files: Vec<(&str, &str)> =
        names.iter().map(|name| (name.as_str(), "schema: x\n---\nname: y\n")).collect();
    let folder = folder(&files);
    let with = |threads| {
        let options =
            LoadOptions { threads: std::num::NonZero::new(threads), ..Default::default() };
        Catalog::load(folder.path(), &options).unwrap_err()
    };
    assert_eq!(with(1), with(7));
    assert_eq!(with(1).problems.len(), 40);
}
