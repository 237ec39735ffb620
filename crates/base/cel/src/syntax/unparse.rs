//! Unparsing: text of trees.
//!
//! The text is that of cel-go's `Unparse`, on one line. Where that would parse to another tree (two
//! signs, `(a && b) && (c && d)` with another balance, large numbers), this text has other
//! parentheses or digits. The result always parses to the same tree.

use super::ast::{Expr, ExprKind, Literal, ParsedExpression, operator};
use std::fmt::Write as _;

/// The text of an expression, with the original calls of macros.
pub fn unparse(parsed: &ParsedExpression) -> String {
    let mut printer = Printer { parsed, out: String::new() };
    printer.expr(&parsed.root);
    printer.out
}

/// The text of a binary operator and its weakness: a higher number binds less tightly.
fn binary(function: &str) -> Option<(&'static str, u8)> {
    Some(match function {
        operator::OR => ("||", 7),
        operator::AND => ("&&", 6),
        operator::EQUALS => ("==", 5),
        operator::GREATER => (">", 5),
        operator::GREATER_EQUALS => (">=", 5),
        operator::IN => ("in", 5),
        operator::LESS => ("<", 5),
        operator::LESS_EQUALS => ("<=", 5),
        operator::NOT_EQUALS => ("!=", 5),
        operator::ADD => ("+", 4),
        operator::SUBTRACT => ("-", 4),
        operator::DIVIDE => ("/", 3),
        operator::MODULO => ("%", 3),
        operator::MULTIPLY => ("*", 3),
        _ => return None,
    })
}

fn sign(function: &str) -> Option<char> {
    match function {
        operator::NOT => Some('!'),
        operator::NEGATE => Some('-'),
        _ => None,
    }
}

/// The name and the arguments of a call, if it is one.
fn call_of(expr: &Expr) -> Option<(&str, &[Expr])> {
    match &expr.kind {
        ExprKind::Call { function, args, .. } => Some((function, args)),
        _ => None,
    }
}

/// Whether it is a call with several arguments, including operators.
fn is_complex(expr: &Expr) -> bool {
    call_of(expr).is_some_and(|(_, args)| args.len() >= 2)
}

fn weakness(expr: &Expr) -> Option<u8> {
    call_of(expr).and_then(|(function, _)| binary(function)).map(|(_, weakness)| weakness)
}

/// Whether it is an operator, which needs parentheses before a selection.
fn is_operator(expr: &Expr) -> bool {
    call_of(expr).is_some_and(|(function, _)| {
        function == operator::CONDITIONAL || binary(function).is_some() || sign(function).is_some()
    })
}

/// Whether it is an operator that binds less tightly.
fn is_weaker(expr: &Expr, than: u8) -> bool {
    call_of(expr).is_some_and(|(function, _)| {
        function == operator::CONDITIONAL
            || binary(function).is_some_and(|(_, weakness)| weakness > than)
    })
}

/// Whether the chain of one logical operator would parse to this tree.
fn is_balanced(expr: &Expr, function: &str) -> bool {
    let mut sizes = Vec::new();
    chain(expr, function, &mut sizes);
    // The operator in the middle is the root; of two in the middle, the later one.
    sizes.iter().all(|(left, right)| (left + right).div_ceil(2) == *left)
}

/// The number of operands of a chain; records the numbers on both sides of each operator.
fn chain(expr: &Expr, function: &str, sizes: &mut Vec<(usize, usize)>) -> usize {
    match call_of(expr) {
        Some((operator_name, [left, right])) if operator_name == function => {
            let left = chain(left, function, sizes);
            let right = chain(right, function, sizes);
            sizes.push((left, right));
            left + right
        }
        _ => 1,
    }
}

struct Printer<'a> {
    parsed: &'a ParsedExpression,
    out: String,
}

