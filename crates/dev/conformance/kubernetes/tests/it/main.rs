//! The embedded API against the recordings of a real one.

mod faults;
mod recordings;
