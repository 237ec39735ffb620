//! Planning of names and paths.

use super::super::SlotKind;
use super::super::node::{
    Field, NameCandidate, NameSource, Node, NodeId, Path, PathStep, Root, SlotId, StepKey,
};
use super::{PlanSource, Planner};
use crate::check::ResolvedReference;
use crate::syntax::ast::Expr;
use crate::types::Type;
use crate::value::{Error, Value};
use std::sync::Arc;

impl Planner<'_> {
    /// Plans a name.
    ///
    /// As in cel-go, a variable of a type `type(T)` is an error: it counts as an undefined type.
    pub(super) fn ident(&mut self, expr: &Expr, name: &Arc<str>) -> Result<NodeId, Error> {
        let root = match (self.reference(expr), self.source) {
            (Some(ResolvedReference::Type(named_type)), _) => {
                let value = Value::from_type(named_type.clone());
                return Ok(self.constant(value));
            }
            (Some(ResolvedReference::Variable(name)), PlanSource::Checked(checked))
                if matches!(checked.type_of(expr.id), Type::Type(_)) =>
            {
                return Err(Error::text(
                    format!("reference to undefined type: {name}"),
                    &self.work,
                ));
            }
            (_, PlanSource::Names(_)) => {
                Root::Names(self.candidate(name, None, 0).into_iter().collect())
            }
            (Some(ResolvedReference::Variable(name)), _) => Root::Slot(self.slot_of(name)),
            _ => Root::Slot(self.slot_of(name)),
        };
        Ok(self.add(Node::Path(Path { root, steps: Vec::new(), has: false })))
    }

    /// The slot of a name: that of the innermost comprehension variable with this name, else that of
    /// the program's variable.
    fn slot_of(&mut self, name: &Arc<str>) -> SlotId {
        if let Some((_, slot)) = self.scope.iter().rev().find(|(source, _)| source == name) {
            return *slot;
        }
        if let Some(slot) = self.variables.get(name) {
            return *slot;
        }
        let slot = self.slot(SlotKind::Variable(name.clone()));
        self.variables.insert(name.clone(), slot);
        slot
    }

    /// The variables and types that a name may be, alone or with a field.
    fn candidate(
        &mut self,
        name: &str,
        field: Option<&str>,
        steps_in_name: usize,
    ) -> Option<NameCandidate> {
        let PlanSource::Names(env) = self.source else { return None };
        let dotted = match field {
            Some(field) => format!("{name}.{field}"),
            None => name.to_owned(),
        };
        let mut candidate = NameCandidate { names: Vec::new(), sources: Vec::new(), steps_in_name };
        for full in env.candidates(&dotted) {
            let full: Arc<str> = full.as_ref().into();
            let slot = self.slot_of(&full);
            candidate.sources.push(NameSource::Slot(slot));
            if let Some(named_type) = env.named_type(&full) {
                candidate.sources.push(NameSource::Type(named_type.clone()));
            }
            candidate.names.push(full);
        }
        Some(candidate)
    }

    /// Plans the selection of a field.
    pub(super) fn select(&mut self, operand: NodeId, field: &str, test: bool) -> NodeId {
        let key = StepKey::Field(Field::new(field));
        self.step(operand, PathStep { key, optional: false, test }, test)
    }

    /// Plans an index.
    pub(super) fn index(
        &mut self,
        operand: NodeId,
        key: NodeId,
        optional: bool,
    ) -> Result<NodeId, Error> {
        let key = match self.constant_value(key) {
            Some(Value::String(name)) => StepKey::Field(Field::new(name)),
            Some(value @ (Value::Int(_) | Value::Uint(_) | Value::Bool(_) | Value::Double(_))) => {
                StepKey::Constant(value.clone())
            }
            Some(other) => return Err(super::super::go_values::invalid_key(other, &self.work)),
            None => StepKey::Computed(key),
        };
        Ok(self.step(operand, PathStep { key, optional, test: false }, false))
    }

    /// Adds a step to a path, or starts a path at a node.
    fn step(&mut self, operand: NodeId, mut step: PathStep, has: bool) -> NodeId {
        if let Some(name) = self.variable_field(operand, &step) {
            let slot = self.slot_of(&name);
            let path = Path { root: Root::VariableField(slot, has), steps: Vec::new(), has };
            self.nodes[operand as usize] = Node::Path(path);
            return operand;
        }
        let root = match &mut self.nodes[operand as usize] {
            Node::Path(path) => {
                // All steps after `has` are presence tests.
                step.test |= path.has;
                path.has |= has;
                let field = match &step.key {
                    StepKey::Field(field) => Some(field.name.clone()),
                    _ => None,
                };
                path.steps.push(step);
                if let Some(field) = field {
                    self.add_longer_name(operand, &field);
                }
                return operand;
            }
            Node::Conditional(..) => Root::Branches(operand),
            _ => Root::Node(operand),
        };
        step.test |= has;
        self.add(Node::Path(Path { root, steps: vec![step], has }))
    }

    /// The variable `OBJECT.FIELD`, if the operand is the variable whose fields are variables of
    /// their own (`variables.x` in admission policies).
    fn variable_field(&self, operand: NodeId, step: &PathStep) -> Option<Arc<str>> {
        let object_variable = self.object_variable?;
        let Node::Path(Path { root: Root::Slot(slot), steps, has: false }) = self.node(operand)
        else {
            return None;
        };
        let SlotKind::Variable(name) = &self.slots[*slot as usize] else { return None };
        let StepKey::Field(field) = &step.key else { return None };
        (steps.is_empty() && !step.optional && **name == *object_variable)
            .then(|| format!("{object_variable}.{}", field.name).into())
    }

    /// Adds a candidate to a path of an unchecked expression: `a.b` may be a variable with a dot in
    /// its name.
    fn add_longer_name(&mut self, path: NodeId, field: &str) {
        let Node::Path(Path { root: Root::Names(candidates), steps, .. }) =
            &self.nodes[path as usize]
        else {
            return;
        };
        let count = steps.len();
        let Some(first) = candidates.first().filter(|first| first.steps_in_name + 1 == count)
        else {
            return;
        };
        // The last candidate is the name without a container prefix.
        let Some(short_name) = first.names.last().cloned() else { return };
        let Some(longer) = self.candidate(&short_name, Some(field), count) else { return };
        if let Node::Path(Path { root: Root::Names(candidates), .. }) =
            &mut self.nodes[path as usize]
        {
            candidates.insert(0, longer);
        }
    }

    /// Whether a node is just the value of a slot.
    pub(super) fn is_slot(&self, id: NodeId, slot: SlotId) -> bool {
        matches!(
            self.node(id),
            Node::Path(Path { root: Root::Slot(root), steps, has: false })
                if *root == slot && steps.is_empty()
        ) || matches!(
            self.node(id),
            Node::Path(Path { root: Root::Names(candidates), steps, has: false })
                if steps.is_empty() && matches!(
                    candidates.as_slice(),
                    [NameCandidate { sources, .. }]
                        if matches!(sources.as_slice(), [NameSource::Slot(root)] if *root == slot)
                )
        )
    }
}
