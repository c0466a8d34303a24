"""Bad input of every kind gives one clear error and a non-zero exit: no abort, no hang, nothing half-written."""
import shutil
import socket

from talweg_testing import SMALL_JOB, TalwegTest, main

FILES_JOB = """
name: files
model: {features: 600}
data: {train: train.svm, test: test.svm}
train: {batch: 128, optimizer: {type: adagrad, lr: 0.1}}
distribute: {workers: 2, servers: 1}
"""


class BadJobFile(TalwegTest):
    def assert_refused(self, text, *parts):
        with self.subTest(text):
            self.assert_error(self.run_talweg("train", self.write("job.yaml", text)), "job.yaml", *parts)
            self.assertFalse((self.dir / "runs").exists(), "a run was begun")

    def test_a_job_file_that_is_not_there_or_no_file(self):
        self.assert_error(self.run_talweg("train", "none.yaml"), "none.yaml", "No such file")
        self.assert_error(self.run_talweg("train", self.dir), str(self.dir), "directory")

    def test_a_job_file_that_is_not_yaml(self):
        self.assert_refused("name: [a\n", "job.yaml:2:", "not valid YAML")
        self.assert_refused("\x01\x02\x03")
        self.assert_refused("- a\n- b\n", "job.yaml:1:", "must be a map of settings")

    def test_an_unknown_key_comes_with_the_nearest_one(self):
        self.assert_refused("name: x\ntrain: {epoch: 3}\n", "job.yaml:2:", "train.epoch: unknown key",
                            "did you mean 'epochs'?")
        self.assert_refused("nme: x\n", "job.yaml:1:", "did you mean 'name'?")

    def test_a_wrong_type(self):
        self.assert_refused("train: {epochs: many}\n", "job.yaml:1: train.epochs: must be a whole number, not 'many'")
        self.assert_refused("train: {shuffle: 7}\n", "train.shuffle: must be true or false")
        self.assert_refused("model: 3\n", "model: must be a map of settings")
        self.assert_refused("name: {a: b}\n", "name: must be text")
        self.assert_refused("cluster: {lost_after: 3}\n", "'3' is not a duration", "2s")
        self.assert_refused("distribute: {sync: bps}\n", "distribute.sync", "bsp")

    def test_a_number_out_of_range(self):
        self.assert_refused("train: {epochs: 0}\n", "train.epochs: must be at least 1, not 0")
        self.assert_refused("distribute: {workers: 100000}\n", "distribute.workers: must be at most 10000")
        self.assert_refused("train: {optimizer: {lr: -1}}\n", "train.optimizer.lr: must be at least 0")

    def test_what_is_missing(self):
        self.assert_refused("name: x\n", "data.train: missing")
        self.assert_refused("", "data.train: missing")

    def test_names_that_nobody_knows(self):
        job = self.write("job.yaml", SMALL_JOB)
        for launch in ["processes", "threads", "simulator"]:
            self.assert_error(self.run_talweg("train", job, "--launch", launch, "--set", "model.type=logistik"),
                              "model.type", "did you mean 'logistic'?")
            self.assert_error(self.run_talweg("train", job, "--launch", launch, "--set", "train.optimizer.type=adagrd"),
                              "train.optimizer: there is no optimizer", "did you mean 'adagrad'?")


