//! Server-side apply.

mod recorded;
