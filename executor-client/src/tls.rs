//! TLS towards the nodes: whom this executor trusts, and the certificate that it presents.

use crate::BuildError;
use crate::error::invalid;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::fmt::Display;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Largest file of certificates or keys, bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// TLS settings of the builder.
#[derive(Debug, Clone, Default)]
pub(crate) struct TlsFiles {
    /// Authorities of the nodes' certificates; the machine's own when absent.
    pub(crate) ca: Option<PathBuf>,
    /// The executor's certificate.
    pub(crate) certificate: Option<PathBuf>,
    /// Its private key.
    pub(crate) key: Option<PathBuf>,
}

impl TlsFiles {
    /// The client's TLS. If every node speaks plain HTTP (`is_used` is false), no file is read and no
    /// authority is trusted. The process's own default crypto provider is left alone.
    pub(crate) fn open(&self, is_used: bool) -> Result<ClientConfig, BuildError> {
        let environment = |error: rustls::Error| BuildError::Environment(format!("TLS cannot be set up: {error}"));
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(environment)?;
        if !is_used {
            return Ok(config.with_root_certificates(RootCertStore::empty()).with_no_client_auth());
        }
        let config = config.with_root_certificates(self.roots()?);
        match (&self.certificate, &self.key) {
            (None, None) => Ok(config.with_no_client_auth()),
            (Some(certificate), Some(key)) => {
                let chain = certificates("client_certificate", certificate)?;
                let key = PrivateKeyDer::from_pem_slice(&read("client_certificate", key)?).map_err(|error| {
                    let why = match error {
                        pem::Error::NoItemsFound => "it holds no private key in PEM without a pass phrase".to_owned(),
                        error => error.to_string(),
                    };
                    unusable("client_certificate", key, why)
                })?;
                let mismatch = |error| unusable("client_certificate", certificate, error);
                config.with_client_auth_cert(chain, key).map_err(mismatch)
            }
            _ => Err(invalid("client_certificate", "certificate and key belong together: set both or none".to_owned())),
        }
    }

    fn roots(&self) -> Result<RootCertStore, BuildError> {
        let mut roots = RootCertStore::empty();
        if let Some(ca) = &self.ca {
            for authority in certificates("ca_file", ca)? {
                roots.add(authority).map_err(|error| unusable("ca_file", ca, error))?;
            }
            return Ok(roots);
        }
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            let faults: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
            let why =
                format!("this machine has no certificate authorities of its own ({}): name a file", faults.join("; "));
            return Err(invalid("ca_file", why));
        }
        Ok(roots)
    }
}

fn certificates(setting: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, BuildError> {
    let text = read(setting, path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| unusable(setting, path, error))?;
    if found.is_empty() {
        return Err(unusable(setting, path, "it holds no certificate in PEM"));
    }
    Ok(found)
}

fn read(setting: &'static str, path: &Path) -> Result<Vec<u8>, BuildError> {
    let mut text = Vec::new();
    let done = std::fs::File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text));
    done.map_err(|error| unusable(setting, path, error))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(unusable(setting, path, format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    Ok(text)
}

fn unusable(setting: &'static str, path: &Path, why: impl Display) -> BuildError {
    invalid(setting, format!("the file {} cannot be used: {why}", path.display()))
}
