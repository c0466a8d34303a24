"""A standing server group: jobs that use it at the same time do not see each other, however they end; nor does it leave
anything behind."""
import itertools
import os
import re
import signal
import subprocess
import time
from pathlib import Path

from talweg_testing import SMALL_JOB, TalwegTest, main, wait_until

QUICK = "cluster: {heartbeat: 100ms, lost_after: 5s}\n"
JOB = SMALL_JOB.replace("servers: 2", "servers: 1") + QUICK
ENDLESS_JOB = JOB.replace("epochs: 2", "epochs: 1000000")
# lost_after, and the time a busy machine may take; below the patience of the store's calls.
BOUND_S = 30


def names_of_sockets():
    lines = Path("/proc/net/unix").read_text(encoding="utf-8").splitlines()[1:]
    return {line.split()[-1] for line in lines if line.split()[-1].startswith("@")}


class GroupTest(TalwegTest):
    def start_group(self, transport, *settings):
        file = self.write("group.yaml", f"servers: 2\ntransport: {transport}\n{QUICK}")
        group = self.start_talweg("group", file, "--log", "group.log", *settings)
        said = re.match(r"Server group at (\S+): 2 shards\..* (TALWEG_GROUP_SECRET)=(\w+) ", group.stdout.readline())
        self.assertIsNotNone(said, "the group does not start")
        self.address, self.secret = said[1], {said[2]: said[3]}
        return group

    def on_group(self, *arguments):
        return ["--quiet", "--set", f"distribute.group={self.address}", *arguments]

    def start_job(self, file, *arguments):
        return self.start_talweg("train", self.dir / file, *self.on_group(*arguments), env=self.secret)

    counter = itertools.count()

    def start_endless(self, file, *arguments):
        """A job that trains until something happens to it."""
        self.write(file, ENDLESS_JOB)
        runs = f"runs-{next(self.counter)}"  # an earlier job's would look like this one's
        job = self.start_job(file, "--set", f"runs={runs}", *arguments)
        trains = lambda: any(path.stat().st_size for path in self.dir.glob(f"{runs}/*/metrics.jsonl"))
        self.assertTrue(wait_until(lambda: trains() or job.poll() is not None), "the job does not train")
        if job.poll() is not None:
            self.fail(f"the job ended by itself: {self.finish(job).stderr}")
        return job

    def run_job(self, file, *arguments):
        return self.run_talweg("train", self.dir / file, *self.on_group(*arguments), env=self.secret)

    def finish(self, process):
        output, errors = process.communicate(timeout=60)
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    def log(self):
        return (self.dir / "group.log").read_text(encoding="utf-8")

    def assert_ends(self, group):
        group.send_signal(signal.SIGINT)
        _, errors = group.communicate(timeout=BOUND_S)
        self.assertEqual((group.returncode, errors), (0, ""))
        self.assertTrue(wait_until(lambda: not self.processes(), BOUND_S), self.processes())

    def for_each_transport(self, check):
        for transport in ["shm", "tcp"]:
            with self.subTest(transport):
                check(transport)
                self.doCleanups()
                self.setUp()


class Sharing(GroupTest):
    def test_jobs_at_the_same_time_train_the_models_that_they_train_alone(self):
        def check(transport):
            self.write("job.yaml", JOB)
            variants = [["--set", f"data.generated.seed={seed}", "--set", f"train.seed={seed}"] for seed in [1, 2]]
            alone = [self.assert_trained(self.run_talweg("train", "job.yaml", "--quiet", "--set",
                                                         "distribute.servers=2", *variant)) for variant in variants]
            self.assertNotEqual(alone[0], alone[1])
            group = self.start_group(transport)
            # However the others meet, this one is there all the time, with the same tables.
            third = self.start_endless("third.yaml", "--set", "data.generated.seed=3")
            jobs = [self.start_job("job.yaml", *variant) for variant in variants]
            self.assertEqual([self.assert_trained(self.finish(job)) for job in jobs], alone)
            self.assertIsNone(third.poll(), "the third job ended")
            self.assertEqual(self.log().count("has ended"), 2, self.log())
            group.send_signal(signal.SIGINT)
            self.assertIn("the server group has ended: interrupted", self.finish(third).stderr)
            self.assertEqual(self.finish(group).returncode, 0)
        self.for_each_transport(check)

    def test_a_job_that_exceeds_its_quota_fails_and_the_others_finish(self):
        group = self.start_group("shm", "--set", "max_bytes_per_job=4000000")
        self.write("job.yaml", JOB)
        other = self.start_endless("other.yaml")
        self.assert_error(self.run_job("job.yaml", "--set", "tables.quota=1000"), "1000", "bytes")
        self.assert_error(self.run_job("job.yaml", "--set", "tables.quota=4000001"),
                          "job 'small' asks for 4000001 bytes on each shard", "at most 4000000")
        self.assert_trained(self.run_job("job.yaml"))
        self.assertIsNone(other.poll(), "the other job ended")
        other.send_signal(signal.SIGINT)
        self.assertIn("interrupted", self.finish(other).stderr)
        self.assert_ends(group)

    def test_the_tables_of_a_killed_job_go_and_no_other_ones(self):
        def check(transport):
            # A table begins with 2 MiB on a shard, so there is room for two jobs and not for three.
            group = self.start_group(transport, "--set", "store.max_bytes=5000000")
            self.write("job.yaml", JOB)
            other = self.start_endless("other.yaml", "--set", "name=other")
            killed = self.start_endless("killed.yaml", "--set", "name=killed")
            self.assert_error(self.run_job("job.yaml"),
                              "of the 5000000 bytes that may be taken on a shard (store.max_bytes)")
            killed.kill()
            killed.communicate()
            self.assertTrue(wait_until(lambda: "'killed' is lost: its tables go" in self.log(), BOUND_S), self.log())
            self.assertTrue(wait_until(lambda: self.run_job("job.yaml").returncode == 0, BOUND_S), "no room was made")
            self.assertIsNone(other.poll(), "the other job ended")
            group.send_signal(signal.SIGINT)
            self.assertIn("the server group has ended: interrupted", self.finish(other).stderr)
            self.assertEqual(self.finish(group).returncode, 0)
        self.for_each_transport(check)


