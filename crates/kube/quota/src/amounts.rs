//! Amounts by resource name.

use mainstay_quantity::Tally;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;

/// Amounts by the name of a resource, such as `cpu`, `limits.memory` or `count/jobs.batch`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amounts(BTreeMap<String, Tally>);

impl Amounts {
    /// Reads a map of quantities; invalid ones are left out, since validation refuses them.
    pub fn read(value: Option<&Value>) -> Self {
        let map = value.and_then(Value::as_object);
        let entries = map.into_iter().flatten().filter_map(|(name, value)| {
            let tally = match value {
                Value::String(text) => Tally::parse(text),
                Value::Number(number) => Tally::parse(&number.to_string()),
                _ => return None,
            };
            Some((name.clone(), tally.ok()?))
        });
        Self(entries.collect())
    }

    /// The amounts as JSON, as the API writes them.
    pub fn to_value(&self) -> Value {
        let entries = self.0.iter().map(|(name, tally)| (name.clone(), tally.to_string().into()));
        Value::Object(entries.collect::<Map<_, _>>())
    }

    /// The amount of a resource.
    pub fn get(&self, name: &str) -> Option<Tally> {
        self.0.get(name).copied()
    }

    /// Sets the amount of a resource.
    pub fn set(&mut self, name: impl Into<String>, amount: Tally) {
        self.0.insert(name.into(), amount);
    }

    /// All amounts by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Tally)> {
        self.0.iter().map(|(name, tally)| (name.as_str(), *tally))
    }

    /// Names in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Whether there are no amounts.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the amounts of another.
    pub fn add(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            self.0
                .entry(name.clone())
                .and_modify(|sum| *sum = sum.plus(*amount))
                .or_insert(*amount);
        }
    }

    /// Raises each amount to that of another, if that is greater.
    pub(crate) fn raise(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let most = self.0.entry(name.clone()).or_insert(*amount);
            if *amount > *most {
                *most = *amount;
            }
        }
    }

    /// The excess over another; nothing below zero.
    #[must_use]
    pub(crate) fn excess_over(&self, other: &Self) -> Self {
        let mut more = self.clone();
        for (name, amount) in &mut more.0 {
            if let Some(less) = other.get(name) {
                let rest = amount.minus(less);
                *amount = if rest.sign() < 0 { Tally::ZERO } else { rest };
            }
        }
        more
    }

    /// The amounts of the names that the predicate accepts.
    #[must_use]
    pub(crate) fn retain_names(&self, is_wanted: impl Fn(&str) -> bool) -> Self {
        let kept = self.0.iter().filter(|(name, _)| is_wanted(name));
        Self(kept.map(|(name, tally)| (name.clone(), *tally)).collect())
    }

    /// The amounts that are not zero.
    #[must_use]
    pub(crate) fn non_zero(&self) -> Self {
        let kept = self.0.iter().filter(|(_, tally)| tally.sign() != 0);
        Self(kept.map(|(name, tally)| (name.clone(), *tally)).collect())
    }
}

/// `cpu=1,memory=2Gi`, as in messages.
impl fmt::Display for Amounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, tally)) in self.0.iter().enumerate() {
            write!(f, "{}{name}={tally}", if at == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}
