"""What the tests of the talweg command share: a folder of their own, jobs in it, and what a job must not leave behind.

TALWEG names the binary. Processes are found by a variable in their environment that holds the test's folder, so tests
can run beside each other and beside anything else.
"""
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

TALWEG = os.environ.get("TALWEG", "build/release/bin/talweg")
MARK = "TALWEG_TEST_FOLDER"
# No correct run comes near it, however busy the machine is.
PATIENCE_S = 60

SMALL_JOB = """
name: small
model: {type: logistic, features: 600}
data: {generated: {rows: 3000, test_rows: 500, features: 600, nonzeros: 6}}
train: {epochs: 2, batch: 128, optimizer: {type: adagrad, lr: 0.1}}
distribute: {workers: 3, servers: 2}
"""


def wait_until(condition, seconds=PATIENCE_S):
    """The condition's value, true or what it is at the end of the time."""
    end = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return value


class TalwegTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.dir = Path(tempfile.mkdtemp(prefix="talweg-test-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.addCleanup(self.end_leftovers)

    def write(self, name, text):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def options(self, env=None, file_size=None):
        def limit():
            if file_size is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))
        return {"cwd": self.dir, "env": {**os.environ, MARK: str(self.dir), **(env or {})}, "text": True,
                "preexec_fn": limit}

    def run_talweg(self, *arguments, **options):
        return subprocess.run([TALWEG, *map(str, arguments)], capture_output=True, timeout=PATIENCE_S,
                              stdin=subprocess.DEVNULL, **self.options(**options))

    def start_talweg(self, *arguments, **options):
        process = subprocess.Popen([TALWEG, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, start_new_session=True, **self.options(**options))
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process

    def processes(self):
        """Of this test: process id -> command line. Those that only wait to be reaped do not count."""
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                if f"{MARK}={self.dir}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().decode().split("\0")[:-1]
            except OSError:
                continue
        return {pid: command for pid, command in found.items() if command}

    def nodes(self):
        """Id of a node -> its process."""
        return {int(command[command.index("--id") + 1]): pid for pid, command in self.processes().items()
                if "node" in command[:2]}

    def end_leftovers(self):
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def assert_error(self, result, *parts, lines=1):
        """It failed by itself, in so many lines, which say what is to be said."""
        self.assertGreater(result.returncode, 0, f"{result.args} was ended by a signal or succeeded:\n{result.stderr}")
        self.assertEqual(result.stderr.count("\n"), lines, result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)

    def assert_trained(self, result):
        """Returns the checksum of the model."""
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        return re.search(r"checksum ([0-9a-f]{8})", result.stdout)[1]

    def temporary_files(self):
        return [str(path) for path in self.dir.rglob("*") if ".tmp" in path.name]


def main():
    unittest.main(verbosity=2)
