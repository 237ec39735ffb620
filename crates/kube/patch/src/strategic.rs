//! Strategic merge patch: lists of objects merge by key, and directives say the rest.
//!
//! | Directive | Meaning |
//! |---|---|
//! | `$patch: replace`, `delete` | in an object: it is replaced by the rest of the patch, emptied |
//! | the same in an element of a list | the list is replaced by the patch's, the element goes |
//! | `$retainKeys: [..]` | only these fields of the object stay |
//! | `$deleteFromPrimitiveList/<list>` | these scalars go from the list |
//! | `$setElementOrder/<list>` | the order of the elements that the client knows of |
//!
//! What a list is, scalars or objects, is seen from its elements; whether it merges and by which
//! key comes from the type. Fields without a known type (free-form JSON) merge as objects and
//! replace as lists.

use crate::{PatchError, depth};
use mainstay_schema::builtin::{FieldDefinition, FieldType, JsonForm, TypeDefinition};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet, VecDeque};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";
const BAD_RETAIN_KEYS: &str = "invalid patch format of retainKeys";
const BAD_DELETE_FROM: &str = "invalid patch format of primitive list";
const BAD_SET_ORDER: &str = "invalid patch format of setElementOrder list";

type Fields = Map<String, Value>;

/// Applies a strategic merge patch to an object of a built-in type.
///
/// # Errors
/// [`PatchError::Malformed`] for directives of a wrong form and patches deeper than
/// [`crate::MAX_DEPTH`], [`PatchError::ListsOfLists`] for lists
/// of lists, [`PatchError::Unmergeable`] for elements without their merge key and the like.
pub fn strategic_merge(
    target: &Value,
    patch: &Value,
    definition: &TypeDefinition,
) -> Result<Value, PatchError> {
    if depth::exceeds(patch, depth::MAX_DEPTH) {
        return Err(malformed(&depth::refusal()));
    }
    if patch.is_null() {
        return Ok(target.clone());
    }
    let Value::Object(patch) = patch else {
        let found = mainstay_gocompat::values::json_kind(patch);
        return Err(PatchError::Malformed(format!(
            "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
        )));
    };
    let Value::Object(target) = target else {
        return Err(malformed("invalid JSON document"));
    };
    let mut merged = target.clone();
    merge_fields(&mut merged, patch.clone(), Known::Definition(definition))?;
    Ok(Value::Object(merged))
}

/// What is known of the type of an object.
#[derive(Clone, Copy)]
enum Known<'a> {
    Definition(&'a TypeDefinition),
    /// A map: every field has this type.
    Map(&'a FieldType),
    Nothing,
}

/// What is known of a field.
#[derive(Clone, Copy)]
struct Rule<'a> {
    inner: Known<'a>,
    key: Option<&'a str>,
    merge: bool,
    replace: bool,
}

impl<'a> Known<'a> {
    fn of(ty: &'a FieldType) -> Self {
        match ty {
            FieldType::Object(_) => match ty.definition() {
                Some(definition) if definition.json_form() == JsonForm::Object => {
                    Known::Definition(definition)
                }
                _ => Known::Nothing,
            },
            FieldType::Map(element) => Known::Map(element),
            _ => Known::Nothing,
        }
    }

    fn field(self, name: &str) -> Result<Rule<'a>, PatchError> {
        let plain = |inner| Rule { inner, key: None, merge: false, replace: false };
        match self {
            Known::Definition(definition) => {
                let Some(field) = definition.field(name) else {
                    let owner = definition.short_name();
                    return Err(PatchError::Unmergeable(format!(
                        "unable to find api field in struct {owner} for the json field {name:?}"
                    )));
                };
                Ok(Rule::of(field))
            }
            Known::Map(element) => Ok(plain(match element {
                FieldType::List(element) => Known::of(element),
                other => Known::of(other),
            })),
            Known::Nothing => Ok(plain(Known::Nothing)),
        }
    }
}

impl<'a> Rule<'a> {
    fn of(field: &'a FieldDefinition) -> Self {
        let inner = match &field.ty {
            FieldType::List(element) => Known::of(element),
            other => Known::of(other),
        };
        Self {
            inner,
            key: field.patch_merge_key.as_deref(),
            merge: field.patch_merge,
            replace: field.patch_replace,
        }
    }
}

