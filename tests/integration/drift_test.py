"""A stream of a hundred million distinct keys, as threads of one process: rows that expire keep its memory bounded."""
import json
import resource
import subprocess

from talweg_testing import TALWEG, TalwegTest, main

KEYS = 100_000_000
PER_ROW = 39
JOB = f"""
name: drift
model: {{features: 400000000}}
data:
  stream: generated
  generated:
    rows: {KEYS // PER_ROW + 1}
    test_rows: 1000
    features: 400000000
    nonzeros: {PER_ROW}
    drift: {PER_ROW}
    window: 65536
train: {{batch: 4096, optimizer: {{type: sgd, lr: 0.1}}}}
distribute: {{workers: 2, servers: 2, launch: threads}}
store: {{clock_timeout: 1s, call_timeout: 20s}}
tables: {{rows: {{expire_after: 2100ms}}}}
"""
# A row takes about 40 bytes at the least: all of them would need more.
MOST_BYTES = 3 << 30
BOUND_S = 280


class Drift(TalwegTest):
    def test_memory_stays_bounded_while_keys_come_and_go(self):
        job = self.write("job.yaml", JOB)
        result = subprocess.run([TALWEG, "train", str(job), "--quiet"], capture_output=True, timeout=BOUND_S,
                                stdin=subprocess.DEVNULL, **self.options())
        self.assert_trained(result)
        (report,) = self.dir.glob("runs/*/report.json")
        shards = json.loads(report.read_text())["shards"]
        weights = [table for shard in shards for table in shard["tables"] if table["name"] == "weights"]
        came = sum(table["rows"] + table["expired"] for table in weights)
        self.assertGreaterEqual(came, KEYS)
        self.assertLess(sum(table["rows"] for table in weights), KEYS / 4)
        self.assertLess(sum(table["bytes"] for table in weights), MOST_BYTES)
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024, MOST_BYTES)


if __name__ == "__main__":
    main()
