//! `opm alpha bundle`: bundles as folders and as images.
//!
//! Not here: `extract`, which fills an object of a cluster.

mod error;
mod generate;
mod infer;
mod unpack;
pub(super) mod validate;

pub(super) use error::FetchError;

use super::command::{Action, Arguments, Command};
use super::flags::Flag;

/// The command with those below it.
pub(super) fn command() -> Command {
    let directory =
        Flag::text("directory", Some('d'), "the folder with the manifests of one version");
    let mut describing = vec![
        directory,
        Flag::text("package", Some('p'), "the package (read from the folder above if not given)")
            .taking("directory"),
        Flag::text("channels", Some('c'), "the channels (read from the folder above if not given)")
            .taking("directory"),
        Flag::text("default", Some('e'), "the default channel"),
        Flag::text("output-dir", Some('u'), "a folder to copy the manifests to"),
        Flag::text("base-image", None, "the image that the bundle's image is built from")
            .or("scratch"),
    ];
    let generated = describing.clone();
    describing.extend([
        Flag::text("tag", Some('t'), "the name of the image"),
        Flag::text("image-builder", Some('b'), "what builds it: docker, podman or buildah")
            .or("docker"),
        Flag::switch("overwrite", "write annotations.yaml anew if it is there")
            .letter('o')
            .taking("false"),
    ]);
    let children = vec![
        Command {
            long: "Writes the Dockerfile and the annotations of a bundle as generate does, and has an image built\n\
                   of them by docker, podman or buildah. Files that are there are kept, and must say the same.",
            arguments: Arguments::None,
            flags: describing,
            required: &["directory", "tag"],
            action: Some(Action::Sync(generate::build)),
            ..Command::new("build", "Build the image of a bundle")
        },
        Command {
            long: "Writes annotations.yaml beside the folder of manifests, and bundle.Dockerfile here. Both are\n\
                   written anew if they are there.",
            arguments: Arguments::None,
            flags: generated,
            required: &["directory"],
            action: Some(Action::Sync(generate::run)),
            ..Command::new("generate", "Write the annotations and the Dockerfile of a bundle")
        },
        Command {
            long: "Pulls the image of a bundle, judges it, and writes its content to a folder.",
            arguments: Arguments::Exactly(1),
            flags: vec![
                Flag::switch("debug", "log more").letter('d'),
                Flag::switch("skip-tls", "talk to the registry without TLS")
                    .letter('s')
                    .instead("use --use-http and --skip-tls-verify instead"),
                Flag::switch("skip-tls-verify", "do not check the registry's certificate"),
                Flag::switch("use-http", "talk to the registry without TLS"),
                Flag::switch("skip-validation", "do not judge the bundle").letter('v'),
                Flag::text("root-ca", Some('c'), "a file with certificates to trust besides"),
                Flag::text("out", Some('o'), "the folder to write to").or("./"),
            ],
            action: Some(Action::Async(|call| Box::pin(unpack::run(call)))),
            ..Command::new(
                "unpack BUNDLE_NAME[:TAG|@DIGEST]",
                "Write the content of a bundle's image to a folder",
            )
        },
        Command {
            long: "Pulls the image of a bundle and judges its format and its content.",
            deprecated: Some(
                "This subcommand is deprecated and will be removed in a future release. Migrate to operator-sdk bundle validate",
            ),
            arguments: Arguments::None,
            flags: vec![
                Flag::text("tag", Some('t'), "the name of the image"),
                Flag::text("image-builder", Some('b'), "what pulls it: none, docker or podman")
                    .or("docker"),
                Flag::text(
                    "optional-validators",
                    Some('o'),
                    "what is asked besides: operatorhub, bundle-objects",
                ),
            ],
            required: &["tag"],
            action: Some(Action::Async(|call| Box::pin(validate::run(call)))),
            ..Command::new("validate", "Judge the image of a bundle")
        },
    ];
    Command {
        long: "Writes what belongs to a bundle, and judges and unpacks bundles.",
        children,
        ..Command::new("bundle", "Bundles as folders and as images")
    }
}
