//! What OLM v1 needs for the webhooks of a bundle.

use super::Checks;
use mainstay_object::Object;
use serde_json::Value;

impl Checks<'_> {
    /// OLM v1 installs conversion webhooks only with the single install mode `AllNamespaces`, and leaves the
    /// certificates of webhooks to an issuer.
    pub(super) fn webhooks(&mut self, csv: &Object, has_certificate_issuer: bool) {
        const CONVERSIONS: &str = "conversion webhooks";
        const CERTIFICATES: &str = "certificates of webhooks";
        let webhooks = csv.array(&["spec", "webhookdefinitions"]);
        let supported = |mode: &&Value| mode["supported"] == true;
        let modes = csv.array(&["spec", "installModes"]).iter().filter(supported);
        let others = modes.filter_map(|mode| mode["type"].as_str());
        let others: Vec<&str> = others.filter(|mode| *mode != "AllNamespaces").collect();
        let converts = webhooks.iter().any(|webhook| webhook["type"] == "ConversionWebhook");
        if !converts {
            self.pass("", CONVERSIONS, "the bundle has none");
        } else if others.is_empty() {
            self.pass("", CONVERSIONS, "the bundle supports no install mode but AllNamespaces");
        } else {
            let reason = format!("the bundle has some, and supports {}, too", others.join(", "));
            let remedy = "OLM v1 refuses that: keep OLM classic for this operator, or wait for a version with AllNamespaces only";
            self.fail("", CONVERSIONS, reason, remedy);
        }
        if webhooks.is_empty() {
            self.pass("", CERTIFICATES, "the bundle has no webhooks");
        } else if has_certificate_issuer {
            self.pass("", CERTIFICATES, "OLM v1 has an issuer of certificates");
        } else {
            let reason = "the bundle has webhooks, and the cluster has no cert-manager";
            let remedy = "install cert-manager first: https://cert-manager.io/docs/installation/kubectl/; where the controller of OLM v1 has another issuer, name it with --certificates";
            self.fail("", CERTIFICATES, reason, remedy);
        }
    }
}
