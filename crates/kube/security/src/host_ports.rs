//! Host ports of simulated pods: ports of this machine that an annotation maps to ports of a pod.
//!
//! Nodes are simulated, so nothing listens at the address of a pod. With the annotation, a client that
//! may connect to the pod through the API connects to a loopback port of this machine. Any program
//! may listen there, so this grants more than a host port on a real node. The levels `baseline` and
//! `restricted` forbid both.

/// The annotation that maps ports of a pod to ports of this machine: `80:8080, 443:8443, 9090`.
pub const HOST_PORTS: &str = "mainstay.dev/host-ports";

/// Pairs of a pod's port and the mapped port of this machine. Malformed pairs are ignored.
pub fn host_ports(annotation: &str) -> impl Iterator<Item = (u16, u16)> {
    annotation.split(',').filter_map(|pair| {
        let (pod, host) = pair.split_once(':').unwrap_or((pair, pair));
        Some((pod.trim().parse().ok()?, host.trim().parse().ok()?))
    })
}

/// The port of this machine that a port of a pod is mapped to.
pub fn host_port(annotation: &str, pod_port: u16) -> Option<u16> {
    host_ports(annotation).find(|(pod, _)| *pod == pod_port).map(|(_, host)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_port_finds_the_mapped_port_of_this_machine() {
        for (ports, pod_port, expected) in [
            ("80:8080", 80, Some(8080)),
            ("80:8080", 8080, None),
            (" 80 : 8080 , 9090", 9090, Some(9090)),
            ("80", 80, Some(80)),
            ("", 80, None),
            ("x,80:y,80:1", 80, Some(1)),
            ("80:70000", 80, None),
            ("80:8080:1", 80, None),
        ] {
            assert_eq!(host_port(ports, pod_port), expected, "{ports:?}");
        }
    }
}