fn merge_fields(
    target: &mut Fields,
    mut patch: Fields,
    known: Known<'_>,
) -> Result<(), PatchError> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        if directive == "replace" {
            patch.remove(DIRECTIVE);
            *target = patch;
            return Ok(());
        }
        if directive == "delete" {
            target.clear();
            return Ok(());
        }
        return Err(unknown_directive(directive, &patch));
    }
    retain_keys(target, &mut patch)?;
    set_orders(target, &mut patch, known)?;
    for (name, change) in patch {
        let deleted_from = match name.strip_prefix(DELETE_FROM) {
            Some(rest) => Some(rest.strip_prefix('/').ok_or_else(|| malformed(BAD_DELETE_FROM))?),
            None => None,
        };
        let name = deleted_from.unwrap_or(&name);
        if change.is_null() {
            target.remove(name);
            continue;
        }
        let Some(present) = target.get_mut(name) else {
            if deleted_from.is_none() {
                put(target, name, change);
            }
            continue;
        };
        match (present, change) {
            (Value::Object(inner), Value::Object(changes)) => {
                let rule = known.field(name)?;
                if rule.replace {
                    *inner = changes;
                } else {
                    merge_fields(inner, changes, rule.inner)?;
                }
            }
            (Value::Array(items), Value::Array(changes)) => {
                let rule = known.field(name)?;
                if deleted_from.is_some() {
                    let changes: HashSet<Value> = changes.into_iter().collect();
                    items.retain(|item| !changes.contains(item));
                } else if rule.merge && !mainstay_fault::is_on("lists-are-never-merged") {
                    let before = std::mem::take(items);
                    *items = merge_lists(before, changes, rule)?;
                } else {
                    *items = changes;
                }
            }
            (_, change) if deleted_from.is_none() => put(target, name, change),
            _ => {}
        }
    }
    Ok(())
}

/// Puts a new value: without nulls, and without the parts that are only directives.
fn put(target: &mut Fields, name: &str, mut value: Value) {
    discard_nulls(&mut value);
    if without_directives(&mut value) {
        target.insert(name.to_owned(), value);
    } else {
        target.remove(name);
    }
}

fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.retain(|_, value| {
            discard_nulls(value);
            !value.is_null()
        }),
        Value::Array(items) => items.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

/// Removes objects with a directive from a value; whether anything is left of it.
fn without_directives(value: &mut Value) -> bool {
    match value {
        Value::Object(fields) => {
            if fields.contains_key(DIRECTIVE) {
                return false;
            }
            fields.retain(|_, value| without_directives(value));
        }
        Value::Array(items) => items.retain_mut(without_directives),
        _ => {}
    }
    true
}

fn retain_keys(target: &mut Fields, patch: &mut Fields) -> Result<(), PatchError> {
    let Some(retained) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let Value::Array(retained) = retained else { return Err(malformed(BAD_RETAIN_KEYS)) };
    let retained: HashSet<&str> = retained.iter().filter_map(Value::as_str).collect();
    let is_retained = |name: &str| retained.contains(name);
    let stray = patch.iter().any(|(name, value)| {
        !value.is_null()
            && !name.starts_with(DELETE_FROM)
            && !name.starts_with(SET_ORDER)
            && !is_retained(name)
    });
    if stray {
        return Err(malformed(BAD_RETAIN_KEYS));
    }
    target.retain(|name, _| is_retained(name));
    Ok(())
}

/// Handles every list whose order the patch gives, and takes it out of the patch.
fn set_orders(target: &mut Fields, patch: &mut Fields, known: Known<'_>) -> Result<(), PatchError> {
    let names: Vec<String> =
        patch.keys().filter(|name| name.starts_with(SET_ORDER)).cloned().collect();
    for name in names {
        let order = present_list(patch.remove(&name).as_ref())?.unwrap_or_default();
        let list = name.strip_prefix(SET_ORDER).and_then(|rest| rest.strip_prefix('/'));
        let list = list.ok_or_else(|| malformed(BAD_SET_ORDER))?;
        let rule = known.field(list)?;
        let before = present_list(target.get(list))?;
        let changes = present_list(patch.get(list))?;
        if let Some(changes) = &changes {
            check_order(changes, &order, rule.key)?;
        }
        let merged = match (before.clone(), changes.clone()) {
            (None, None) => continue,
            (Some(before), None) => before,
            (None, Some(changes)) => {
                let mut value = Value::Array(changes);
                without_directives(&mut value);
                match value {
                    Value::Array(items) => items,
                    _ => continue,
                }
            }
            (Some(before), Some(changes)) if rule.merge => merge_lists(before, changes, rule)?,
            (Some(_), Some(changes)) => changes,
        };
        let before = before.unwrap_or_default();
        let ordered = in_order(merged, &order, &before, rule.key)?;
        target.insert(list.to_owned(), Value::Array(ordered));
        patch.remove(list);
    }
    Ok(())
}

