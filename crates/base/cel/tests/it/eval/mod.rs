//! Evaluation: values, errors and costs.

mod deep;

use mainstay_cel::{Budget, Env, Program};

/// The value of an expression without variables, or its error.
fn answer(text: &str) -> String {
    let checked = Env::new_expressions().compile(text).unwrap();
    let program = match Program::new(&checked) {
        Ok(program) => program,
        Err(error) => return format!("no program: {error}"),
    };
    match program.eval(&(), &mut Budget::unlimited()) {
        Ok(value) => value.to_string(),
        Err(error) => format!("error: {error}"),
    }
}
