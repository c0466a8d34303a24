"""Whatever happens to one process of a job, all others end soon, one error names it, and nothing stays behind."""
import os
import re
import signal
from pathlib import Path

from talweg_testing import SMALL_JOB, TalwegTest, main, wait_until

# Ends only by what the tests do to it.
ENDLESS_JOB = SMALL_JOB.replace("epochs: 2", "epochs: 1000000") + "cluster: {heartbeat: 100ms, lost_after: 2s}\n"
# lost_after, and the time a busy machine may take; below every other patience of a job.
BOUND_S = 20
# Nodes 1 and 2 are the servers, 3 to 5 the workers.
SERVER_1, WORKER_0, WORKER_1 = 2, 3, 4


def names_of_sockets():
    """Inode -> name, of the sockets that have a name without a file."""
    lines = Path("/proc/net/unix").read_text().splitlines()[1:]
    rows = [line.split() for line in lines]
    return {row[6]: row[7] for row in rows if len(row) > 7 and row[7].startswith("@")}


def sockets_of(pid):
    inodes = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        match = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(fd))
        if match:
            inodes.add(match[1])
    return inodes


class RunningJob(TalwegTest):
    def start_job(self, *arguments, nodes=5):
        self.job = self.write("job.yaml", ENDLESS_JOB)
        launcher = self.start_talweg("train", self.job, "--quiet", "--set", "runs=runs", *arguments)
        self.assertTrue(wait_until(lambda: self.is_training() or launcher.poll() is not None), "the job does not train")
        self.assertIsNone(launcher.poll(), "the job ended by itself")
        self.assertEqual(len(self.nodes()), nodes)
        self.remember_resources()
        return launcher

    def is_training(self):
        return any(path.stat().st_size > 0 for path in self.dir.glob("runs/*/metrics.jsonl"))

    def remember_resources(self):
        names, used = names_of_sockets(), set()
        for pid in self.processes():
            used |= sockets_of(pid)
            self.assertNotIn("/dev/shm/", Path(f"/proc/{pid}/maps").read_text())
        self.socket_names = {names[inode] for inode in used & names.keys()}

    def assert_nothing_stays(self):
        self.assertTrue(wait_until(lambda: not self.processes(), BOUND_S), self.processes())
        self.assertFalse(self.socket_names & set(names_of_sockets().values()))
        self.assertEqual(self.temporary_files(), [])
        self.assertEqual(list(self.dir.glob("runs/*/model.talweg")), [])

    def assert_fails(self, launcher, *parts):
        output, errors = launcher.communicate(timeout=BOUND_S)
        self.assertGreater(launcher.returncode, 0, errors)
        self.assertEqual(errors.count("\n"), 1, errors)
        for part in parts:
            self.assertIn(part, errors)
        self.assertEqual(output, "")
        self.assert_nothing_stays()


class Kill(RunningJob):
    def for_each_transport(self, check):
        for transport in ["shm", "tcp"]:
            with self.subTest(transport):
                check(self.start_job("--set", f"distribute.transport={transport}"))
                self.doCleanups()
                self.setUp()

    def test_a_killed_worker_ends_the_job(self):
        def check(launcher):
            os.kill(self.nodes()[WORKER_1], signal.SIGKILL)
            self.assert_fails(launcher, "talweg: worker 1", "was killed by signal 9")
        self.for_each_transport(check)

    def test_a_killed_server_ends_the_job(self):
        def check(launcher):
            os.kill(self.nodes()[SERVER_1], signal.SIGKILL)
            self.assert_fails(launcher, "talweg: server 1", "was killed by signal 9")
        self.for_each_transport(check)

    def test_a_killed_launcher_leaves_no_node(self):
        def check(launcher):
            launcher.kill()
            launcher.communicate()
            self.assert_nothing_stays()
        self.for_each_transport(check)

    def test_a_stopped_worker_is_lost_and_cannot_come_back(self):
        def check(launcher):
            worker = self.nodes()[WORKER_0]
            os.kill(worker, signal.SIGSTOP)
            self.assert_fails(launcher, "worker 0", "lost")
            self.assertNotIn(worker, self.processes())
        self.for_each_transport(check)

    def test_a_stopped_server_is_lost(self):
        launcher = self.start_job()
        os.kill(self.nodes()[SERVER_1], signal.SIGSTOP)
        self.assert_fails(launcher, "server 1")


class Interrupt(RunningJob):
    def test_an_interrupted_launcher_ends_the_job_in_order(self):
        for number in [signal.SIGINT, signal.SIGTERM]:
            with self.subTest(number.name):
                launcher = self.start_job()
                launcher.send_signal(number)
                self.assert_fails(launcher, "talweg: interrupted")
                self.doCleanups()
                self.setUp()

    def test_so_does_an_interrupt_of_the_whole_group_as_a_terminal_sends_it(self):
        launcher = self.start_job()
        os.killpg(launcher.pid, signal.SIGINT)
        self.assert_fails(launcher, "talweg: interrupted")

    def test_an_interrupted_job_of_threads_ends_in_order(self):
        launcher = self.start_job("--launch", "threads", nodes=0)
        launcher.send_signal(signal.SIGINT)
        self.assert_fails(launcher, "talweg: interrupted")


if __name__ == "__main__":
    main()
