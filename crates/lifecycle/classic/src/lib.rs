//! wip
mod csv;
mod facts;
mod gojson;
mod hash;
mod operator_group;
mod permissions;
mod steps;
