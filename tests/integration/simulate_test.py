"""`talweg simulate`: what it prints, and that a failure comes with the one command that shows it again."""
import csv
import re
import shlex

from talweg_testing import TalwegTest, main

SCENARIO = """
seeds: 2
faults: {random_drops: {per_second: 50}}
workload:
  model: {features: 500}
  data: {generated: {rows: 1000, test_rows: 100, features: 500, nonzeros: 5}}
  train: {batch: 100}
  distribute: {workers: 3, servers: 2}
"""


class Simulate(TalwegTest):
    def hashes(self, result):
        self.assertEqual(result.returncode, 0, result.stderr)
        return re.findall(r"^seed (\d+)  trace ([0-9a-f]{16})  .* ok$", result.stdout, re.M)

    def test_prints_a_hash_for_each_seed_that_is_the_same_each_time(self):
        scenario = self.write("scenario.yaml", SCENARIO)
        hashes = self.hashes(self.run_talweg("simulate", scenario))
        self.assertEqual([seed for seed, _ in hashes], ["1", "2"])
        self.assertNotEqual(hashes[0][1], hashes[1][1])
        self.assertEqual(self.hashes(self.run_talweg("simulate", scenario)), hashes)
        self.assertEqual(self.hashes(self.run_talweg("simulate", scenario, "--seed", 2)), hashes[1:])

    def test_a_failing_seed_prints_the_command_that_reproduces_it(self):
        scenario = self.write("odd name.yaml", SCENARIO + "expect: {auc: 1}\n")
        failed = self.run_talweg("simulate", scenario)
        self.assert_error(failed, "AUC", lines=2)
        command = shlex.split(re.search(r"^reproduce with: (.*)$", failed.stderr, re.M)[1])
        self.assertEqual(command[0], "talweg")
        again = self.run_talweg(*command[1:])
        self.assertEqual(again.returncode, 1)
        self.assertEqual(again.stdout, failed.stdout.splitlines(keepends=True)[-1])
        self.assertEqual(again.stderr, failed.stderr)

    def test_compares_the_values_of_a_setting_in_a_table_and_a_file(self):
        scenario = self.write("scenario.yaml", SCENARIO)
        vary = ["--vary", "workload.distribute.sync=bsp,ssp(2),asp", "--csv", "curve.csv"]
        result = self.run_talweg("simulate", scenario, "--set", "workload.train.epochs=2", *vary)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([line.split()[0] for line in result.stdout.splitlines()], ["sync", "bsp", "ssp(2)", "asp"])
        with open(self.dir / "curve.csv") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["value"] for row in rows], ["bsp", "ssp(2)", "asp"])
        # Ten steps in each of two epochs, of three workers.
        self.assertEqual([float(row["steps"]) for row in rows], [60, 60, 60])
        self.assertEqual(float(rows[0]["staleness"]), 0)
        self.assertGreater(float(rows[2]["staleness"]), 0)
        self.assertEqual(rows[0]["seconds_to_target"], "")

    def test_a_comparison_that_cannot_be_made_is_an_error(self):
        scenario = self.write("scenario.yaml", SCENARIO)
        self.assert_error(self.run_talweg("simulate", scenario, "--vary", "workload.distribute.sync"), "--vary", "key=")
        result = self.run_talweg("simulate", scenario, "--vary", "workload.distribute.sync=bsp,never", "--csv", "c.csv")
        self.assert_error(result, "workload.distribute.sync=never")
        self.assertFalse((self.dir / "c.csv").exists())

    def test_a_scenario_that_cannot_be_read_is_an_error(self):
        self.assert_error(self.run_talweg("simulate", "none.yaml"), "none.yaml", "No such file")
        wrong = self.write("wrong.yaml", SCENARIO.replace("random_drops", "randomdrops"))
        self.assert_error(self.run_talweg("simulate", wrong), "wrong.yaml:3:", "did you mean 'random_drops'?")
        nobody = self.write("nobody.yaml", SCENARIO + "faults: {crash: [{node: 77, at: 1s}]}\n")
        self.assert_error(self.run_talweg("simulate", nobody), "nobody.yaml", "faults", "twice")

    def test_a_fault_of_a_node_that_is_not_there_is_an_error(self):
        faults = "crash: [{node: 77, at: 1s}]"
        scenario = self.write("scenario.yaml", SCENARIO.replace("random_drops: {per_second: 50}", faults))
        result = self.run_talweg("simulate", scenario, "--seed", 1)
        self.assertEqual(result.returncode, 1)
        self.assertIn("77", result.stderr)


if __name__ == "__main__":
    main()