fn present_list(value: Option<&Value>) -> Result<Option<Vec<Value>>, PatchError> {
    match value {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items.clone())),
        Some(other) => Err(wrong_type("[]interface {}", other)),
    }
}

/// The elements of the patch must stand in the given order and be a part of it.
fn check_order(changes: &[Value], order: &[Value], key: Option<&str>) -> Result<(), PatchError> {
    if changes.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut rest = order.iter();
    for change in changes.iter().filter(|change| change.get(DIRECTIVE).is_none()) {
        let wanted = identity(change, key)?;
        loop {
            let Some(candidate) = rest.next() else {
                return Err(PatchError::Unmergeable(format!(
                    "The order in patch list:\n{}\n doesn't match {SET_ORDER} list:\n{}\n",
                    go_list(changes),
                    go_list(order)
                )));
            };
            if identity(candidate, key)? == wanted {
                break;
            }
        }
    }
    Ok(())
}

/// What an element is known by: the value of its merge key, or itself.
fn identity<'a>(item: &'a Value, key: Option<&str>) -> Result<&'a Value, PatchError> {
    let Some(key) = key else { return Ok(item) };
    let Value::Object(fields) = item else {
        return Err(wrong_type("map[string]interface {}", item));
    };
    fields.get(key).ok_or_else(|| no_merge_key(fields, key))
}

fn merge_lists(
    before: Vec<Value>,
    changes: Vec<Value>,
    rule: Rule<'_>,
) -> Result<Vec<Value>, PatchError> {
    let Some(first) = before.first().or(changes.first()) else { return Ok(before) };
    if first.is_array() {
        return Err(PatchError::ListsOfLists);
    }
    let kind = std::mem::discriminant(first);
    if before.iter().chain(&changes).any(|item| std::mem::discriminant(item) != kind) {
        let lists = format!("[{} {}]", go_list(&before), go_list(&changes));
        return Err(PatchError::Unmergeable(format!(
            "list element types are not identical: {lists}"
        )));
    }
    if !first.is_object() {
        let mut seen: HashSet<&Value> = HashSet::with_capacity(before.len() + changes.len());
        let all = before.iter().chain(&changes);
        let merged = all.filter(|item| seen.insert(*item)).cloned().collect();
        return in_order(merged, &changes, &before, None);
    }
    let Some(key) = rule.key else {
        return Err(PatchError::Unmergeable(
            "cannot merge lists without merge key for struct".to_owned(),
        ));
    };
    let (mut merged, changes) = without_special(before, changes, key)?;
    let before = merged.clone();
    // Where the elements of a key stand. One that loses its key is found no more.
    let mut known: HashMap<&Value, VecDeque<usize>> = HashMap::with_capacity(merged.len());
    for (at, item) in before.iter().enumerate() {
        if let Some(value) = item.get(key) {
            known.entry(value).or_default().push_back(at);
        }
    }
    for change in &changes {
        let Value::Object(fields) = change else { continue };
        let wanted = fields.get(key).ok_or_else(|| no_merge_key(fields, key))?;
        let places = known.entry(wanted).or_default();
        while places.front().is_some_and(|at| merged[*at].get(key) != Some(wanted)) {
            places.pop_front();
        }
        let same = places.front().map(|at| &mut merged[*at]);
        if let Some(Value::Object(present)) = same {
            merge_fields(present, fields.clone(), rule.inner)?;
        } else {
            places.push_back(merged.len());
            merged.push(change.clone());
        }
    }
    in_order(merged, &changes, &before, Some(key))
}

