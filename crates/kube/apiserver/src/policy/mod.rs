//! Admission policies: rules that are expressions.

mod compile;
mod declarations;
mod evaluate;
mod hints;
mod judge;
mod matching;
mod types;

pub(crate) use compile::{Broken, Gives};
pub(crate) use declarations::Scope;
