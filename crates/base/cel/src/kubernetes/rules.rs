//! Rules of definitions: compiling them where they stand, and what they may cost there.

use super::ValueShape;
use crate::check::ResolvedReference;
use crate::cost;
use crate::env::Env;
use crate::eval::Program;
use crate::source::Issues;
use crate::types::Type;
use crate::value::Error;

/// The variable that is the value.
pub const SELF: &str = "self";
/// The variable that is the value that stood here before.
pub const OLD_SELF: &str = "oldSelf";
/// The name of the type of `self` where that is an object. The original makes up another one each
/// time, so that nobody writes it; to be told the same for the same is worth more.
const TYPE: &str = "selfType0";

/// What the rules at one place of a schema may use.
#[derive(Clone, Debug)]
pub struct RuleScope<'a> {
    shape: &'a ValueShape,
    env: Env,
    optional: Env,
}

/// An expression that was compiled.
#[derive(Debug)]
pub struct CompiledExpression {
    /// The program.
    pub program: Program,
    /// What evaluating it once costs at most.
    pub max_cost: u64,
    /// Whether it looks at what stood here before.
    pub uses_old_self: bool,
}

/// What an expression is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It is a rule.
    Rule,
    /// It gives the message of a rule.
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

/// A text is no expression for its purpose, in Kubernetes' words.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RuleCompileError {
    /// It does not compile.
    #[error("{}: {issues}", purpose.compilation())]
    Compile {
        /// What it is for.
        purpose: Purpose,
        /// What is wrong with it.
        issues: Issues,
    },
    /// It gives another type.
    #[error("{}", purpose.evaluation())]
    Output {
        /// What it is for.
        purpose: Purpose,
    },
    /// It cannot be made a program.
    #[error("{}: {error}", purpose.instantiation())]
    Instantiate {
        /// What it is for.
        purpose: Purpose,
        /// Why it cannot.
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

    /// Compiles a rule. `optional`: it sees what stood here before as an optional.
    ///
    /// # Errors
    /// If it is no rule.
    pub fn rule(&self, text: &str, optional: bool) -> Result<CompiledExpression, RuleCompileError> {
        self.compile(text, optional, Purpose::Rule)
    }

    /// Compiles an expression that gives the message of a rule.
    ///
    /// # Errors
    /// If it is none.
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
