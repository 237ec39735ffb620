//! Cost estimation: the minimum and maximum cost of an expression before its evaluation.
//!
//! Rules: cel-go's `checker/cost.go`, with free presence tests as in Kubernetes.

use super::path::Path;
use super::range::CostRange;
use super::{LIST_CREATE, MAP_CREATE, OBJECT_CREATE, SELECT, SizeEstimator};
use crate::check::{CheckedExpression, ResolvedReference};
use crate::syntax::ast::{Comprehension, Expr, ExprKind, Literal, operator};
use crate::types::Type;

/// Estimates the cost of a checked expression for data of these sizes.
pub fn estimate(checked: &CheckedExpression, sizes: &dyn SizeEstimator) -> CostRange {
    let nodes = checked.types.len();
    let mut estimator = CostEstimator {
        checked,
        sizes,
        paths: vec![None; nodes],
        variables: Vec::new(),
        sizes_by_node: vec![None; nodes],
        entries: vec![None; nodes],
    };
    estimator.cost(&checked.root)
}

pub(super) struct CostEstimator<'c> {
    checked: &'c CheckedExpression,
    sizes: &'c dyn SizeEstimator,
    /// The data paths of nodes, by id.
    paths: Vec<Option<Path<'c>>>,
    /// Variables of comprehensions, the innermost last.
    variables: Vec<(&'c str, LocalVariable<'c>)>,
    /// The sizes of values, by node id.
    sizes_by_node: Vec<Option<CostRange>>,
    /// The sizes of their keys and values.
    entries: Vec<Option<EntrySizes>>,
}

/// The sizes of the entries of a list or map.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntrySizes {
    list: bool,
    key: CostRange,
    pub(super) value: CostRange,
}

impl EntrySizes {
    pub(super) fn union(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        let (one, other) = (one?, other?);
        let (key, value) = (one.key.union(other.key), one.value.union(other.value));
        Some(Self { list: one.list, key, value })
    }
}

#[derive(Clone, Debug)]
struct LocalVariable<'c> {
    path: Path<'c>,
    size: Option<CostRange>,
    entries: Option<EntrySizes>,
}

/// The part of a range that a variable stands for.
#[derive(Clone, Copy)]
enum RangePart {
    /// An index or a key.
    Key,
    /// A value.
    Value,
    /// The element of a list, or the key of a map.
    Element,
}

/// An argument of a call.
#[derive(Clone, Debug)]
pub(super) struct Argument<'c> {
    pub(super) expr: &'c Expr,
    pub(super) cel_type: &'c Type,
    /// Its data path; empty for other values and for accumulators.
    pub(super) path: Path<'c>,
    pub(super) size: Option<CostRange>,
    pub(super) cost: CostRange,
}

impl<'c> CostEstimator<'c> {
    fn cost(&mut self, node: &'c Expr) -> CostRange {
        match &node.kind {
            ExprKind::Literal(_) => CostRange::ZERO,
            ExprKind::Ident(name) => {
                let path = match self.local_variable(name) {
                    Some(local_variable) => local_variable.path.clone(),
                    None => Path::variable(name),
                };
                self.set_path(node, path);
                CostRange::fixed(SELECT)
            }
            ExprKind::Select { operand, test_only: true, .. } => self.cost(operand),
            ExprKind::Select { operand, field, .. } => {
                let mut sum = self.cost(operand);
                if matches!(self.type_of(operand), Type::Map(_) | Type::Object(_) | Type::Param(_))
                {
                    sum = sum.plus(CostRange::fixed(SELECT));
                }
                let path = self.path(operand).then(field);
                self.set_path(node, path);
                sum
            }
            ExprKind::Call { function, target, args } => {
                self.call(node, function, target.as_deref(), args)
            }
            ExprKind::List { elements, .. } => {
                let mut sum = CostRange::ZERO;
                let mut size = RangeUnion::new(elements.is_empty());
                for element in elements {
                    sum = sum.plus(self.cost(element));
                    size.add(self.size_or_unknown(element));
                }
                let key = CostRange::fixed(1);
                self.set_entries(node, Some(EntrySizes { list: true, key, value: size.0 }));
                sum.plus(CostRange::fixed(LIST_CREATE))
            }
            ExprKind::Map(entries) => {
                let mut sum = CostRange::ZERO;
                let mut keys = RangeUnion::new(entries.is_empty());
                let mut values = RangeUnion::new(entries.is_empty());
                for entry in entries {
                    sum = sum.plus(self.cost(&entry.key)).plus(self.cost(&entry.value));
                    keys.add(self.size_or_unknown(&entry.key));
                    values.add(self.size_or_unknown(&entry.value));
                }
                let sizes = EntrySizes { list: false, key: keys.0, value: values.0 };
                self.set_entries(node, Some(sizes));
                sum.plus(CostRange::fixed(MAP_CREATE))
            }
            ExprKind::Struct { fields, .. } => {
                let mut sum = CostRange::ZERO;
                for field in fields {
                    sum = sum.plus(self.cost(&field.value));
                }
                sum.plus(CostRange::fixed(OBJECT_CREATE))
            }
            ExprKind::Comprehension(comprehension) if is_bind(comprehension) => {
                self.bind(node, comprehension)
            }
            ExprKind::Comprehension(comprehension) => self.comprehension(node, comprehension),
        }
    }

