//! JSON patch: RFC 6902 with the edges of Go's library.
//!
//! Where they differ: negative indices count from the end; `replace` of a field that is not there
//! adds it; `add` without a value adds null; `test` for null holds for a field that is not there;
//! the root cannot be added, moved or removed. Nothing may become deeper than [`crate::MAX_DEPTH`].

mod error;

pub use error::{ElementError, End, OperationError, Place};

use crate::{PatchError, depth};
use mainstay_object::size::json_length;
use serde_json::{Map, Value};

/// How many operations a patch may have.
pub const MAX_OPERATIONS: usize = 10_000;
/// How many elements the operations of a patch may move: those of a list behind the place of an
/// insertion or a removal, and those of a value that goes deeper into the object.
const MAX_MOVED: usize = 100_000_000;
/// What it costs to look at a value that goes deeper, compared with moving an element of a list.
const LOOK: usize = 4;
/// How many bytes of JSON the `copy` operations of a patch may add.
pub const MAX_COPY_BYTES: usize = 3 << 20;

/// Checks that a patch is a list of operations whose parts have the right types, as the API does
/// before it applies one, unless it is told to ignore what it does not know.
///
/// # Errors
/// [`PatchError::Malformed`], in the words of Go's decoder.
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
                            let part = format!("struct field jsonPatchOp.{name} of type string");
                            return malformed(other, &part);
                        }
                    }
                }
            }
            other => return malformed(other, "value of type handlers.jsonPatchOp"),
        }
    }
    Ok(())
}

/// Applies a JSON patch. If it is refused the target is left half patched.
///
/// # Errors
/// [`PatchError::Malformed`] if it is no list of operations, [`PatchError::TooManyOperations`],
/// [`PatchError::DoesNotApply`] for the first operation that does not.
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
    // An operation that is null has no parts.
    let nothing = Map::new();
    let operations: Vec<&Map<String, Value>> = operations
        .iter()
        .map(|operation| match operation {
            Value::Object(parts) => Ok(parts),
            Value::Null => Ok(&nothing),
            other => Err(malformed(other, "Operation")),
        })
        .collect::<Result<_, _>>()?;
    let mut spent = Spent::default();
    for operation in operations {
        apply(target, operation, &mut spent)?;
        if spent.moved > MAX_MOVED {
            return Err(PatchError::TooMuchWork { limit: MAX_MOVED });
        }
    }
    Ok(())
}

/// What the operations of a patch have cost so far.
#[derive(Default)]
struct Spent {
    /// Bytes of JSON that were copied.
    copied: usize,
    /// Elements that were moved.
    moved: usize,
}

fn apply(
    target: &mut Value,
    operation: &Map<String, Value>,
    spent: &mut Spent,
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
            fits(path, &value)?;
            let (holder, key) = found(target, "add", End::Path, path)?;
            add(holder, &key, value, spent).map_err(at("add", path))
        }
        "remove" => {
            let path = text("path")?;
            let (holder, key) = found(target, "remove", End::Path, path)?;
            remove(holder, &key, spent).map(drop).map_err(at("remove", path))
        }
        "replace" => replace(target, text("path")?, value()),
        "move" => {
            let from = text("from")?;
            let (holder, key) = found(target, "move", End::From, from)?;
            let moved = remove(holder, &key, spent).map_err(at("move", &key))?;
            let path = text("path")?;
            // Moving sideways or up makes nothing deeper, and is not worth looking.
            if levels(path) > levels(from) {
                fits(path, &moved)?;
                spent.moved += LOOK * parts(&moved);
            }
            let (holder, key) = found(target, "move", End::Path, path)?;
            add(holder, &key, moved, spent).map_err(at("move", path))
        }
        "test" => test(target, text("path")?, operation.get("value")),
        "copy" => {
            let from = text("from")?;
            let (holder, key) = found(target, "copy", End::From, from)?;
            let found_value = get(holder, &key).map_err(|error| {
                OperationError::Element(Place::CopyFrom(from.to_owned()), error)
            })?;
            let copy = found_value.cloned().unwrap_or_default();
            spent.copied += json_length(&copy);
            let copied = spent.copied;
            if copied > MAX_COPY_BYTES {
                return Err(OperationError::CopyTooLarge { copied, limit: MAX_COPY_BYTES });
            }
            let path = text("path")?;
            fits(path, &copy)?;
            let (holder, key) = found(target, "copy", End::Path, path)?;
            add(holder, &key, copy, spent)
                .map_err(|error| OperationError::Element(Place::CopyTo, error))
        }
        other => Err(OperationError::UnknownOperation { operation: other.to_owned() }),
    }
}

/// How many values a value has, itself included.
fn parts(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(parts).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(parts).sum::<usize>(),
        _ => 1,
    }
}

