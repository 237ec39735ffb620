//! Server-side apply.

mod kind;
mod recorded;
mod sets;
mod stories;
mod story;
mod walks;