    fn call(
        &mut self,
        node: &'c Expr,
        function: &'c str,
        target: Option<&'c Expr>,
        args: &'c [Expr],
    ) -> CostRange {
        if function == "dyn"
            && let [arg] = args
        {
            let cost = self.cost(arg);
            self.copy_sizes(node, arg);
            return cost.plus(CostRange::fixed(1));
        }
        let mut arguments = Vec::with_capacity(args.len());
        for arg in args {
            let cost = self.cost(arg);
            arguments.push(self.argument(arg, cost));
        }
        let overloads: Vec<&str> = match self.checked.reference(node.id) {
            Some(ResolvedReference::Overloads(overloads)) => {
                overloads.iter().map(|overload| overload.id).collect()
            }
            _ if function == operator::OPT_SELECT => vec!["select_optional_field"],
            _ => return CostRange::ZERO,
        };
        let mut sum = CostRange::ZERO;
        let target = target.map(|target| {
            let cost = self.cost(target);
            sum = cost;
            self.argument(target, cost)
        });
        let mut cost = RangeUnion::new(false);
        let mut size: Option<CostRange> = None;
        for overload in overloads {
            let (each, result) =
                self.function_cost(node, function, overload, target.as_ref(), &arguments);
            cost.add(each);
            size = match (size, result) {
                (Some(size), Some(result)) => Some(size.union(result)),
                (size, result) => size.or(result),
            };
            let step = match overload {
                "index_list" => Some("@items"),
                "index_map" => Some("@values"),
                _ => None,
            };
            if let (Some(step), Some(indexed)) = (step, args.first()) {
                size = self.entries(indexed).map(|entries| entries.value);
                let path = self.path(indexed).then(step);
                self.set_path(node, path);
            }
            if size.is_none() {
                size = self.size(node);
            }
        }
        self.set_size(node, size);
        sum.plus(cost.0)
    }

    fn comprehension(&mut self, node: &'c Expr, comprehension: &'c Comprehension) -> CostRange {
        let mut sum = self.cost(&comprehension.range).plus(self.cost(&comprehension.accu_init));
        self.push_bound(&comprehension.accu_var, &comprehension.accu_init);

        if let Some(second) = &comprehension.iter_var2 {
            self.push_element(&comprehension.iter_var, &comprehension.range, RangePart::Key);
            // If the first variable has the name of the range, cel-go treats the second as part of
            // the first.
            self.push_element(second, &comprehension.range, RangePart::Value);
        } else {
            self.push_element(&comprehension.iter_var, &comprehension.range, RangePart::Element);
        }

        let condition = self.cost(&comprehension.condition);
        let step = self.cost(&comprehension.step);
        self.variables.pop();
        if comprehension.iter_var2.is_some() {
            self.variables.pop();
        }
        sum = sum.plus(self.cost(&comprehension.result));
        self.variables.pop();

        let count = self.size_or_unknown(&comprehension.range);
        sum = sum.plus(count.times(step.plus(condition)));
        match &comprehension.accu_init.kind {
            ExprKind::Literal(_) => {
                let size = self.size(&comprehension.accu_init);
                self.set_size(node, size);
            }
            ExprKind::List { .. } | ExprKind::Map(_) => {
                self.set_size(node, Some(count));
                let entries = self.entries(&comprehension.step);
                self.set_entries(node, entries);
            }
            _ => {}
        }
        sum
    }

    /// Estimates `cel.bind`, a comprehension over an empty list.
    fn bind(&mut self, node: &'c Expr, bind: &'c Comprehension) -> CostRange {
        let sum = self.cost(&bind.range).plus(self.cost(&bind.accu_init));
        self.push_bound(&bind.accu_var, &bind.accu_init);
        let sum = sum.plus(self.cost(&bind.result));
        self.variables.pop();
        self.copy_sizes(node, &bind.result);
        sum
    }

    /// Adds a variable for a part of the range.
    fn push_element(&mut self, name: &'c str, range: &'c Expr, part: RangePart) {
        let entries = self.entries(range);
        let list = entries
            .map_or_else(|| matches!(self.type_of(range), Type::List(_)), |entries| entries.list);
        let (step, key) = match (part, list) {
            (RangePart::Key, true) => ("@indices", true),
            (RangePart::Key | RangePart::Element, false) => ("@keys", true),
            (RangePart::Value | RangePart::Element, true) => ("@items", false),
            (RangePart::Value, false) => ("@values", false),
        };
        let size = entries.map(|entries| if key { entries.key } else { entries.value });
        let path = self.path(range).then(step);
        self.variables.push((name, LocalVariable { path, size, entries: None }));
    }

    /// Adds a variable that is bound to an expression.
    fn push_bound(&mut self, name: &'c str, value: &'c Expr) {
        let path = self.path(value);
        let entries = self.entries(value);
        let size = self.size(value);
        self.variables.push((name, LocalVariable { path, size, entries }));
    }

