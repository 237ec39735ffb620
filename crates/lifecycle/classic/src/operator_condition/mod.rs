//! OperatorConditions: conditions that operators report about themselves.
//!
//! Each CSV but copied ones has an OperatorCondition of its name, and a Role of the same name lets
//! the ServiceAccounts of the CSV write it. The controller copies `spec.conditions` to the status,
//! with the generation that they were reported at. Whether a CSV may be replaced is decided with
//! the next CSV (`csv::upgradeable`).

mod controller;
mod decide;

pub(crate) use controller::register;
