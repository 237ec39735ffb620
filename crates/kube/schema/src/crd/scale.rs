//! Validation of objects by the paths of `subresources.scale`.

use super::Scale;
use mainstay_gocompat::values;
use mainstay_object::{FieldError, FieldPath};
use serde_json::Value;

/// The largest number of replicas.
const MAX_REPLICAS: i64 = i32::MAX as i64;

impl Scale {
    /// The error of the desired number of replicas.
    pub fn check_spec(&self, object: &Value) -> Vec<FieldError> {
        check_replicas(object, &self.spec_replicas).into_iter().collect()
    }

    /// The errors of the current number of replicas and of the selector.
    pub fn check_status(&self, object: &Value) -> Vec<FieldError> {
        let mut found: Vec<FieldError> =
            check_replicas(object, &self.status_replicas).into_iter().collect();
        if let Some(path) = &self.label_selector {
            match value_at(object, path) {
                Ok(None | Some(Value::String(_))) => {}
                Ok(Some(other)) => {
                    let error = AccessorError::new(path, other, "string");
                    let path = FieldPath::new(path);
                    found.push(FieldError::invalid(&path, "", error.to_string()));
                }
                Err(error) => {
                    let path = FieldPath::new(path);
                    found.push(FieldError::invalid(&path, "", error.to_string()));
                }
            }
        }
        found
    }
}

fn check_replicas(object: &Value, path: &str) -> Option<FieldError> {
    let invalid =
        |value: i64, why: String| Some(FieldError::invalid(&FieldPath::new(path), value, why));
    match value_at(object, path) {
        Ok(None) => None,
        Ok(Some(value)) => match value.as_i64() {
            Some(number) if number < 0 => {
                invalid(number, "should be a non-negative integer".to_owned())
            }
            Some(number) if number > MAX_REPLICAS => {
                invalid(number, format!("should be less than or equal to {MAX_REPLICAS}"))
            }
            Some(_) => None,
            None => invalid(0, AccessorError::new(path, value, "int64").to_string()),
        },
        Err(error) => invalid(0, error.to_string()),
    }
}

/// The value at a path; none if it or a parent is absent.
fn value_at<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, AccessorError> {
    let mut value = object;
    let mut visited = String::new();
    for field in path.trim_start_matches('.').split('.') {
        visited.push('.');
        visited.push_str(field);
        match value {
            Value::Null => return Ok(None),
            Value::Object(fields) => match fields.get(field) {
                Some(inner) => value = inner,
                None => return Ok(None),
            },
            other => return Err(AccessorError::new(&visited, other, "map[string]interface{}")),
        }
    }
    Ok(Some(value))
}

/// A value at a path is of another type.
#[derive(Debug, thiserror::Error)]
#[error(
    "{path} accessor error: {} is of the type {}, expected {expected}",
    values::plain(found),
    values::type_name(found)
)]
struct AccessorError {
    path: String,
    found: Value,
    /// The Go type.
    expected: &'static str,
}

impl AccessorError {
    fn new(path: &str, found: &Value, expected: &'static str) -> Self {
        Self { path: path.to_owned(), found: found.clone(), expected }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn replicas_must_be_int32_and_selectors_strings() {
        let scale = Scale {
            spec_replicas: ".spec.r".to_owned(),
            status_replicas: ".status.r".to_owned(),
            label_selector: Some(".status.s".to_owned()),
        };
        let texts = |object: Value| -> Vec<String> {
            let errors = scale.check_spec(&object).into_iter().chain(scale.check_status(&object));
            errors.map(|error| error.to_string()).collect()
        };
        assert!(texts(json!({"spec": {"r": 1}, "status": null})).is_empty());
        assert_eq!(
            texts(json!({"spec": {"r": -1}, "status": {"r": 3_000_000_000_i64, "s": [1, "a"]}})),
            [
                ".spec.r: Invalid value: -1: should be a non-negative integer",
                ".status.r: Invalid value: 3000000000: should be less than or equal to 2147483647",
                ".status.s: Invalid value: \"\": .status.s accessor error: [1 a] is of the type []interface {}, expected string",
            ]
        );
        assert_eq!(
            texts(json!({"spec": "x", "status": {"r": 1.5}})),
            [
                ".spec.r: Invalid value: 0: .spec.r accessor error: x is of the type string, expected map[string]interface{}",
                ".status.r: Invalid value: 0: .status.r accessor error: 1.5 is of the type float64, expected int64",
            ]
        );
    }
}
