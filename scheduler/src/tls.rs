//! TLS of the node's listener: its certificate, reloaded when the files change, and which clients must
//! present one of their own.

use actix_tls::accept::rustls_0_23::TlsStream;
use actix_web::dev::Extensions;
use actix_web::rt::net::TcpStream;
use anyhow::{Context, anyhow, bail};
use arc_swap::ArcSwap;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde::Deserialize;
use std::any::Any;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Largest file of certificates or keys, bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// `[server.tls]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsSettings {
    /// The node's certificate and those that lead to its authority, PEM; empty: no TLS.
    pub certificate: PathBuf,
    /// Its private key, PEM.
    pub key: PathBuf,
    /// Authorities whose certificates clients may present, PEM; empty: none is requested.
    pub client_ca: PathBuf,
    /// Which clients must present one.
    pub client_certificates: ClientCertificates,
    /// Interval between two checks of the files.
    #[serde(with = "humantime_serde")]
    pub reload_interval: Duration,
}

/// Which clients must present a certificate of `client_ca`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientCertificates {
    /// Executors: `/openapi`. People and programs have sessions and tokens.
    Executors,
    /// All clients, including those of `/healthz`.
    All,
}

impl TlsSettings {
    /// Whether the listener speaks TLS.
    #[must_use]
    pub fn is_on(&self) -> bool {
        !self.certificate.as_os_str().is_empty()
    }

    /// What of the settings does not go together.
    #[must_use]
    pub fn contradiction(&self) -> Option<&'static str> {
        let given = |path: &Path| !path.as_os_str().is_empty();
        if self.is_on() != given(&self.key) {
            return Some("server.tls.certificate and server.tls.key belong together: set both or none");
        }
        if given(&self.client_ca) && !self.is_on() {
            return Some("server.tls.client_ca needs server.tls.certificate and key");
        }
        if self.reload_interval < Duration::from_secs(1) {
            return Some("server.tls.reload_interval must be at least 1s");
        }
        None
    }
}

/// Installs the process's cryptography; TLS anywhere in the process uses it. Once, in `main`.
pub fn install_provider() {
    if CryptoProvider::get_default().is_none() {
        // Another thread may have been faster.
        let _ = ring::default_provider().install_default();
    }
}

/// TLS of a client that speaks plain HTTP only: trusts no authority. Without it a client would read the
/// machine's authorities, and could not be created where there are none.
///
/// # Errors
/// None that can occur: the versions are the library's own.
pub fn unused() -> Result<ClientConfig, rustls::Error> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    Ok(config
        .with_safe_default_protocol_versions()?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth())
}

/// A listener's TLS.
pub struct Listener {
    /// For the server.
    pub config: ServerConfig,
    /// Reloaded from time to time.
    pub certificate: Arc<Certificate>,
    /// Whether `/openapi` is open only to connections that showed a certificate.
    pub executors_show_certificates: bool,
}

impl Listener {
    /// Reads every file that the settings name; `None` when TLS is off.
    ///
    /// # Errors
    /// Which file cannot be used, why, and the setting that names it.
    pub fn open(settings: &TlsSettings) -> anyhow::Result<Option<Self>> {
        if !settings.is_on() {
            return Ok(None);
        }
        let provider = Arc::new(ring::default_provider());
        let certificate = Arc::new(Certificate::open(settings, Arc::clone(&provider))?);
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .context("TLS cannot be set up")?;
        let asks = !settings.client_ca.as_os_str().is_empty();
        let config = if asks {
            config.with_client_cert_verifier(client_verifier(settings, provider)?)
        } else {
            config.with_no_client_auth()
        };
        Ok(Some(Self {
            config: config.with_cert_resolver(Arc::clone(&certificate) as Arc<dyn ResolvesServerCert>),
            certificate,
            executors_show_certificates: asks,
        }))
    }
}

