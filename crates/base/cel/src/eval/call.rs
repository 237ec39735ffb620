//! Calls of functions.

use super::machine::{Machine, is_final, of_ints};
use super::node::{Call, Dispatch, Fast, NodeId};
use super::overload_error::takes;
use crate::library::{Implementation, Overload};
use crate::value::{Error, Value, ValueResult, WorkBudget};

impl<'a> Machine<'a, '_, '_> {
    /// A call of one argument.
    pub(super) fn unary(&mut self, fast: Fast, arg: NodeId, call: &'a Call) -> ValueResult<'a> {
        let arg = match self.eval(arg) {
            Ok(arg) => arg,
            Err(error) if is_final(&error) => return Err(error),
            Err(error) => {
                call.stand(0)?;
                self.budget.charge((call.cost)(&[Value::Null], &Value::Null, self.work))?;
                return Err(error);
            }
        };
        match (fast, &arg) {
            (Fast::Not, Value::Bool(value)) => {
                self.budget.charge(1)?;
                return Ok(Value::Bool(!value));
            }
            (Fast::Size, Value::List(list)) => {
                self.budget.charge(1)?;
                return Ok(Value::Int(i64::try_from(list.len()).unwrap_or(i64::MAX)));
            }
            _ => {}
        }
        self.finish(call, &[arg])
    }

    /// A call of two arguments.
    pub(super) fn binary(
        &mut self,
        fast: Fast,
        args: [NodeId; 2],
        call: &'a Call,
    ) -> ValueResult<'a> {
        let [one, other] = args;
        let one = match self.eval(one) {
            Ok(one) => one,
            Err(error) if call.breaks.is_some() => {
                return self.first_failed_of(error, other, call);
            }
            Err(error) => return self.first_failed(error, other, call.cost),
        };
        let other = match self.eval(other) {
            Ok(other) => other,
            Err(error) => return self.second_failed_of(one, error, call),
        };
        if let (Value::Int(one), Value::Int(other)) = (&one, &other)
            && let Some(value) = of_ints(fast, *one, *other)
        {
            self.budget.charge(1)?;
            return Ok(value);
        }
        self.finish(call, &[one, other])
    }

    /// Any other call: an argument that is an error ends it.
    pub(super) fn call(&mut self, args: &'a [NodeId], call: &'a Call) -> ValueResult<'a> {
        match *args {
            [] => self.finish(call, &[]),
            [one, other] => {
                let one = self.eval(one)?;
                match self.eval(other) {
                    Ok(other) => self.finish(call, &[one, other]),
                    Err(error) => self.second_failed_of(one, error, call),
                }
            }
            _ => {
                let mut values = Vec::with_capacity(args.len());
                for arg in args {
                    match self.eval(*arg) {
                        Ok(value) => values.push(value),
                        Err(error) => return self.some_failed(values, args.len(), error, call),
                    }
                }
                self.finish(call, &values)
            }
        }
    }

    /// What becomes of a call if its first argument is an error and the second must not be one.
    #[cold]
    fn first_failed_of(&mut self, error: Error, other: NodeId, call: &'a Call) -> ValueResult<'a> {
        if !is_final(&error) {
            let other = match self.eval(other) {
                Err(error) if is_final(&error) => return Err(error),
                Err(_) => {
                    call.stand(1)?;
                    Value::Null
                }
                Ok(other) => other,
            };
            self.budget.charge((call.cost)(&[Value::Null, other], &Value::Null, self.work))?;
        }
        Err(error)
    }

    /// What becomes of a call if its second argument is an error.
    #[cold]
    fn second_failed_of(
        &mut self,
        one: Value<'a>,
        error: Error,
        call: &'a Call,
    ) -> ValueResult<'a> {
        if !is_final(&error) {
            call.stand(1)?;
        }
        self.second_failed(one, error, call.cost)
    }

    /// What becomes of a call if an argument is an error. If it is the last one the call is paid
    /// for all the same.
    #[cold]
    fn some_failed(
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

    /// Calls a function and pays for it.
    fn finish(&mut self, call: &'a Call, args: &[Value<'a>]) -> ValueResult<'a> {
        let outcome = call.run(args, self.work);
        if let Some(breaks) = &call.breaks
            && let Some(Value::Null) = args.get(breaks.argument)
        {
            return Err(breaks.null.clone());
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
    /// Whether the cost is known if an argument is an error.
    fn stand(&self, position: usize) -> Result<(), Error> {
        match &self.breaks {
            Some(breaks) if breaks.argument == position => Err(breaks.error.clone()),
            _ => Ok(()),
        }
    }

    /// Calls the function.
    pub(super) fn run<'a>(&self, args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
        match &self.run {
            Dispatch::Known(overload) => match run(overload, args, work) {
                Err(Error::NoSuchOverload) => Err(self.error_style.error(&self.function, args)),
                outcome => outcome,
            },
            Dispatch::Guarded(overload) if takes(&overload.params, args, work) => {
                run(overload, args, work)
            }
            Dispatch::Guarded(_) => Err(self.error_style.error(&self.function, args)),
            Dispatch::ByArguments(overloads) => {
                match overloads.iter().find(|overload| takes(&overload.params, args, work)) {
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
        // The plan has nodes of their own for these.
        Implementation::Evaluator => Err(Error::NoSuchOverload),
    }
}
