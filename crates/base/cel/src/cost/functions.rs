//! Cost estimates of calls, and the sizes of their results.
//!
//! Rules, in this order: the estimators of cel-go's list and set libraries, apiserver's
//! `library.CostEstimator.EstimateCallCost`, `functionCost` of cel-go's `checker/cost.go`.

use super::estimate::{Argument, CostEstimator, EntrySizes};
use super::range::CostRange;
use super::{COST_PER_CODE_POINT, COST_PER_PATTERN_CODE_POINT, COST_PER_REQUIREMENT, LIST_CREATE};
use crate::syntax::ast::{Expr, ExprKind, Literal};
use crate::types::Type;

/// A cost, and the size of the result if known.
type Estimate = (CostRange, Option<CostRange>);

const ONE: CostRange = CostRange::fixed(1);

/// The assumed length of a format's regular expression.
const FORMAT_PATTERN: f64 = 128.0;
/// The length of the name of a format.
const FORMAT_NAME: u64 = 64;

impl<'c> CostEstimator<'c> {
    /// The cost of an overload with its arguments, without its target.
    pub(super) fn function_cost(
        &mut self,
        node: &'c Expr,
        function: &str,
        overload: &str,
        target: Option<&Argument<'c>>,
        args: &[Argument<'c>],
    ) -> Estimate {
        let args_cost = args.iter().fold(CostRange::ZERO, |sum, arg| sum.plus(arg.cost));
        let library = self
            .extension_cost(overload, target, args)
            .or_else(|| self.kubernetes_cost(function, overload, target, args));
        if let Some((cost, size)) = library {
            return (cost.plus(args_cost), size);
        }
        match (overload, target, args) {
            ("logical_or" | "logical_and", _, [left, right]) => {
                let max = left.cost.plus(right.cost).max;
                (CostRange { min: left.cost.min, max }, None)
            }
            ("conditional", _, [condition, yes, no]) => {
                let size = size_or_unknown(yes).union(size_or_unknown(no));
                let entries = EntrySizes::union(self.entries(yes.expr), self.entries(no.expr));
                self.set_entries(node, entries);
                (condition.cost.plus(yes.cost.union(no.cost)), Some(size))
            }
            _ => {
                let (cost, size) = self.standard_cost(node, overload, target, args);
                (cost.plus(args_cost), size)
            }
        }
    }

    /// Standard functions that evaluate all their arguments.
    fn standard_cost(
        &mut self,
        node: &'c Expr,
        overload: &str,
        target: Option<&Argument<'c>>,
        args: &[Argument<'c>],
    ) -> Estimate {
        match (overload, target, args) {
            ("string_format", Some(target), _) => {
                (size_or_unknown(target).scaled(COST_PER_CODE_POINT), None)
            }
            // Go's numbers wrap for unlimited sizes.
            ("string_to_bytes", _, [arg]) => {
                let size = size_or_unknown(arg);
                let result = CostRange { min: size.min, max: size.max.wrapping_mul(4) };
                (size.scaled(COST_PER_CODE_POINT), Some(result))
            }
            ("bytes_to_string", _, [arg]) => {
                let size = size_or_unknown(arg);
                let result = CostRange { min: size.min / 4, max: size.max };
                (size.scaled(COST_PER_CODE_POINT), Some(result))
            }
            ("strings_quote", _, [arg]) => {
                let size = size_or_unknown(arg);
                let result = CostRange {
                    min: size.min.wrapping_add(2),
                    max: size.max.wrapping_mul(2).wrapping_add(2),
                };
                (size.scaled(COST_PER_CODE_POINT), Some(result))
            }
            ("starts_with_string" | "ends_with_string", _, [arg]) => {
                (size_or_unknown(arg).scaled(COST_PER_CODE_POINT), None)
            }
            ("in_list", _, [_, list]) => (size_or_unknown(list).scaled(1.0), None),
            ("matches_string", Some(target), [pattern]) => {
                (matching(size_or_unknown(target), size_or_unknown(pattern)), None)
            }
            ("contains_string", Some(target), [part]) => (
                size_or_unknown(target)
                    .scaled(COST_PER_CODE_POINT)
                    .times(size_or_unknown(part).scaled(COST_PER_CODE_POINT)),
                None,
            ),
            ("add_string" | "add_bytes" | "add_list", _, [left, right]) => {
                let size = size_or_unknown(left).plus(size_or_unknown(right));
                let entries = EntrySizes::union(self.entries(left.expr), self.entries(right.expr));
                self.set_entries(node, entries);
                (
                    if overload == "add_list" { ONE } else { size.scaled(COST_PER_CODE_POINT) },
                    Some(size),
                )
            }
            (
                "less_string"
                | "greater_string"
                | "less_equals_string"
                | "greater_equals_string"
                | "less_bytes"
                | "greater_bytes"
                | "less_equals_bytes"
                | "greater_equals_bytes"
                | "equals"
                | "not_equals",
                _,
                [left, right],
            ) => {
                let max = size_or_unknown(left).max.min(size_or_unknown(right).max);
                (CostRange { min: u64::from(max > 0), max }.scaled(COST_PER_CODE_POINT), None)
            }
            _ => (ONE, None),
        }
    }

    /// Functions of the list and set libraries.
    fn extension_cost(
        &self,
        overload: &str,
        target: Option<&Argument<'c>>,
        args: &[Argument<'c>],
    ) -> Option<Estimate> {
        let size = |argument| self.estimated_size(argument);
        let squared = |size: CostRange| size.times(size);
        let factor = |element: &str| match element {
            "string" | "bytes" => 2.0 + COST_PER_CODE_POINT,
            _ => 2.0,
        };
        Some(match (overload, target, args) {
            ("list_slice", Some(target), [start, end]) => {
                let end = literal_int(end.expr, size(target).max);
                allocating(1.0, CostRange::fixed(end.wrapping_sub(literal_int(start.expr, 0))))
            }
            ("lists_range", None, [count]) => {
                allocating(1.0, CostRange::fixed(literal_int(count.expr, u64::MAX)))
            }
            ("list_reverse" | "list_flatten", Some(target), []) => allocating(1.0, size(target)),
            ("list_flatten_int", Some(target), [depth]) => {
                #[expect(clippy::cast_precision_loss, reason = "as cel-go computes")]
                let depth = literal_int(depth.expr, u64::MAX) as f64;
                allocating(depth, size(target))
            }
            ("list_distinct", Some(target), []) => allocating(2.0, squared(size(target))),
            ("list_sets_contains_list" | "list_sets_intersects_list", _, [one, other]) => {
                (size(one).times(size(other)).scaled(1.0).plus(ONE), None)
            }
            ("list_sets_equivalent_list", _, [one, other]) => {
                (size(one).times(size(other)).scaled(2.0).plus(ONE), None)
            }
            (_, Some(target), []) => {
                let element = overload.strip_prefix("list_")?.strip_suffix("_sort")?;
                allocating(factor(element), squared(size(target)))
            }
            (_, Some(_), [keys]) => {
                let element =
                    overload.strip_prefix("list_")?.strip_suffix("_sortByAssociatedKeys")?;
                allocating(factor(element), squared(size(keys)))
            }
            _ => return None,
        })
    }

    /// Functions of Kubernetes' libraries, and others whose cost Kubernetes defines.
    fn kubernetes_cost(
        &self,
        function: &str,
        overload: &str,
        target: Option<&Argument<'c>>,
        args: &[Argument<'c>],
    ) -> Option<Estimate> {
        let size = |argument| self.estimated_size(argument);
        Some(match (function, target, args) {
            // A rule can afford two of them.
            ("check", _, _) => (CostRange::fixed(350_000), None),
            _ if super::has_unit_cost(function) => (ONE, None),
            ("fieldSelector" | "labelSelector", _, [selector]) => {
                let length = size(selector);
                let requirements = length.scaled(0.5).scaled(COST_PER_REQUIREMENT);
                let base = CostRange::fixed(LIST_CREATE);
                (base.plus(length.scaled(COST_PER_CODE_POINT)).plus(requirements), None)
            }
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(target), _) => {
                let Some(element) = element_type(target) else {
                    return Some((size(target).scaled(COST_PER_CODE_POINT), None));
                };
                let mut each = ONE;
                if matches!(element, Type::String | Type::Bytes) {
                    each = each.plus(self.element_size(target).scaled(COST_PER_CODE_POINT));
                }
                (size(target).times(each), None)
            }
            ("url" | "jsonpatch.escapeKey", _, [text]) => {
                let size = size(text);
                (size.scaled(COST_PER_CODE_POINT), Some(size))
            }
            ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(target), _) => {
                let size = size(target);
                (size.scaled(COST_PER_CODE_POINT), Some(size))
            }
            ("replace", Some(target), [from, to, ..]) => {
                let text = size(target);
                (
                    text.scaled(2.0 * COST_PER_CODE_POINT),
                    Some(replaced_size(text, size(from), size(to))),
                )
            }
            ("split", Some(target), _) => {
                let size = size(target);
                let max = match args.get(1).map(|limit| &limit.expr.kind) {
                    #[expect(clippy::cast_sign_loss, reason = "as Kubernetes computes")]
                    Some(ExprKind::Literal(Literal::Int(limit))) => *limit as u64,
                    _ => size.max,
                };
                (size.scaled(2.0 * COST_PER_CODE_POINT), Some(CostRange { min: 0, max }))
            }
            ("join", Some(target), _) => {
                let list = size(target);
                let mut text = CostRange::ZERO;
                if element_type(target).is_some() {
                    text = list.times(self.element_size(target));
                }
                if let Some(separator) = args.first() {
                    let between = CostRange {
                        min: list.min.saturating_sub(1),
                        max: list.max.saturating_sub(1),
                    };
                    text = text.plus(size(separator).times(between));
                }
                (text.scaled(COST_PER_CODE_POINT), Some(text))
            }
            ("find" | "findAll", Some(target), [pattern, ..]) => {
                let text = size(target);
                let result = CostRange { min: 0, max: text.max };
                (matching(text, size(pattern)), Some(result))
            }
            ("ip", _, _) if overload == "cidr_ip" => (ONE, None),
            (
                "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver"
                | "isSemver",
                _,
                [text, ..],
            ) => (size(text).scaled(COST_PER_CODE_POINT), None),
            ("ip.isCanonical", _, [text, ..]) => {
                (size(text).scaled(2.0 * COST_PER_CODE_POINT), None)
            }
            ("containsIP" | "containsCIDR", _, [other, ..]) => {
                // An IP address has 4 or 16 bytes.
                let bytes = CostRange { min: 4, max: 16 };
                let mut cost = bytes.plus(bytes).scaled(COST_PER_CODE_POINT);
                if function == "containsCIDR" {
                    cost = cost.plus(bytes.scaled(COST_PER_CODE_POINT)).plus(ONE);
                }
                if matches!(overload, "cidr_contains_ip_string" | "cidr_contains_cidr_string") {
                    cost = cost.plus(size(other).scaled(COST_PER_CODE_POINT));
                }
                (cost, None)
            }
            ("validate", _, [text, ..]) => (
                size(text)
                    .scaled(COST_PER_CODE_POINT)
                    .scaled(FORMAT_PATTERN * COST_PER_PATTERN_CODE_POINT),
                None,
            ),
            ("_==_", _, [left, right]) => (equality(left, right)?, None),
            _ => return None,
        })
    }

    /// The size of an argument, from the schema if it is not known yet.
    fn estimated_size(&self, argument: &Argument<'c>) -> CostRange {
        argument
            .size
            .or_else(|| self.schema_size(&argument.path, None))
            .unwrap_or(CostRange::UNKNOWN)
    }

    /// The size of the elements of a list.
    fn element_size(&self, list: &Argument<'c>) -> CostRange {
        self.schema_size(&list.path, Some("@items")).unwrap_or(CostRange::UNKNOWN)
    }
}

fn size_or_unknown(argument: &Argument<'_>) -> CostRange {
    argument.size.unwrap_or(CostRange::UNKNOWN)
}

/// The first parameter of an argument's type.
fn element_type<'c>(argument: &Argument<'c>) -> Option<&'c Type> {
    match argument.cel_type {
        Type::List(element) => Some(element),
        Type::Map(entry) => Some(&entry.0),
        Type::Opaque(opaque) => opaque.params.first(),
        Type::Type(inner) => inner.as_deref(),
        _ => None,
    }
}

