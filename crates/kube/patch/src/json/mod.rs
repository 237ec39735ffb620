//! JSON patch: RFC 6902 with the deviations of Go's library (`evanphx/json-patch`).
//!
//! The deviations: negative indices count from the end; `replace` of a missing field adds it; `add`
//! without a value adds null; `test` for null holds for a missing field; the root cannot be added,
//! moved or removed. No value may become deeper than [`crate::MAX_DEPTH`].

mod error;

pub use error::{ElementError, ErrorLocation, OperationError, PathMember};

use crate::{PatchError, depth};
use mainstay_object::size::json_length;
use serde_json::{Map, Value};

/// The most operations of a patch.
pub const MAX_OPERATIONS: usize = 10_000;
/// The most elements that the operations of a patch may move. List elements after an insertion or a
/// removal count, and the parts of a value that moves deeper into the object.
const MAX_MOVED: usize = 100_000_000;
/// The cost of checking one part of a value that moves deeper, in moved list elements.
const DEPTH_CHECK_COST: usize = 4;
/// The most bytes of JSON that the `copy` operations of a patch may add.
pub const MAX_COPY_BYTES: usize = 3 << 20;

/// Checks that a patch is a list of operations with members of the right types. The API does so
/// before it applies a patch, unless field validation is `Ignore`.
///
/// # Errors
/// [`PatchError::Malformed`], with the text of Go's decoder.
pub fn check_operations(patch: &Value) -> Result<(), PatchError> {
    let malformed = |found: &Value, wanted: &str| {
        let found = mainstay_gocompat::values::json_kind(found);
        Err(PatchError::Malformed(format!(
            "error decoding patch: json: cannot unmarshal {found} into Go {wanted}"
        )))
    };
    let operations = match patch {
        Value::Null => return Ok(()),
        Value::Array(operations) => operations,
        other => return malformed(other, "value of type []handlers.jsonPatchOp"),
    };
    for operation in operations {
        match operation {
            Value::Null => {}
            Value::Object(parts) => {
                for name in ["op", "path", "from"] {
                    match parts.get(name) {
                        None | Some(Value::Null | Value::String(_)) => {}
                        Some(other) => {
                            let member = format!("struct field jsonPatchOp.{name} of type string");
                            return malformed(other, &member);
                        }
                    }
                }
            }
            other => return malformed(other, "value of type handlers.jsonPatchOp"),
        }
    }
    Ok(())
}

/// Applies a JSON patch. After an error, the target may be partly patched.
///
/// # Errors
/// [`PatchError::Malformed`] if the patch is no list of operations,
/// [`PatchError::TooManyOperations`], [`PatchError::DoesNotApply`] for the first operation that
/// does not apply.
pub fn json_patch(target: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let malformed = |found: &Value, wanted: &str| {
        let found = mainstay_gocompat::values::json_kind(found);
        PatchError::Malformed(format!(
            "json: cannot unmarshal {found} into Go value of type jsonpatch.{wanted}"
        ))
    };
    let operations = match patch {
        Value::Null => return Ok(()),
        Value::Array(operations) => operations,
        other => return Err(malformed(other, "Patch")),
    };
    if operations.len() > MAX_OPERATIONS {
        let found = operations.len();
        return Err(PatchError::TooManyOperations { limit: MAX_OPERATIONS, found });
    }
    // A null operation has no members.
    let empty = Map::new();
    let operations: Vec<&Map<String, Value>> = operations
        .iter()
        .map(|operation| match operation {
            Value::Object(parts) => Ok(parts),
            Value::Null => Ok(&empty),
            other => Err(malformed(other, "Operation")),
        })
        .collect::<Result<_, _>>()?;
    let mut cost = PatchCost::default();
    for operation in operations {
        apply(target, operation, &mut cost)?;
        if cost.moved > MAX_MOVED {
            return Err(PatchError::TooMuchWork { limit: MAX_MOVED });
        }
    }
    Ok(())
}

/// The cost of the operations of a patch so far.
#[derive(Default)]
struct PatchCost {
    /// Copied bytes of JSON.
    copied: usize,
    /// Moved elements.
    moved: usize,
}

