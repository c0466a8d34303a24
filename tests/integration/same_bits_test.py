"""The same job gives the same bits, however and how often it is run."""
import struct

from talweg_testing import SMALL_JOB, TalwegTest, main


def tables_of(model):
    """A model file behind its head, which names the job and so depends on how that was run. See docs/formats.md."""
    content = model.read_bytes()
    head_bytes = struct.unpack_from("<I", content, 12)[0]
    tables = content[24 + (head_bytes + 7) // 8 * 8:]
    assert tables
    return tables


class SameBits(TalwegTest):
    def train(self, *arguments):
        runs = self.dir / f"runs{len(list(self.dir.iterdir()))}"
        result = self.run_talweg("train", self.job, "--quiet", "--set", f"runs={runs}", *arguments)
        checksum = self.assert_trained(result)
        (model,) = runs.glob("*/model.talweg")
        return checksum, tables_of(model)

    def assert_same_everywhere(self, *settings):
        self.job = self.write("job.yaml", SMALL_JOB)
        threads = self.train("--launch", "threads", *settings)
        ways = {
            "threads again": ["--launch", "threads"],
            "shared memory": ["--set", "distribute.transport=shm"],
            "shared memory again": ["--set", "distribute.transport=shm"],
            "tcp": ["--set", "distribute.transport=tcp"],
            "simulator": ["--launch", "simulator"],
        }
        for name, way in ways.items():
            with self.subTest(name):
                self.assertEqual(self.train(*way, *settings), threads)

    def test_a_job_gives_the_same_model_in_every_surrounding(self):
        self.assert_same_everywhere()

    def test_so_does_one_whose_servers_have_two_shards(self):
        self.assert_same_everywhere("--set", "distribute.shards_per_server=2", "--set", "train.precision=float64")

    def test_another_seed_gives_another_model(self):
        self.job = self.write("job.yaml", SMALL_JOB)
        other = self.train("--launch", "threads", "--set", "train.seed=2")
        self.assertNotEqual(self.train("--launch", "threads"), other)


if __name__ == "__main__":
    main()
