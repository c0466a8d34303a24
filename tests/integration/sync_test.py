"""When updates meet, as real processes: every word trains over both wires, and a bound on staleness holds for a worker
that is truly slow."""
import json
import os
import re
import signal
import threading
import time

from talweg_testing import PATIENCE_S, TalwegTest, main, wait_until

JOB = """
name: sync
model: {features: 300}
data: {generated: {rows: 24000, test_rows: 2000, features: 300, nonzeros: 8, signal: 0.8}}
train: {epochs: 1, batch: 60, optimizer: {type: adagrad, lr: 0.1}}
distribute: {workers: 3, servers: 2}
"""
FIRST_WORKER = 3  # behind the coordinator and two servers


class SyncWords(TalwegTest):
    def setUp(self):
        super().setUp()
        self.job = self.write("job.yaml", JOB)

    def auc(self, output):
        return float(re.findall(r"AUC ([0-9.]+)", output)[-1])

    def test_every_word_trains_over_both_wires(self):
        for wire in ("shm", "tcp"):
            for sync in ("bsp", "asp", "ssp(0)", "ssp(3)", "backup(1)", "value(1)"):
                with self.subTest(wire=wire, sync=sync):
                    result = self.run_talweg("train", self.job, "--quiet", "--set", f"distribute.transport={wire}",
                                             "--set", f"distribute.sync={sync}", "--set", "data.generated.rows=8000")
                    self.assert_trained(result)
                    self.assertGreater(self.auc(result.stdout), 0.8)

    def slow_down(self, process, pid):
        """Lets the worker run a small part of the time, until the job ends."""
        while process.poll() is None:
            try:
                os.kill(pid, signal.SIGSTOP)
                time.sleep(0.02)
                os.kill(pid, signal.SIGCONT)
                time.sleep(0.004)
            except ProcessLookupError:
                return

    def widest_gap(self, sync):
        """Of a job in which one worker is slow."""
        runs = self.dir / f"runs_{sync}"
        process = self.start_talweg("train", self.job, "--quiet", "--set", f"distribute.sync={sync}",
                                    "--set", f"runs={runs}")
        self.assertTrue(wait_until(lambda: FIRST_WORKER in self.nodes() or process.poll() is not None))
        slowing = threading.Thread(target=self.slow_down, args=(process, self.nodes()[FIRST_WORKER]))
        slowing.start()
        output, errors = process.communicate(timeout=PATIENCE_S)
        slowing.join()
        self.assertEqual((process.returncode, errors), (0, ""))
        (report,) = runs.glob("*/report.json")
        shards = json.loads(report.read_text())["shards"]
        return max(int(table.get("widest_gap", 0)) for shard in shards for table in shard["tables"])

    def test_nobody_is_further_ahead_of_a_slow_worker_than_the_bound(self):
        self.assertIn(self.widest_gap("ssp(2)"), (1, 2))

    def test_without_a_bound_the_others_run_far_ahead(self):
        self.assertGreater(self.widest_gap("asp"), 2)


if __name__ == "__main__":
    main()