fn apply(
    target: &mut Value,
    operation: &Map<String, Value>,
    cost: &mut PatchCost,
) -> Result<(), OperationError> {
    let name = operation.get("op").and_then(Value::as_str).unwrap_or("unknown");
    let text = |field| {
        let text = operation.get(field).and_then(Value::as_str);
        text.ok_or_else(|| OperationError::NoField { operation: name.to_owned(), field })
    };
    let value = || operation.get("value").cloned().unwrap_or_default();
    match name {
        "add" => {
            let path = text("path")?;
            let value = value();
            check_depth(path, &value)?;
            let (parent, key) = find_parent(target, "add", PathMember::Path, path)?;
            add(parent, &key, value, cost).map_err(at_path("add", path))
        }
        "remove" => {
            let path = text("path")?;
            let (parent, key) = find_parent(target, "remove", PathMember::Path, path)?;
            remove(parent, &key, cost).map(drop).map_err(at_path("remove", path))
        }
        "replace" => replace(target, text("path")?, value()),
        "move" => {
            let from = text("from")?;
            let (parent, key) = find_parent(target, "move", PathMember::From, from)?;
            let moved = remove(parent, &key, cost).map_err(at_path("move", &key))?;
            let path = text("path")?;
            // A value that does not move deeper needs no check.
            if count_levels(path) > count_levels(from) {
                check_depth(path, &moved)?;
                cost.moved += DEPTH_CHECK_COST * count_parts(&moved);
            }
            let (parent, key) = find_parent(target, "move", PathMember::Path, path)?;
            add(parent, &key, moved, cost).map_err(at_path("move", path))
        }
        "test" => test(target, text("path")?, operation.get("value")),
        "copy" => {
            let from = text("from")?;
            let (parent, key) = find_parent(target, "copy", PathMember::From, from)?;
            let source = get(parent, &key).map_err(|error| {
                OperationError::Element(ErrorLocation::CopyFrom(from.to_owned()), error)
            })?;
            let copy = source.cloned().unwrap_or_default();
            cost.copied += json_length(&copy);
            let copied = cost.copied;
            if copied > MAX_COPY_BYTES {
                return Err(OperationError::CopyTooLarge { copied, limit: MAX_COPY_BYTES });
            }
            let path = text("path")?;
            check_depth(path, &copy)?;
            let (parent, key) = find_parent(target, "copy", PathMember::Path, path)?;
            add(parent, &key, copy, cost)
                .map_err(|error| OperationError::Element(ErrorLocation::CopyTo, error))
        }
        other => Err(OperationError::UnknownOperation { operation: other.to_owned() }),
    }
}

/// The number of values in a value, itself included.
fn count_parts(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count_parts).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(count_parts).sum::<usize>(),
        _ => 1,
    }
}

/// The number of objects and lists around the value at a path.
fn count_levels(path: &str) -> usize {
    path.matches('/').count()
}

/// Checks that a value is not too deep at a path.
fn check_depth(path: &str, value: &Value) -> Result<(), OperationError> {
    match depth::MAX_DEPTH.checked_sub(count_levels(path)) {
        Some(limit) if !depth::exceeds(value, limit) => Ok(()),
        _ => Err(OperationError::TooDeep),
    }
}

/// Converts the error of an element at the path of an operation.
fn at_path(operation: &'static str, path: &str) -> impl Fn(ElementError) -> OperationError {
    move |error| OperationError::Element(ErrorLocation::Path(operation, path.to_owned()), error)
}

/// The object or list that contains the value at a path, and the last part of the path.
fn find_parent<'a>(
    target: &'a mut Value,
    operation: &'static str,
    member: PathMember,
    path: &str,
) -> Result<(&'a mut Value, String), OperationError> {
    resolve_parent(target, path).ok_or_else(|| OperationError::NoPath {
        operation,
        member,
        path: path.to_owned(),
    })
}

