//! Error messages of kubectl.

use mainstay_client::Error;
use mainstay_object::{Reason, Status};

/// A request that failed, with the words that kubectl puts before the server's message.
#[derive(Debug)]
pub(super) struct Failure {
    /// What was attempted, such as `error when creating "STDIN": `; may be empty.
    pub(super) prefix: &'static str,
    pub(super) error: Error,
}

/// The standard error of a command with these failures.
pub(super) fn standard_error(failures: &[Failure]) -> String {
    match failures {
        [] => String::new(),
        [Failure { error: Error::Status(status), .. }] if is_about_fields(status) => {
            field_errors(status)
        }
        _ => failures.iter().map(|failure| line(failure) + "\n").collect(),
    }
}

fn line(Failure { prefix, error }: &Failure) -> String {
    match error {
        Error::Status(status) if status.reason == Reason::Unknown => {
            format!("Error from server: {prefix}{}", status.message)
        }
        Error::Status(status) => {
            format!("Error from server ({}): {prefix}{}", status.reason.as_str(), status.message)
        }
        _ => format!("error: {prefix}{error}"),
    }
}

fn is_about_fields(status: &Status) -> bool {
    status.reason == Reason::Invalid && !status.details.kind.is_empty()
}

/// A single invalid object: kubectl lists the fields.
fn field_errors(status: &Status) -> String {
    let details = &status.details;
    let mut causes: Vec<String> = Vec::new();
    for cause in &details.causes {
        let text = format!("{}: {}", cause.field, cause.message);
        if !causes.contains(&text) {
            causes.push(text);
        }
    }
    let begin = format!("The {} \"{}\" is invalid", details.kind, details.name);
    match causes.as_slice() {
        [] => format!("{begin}\n"),
        [cause] => format!("{begin}: {cause}\n"),
        _ => {
            format!("{begin}: \n* {}\n", causes.join("\n* "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_invalid_object_is_reported_by_field_and_several_by_message() {
        let status = |fields: &[&str]| {
            let status = Status::new(Reason::Invalid, "Thing.x.io \"a\" is invalid: why");
            let status = status.about("x.io", "Thing", "a");
            fields.iter().fold(status, |status, field| {
                status.with_cause("FieldValueInvalid", "Required value", field)
            })
        };
        let failure = |fields: &[&str]| Failure {
            prefix: "error when creating \"STDIN\": ",
            error: Error::Status(status(fields)),
        };
        let error = standard_error(&[failure(&["spec.a"])]);
        assert_eq!(error, "The Thing \"a\" is invalid: spec.a: Required value\n");
        let error = standard_error(&[failure(&["spec.a", "spec.b", "spec.a"])]);
        assert_eq!(
            error,
            "The Thing \"a\" is invalid: \n* spec.a: Required value\n* spec.b: Required value\n"
        );
        let line = "Error from server (Invalid): error when creating \"STDIN\": Thing.x.io \"a\" is invalid: why\n";
        assert_eq!(standard_error(&[failure(&["a"]), failure(&["b"])]), line.repeat(2));
    }
}
