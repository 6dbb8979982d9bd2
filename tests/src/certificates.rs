//! Certificates for scenarios: an authority, and what it vouches for.

use crate::folder;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use std::fs;
use std::path::{Path, PathBuf};

/// An authority of one scenario.
#[derive(Debug)]
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: PathBuf,
    /// Its own certificate, PEM.
    pub file: PathBuf,
}

/// A certificate and its key, in PEM files.
#[derive(Debug, Clone)]
pub struct Files {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl Files {
    /// Both in one text.
    #[must_use]
    pub fn together(&self) -> Vec<u8> {
        [read(&self.certificate), read(&self.key)].concat()
    }

    /// Puts another certificate and key into these files.
    pub fn become_like(&self, other: &Self) {
        fs::copy(&other.key, &self.key).expect("copy a key");
        fs::copy(&other.certificate, &self.certificate).expect("copy a certificate");
    }
}

impl Authority {
    /// A new one of that name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let folder = folder::fresh(name);
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("make a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("make an authority");
        let file = folder.join("authority.pem");
        fs::write(&file, issuer.pem()).expect("write a certificate");
        Self { issuer, folder, file }
    }

    /// A certificate for this machine, as a server or as a client.
    #[must_use]
    pub fn issue(&self, name: &str) -> Files {
        let hosts = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        let mut params = CertificateParams::new(hosts).expect("names of this machine");
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("make a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("sign a certificate");
        let file = |kind: &str| self.folder.join(format!("{name}-{kind}.pem"));
        let files = Files { certificate: file("certificate"), key: file("key") };
        fs::write(&files.certificate, certificate.pem()).expect("write a certificate");
        fs::write(&files.key, key.serialize_pem()).expect("write a key");
        files
    }

    /// A client that trusts this authority alone, and shows `shown`.
    #[must_use]
    pub fn client(&self, shown: Option<&Files>) -> reqwest::Client {
        crate::http::install_provider();
        let authority = reqwest::Certificate::from_pem(&read(&self.file)).expect("a certificate");
        let mut client = reqwest::Client::builder().tls_certs_only([authority]).tls_info(true);
        if let Some(shown) = shown {
            client =
                client.identity(reqwest::Identity::from_pem(&shown.together()).expect("a certificate and its key"));
        }
        client.build().expect("build the HTTP client")
    }
}

/// A path as a setting.
#[must_use]
pub fn text(path: &Path) -> &str {
    path.to_str().expect("paths of scenarios are text")
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
