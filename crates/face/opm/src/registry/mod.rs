//! `opm registry` and `opm index`: the commands for databases.
//!
//! Databases are read, never written, so only `registry serve` works. The other commands exist for
//! scripts: their flags and usage errors are upstream's. A valid call fails with a sentence about what to
//! use instead.

mod serve;
mod unsupported;

use super::command::{Action, Arguments, Command};
use super::flags::Flag;
use unsupported::{Check, fail_unsupported};

const ONLY_READ: &str = "Databases are only read: file-based catalogs replace them.";

fn database(default: &'static str) -> Flag {
    Flag::text("database", Some('d'), "the file of the database").with_default(default)
}

fn debug_flag() -> Flag {
    Flag::switch("debug", "log more")
}

fn permissive_flag() -> Flag {
    Flag::switch("permissive", "continue if a bundle or package cannot be read")
}

fn removal_flag() -> Flag {
    Flag::switch("allow-package-removal", "remove packages whose channels are all deprecated")
}

fn mode_flag() -> Flag {
    Flag::text("mode", None, "how channels are built: replaces, semver or semver-skippatch")
        .with_default("replaces")
}

fn tool_flag(text: &'static str) -> Flag {
    Flag::text("container-tool", Some('c'), text)
}

/// The flags that both `add` commands share.
fn add_flags(alpha: bool) -> [Flag; 3] {
    let unsupported = Flag::switch("enable-alpha", "allow what may still change");
    [
        mode_flag(),
        Flag::switch("overwrite-latest", "replace heads of channels of the same name").hidden(),
        if alpha { unsupported } else { unsupported.hidden() },
    ]
}

/// `opm registry` with its sub-commands.
pub(super) fn registry(alpha: bool) -> Command {
    let images = || Flag::list("bundle-images", Some('b'), "the images of bundles");
    let mut add = vec![
        images(),
        Flag::text("ca-file", None, "a file with additional trusted certificates"),
        tool_flag("the tool that pulls images: none, docker or podman").with_default("none"),
        database("bundles.db"),
        debug_flag(),
        permissive_flag(),
        Flag::switch("skip-tls", "talk to image registries without TLS")
            .deprecated("use --use-http and --skip-tls-verify instead"),
        Flag::switch("skip-tls-verify", "do not check certificates of image registries"),
        Flag::switch("use-http", "talk to image registries without TLS"),
    ];
    add.extend(add_flags(alpha));
    let children = vec![
        Command {
            arguments: Arguments::None,
            flags: add,
            action: Some(Action::Sync(|call| {
                fail_unsupported(call, &[Check::Mode, Check::Security, Check::Authority], ADD)
            })),
            ..Command::new("add", "Would add bundles to a database")
        },
        Command {
            hidden: true,
            arguments: Arguments::None,
            flags: vec![
                removal_flag(),
                images(),
                database("index.db"),
                debug_flag(),
                permissive_flag(),
            ],
            action: Some(Action::Sync(|call| fail_unsupported(call, &[], DEPRECATE))),
            ..Command::new("deprecatetruncate", "Would deprecate bundles in a database")
        },
        Command {
            arguments: Arguments::None,
            flags: vec![
                database("bundles.db"),
                debug_flag(),
                Flag::list("packages", Some('p'), "the packages to keep"),
                permissive_flag(),
            ],
            required: &["packages"],
            action: Some(Action::Sync(|call| fail_unsupported(call, &[], PRUNE))),
            ..Command::new("prune", "Would remove all but some packages from a database")
        },
        Command {
            arguments: Arguments::None,
            flags: vec![database("bundles.db"), debug_flag()],
            action: Some(Action::Sync(|call| fail_unsupported(call, &[], STRANDED))),
            ..Command::new(
                "prune-stranded",
                "Would remove bundles without a package from a database",
            )
        },
        Command {
            arguments: Arguments::None,
            flags: vec![
                database("bundles.db"),
                debug_flag(),
                Flag::list("packages", Some('o'), "the packages to remove"),
                permissive_flag(),
            ],
            required: &["packages"],
            action: Some(Action::Sync(|call| fail_unsupported(call, &[], REMOVE))),
            ..Command::new("rm", "Would remove packages from a database")
        },
        serve::command(),
    ];
    let children = children.into_iter().map(with_explanation).collect();
    Command {
        long: ONLY_READ,
        arguments: Arguments::None,
        children,
        ..Command::new("registry", "Databases of catalogs, which are only read")
    }
}

