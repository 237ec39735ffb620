//! Lists: how their elements are reached, and how they grow.

use super::{Error, ListElement, ListValue, Value, ValueResult, WorkBudget, list_type};
use crate::kubernetes::{ListShape, ShapeKind, ValueShape};
use std::sync::Arc;

impl<'a> ListValue<'a> {
    /// A list of these elements.
    pub fn of(values: Vec<Value<'a>>) -> Self {
        Self::Values(Arc::new(values))
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        match self {
            Self::Json { items, .. } => items.len(),
            Self::Values(values) => values.len(),
            Self::Joined { elements, .. } => elements.len(),
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at a place; none if there is none. It is an error if data is not what its
    /// schema says.
    pub fn get(&self, at: usize, work: &WorkBudget) -> Option<ValueResult<'a>> {
        match self {
            Self::Json { items, shape } => Some(shape.element().view(items.get(at)?, work)),
            Self::Values(values) => Some(Ok(values.get(at)?.clone())),
            Self::Joined { elements, shape } => {
                let shape = shape.element();
                Some(match elements.get(at)? {
                    ListElement::Original(json) => shape.view(json, work),
                    ListElement::Added(value) => shape.view_again(value, work),
                })
            }
        }
    }

    /// The elements in order.
    pub fn iter<'v>(
        &'v self,
        work: &'v WorkBudget,
    ) -> impl ExactSizeIterator<Item = ValueResult<'a>> + DoubleEndedIterator + 'v {
        // A place below the length has an element.
        (0..self.len()).map(move |at| self.get(at, work).unwrap_or(Err(Error::NoSuchOverload)))
    }

    fn shape(&self) -> Option<&'a ValueShape> {
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
    pub fn contains(&self, value: &Value<'_>, work: &WorkBudget) -> Result<bool, Error> {
        work.take(self.len())?;
        if self.declared().is_none() {
            return Ok(match self {
                Self::Values(values) => {
                    values.iter().any(|item| value.raw_equals(item, work) == Ok(true))
                }
                _ => {
                    self.iter(work).flatten().any(|item| value.raw_equals(&item, work) == Ok(true))
                }
            });
        }
        let mut first = Ok(false);
        for item in self.iter(work) {
            match item.and_then(|item| item.raw_equals(value, work)) {
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
    pub fn join(self, other: &Self, work: &WorkBudget) -> Result<Self, Error> {
        work.take(other.len())?;
        let (Some(kind), Some(shape)) = (self.declared(), self.shape()) else {
            return self.join_plain(other, work);
        };
        let mut shared = match self {
            Self::Joined { elements, .. } => elements,
            Self::Json { items, .. } => {
                let mut elements = Vec::with_capacity(items.len() + other.len());
                elements.extend(items.iter().map(ListElement::Original));
                Arc::new(elements)
            }
            // No schema says what such a list is.
            Self::Values(_) => return Err(Error::NoSuchOverload),
        };
        let elements = Arc::make_mut(&mut shared);
        match kind {
            ListShape::Atomic => {
                elements.reserve(other.len());
                for value in other.iter(work) {
                    elements.push(ListElement::Added(value?));
                }
            }
            ListShape::Set => list_type::join_set(elements, other, work)?,
            ListShape::Map(keys) => list_type::join_by_keys(elements, other, keys, work)?,
        }
        Ok(Self::Joined { elements: shared, shape })
    }

    /// As [`Self::join`], of a list that no schema is about.
    fn join_plain(self, other: &Self, work: &WorkBudget) -> Result<Self, Error> {
        if self.is_empty() {
            return Ok(other.clone());
        }
        if other.is_empty() {
            return Ok(self);
        }
        let mut shared = match self {
            Self::Values(values) => values,
            list => {
                let mut values = Vec::with_capacity(list.len() + other.len());
                extend(&mut values, &list, work)?;
                Arc::new(values)
            }
        };
        extend(Arc::make_mut(&mut shared), other, work)?;
        Ok(Self::Values(shared))
    }
}

fn extend<'a>(
    values: &mut Vec<Value<'a>>,
    more: &ListValue<'a>,
    work: &WorkBudget,
) -> Result<(), Error> {
    if let ListValue::Values(more) = more {
        values.extend_from_slice(more);
        return Ok(());
    }
    values.reserve(more.len());
    for value in more.iter(work) {
        values.push(value?);
    }
    Ok(())
}
