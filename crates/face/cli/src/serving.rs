//! Serving options of `run`, checked: package addresses, TLS files and pod images.

use crate::upstream::{CUSTOM_PROFILE, CUSTOM_PROFILE_FLAGS, UpstreamArguments};
use mainstay_cause::Cause;
use mainstay_tls::ServerTls;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// The default port of the package server.
const DEFAULT_PORT: u16 = 5443;

/// The configured addresses of the package server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PackagesAddresses {
    /// The address under which the cluster reaches the process.
    pub address: Option<IpAddr>,
    /// The address of the listener.
    pub listen: Option<SocketAddr>,
}

impl PackagesAddresses {
    pub(crate) fn check(
        address: Option<IpAddr>,
        listen: Option<SocketAddr>,
        upstream: &UpstreamArguments,
    ) -> Result<Self, Cause> {
        let refused = |flag: &str, value: &str, remedy: &'static str| {
            let why = Cause::new(format!("`{value}` is not valid"));
            Cause::new(format!("--{flag} {value}")).because(why).remedy(remedy)
        };
        let port = upstream.value("secure-port").map(|port| {
            port.parse::<u16>()
                .map_err(|_| refused("secure-port", port, "write a port, such as 5443"))
        });
        let bind = upstream.value("bind-address").map(|address| {
            address
                .parse::<IpAddr>()
                .map_err(|_| refused("bind-address", address, "write an address, such as 0.0.0.0"))
        });
        let (port, bind) = (port.transpose()?, bind.transpose()?);
        let upstream_listen = (port.is_some() || bind.is_some()).then(|| {
            SocketAddr::new(
                bind.unwrap_or(Ipv4Addr::UNSPECIFIED.into()),
                port.unwrap_or(DEFAULT_PORT),
            )
        });
        let listen = listen.or(upstream_listen);
        // A listen address of this machine is also the reachable one, unless a flag names another.
        let listen_address = listen
            .map(|address| address.ip())
            .filter(|address| !address.is_unspecified() && !address.is_loopback());
        let address = address.or(listen_address);
        if let Some(address) =
            address.filter(|address| address.is_loopback() || address.is_unspecified())
        {
            return Err(Cause::new(format!("--packages-address {address}"))
                .because(Cause::new("a cluster cannot reach a process at this address"))
                .remedy(
                    "name an address of this machine that the cluster's API server can reach",
                ));
        }
        Ok(Self { address, listen })
    }
}

/// Certificate and key for TLS, files in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate.
    pub certificate: PathBuf,
    /// The key of the certificate.
    pub key: PathBuf,
}

impl TlsFiles {
    pub(crate) fn check(upstream: &UpstreamArguments) -> Result<Option<Self>, Cause> {
        let file =
            |flag: &str| upstream.value(flag).filter(|value| !value.is_empty()).map(PathBuf::from);
        match (file("tls-cert"), file("tls-key")) {
            (Some(certificate), Some(key)) => Ok(Some(Self { certificate, key })),
            (None, None) => Ok(None),
            _ => Err(Cause::new("--tls-cert and --tls-key belong together")
                .remedy("name both files, or none")),
        }
    }
}

/// What TLS servers offer, by the flags of OLM v1.
///
/// # Errors
/// A value is unknown, or nothing would be left.
pub(crate) fn server_tls(upstream: &UpstreamArguments) -> Result<ServerTls, Cause> {
    let list = |flag: &str| -> Vec<&str> {
        let items = upstream.value(flag).unwrap_or_default().split(',').map(str::trim);
        items.filter(|item| !item.is_empty()).collect()
    };
    let profile = upstream.value("tls-profile").unwrap_or("intermediate");
    let tls = if profile == CUSTOM_PROFILE {
        let [version, ciphers, curves] = CUSTOM_PROFILE_FLAGS;
        ServerTls::custom(upstream.value(version), &list(ciphers), &list(curves))
    } else {
        ServerTls::profile(profile)
    };
    tls.map_err(|error| {
        Cause::new("the TLS profile cannot be used")
            .because(Cause::new(error.to_string()))
            .remedy("correct the flags --tls-profile and --tls-custom-*")
    })
}

/// The configured images of catalog pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodImages {
    /// The image that serves `ConfigMaps`.
    pub config_map: Option<String>,
    /// The image that serves and unpacks content.
    pub opm: Option<String>,
    /// The image with the program that copies content.
    pub util: Option<String>,
    /// Whether restricted pods leave their user unset.
    pub any_user: bool,
}