class Ends(GroupTest):
    def test_jobs_of_a_group_that_lost_a_server_end_with_its_name(self):
        def check(transport):
            group = self.start_group(transport)
            servers = self.nodes()
            jobs = [self.start_endless(file) for file in ["one.yaml", "two.yaml"]]
            os.kill(servers[2], signal.SIGKILL)
            began = time.monotonic()
            for job in jobs:
                self.assert_error(self.finish(job), "the server group has ended: server 1", "was killed by signal 9")
            self.assertLess(time.monotonic() - began, BOUND_S)
            self.assert_error(self.finish(group), "group: server 1", "was killed by signal 9")
            self.assertTrue(wait_until(lambda: not self.processes(), BOUND_S), self.processes())
        self.for_each_transport(check)

    def test_jobs_of_a_killed_group_end(self):
        group = self.start_group("tcp")
        job = self.start_endless("job.yaml")
        group.kill()
        self.assert_error(self.finish(job), "the server group is lost")
        self.assertTrue(wait_until(lambda: not self.processes(), BOUND_S), self.processes())

    def test_an_interrupted_group_ends_in_order_and_leaves_nothing(self):
        for number in [signal.SIGINT, signal.SIGTERM]:
            before = set(os.listdir("/dev/shm")), names_of_sockets()
            group = self.start_group("shm")
            self.write("job.yaml", JOB)
            self.assert_trained(self.run_job("job.yaml"))
            own = {f"@{name}" for name in re.findall(r"at shm:(\S+)", self.log())}
            group.send_signal(number)
            output, errors = group.communicate(timeout=BOUND_S)
            self.assertEqual((group.returncode, output, errors), (0, "", ""))
            self.assertTrue(wait_until(lambda: not self.processes(), BOUND_S), self.processes())
            self.assertFalse(own & names_of_sockets())
            self.assertLessEqual({name for name in os.listdir("/dev/shm") if "talweg" in name}, before[0])
            self.doCleanups()
            self.setUp()


class Refused(GroupTest):
    def test_what_a_job_needs_to_get_in(self):
        group = self.start_group("tcp")
        self.write("job.yaml", JOB)
        quick = ["--set", "cluster.call_timeout=1s"]
        without = self.run_talweg("train", "job.yaml", *self.on_group())
        self.assert_error(without, "TALWEG_GROUP_SECRET is not set")
        self.secret = {"TALWEG_GROUP_SECRET": "guessed"}
        self.assert_error(self.run_job("job.yaml", *quick), f"server group {self.address}", "TALWEG_GROUP_SECRET")
        self.assert_error(self.run_job("job.yaml", "--launch", "threads"), "distribute: group", "processes")
        self.address = "nowhere"
        self.assert_error(self.run_job("job.yaml"), "group: 'nowhere'", "tcp:HOST:PORT")
        self.assertIsNone(group.poll())
        group.send_signal(signal.SIGINT)
        self.assertEqual(group.wait(BOUND_S), 0)

    def test_bad_settings_of_a_group(self):
        self.assert_error(self.run_talweg("group", "none.yaml"), "none.yaml", "No such file")
        self.assert_error(self.run_talweg("group", "--set", "server=2"), "did you mean 'servers'?")
        self.assert_error(self.run_talweg("group", "--set", "store.max_bytes=10", "--set", "max_bytes_per_job=11"),
                          "max_bytes_per_job: 11 bytes")
        self.assert_error(self.run_talweg("group", "--set", "listen=nowhere"), "listen")
        job = self.write("job.yaml", JOB)
        self.assert_error(self.run_talweg("train", job, "--set", "distribute.lease.first=3", "--set",
                                          "distribute.lease.shards=[a]"), "distribute.lease: only a server group")


if __name__ == "__main__":
    main()
