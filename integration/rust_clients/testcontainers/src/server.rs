use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::image::{GenericImage, RunnableImage};

const PATIENCE: Duration = Duration::from_secs(30);
const CONFIGURATION: &str = "/conf/zoo.cfg";
/// What ZooKeeper's image runs with if nothing is mounted.
const USUAL: &str =
    "dataDir=/data\nclientPort=2181\ntickTime=2000\ninitLimit=5\nsyncLimit=2\nmaxClientCnxns=60\n";

/// A server with a folder of its own.
pub struct Server {
    folder: PathBuf,
    flags: String,
    port: u16,
    secured: bool,
    process: Option<Child>,
}

impl Server {
    pub fn new(image: &RunnableImage<GenericImage>) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("zookeeper-{}-{number}", std::process::id()));
        fs::create_dir_all(folder.join("data")).expect("a folder for the server");

        let mut text = match image.volumes.get(CONFIGURATION) {
            Some(path) => fs::read_to_string(path).expect("the mounted configuration"),
            None => USUAL.to_owned(),
        };
        let mut flags = image.variable("SERVER_JVMFLAGS").to_owned();
        for (inside, host) in image
            .volumes
            .iter()
            .filter(|(inside, _)| *inside != CONFIGURATION)
        {
            text = text.replace(inside.as_str(), host);
            flags = flags.replace(inside.as_str(), host);
        }
        text = text.replace(
            "dataDir=/data",
            &format!("dataDir={}", folder.join("data").display()),
        );
        if image.network.is_none() {
            text = text.replace("lientPort=2181", &format!("lientPort={}", free_port()));
        }
        text.push_str("admin.enableServer=false\n");
        fs::write(folder.join("zoo.cfg"), &text).expect("the configuration");
        let port = client_port(&text);
        Self {
            folder,
            flags,
            port,
            secured: text.contains("secureClientPort="),
            process: None,
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn start(&mut self) {
        let scripts = std::env::var("ZOOKEEPER_BIN_PATH").expect("ZOOKEEPER_BIN_PATH");
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.folder.join("log"))
            .expect("a log");
        let process = Command::new(PathBuf::from(scripts).join("zkServer.sh"))
            .arg("start-foreground")
            .arg(self.folder.join("zoo.cfg"))
            .env("SERVER_JVMFLAGS", &self.flags)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a second handle"))
            .stderr(log)
            .spawn()
            .expect("zkServer.sh");
        self.process = Some(process);
        let healthy = if self.secured {
            await_listener(self.port)
        } else {
            await_answer(self.port, "Mode: ")
        };
        if let Err(reason) = healthy {
            panic!(
                "{reason}; it said:\n{}",
                fs::read_to_string(self.folder.join("log")).unwrap_or_default()
            );
        }
    }

    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("the process to kill");
            process.wait().expect("its end");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        if !std::thread::panicking() {
            fs::remove_dir_all(&self.folder).expect("the folder to remove");
        }
    }
}

/// From the server's own line in the membership, else from the key that is there.
fn client_port(text: &str) -> u16 {
    let value = |key: &str| {
        text.lines()
            .rev()
            .find_map(|line| line.strip_prefix(key))
            .map(str::to_owned)
    };
    let own = value("dataDir=")
        .and_then(|folder| fs::read_to_string(PathBuf::from(folder).join("myid")).ok())
        .and_then(|id| value(&format!("server.{}=", id.trim())));
    let address = own
        .or_else(|| value("clientPort="))
        .or_else(|| value("secureClientPort="))
        .expect("a port for clients");
    let (_, port) = address.rsplit_once([':', ';']).unwrap_or(("", &address));
    port.parse().expect("a number for a port")
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a free port")
        .port()
}

fn await_listener(port: u16) -> Result<(), String> {
    until(
        || TcpStream::connect(("127.0.0.1", port)).is_ok(),
        || format!("nobody listens on port {port}"),
    )
}

/// Waits until the word `srvr` is answered with this part.
pub fn await_answer(port: u16, part: &str) -> Result<(), String> {
    let mut last = String::new();
    until(
        || {
            last = srvr(port).unwrap_or_else(|error| error.to_string());
            last.contains(part)
        },
        || format!("port {port} does not answer {part:?}"),
    )
}

fn srvr(port: u16) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(b"srvr")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn until(mut condition: impl FnMut() -> bool, failure: impl Fn() -> String) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        if Instant::now() > deadline {
            return Err(failure());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