/// How many objects and lists stand around what a path names.
fn levels(path: &str) -> usize {
    path.matches('/').count()
}

/// Refuses a value that is too deep for its place.
fn fits(path: &str, value: &Value) -> Result<(), OperationError> {
    match depth::MAX_DEPTH.checked_sub(levels(path)) {
        Some(room) if !depth::exceeds(value, room) => Ok(()),
        _ => Err(OperationError::TooDeep),
    }
}

/// What an operation says of an element at its path.
fn at(operation: &'static str, path: &str) -> impl Fn(ElementError) -> OperationError {
    move |error| OperationError::Element(Place::Path(operation, path.to_owned()), error)
}

/// The object or list that holds what a path of an operation names, and the last part of the path.
fn found<'a>(
    target: &'a mut Value,
    operation: &'static str,
    end: End,
    path: &str,
) -> Result<(&'a mut Value, String), OperationError> {
    find(target, path).ok_or_else(|| OperationError::NoPath {
        operation,
        end,
        path: path.to_owned(),
    })
}

/// The object or list that holds what a path names, and the last part of the path.
fn find<'a>(target: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    let (parents, last) = path.rsplit_once('/')?;
    let mut holder = target;
    // What is before the first slash names nothing.
    for part in parents.split('/').skip(1) {
        holder = match holder {
            Value::Object(fields) => fields.get_mut(&decoded(part))?,
            Value::Array(items) => {
                let at = index(&decoded(part), items.len()).ok()?;
                items.get_mut(at)?
            }
            _ => return None,
        };
    }
    matches!(holder, Value::Object(_) | Value::Array(_)).then(|| (holder, decoded(last)))
}

fn decoded(part: &str) -> String {
    if part.contains('~') { part.replace("~1", "/").replace("~0", "~") } else { part.to_owned() }
}

/// A position in a list of a length; negative ones count from the end.
fn index(key: &str, length: usize) -> Result<usize, ElementError> {
    let at: i64 = key.parse().map_err(|_| ElementError::NotANumber { key: key.to_owned() })?;
    let invalid = || ElementError::NoIndex { at };
    let length = i64::try_from(length).map_err(|_| invalid())?;
    let at = if at < 0 { at + length } else { at };
    usize::try_from(at).map_err(|_| invalid())
}

fn element(key: &str, length: usize) -> Result<usize, ElementError> {
    let at = index(key, length)?;
    if at < length {
        return Ok(at);
    }
    Err(ElementError::NoIndex { at: i64::try_from(at).unwrap_or(i64::MAX) })
}

fn get<'a>(holder: &'a Value, key: &str) -> Result<Option<&'a Value>, ElementError> {
    match holder {
        Value::Array(items) => Ok(items.get(element(key, items.len())?)),
        other => Ok(other.get(key)),
    }
}

fn add(holder: &mut Value, key: &str, value: Value, spent: &mut Spent) -> Result<(), ElementError> {
    match holder {
        Value::Array(items)
            if key == "-" && mainstay_fault::is_on("json-patch-appends-in-front") =>
        {
            items.insert(0, value);
        }
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            let room = items.len() + 1;
            if key.parse::<i64>().is_err() {
                return Err(ElementError::NotAnIndex { key: key.to_owned() });
            }
            let at = element(key, room)?;
            spent.moved += items.len() - at;
            items.insert(at, value);
        }
        Value::Object(fields) => drop(fields.insert(key.to_owned(), value)),
        _ => return Err(ElementError::NoHolder),
    }
    Ok(())
}

fn remove(holder: &mut Value, key: &str, spent: &mut Spent) -> Result<Value, ElementError> {
    match holder {
        Value::Array(items) => {
            let at = element(key, items.len())?;
            spent.moved += items.len() - at;
            Ok(items.remove(at))
        }
        Value::Object(fields) => {
            fields.remove(key).ok_or_else(|| ElementError::NoKey { key: key.to_owned() })
        }
        _ => Err(ElementError::NoHolder),
    }
}

fn replace(target: &mut Value, path: &str, value: Value) -> Result<(), OperationError> {
    fits(path, &value)?;
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return Err(OperationError::RootKind);
        }
        *target = value;
        return Ok(());
    }
    let (holder, key) = found(target, "replace", End::Path, path)?;
    match holder {
        Value::Array(items) => {
            let at = element(&key, items.len())
                .map_err(|_| OperationError::NoElement { path: path.to_owned() })?;
            items[at] = value;
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
    let (holder, key) = found(target, "test", End::Path, path)?;
    let found = get(holder, &key).map_err(at("test", path))?;
    if found.unwrap_or(&Value::Null) == wanted { Ok(()) } else { Err(failed()) }
}
