//! The actual cost of calls.
//!
//! Rules, in this order: the trackers of cel-go's list and set libraries, apiserver's
//! `library.CostEstimator.CallCost`, `interpreter/runtimecost.go`.

use super::range::scale;
use super::{COST_PER_CODE_POINT, COST_PER_PATTERN_CODE_POINT, CallCost, LIST_CREATE};
use crate::kubernetes::names::escape;
use crate::kubernetes::{ShapeKind, ValueShape};
use crate::value::{
    BytesValue, Error, ListValue, MapKey, MapValue, ObjectValue, StringValue, Value, WorkBudget,
};
use serde_json::Value as Json;

/// The cost function of a call.
///
/// `overload` is the planned one, or empty if it depends on the arguments (cel-go has none then
/// either).
pub fn call_cost(function: &str, overload: &str) -> CallCost {
    by_overload_tracker(overload)
        .or_else(|| by_function(function, overload))
        .unwrap_or_else(|| by_overload(overload))
}

/// The trackers of cel-go's extension libraries, which come first.
fn by_overload_tracker(overload: &str) -> Option<CallCost> {
    Some(match overload {
        "list_slice" | "lists_range" | "list_reverse" => {
            |_, result, _| allocating(1.0, size(result))
        }
        "list_flatten" => |args, _, _| allocating(1.0, first(args)),
        "list_flatten_int" => |args, _, _| {
            let depth = match args.get(1) {
                #[expect(clippy::cast_precision_loss, reason = "as cel-go computes")]
                Some(Value::Int(depth)) => *depth as f64,
                _ => 1.0,
            };
            allocating(depth, first(args))
        },
        "list_distinct" => |args, _, work| self_compare(args.first(), work),
        "list_sets_contains_list" | "list_sets_intersects_list" => {
            |args, _, _| 1 + first(args).saturating_mul(second(args))
        }
        "list_sets_equivalent_list" => {
            |args, _, _| 1 + first(args).saturating_mul(second(args)).saturating_mul(2)
        }
        _ if overload.starts_with("list_") && overload.ends_with("_sort") => {
            |args, _, work| self_compare(args.first(), work)
        }
        _ if overload.starts_with("list_") && overload.ends_with("_sortByAssociatedKeys") => {
            |args, _, work| self_compare(args.get(1), work)
        }
        _ => return None,
    })
}

/// A panic of cel-go's list trackers, which do not check the type of an argument.
#[derive(Debug)]
pub(crate) struct CostPanic {
    /// The index of the argument.
    pub(crate) argument: usize,
    /// The panic for an error as argument.
    pub(crate) error: Error,
    /// The panic for `null` as argument.
    pub(crate) null: Error,
}

/// The panic of an overload's tracker; none for most overloads.
pub(crate) fn cost_panic(overload: &str) -> Option<CostPanic> {
    let list = |argument| CostPanic {
        argument,
        error: Error::Internal(
            "interface conversion: *types.Err is not traits.Lister: missing method Add",
        ),
        null: Error::Internal(
            "interface conversion: types.Null is not traits.Lister: missing method Add",
        ),
    };
    match overload.strip_prefix("list_")? {
        "distinct" => Some(list(0)),
        "flatten_int" => Some(CostPanic {
            argument: 1,
            error: Error::Internal("interface conversion: ref.Val is *types.Err, not types.Int"),
            null: Error::Internal("interface conversion: ref.Val is types.Null, not types.Int"),
        }),
        rest if rest.ends_with("_sort") => Some(list(0)),
        rest if rest.ends_with("_sortByAssociatedKeys") => Some(list(1)),
        _ => None,
    }
}

