//! Optionals in branches of conditionals, which `optMap` creates too. cel-go converts their values
//! to Go values there, and cannot convert library values back. Recorded from cel-go 0.26.

use crate::libraries;
use mainstay_cel::{CostBudget, Program};

fn result_text(text: &str) -> String {
    let checked = libraries::kubernetes().compile(text).unwrap();
    let program = Program::new(&checked).unwrap();
    match program.eval(&(), &mut CostBudget::unlimited()) {
        Ok(value) => value.to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn library_values_in_optionals_of_branches_are_lost() {
    let lost = |inside: &str| format!("unsupported conversion to ref.Val: {inside}");
    let address = lost("(netip.Addr)1.2.3.4");
    for (text, expected) in [
        ("optional.of('1.2.3.4').optMap(v, ip(v)).hasValue()", "true".to_owned()),
        ("optional.of('1.2.3.4').optMap(v, ip(v)).value().family()", address.clone()),
        ("optional.of('1.2.3.4').optMap(v, ip(v)).orValue(ip('::1')).family()", address.clone()),
        ("optional.of('1.2.3.4').optMap(v, ip(v)) == optional.of(ip('::1'))", address.clone()),
        ("optional.of('1.2.3.4').optMap(v, ip(v)).optMap(w, w.family())", address),
        (
            "(true ? optional.of(semver('1.2.3')) : optional.none()).value().major()",
            lost("(semver.Version)1.2.3"),
        ),
        (
            "optional.of('http://a/b').optMap(v, url(v)).value().getHost()",
            lost("(*url.URL)http://a/b"),
        ),
        (
            "optional.of('10.0.0.0/8').optMap(v, cidr(v)).value().prefixLength()",
            lost("(netip.Prefix)10.0.0.0/8"),
        ),
        (
            "optional.of('1').optMap(v, quantity(v)).value().isInteger()",
            lost("(*resource.Quantity)1"),
        ),
        // In a list, and outside of branches, the value is kept.
        (
            "(true ? optional.of([semver('1.2.3')]) : optional.none()).value()[0].major()",
            "1".to_owned(),
        ),
        ("optional.of(semver('1.2.3')).value().major()", "1".to_owned()),
        ("optional.of(1).optMap(v, v + 1).value()", "2".to_owned()),
    ] {
        assert_eq!(result_text(text), expected, "{text}");
    }
}