/// Resolves all parts of a path but the last.
fn resolve_parent<'a>(target: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    let (parents, last) = path.rsplit_once('/')?;
    let mut parent = target;
    // As in Go's library, text before the first slash is ignored.
    for part in parents.split('/').skip(1) {
        parent = match parent {
            Value::Object(fields) => fields.get_mut(&unescape(part))?,
            Value::Array(items) => {
                let index = parse_index(&unescape(part), items.len()).ok()?;
                items.get_mut(index)?
            }
            _ => return None,
        };
    }
    matches!(parent, Value::Object(_) | Value::Array(_)).then(|| (parent, unescape(last)))
}

fn unescape(part: &str) -> String {
    if part.contains('~') { part.replace("~1", "/").replace("~0", "~") } else { part.to_owned() }
}

/// Parses an index into a list of this length; negative ones count from the end.
fn parse_index(key: &str, length: usize) -> Result<usize, ElementError> {
    let index: i64 = key.parse().map_err(|_| ElementError::NotANumber { key: key.to_owned() })?;
    let invalid = || ElementError::InvalidIndex { index };
    let length = i64::try_from(length).map_err(|_| invalid())?;
    let index = if index < 0 { index + length } else { index };
    usize::try_from(index).map_err(|_| invalid())
}

/// Parses the index of an element, which must exist.
fn element_index(key: &str, length: usize) -> Result<usize, ElementError> {
    let index = parse_index(key, length)?;
    if index < length {
        return Ok(index);
    }
    Err(ElementError::InvalidIndex { index: i64::try_from(index).unwrap_or(i64::MAX) })
}

fn get<'a>(parent: &'a Value, key: &str) -> Result<Option<&'a Value>, ElementError> {
    match parent {
        Value::Array(items) => Ok(items.get(element_index(key, items.len())?)),
        other => Ok(other.get(key)),
    }
}

fn add(
    parent: &mut Value,
    key: &str,
    value: Value,
    cost: &mut PatchCost,
) -> Result<(), ElementError> {
    match parent {
        Value::Array(items)
            if key == "-" && mainstay_fault::is_on("json-patch-appends-in-front") =>
        {
            items.insert(0, value);
        }
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            let new_length = items.len() + 1;
            if key.parse::<i64>().is_err() {
                return Err(ElementError::NotAnIndex { key: key.to_owned() });
            }
            let index = element_index(key, new_length)?;
            cost.moved += items.len() - index;
            items.insert(index, value);
        }
        Value::Object(fields) => drop(fields.insert(key.to_owned(), value)),
        _ => return Err(ElementError::NoContainer),
    }
    Ok(())
}

fn remove(parent: &mut Value, key: &str, cost: &mut PatchCost) -> Result<Value, ElementError> {
    match parent {
        Value::Array(items) => {
            let index = element_index(key, items.len())?;
            cost.moved += items.len() - index;
            Ok(items.remove(index))
        }
        Value::Object(fields) => {
            fields.remove(key).ok_or_else(|| ElementError::NoKey { key: key.to_owned() })
        }
        _ => Err(ElementError::NoContainer),
    }
}

fn replace(target: &mut Value, path: &str, value: Value) -> Result<(), OperationError> {
    check_depth(path, &value)?;
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return Err(OperationError::RootType);
        }
        *target = value;
        return Ok(());
    }
    let (parent, key) = find_parent(target, "replace", PathMember::Path, path)?;
    match parent {
        Value::Array(items) => {
            let index = element_index(&key, items.len())
                .map_err(|_| OperationError::NoElement { path: path.to_owned() })?;
            items[index] = value;
        }
        Value::Object(fields) => drop(fields.insert(key, value)),
        _ => {}
    }
    Ok(())
}

fn test(target: &mut Value, path: &str, wanted: Option<&Value>) -> Result<(), OperationError> {
    if mainstay_fault::is_on("json-patch-tests-hold") {
        return Ok(());
    }
    let wanted = wanted.unwrap_or(&Value::Null);
    let failed = || OperationError::TestFailed { path: path.to_owned() };
    if path.is_empty() {
        return if target == wanted { Ok(()) } else { Err(failed()) };
    }
    let (parent, key) = find_parent(target, "test", PathMember::Path, path)?;
    let found = get(parent, &key).map_err(at_path("test", path))?;
    if found.unwrap_or(&Value::Null) == wanted { Ok(()) } else { Err(failed()) }
}
