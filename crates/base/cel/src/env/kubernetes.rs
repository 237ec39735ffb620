//! Kubernetes' base environment for each version.
//!
//! Rules: apiserver's `pkg/cel/environment/base.go`.

use super::{Env, EnvOptions};
use crate::library::kubernetes::{
    authorizer, cidr, format, ip, lists, quantity, regex, semver, urls,
};
use crate::library::lists as ext_lists;
use crate::library::{FunctionLibrary, optional, sets, standard, strings, two_variables};
use std::sync::OnceLock;

/// The minor versions between which the environment changes. Earlier versions have the environment
/// of the first, later ones that of the last.
const FIRST: u32 = 26;
const LAST: u32 = 34;

impl Env {
    /// The environment, without variables, for expressions that have to work in Kubernetes
    /// `1.minor` and later. It is built once for each version.
    ///
    /// An API server accepts only new expressions that also work one minor version earlier, so that
    /// it can be rolled back. So 1.35 has the environment of 1.34 for them.
    pub fn kubernetes(minor: u32) -> Self {
        const COUNT: usize = (LAST - FIRST) as usize + 1;
        static ENVS: [OnceLock<Env>; COUNT] = [const { OnceLock::new() }; COUNT];
        let minor = minor.clamp(FIRST, LAST);
        ENVS[(minor - FIRST) as usize].get_or_init(|| build(minor)).clone()
    }

    /// The environment for new expressions in Kubernetes 1.35.
    pub fn new_expressions() -> Self {
        Self::kubernetes(34)
    }
}

fn build(minor: u32) -> Env {
    let libraries: Vec<&FunctionLibrary> = [
        (0, &standard::LIBRARY),
        (0, &urls::LIBRARY),
        (0, &lists::LIBRARY),
        (0, &regex::LIBRARY),
        (27, &authorizer::LIBRARY),
        (28, &optional::LIBRARY),
        (28, &quantity::LIBRARY),
        (0, strings::library(if minor < 29 { 0 } else { 2 })),
        (29, &sets::LIBRARY),
        (30, &ip::LIBRARY),
        (30, &cidr::LIBRARY),
        (31, &format::LIBRARY),
        // A feature gate, not the version, enables it.
        (0, &authorizer::SELECTORS),
        (32, &two_variables::LIBRARY),
        (33, semver::library(1)),
        (34, ext_lists::library(3)),
    ]
    .into_iter()
    .filter(|(since, _)| *since <= minor)
    .map(|(_, library)| library)
    .collect();
    let options = EnvOptions {
        optional_syntax: minor >= 28,
        cross_type_numeric: minor >= 28,
        homogeneous_literals: true,
        literal_validators: minor >= 29,
        ..EnvOptions::default()
    };
    Env::new(&libraries, options)
}