    fn local_variable(&self, name: &str) -> Option<&LocalVariable<'c>> {
        self.variables
            .iter()
            .rev()
            .find(|(variable, _)| *variable == name)
            .map(|(_, local_variable)| local_variable)
    }

    fn argument(&mut self, expr: &'c Expr, cost: CostRange) -> Argument<'c> {
        let size = self.size(expr);
        let path = self.path(expr);
        let is_accumulator = path.with(None, |steps| {
            steps.first().is_some_and(|first| matches!(*first, "__result__" | "@result"))
        });
        let path = if is_accumulator { Path::default() } else { path };
        Argument { expr, cel_type: self.type_of(expr), path, size, cost }
    }

    fn type_of(&self, node: &Expr) -> &'c Type {
        self.checked.type_of(node.id)
    }

    fn path(&self, node: &Expr) -> Path<'c> {
        if let ExprKind::Ident(name) = &node.kind
            && let Some(local_variable) = self.local_variable(name)
        {
            return local_variable.path.clone();
        }
        self.paths.get(node.id as usize).cloned().flatten().unwrap_or_default()
    }

    fn set_path(&mut self, node: &Expr, path: Path<'c>) {
        if let Some(slot) = self.paths.get_mut(node.id as usize) {
            *slot = Some(path);
        }
    }

    pub(super) fn size_or_unknown(&mut self, node: &Expr) -> CostRange {
        self.size(node).unwrap_or(CostRange::UNKNOWN)
    }

    /// The size of a node's value: the computed size, that of a literal, that of the schema, or
    /// that of the type.
    fn size(&mut self, node: &Expr) -> Option<CostRange> {
        if let Some(size) = self.sizes_by_node.get(node.id as usize).copied().flatten() {
            return Some(size);
        }
        if let Some(literal) = literal_size(node) {
            return Some(CostRange::fixed(literal));
        }
        if let Some(size) = self.schema_size(&self.path(node), None) {
            self.set_size(node, Some(size));
            return Some(size);
        }
        if is_scalar(self.type_of(node)) {
            return Some(CostRange::fixed(1));
        }
        match &node.kind {
            ExprKind::Ident(name) => self.local_variable(name)?.size,
            _ => None,
        }
    }

    /// The size of a path, or of the path and one more step, in the schema.
    pub(super) fn schema_size(
        &self,
        path: &Path<'c>,
        next_step: Option<&'c str>,
    ) -> Option<CostRange> {
        if path.is_empty() {
            return None;
        }
        let (min, max) = path.with(next_step, |path| self.sizes.size(path))?;
        Some(CostRange { min, max })
    }

    fn set_size(&mut self, node: &Expr, size: Option<CostRange>) {
        if let (Some(slot), Some(_)) = (self.sizes_by_node.get_mut(node.id as usize), size) {
            *slot = size;
        }
    }

    pub(super) fn entries(&self, node: &Expr) -> Option<EntrySizes> {
        if let Some(entries) = self.entries.get(node.id as usize).copied().flatten() {
            return Some(entries);
        }
        match &node.kind {
            ExprKind::Ident(name) => self.local_variable(name)?.entries,
            _ => None,
        }
    }

    pub(super) fn set_entries(&mut self, node: &Expr, entries: Option<EntrySizes>) {
        if let (Some(slot), Some(_)) = (self.entries.get_mut(node.id as usize), entries) {
            *slot = entries;
        }
    }

    fn copy_sizes(&mut self, to: &Expr, from: &Expr) {
        let size = self.size(from);
        self.set_size(to, size);
        self.set_entries(to, self.entries(from));
    }
}

/// The union of several ranges.
struct RangeUnion(CostRange);

impl RangeUnion {
    const fn new(empty: bool) -> Self {
        Self(CostRange { min: if empty { 0 } else { u64::MAX }, max: 0 })
    }

    fn add(&mut self, range: CostRange) {
        self.0 = self.0.union(range);
    }
}

fn is_bind(comprehension: &Comprehension) -> bool {
    matches!(&comprehension.range.kind, ExprKind::List { elements, .. } if elements.is_empty())
        && matches!(comprehension.condition.kind, ExprKind::Literal(Literal::Bool(false)))
        && &*comprehension.accu_var != "__result__"
}

/// The size of a literal.
fn literal_size(node: &Expr) -> Option<u64> {
    Some(match &node.kind {
        ExprKind::Literal(Literal::String(text)) => text.chars().count() as u64,
        ExprKind::Literal(Literal::Bytes(bytes)) => bytes.len() as u64,
        ExprKind::Literal(_) => 1,
        ExprKind::List { elements, .. } => elements.len() as u64,
        ExprKind::Map(entries) => entries.len() as u64,
        _ => return None,
    })
}

/// Whether all values of a type have the size 1.
fn is_scalar(cel_type: &Type) -> bool {
    match cel_type {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => {
            true
        }
        _ => cel_type.optional_inner().is_some_and(is_scalar),
    }
}
