"""Trains peers of Talweg on LibSVM files of clicks, one pass each, for `talweg bench clicks --peers`.

clicks.py TRAIN TEST FOLDER
Answers every line on standard input with one training of each peer, a line of JSON each, so that the caller can train
in between. The first line out says that all is ready. What is timed is the pass: the rows are in memory before it, or
in the peer's own cache in FOLDER.
"""
import json
import os
import sys
import time

import numpy
import vowpalwabbit
from scipy.sparse import csr_matrix
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import roc_auc_score

FEATURES = 1 << 20


def read_rows(path):
    """Rows of one length whose values are all 1, which is how the benchmark makes them."""
    with open(path, encoding="ascii") as file:
        text = file.read()
    width = text[:text.index("\n")].count(":")
    numbers = numpy.fromstring(text.replace(":1 ", " ").replace(":1\n", "\n"), dtype=numpy.int32, sep=" ")
    numbers = numbers.reshape(-1, width + 1)
    keys = numpy.ascontiguousarray(numbers[:, 1:])
    if (numpy.diff(keys, axis=1) <= 0).any() or keys.min() < 0 or keys.max() >= FEATURES:
        sys.exit(f"{path}: not rows of rising keys below {FEATURES}")
    places = numpy.arange(0, keys.size + 1, width, dtype=numpy.int32)
    rows = csr_matrix((numpy.ones(keys.size), keys.ravel(), places), shape=(len(keys), FEATURES))
    return rows, numbers[:, 0] > 0


class SklearnAveraged:
    """Rate and penalty found as ours were, on a part of the training rows; the library's own rank worse (.702)."""

    name = "scikit-learn, averaged SGD"

    def __init__(self, train, test):
        self.rows, self.labels = train
        self.test_rows, self.test_labels = test

    def train(self):
        model = SGDClassifier(loss="log_loss", average=True, learning_rate="constant", eta0=0.04, alpha=1e-5,
                              max_iter=1, tol=None, random_state=1)
        start = time.perf_counter()
        model.fit(self.rows, self.labels)
        seconds = time.perf_counter() - start
        return seconds, roc_auc_score(self.test_labels, model.decision_function(self.test_rows))


class VowpalWabbit:
    """The library's own settings for clicks, from its binary cache."""

    name = "Vowpal Wabbit, from its cache"

    def __init__(self, train_path, test, folder):
        self.test_rows, self.test_labels = test
        self.model = os.path.join(folder, "peer.model")
        text = os.path.join(folder, "peer.vw")
        with open(train_path, encoding="ascii") as source, open(text, "w", encoding="ascii") as out:
            for line in source:
                label, keys = line.split(" ", 1)
                out.write(f"{1 if float(label) > 0 else -1} | {keys.replace(':1', '')}")
        self.settings = (f"--loss_function logistic -b {FEATURES.bit_length() - 1} --quiet --no_stdin "
                         f"-d {text} --cache_file {os.path.join(folder, 'peer.cache')} -f {self.model}")
        vowpalwabbit.Workspace(self.settings).finish()

    def train(self):
        start = time.perf_counter()
        workspace = vowpalwabbit.Workspace(self.settings)
        seconds = time.perf_counter() - start
        workspace.finish()
        return seconds, self.area()

    def area(self):
        """With the weights as they are in the model, by key: prediction row by row would take minutes."""
        workspace = vowpalwabbit.Workspace(f"--quiet --no_stdin -t -i {self.model}")
        weights = numpy.array([workspace.get_weight(key) for key in range(FEATURES)])
        workspace.finish()
        return roc_auc_score(self.test_labels, self.test_rows @ weights)


def main():
    train_path, test_path, folder = sys.argv[1:]
    test = read_rows(test_path)
    peers = [SklearnAveraged(read_rows(train_path), test), VowpalWabbit(train_path, test, folder)]
    print(json.dumps({"peers": [peer.name for peer in peers]}), flush=True)
    for _ in sys.stdin:
        for peer in peers:
            seconds, auc = peer.train()
            print(json.dumps({"name": peer.name, "seconds": seconds, "auc": auc}), flush=True)


if __name__ == "__main__":
    main()
