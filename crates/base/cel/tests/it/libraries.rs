//! The environments that tests look at the language in.

use mainstay_cel::library::{
    FunctionLibrary, Overload, bindings, encoders, lists, math, optional, sets, standard, strings,
    two_variables,
};
use mainstay_cel::{Env, EnvOptions};
use std::cell::Cell;

thread_local! {
    /// The functions of the environment that is being made.
    static DECLARED: Cell<Vec<Overload>> = const { Cell::new(Vec::new()) };
}

/// Kubernetes' own, for new rules.
pub(crate) fn kubernetes() -> Env {
    Env::new_expressions()
}

/// Every library that the specification's tests are about.
pub(crate) fn specified() -> Vec<&'static FunctionLibrary> {
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

/// All of that and these functions within a namespace.
pub(crate) fn within(container: &str, functions: Vec<Overload>) -> Env {
    let options = EnvOptions {
        container: container.to_owned(),
        optional_syntax: true,
        quoted_names: true,
        cross_type_numeric: true,
        ..EnvOptions::default()
    };
    DECLARED.set(functions);
    let mut libraries = specified();
    libraries.push(&FunctionLibrary {
        name: "declared",
        overloads: || DECLARED.take(),
        macros: &[],
        types: Vec::new,
    });
    Env::new(&libraries, options)
}