class BadSettings(TalwegTest):
    """Settings that can be read, but not be meant. Each is told with its name and what would do."""

    def refused(self, *settings, parts, launch="threads", begun=False):
        with self.subTest(settings):
            job = self.write("job.yaml", SMALL_JOB)
            arguments = [part for setting in settings for part in ("--set", setting)]
            result = self.run_talweg("train", job, "--quiet", "--launch", launch, *arguments)
            self.assertEqual(result.returncode, 1)
            self.assert_error(result, *parts)
            self.assertEqual((self.dir / "runs").exists(), begun)
            self.assertEqual(list(self.dir.glob("runs/*/model.talweg")), [])

    def test_words_that_say_when_updates_meet(self):
        for word in ["ssp", "ssp(x)", "ssp(2", "backup", "value()", "bsp(1)", "down"]:
            self.refused(f"distribute.sync={word}",
                         parts=["distribute.sync", f"'{word}' is none of", "bsp", "asp", "ssp(steps)",
                                "backup(workers)", "value(distance)"])
        self.refused("distribute.sync=ssp(-1)", parts=["ssp(-1)", "at least 0"])
        self.refused("distribute.sync=value(0)", parts=["value(0)", "above 0"])
        self.refused("distribute.sync=value(nan)", parts=["value(nan)", "above 0"])

    def test_backup_workers(self):
        self.refused("distribute.sync=backup(3)", parts=["sync: 3 of 3 workers", "at least one is needed"])
        for settings in [["distribute.sync=backup(1)", "distribute.dense_sync=asp"],
                         ["distribute.dense_sync=backup(1)"]]:
            self.refused(*settings, parts=["dense_sync", "with backup workers", "leave it out"])
        self.refused("distribute.sync=backup(1)", "distribute.push_every=2", parts=["push_every", "backup workers"])

    def test_where_the_rows_come_from(self):
        self.refused("data.stream=rows.svm", parts=["data.stream", "data.generated", "leave one out"])
        self.refused("data={stream: generated}", parts=["data.stream", "say in data.generated"])
        self.refused("data={stream: rows.svm, train: rows.svm}", parts=["data.stream", "data.train", "not from both"])
        self.refused("data.format=parquet", parts=["data.format", "'parquet'", "libsvm", "criteo", "npy"])
        self.refused("data.hash_bits=0", parts=["data.hash_bits", "at least 1"])
        self.refused("data.hash_bits=33", parts=["data.hash_bits", "at most 32"])
        self.refused("data.generated.kind=noise", parts=["data.generated.kind", "clicks", "ratings"])
        self.refused("data.generated.kind=regression", "data.generated.drift=0.1", parts=["drift", "clicks and fm"])
        self.refused("data.generated.drift=0.1", parts=["drift", "600 keys"])
        self.refused("data.generated.kind=ratings", "data.generated.users=600", parts=["users", "no item"])

    def test_optimizers_and_models(self):
        self.refused("train.optimizer.type=adamm", parts=["train.optimizer", "did you mean 'adam", "there are", "ftrl"])
        self.refused("train.optimizer.type=shampoo", parts=["train.optimizer", "shampoo", "dense table", "sparse"])
        self.refused("train.optimizer.type=adam", "train.optimizer.l1=1", parts=["adam", "l1", "ftrl"])
        self.refused("train.optimizer.schedule.type=cosine", parts=["schedule", "decay_steps"])
        self.refused("model.type=deep", parts=["model.type", "'deep'", "there are", "logistic", "mf"])

    def test_a_target_of_what_is_not_measured(self):
        self.refused("train.target.f1=0.5", parts=["train.target.f1", "unknown key", "loss, auc, accuracy, rmse"])
        self.refused("train.target.auc=1.5", parts=["train.target.auc", "at most 1"])
        self.refused("train.target.rmse=1", parts=["train.target: rmse", "loss, auc and accuracy"])
        self.refused("model.type=linear", "train.target.auc=0.5", parts=["train.target: auc", "loss and rmse"])
        self.refused("model.type=softmax", "train.target.auc=0.5", parts=["train.target: auc", "loss and accuracy"])
        self.refused("train.target.loss=1", "data.generated.test_rows=0", parts=["train.target", "no held-out rows"])

    def test_rows_that_would_expire_while_they_are_used(self):
        self.refused("tables.rows.expire_after=1s", parts=["rows.expire_after", "store.clock_timeout", "30s"],
                     begun=True)

    def test_memory_that_is_not_enough_ends_the_job_with_the_table_named(self):
        for launch in ["threads", "processes", "simulator"]:
            for setting, name in [("tables.quota=1000", "tables.quota"), ("tables.quota=20000", "tables.quota"),
                                  ("store.max_bytes=20000", "store.max_bytes"),
                                  ("tables.rows.max_bytes=1000", "rows.max_bytes")]:
                self.refused(setting, parts=["table 'weights'", f"({name})"], launch=launch, begun=True)

    def test_a_gradient_that_is_not_finite_ends_the_job_at_once_and_names_the_key(self):
        job = self.write("job.yaml", SMALL_JOB)
        for launch in ["threads", "processes"]:
            for in_flight in ["0", "1", "3"]:
                result = self.run_talweg("train", job, "--quiet", "--launch", launch, "--set", "model.type=linear",
                                         "--set", "train.optimizer={type: sgd, lr: 1e30}",
                                         "--set", f"distribute.in_flight={in_flight}")
                self.assert_error(result, "push to table", "is not finite")
                self.assertRegex(result.stderr, r"the gradient of (key|value) \d+ is not finite")

    def test_gradients_that_are_not_finite_can_be_taken_as_zero(self):
        job = self.write("job.yaml", SMALL_JOB)
        result = self.run_talweg("train", job, "--quiet", "--launch", "threads", "--set", "model.type=linear",
                                 "--set", "train.optimizer={type: sgd, lr: 1e30}", "--set", "tables.non_finite=zero")
        self.assert_trained(result)
        self.assertRegex(result.stdout, r"not finite +\| \S+ gradients were made zero")