fn client_verifier(
    settings: &TlsSettings,
    provider: Arc<CryptoProvider>,
) -> anyhow::Result<Arc<dyn ClientCertVerifier>> {
    let named = || format!("the file {} (server.tls.client_ca) cannot be used", settings.client_ca.display());
    let mut roots = RootCertStore::empty();
    for authority in certificates(&read(&settings.client_ca).with_context(named)?).with_context(named)? {
        roots.add(authority).with_context(named)?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let builder = match settings.client_certificates {
        ClientCertificates::Executors => builder.allow_unauthenticated(),
        ClientCertificates::All => builder,
    };
    builder.build().with_context(named)
}

/// The node's certificate with its key, as the files hold it.
#[derive(Debug)]
pub struct Certificate {
    files: [PathBuf; 2],
    provider: Arc<CryptoProvider>,
    current: ArcSwap<CertifiedKey>,
    /// What was last found; or why it cannot be used.
    found: Mutex<Found>,
}

#[derive(PartialEq, Eq)]
enum Found {
    Files([Vec<u8>; 2]),
    Fault(String),
}

impl std::fmt::Debug for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Files(_) => f.write_str("Files"),
            Self::Fault(fault) => f.debug_tuple("Fault").field(fault).finish(),
        }
    }
}

impl Certificate {
    fn open(settings: &TlsSettings, provider: Arc<CryptoProvider>) -> anyhow::Result<Self> {
        let files = [settings.certificate.clone(), settings.key.clone()];
        let found = read_both(&files)?;
        let current = ArcSwap::from_pointee(certified(&files, &found, &provider)?);
        Ok(Self { files, provider, current, found: Mutex::new(Found::Files(found)) })
    }

    /// Checks the files again. New connections use their current content; content that cannot be used is
    /// logged once, and changes nothing. Blocks on the disk.
    pub fn reload(&self) {
        let read = read_both(&self.files);
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if read.as_ref().is_ok_and(|files| matches!(&*found, Found::Files(before) if before == files)) {
            return;
        }
        let fresh = read.and_then(|files| Ok((certified(&self.files, &files, &self.provider)?, files)));
        match fresh {
            Ok((certificate, files)) => {
                self.current.store(Arc::new(certificate));
                *found = Found::Files(files);
                tracing::info!(file = %self.files[0].display(), "TLS certificate reloaded");
            }
            Err(error) => {
                let fault = Found::Fault(format!("{error:#}"));
                if *found != fault {
                    tracing::error!(error = format!("{error:#}"), "the old TLS certificate stays in use");
                    *found = fault;
                }
            }
        }
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.load_full())
    }
}

fn read_both(files: &[PathBuf; 2]) -> anyhow::Result<[Vec<u8>; 2]> {
    Ok([read(&files[0]).with_context(|| unusable(files, 0))?, read(&files[1]).with_context(|| unusable(files, 1))?])
}

fn certified(
    files: &[PathBuf; 2],
    [certificate, key]: &[Vec<u8>; 2],
    provider: &CryptoProvider,
) -> anyhow::Result<CertifiedKey> {
    let chain = certificates(certificate).with_context(|| unusable(files, 0))?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
        rustls::pki_types::pem::Error::NoItemsFound => anyhow!("it holds no private key in PEM without a pass phrase"),
        error => anyhow!(error),
    });
    let key = key.with_context(|| unusable(files, 1))?;
    let key = provider.key_provider.load_private_key(key).with_context(|| unusable(files, 1))?;
    let certified = CertifiedKey::new(chain, key);
    certified
        .keys_match()
        .with_context(|| format!("{} is not the key of the certificate {}", files[1].display(), files[0].display()))?;
    Ok(certified)
}

fn unusable(files: &[PathBuf; 2], which: usize) -> String {
    let setting = ["server.tls.certificate", "server.tls.key"][which];
    format!("the file {} ({setting}) cannot be used", files[which].display())
}

fn certificates(pem: &[u8]) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let found: Vec<_> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>()?;
    if found.is_empty() {
        bail!("it holds no certificate in PEM");
    }
    Ok(found)
}

/// A file of certificates or keys.
///
/// # Errors
/// Why it cannot be read.
pub fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut text = Vec::new();
    std::fs::File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        bail!("it has more than {FILE_BYTES_MAX} bytes");
    }
    Ok(text)
}

/// That a connection's client showed a certificate of `client_ca`.
#[derive(Debug, Clone, Copy)]
pub struct ShownCertificate;

/// Notes on each new connection whether its client showed a certificate (the handshake has checked
/// it).
pub fn note_certificate(connection: &dyn Any, data: &mut Extensions) {
    let Some(stream) = connection.downcast_ref::<TlsStream<TcpStream>>() else { return };
    if stream.get_ref().1.peer_certificates().is_some_and(|shown| !shown.is_empty()) {
        data.insert(ShownCertificate);
    }
}
