//! `opm alpha bundle`: bundles as folders and as images.
//!
//! The command `extract` is not implemented: it writes a ConfigMap of a cluster.

mod error;
mod generate;
mod infer;
mod unpack;
pub(super) mod validate;

pub(super) use error::FetchError;

use super::command::{Action, Arguments, Command};
use super::flags::Flag;

/// The command with its sub-commands.
pub(super) fn command() -> Command {
    let directory =
        Flag::text("directory", Some('d'), "the folder with the manifests of one version");
    let mut describing = vec![
        directory,
        Flag::text("package", Some('p'), "the package (read from the folder above if not given)")
            .with_value_name("directory"),
        Flag::text("channels", Some('c'), "the channels (read from the folder above if not given)")
            .with_value_name("directory"),
        Flag::text("default", Some('e'), "the default channel"),
        Flag::text("output-dir", Some('u'), "a folder to copy the manifests to"),
        Flag::text("base-image", None, "the image that the bundle's image is built from")
            .with_default("scratch"),
    ];
    let generated = describing.clone();
    describing.extend([
        Flag::text("tag", Some('t'), "the name of the image"),
        Flag::text(
            "image-builder",
            Some('b'),
            "the tool that builds it: docker, podman or buildah",
        )
        .with_default("docker"),
        Flag::switch("overwrite", "replace an existing annotations.yaml")
            .with_short('o')
            .with_value_name("false"),
    ]);
    let children = vec![
        Command {
            long: "Writes the Dockerfile and the annotations of a bundle as generate does, and builds an image of them\n\
                   with docker, podman or buildah. Existing files stay, and must have the same values.",
            arguments: Arguments::None,
            flags: describing,
            required: &["directory", "tag"],
            action: Some(Action::Sync(generate::build)),
            ..Command::new("build", "Build the image of a bundle")
        },
        Command {
            long: "Writes annotations.yaml beside the folder of manifests, and bundle.Dockerfile in the working\n\
                   directory. Replaces both if they exist.",
            arguments: Arguments::None,
            flags: generated,
            required: &["directory"],
            action: Some(Action::Sync(generate::run)),
            ..Command::new("generate", "Write the annotations and the Dockerfile of a bundle")
        },
        Command {
            long: "Pulls the image of a bundle, validates it, and writes its content to a folder.",
            arguments: Arguments::Exactly(1),
            flags: vec![
                Flag::switch("debug", "log more").with_short('d'),
                Flag::switch("skip-tls", "talk to the registry without TLS")
                    .with_short('s')
                    .deprecated("use --use-http and --skip-tls-verify instead"),
                Flag::switch("skip-tls-verify", "do not check the registry's certificate"),
                Flag::switch("use-http", "talk to the registry without TLS"),
                Flag::switch("skip-validation", "do not validate the bundle").with_short('v'),
                Flag::text("root-ca", Some('c'), "a file with additional trusted certificates"),
                Flag::text("out", Some('o'), "the folder to write to").with_default("./"),
            ],
            action: Some(Action::Async(|call| Box::pin(unpack::run(call)))),
            ..Command::new(
                "unpack BUNDLE_NAME[:TAG|@DIGEST]",
                "Write the content of a bundle's image to a folder",
            )
        },
        Command {
            long: "Pulls the image of a bundle and validates its format and its content.",
            deprecated: Some(
                "This subcommand is deprecated and will be removed in a future release. Migrate to operator-sdk bundle validate",
            ),
            arguments: Arguments::None,
            flags: vec![
                Flag::text("tag", Some('t'), "the name of the image"),
                Flag::text(
                    "image-builder",
                    Some('b'),
                    "the tool that pulls it: none, docker or podman",
                )
                .with_default("docker"),
                Flag::text(
                    "optional-validators",
                    Some('o'),
                    "additional validators: operatorhub, bundle-objects",
                ),
            ],
            required: &["tag"],
            action: Some(Action::Async(|call| Box::pin(validate::run(call)))),
            ..Command::new("validate", "Validate the image of a bundle")
        },
    ];
    Command {
        long: "Writes the metadata of bundles, and validates and unpacks bundles.",
        children,
        ..Command::new("bundle", "Bundles as folders and as images")
    }
}
