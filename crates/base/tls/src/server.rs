//! What servers offer their clients: the TLS profiles of OLM v1.
//!
//! The crypto provider has TLS 1.2 and 1.3, with cipher suites that are authenticated and forward secret. A
//! profile restricts that further, and adds nothing to it.

use rustls::crypto::CryptoProvider;
use rustls::{
    CipherSuite, ConfigBuilder, Error, NamedGroup, ProtocolVersion, ServerConfig,
    SupportedProtocolVersion, WantsVerifier, version,
};
use std::fmt;
use std::sync::Arc;

/// Names of TLS versions, the oldest first.
const VERSIONS: [(&str, ProtocolVersion); 4] = [
    ("TLSv1.0", ProtocolVersion::TLSv1_0),
    ("TLSv1.1", ProtocolVersion::TLSv1_1),
    ("TLSv1.2", ProtocolVersion::TLSv1_2),
    ("TLSv1.3", ProtocolVersion::TLSv1_3),
];

/// Names of curves, and the ones that other programs use for them.
const CURVES: [(NamedGroup, &[&str]); 5] = [
    (NamedGroup::X25519MLKEM768, &["X25519MLKEM768"]),
    (NamedGroup::X25519, &["X25519"]),
    (NamedGroup::secp256r1, &["prime256v1", "secp256r1", "P-256", "CurveP256"]),
    (NamedGroup::secp384r1, &["secp384r1", "P-384", "CurveP384"]),
    (NamedGroup::secp521r1, &["secp521r1", "P-521", "CurveP521"]),
];

/// The TLS versions, cipher suites and curves of servers.
#[derive(Clone)]
pub struct ServerTls {
    provider: CryptoProvider,
    versions: Vec<&'static SupportedProtocolVersion>,
}

/// Why a profile cannot be used. The text names the value and those that there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsProfileError(String);

impl fmt::Display for TlsProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TlsProfileError {}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suites = self.provider.cipher_suites.iter().map(rustls::SupportedCipherSuite::suite);
        let curves = self.provider.kx_groups.iter().map(|curve| curve.name());
        f.debug_struct("ServerTls")
            .field(
                "versions",
                &self.versions.iter().map(|version| version.version).collect::<Vec<_>>(),
            )
            .field("cipher_suites", &suites.collect::<Vec<_>>())
            .field("curves", &curves.collect::<Vec<_>>())
            .finish()
    }
}

impl Default for ServerTls {
    /// The profile `intermediate`: all that the provider has.
    fn default() -> Self {
        let provider = rustls::crypto::ring::default_provider();
        Self { provider, versions: vec![&version::TLS13, &version::TLS12] }
    }
}

impl ServerTls {
    /// A profile by its name: `modern` has TLS 1.3 only; `old` and `intermediate` have TLS 1.2, too.
    ///
    /// # Errors
    /// There is no such profile.
    pub fn profile(name: &str) -> Result<Self, TlsProfileError> {
        match name {
            "modern" => Self::custom(Some("TLSv1.3"), &[], &[]),
            // The provider has none of the older suites that distinguish them.
            "intermediate" | "old" => Ok(Self::default()),
            other => Err(TlsProfileError(format!(
                "unknown TLS profile \"{other}\": one of custom, intermediate, modern, old"
            ))),
        }
    }

    /// The profile `custom`: a lowest version, names of cipher suites, and names of curves. What is not given is
    /// not restricted. Known suites and curves that the provider does not have are left out. As in Go, a list
    /// without a cipher suite of TLS 1.3 does not restrict those.
    ///
    /// # Errors
    /// A name is unknown, or nothing would be left.
    pub fn custom(
        version: Option<&str>,
        cipher_suites: &[&str],
        curves: &[&str],
    ) -> Result<Self, TlsProfileError> {
        let mut tls = Self::default();
        if let Some(name) = version {
            let lowest = VERSIONS.iter().position(|(known, _)| *known == name);
            let lowest = lowest.ok_or_else(|| {
                unknown("TLS version", name, VERSIONS.iter().map(|(name, _)| *name))
            })?;
            let is_offered = |offered: &SupportedProtocolVersion| {
                VERSIONS[lowest..].iter().any(|(_, version)| *version == offered.version)
            };
            tls.versions.retain(|version| is_offered(version));
        }
        tls.restrict_cipher_suites(cipher_suites)?;
        tls.restrict_curves(curves)?;
        Ok(tls)
    }

    fn restrict_cipher_suites(&mut self, names: &[&str]) -> Result<(), TlsProfileError> {
        if names.is_empty() {
            return Ok(());
        }
        for name in names {
            if !(0..=u16::MAX).any(|number| suite_name(number.into()).as_deref() == Some(name)) {
                let known = self.provider.cipher_suites.iter();
                let known = known.filter_map(|suite| suite_name(suite.suite()));
                let known: Vec<String> = known.collect();
                return Err(unknown("cipher", name, known.iter().map(String::as_str)));
            }
        }
        let is_named = |suite: &rustls::SupportedCipherSuite| {
            suite_name(suite.suite()).is_some_and(|name| names.contains(&&*name))
        };
        let suites = &mut self.provider.cipher_suites;
        let restricts_tls13 = suites.iter().any(|suite| suite.tls13().is_some() && is_named(suite));
        suites.retain(|suite| is_named(suite) || (suite.tls13().is_some() && !restricts_tls13));
        let has_tls12 = suites.iter().any(|suite| suite.tls13().is_none());
        self.versions.retain(|version| has_tls12 || version.version == ProtocolVersion::TLSv1_3);
        Ok(())
    }