/// The cost of comparing two values of a Kubernetes type.
fn equality(left: &Argument<'_>, right: &Argument<'_>) -> Option<CostRange> {
    if left.cel_type.name() != right.cel_type.name() {
        return None;
    }
    let name = match left.cel_type {
        Type::Opaque(opaque) if opaque.params.is_empty() => &*opaque.name,
        Type::Object(object) => &*object.name,
        _ => return None,
    };
    Some(match name {
        "net.IP"
        | "net.CIDR"
        | "kubernetes.Quantity"
        | "kubernetes.Semver"
        | "kubernetes.authorization.Authorizer"
        | "kubernetes.authorization.PathCheck"
        | "kubernetes.authorization.GroupCheck"
        | "kubernetes.authorization.ResourceCheck"
        | "kubernetes.authorization.Decision" => ONE,
        "kubernetes.NamedFormat" => {
            CostRange { min: 1, max: FORMAT_NAME }.scaled(COST_PER_CODE_POINT)
        }
        "kubernetes.URL" => CostRange { min: 1, max: right.size.map_or(1, |size| size.max) }
            .scaled(COST_PER_CODE_POINT),
        _ => return None,
    })
}

/// The cost of matching a text. The text counts one code point more, so an empty text has a cost
/// too.
fn matching(text: CostRange, pattern: CostRange) -> CostRange {
    text.plus(ONE).scaled(COST_PER_CODE_POINT).times(pattern.scaled(COST_PER_PATTERN_CODE_POINT))
}

