//! Lists: element access and concatenation.

use super::{Error, ListElement, ListValue, Value, ValueResult, WorkBudget, list_type};
use crate::kubernetes::{ListShape, ShapeKind, ValueShape};
use std::sync::Arc;

impl<'a> ListValue<'a> {
    /// A list of these elements.
    pub fn of(values: Vec<Value<'a>>) -> Self {
        Self::Values(Arc::new(values))
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::Json { items, .. } => items.len(),
            Self::Values(values) => values.len(),
            Self::Joined { elements, .. } => elements.len(),
        }
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at an index, if it exists; an error if data does not match its schema.
    pub fn get(&self, at: usize, work: &WorkBudget) -> Option<ValueResult<'a>> {
        match self {
            Self::Json { items, shape } => Some(shape.element().view(items.get(at)?, work)),
            Self::Values(values) => Some(Ok(values.get(at)?.clone())),
            Self::Joined { elements, shape } => {
                let shape = shape.element();
                Some(match elements.get(at)? {
                    ListElement::Original(json) => shape.view(json, work),
                    ListElement::Added(value) => shape.view_value(value, work),
                })
            }
        }
    }

    /// The elements in order.
    pub fn iter<'v>(
        &'v self,
        work: &'v WorkBudget,
    ) -> impl ExactSizeIterator<Item = ValueResult<'a>> + DoubleEndedIterator + 'v {
        // Every index below the length has an element.
        (0..self.len()).map(move |at| self.get(at, work).unwrap_or(Err(Error::NoSuchOverload)))
    }

    fn shape(&self) -> Option<&'a ValueShape> {
        match self {
            Self::Json { shape, .. } | Self::Joined { shape, .. } => Some(shape),
            Self::Values(_) => None,
        }
    }

    /// The list type of its schema; none without a schema.
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
    /// For a list of an object, if no element is equal and one cannot be compared.
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

    /// `self + other`. A list that is not shared grows in place.
    ///
    /// # Errors
    ///
    /// If data does not match its schema.
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
            // Such a list has no schema.
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
            ListShape::Set => list_type::add_to_set(elements, other, work)?,
            ListShape::Map(keys) => list_type::merge_by_keys(elements, other, keys, work)?,
        }
        Ok(Self::Joined { elements: shared, shape })
    }

    /// As [`Self::join`], for a list without a schema.
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