    fn restrict_curves(&mut self, names: &[&str]) -> Result<(), TlsProfileError> {
        if names.is_empty() {
            return Ok(());
        }
        let known = || CURVES.iter().map(|(_, names)| names[0]);
        let mut named = Vec::with_capacity(names.len());
        for name in names {
            let curve = CURVES.iter().find(|(_, names)| names.contains(name));
            let (curve, _) = curve.ok_or_else(|| unknown("curve", name, known()))?;
            named.push(*curve);
        }
        self.provider.kx_groups.retain(|curve| named.contains(&curve.name()));
        if self.provider.kx_groups.is_empty() {
            let names = names.join(", ");
            return Err(TlsProfileError(format!(
                "no curve is left of {names}: there are X25519, prime256v1 and secp384r1"
            )));
        }
        Ok(())
    }

    /// A builder of server configurations.
    ///
    /// # Errors
    /// If the provider cannot be used with the versions; a value of this type has no such ones.
    pub fn builder(&self) -> Result<ConfigBuilder<ServerConfig, WantsVerifier>, Error> {
        ServerConfig::builder_with_provider(Arc::new(self.provider.clone()))
            .with_protocol_versions(&self.versions)
    }
}

/// The name of a cipher suite in Go and at IANA.
fn suite_name(suite: CipherSuite) -> Option<String> {
    Some(suite.as_str()?.replace("TLS13_", "TLS_"))
}

fn unknown<'n>(what: &str, name: &str, known: impl Iterator<Item = &'n str>) -> TlsProfileError {
    let known: Vec<&str> = known.collect();
    TlsProfileError(format!("unknown {what} \"{name}\": there are {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tls: &ServerTls) -> (Vec<ProtocolVersion>, Vec<String>, Vec<NamedGroup>) {
        let suites = tls.provider.cipher_suites.iter();
        (
            tls.versions.iter().map(|version| version.version).collect(),
            suites.map(|suite| suite_name(suite.suite()).unwrap()).collect(),
            tls.provider.kx_groups.iter().map(|curve| curve.name()).collect(),
        )
    }

    #[test]
    fn profiles_restrict_what_the_provider_has() {
        let all = names(&ServerTls::default());
        assert_eq!(all.0, [ProtocolVersion::TLSv1_3, ProtocolVersion::TLSv1_2]);
        assert_eq!((all.1.len(), all.2.len()), (9, 3));
        for same in ["intermediate", "old"] {
            assert_eq!(names(&ServerTls::profile(same).unwrap()), all);
        }
        let modern = names(&ServerTls::profile("modern").unwrap());
        assert_eq!(modern.0, [ProtocolVersion::TLSv1_3]);
        let error = ServerTls::profile("new").unwrap_err().to_string();
        assert_eq!(error, "unknown TLS profile \"new\": one of custom, intermediate, modern, old");
    }

    #[test]
    fn custom_profile_has_the_named_suites_and_curves() {
        let one = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
        let custom = |version, suites: &[&str], curves: &[&str]| {
            ServerTls::custom(version, suites, curves).map(|tls| names(&tls))
        };
        // Suites without forward secrecy are known, and left out.
        let (versions, suites, curves) =
            custom(Some("TLSv1.0"), &[one, "TLS_RSA_WITH_AES_128_CBC_SHA"], &["secp384r1"])
                .unwrap();
        assert_eq!(versions.len(), 2);
        assert_eq!(suites.iter().filter(|suite| suite.contains("_WITH_")).count(), 1);
        assert_eq!(suites.len(), 4);
        assert_eq!(curves, [NamedGroup::secp384r1]);
        let only_tls13 = custom(None, &["TLS_AES_256_GCM_SHA384"], &["P-256", "X25519"]).unwrap();
        assert_eq!(only_tls13.0, [ProtocolVersion::TLSv1_3]);
        assert_eq!(only_tls13.1, ["TLS_AES_256_GCM_SHA384"]);
        assert_eq!(only_tls13.2, [NamedGroup::X25519, NamedGroup::secp256r1]);
        for (refused, text) in [
            (custom(Some("1.2"), &[], &[]), "unknown TLS version \"1.2\": there are TLSv1.0, "),
            (
                custom(None, &["AES"], &[]),
                "unknown cipher \"AES\": there are TLS_AES_256_GCM_SHA384, ",
            ),
            (custom(None, &[], &["p256"]), "unknown curve \"p256\": there are X25519MLKEM768, "),
            (custom(None, &[], &["secp521r1"]), "no curve is left of secp521r1"),
        ] {
            let refused = refused.unwrap_err().to_string();
            assert!(refused.starts_with(text), "{refused}");
        }
    }

    #[test]
    fn each_profile_makes_a_configuration() {
        let suites = ["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"];
        for tls in [
            ServerTls::default(),
            ServerTls::profile("modern").unwrap(),
            ServerTls::custom(Some("TLSv1.2"), &suites, &["X25519"]).unwrap(),
            ServerTls::custom(Some("TLSv1.3"), &suites, &["X25519"]).unwrap(),
        ] {
            assert!(tls.builder().is_ok(), "{tls:?}");
        }
    }
}
