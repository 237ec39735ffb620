//! Admission policies: rules that are expressions.

mod compile;
mod declarations;
mod evaluate;
mod judge;
mod matching;

pub(crate) use compile::{Broken, Gives};
pub(crate) use declarations::Scope;
