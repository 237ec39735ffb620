//! What `subresources.scale` asks of objects.

use super::Scale;
use mainstay_gocompat::values;
use mainstay_object::{FieldError, FieldPath};
use serde_json::Value;

/// The greatest number of replicas.
const MOST: i64 = i32::MAX as i64;

impl Scale {
    /// What is wrong with the wanted number of an object.
    pub fn check_spec(&self, object: &Value) -> Vec<FieldError> {
        number(object, &self.spec_replicas).into_iter().collect()
    }

    /// What is wrong with the present number and the selector of an object.
    pub fn check_status(&self, object: &Value) -> Vec<FieldError> {
        let mut found: Vec<FieldError> =
            number(object, &self.status_replicas).into_iter().collect();
        if let Some(path) = &self.label_selector {
            match at(object, path) {
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

fn number(object: &Value, path: &str) -> Option<FieldError> {
    let wrong =
        |value: i64, why: String| Some(FieldError::invalid(&FieldPath::new(path), value, why));
    match at(object, path) {
        Ok(None) => None,
        Ok(Some(value)) => match value.as_i64() {
            Some(number) if number < 0 => {
                wrong(number, "should be a non-negative integer".to_owned())
            }
            Some(number) if number > MOST => {
                wrong(number, format!("should be less than or equal to {MOST}"))
            }
            Some(_) => None,
            None => wrong(0, AccessorError::new(path, value, "int64").to_string()),
        },
        Err(error) => wrong(0, error.to_string()),
    }
}

/// The value at a path; none if it, or something on the way, is not there.
fn at<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, AccessorError> {
    let mut value = object;
    let mut gone = String::new();
    for field in path.trim_start_matches('.').split('.') {
        gone.push('.');
        gone.push_str(field);
        match value {
            Value::Null => return Ok(None),
            Value::Object(fields) => match fields.get(field) {
                Some(inner) => value = inner,
                None => return Ok(None),
            },
            other => return Err(AccessorError::new(&gone, other, "map[string]interface{}")),
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
    fn numbers_are_small_and_selectors_are_texts() {
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
