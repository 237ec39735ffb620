//! What holds for every expression.

mod random;
mod robust;

use mainstay_cel::syntax::{self, macros};

/// Runs something on a thread with a stack of this size.
fn shallow(stack: usize, run: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(stack).spawn(run).unwrap().join().unwrap();
}

/// Goes as far with an expression as it can be gone.
fn attempt(text: &str) {
    let macros = [macros::STANDARD, macros::OPTIONAL, macros::TWO_VARIABLES].concat();
    for optional in [true, false] {
        let options = syntax::Options { macros: &macros, optional, quoted_names: optional };
        if let Err(issues) = syntax::parse(text, &options) {
            let _ = issues.to_string();
        }
    }
}
