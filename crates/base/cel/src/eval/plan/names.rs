//! Names and paths.

use super::super::SlotKind;
use super::super::node::{
    Candidate, Field, NameSource, Node, NodeId, Path, Root, SlotId, Step, StepKey,
};
use super::{Known, Planner};
use crate::check::ResolvedReference;
use crate::syntax::ast::Expr;
use crate::types::Type;
use crate::value::{Error, Value};
use std::sync::Arc;

impl Planner<'_> {
    /// A name.
    ///
    /// A variable whose values are types is taken for the name of a type that nobody has declared,
    /// as in cel-go.
    pub(super) fn ident(&mut self, expr: &Expr, name: &Arc<str>) -> Result<NodeId, Error> {
        let root = match (self.reference(expr), self.known) {
            (Some(ResolvedReference::Type(of)), _) => {
                let value = Value::from_type(of.clone());
                return Ok(self.constant(value));
            }
            (Some(ResolvedReference::Variable(name)), Known::Checked(checked))
                if matches!(checked.type_of(expr.id), Type::Type(_)) =>
            {
                return Err(Error::text(
                    format!("reference to undefined type: {name}"),
                    &self.work,
                ));
            }
            (_, Known::Names(_)) => {
                Root::Names(self.candidate(name, None, 0).into_iter().collect())
            }
            (Some(ResolvedReference::Variable(name)), _) => Root::Slot(self.variable(name)),
            _ => Root::Slot(self.variable(name)),
        };
        Ok(self.add(Node::Path(Path { root, steps: Vec::new(), has: false })))
    }

    /// The place of a name: of the innermost loop that has it, else of a variable.
    fn variable(&mut self, name: &Arc<str>) -> SlotId {
        if let Some((_, slot)) = self.scope.iter().rev().find(|(known, _)| known == name) {
            return *slot;
        }
        if let Some(slot) = self.variables.get(name) {
            return *slot;
        }
        let slot = self.slot(SlotKind::Variable(name.clone()));
        self.variables.insert(name.clone(), slot);
        slot
    }

    /// What a name may mean by itself, or one of several names with a field.
    fn candidate(&mut self, name: &str, field: Option<&str>, skip: usize) -> Option<Candidate> {
        let Known::Names(env) = self.known else { return None };
        let dotted = match field {
            Some(field) => format!("{name}.{field}"),
            None => name.to_owned(),
        };
        let mut candidate = Candidate { names: Vec::new(), sources: Vec::new(), skip };
        for full in env.candidates(&dotted) {
            let full: Arc<str> = full.as_ref().into();
            let slot = self.variable(&full);
            candidate.sources.push(NameSource::Slot(slot));
            if let Some(of) = env.named_type(&full) {
                candidate.sources.push(NameSource::Type(of.clone()));
            }
            candidate.names.push(full);
        }
        Some(candidate)
    }

    /// A field of a node's value.
    pub(super) fn select(&mut self, operand: NodeId, field: &str, test: bool) -> NodeId {
        let key = StepKey::Field(Field::new(field));
        self.step(operand, Step { key, optional: false, test }, test)
    }

    /// An element of a node's value.
    pub(super) fn index(
        &mut self,
        operand: NodeId,
        key: NodeId,
        optional: bool,
    ) -> Result<NodeId, Error> {
        let key = match self.plain(key) {
            Some(Value::String(name)) => StepKey::Field(Field::new(name)),
            Some(value @ (Value::Int(_) | Value::Uint(_) | Value::Bool(_) | Value::Double(_))) => {
                StepKey::Constant(value.clone())
            }
            Some(other) => return Err(super::super::go_values::invalid_key(other, &self.work)),
            None => StepKey::Computed(key),
        };
        Ok(self.step(operand, Step { key, optional, test: false }, false))
    }

    /// Adds a step to a path, or begins one at a node.
    fn step(&mut self, operand: NodeId, mut step: Step, has: bool) -> NodeId {
        if let Some(name) = self.part(operand, &step) {
            let slot = self.variable(&name);
            let path = Path { root: Root::Part(slot, has), steps: Vec::new(), has };
            self.nodes[operand as usize] = Node::Path(path);
            return operand;
        }
        let root = match &mut self.nodes[operand as usize] {
            Node::Path(path) => {
                // Everything behind `has` is only asked for.
                step.test |= path.has;
                path.has |= has;
                let field = match &step.key {
                    StepKey::Field(field) => Some(field.name.clone()),
                    _ => None,
                };
                path.steps.push(step);
                if let Some(field) = field {
                    self.lengthen(operand, &field);
                }
                return operand;
            }
            Node::Conditional(..) => Root::Branches(operand),
            _ => Root::Node(operand),
        };
        step.test |= has;
        self.add(Node::Path(Path { root, steps: vec![step], has }))
    }

    /// The name of the variable that a step leads to, if it leads to a field that is one.
    fn part(&self, operand: NodeId, step: &Step) -> Option<Arc<str>> {
        let whole = self.whole?;
        let Node::Path(Path { root: Root::Slot(slot), steps, has: false }) = self.node(operand)
        else {
            return None;
        };
        let SlotKind::Variable(name) = &self.slots[*slot as usize] else { return None };
        let StepKey::Field(field) = &step.key else { return None };
        (steps.is_empty() && !step.optional && **name == *whole)
            .then(|| format!("{whole}.{}", field.name).into())
    }

    /// Of an expression that was not checked: a field may be the last part of a longer name.
    fn lengthen(&mut self, path: NodeId, field: &str) {
        let Node::Path(Path { root: Root::Names(candidates), steps, .. }) =
            &self.nodes[path as usize]
        else {
            return;
        };
        let count = steps.len();
        let Some(first) = candidates.first().filter(|first| first.skip + 1 == count) else {
            return;
        };
        // The names of the container come with the plain one, which is the last.
        let Some(plain) = first.names.last().cloned() else { return };
        let Some(longer) = self.candidate(&plain, Some(field), count) else { return };
        if let Node::Path(Path { root: Root::Names(candidates), .. }) =
            &mut self.nodes[path as usize]
        {
            candidates.insert(0, longer);
        }
    }

    /// Whether a node is nothing but the name of a place.
    pub(super) fn is_bare(&self, id: NodeId, slot: SlotId) -> bool {
        matches!(
            self.node(id),
            Node::Path(Path { root: Root::Slot(root), steps, has: false })
                if *root == slot && steps.is_empty()
        ) || matches!(
            self.node(id),
            Node::Path(Path { root: Root::Names(candidates), steps, has: false })
                if steps.is_empty() && matches!(
                    candidates.as_slice(),
                    [Candidate { sources, .. }]
                        if matches!(sources.as_slice(), [NameSource::Slot(root)] if *root == slot)
                )
        )
    }
}