/// `opm index` with its sub-commands.
pub(super) fn index(alpha: bool) -> Command {
    let from = || Flag::text("from-index", Some('f'), "the image of the index");
    let written = || {
        vec![
            debug_flag().hidden(),
            Flag::switch("generate", "write a Dockerfile, and no image"),
            Flag::text("out-dockerfile", Some('d'), "the name of the Dockerfile"),
            from(),
            Flag::text("binary-image", Some('i'), "the image with opm").with_value_name("opm"),
            Flag::text("tag", Some('t'), "the name of the new image"),
        ]
    };
    let tools = || {
        [
            tool_flag("the tool that pulls and builds images: docker or podman"),
            Flag::text("build-tool", Some('u'), "the tool that builds images: docker or podman"),
            Flag::text(
                "pull-tool",
                Some('p'),
                "the tool that pulls images: none, docker or podman",
            ),
        ]
    };
    let bundles = || Flag::list("bundles", Some('b'), "the images of bundles");
    let one_tool =
        || tool_flag("the tool that builds images: docker or podman").with_default("podman");
    let with = |more: Vec<Flag>| [written(), more].concat();

    let mut add = [tools().to_vec(), vec![bundles(), permissive_flag()]].concat();
    add.extend(add_flags(alpha));
    let truncate = [tools().to_vec(), vec![bundles(), permissive_flag(), removal_flag()]].concat();
    let operators = Flag::list("operators", Some('o'), "the packages to remove");
    let remove = [tools().to_vec(), vec![operators, permissive_flag()]].concat();
    let packages = Flag::list("packages", Some('p'), "the packages to keep");
    let children = vec![
        Command {
            arguments: Arguments::None,
            flags: with(add),
            required: &["bundles"],
            action: Some(Action::Sync(|call| {
                fail_unsupported(call, &[Check::Security, Check::Mode, Check::Tools], ADD)
            })),
            ..Command::new("add", "Would add bundles to the image of an index")
        },
        Command {
            hidden: true,
            arguments: Arguments::None,
            flags: with(truncate),
            required: &["bundles"],
            action: Some(Action::Sync(|call| {
                fail_unsupported(call, &[Check::Tools, Check::Security], DEPRECATE)
            })),
            ..Command::new("deprecatetruncate", "Would deprecate bundles in the image of an index")
        },
        Command {
            arguments: Arguments::None,
            flags: vec![
                debug_flag().hidden(),
                Flag::text("index", Some('i'), "the image of the index"),
                Flag::list("package", Some('p'), "the packages to write"),
                Flag::text("download-folder", Some('f'), "the folder to write to")
                    .with_default("downloaded"),
                tool_flag("the tool that pulls images: none, docker or podman")
                    .with_default("none"),
                Flag::list("xpackage", Some('o'), "use --package instead").hidden(),
            ],
            required: &["index"],
            action: Some(Action::Sync(|call| {
                fail_unsupported(call, &[Check::Packages, Check::Security], EXPORT)
            })),
            ..Command::new("export", "Would write packages in the format of appregistry")
        },
        Command {
            arguments: Arguments::None,
            flags: with(vec![packages, one_tool(), permissive_flag()]),
            required: &["from-index", "packages"],
            action: Some(Action::Sync(|call| {
                fail_unsupported(call, &[Check::Tool, Check::Security], PRUNE)
            })),
            ..Command::new("prune", "Would remove all but some packages from the image of an index")
        },
        Command {
            arguments: Arguments::None,
            flags: with(vec![one_tool()]),
            required: &["from-index"],
            action: Some(Action::Sync(|call| {
                fail_unsupported(call, &[Check::Tool, Check::Security], STRANDED)
            })),
            ..Command::new(
                "prune-stranded",
                "Would remove bundles without a package from the image of an index",
            )
        },
        Command {
            arguments: Arguments::None,
            flags: with(remove),
            required: &["from-index", "operators"],
            action: Some(Action::Sync(|call| {
                fail_unsupported(call, &[Check::Tools, Check::Security], REMOVE)
            })),
            ..Command::new("rm", "Would remove packages from the image of an index")
        },
    ];
    let children = children.into_iter().map(with_explanation).collect();
    Command {
        long: ONLY_READ,
        arguments: Arguments::None,
        children,
        ..Command::new("index", "Images of databases of catalogs, which are only read")
    }
}

