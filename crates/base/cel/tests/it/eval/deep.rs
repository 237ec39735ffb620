//! The deepest expressions that the parser accepts.

use mainstay_cel::{CostBudget, Env, Program};

/// The default stack size of threads.
const STACK: usize = 2 << 20;

#[test]
fn deepest_expressions_fit_on_a_small_stack() {
    type Make = fn(usize) -> String;
    let shapes: [(&str, Make); 14] = [
        ("parentheses", |depth| format!("{}1{}", "(".repeat(depth), ")".repeat(depth))),
        ("not", |depth| format!("{}true", "!".repeat(depth))),
        ("negation", |depth| format!("{}1", "-(".repeat(depth)) + &")".repeat(depth)),
        ("sum", |depth| format!("1{}", "+1".repeat(depth))),
        ("sum on the right", |depth| format!("{}1{}", "1+(".repeat(depth), ")".repeat(depth))),
        ("and", |depth| format!("true{}", " && true".repeat(depth))),
        ("conditional", |depth| format!("{}1", "true ? 1 : ".repeat(depth))),
        ("list", |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth))),
        ("map", |depth| format!("{}1{}", "{1: ".repeat(depth), "}".repeat(depth))),
        ("path", |depth| format!("dyn({{}}){}", ".?a".repeat(depth))),
        ("index", |depth| format!("{}0{}", "[0][".repeat(depth), "]".repeat(depth))),
        ("method", |depth| format!("\"a\"{}", ".trim()".repeat(depth))),
        ("loop", |depth| {
            let begins = "[1].all(y, ".repeat(depth);
            format!("{begins}true{}", ")".repeat(depth))
        }),
        ("map of a map", |depth| {
            let begins = "[1].map(y, ".repeat(depth);
            format!("{begins}1{}", ")".repeat(depth))
        }),
    ];
    let env = Env::new_expressions();
    let thread = std::thread::Builder::new().stack_size(STACK);
    let run = move || {
        for (name, make) in shapes {
            let depths: Vec<usize> = (10..300).collect();
            let fit = depths.partition_point(|depth| env.parse(&make(*depth)).is_ok());
            let checked = env.compile(&make(depths[fit - 1])).unwrap();
            let program = Program::new(&checked).unwrap();
            program.eval(&(), &mut CostBudget::unlimited()).map_err(|error| (name, error)).unwrap();
        }
    };
    thread.spawn(run).unwrap().join().unwrap();
}