/// Kubernetes' costs.
fn by_function(function: &str, overload: &str) -> Option<CallCost> {
    Some(match function {
        // A rule can afford two of them.
        "check" => |_, _, _| 350_000,
        _ if super::has_unit_cost(function) => unit_cost,
        "fieldSelector" | "labelSelector" => |args, _, _| {
            let length = second(args);
            LIST_CREATE
                .saturating_add(scale(length, COST_PER_CODE_POINT))
                .saturating_add(scale(scale(length, 0.5), super::COST_PER_REQUIREMENT))
        },
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
            |args, _, work| args.first().map_or(0, |list| traversal(list, work))
        }
        "ip" if overload == "cidr_ip" => unit_cost,
        "url"
        | "lowerAscii"
        | "upperAscii"
        | "substring"
        | "trim"
        | "jsonpatch.escapeKey"
        | "cidr"
        | "isIP"
        | "isCIDR"
        | "ip"
        | "quantity"
        | "isQuantity"
        | "semver"
        | "isSemver" => |args, _, _| scale(first(args), COST_PER_CODE_POINT),
        "replace" | "split" | "ip.isCanonical" => {
            |args, _, _| scale(first(args), 2.0 * COST_PER_CODE_POINT)
        }
        "join" => |_, result, _| scale(size(result), 2.0 * COST_PER_CODE_POINT),
        "find" | "findAll" => |args, _, _| matching(first(args), second(args)),
        "containsIP" if overload == "cidr_contains_ip_string" => |args, _, _| {
            let cidr = first(args);
            scale(cidr + cidr, COST_PER_CODE_POINT) + scale(second(args), COST_PER_CODE_POINT)
        },
        "containsIP" => |args, _, _| scale(2 * first(args), COST_PER_CODE_POINT),
        "containsCIDR" if overload == "cidr_contains_cidr_string" => |args, _, _| {
            let cidr = first(args);
            scale(2 * cidr, COST_PER_CODE_POINT)
                + scale(cidr, COST_PER_CODE_POINT)
                + 1
                + scale(second(args), COST_PER_CODE_POINT)
        },
        "containsCIDR" => |args, _, _| {
            let cidr = first(args);
            scale(2 * cidr, COST_PER_CODE_POINT) + scale(cidr, COST_PER_CODE_POINT) + 1
        },
        "validate" => |args, _, _| match args.first() {
            Some(Value::Opaque(format)) => match format.pattern_size() {
                Some(pattern) => matching(second(args), pattern),
                None => 1,
            },
            _ => 1,
        },
        "_==_" => |args, _, _| match args.first() {
            // All opaque types are those of Kubernetes' libraries.
            Some(Value::Opaque(_)) => 1,
            _ => comparing(args),
        },
        _ => return None,
    })
}

/// cel-go's own costs.
fn by_overload(overload: &str) -> CallCost {
    match overload {
        "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string"
        | "strings_quote" | "string_format" => {
            |args, _, _| scale(first_inner(args), COST_PER_CODE_POINT)
        }
        "in_list" => |args, _, _| args.get(1).map_or(1, inner_size),
        "less_string"
        | "greater_string"
        | "less_equals_string"
        | "greater_equals_string"
        | "less_bytes"
        | "greater_bytes"
        | "less_equals_bytes"
        | "greater_equals_bytes"
        | "equals"
        | "not_equals" => |args, _, _| comparing(args),
        "add_string" | "add_bytes" => |args, _, _| {
            scale(first_inner(args).saturating_add(second_inner(args)), COST_PER_CODE_POINT)
        },
        "matches_string" => |args, _, _| matching(first_inner(args), second_inner(args)),
        "contains_string" => |args, _, _| {
            scale(first_inner(args), COST_PER_CODE_POINT)
                .saturating_mul(scale(second_inner(args), COST_PER_CODE_POINT))
        },
        _ => unit_cost,
    }
}

const fn unit_cost<'a>(_: &[Value<'a>], _: &Value<'a>, _: &WorkBudget) -> u64 {
    1
}

/// The cost of a comparison depends on the shorter side.
fn comparing(args: &[Value<'_>]) -> u64 {
    scale(first_inner(args).min(second_inner(args)), COST_PER_CODE_POINT)
}

/// The cost of matching a text. The text counts one code point more, so an empty text has a cost
/// too.
fn matching(text: u64, pattern: u64) -> u64 {
    scale(text.saturating_add(1), COST_PER_CODE_POINT)
        .saturating_mul(scale(pattern, COST_PER_PATTERN_CODE_POINT))
}

/// The cost of a call that creates a list.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "as cel-go computes: rounded down"
)]
fn allocating(factor: f64, size: u64) -> u64 {
    ((size as f64 * factor) as u64).saturating_add(1 + LIST_CREATE)
}

/// The cost of a call that compares all elements of a list with each other.
fn self_compare(list: Option<&Value<'_>>, work: &WorkBudget) -> u64 {
    let Some(Value::List(list)) = list else { return allocating(2.0, 0) };
    let has_texts = match list {
        ListValue::Json { items, shape, .. } => {
            items.first().is_some_and(Json::is_string) && !is_time(&shape.element().kind)
        }
        ListValue::Joined { .. } => {
            matches!(list.get(0, work), Some(Ok(Value::String(_) | Value::Bytes(_))))
        }
        ListValue::Values(values) => {
            matches!(values.first(), Some(Value::String(_) | Value::Bytes(_)))
        }
    };
    let size = list_size(list);
    allocating(if has_texts { 2.0 + COST_PER_CODE_POINT } else { 2.0 }, size.saturating_mul(size))
}

