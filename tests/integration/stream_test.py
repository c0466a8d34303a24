"""Learning from a stream, as real processes: standard input, a file that grows, and what ends or spoils them."""
import json
import re
import signal
import subprocess
import time

from talweg_testing import PATIENCE_S, TALWEG, TalwegTest, main, wait_until

JOB = """
name: online
model: {features: 300}
data: {test: test.svm, format: libsvm}
train: {batch: 40, optimizer: {type: adagrad, lr: 0.1}}
distribute: {workers: 2, servers: 1}
"""
ROWS = 12000
OPTIONS = ["--features", 300, "--nonzeros", 8, "--signal", 0.8]


class Stream(TalwegTest):
    def setUp(self):
        super().setUp()
        self.job = self.write("job.yaml", JOB)
        self.generate("train.svm", 0, ROWS)
        self.generate("test.svm", ROWS, 2000)
        self.rows = (self.dir / "train.svm").read_text()

    def generate(self, name, first, count):
        made = self.run_talweg("generate", "clicks", "--out", name, "--rows", count, "--first-row", first, *OPTIONS)
        self.assertEqual(made.returncode, 0, made.stderr)

    def batch_loss(self):
        """The best that some passes over the same rows reach."""
        result = self.run_talweg("train", self.job, "--quiet", "--launch", "threads", "--set", "data.train=train.svm",
                                 "--set", "train.epochs=4", "--set", "runs=batch_runs")
        self.assert_trained(result)
        return min(map(float, re.findall(r"held-out loss ([0-9.]+)", result.stdout)))

    def start_stream(self, source, *settings, stdin=subprocess.DEVNULL):
        process = subprocess.Popen([TALWEG, "train", str(self.job), "--quiet", "--set", f"data.stream={source}",
                                    *settings], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   start_new_session=True, **self.options())
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process

    def trained_loss(self, process, output):
        self.assertEqual(process.returncode, 0, output[1])
        self.assertEqual(len(list(self.dir.glob("runs/*/model.talweg"))), 1)
        return float(re.findall(r"held-out loss ([0-9.]+)", output[0])[-1])

    def rows_used(self):
        """As the newest metrics tell."""
        lines = [line for path in self.dir.glob("runs/*/metrics.jsonl") for line in path.read_text().splitlines()]
        return json.loads(lines[-1])["rows"] if lines else 0

    def test_one_pass_over_standard_input_comes_near_what_many_passes_reach(self):
        process = self.start_stream("-", stdin=subprocess.PIPE)
        output = process.communicate(self.rows, timeout=PATIENCE_S)
        self.assertLess(self.trained_loss(process, output), 1.05 * self.batch_loss())
        self.assertEqual(self.rows_used(), ROWS)

    def test_a_file_that_grows_is_learned_from_until_it_is_idle(self):
        growing = self.write("growing.svm", "")
        process = self.start_stream("growing.svm", "--set", "data.stream_idle=2s")
        lines = self.rows.splitlines(keepends=True)
        with growing.open("a") as file:
            for first in range(0, ROWS, 3000):
                file.write("".join(lines[first:first + 3000]))
                file.flush()
                time.sleep(0.3)
        output = process.communicate(timeout=PATIENCE_S)
        self.assertLess(self.trained_loss(process, output), 1.05 * self.batch_loss())
        self.assertEqual(self.rows_used(), ROWS)

    def test_an_interrupt_ends_a_growing_file_in_order_and_keeps_the_model(self):
        growing = self.write("growing.svm", self.rows)
        process = self.start_stream("growing.svm")

        def trains():
            # A worker tells of its steps when it makes some.
            with growing.open("a") as file:
                file.write(self.rows[:self.rows.index("\n", 5000) + 1])
            return self.rows_used() > 0
        self.assertTrue(wait_until(trains), "the job does not train")
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=PATIENCE_S)
        self.assertLess(self.trained_loss(process, output), 0.7)
        self.assertTrue(wait_until(lambda: not self.processes()), "processes stay behind")

    def test_a_bad_row_stops_the_job_and_is_named_by_its_line(self):
        lines = self.rows.splitlines(keepends=True)
        lines[4321] = "1 7:one\n"
        process = self.start_stream("-", stdin=subprocess.PIPE)
        _, errors = process.communicate("".join(lines), timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 1)
        self.assertIn("4322", errors)
        self.assertEqual(errors.count("\n"), 1, errors)

    def test_bad_rows_are_skipped_where_the_job_says_so_up_to_a_number(self):
        lines = self.rows.splitlines(keepends=True)
        for at in (10, 20, 30):
            lines[at] = "nonsense\n"
        skipping = ["--set", "data.bad_rows=skip", "--set", "data.max_bad_rows=3"]
        process = self.start_stream("-", *skipping, stdin=subprocess.PIPE)
        output = process.communicate("".join(lines), timeout=PATIENCE_S)
        self.trained_loss(process, output)
        self.assertEqual(self.rows_used(), ROWS - 3)
        lines[40] = "nonsense\n"
        process = self.start_stream("-", *skipping, stdin=subprocess.PIPE)
        _, errors = process.communicate("".join(lines), timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 1)
        self.assertIn("more than 3 bad rows", errors)
        self.assertIn("standard input:11:", errors)


if __name__ == "__main__":
    main()