/// Elements that are directives: deletions happen at once, one replacement replaces the list.
fn without_special(
    mut before: Vec<Value>,
    changes: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let mut plain = Vec::with_capacity(changes.len());
    let mut deleted: HashSet<Value> = HashSet::new();
    let mut replaced = false;
    for change in changes {
        let Value::Object(fields) = &change else { continue };
        match fields.get(DIRECTIVE) {
            None => plain.push(change),
            Some(directive) if directive == "delete" => {
                let Some(wanted) = fields.get(key) else { return Err(no_merge_key(fields, key)) };
                deleted.insert(wanted.clone());
            }
            Some(directive) if directive == "replace" => replaced = true,
            Some(directive) if directive == "merge" => {
                return Err(PatchError::Unmergeable(
                    "merging lists cannot yet be specified in the patch".to_owned(),
                ));
            }
            Some(directive) => return Err(unknown_directive(directive, fields)),
        }
    }
    before.retain(|item| item.get(key).is_none_or(|value| !deleted.contains(value)));
    Ok(if replaced { (plain, Vec::new()) } else { (before, plain) })
}

/// The first place of each element, by what it is known by.
fn places<'a>(list: &'a [Value], key: Option<&str>) -> HashMap<&'a Value, usize> {
    let mut places = HashMap::with_capacity(list.len());
    for (at, item) in list.iter().enumerate() {
        if let Ok(value) = identity(item, key) {
            places.entry(value).or_insert(at);
        }
    }
    places
}

/// Sorts a merged list: what the patch knows in the patch's order, what only the server knows in
/// the server's, and the two woven together so that the server's neighbours stay neighbours.
fn in_order(
    merged: Vec<Value>,
    order: &[Value],
    before: &[Value],
    key: Option<&str>,
) -> Result<Vec<Value>, PatchError> {
    for item in merged.iter().chain(order).chain(before) {
        identity(item, key)?;
    }
    let (in_order, in_before) = (places(order, key), places(before, key));
    let place = |places: &HashMap<&Value, usize>, item: &Value| {
        identity(item, key).ok().and_then(|wanted| places.get(wanted).copied())
    };
    let (mut patched, mut kept): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| place(&in_order, item).is_some());
    patched.sort_by_key(|item| place(&in_order, item));
    kept.sort_by_key(|item| place(&in_before, item).unwrap_or(usize::MAX));
    let mut woven = Vec::with_capacity(patched.len() + kept.len());
    let (mut patched, mut kept) = (patched.into_iter().peekable(), kept.into_iter().peekable());
    loop {
        let kept_first = match (kept.peek(), patched.peek()) {
            (None, None) => break,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(kept), Some(patched)) => {
                match (place(&in_before, kept), place(&in_before, patched)) {
                    (Some(kept), Some(patched)) => kept < patched,
                    _ => false,
                }
            }
        };
        woven.extend(if kept_first { kept.next() } else { patched.next() });
    }
    Ok(woven)
}

fn malformed(text: &str) -> PatchError {
    PatchError::Malformed(text.to_owned())
}

fn unknown_directive(directive: &Value, fields: &Fields) -> PatchError {
    let (directive, fields) = (go_value(directive), go_map(fields));
    PatchError::Unmergeable(format!("unknown patch type: {directive} in map: {fields}"))
}

fn no_merge_key(fields: &Fields, key: &str) -> PatchError {
    let fields = go_map(fields);
    PatchError::Unmergeable(format!("map: {fields} does not contain declared merge key: {key}"))
}

fn wrong_type(expected: &str, found: &Value) -> PatchError {
    let found = match found {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    PatchError::Unmergeable(format!("expected a {expected}, but received a {found}"))
}

/// A value as Go prints it with `%v`: `map[spec:map[replicas:2]]`.
pub fn go_text(value: &Value) -> String {
    go_value(value)
}

/// A value as Go prints it with `%v`.
fn go_value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => go_list(items),
        Value::Object(fields) => go_map(fields),
        other => other.to_string(),
    }
}

fn go_list(items: &[Value]) -> String {
    let items: Vec<String> = items.iter().map(go_value).collect();
    format!("[{}]", items.join(" "))
}

fn go_map(fields: &Fields) -> String {
    let fields: Vec<String> =
        fields.iter().map(|(name, value)| format!("{name}:{}", go_value(value))).collect();
    format!("map[{}]", fields.join(" "))
}
