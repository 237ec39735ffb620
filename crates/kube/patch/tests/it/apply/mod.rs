//! Server-side apply.

mod kind;
mod properties;
mod recorded;
mod sets;
mod stories;
mod story;
mod walks;
