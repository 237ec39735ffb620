//! Planning: programs from trees.

mod calls;
mod loops;
mod names;

use super::construct::{add_entry, not_optional_element, optional_value};
use super::node::{ComprehensionNode, Constant, LiteralItem, Node, NodeId, SlotId};
use super::{Program, SlotKind};
use crate::check::{CheckedExpression, ResolvedReference};
use crate::env::Env;
use crate::syntax::ACCUMULATOR;
use crate::syntax::ast::{Comprehension, Expr, ExprKind, FieldEntry, MapEntry, ParsedExpression};
use crate::types::Type;
use crate::value::{Error, ListValue, MapValue, Value, WorkBudget};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Plans a checked expression.
pub(super) fn checked(checked: &CheckedExpression) -> Result<Program, Error> {
    Planner::new(PlanSource::Checked(checked)).program(&checked.root)
}

/// Plans a checked expression in which fields of a variable are variables.
pub(super) fn with_parts(
    checked: &CheckedExpression,
    object_variable: &str,
) -> Result<Program, Error> {
    let mut planner = Planner::new(PlanSource::Checked(checked));
    planner.object_variable = Some(object_variable);
    planner.program(&checked.root)
}

/// Plans an unchecked expression.
pub(super) fn unchecked(parsed: &ParsedExpression, env: &Env) -> Result<Program, Error> {
    Planner::new(PlanSource::Names(env)).program(&parsed.root)
}

/// What the plan of an expression is based on.
#[derive(Clone, Copy)]
enum PlanSource<'p> {
    /// The result of the checker.
    Checked(&'p CheckedExpression),
    /// The environment, for an unchecked expression.
    Names(&'p Env),
}

/// A planner of one program.
struct Planner<'p> {
    source: PlanSource<'p>,
    nodes: Vec<Node>,
    slots: Vec<SlotKind>,
    /// The slots of variables.
    variables: HashMap<Arc<str>, SlotId>,
    /// The variables of comprehensions, the innermost last.
    scope: Vec<(Arc<str>, SlotId)>,
    /// The variable whose fields are variables.
    object_variable: Option<&'p str>,
    /// Planning is not an evaluation, so its work has no limit.
    work: WorkBudget,
}

impl<'p> Planner<'p> {
    fn new(source: PlanSource<'p>) -> Self {
        Self {
            source,
            nodes: Vec::new(),
            slots: Vec::new(),
            variables: HashMap::new(),
            scope: Vec::new(),
            object_variable: None,
            work: WorkBudget::unlimited(),
        }
    }

    fn program(mut self, root: &Expr) -> Result<Program, Error> {
        let root = self.plan(root)?;
        Ok(Program {
            nodes: self.nodes.into_boxed_slice(),
            root,
            slots: self.slots.into_boxed_slice(),
        })
    }

    /// Adds a node. There are fewer nodes than code points in a text.
    fn add(&mut self, node: Node) -> NodeId {
        let id = index(self.nodes.len());
        self.nodes.push(node);
        id
    }

    fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }

    fn slot(&mut self, kind: SlotKind) -> SlotId {
        let id = index(self.slots.len());
        self.slots.push(kind);
        id
    }

    fn constant(&mut self, value: Value<'static>) -> NodeId {
        self.add(Node::Constant(Constant { value, cost: 0, known_to_cel_go: true }))
    }

    /// The value of a node that is constant in cel-go too.
    fn constant_value(&self, id: NodeId) -> Option<&Value<'static>> {
        match self.node(id) {
            Node::Constant(Constant { value, known_to_cel_go: true, .. }) => Some(value),
            _ => None,
        }
    }

    fn reference(&self, expr: &Expr) -> Option<&'p ResolvedReference> {
        match self.source {
            PlanSource::Checked(checked) => checked.reference(expr.id),
            PlanSource::Names(_) => None,
        }
    }

    fn plan(&mut self, expr: &Expr) -> Result<NodeId, Error> {
        match &expr.kind {
            ExprKind::Literal(literal) => Ok(self.constant(Value::from_literal(literal))),
            ExprKind::Ident(name) => self.ident(expr, name),
            ExprKind::Select { operand, field, test_only } => {
                let operand = self.plan(operand)?;
                Ok(self.select(operand, field, *test_only))
            }
            ExprKind::Call { .. } => self.plan_call(expr),
            ExprKind::List { elements, optional } => self.plan_list(elements, optional),
            ExprKind::Map(entries) => self.plan_map(entries),
            ExprKind::Struct { name, fields } => self.plan_struct(name, fields),
            ExprKind::Comprehension(comprehension) => self.plan_loop(comprehension),
        }
    }

    fn plan_list(&mut self, elements: &[Expr], optional: &[u32]) -> Result<NodeId, Error> {
        let mut items = Vec::with_capacity(elements.len());
        for (at, element) in elements.iter().enumerate() {
            let node = self.plan(element)?;
            let optional = optional.binary_search(&index(at)).is_ok();
            items.push(LiteralItem { node, optional });
        }
        if let Some(values) =
            items.iter().map(|item| self.constant_value(item.node)).collect::<Option<Vec<_>>>()
        {
            let node = match constant_list(&items, &values, &self.work) {
                Ok(list) => Node::Constant(Constant {
                    value: Value::List(ListValue::of(list)),
                    cost: 0,
                    known_to_cel_go: true,
                }),
                Err(error) => Node::Failure(error),
            };
            return Ok(self.add(node));
        }
        Ok(self.add(Node::List(items.into())))
    }

    fn plan_map(&mut self, entries: &[MapEntry]) -> Result<NodeId, Error> {
        let mut items = Vec::with_capacity(entries.len());
        for entry in entries {
            let key = self.plan(&entry.key)?;
            let node = self.plan(&entry.value)?;
            items.push((key, LiteralItem { node, optional: entry.optional }));
        }
        let source = items
            .iter()
            .map(|(key, item)| {
                Some((self.constant_value(*key)?, self.constant_value(item.node)?, item.optional))
            })
            .collect::<Option<Vec<_>>>();
        if let Some(source) = source {
            let mut map = BTreeMap::new();
            let result = source.into_iter().try_for_each(|(key, value, optional)| {
                add_entry(&mut map, key, value.clone(), optional, &self.work)
            });
            let node = match result {
                Ok(()) => Node::Constant(Constant {
                    value: Value::Map(MapValue::of(map)),
                    cost: 0,
                    known_to_cel_go: true,
                }),
                Err(error) => Node::Failure(error),
            };
            return Ok(self.add(node));
        }
        Ok(self.add(Node::Map(items.into())))
    }

    fn plan_struct(&mut self, name: &Arc<str>, fields: &[FieldEntry]) -> Result<NodeId, Error> {
        let name = match self.source {
            PlanSource::Checked(_) => name.clone(),
            PlanSource::Names(env) => {
                let full = env
                    .candidates(name)
                    .find(|name| matches!(env.named_type(name), Some(Type::Object(_))));
                match full {
                    Some(full) => full.into_owned().into(),
                    None => return Err(Error::text(format!("unknown type: {name}"), &self.work)),
                }
            }
        };
        let mut items = Vec::with_capacity(fields.len());
        for field in fields {
            let node = self.plan(&field.value)?;
            items.push((field.field.clone(), LiteralItem { node, optional: field.optional }));
        }
        Ok(self.add(Node::Object(name, items.into())))
    }

    fn plan_loop(&mut self, comprehension: &Comprehension) -> Result<NodeId, Error> {
        let initial_value = self.plan(&comprehension.accu_init)?;
        let range = self.plan(&comprehension.range)?;
        let first = self.slot(SlotKind::Element);
        let second = comprehension.iter_var2.as_ref().map(|_| self.slot(SlotKind::Element));
        let accumulator = self.slot(SlotKind::Accumulator(initial_value));
        let outer = self.scope.len();
        if let (Some(name), Some(second)) = (&comprehension.iter_var2, second) {
            self.scope.push((name.clone(), second));
        }
        self.scope.push((comprehension.iter_var.clone(), first));
        self.scope.push((comprehension.accu_var.clone(), accumulator));
        let condition = self.plan(&comprehension.condition)?;
        let step = self.plan(&comprehension.step)?;
        // The result does not see the elements.
        self.scope.truncate(outer);
        self.scope.push((comprehension.accu_var.clone(), accumulator));
        let result = self.plan(&comprehension.result)?;
        self.scope.truncate(outer);
        let quantifier = if *comprehension.accu_var == *ACCUMULATOR {
            self.quantifier(accumulator, initial_value, [condition, step, result])
        } else {
            None
        };
        self.change_accumulator_in_place(step, accumulator, initial_value);
        Ok(self.add(Node::Comprehension(Box::new(ComprehensionNode {
            range,
            first,
            second,
            accumulator,
            condition,
            step,
            result,
            quantifier,
        }))))
    }
}

/// An index of something with fewer items than a text has code points.
fn index(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn constant_list(
    items: &[LiteralItem],
    values: &[&Value<'static>],
    work: &WorkBudget,
) -> Result<Vec<Value<'static>>, Error> {
    let mut list = Vec::with_capacity(items.len());
    for (item, value) in items.iter().zip(values) {
        if item.optional {
            list.extend(
                optional_value((*value).clone())
                    .map_err(|value| not_optional_element(&value, work))?,
            );
        } else {
            list.push((*value).clone());
        }
    }
    Ok(list)
}