fn first(args: &[Value<'_>]) -> u64 {
    args.first().map_or(1, size)
}

fn second(args: &[Value<'_>]) -> u64 {
    args.get(1).map_or(1, size)
}

fn first_inner(args: &[Value<'_>]) -> u64 {
    args.first().map_or(1, inner_size)
}

fn second_inner(args: &[Value<'_>]) -> u64 {
    args.get(1).map_or(1, inner_size)
}

/// The size of a value; one if it has none.
fn size(value: &Value<'_>) -> u64 {
    match value {
        Value::String(text) => text_size(text),
        Value::Bytes(bytes) => bytes_size(bytes),
        Value::List(list) => list_size(list),
        Value::Map(MapValue::Json { entries, .. }) => entries.len() as u64,
        Value::Map(MapValue::Values(entries)) => entries.len() as u64,
        Value::Object(ObjectValue::Json { fields, .. }) => fields.len() as u64,
        Value::Opaque(opaque) => opaque.size().unwrap_or(1),
        _ => 1,
    }
}

/// The size of a value, or of an optional's value.
fn inner_size(mut value: &Value<'_>) -> u64 {
    while let Value::Optional(Some(inner)) = value {
        value = inner;
    }
    size(value)
}

fn text_size(text: &StringValue<'_>) -> u64 {
    text_of(text).chars().count() as u64
}

fn text_of<'v>(text: &'v StringValue<'_>) -> &'v str {
    match text {
        StringValue::Borrowed(text) => text,
        StringValue::Shared(text) => text,
    }
}

fn bytes_size(bytes: &BytesValue<'_>) -> u64 {
    match bytes {
        BytesValue::Borrowed(bytes) => bytes.len() as u64,
        BytesValue::Shared(bytes) => bytes.len() as u64,
    }
}

fn list_size(list: &ListValue<'_>) -> u64 {
    list.len() as u64
}

/// The cost of traversing a value with all its elements.
fn traversal(value: &Value<'_>, work: &WorkBudget) -> u64 {
    // The evaluation checks later whether work remains.
    if work.take(1).is_err() {
        return 0;
    }
    match value {
        Value::String(text) => traversed(text_of(text).len()),
        Value::Bytes(BytesValue::Borrowed(bytes)) => traversed(bytes.len()),
        Value::Bytes(BytesValue::Shared(bytes)) => traversed(bytes.len()),
        Value::List(ListValue::Values(values)) => {
            values.iter().map(|value| traversal(value, work)).sum()
        }
        Value::List(list @ ListValue::Joined { .. }) => {
            list.iter(work).map(|value| value.map_or(1, |value| traversal(&value, work))).sum()
        }
        Value::List(ListValue::Json { items, shape, .. }) => {
            items.iter().map(|item| json_traversal(item, shape.element())).sum()
        }
        Value::Map(MapValue::Values(entries)) => entries
            .iter()
            .map(|(key, value)| {
                let key = match key {
                    MapKey::String(text) => traversed(text_of(text).len()),
                    _ => 1,
                };
                key + traversal(value, work)
            })
            .sum(),
        Value::Map(MapValue::Json { entries, shape }) => entries
            .iter()
            .map(|(key, item)| traversed(key.len()) + json_traversal(item, shape.element()))
            .sum(),
        Value::Object(ObjectValue::Json { fields, shape }) => object_traversal(fields, shape),
        _ => 1,
    }
}

fn json_traversal(json: &Json, shape: &ValueShape) -> u64 {
    match (json, &shape.kind) {
        (_, ShapeKind::Preserved) => 1,
        (Json::String(text), ShapeKind::Bytes) => traversed(base64_length(text)),
        (Json::String(text), kind) if !is_time(kind) => traversed(text.len()),
        (Json::Array(items), ShapeKind::List { items: shape, .. }) => {
            items.iter().map(|item| json_traversal(item, shape)).sum()
        }
        (Json::Array(items), _) => items.iter().map(|item| json_traversal(item, shape)).sum(),
        (Json::Object(entries), ShapeKind::Map(shape)) => entries
            .iter()
            .map(|(key, item)| traversed(key.len()) + json_traversal(item, shape))
            .sum(),
        (Json::Object(fields), _) => object_traversal(fields, shape),
        _ => 1,
    }
}

/// Traverses an object. Fields have their escaped names; undeclared fields count too.
fn object_traversal(fields: &serde_json::Map<String, Json>, shape: &ValueShape) -> u64 {
    let object_shape = match &shape.kind {
        ShapeKind::Object(object_shape) => Some(object_shape),
        _ => None,
    };
    let field_cost = |(name, item): (&String, &Json)| {
        let Some(object_shape) = object_shape else {
            return traversed(name.len()) + json_traversal(item, shape);
        };
        let Some(field) = object_shape.fields.get(name.as_str()) else { return 2 };
        let escaped = escape(name).map_or(name.len(), |escaped| escaped.len());
        traversed(escaped) + json_traversal(item, &field.shape)
    };
    fields.iter().map(field_cost).sum()
}

const fn is_time(kind: &ShapeKind) -> bool {
    matches!(kind, ShapeKind::Duration | ShapeKind::Date | ShapeKind::DateTime)
}

/// The number of bytes that a base64 text encodes.
fn base64_length(text: &str) -> usize {
    text.trim_end_matches('=').len() * 3 / 4
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "as Kubernetes computes: rounded down"
)]
fn traversed(length: usize) -> u64 {
    (length as f64 * COST_PER_CODE_POINT) as u64
}
