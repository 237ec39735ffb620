//! Ports of this machine behind ports of a simulated pod.
//!
//! Nodes are simulated, so nothing listens at the address of a pod. An annotation puts programs of this machine
//! behind it: whoever may reach the pod through the API reaches a loopback port of the machine. That is what a
//! host port is on a real node, and more, as it may be a port that somebody else opened: the levels `baseline`
//! and `restricted` refuse both.

/// The annotation that puts ports of this machine behind ports of a pod: `80:8080, 443:8443, 9090`.
pub const HOST_PORTS: &str = "mainstay.dev/host-ports";

/// Pairs of a pod's port and the port of this machine behind it. Pairs that cannot be read are none.
pub fn host_ports(annotation: &str) -> impl Iterator<Item = (u16, u16)> {
    annotation.split(',').filter_map(|pair| {
        let (pod, host) = pair.split_once(':').unwrap_or((pair, pair));
        Some((pod.trim().parse().ok()?, host.trim().parse().ok()?))
    })
}

/// The port of this machine behind a port of a pod.
pub fn host_port(annotation: &str, wanted: u16) -> Option<u16> {
    host_ports(annotation).find(|(pod, _)| *pod == wanted).map(|(_, host)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_this_machine_stand_behind_those_of_a_pod() {
        for (ports, wanted, expected) in [
            ("80:8080", 80, Some(8080)),
            ("80:8080", 8080, None),
            (" 80 : 8080 , 9090", 9090, Some(9090)),
            ("80", 80, Some(80)),
            ("", 80, None),
            ("x,80:y,80:1", 80, Some(1)),
            ("80:70000", 80, None),
            ("80:8080:1", 80, None),
        ] {
            assert_eq!(host_port(ports, wanted), expected, "{ports:?}");
        }
    }
}
