//! `operator-sdk bundle validate`, for when the program is started under the name `operator-sdk`.
//!
//! Arguments, flags, formats, exit codes and texts are those of operator-sdk 1.42 (`upstream-sdk`
//! §1.9), which validates bundles with version 0.34 of the validation library. Its other commands are
//! not implemented. The rules of the command line are those of `opm`, so its engine is shared.

mod external;
mod metadata;
mod optional;
mod result;
mod tool_images;
mod validate;

use super::UsageError;
use super::call::CommandIo;
use super::command::{Action, Arguments, Command};
use super::flags::Flag;

/// Whether this name of a program stands for `operator-sdk`.
pub fn is_program_name(program: &str) -> bool {
    let file = program.rsplit(['/', '\\']).next().unwrap_or(program);
    file == "operator-sdk" || file == "operator-sdk.exe"
}

/// Runs one command line (without the name of the program) and returns the exit code.
pub async fn run(arguments: &[String], io: &mut CommandIo<'_>) -> u8 {
    super::run_tree(&root(), arguments, io).await
}

/// Parses one command line as [`run`] does, without running it.
///
/// # Errors
/// The usage error.
pub fn check(arguments: &[String]) -> Result<(), UsageError> {
    super::engine::check(&root(), arguments)
}

pub(super) fn root() -> Command {
    let validate = Command {
        long: "Validates the format and the content of a bundle: of a folder with manifests and metadata, or of an\n\
               image. The exit code is 1 if there are errors; warnings are only printed.\n\n\
               --select-optional runs more validators, selected by their labels (--list-optional lists them), and\n\
               --alpha-select-external runs programs that validate the bundle, too.",
        arguments: Arguments::Any,
        flags: vec![
            Flag::text(
                "image-builder",
                Some('b'),
                "the tool that pulls an image: docker, podman or none",
            )
            .with_default("docker"),
            Flag::text("select-optional", None, "a selector for the labels of optional validators"),
            Flag::switch("list-optional", "list the optional validators"),
            Flag::pairs("optional-values", "values for validators, such as k8s-version=1.25"),
            Flag::text("output", Some('o'), "the format of the result: text or json-alpha1")
                .with_default("text"),
            Flag::text(
                "alpha-select-external",
                None,
                "programs that validate, separated by colons",
            ),
        ],
        action: Some(Action::Async(|call| Box::pin(validate::run(call)))),
        ..Command::new("validate", "Validate a bundle")
    };
    Command {
        long: "Validates bundles of operators.",
        persistent_flags: vec![
            Flag::list("plugins", None, "not used by the commands that are here"),
            Flag::switch("verbose", "log more"),
        ],
        children: vec![Command {
            children: vec![validate],
            ..Command::new("bundle", "Work with bundles")
        }],
        ..Command::new("operator-sdk", "Validates bundles of operators")
    }
}
