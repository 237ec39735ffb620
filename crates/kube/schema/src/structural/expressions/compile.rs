//! Compilation of CEL rules into a tree that follows the schema.

use super::super::Schema;
use super::{ValidationRule, shape};
use mainstay_cel::eval::Program;
use mainstay_cel::kubernetes::rules::{RuleCompileError, RuleScope};
use mainstay_cel::kubernetes::{ShapeKind, ValueShape};

/// The compiled rules of a schema of whole objects.
#[derive(Debug)]
pub struct CompiledRules {
    pub(in crate::structural) root: Node,
}

/// The compiled rules of one schema and of those below it.
#[derive(Debug)]
pub(in crate::structural) struct Node {
    /// The CEL type of the value.
    pub(super) shape: ValueShape,
    /// Whether there are rules but no CEL type for them.
    pub(super) is_untyped: bool,
    /// One for each rule of the schema.
    pub(super) rules: Vec<CompiledRule>,
    /// Whether any rule uses `oldSelf`.
    pub(super) uses_old: bool,
    /// The properties with rules, by their index in the schema.
    pub(super) properties: Vec<(usize, Self)>,
    /// The rules of a map's values.
    pub(super) additional: Option<Box<Self>>,
    /// The rules of a list's elements.
    pub(in crate::structural) items: Option<Box<Self>>,
}

/// A compiled rule.
#[derive(Debug)]
pub(super) struct CompiledRule {
    /// The program, or the compile error.
    pub(super) program: Result<Program, RuleCompileError>,
    pub(super) uses_old: bool,
    /// Whether the error names the rule's `fieldPath`: not if the message expression is invalid.
    pub(super) uses_field_path: bool,
    /// The message expression, if any.
    pub(super) message: Option<Program>,
}

impl CompiledRules {
    /// Compiles the rules of a schema; none if there are none. `root`: its values are objects with
    /// type and metadata.
    ///
    /// A compile error is kept in the rule. CRDs with such rules are rejected, so only a CRD that was
    /// stored without validation has them.
    pub(crate) fn new(schema: &Schema, root: bool) -> Option<Self> {
        schema
            .has_expressions()
            .then(|| shape(schema, root))
            .and_then(|shape| Node::new(schema, &shape).map(|root| Self { root }))
    }
}

impl Node {
    /// The rules of a property, by its index in the schema.
    pub(in crate::structural) fn property(&self, at: usize) -> Option<&Self> {
        let found = self.properties.binary_search_by_key(&at, |property| property.0).ok()?;
        self.properties.get(found).map(|property| &property.1)
    }

    fn new(schema: &Schema, shape: &ValueShape) -> Option<Self> {
        let (mut rules, mut is_untyped) = (Vec::new(), false);
        if !schema.expressions().is_empty() {
            match RuleScope::new(shape) {
                Some(scope) => {
                    rules.extend(
                        schema.expressions().iter().map(|rule| CompiledRule::new(rule, &scope)),
                    );
                }
                None => is_untyped = true,
            }
        }
        let mut node = Self {
            shape: shape.clone(),
            is_untyped,
            uses_old: rules.iter().any(|rule: &CompiledRule| rule.uses_old),
            rules,
            properties: Vec::new(),
            additional: None,
            items: None,
        };
        match &shape.kind {
            ShapeKind::Object(object) => {
                for (at, (name, schema)) in schema.properties.iter().enumerate() {
                    // Rules of fields without a CEL type are not evaluated.
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
        let has_rules = is_untyped
            || !node.rules.is_empty()
            || !node.properties.is_empty()
            || node.additional.is_some()
            || node.items.is_some();
        has_rules.then_some(node)
    }
}

impl CompiledRule {
    fn new(rule: &ValidationRule, scope: &RuleScope<'_>) -> Self {
        let compiled = scope.rule(&rule.rule, rule.optional_old);
        let message = match &compiled {
            Ok(_) if !rule.message_expression.is_empty() => {
                scope.message(&rule.message_expression, rule.optional_old).map(Some)
            }
            _ => Ok(None),
        };
        Self {
            uses_old: compiled.as_ref().is_ok_and(|compiled| compiled.uses_old_self),
            uses_field_path: message.is_ok(),
            message: message.ok().flatten().map(|message| message.program),
            program: compiled.map(|compiled| compiled.program),
        }
    }
}
