//! Server-side apply.

mod kind;
mod properties;
mod recorded;
mod scenario;
mod scenarios;
mod sets;
mod values;
