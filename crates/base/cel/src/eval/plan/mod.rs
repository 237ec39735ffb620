//! From trees to programs.

mod calls;
mod loops;
mod names;

use super::construct::{add_entry, held, no_optional_element};
use super::node::{Constant, Item, Loop, Node, NodeId, SlotId};
use super::{Program, SlotKind};
use crate::check::{CheckedExpression, ResolvedReference};
use crate::env::Env;
use crate::syntax::ACCUMULATOR;
use crate::syntax::ast::{Comprehension, Expr, ExprKind, FieldEntry, MapEntry, ParsedExpression};
use crate::types::Type;
use crate::value::{Error, ListValue, MapValue, Value, WorkBudget};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Plans an expression that has been checked.
pub(super) fn checked(checked: &CheckedExpression) -> Result<Program, Error> {
    Planner::new(Known::Checked(checked)).program(&checked.root)
}

/// The same, with fields of a variable that are variables.
pub(super) fn with_parts(checked: &CheckedExpression, whole: &str) -> Result<Program, Error> {
    let mut planner = Planner::new(Known::Checked(checked));
    planner.whole = Some(whole);
    planner.program(&checked.root)
}

/// Plans an expression that has not been checked.
pub(super) fn unchecked(parsed: &ParsedExpression, env: &Env) -> Result<Program, Error> {
    Planner::new(Known::Names(env)).program(&parsed.root)
}

/// What is known of an expression.
#[derive(Clone, Copy)]
enum Known<'p> {
    /// What the checker has found out.
    Checked(&'p CheckedExpression),
    /// What names may mean.
    Names(&'p Env),
}

/// A program in the making.
struct Planner<'p> {
    known: Known<'p>,
    nodes: Vec<Node>,
    slots: Vec<SlotKind>,
    /// The variables that have a place.
    variables: HashMap<Arc<str>, SlotId>,
    /// The names of loops, the innermost last.
    scope: Vec<(Arc<str>, SlotId)>,
    /// The variable whose fields are variables.
    whole: Option<&'p str>,
    /// Planning is no evaluation, so its work has no limit.
    work: WorkBudget,
}

impl<'p> Planner<'p> {
    fn new(known: Known<'p>) -> Self {
        Self {
            known,
            nodes: Vec::new(),
            slots: Vec::new(),
            variables: HashMap::new(),
            scope: Vec::new(),
            whole: None,
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

    /// Adds a node. There are fewer of them than code points in a text.
    fn add(&mut self, node: Node) -> NodeId {
        let id = number(self.nodes.len());
        self.nodes.push(node);
        id
    }

    fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }

    fn slot(&mut self, kind: SlotKind) -> SlotId {
        let id = number(self.slots.len());
        self.slots.push(kind);
        id
    }

    fn constant(&mut self, value: Value<'static>) -> NodeId {
        self.add(Node::Constant(Constant { value, cost: 0, plain: true }))
    }

    /// The value of a node that cel-go knows to be constant.
    fn plain(&self, id: NodeId) -> Option<&Value<'static>> {
        match self.node(id) {
            Node::Constant(Constant { value, plain: true, .. }) => Some(value),
            _ => None,
        }
    }

    fn reference(&self, expr: &Expr) -> Option<&'p ResolvedReference> {
        match self.known {
            Known::Checked(checked) => checked.reference(expr.id),
            Known::Names(_) => None,
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
            let optional = optional.binary_search(&number(at)).is_ok();
            items.push(Item { node, optional });
        }
        if let Some(values) =
            items.iter().map(|item| self.plain(item.node)).collect::<Option<Vec<_>>>()
        {
            let node = match constant_list(&items, &values, &self.work) {
                Ok(list) => Node::Constant(Constant {
                    value: Value::List(ListValue::of(list)),
                    cost: 0,
                    plain: true,
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
            items.push((key, Item { node, optional: entry.optional }));
        }
        let known = items
            .iter()
            .map(|(key, item)| Some((self.plain(*key)?, self.plain(item.node)?, item.optional)))
            .collect::<Option<Vec<_>>>();
        if let Some(known) = known {
            let mut map = BTreeMap::new();
            let made = known.into_iter().try_for_each(|(key, value, optional)| {
                add_entry(&mut map, key, value.clone(), optional, &self.work)
            });
            let node = match made {
                Ok(()) => Node::Constant(Constant {
                    value: Value::Map(MapValue::of(map)),
                    cost: 0,
                    plain: true,
                }),
                Err(error) => Node::Failure(error),
            };
            return Ok(self.add(node));
        }
        Ok(self.add(Node::Map(items.into())))
    }

    fn plan_struct(&mut self, name: &Arc<str>, fields: &[FieldEntry]) -> Result<NodeId, Error> {
        let name = match self.known {
            Known::Checked(_) => name.clone(),
            Known::Names(env) => {
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
            items.push((field.field.clone(), Item { node, optional: field.optional }));
        }
        Ok(self.add(Node::Object(name, items.into())))
    }

    fn plan_loop(&mut self, fold: &Comprehension) -> Result<NodeId, Error> {
        let first_value = self.plan(&fold.accu_init)?;
        let range = self.plan(&fold.range)?;
        let first = self.slot(SlotKind::Element);
        let second = fold.iter_var2.as_ref().map(|_| self.slot(SlotKind::Element));
        let gathered = self.slot(SlotKind::Gathered(first_value));
        let outer = self.scope.len();
        if let (Some(name), Some(second)) = (&fold.iter_var2, second) {
            self.scope.push((name.clone(), second));
        }
        self.scope.push((fold.iter_var.clone(), first));
        self.scope.push((fold.accu_var.clone(), gathered));
        let condition = self.plan(&fold.condition)?;
        let step = self.plan(&fold.step)?;
        // Elements are not known any more where the result is made.
        self.scope.truncate(outer);
        self.scope.push((fold.accu_var.clone(), gathered));
        let result = self.plan(&fold.result)?;
        self.scope.truncate(outer);
        let quantifier = if *fold.accu_var == *ACCUMULATOR {
            self.quantifier(gathered, first_value, [condition, step, result])
        } else {
            None
        };
        self.grow_in_place(step, gathered, first_value);
        Ok(self.add(Node::Loop(Box::new(Loop {
            range,
            first,
            second,
            gathered,
            condition,
            step,
            result,
            quantifier,
        }))))
    }
}

/// The number of something that there are fewer of than code points in a text.
fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn constant_list(
    items: &[Item],
    values: &[&Value<'static>],
    work: &WorkBudget,
) -> Result<Vec<Value<'static>>, Error> {
    let mut list = Vec::with_capacity(items.len());
    for (item, value) in items.iter().zip(values) {
        if item.optional {
            list.extend(held((*value).clone()).map_err(|value| no_optional_element(&value, work))?);
        } else {
            list.push((*value).clone());
        }
    }
    Ok(list)
}
