//! Libraries of functions and macros.
//!
//! A [`FunctionLibrary`] is a named set of overloads and macros, in one file or folder each. The
//! environment ([`crate::Env`]) chooses the libraries.

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

/// An overload of a function.
#[derive(Clone, Debug)]
pub struct Overload {
    /// Its id, unique in CEL (cel-go's overload id), which determines costs.
    pub id: &'static str,
    /// The function's name.
    pub function: &'static str,
    /// Whether it is a method: the first parameter is the receiver.
    pub receiver: bool,
    /// The types of parameters, the receiver first.
    pub params: Vec<Type>,
    /// The type of its result.
    pub result: Type,
    /// Its implementation.
    pub run: Implementation,
    /// Prepares the call if its second argument is a constant.
    pub prepare: Option<PrepareCall>,
}

/// Prepares a call for a constant argument that is expensive to process: a regular expression. If
/// it fails, the expression does not compile.
pub type PrepareCall = fn(&Value<'_>, &WorkBudget) -> Result<Arc<dyn PreparedCall>, Error>;

/// A call that is prepared for its constant second argument.
pub trait PreparedCall: std::fmt::Debug + Send + Sync {
    /// Runs the call with all arguments.
    ///
    /// # Errors
    ///
    /// As for a [`StrictFunction`].
    fn run<'a>(&self, args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a>;
}

/// The implementation of an overload.
#[derive(Clone, Copy)]
pub enum Implementation {
    /// The evaluator implements it: operators that do not evaluate all arguments.
    Evaluator,
    /// A function of all arguments. Checked expressions pass arguments of the overload's types.
    /// Unchecked ones pass any, and the function returns [`crate::value::Error::NoSuchOverload`].
    Strict(StrictFunction),
}

/// A function of all arguments. It charges the values that it reads and creates to the work budget.
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

    /// The overload with a preparation of its second argument.
    #[must_use]
    pub fn with_prepare(mut self, prepare: PrepareCall) -> Self {
        self.prepare = Some(prepare);
        self
    }
}
