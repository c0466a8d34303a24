"""report.json: what every worker and every shard counted, complete and consistent, however the job was run."""
import json

from talweg_testing import SMALL_JOB, TalwegTest, main

WORKERS, SHARDS, ROWS, FIELDS, EPOCHS, STEPS = 3, 2, 3000, 6, 2, 48


class Report(TalwegTest):
    def train(self, *settings, launch="threads"):
        job = self.write("job.yaml", SMALL_JOB)
        arguments = [part for setting in settings for part in ("--set", setting)]
        result = self.run_talweg("train", job, "--quiet", "--launch", launch, *arguments)
        self.assert_trained(result)
        return result, self.report()

    def report(self):
        latest = max(self.dir.glob("runs/*/report.json"), key=lambda path: path.stat().st_mtime_ns)
        return json.loads(latest.read_text())

    def test_is_complete_and_adds_up_however_the_job_is_launched(self):
        for launch in ["threads", "processes", "simulator"]:
            with self.subTest(launch):
                self.check_job(self.train(launch=launch)[1])

    def check_job(self, report):
        self.assertEqual((report["job"], report["sync"], report["reached_target"]), ("small", "bsp", False))
        self.assertGreater(report["seconds"], 0)
        self.assertEqual([epoch["epoch"] for epoch in report["epochs"]], [0, 1])
        self.assertLessEqual(report["epochs"][0]["seconds"], report["epochs"][1]["seconds"])
        for measure in ["loss", "auc", "accuracy", "calibration", "ece"]:
            self.assertGreater(report["epochs"][0][measure], 0)
        self.assertEqual([worker["rank"] for worker in report["workers"]], [0, 1, 2])
        self.assertEqual(sum(worker["rows"] for worker in report["workers"]), EPOCHS * ROWS)
        for worker in report["workers"]:
            self.check_worker(worker)
        self.assertEqual(len(report["shards"]), SHARDS)
        weights = [shard["tables"][0] for shard in report["shards"]]
        for table in weights:
            self.check_table(table)
        keys = sum(table["rows"] for table in weights)
        self.assertGreater(keys, 500)
        self.assertLessEqual(keys, 600)
        # A row of data has a key of each field; a batch names each key once.
        self.assertLessEqual(sum(table["keys_pushed"] for table in weights), EPOCHS * ROWS * FIELDS)

    def check_worker(self, worker):
        self.assertEqual((worker["steps_done"], worker["steps_skipped"], worker["late"]), (STEPS, 0, 0))
        self.assertGreater(worker["compute_ns"], 0)
        self.assertAlmostEqual(worker["idle_share"],
                               worker["wait_ns"] / (worker["wait_ns"] + worker["compute_ns"]), places=9)
        # One push of each of the two tables at each step.
        self.assertEqual(worker["pushes"], 2 * STEPS)
        self.assertGreaterEqual(worker["pulls"], 2 * STEPS)
        self.assertGreater(worker["messages_sent"], worker["pushes"])
        self.assertGreater(worker["bytes_sent"], worker["bytes_pushed"])
        self.assertGreater(worker["bytes_received"], 0)
        self.assertGreater(worker["bytes_pulled"], 0)
        # A push names the keys of its pull by their hash.
        self.assertGreaterEqual(worker["lists_known"], SHARDS * STEPS)

    def check_table(self, table):
        self.assertEqual(table["name"], "weights")
        self.assertGreater(table["bytes"], 0)
        self.assertEqual((table["pushes"], table["updates"]), (WORKERS * STEPS, STEPS))
        self.assertEqual((table["staleness"], table["widest_gap"], table["late"]), ([WORKERS * STEPS], 0, 0))
        self.assertGreaterEqual(table["lists_known"], WORKERS * STEPS)
        self.assertGreater(len(table["hot_keys"]), 0)
        self.assertEqual(len(table["hot_keys"]), len(table["hot_counts"]))
        self.assertEqual(table["hot_counts"], sorted(table["hot_counts"], reverse=True))
        self.assertTrue(all(key < 600 for key in table["hot_keys"]))

    def test_staleness_stays_within_the_bound_and_is_in_the_closing_table(self):
        result, report = self.train("distribute.sync=ssp(2)", launch="simulator")
        self.assertEqual(report["sync"], "ssp(2)")
        for shard in report["shards"]:
            table = shard["tables"][0]
            self.assertEqual(sum(table["staleness"]), WORKERS * STEPS)
            self.assertLessEqual(table["widest_gap"], 2)
            self.assertEqual(table["updates"], WORKERS * STEPS)
        self.assertRegex(result.stdout, r"staleness +\| mean \d+\.\d\d, largest \d+( or more)? updates missed")

    def test_a_target_that_is_reached_ends_the_job(self):
        result, report = self.train("train.target.loss=10", "train.epochs=5")
        self.assertTrue(report["reached_target"])
        self.assertEqual(len(report["epochs"]), 1)
        self.assertRegex(result.stdout, r"target +\| reached after epoch 1 \(\d+\.\d\d s\)")

    def test_only_measures_that_apply_to_the_model_are_there(self):
        result, report = self.train("model.type=mf", "data.generated.kind=ratings")
        self.assertIn("rmse", report["epochs"][0])
        self.assertNotIn("auc", report["epochs"][0])
        self.assertIn("RMSE", result.stdout)
        self.assertNotIn("AUC", result.stdout)

    def test_a_stream_has_steps_and_rows(self):
        result, report = self.train("data.stream=generated")
        self.assertEqual(report["rows"], ROWS)
        self.assertRegex(result.stdout, r"steps +\| 24 ")
        self.assertIn("| evaluation 1 ", result.stdout)

    def test_a_job_that_fails_has_one_too(self):
        job = self.write("job.yaml", SMALL_JOB)
        self.assert_error(self.run_talweg("train", job, "--quiet", "--set", "tables.quota=1000"), "table 'weights'")
        self.assertIn("table 'weights'", self.report()["error"])


if __name__ == "__main__":
    main()
