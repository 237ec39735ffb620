//! Compilation of CRD validation rules and their message expressions, with their estimated cost.

use super::ValueShape;
use crate::check::ResolvedReference;
use crate::cost;
use crate::env::Env;
use crate::eval::Program;
use crate::source::Issues;
use crate::types::Type;
use crate::value::Error;

/// The variable for the validated value.
pub const SELF: &str = "self";
/// The variable for the old value.
pub const OLD_SELF: &str = "oldSelf";
/// The name of the type of `self` if that is an object. Upstream generates a new name each time.
/// Mainstay does not, so that errors are reproducible.
const TYPE: &str = "selfType0";

/// The scope of rules at one position of a schema.
#[derive(Clone, Debug)]
pub struct RuleScope<'a> {
    shape: &'a ValueShape,
    env: Env,
    optional: Env,
}

/// A compiled rule or message expression.
#[derive(Debug)]
pub struct CompiledExpression {
    /// The program.
    pub program: Program,
    /// The maximum cost of one evaluation.
    pub max_cost: u64,
    /// Whether it uses `oldSelf`.
    pub uses_old_self: bool,
}

/// The purpose of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A rule.
    Rule,
    /// The message of a rule.
    Message,
}

impl Purpose {
    const fn output(self) -> Type {
        match self {
            Self::Rule => Type::Bool,
            Self::Message => Type::String,
        }
    }

    const fn compilation(self) -> &'static str {
        match self {
            Self::Rule => "compilation failed",
            Self::Message => "messageExpression compilation failed",
        }
    }

    const fn evaluation(self) -> &'static str {
        match self {
            Self::Rule => "cel expression must evaluate to a bool",
            Self::Message => "messageExpression must evaluate to a string",
        }
    }

    const fn instantiation(self) -> &'static str {
        match self {
            Self::Rule => "program instantiation failed",
            Self::Message => "messageExpression instantiation failed",
        }
    }
}

/// An expression is invalid for its purpose; the messages are Kubernetes'.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RuleCompileError {
    /// The expression does not compile.
    #[error("{}: {issues}", purpose.compilation())]
    Compile {
        /// The purpose of the expression.
        purpose: Purpose,
        /// The errors.
        issues: Issues,
    },
    /// The expression has the wrong type.
    #[error("{}", purpose.evaluation())]
    Output {
        /// The purpose of the expression.
        purpose: Purpose,
    },
    /// The program cannot be created.
    #[error("{}: {error}", purpose.instantiation())]
    Instantiate {
        /// The purpose of the expression.
        purpose: Purpose,
        /// The error.
        error: Error,
    },
}

impl<'a> RuleScope<'a> {
    /// The scope of rules for values of a shape; none if rules cannot see such values.
    pub fn new(shape: &'a ValueShape) -> Option<Self> {
        let this = shape.to_type(TYPE)?;
        let env = Env::new_expressions().with_variable(SELF, this.clone());
        let optional = env.with_variable(OLD_SELF, Type::optional(this.clone()));
        let env = env.with_variable(OLD_SELF, this);
        Some(Self { shape, env, optional })
    }

    /// Compiles a rule. With `optional`, `oldSelf` is an optional.
    ///
    /// If it is not a valid rule.
    pub fn rule(&self, text: &str, optional: bool) -> Result<CompiledExpression, RuleCompileError> {
        self.compile(text, optional, Purpose::Rule)
    }

    /// Compiles the message expression of a rule.
    ///
    /// If it is not a valid message expression.
    pub fn message(
        &self,
        text: &str,
        optional: bool,
    ) -> Result<CompiledExpression, RuleCompileError> {
        self.compile(text, optional, Purpose::Message)
    }

    fn compile(
        &self,
        text: &str,
        optional: bool,
        purpose: Purpose,
    ) -> Result<CompiledExpression, RuleCompileError> {
        let env = if optional { &self.optional } else { &self.env };
        let checked =
            env.compile(text).map_err(|issues| RuleCompileError::Compile { purpose, issues })?;
        if *checked.output() != purpose.output() {
            return Err(RuleCompileError::Output { purpose });
        }
        let program = Program::new(&checked);
        let program = program.map_err(|error| RuleCompileError::Instantiate { purpose, error })?;
        let max_cost = cost::estimate(&checked, self.shape).max;
        let uses_old_self =
            checked.references.iter().flatten().any(
                |reference| matches!(reference, ResolvedReference::Variable(name) if &**name == OLD_SELF),
            );
        Ok(CompiledExpression { program, max_cost, uses_old_self })
    }
}
