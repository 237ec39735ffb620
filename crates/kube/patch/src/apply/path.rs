//! Paths of fields, list elements and set members in an object.

use super::scalar;
use serde_json::Value;
use std::cmp::Ordering;
use std::fmt;

/// A path element, as in `fieldsV1`.
///
/// The order is that of stored field sets: fields, then elements by key, by value, by index.
#[derive(Clone, Debug)]
pub enum PathElement {
    /// A field of an object (`f:` in `fieldsV1`).
    Field(Box<str>),
    /// The element of a list map with these keys, sorted by name (`k:`).
    Key(Box<[(Box<str>, Value)]>),
    /// The element of a set with this value (`v:`).
    Value(Box<Value>),
    /// The element at an index (`i:`).
    Index(i64),
}

/// The index of list elements without a path element. It is only in sets that live as long as an
/// apply, never in stored ones.
const NAMELESS: i64 = -1;

/// A path element borrowed from values and types, so that lookups in a set copy nothing.
#[derive(Clone, Debug)]
pub(super) enum Step<'a> {
    Field(&'a str),
    Key(Vec<(&'a str, &'a Value)>),
    Value(&'a Value),
    /// An element of a set or list map without a key or value, such as null.
    Nameless,
}

/// A path into an object; the empty one is the object itself.
///
/// Its text has the form of messages, such as `.spec.ports[port=80,protocol="TCP"].name`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectPath(Vec<PathElement>);

impl PathElement {
    /// The path element of a field.
    pub fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// The path element of a list map element, by its keys in any order.
    pub fn key<'a>(keys: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let mut keys: Vec<(Box<str>, Value)> =
            keys.into_iter().map(|(name, value)| (name.into(), value)).collect();
        keys.sort_by(|left, right| left.0.cmp(&right.0));
        Self::Key(keys.into())
    }

    /// The path element of a set member.
    pub fn value(value: impl Into<Value>) -> Self {
        Self::Value(Box::new(value.into()))
    }

    /// Compares this element with a borrowed one.
    pub(super) fn order(&self, step: &Step<'_>) -> Ordering {
        match (self, step) {
            (Self::Field(left), Step::Field(right)) => (**left).cmp(right),
            (Self::Key(left), Step::Key(right)) => {
                order_keys(left.iter().map(|(name, value)| (&**name, value)), right.iter().copied())
            }
            (Self::Value(left), Step::Value(right)) => scalar::order(left, right),
            (Self::Index(left), Step::Nameless) => left.cmp(&NAMELESS),
            _ => self.rank().cmp(&step.rank()),
        }
    }

    const fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(left), Self::Field(right)) => left.cmp(right),
            (Self::Key(left), Self::Key(right)) => order_keys(
                left.iter().map(|(name, value)| (&**name, value)),
                right.iter().map(|(name, value)| (&**name, value)),
            ),
            (Self::Value(left), Self::Value(right)) => scalar::order(left, right),
            (Self::Index(left), Self::Index(right)) => left.cmp(right),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(keys) => write_keys(f, keys.iter().map(|(name, value)| (&**name, value))),
            Self::Value(value) => write_value(f, value),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

impl Step<'_> {
    const fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Nameless => 3,
        }
    }

    /// Compares two borrowed path elements.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(left), Self::Field(right)) => left.cmp(right),
            (Self::Key(left), Self::Key(right)) => {
                order_keys(left.iter().copied(), right.iter().copied())
            }
            (Self::Value(left), Self::Value(right)) => scalar::order(left, right),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    /// The owned form.
    pub(super) fn to_element(&self) -> PathElement {
        match self {
            Self::Field(name) => PathElement::Field((*name).into()),
            Self::Key(keys) => PathElement::Key(
                keys.iter().map(|(name, value)| ((*name).into(), (*value).clone())).collect(),
            ),
            Self::Value(value) => PathElement::Value(Box::new((*value).clone())),
            Self::Nameless => PathElement::Index(NAMELESS),
        }
    }
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(keys) => write_keys(f, keys.iter().copied()),
            Self::Value(value) => write_value(f, value),
            Self::Nameless => f.write_str("{{invalid path element}}"),
        }
    }
}

impl ObjectPath {
    /// The path elements, from the root.
    pub fn elements(&self) -> &[PathElement] {
        &self.0
    }
}

impl FromIterator<PathElement> for ObjectPath {
    fn from_iter<T: IntoIterator<Item = PathElement>>(steps: T) -> Self {
        Self(steps.into_iter().collect())
    }
}

impl fmt::Display for ObjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|step| step.fmt(f))
    }
}

/// Compares keys by names and values, one after the other; fewer keys come first.
fn order_keys<'a>(
    left: impl ExactSizeIterator<Item = (&'a str, &'a Value)>,
    right: impl ExactSizeIterator<Item = (&'a str, &'a Value)>,
) -> Ordering {
    let lengths = left.len().cmp(&right.len());
    left.zip(right)
        .map(|(left, right)| left.0.cmp(right.0).then_with(|| scalar::order(left.1, right.1)))
        .find(|found| found.is_ne())
        .unwrap_or(lengths)
}

fn write_keys<'a>(
    f: &mut fmt::Formatter<'_>,
    keys: impl Iterator<Item = (&'a str, &'a Value)>,
) -> fmt::Result {
    let mut text = String::from("[");
    for (index, (name, value)) in keys.enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(name);
        text.push('=');
        scalar::write_in_path(&mut text, value);
    }
    write!(f, "{text}]")
}

fn write_value(f: &mut fmt::Formatter<'_>, value: &Value) -> fmt::Result {
    let mut text = String::from("[=");
    scalar::write_in_path(&mut text, value);
    write!(f, "{text}]")
}
