//! One Chromium with its driver; both end with their value, and at the latest with the tests.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use thirtyfour::{
    BrowserCapabilitiesHelper, ChromeCapabilities, ChromiumLikeCapabilities, LoggingPrefsLogLevel,
    WebDriver,
};
use tokio::sync::{Mutex, MutexGuard};

use crate::support::{PATIENCE, Scratch, eventually, free_ports};

/// One browser at a time.
static TURN: Mutex<()> = Mutex::const_new(());

/// The longest that a page, a script or a command of the driver may take: a race is a page without script.
const LONGEST: Duration = Duration::from_secs(120);

/// How long the browser may take to say good-bye.
const GOOD_BYE: Duration = Duration::from_secs(10);

const FLAGS: [&str; 13] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--disable-breakpad",
    "--no-proxy-server",
    "--lang=en",
    "--window-size=1280,1000",
];

/// Whether the browser runs scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Script {
    On,
    Off,
}

pub struct Chromium {
    /// Always there, until it is dropped.
    driver: Option<WebDriver>,
    port: u16,
    chromedriver: Child,
    folder: Scratch,
    _turn: MutexGuard<'static, ()>,
}

impl Chromium {
    /// Waits for its turn and starts.
    pub async fn starts(script: Script) -> Self {
        let turn = TURN.lock().await;
        let folder = Scratch::new("browser");
        let port = free_ports(1);
        let chromedriver = chromedriver(port, folder.path());
        folder.ends(chromedriver.id());
        let mut this = Self {
            driver: None,
            port,
            chromedriver,
            folder,
            _turn: turn,
        };
        let capabilities = capabilities(script, &this.folder);
        this.driver = Some(this.session(capabilities).await);
        let pid = this.driver().capabilities().get("goog:processID");
        if let Some(pid) = pid.and_then(Value::as_u64) {
            this.folder.ends(u32::try_from(pid).expect("a process id"));
        }
        this
    }

    pub fn driver(&self) -> &WebDriver {
        self.driver.as_ref().expect("it has started")
    }

    /// Where it saves files.
    pub fn downloads(&self) -> PathBuf {
        downloads(&self.folder)
    }

    async fn session(&self, capabilities: ChromeCapabilities) -> WebDriver {
        let address = format!("http://127.0.0.1:{}", self.port);
        let client = reqwest::Client::builder()
            .no_proxy()
            .build()
            .expect("a client");
        eventually("chromedriver listens", PATIENCE, async || {
            let status = client.get(format!("{address}/status")).send().await;
            status.map(drop).map_err(|error| error.to_string())
        })
        .await;
        let (driver, _) = eventually("Chromium starts", LONGEST, async || {
            WebDriver::builder(address.as_str(), capabilities.clone())
                .request_timeout(LONGEST)
                .await
                .map_err(|error| error.to_string())
        })
        .await;
        driver
            .set_script_timeout(LONGEST)
            .await
            .expect("a longer timeout");
        driver
    }

    /// Asks the driver to end the browser, without a runtime; who does not answer is killed afterwards.
    fn says_good_bye(&self, session: &str) -> std::io::Result<()> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(GOOD_BYE))?;
        write!(
            stream,
            "DELETE /session/{session} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n",
            self.port
        )?;
        // It answers when the browser has ended, and keeps the connection.
        stream.read(&mut [0; 512]).map(drop)
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        if let Some(driver) = self.driver.take() {
            let session = driver.session_id().to_string();
            // What it would do on its own at its end is done here.
            let _ = driver.leak();
            let _ = self.says_good_bye(&session);
        }
        let _ = self.chromedriver.kill();
        let _ = self.chromedriver.wait();
    }
}

fn chromedriver(port: u16, home: &Path) -> Child {
    Command::new("chromedriver")
        .arg(format!("--port={port}"))
        .env("HOME", home)
        .env("TMPDIR", home)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("chromedriver starts (Debian: chromium-driver)")
}

fn downloads(folder: &Scratch) -> PathBuf {
    folder.join("downloads")
}

fn capabilities(script: Script, folder: &Scratch) -> ChromeCapabilities {
    let mut capabilities = ChromeCapabilities::new();
    let profile = format!("--user-data-dir={}", folder.join("profile").display());
    for flag in FLAGS.into_iter().chain([profile.as_str()]) {
        capabilities.add_arg(flag).expect("a flag");
    }
    let mut preferences = json!({"download.default_directory": downloads(folder)});
    if script == Script::Off {
        let javascript = "profile.managed_default_content_settings.javascript";
        preferences[javascript] = json!(2);
    }
    capabilities
        .set_browser_option("prefs", preferences)
        .expect("preferences");
    capabilities
        .set_browser_log_level(LoggingPrefsLogLevel::All)
        .expect("a level");
    capabilities
}
