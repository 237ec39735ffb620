//! Configuration of a bundle: the mapping in the file of `--config`.

use mainstay_cause::{Cause, FileLocation};
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::place_of;
use mainstay_command::text::escape_controls;
use mainstay_yaml::Options;
use serde_json::{Map, Value};

/// Reads a mapping, YAML or JSON. An empty file is an empty mapping.
///
/// # Errors
/// The text is not YAML, or no mapping.
pub(super) fn read(file: &str, text: &[u8]) -> Result<Map<String, Value>, CommandFailure> {
    let place = place_of(file);
    let remedy = "write the fields of the configuration, such as `watchNamespace: my-namespace`";
    match mainstay_yaml::one(text, &Options::default()) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => {
            let cause = Cause::new("the configuration is no mapping").at(place);
            Err(CommandFailure::usage(cause.remedy(remedy)))
        }
        Err(error) => {
            let place = FileLocation::at(place.file, error.line, error.column);
            let cause = Cause::new(escape_controls(&error.fault.to_string())).at(place);
            Err(CommandFailure::usage(cause.remedy(remedy)))
        }
    }
}
