"""Nodes that are started by hand, as on several hosts: two network namespaces stand for the hosts where that is
allowed, the loopback interface elsewhere."""
import os
import re
import shlex
import signal
import subprocess

from talweg_testing import SMALL_JOB, TALWEG, TalwegTest, main, wait_until

BOUND_S = 20


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=10)


class Hosts:
    """Two hosts with a cable between them, or this one twice."""

    def __init__(self):
        names = [f"tw{os.getpid()}{side}" for side in "ab"]
        self.namespaces = []
        self.addresses = ["127.0.0.1", "127.0.0.1"]
        try:
            for name in names:
                ip("netns", "add", name)
                self.namespaces.append(name)
            ip("link", "add", names[0], "netns", names[0], "type", "veth", "peer", "name", names[1], "netns", names[1])
            for i, name in enumerate(names):
                ip("-n", name, "addr", "add", f"10.77.0.{i + 1}/24", "dev", name)
                ip("-n", name, "link", "set", name, "up")
                ip("-n", name, "link", "set", "lo", "up")
            self.addresses = ["10.77.0.1", "10.77.0.2"]
        except (OSError, subprocess.SubprocessError):
            self.close()

    def close(self):
        for name in self.namespaces:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=10, check=False)
        self.namespaces = []

    def command(self, host, arguments):
        prefix = ["ip", "netns", "exec", self.namespaces[host]] if self.namespaces else []
        return [*prefix, TALWEG, *arguments]


class ManualLaunch(TalwegTest):
    def setUp(self):
        super().setUp()
        self.hosts = Hosts()
        self.addCleanup(self.hosts.close)
        self.started = []

    def start(self, host, arguments, env=None):
        process = subprocess.Popen(self.hosts.command(host, arguments), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, **self.options(env=env))
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        self.started.append(process)
        return process

    def start_coordinator(self, *settings):
        """Returns it, the secret, and the commands that it asks for."""
        job = self.write("job.yaml", SMALL_JOB + "cluster: {heartbeat: 100ms, lost_after: 2s, join_timeout: 20s}\n")
        self.coordinator = self.start(0, ["train", str(job), "--launch", "manual", "--quiet",
                                          "--set", "distribute.transport=tcp",
                                          "--set", f"distribute.listen={self.hosts.addresses[0]}:0", *settings])
        secret = re.search(r"(TALWEG_JOB_SECRET)=(\w+)", self.coordinator.stdout.readline())
        commands = [shlex.split(self.coordinator.stdout.readline()) for _ in range(5)]
        return {secret[1]: secret[2]}, commands

    def start_node(self, host, command, secret):
        self.assertEqual(command[:2], ["talweg", "node"])
        arguments = [word.replace("HOST", self.hosts.addresses[host]) for word in command[1:]]
        return self.start(host, arguments, env=secret)

    def test_nodes_started_by_hand_on_two_hosts_train_the_model_of_threads(self):
        secret, commands = self.start_coordinator()
        # Started against their order: the second host has a server and workers, so has the first.
        nodes = [self.start_node(i % 2, command, secret) for i, command in reversed(list(enumerate(commands)))]
        output, errors = self.coordinator.communicate(timeout=BOUND_S)
        self.assertEqual((self.coordinator.returncode, errors), (0, ""))
        for node in nodes:
            _, errors = node.communicate(timeout=BOUND_S)
            self.assertEqual((node.returncode, errors), (0, ""))
        threads = self.assert_trained(self.run_talweg("train", "job.yaml", "--launch", "threads", "--quiet"))
        self.assertIn(f"checksum {threads}", output)

    def start_endless(self):
        secret, commands = self.start_coordinator("--set", "train.epochs=1000000")
        nodes = [self.start_node(i % 2, command, secret) for i, command in enumerate(commands)]
        trains = lambda: any(path.stat().st_size for path in self.dir.glob("runs/*/metrics.jsonl"))
        self.assertTrue(wait_until(trains), "the job does not train")
        return nodes

    def assert_fails(self, process, *parts):
        _, errors = process.communicate(timeout=BOUND_S)
        self.assertGreater(process.returncode, 0, errors)
        for part in parts:
            self.assertIn(part, errors)

    def test_nodes_end_when_the_coordinator_is_killed(self):
        nodes = self.start_endless()
        self.coordinator.kill()
        for node in nodes:
            self.assert_fails(node, "coordinator")

    def test_nodes_end_when_one_of_them_is_killed_on_its_host(self):
        nodes = self.start_endless()
        nodes[3].kill()
        self.assert_fails(self.coordinator, "worker 1")
        for node in nodes[:3] + nodes[4:]:
            self.assert_fails(node, "worker 1")

    def test_a_node_that_was_stopped_for_too_long_ends_when_it_goes_on(self):
        nodes = self.start_endless()
        nodes[2].send_signal(signal.SIGSTOP)
        self.assert_fails(self.coordinator, "worker 0")
        self.assertIsNone(nodes[2].poll())
        nodes[2].send_signal(signal.SIGCONT)
        self.assert_fails(nodes[2])

    def test_nodes_that_do_not_come_are_named_to_the_person_and_to_those_that_came(self):
        secret, commands = self.start_coordinator("--set", "cluster.join_timeout=2s")
        came = self.start_node(1, commands[0], secret)
        self.assert_fails(self.coordinator, "server 1, worker 0, worker 1 and worker 2 did not join within 2 s")
        self.assert_fails(came, "node 1", "did not join")

    def test_a_node_with_another_secret_is_not_let_in(self):
        _, commands = self.start_coordinator("--set", "cluster.join_timeout=2s")
        intruder = self.start_node(1, commands[0], {"TALWEG_JOB_SECRET": "guessed"})
        self.assert_fails(self.coordinator, "server 0", "did not join")
        self.assert_fails(intruder, "node 1")


if __name__ == "__main__":
    main()
