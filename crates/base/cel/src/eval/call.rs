//! Evaluation of function calls.

use super::machine::{Machine, fast_int_operation, is_final};
use super::node::{Call, Dispatch, FastPath, NodeId};
use super::overload_error::accepts;
use crate::library::{Implementation, Overload};
use crate::value::{Error, Value, ValueResult, WorkBudget};

impl<'a> Machine<'a, '_, '_> {
    /// Evaluates a call with one argument.
    pub(super) fn unary(
        &mut self,
        fast_path: FastPath,
        arg: NodeId,
        call: &'a Call,
    ) -> ValueResult<'a> {
        let arg = match self.eval(arg) {
            Ok(arg) => arg,
            Err(error) if is_final(&error) => return Err(error),
            Err(error) => {
                call.check_cost(0)?;
                self.budget.charge((call.cost)(&[Value::Null], &Value::Null, self.work))?;
                return Err(error);
            }
        };
        match (fast_path, &arg) {
            (FastPath::Not, Value::Bool(value)) => {
                self.budget.charge(1)?;
                return Ok(Value::Bool(!value));
            }
            (FastPath::Size, Value::List(list)) => {
                self.budget.charge(1)?;
                return Ok(Value::Int(i64::try_from(list.len()).unwrap_or(i64::MAX)));
            }
            _ => {}
        }
        self.finish(call, &[arg])
    }

    /// Evaluates a call with two arguments.
    pub(super) fn binary(
        &mut self,
        fast_path: FastPath,
        args: [NodeId; 2],
        call: &'a Call,
    ) -> ValueResult<'a> {
        let [one, other] = args;
        let one = match self.eval(one) {
            Ok(one) => one,
            Err(error) if call.cost_panic.is_some() => {
                return self.first_argument_failed(error, other, call);
            }
            Err(error) => return self.first_failed(error, other, call.cost),
        };
        let other = match self.eval(other) {
            Ok(other) => other,
            Err(error) => return self.second_argument_failed(one, error, call),
        };
        if let (Value::Int(one), Value::Int(other)) = (&one, &other)
            && let Some(value) = fast_int_operation(fast_path, *one, *other)
        {
            self.budget.charge(1)?;
            return Ok(value);
        }
        self.finish(call, &[one, other])
    }

    /// Evaluates any other call; the first argument with an error ends it.
    pub(super) fn call(&mut self, args: &'a [NodeId], call: &'a Call) -> ValueResult<'a> {
        match *args {
            [] => self.finish(call, &[]),
            [one, other] => {
                let one = self.eval(one)?;
                match self.eval(other) {
                    Ok(other) => self.finish(call, &[one, other]),
                    Err(error) => self.second_argument_failed(one, error, call),
                }
            }
            _ => {
                let mut values = Vec::with_capacity(args.len());
                for arg in args {
                    match self.eval(*arg) {
                        Ok(value) => values.push(value),
                        Err(error) => return self.argument_failed(values, args.len(), error, call),
                    }
                }
                self.finish(call, &values)
            }
        }
    }

    /// The result of a call whose first argument is an error, where the cost depends on the second
    /// argument.
    #[cold]
    fn first_argument_failed(
        &mut self,
        error: Error,
        other: NodeId,
        call: &'a Call,
    ) -> ValueResult<'a> {
        if !is_final(&error) {
            let other = match self.eval(other) {
                Err(error) if is_final(&error) => return Err(error),
                Err(_) => {
                    call.check_cost(1)?;
                    Value::Null
                }
                Ok(other) => other,
            };
            self.budget.charge((call.cost)(&[Value::Null, other], &Value::Null, self.work))?;
        }
        Err(error)
    }

    /// The result of a call whose second argument is an error.
    #[cold]
    fn second_argument_failed(
        &mut self,
        one: Value<'a>,
        error: Error,
        call: &'a Call,
    ) -> ValueResult<'a> {
        if !is_final(&error) {
            call.check_cost(1)?;
        }
        self.second_failed(one, error, call.cost)
    }

    /// The result of a call with an error as argument. The call costs something only if it is the
    /// last argument.
    #[cold]
    fn argument_failed(
        &mut self,
        mut before: Vec<Value<'a>>,
        count: usize,
        error: Error,
        call: &'a Call,
    ) -> ValueResult<'a> {
        if !is_final(&error) && before.len() + 1 == count {
            before.push(Value::Null);
            self.budget.charge((call.cost)(&before, &Value::Null, self.work))?;
        }
        Err(error)
    }

    /// Calls a function and charges its cost.
    fn finish(&mut self, call: &'a Call, args: &[Value<'a>]) -> ValueResult<'a> {
        let outcome = call.run(args, self.work);
        if let Some(cost_panic) = &call.cost_panic
            && let Some(Value::Null) = args.get(cost_panic.argument)
        {
            return Err(cost_panic.null.clone());
        }
        let cost = match &outcome {
            Ok(value) => (call.cost)(args, value, self.work),
            Err(_) => (call.cost)(args, &Value::Null, self.work),
        };
        self.budget.charge(cost)?;
        self.work.take_call(args, &outcome)?;
        outcome
    }
}

impl Call {
    /// Fails if the cost cannot be computed for an error as argument.
    fn check_cost(&self, position: usize) -> Result<(), Error> {
        match &self.cost_panic {
            Some(cost_panic) if cost_panic.argument == position => Err(cost_panic.error.clone()),
            _ => Ok(()),
        }
    }

    /// Calls the function.
    pub(super) fn run<'a>(&self, args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
        match &self.dispatch {
            Dispatch::Single(overload) => match run(overload, args, work) {
                Err(Error::NoSuchOverload) => Err(self.error_style.error(&self.function, args)),
                outcome => outcome,
            },
            Dispatch::Guarded(overload) if accepts(&overload.params, args, work) => {
                run(overload, args, work)
            }
            Dispatch::Guarded(_) => Err(self.error_style.error(&self.function, args)),
            Dispatch::ByArguments(overloads) => {
                match overloads.iter().find(|overload| accepts(&overload.params, args, work)) {
                    Some(overload) => run(overload, args, work),
                    None => Err(self.error_style.error(&self.function, args)),
                }
            }
            Dispatch::Prepared(prepared) => prepared.run(args, work),
        }
    }
}

fn run<'a>(overload: &Overload, args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    match overload.run {
        Implementation::Strict(run) => run(args, work),
        // The plan has special nodes for these.
        Implementation::Evaluator => Err(Error::NoSuchOverload),
    }
}