impl<'a> Printer<'a> {
    /// The original call of a macro for its expansion, else the node itself.
    fn original(&self, expr: &'a Expr) -> &'a Expr {
        self.parsed.macro_calls.get(&expr.id).unwrap_or(expr)
    }

    fn expr(&mut self, expr: &'a Expr) {
        match &self.original(expr).kind {
            ExprKind::Literal(literal) => self.literal(literal),
            ExprKind::Ident(name) => self.out.push_str(name),
            ExprKind::Select { operand, field, test_only } => {
                if *test_only {
                    self.out.push_str("has(");
                }
                self.operand(operand);
                self.out.push('.');
                self.field(field);
                if *test_only {
                    self.out.push(')');
                }
            }
            ExprKind::Call { function, target, args } => {
                self.call_or_operator(expr, function, target.as_deref(), args);
            }
            ExprKind::List { elements, optional } => {
                self.out.push('[');
                for (index, element) in elements.iter().enumerate() {
                    self.comma(index);
                    if optional.iter().any(|marked| *marked as usize == index) {
                        self.out.push('?');
                    }
                    self.expr(element);
                }
                self.out.push(']');
            }
            ExprKind::Map(entries) => {
                self.out.push('{');
                for (index, entry) in entries.iter().enumerate() {
                    self.comma(index);
                    self.out.push_str(if entry.optional { "?" } else { "" });
                    self.expr(&entry.key);
                    self.out.push_str(": ");
                    self.expr(&entry.value);
                }
                self.out.push('}');
            }
            ExprKind::Struct { name, fields } => {
                self.out.push_str(name);
                self.out.push('{');
                for (index, field) in fields.iter().enumerate() {
                    self.comma(index);
                    self.out.push_str(if field.optional { "?" } else { "" });
                    self.field(&field.field);
                    self.out.push_str(": ");
                    self.expr(&field.value);
                }
                self.out.push('}');
            }
            // Only macros create comprehensions, and their calls are kept.
            ExprKind::Comprehension(comprehension) => {
                let _ = write!(self.out, "__comprehension__({}, ", comprehension.iter_var);
                if let Some(second) = &comprehension.iter_var2 {
                    let _ = write!(self.out, "{second}, ");
                }
                self.expr(&comprehension.range);
                let _ = write!(self.out, ", {}", comprehension.accu_var);
                for part in [
                    &comprehension.accu_init,
                    &comprehension.condition,
                    &comprehension.step,
                    &comprehension.result,
                ] {
                    self.out.push_str(", ");
                    self.expr(part);
                }
                self.out.push(')');
            }
        }
    }

    fn comma(&mut self, index: usize) {
        if index > 0 {
            self.out.push_str(", ");
        }
    }

    fn parenthesized(&mut self, expr: &'a Expr, parenthesized: bool) {
        if parenthesized {
            self.out.push('(');
        }
        self.expr(expr);
        if parenthesized {
            self.out.push(')');
        }
    }

    /// Writes the operand of a selection.
    fn operand(&mut self, expr: &'a Expr) {
        let parenthesized = is_operator(expr);
        self.parenthesized(expr, parenthesized);
    }

    fn field(&mut self, name: &str) {
        let is_start = |first: char| first.is_ascii_alphabetic() || first == '_';
        let is_plain = name.starts_with(is_start)
            && name.chars().all(|other| is_start(other) || other.is_ascii_digit())
            && !["in", "true", "false", "null"].contains(&name);
        if is_plain {
            self.out.push_str(name);
        } else {
            let _ = write!(self.out, "`{name}`");
        }
    }

    fn call_or_operator(
        &mut self,
        expr: &'a Expr,
        function: &str,
        target: Option<&'a Expr>,
        args: &'a [Expr],
    ) {
        match (function, args) {
            (operator::CONDITIONAL, [condition, then, otherwise]) => {
                for (before, part) in [("", condition), (" ? ", then), (" : ", otherwise)] {
                    self.out.push_str(before);
                    let parenthesized = is_complex(part);
                    self.parenthesized(part, parenthesized);
                }
            }
            (operator::OPT_SELECT, [operand, field]) => {
                self.operand(operand);
                self.out.push_str(".?");
                if let ExprKind::Literal(Literal::String(name)) = &field.kind {
                    self.field(name);
                }
            }
            (operator::INDEX | operator::OPT_INDEX, [operand, index]) => {
                self.operand(operand);
                self.out.push_str(if function == operator::INDEX { "[" } else { "[?" });
                self.expr(index);
                self.out.push(']');
            }
            (_, [operand]) if let Some(sign) = sign(function) => {
                self.out.push(sign);
                let parenthesized = is_complex(operand)
                    || is_operator(operand)
                    || (sign == '-' && self.begins_with_number(operand));
                self.parenthesized(operand, parenthesized);
            }
            (_, [left, right]) if let Some((sign, own_weakness)) = binary(function) => {
                let is_logical = own_weakness >= 6;
                let is_same = |side| weakness(side) == Some(own_weakness);
                // A chain of one logical operator needs no parentheses if it is balanced.
                let needs_parentheses = is_logical && !is_balanced(expr, function);
                let left_nested =
                    is_weaker(left, own_weakness) || (needs_parentheses && is_same(left));
                let right_nested = is_weaker(right, own_weakness)
                    || ((needs_parentheses || !is_logical) && is_same(right));
                self.parenthesized(left, left_nested);
                let _ = write!(self.out, " {sign} ");
                self.parenthesized(right, right_nested);
            }
            _ => {
                if let Some(target) = target {
                    self.operand(target);
                    self.out.push('.');
                }
                self.out.push_str(function);
                self.out.push('(');
                for (index, arg) in args.iter().enumerate() {
                    self.comma(index);
                    self.expr(arg);
                }
                self.out.push(')');
            }
        }
    }

    /// Whether a minus sign before it would become part of a number.
    fn begins_with_number(&self, mut expr: &'a Expr) -> bool {
        loop {
            expr = match &self.original(expr).kind {
                ExprKind::Literal(literal) => {
                    return matches!(literal, Literal::Int(_) | Literal::Double(_));
                }
                ExprKind::Select { operand, test_only: false, .. } => operand,
                ExprKind::Call { target: Some(target), .. } => target,
                ExprKind::Call { function, args, .. }
                    if matches!(
                        &**function,
                        operator::INDEX | operator::OPT_INDEX | operator::OPT_SELECT
                    ) =>
                {
                    &args[0]
                }
                _ => return false,
            }
        }
    }

    fn literal(&mut self, literal: &Literal) {
        let _ = match literal {
            Literal::Null => write!(self.out, "null"),
            Literal::Bool(value) => write!(self.out, "{value}"),
            Literal::Int(value) => write!(self.out, "{value}"),
            Literal::Uint(value) => write!(self.out, "{value}u"),
            Literal::Double(value) => {
                self.out.push_str(&double(*value));
                Ok(())
            }
            Literal::String(value) => {
                self.out.push_str(&mainstay_gocompat::quote(value));
                Ok(())
            }
            Literal::Bytes(bytes) => {
                self.out.push_str("b\"");
                for byte in bytes.iter() {
                    let _ = write!(self.out, "\\{byte:03o}");
                }
                write!(self.out, "\"")
            }
        };
    }
}

/// The shortest digits of a number; with an exponent as in Go's `%g`.
fn double(value: f64) -> String {
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if value != 0.0 && !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => {
            let plain = format!("{value}");
            if plain.contains('.') { plain } else { plain + ".0" }
        }
    }
}
