//! Rules as programs, in a tree that follows the schema's.

use super::super::Schema;
use super::{Expression, shape};
use mainstay_cel::eval::Program;
use mainstay_cel::kubernetes::rules::{RuleCompileError, RuleScope};
use mainstay_cel::kubernetes::{ShapeKind, ValueShape};

/// The rules of a schema of whole objects, compiled.
#[derive(Debug)]
pub struct Compiled {
    pub(in crate::structural) root: Node,
}

/// The rules of one schema and of those below it.
#[derive(Debug)]
pub(in crate::structural) struct Node {
    /// What they see.
    pub(super) shape: ValueShape,
    /// Whether there are rules that see nothing.
    pub(super) blind: bool,
    /// As many as the schema has.
    pub(super) rules: Vec<Rule>,
    /// Whether any of the rules looks at what stood there before.
    pub(super) uses_old: bool,
    /// Of the properties that have rules: where they are among the schema's.
    pub(super) properties: Vec<(usize, Self)>,
    /// Of the values of a map.
    pub(super) additional: Option<Box<Self>>,
    /// Of the elements of a list.
    pub(in crate::structural) items: Option<Box<Self>>,
}

/// A rule, compiled.
#[derive(Debug)]
pub(super) struct Rule {
    /// The program, or why there is none.
    pub(super) program: Result<Program, RuleCompileError>,
    pub(super) uses_old: bool,
    /// Whether the field that the rule names is blamed: not if the message makes no sense.
    pub(super) blames_field: bool,
    /// What says what is wrong, if that is an expression.
    pub(super) message: Option<Program>,
}

impl Compiled {
    /// Compiles the rules of a schema; none if there are none. `root`: its values are objects with
    /// a type and metadata of their own.
    ///
    /// What cannot be compiled is kept as what is wrong: definitions with such rules are refused,
    /// so only one from elsewhere has them.
    pub(crate) fn new(schema: &Schema, root: bool) -> Option<Self> {
        schema
            .has_expressions()
            .then(|| shape(schema, root))
            .and_then(|shape| Node::new(schema, &shape).map(|root| Self { root }))
    }
}

impl Node {
    /// The rules of a property, by its place among the schema's.
    pub(in crate::structural) fn property(&self, at: usize) -> Option<&Self> {
        let found = self.properties.binary_search_by_key(&at, |property| property.0).ok()?;
        self.properties.get(found).map(|property| &property.1)
    }

    fn new(schema: &Schema, shape: &ValueShape) -> Option<Self> {
        let (mut rules, mut blind) = (Vec::new(), false);
        if !schema.expressions().is_empty() {
            match RuleScope::new(shape) {
                Some(scope) => {
                    rules.extend(schema.expressions().iter().map(|rule| Rule::new(rule, &scope)));
                }
                None => blind = true,
            }
        }
        let mut node = Self {
            shape: shape.clone(),
            blind,
            uses_old: rules.iter().any(|rule: &Rule| rule.uses_old),
            rules,
            properties: Vec::new(),
            additional: None,
            items: None,
        };
        match &shape.kind {
            ShapeKind::Object(object) => {
                for (at, (name, schema)) in schema.properties.iter().enumerate() {
                    // Of what cannot be seen nothing is asked.
                    if let Some(field) = object.fields.get(name)
                        && field.shape.is_typed()
                        && let Some(below) = Self::new(schema, &field.shape)
                    {
                        node.properties.push((at, below));
                    }
                }
            }
            ShapeKind::Map(values) => {
                let below = schema.additional().and_then(|schema| Self::new(schema, values));
                node.additional = below.map(Box::new);
            }
            ShapeKind::List { items, .. } => {
                let below = schema.items.as_ref().and_then(|schema| Self::new(schema, items));
                node.items = below.map(Box::new);
            }
            _ => {}
        }
        let any = blind
            || !node.rules.is_empty()
            || !node.properties.is_empty()
            || node.additional.is_some()
            || node.items.is_some();
        any.then_some(node)
    }
}

impl Rule {
    fn new(rule: &Expression, scope: &RuleScope<'_>) -> Self {
        let compiled = scope.rule(&rule.rule, rule.optional_old);
        let message = match &compiled {
            Ok(_) if !rule.words.is_empty() => {
                scope.message(&rule.words, rule.optional_old).map(Some)
            }
            _ => Ok(None),
        };
        Self {
            uses_old: compiled.as_ref().is_ok_and(|compiled| compiled.uses_old_self),
            blames_field: message.is_ok(),
            message: message.ok().flatten().map(|message| message.program),
            program: compiled.map(|compiled| compiled.program),
        }
    }
}
