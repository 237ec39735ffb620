//! Rules of definitions: compiling them where they stand, and what they may cost there.

use super::Shape;
use crate::check::Reference;
use crate::cost;
use crate::env::Env;
use crate::eval::Program;
use crate::types::Type;

/// The variable that is the value.
pub const SELF: &str = "self";
/// The variable that is the value that stood here before.
pub const OLD_SELF: &str = "oldSelf";
/// The name of the type of `self` where that is an object. The original makes up another one each
/// time, so that nobody writes it; to be told the same for the same is worth more.
const TYPE: &str = "selfType0";

/// What the rules at one place of a schema may use.
#[derive(Clone, Debug)]
pub struct Scope<'a> {
    shape: &'a Shape,
    env: Env,
    optional: Env,
}

/// An expression that was compiled.
#[derive(Debug)]
pub struct Compiled {
    /// The program.
    pub program: Program,
    /// What evaluating it once costs at most.
    pub max_cost: u64,
    /// Whether it looks at what stood here before.
    pub uses_old_self: bool,
}

/// How errors name what is wrong with an expression.
struct Words {
    compilation: &'static str,
    output: &'static str,
    instantiation: &'static str,
}

const RULE: Words = Words {
    compilation: "compilation failed",
    output: "cel expression must evaluate to a bool",
    instantiation: "program instantiation failed",
};
const MESSAGE: Words = Words {
    compilation: "messageExpression compilation failed",
    output: "messageExpression must evaluate to a string",
    instantiation: "messageExpression instantiation failed",
};

impl<'a> Scope<'a> {
    /// The scope of rules for values of a shape; none if rules cannot see such values.
    pub fn new(shape: &'a Shape) -> Option<Self> {
        let this = shape.to_type(TYPE)?;
        let env = Env::new_expressions().with_variable(SELF, this.clone());
        let optional = env.with_variable(OLD_SELF, Type::optional(this.clone()));
        let env = env.with_variable(OLD_SELF, this);
        Some(Self { shape, env, optional })
    }

    /// Compiles a rule. `optional`: it sees what stood here before as an optional.
    ///
    /// # Errors
    /// Why it is no rule, in Kubernetes' words.
    pub fn rule(&self, text: &str, optional: bool) -> Result<Compiled, String> {
        self.compile(text, optional, &Type::Bool, &RULE)
    }

    /// Compiles an expression that gives the message of a rule.
    ///
    /// # Errors
    /// Why it is none, in Kubernetes' words.
    pub fn message(&self, text: &str, optional: bool) -> Result<Compiled, String> {
        self.compile(text, optional, &Type::String, &MESSAGE)
    }

    fn compile(
        &self,
        text: &str,
        optional: bool,
        output: &Type,
        words: &Words,
    ) -> Result<Compiled, String> {
        let env = if optional { &self.optional } else { &self.env };
        let checked =
            env.compile(text).map_err(|issues| format!("{}: {issues}", words.compilation))?;
        if checked.output() != output {
            return Err(words.output.to_owned());
        }
        let program = Program::new(&checked);
        let program = program.map_err(|error| format!("{}: {error}", words.instantiation))?;
        let max_cost = cost::estimate(&checked, self.shape).max;
        let uses_old_self =
            checked.references.iter().flatten().any(
                |reference| matches!(reference, Reference::Variable(name) if &**name == OLD_SELF),
            );
        Ok(Compiled { program, max_cost, uses_old_self })
    }
}