/// The command with a help text that explains why it fails.
fn with_explanation(command: Command) -> Command {
    if command.long.is_empty() { Command { long: UNSUPPORTED_HELP, ..command } } else { command }
}

const UNSUPPORTED_HELP: &str = "Checks its flags and fails: databases are only read, file-based catalogs replace them.\n\
    The error message names what to use instead.";

const ADD: &str = "databases are not written: render the bundles into a file-based catalog with `opm render`, or list them \
    in a template for `opm alpha render-template`";
const DEPRECATE: &str = "databases are not written: make a file-based catalog of it with `opm migrate`, and name the bundles in a \
    document of the schema olm.deprecations";
const EXPORT: &str = "the format of appregistry is not written: `opm alpha bundle unpack` writes the manifests of one bundle";
const PRUNE: &str = "databases are not written: make a file-based catalog of it with `opm migrate`, and keep only the folders of the \
    packages you want";
const REMOVE: &str = "databases are not written: make a file-based catalog of it with `opm migrate`, and remove the folders of the \
    packages";
const STRANDED: &str = "databases are not written: `opm migrate` makes a file-based catalog of it, without stranded bundles";

#[cfg(test)]
mod tests {
    use super::super::{CommandIo, run};
    use mainstay_clitest::block_on;
    use mainstay_clock::Clock;

    /// The exit code, and the message without the time and the usage.
    fn run_line(line: &str) -> (u8, String) {
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let folder = tempfile::tempdir().unwrap();
        let code = block_on(run(
            &arguments,
            &mut CommandIo {
                stdin: &mut std::io::empty(),
                stdout: &mut stdout,
                stderr: &mut stderr,
                folder: folder.path().to_owned(),
                alpha: false,
                terminal: false,
                clock: Clock::system(),
                environment: &|_| None,
            },
        ));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{line}");
        let text = String::from_utf8(stderr).unwrap();
        let text = text.split("\nUsage:").next().unwrap_or_default();
        let text = text.rsplit(" msg=").next().unwrap_or_default();
        (code, text.trim_end().to_owned())
    }

    #[test]
    fn usage_errors_come_before_the_failure() {
        for (line, what) in [
            ("index add", "Error: required flag(s) \"bundles\" not set"),
            ("index rm -o x", "Error: required flag(s) \"from-index\" not set"),
            ("index add -b x --mode y", "Error: Invalid channel update mode y specified"),
            (
                "index rm -f x -o y -c docker -p podman",
                "Error: container-tool cannot be set alongside pull-tool or build-tool",
            ),
            ("index add -b x -u none", "Error: none is not a valid container-tool for index add"),
            (
                "index prune -f x -p y -c none",
                "Error: none is not a valid container-tool for index prune",
            ),
            (
                "index export -i x -p y -o z",
                "Error: cannot simultaneously set '-p' and '-o' flags, remove '-o'",
            ),
            (
                "registry add --ca-file x --skip-tls-verify",
                "Error: --skip-tls-verify must be false when --ca-file is set",
            ),
            ("registry rm x -o y", "Error: unknown command \"x\" for \"opm registry rm\""),
            ("registry serve -d none", "Error: open none: no such file or directory"),
            ("registry serve -d .", "Error: . is not a regular file"),
        ] {
            assert_eq!(run_line(line), (1, what.to_owned()), "{line}");
        }
    }

    #[test]
    fn write_commands_fail_with_what_to_use_instead() {
        for line in [
            "registry add -b x",
            "registry rm -o x",
            "registry prune -p x",
            "registry prune-stranded",
            "registry deprecatetruncate -b x",
            "index add -b x --mode SEMVER",
            "index rm -f x -o y",
            "index prune -f x -p y",
            "index prune-stranded -f x",
            "index deprecatetruncate -b x",
            "index export -i x",
        ] {
            let (code, text) = run_line(line);
            assert_eq!(code, 1, "{line}");
            assert!(text.contains(" not written: ") && text.contains("`opm "), "{line}: {text}");
        }
        for line in ["registry", "index nope", "registry mirror a b"] {
            assert_eq!(run_line(line), (0, String::new()), "{line}");
        }
    }
}
