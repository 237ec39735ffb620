//! Admission policies: rules that are expressions.

mod compile;
mod declarations;

pub(crate) use compile::{Broken, Gives};
pub(crate) use declarations::Scope;
