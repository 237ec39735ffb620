//! Environments of the tests.

use mainstay_cel::library::{
    FunctionLibrary, Overload, bindings, encoders, lists, math, optional, sets, standard, strings,
    two_variables,
};
use mainstay_cel::{Env, EnvOptions};
use std::cell::Cell;

thread_local! {
    /// The functions of the current environment.
    static DECLARED: Cell<Vec<Overload>> = const { Cell::new(Vec::new()) };
}

/// Kubernetes' environment for new rules.
pub(crate) fn kubernetes() -> Env {
    Env::new_expressions()
}

/// Every library that the specification's tests use.
pub(crate) fn specification_libraries() -> Vec<&'static FunctionLibrary> {
    vec![
        &standard::LIBRARY,
        &optional::LIBRARY,
        strings::library(u32::MAX),
        lists::library(u32::MAX),
        &sets::LIBRARY,
        &two_variables::LIBRARY,
        &bindings::LIBRARY,
        &math::LIBRARY,
        &encoders::LIBRARY,
    ]
}

/// All of these libraries and the functions, with a container.
pub(crate) fn within(container: &str, functions: Vec<Overload>) -> Env {
    let options = EnvOptions {
        container: container.to_owned(),
        optional_syntax: true,
        quoted_names: true,
        cross_type_numeric: true,
        ..EnvOptions::default()
    };
    DECLARED.set(functions);
    let mut libraries = specification_libraries();
    libraries.push(&FunctionLibrary {
        name: "declared",
        overloads: || DECLARED.take(),
        macros: &[],
        types: Vec::new,
    });
    Env::new(&libraries, options)
}