class BadArguments(TalwegTest):
    def test_arguments_that_are_wrong(self):
        job = self.write("job.yaml", SMALL_JOB)
        for arguments, part in [
                ([], "subcommand"), (["trian"], "subcommand"), (["train"], "job is required"),
                (["train", job, "--bogus"], "--bogus"), (["train", job, "--launch", "moon"], "moon"),
                (["node"], "--coordinator"), (["node", "--coordinator", "x", "--id", "0"], "--id"),
                (["node", "--coordinator", "x", "--id", "1", "--count", "0"], "--count"),
                (["simulate"], "scenario"), (["simulate", "x", "--seed", "no"], "--seed"),
                (["generate"], "subcommand"), (["generate", "clicks"], "--out"),
                (["generate", "ratings", "--out", "x", "--nonzeros", "3"], "--nonzeros"),
                (["generate", "clicks", "--out", "x", "--noise", "3"], "--noise"),
                (["generate", "fm", "--out", "x", "--factors", "0"], "--factors"),
                (["generate", "regression", "--out", "x", "--noise", "-1"], "--noise")]:
            with self.subTest(arguments):
                self.assert_error(self.run_talweg(*arguments), part, lines=2)

    def test_settings_that_are_wrong(self):
        job = self.write("job.yaml", SMALL_JOB)
        for setting, part in [
                ("train.epoch=3", "train.epoch: unknown key; did you mean 'epochs'?"),
                ("train.epochs=x", "whole number"),
                ("train.epochs=0", "at least 1"), ("train.epochs", "give key=value"), ("=1", "give key=value"),
                ("name.x=1", "name: must be text, not a map"), ("train=1", "must be a map"),
                ("train=[", "not valid YAML")]:
            with self.subTest(setting):
                self.assert_error(self.run_talweg("train", job, "--set", setting), f"talweg: --set {setting}:", part)

    def test_rows_that_cannot_be_generated(self):
        for arguments, part in [(["ratings", "--features", 10, "--users", 10], "users"),
                                (["clicks", "--features", 3], "39"),
                                (["clicks", "--features", 600, "--drift", 0.5], "drift")]:
            with self.subTest(arguments):
                self.assert_error(self.run_talweg("generate", *arguments, "--out", "x.svm", "--rows", 10), part)
                self.assertFalse((self.dir / "x.svm").exists())

    def test_explain_prints_every_setting_with_its_meaning_and_trains_nothing(self):
        job = self.write("job.yaml", SMALL_JOB)
        result = self.run_talweg("train", job, "--explain", "--set", "train.epochs=9")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"(?m)^  epochs: 9 +# passes over the training rows$")
        for line in result.stdout.splitlines():
            self.assertRegex(line, r"^ *(# )?\w+:.* # \S")
        self.assertFalse((self.dir / "runs").exists())
        again = self.write("explained.yaml", result.stdout)
        self.assertEqual(self.run_talweg("train", again, "--explain").stdout, result.stdout)


class WithFiles(TalwegTest):
    def setUp(self):
        super().setUp()
        self.job = self.write("job.yaml", FILES_JOB)
        for name, first, rows in [("train", 0, 3000), ("test", 3000, 500)]:
            made = self.run_talweg("generate", "clicks", "--out", f"{name}.svm", "--rows", rows, "--first-row", first,
                                   "--features", 600, "--nonzeros", 6)
            self.assertEqual(made.returncode, 0, made.stderr)

    def train(self, *arguments, **options):
        return self.run_talweg("train", self.job, "--quiet", *arguments, **options)


