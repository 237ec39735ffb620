//! `opm validate`: validates a file-based catalog.

use super::call::{Call, Failure};
use super::command::{Action, Arguments, Command};
use super::flags::Flag;
use super::go;
use super::render::UnknownOutput;
use mainstay_catalog::{Catalog, KeptContent, Limits, LoadOptions};
use mainstay_gocompat::json::{Html, text_of_bytes};
use serde_json::json;

/// The command.
pub(super) fn command() -> Command {
    Command {
        arguments: Arguments::Exactly(1),
        flags: vec![Flag::text("output", Some('o'), "format of the result (json|yaml)")],
        action: Some(Action::Sync(run)),
        ..Command::new("validate <directory>", "Check the file-based catalog in a folder")
    }
}

fn run(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let folder = call.argument(0);
    if !call.io.is_folder(folder).map_err(Failure::usage)? {
        return Err(Failure::Usage(format!("{} is not a directory", go::quote(folder))));
    }
    let limits = Limits { depth: Limits::DEEPEST, ..Limits::default() };
    let options = LoadOptions { keep: KeptContent::Facts, limits, ..LoadOptions::default() };
    let result = Catalog::load(&call.io.resolve_path(folder), &options);
    let result =
        result.map(drop).map_err(|error| call.io.with_typed_path(&error.upstream(), folder));
    let text = match (call.flags.text("output"), &result) {
        ("", _) => return result.map_err(Failure::Fatal),
        ("json", Ok(())) => "{\n  \"passed\": true\n}\n".to_owned(),
        ("json", Err(message)) => format!(
            "{{\n  \"passed\": false,\n  \"error\": {{\n    \"message\": {}\n  }}\n}}\n",
            text_of_bytes(message.as_bytes(), Html::Escaped)
        ),
        ("yaml", Ok(())) => "passed: true\n\n".to_owned(),
        ("yaml", Err(message)) => {
            let output = json!({ "passed": false, "error": { "message": message } });
            mainstay_yaml::to_string(&output) + "\n"
        }
        (other, _) => return Err(Failure::usage(UnknownOutput { output: other.to_owned() })),
    };
    call.io.print(&text);
    result.map_err(|_| Failure::Silent)
}
