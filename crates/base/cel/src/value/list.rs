//! Lists: how their elements are reached, and how they grow.

use super::{Error, List, Outcome, Value, keyed};
use crate::kubernetes::{ListShape, Shape, ShapeKind};
use std::sync::Arc;

impl<'a> List<'a> {
    /// A list of these elements.
    pub fn of(values: Vec<Value<'a>>) -> Self {
        Self::Values(Arc::new(values))
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        match self {
            Self::Json { items, .. } => items.len(),
            Self::Values(values) | Self::Joined { values, .. } => values.len(),
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at a place; none if there is none. It is an error if data is not what its
    /// schema says.
    pub fn get(&self, at: usize) -> Option<Outcome<'a>> {
        match self {
            Self::Json { items, shape } => Some(shape.element().view(items.get(at)?)),
            Self::Values(values) | Self::Joined { values, .. } => Some(Ok(values.get(at)?.clone())),
        }
    }

    /// The elements in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Outcome<'a>> + DoubleEndedIterator + '_ {
        // A place below the length has an element.
        (0..self.len()).map(|at| self.get(at).unwrap_or(Err(Error::NoSuchOverload)))
    }

    fn shape(&self) -> Option<&'a Shape> {
        match self {
            Self::Json { shape, .. } | Self::Joined { shape, .. } => Some(shape),
            Self::Values(_) => None,
        }
    }

    /// What its schema says how it compares and grows; none where no schema says what it is.
    pub fn declared(&self) -> Option<&'a ListShape> {
        match &self.shape()?.kind {
            ShapeKind::List { kind, .. } => Some(kind),
            _ => None,
        }
    }

    /// Whether one of its elements is equal to a value.
    ///
    /// # Errors
    ///
    /// Of a list of an object, where none is equal and one cannot be compared.
    pub fn contains(&self, value: &Value<'_>) -> Result<bool, Error> {
        if self.declared().is_none() {
            return Ok(match self {
                Self::Values(values) => {
                    values.iter().any(|item| value.raw_equals(item) == Ok(true))
                }
                _ => self.iter().flatten().any(|item| value.raw_equals(&item) == Ok(true)),
            });
        }
        let mut first = Ok(false);
        for item in self.iter() {
            match item.and_then(|item| item.raw_equals(value)) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) => first = first.and(Err(error)),
            }
        }
        first
    }

    /// `self + other`. A list that nobody else holds grows in place.
    ///
    /// # Errors
    ///
    /// If data is not what its schema says.
    pub fn join(self, other: &Self) -> Result<Self, Error> {
        let declared = self.declared();
        if declared.is_none() {
            if self.is_empty() {
                return Ok(other.clone());
            }
            if other.is_empty() {
                return Ok(self);
            }
        }
        let shape = self.shape().filter(|_| declared.is_some());
        let mut shared = self.into_values(other.len())?;
        let values = Arc::make_mut(&mut shared);
        match declared {
            None | Some(ListShape::Atomic) => extend(values, other)?,
            Some(ListShape::Set) => keyed::join_set(values, other)?,
            Some(ListShape::Map(keys)) => keyed::join_by_keys(values, other, keys)?,
        }
        Ok(match shape {
            Some(shape) => Self::Joined { values: shared, shape },
            None => Self::Values(shared),
        })
    }

    fn into_values(self, more: usize) -> Result<Arc<Vec<Value<'a>>>, Error> {
        match self {
            Self::Values(values) | Self::Joined { values, .. } => Ok(values),
            Self::Json { .. } => {
                let mut values = Vec::with_capacity(self.len() + more);
                extend(&mut values, &self)?;
                Ok(Arc::new(values))
            }
        }
    }
}

fn extend<'a>(values: &mut Vec<Value<'a>>, more: &List<'a>) -> Result<(), Error> {
    match more {
        List::Values(more) | List::Joined { values: more, .. } => values.extend_from_slice(more),
        List::Json { .. } => {
            values.reserve(more.len());
            for value in more.iter() {
                values.push(value?);
            }
        }
    }
    Ok(())
}