class BadData(WithFiles):
    def test_a_file_that_is_not_there_or_no_file(self):
        (self.dir / "test.svm").unlink()
        self.assert_error(self.train(), "test.svm", "No such file")
        (self.dir / "train.svm").unlink()
        self.assert_error(self.train(), "train.svm", "No such file")
        (self.dir / "train.svm").mkdir()
        self.assert_error(self.train(), "train.svm", "directory")

    def test_a_file_without_rows(self):
        for text in ["", "# nothing\n\n"]:
            self.write("train.svm", text)
            self.assert_error(self.train(), "train.svm")

    def test_a_malformed_line_is_named_by_file_and_number(self):
        with open(self.dir / "train.svm", "a", encoding="utf-8") as file:
            file.write("1 5:1 6:what\n")
        self.assert_error(self.train(), "train.svm:3001:", "6:what")
        self.assertFalse((self.dir / "train.svm.talweg").exists())
        result = self.train("--set", "data.bad_rows=skip")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("1 bad rows were skipped", result.stderr)

    def test_a_malformed_line_of_the_held_out_rows(self):
        self.write("test.svm", "1 2:1\nx 3:1\n")
        self.assert_error(self.train(), "test.svm:2:")

    def test_a_key_beyond_the_features(self):
        for launch in ["processes", "threads"]:
            self.assert_error(self.train("--launch", launch, "--set", "model.features=100"),
                              "data.train", "model.features is 100", "set it to at least")
        self.write("test.svm", "1 600:1\n")
        self.assert_error(self.train(), "data.test", "has key 600", "at least 601")

    def test_a_cache_that_was_damaged_is_made_anew(self):
        checksum = self.assert_trained(self.train())
        cache = self.dir / "train.svm.talweg"
        whole = cache.read_bytes()
        flipped = bytearray(whole)
        flipped[len(whole) // 2] ^= 1
        for damaged in [whole[:len(whole) // 2], whole[:-1], bytes(flipped), b"", b"x" * len(whole)]:
            cache.write_bytes(damaged)
            again = self.train()
            self.assertRegex(again.stderr, r"train\.svm\.talweg is damaged: .*; making it anew")
            again.stderr = ""
            self.assertEqual(self.assert_trained(again), checksum)
            self.assertEqual(cache.read_bytes(), whole)

    def test_a_changed_file_is_read_again(self):
        checksum = self.assert_trained(self.train())
        shutil.copy(self.dir / "test.svm", self.dir / "train.svm")
        self.assertNotEqual(self.assert_trained(self.train()), checksum)


class FullDisk(WithFiles):
    """A limit on the size of files stands for the disk: writing beyond it fails as on a full one."""

    def test_writing_the_cache(self):
        self.assert_error(self.train(file_size=8192), "cannot write the data cache", "train.svm.talweg")
        self.assertEqual(self.temporary_files(), [])
        self.assertFalse((self.dir / "train.svm.talweg").exists())
        self.assert_trained(self.train())

    def test_writing_the_model(self):
        self.assert_trained(self.train())
        shutil.rmtree(self.dir / "runs")
        self.assert_error(self.train("--launch", "threads", file_size=4096), "model.talweg")
        self.assertEqual(self.temporary_files(), [])
        self.assertEqual(list(self.dir.glob("runs/*/model.talweg")), [])

    def test_writing_the_metrics_keeps_the_model(self):
        job = self.write("job.yaml", SMALL_JOB.replace("600", "40"))
        result = self.run_talweg("train", job, "--quiet", "--launch", "threads", "--set", "train.epochs=40",
                                 file_size=6000)
        self.assert_error(result, "metrics.jsonl")
        self.assertEqual(len(list(self.dir.glob("runs/*/model.talweg"))), 1)

    def test_a_runs_folder_that_cannot_be(self):
        self.write("file", "")
        self.assert_error(self.train("--set", "runs=file"), "cannot make a folder for the run", "file")
        self.assert_error(self.train("--set", "runs=/proc/runs"), "cannot make a folder for the run", "/proc/runs")

    def test_writing_generated_rows(self):
        result = self.run_talweg("generate", "clicks", "--out", "big.svm", "--rows", 5000, file_size=8192)
        self.assert_error(result, "big.svm")
        self.assertEqual(self.temporary_files(), [])
        self.assertFalse((self.dir / "big.svm").exists())


class BadNetwork(TalwegTest):
    def test_a_port_in_use(self):
        job = self.write("job.yaml", SMALL_JOB)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            result = self.run_talweg("train", job, "--set", "distribute.transport=tcp",
                                     "--set", f"distribute.listen={address}")
        self.assert_error(result, "distribute.listen", address, "in use")

    def test_an_address_that_is_none(self):
        job = self.write("job.yaml", SMALL_JOB)
        for address in ["nonsense", "127.0.0.1:", "192.0.2.1:0"]:
            result = self.run_talweg("train", job, "--set", "distribute.transport=tcp",
                                     "--set", f"distribute.listen={address}")
            self.assert_error(result, "distribute.listen", address)

    def test_a_node_without_what_it_needs(self):
        node = ["node", "--id", 1, "--join-timeout", "100ms", "--coordinator"]
        secret = {"TALWEG_JOB_SECRET": "x"}
        self.assert_error(self.run_talweg(*node, "tcp:127.0.0.1:1"), "TALWEG_JOB_SECRET is not set")
        self.assert_error(self.run_talweg(*node, "127.0.0.1:1", env=secret), "--coordinator", "tcp:HOST:PORT")
        self.assert_error(self.run_talweg(*node, "tcp:127.0.0.1:1", env=secret), "node 1", "tcp:127.0.0.1:1", "refused")
        self.assert_error(self.run_talweg(*node, "shm:nobody", env=secret), "node 1", "shm:nobody")
        log = self.write("file", "") / "log"
        self.assert_error(self.run_talweg(*node, "tcp:127.0.0.1:1", "--log", log, env=secret), "file/log")
        node[4] = "soon"
        self.assert_error(self.run_talweg(*node, "tcp:127.0.0.1:1", env=secret), "--join-timeout", "soon")


if __name__ == "__main__":
    main()
