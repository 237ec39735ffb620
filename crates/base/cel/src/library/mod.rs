//! Functions: what they are called, take, give and do.
//!
//! A [`FunctionLibrary`] is a named set of overloads and macros, one file (or folder) each; which of them
//! are known is a property of the environment ([`crate::Env`]).

mod args;
pub mod bindings;
pub mod encoders;
pub mod kubernetes;
pub mod lists;
pub mod math;
pub mod optional;
pub mod sets;
pub mod standard;
pub mod strings;
pub mod two_variables;

use crate::syntax::Macro;
use crate::types::Type;
use crate::value::{Error, Value, ValueResult, WorkBudget};
use std::sync::Arc;

/// A set of functions and macros.
#[derive(Clone, Copy, Debug)]
pub struct FunctionLibrary {
    /// Its name.
    pub name: &'static str,
    /// Its functions.
    pub overloads: fn() -> Vec<Overload>,
    /// Its macros.
    pub macros: &'static [Macro],
    /// Its types that expressions can name (`net.IP`).
    pub types: fn() -> Vec<(&'static str, Type)>,
}

/// One way to call a function.
#[derive(Clone, Debug)]
pub struct Overload {
    /// Its name, unique in the language (cel-go's overload id); costs go by it.
    pub id: &'static str,
    /// The function's name.
    pub function: &'static str,
    /// Whether the first parameter stands before the dot.
    pub receiver: bool,
    /// What it takes, the receiver first.
    pub params: Vec<Type>,
    /// What it gives.
    pub result: Type,
    /// What it does.
    pub run: Implementation,
    /// What is made of its second argument, once, if that is a constant.
    pub prepare: Option<PrepareCall>,
}

/// Makes something of a constant argument that would take long to make for each call: a regular
/// expression. If that fails there is no program.
pub type PrepareCall = fn(&Value<'_>, &WorkBudget) -> Result<Arc<dyn PreparedCall>, Error>;

/// A function whose second argument is known.
pub trait PreparedCall: std::fmt::Debug + Send + Sync {
    /// Calls it, with all arguments.
    ///
    /// # Errors
    ///
    /// As [`StrictFunction`] functions.
    fn run<'a>(&self, args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a>;
}

/// What a function does.
#[derive(Clone, Copy)]
pub enum Implementation {
    /// The evaluator itself does it: operators that do not look at all arguments.
    Evaluator,
    /// A function of all arguments. It is asked only with arguments of the types that the overload
    /// takes, or (where those were not known before) with any, and then answers
    /// [`crate::value::Error::NoSuchOverload`].
    Strict(StrictFunction),
}

/// A function of all arguments. It takes what it reads and makes from the work of the evaluation.
pub type StrictFunction = for<'a> fn(&[Value<'a>], &WorkBudget) -> ValueResult<'a>;

impl std::fmt::Debug for Implementation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Evaluator => "Evaluator",
            Self::Strict(_) => "Strict",
        })
    }
}

impl Overload {
    /// A function `function(params)`.
    pub fn function(
        function: &'static str,
        id: &'static str,
        params: Vec<Type>,
        result: Type,
        run: StrictFunction,
    ) -> Self {
        Self {
            id,
            function,
            receiver: false,
            params,
            result,
            run: Implementation::Strict(run),
            prepare: None,
        }
    }

    /// A method `params[0].function(params[1..])`.
    pub fn method(
        function: &'static str,
        id: &'static str,
        params: Vec<Type>,
        result: Type,
        run: StrictFunction,
    ) -> Self {
        Self {
            id,
            function,
            receiver: true,
            params,
            result,
            run: Implementation::Strict(run),
            prepare: None,
        }
    }

    /// The same, with something that can be made of its second argument.
    #[must_use]
    pub fn prepared(mut self, prepare: PrepareCall) -> Self {
        self.prepare = Some(prepare);
        self
    }
}
