//! What calls cost at least and at most, and how large their results are.
//!
//! Rules: the estimators of cel-go's list and set libraries, then apiserver's
//! `library.CostEstimator.EstimateCallCost`, then `functionCost` of cel-go's `checker/cost.go`.

use super::estimate::{Argument, Coster, EntrySizes};
use super::range::CostRange;
use super::{LIST_CREATE, PER_PATTERN, PER_REQUIREMENT, PER_TEXT};
use crate::syntax::ast::{Expr, ExprKind, Literal};
use crate::types::Type;

/// A cost, and the size of the result if it is known.
type Estimate = (CostRange, Option<CostRange>);

const ONE: CostRange = CostRange::fixed(1);

/// The length that a regular expression behind a format is taken to have.
const FORMAT_PATTERN: f64 = 128.0;
/// The length of the name of a format.
const FORMAT_NAME: u64 = 64;

impl<'c> Coster<'c> {
    /// What one overload costs, its arguments but not its target included.
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
            .extension(overload, target, args)
            .or_else(|| self.kubernetes(function, overload, target, args));
        if let Some((cost, size)) = library {
            return (cost.plus(args_cost), size);
        }
        match (overload, target, args) {
            ("logical_or" | "logical_and", _, [left, right]) => {
                let max = left.cost.plus(right.cost).max;
                (CostRange { min: left.cost.min, max }, None)
            }
            ("conditional", _, [condition, yes, no]) => {
                let size = known(yes).union(known(no));
                let entries = EntrySizes::union(self.entries(yes.expr), self.entries(no.expr));
                self.set_entries(node, entries);
                (condition.cost.plus(yes.cost.union(no.cost)), Some(size))
            }
            _ => {
                let (cost, size) = self.standard(node, overload, target, args);
                (cost.plus(args_cost), size)
            }
        }
    }

    /// The standard functions whose arguments are all evaluated.
    fn standard(
        &mut self,
        node: &'c Expr,
        overload: &str,
        target: Option<&Argument<'c>>,
        args: &[Argument<'c>],
    ) -> Estimate {
        match (overload, target, args) {
            ("string_format", Some(target), _) => (known(target).scaled(PER_TEXT), None),
            // Go's numbers wrap where nothing bounds them.
            ("string_to_bytes", _, [arg]) => {
                let size = known(arg);
                let result = CostRange { min: size.min, max: size.max.wrapping_mul(4) };
                (size.scaled(PER_TEXT), Some(result))
            }
            ("bytes_to_string", _, [arg]) => {
                let size = known(arg);
                let result = CostRange { min: size.min / 4, max: size.max };
                (size.scaled(PER_TEXT), Some(result))
            }
            ("strings_quote", _, [arg]) => {
                let size = known(arg);
                let result = CostRange {
                    min: size.min.wrapping_add(2),
                    max: size.max.wrapping_mul(2).wrapping_add(2),
                };
                (size.scaled(PER_TEXT), Some(result))
            }
            ("starts_with_string" | "ends_with_string", _, [arg]) => {
                (known(arg).scaled(PER_TEXT), None)
            }
            ("in_list", _, [_, list]) => (known(list).scaled(1.0), None),
            ("matches_string", Some(target), [pattern]) => {
                (matching(known(target), known(pattern)), None)
            }
            ("contains_string", Some(target), [part]) => {
                (known(target).scaled(PER_TEXT).times(known(part).scaled(PER_TEXT)), None)
            }
            ("add_string" | "add_bytes" | "add_list", _, [left, right]) => {
                let size = known(left).plus(known(right));
                let entries = EntrySizes::union(self.entries(left.expr), self.entries(right.expr));
                self.set_entries(node, entries);
                (if overload == "add_list" { ONE } else { size.scaled(PER_TEXT) }, Some(size))
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
                let max = known(left).max.min(known(right).max);
                (CostRange { min: u64::from(max > 0), max }.scaled(PER_TEXT), None)
            }
            _ => (ONE, None),
        }
    }

    /// Functions of the list and set libraries.
    fn extension(
        &self,
        overload: &str,
        target: Option<&Argument<'c>>,
        args: &[Argument<'c>],
    ) -> Option<Estimate> {
        let size = |argument| self.estimated(argument);
        let squared = |size: CostRange| size.times(size);
        let factor = |element: &str| match element {
            "string" | "bytes" => 2.0 + PER_TEXT,
            _ => 2.0,
        };
        Some(match (overload, target, args) {
            ("list_slice", Some(target), [start, end]) => {
                let end = whole(end.expr, size(target).max);
                allocating(1.0, CostRange::fixed(end.wrapping_sub(whole(start.expr, 0))))
            }
            ("lists_range", None, [count]) => {
                allocating(1.0, CostRange::fixed(whole(count.expr, u64::MAX)))
            }
            ("list_reverse" | "list_flatten", Some(target), []) => allocating(1.0, size(target)),
            ("list_flatten_int", Some(target), [depth]) => {
                #[expect(clippy::cast_precision_loss, reason = "as cel-go computes")]
                let depth = whole(depth.expr, u64::MAX) as f64;
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

    /// Functions of Kubernetes' libraries, and of others that Kubernetes knows the cost of.
    fn kubernetes(
        &self,
        function: &str,
        overload: &str,
        target: Option<&Argument<'c>>,
        args: &[Argument<'c>],
    ) -> Option<Estimate> {
        let size = |argument| self.estimated(argument);
        Some(match (function, target, args) {
            // Two of them fit into the cost of one rule.
            ("check", _, _) => (CostRange::fixed(350_000), None),
            _ if super::costs_one(function) => (ONE, None),
            ("fieldSelector" | "labelSelector", _, [selector]) => {
                let length = size(selector);
                let requirements = length.scaled(0.5).scaled(PER_REQUIREMENT);
                let base = CostRange::fixed(LIST_CREATE);
                (base.plus(length.scaled(PER_TEXT)).plus(requirements), None)
            }
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(target), _) => {
                let Some(element) = element_type(target) else {
                    return Some((size(target).scaled(PER_TEXT), None));
                };
                let mut each = ONE;
                if matches!(element, Type::String | Type::Bytes) {
                    each = each.plus(self.element_size(target).scaled(PER_TEXT));
                }
                (size(target).times(each), None)
            }
            ("url" | "jsonpatch.escapeKey", _, [text]) => {
                let size = size(text);
                (size.scaled(PER_TEXT), Some(size))
            }
            ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(target), _) => {
                let size = size(target);
                (size.scaled(PER_TEXT), Some(size))
            }
            ("replace", Some(target), [from, to, ..]) => {
                let text = size(target);
                (text.scaled(2.0 * PER_TEXT), Some(replaced(text, size(from), size(to))))
            }
            ("split", Some(target), _) => {
                let size = size(target);
                let max = match args.get(1).map(|limit| &limit.expr.kind) {
                    #[expect(clippy::cast_sign_loss, reason = "as Kubernetes computes")]
                    Some(ExprKind::Literal(Literal::Int(limit))) => *limit as u64,
                    _ => size.max,
                };
                (size.scaled(2.0 * PER_TEXT), Some(CostRange { min: 0, max }))
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
                (text.scaled(PER_TEXT), Some(text))
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
            ) => (size(text).scaled(PER_TEXT), None),
            ("ip.isCanonical", _, [text, ..]) => (size(text).scaled(2.0 * PER_TEXT), None),
            ("containsIP" | "containsCIDR", _, [other, ..]) => {
                // An address has 4 or 16 bytes.
                let bytes = CostRange { min: 4, max: 16 };
                let mut cost = bytes.plus(bytes).scaled(PER_TEXT);
                if function == "containsCIDR" {
                    cost = cost.plus(bytes.scaled(PER_TEXT)).plus(ONE);
                }
                if matches!(overload, "cidr_contains_ip_string" | "cidr_contains_cidr_string") {
                    cost = cost.plus(size(other).scaled(PER_TEXT));
                }
                (cost, None)
            }
            ("validate", _, [text, ..]) => {
                (size(text).scaled(PER_TEXT).scaled(FORMAT_PATTERN * PER_PATTERN), None)
            }
            ("_==_", _, [left, right]) => (equality(left, right)?, None),
            _ => return None,
        })
    }

    /// The size of an argument, asked for again where it was not known.
    fn estimated(&self, argument: &Argument<'c>) -> CostRange {
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

fn known(argument: &Argument<'_>) -> CostRange {
    argument.size.unwrap_or(CostRange::UNKNOWN)
}

/// The first parameter of an argument's type.
fn element_type<'c>(argument: &Argument<'c>) -> Option<&'c Type> {
    match argument.of {
        Type::List(element) => Some(element),
        Type::Map(entry) => Some(&entry.0),
        Type::Opaque(opaque) => opaque.params.first(),
        Type::Type(of) => of.as_deref(),
        _ => None,
    }
}

/// Comparing two values of one of Kubernetes' types.
fn equality(left: &Argument<'_>, right: &Argument<'_>) -> Option<CostRange> {
    if left.of.name() != right.of.name() {
        return None;
    }
    let name = match left.of {
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
        "kubernetes.NamedFormat" => CostRange { min: 1, max: FORMAT_NAME }.scaled(PER_TEXT),
        "kubernetes.URL" => {
            CostRange { min: 1, max: right.size.map_or(1, |size| size.max) }.scaled(PER_TEXT)
        }
        _ => return None,
    })
}

/// A text against a regular expression; one more than the text, so that an empty one costs too.
fn matching(text: CostRange, pattern: CostRange) -> CostRange {
    text.plus(ONE).scaled(PER_TEXT).times(pattern.scaled(PER_PATTERN))
}

/// A call that makes a list of this size.
fn allocating(factor: f64, size: CostRange) -> Estimate {
    (size.scaled(factor).plus(CostRange::fixed(1 + LIST_CREATE)), Some(size))
}

/// A whole number that is written out, at least zero.
fn whole(expr: &Expr, default: u64) -> u64 {
    match expr.kind {
        ExprKind::Literal(Literal::Int(value)) => u64::try_from(value).unwrap_or(0),
        _ => default,
    }
}

/// How long a text is after `from` has been replaced by `to` in it.
fn replaced(text: CostRange, from: CostRange, to: CostRange) -> CostRange {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "as Kubernetes computes"
    )]
    let times = |text: u64, from: u64| (text as f64 / from as f64).ceil() as u64;
    let (most, most_kept) = if from.min == 0 {
        (text.max.saturating_add(1), text.max)
    } else if to.max <= from.min {
        (0, text.max)
    } else {
        (times(text.max, from.min), 0)
    };
    let (least, least_kept) = if from.max == 0 {
        (text.min.saturating_add(1), text.min)
    } else if from.max <= to.min {
        (0, text.min)
    } else {
        (times(text.min, from.max), 0)
    };
    CostRange { min: least, max: most }
        .times(to)
        .plus(CostRange { min: least_kept, max: most_kept })
}
