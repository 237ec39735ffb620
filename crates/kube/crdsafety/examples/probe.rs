//! x
use std::io::BufRead;
fn main() {
    for line in std::io::stdin().lock().lines() {
        let v: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        let (d, a) = mainstay_crdsafety::probe(&v["a"], &v["b"]);
        println!("{}", serde_json::json!({"diff": d, "a": a}));
    }
}
