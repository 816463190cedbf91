//! Clears away what a killed or finished test process would leave behind.

use std::io::Write;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;

/// Reads process ids until its input ends, which also happens when the tests are killed; then ends these processes and
/// removes the folder. Servers of the stack end by themselves at the same moment; the folder may fill while they do.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
pids=
while read -r pid; do pids="$pids $pid"; done
[ -n "$pids" ] && kill -KILL $pids
for _ in 1 2 3 4 5 6 7 8 9 10; do rm -rf "$1"; sleep 1; [ -e "$1" ] || exit 0; done
"#;

/// A small shell that outlives the tests by a moment.
///
/// Values in statics are never dropped, so the replicas that tests share need somebody who ends them.
pub struct Keeper {
    input: Mutex<ChildStdin>,
    _shell: Child,
}

impl Keeper {
    /// Watches over `folder`.
    pub fn of(folder: &Path) -> Self {
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT, "keeper"])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let input = shell.stdin.take().expect("the shell's input");
        Self {
            input: Mutex::new(input),
            _shell: shell,
        }
    }

    /// Ends this process, too, at the end of the tests.
    pub fn ends(&self, pid: u32) {
        let mut input = self.input.lock().expect("nobody panicked with it");
        writeln!(input, "{pid}").expect("the shell listens");
    }
}
