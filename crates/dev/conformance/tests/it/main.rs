//! The embedded API against the recordings of a real one.

mod classic;
mod opm;
mod recordings;
mod walks;