impl PodImages {
    pub(crate) fn of(upstream: &UpstreamArguments) -> Self {
        let image = |flag: &str| upstream.value(flag).map(str::to_owned);
        Self {
            config_map: image("configmapServerImage"),
            opm: image("opmImage"),
            util: image("util-image"),
            any_user: !upstream.is_on("set-workload-user-id", true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Arguments, Command};
    use clap::Parser as _;

    fn given(words: &[&str]) -> (Option<IpAddr>, Option<SocketAddr>, UpstreamArguments) {
        let words = ["mainstay", "run"].iter().chain(words);
        match Arguments::try_parse_from(words).unwrap().command {
            Command::Run(run) => (run.packages_address, run.packages_listen, run.upstream),
            _ => unreachable!("`run` was typed"),
        }
    }

    #[test]
    fn package_addresses_come_from_our_flags_or_from_those_of_upstream() {
        for (words, address, listen) in [
            (&[][..], None, None),
            (&["--packages-address", "10.0.0.7"], Some("10.0.0.7"), None),
            (&["--packages-listen", "10.0.0.7:0"], Some("10.0.0.7"), Some("10.0.0.7:0")),
            (&["--packages-listen", "0.0.0.0:7"], None, Some("0.0.0.0:7")),
            (&["--secure-port", "7443"], None, Some("0.0.0.0:7443")),
            (&["--bind-address", "10.0.0.7"], Some("10.0.0.7"), Some("10.0.0.7:5443")),
        ] {
            let (said, listens, upstream) = given(words);
            let addresses = PackagesAddresses::check(said, listens, &upstream).unwrap();
            assert_eq!(
                addresses.address,
                address.map(|address| address.parse().unwrap()),
                "{words:?}"
            );
            assert_eq!(
                addresses.listen,
                listen.map(|address| address.parse().unwrap()),
                "{words:?}"
            );
        }
        for (words, text) in [
            (
                &["--packages-address", "127.0.0.1"][..],
                "a cluster cannot reach a process at this address",
            ),
            (&["--secure-port", "x"], "write a port"),
        ] {
            let (said, listens, upstream) = given(words);
            let refused =
                PackagesAddresses::check(said, listens, &upstream).unwrap_err().to_string();
            assert!(refused.contains(text), "{refused}");
        }
    }

    #[test]
    fn servers_offer_what_the_tls_profile_has() {
        let offered = |words: &[&str]| server_tls(&given(words).2).map(|tls| format!("{tls:?}"));
        let default = offered(&[]).unwrap();
        assert!(default.contains("TLSv1_2") && default.contains("secp384r1"), "{default}");
        assert!(!offered(&["--tls-profile", "modern"]).unwrap().contains("TLSv1_2"));
        let suite = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256";
        let custom = offered(&[
            "--tls-profile=custom",
            "--tls-custom-version=TLSv1.2",
            &format!("--tls-custom-ciphers={suite},TLS_AES_128_GCM_SHA256"),
            "--tls-custom-curves=prime256v1",
        ]);
        let custom = custom.unwrap();
        // shows OLMV1-56
        assert!(custom.contains("TLSv1_2") && custom.contains(suite), "{custom}");
        assert!(!custom.contains("AES_256") && !custom.contains("X25519"), "{custom}");
        for (words, text) in [
            (&["--tls-profile", "new"][..], "unknown TLS profile"),
            (&["--tls-profile", "custom", "--tls-custom-ciphers", "X"], "unknown cipher \"X\""),
        ] {
            let refused = offered(words).unwrap_err().to_string();
            assert!(refused.contains(text), "{refused}");
        }
        let notes = given(&["--tls-custom-version", "TLSv1.3"]).2.notes();
        assert_eq!(notes, ["--tls-custom-version has no effect without --tls-profile custom"]);
    }

    #[test]
    fn certificate_needs_its_key_and_images_are_the_given_ones() {
        let upstream = |words: &[&str]| given(words).2;
        assert_eq!(TlsFiles::check(&upstream(&[])).unwrap(), None);
        assert!(TlsFiles::check(&upstream(&["--tls-cert", "a"])).is_err());
        let tls_files = TlsFiles::check(&upstream(&["--tls-cert", "a", "--tls-key", "b"])).unwrap();
        assert_eq!(tls_files.map(|files| files.key), Some(PathBuf::from("b")));
        let images =
            PodImages::of(&upstream(&["--opmImage", "opm:1", "--set-workload-user-id=false"]));
        let wanted =
            PodImages { opm: Some("opm:1".into()), any_user: true, ..PodImages::default() };
        assert_eq!(images, wanted);
    }
}