/// The cost of a call that creates a list of this size.
fn allocating(factor: f64, size: CostRange) -> Estimate {
    (size.scaled(factor).plus(CostRange::fixed(1 + LIST_CREATE)), Some(size))
}

/// A literal whole number, at least zero.
fn literal_int(expr: &Expr, default: u64) -> u64 {
    match expr.kind {
        ExprKind::Literal(Literal::Int(value)) => u64::try_from(value).unwrap_or(0),
        _ => default,
    }
}

/// The length of a text after replacing `from` by `to`.
fn replaced_size(text: CostRange, from: CostRange, to: CostRange) -> CostRange {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "as Kubernetes computes"
    )]
    let times = |text: u64, from: u64| (text as f64 / from as f64).ceil() as u64;
    let (max_count, max_rest) = if from.min == 0 {
        (text.max.saturating_add(1), text.max)
    } else if to.max <= from.min {
        (0, text.max)
    } else {
        (times(text.max, from.min), 0)
    };
    let (min_count, min_rest) = if from.max == 0 {
        (text.min.saturating_add(1), text.min)
    } else if from.max <= to.min {
        (0, text.min)
    } else {
        (times(text.min, from.max), 0)
    };
    CostRange { min: min_count, max: max_count }
        .times(to)
        .plus(CostRange { min: min_rest, max: max_rest })
}
