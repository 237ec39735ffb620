//! Resolution written a second time, straight from its rules and without any haste, to hold the quick one to.
