//! `opm` against recorded answers.

mod opm;
