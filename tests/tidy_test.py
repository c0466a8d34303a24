#!/usr/bin/env python3
"""Breaks each rule of tidy.py once, in a tree of its own, and looks for the file and line in the complaint."""
import json
import tempfile
import unittest
from pathlib import Path

import tidy

OPENING = "// What it is for.\n"


class TidyTest(unittest.TestCase):
    def complaints(self, files, built=None):
        """Of a tree that holds these files, with a README in each folder of src/."""
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve()
            for name, text in files.items():
                file = root / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
                if name.startswith("src/") and "README" not in files:
                    (root / "src" / Path(name).parts[1] / "README.md").touch()
            commands = None
            if built is not None:
                commands = root / "build/compile_commands.json"
                commands.parent.mkdir()
                commands.write_text(json.dumps([{"directory": str(root), "file": file} for file in built]))
            return tidy.violations(tidy.Tree(root, commands))

    def assert_complains(self, files, *expected, built=None):
        self.assertEqual(self.complaints(files, built), list(expected))

    def one(self, name, line):
        """A file whose second line is `line`."""
        return {name: OPENING + line + "\n"}

    def test_a_tree_in_order_passes(self):
        self.assert_complains({
            "src/base/time.h": OPENING + '#include <chrono>\n',
            "src/io/io.h": OPENING + '#include <thread>\n#include "base/time.h"\n',
            "src/store/client.h": OPENING,
            "src/store/client.cc": '#include "store/client.h"\n#include "io/io.h"\nco_await io.sleep(delay);\n',
            "src/store/client_test.cc": '#include "store/client.h"\n#include "sim/world.h"\n',
            "run": "#!/usr/bin/env bash\n",
        })

    def test_a_later_layer_may_not_be_included(self):
        self.assert_complains(self.one("src/io/a.h", '#include "store/client.h"'),
                              "src/io/a.h:2: io/ may not use store/, which is a later layer")

    def test_folders_that_know_no_network_may_not_include_it(self):
        for folder, used in [("data", "io"), ("model", "store"), ("optim", "cluster"), ("optim", "sim")]:
            self.assert_complains(
                self.one(f"src/{folder}/a.h", f'#include "{used}/b.h"'),
                f"src/{folder}/a.h:2: {folder}/ knows nothing of networks, so it may not use {used}/")

    def test_a_quoted_include_names_a_folder_of_src(self):
        self.assert_complains(self.one("src/io/a.h", '#include "b.h"'),
                              'src/io/a.h:2: "b.h" does not start with a folder of src/')

    def test_a_folder_outside_the_layers_is_told(self):
        self.assert_complains(self.one("src/new/a.h", ""),
                              "src/new/a.h:1: src/new is not among the layers in tests/tidy.py")

    def test_protocol_folders_touch_nothing_but_io(self):
        lines = {
            "std::thread t;": "thread", "#include <thread>": "thread", "std::mutex m;": "lock",
            "#include <mutex>": "lock", "auto t = std::chrono::steady_clock::now();": "clock",
            "using std::chrono::system_clock;": "clock", "#include <sys/socket.h>": "socket",
            "#include <netinet/in.h>": "socket", "#include <random>": "random", "int r = rand();": "random",
            "usleep(5);": "sleep", "sleep_for(delay);": "sleep", "nanosleep(&t, nullptr);": "sleep",
        }
        for folder in ["cluster", "codec", "comm", "store", "train"]:
            for line, thing in lines.items():
                found = self.complaints(self.one(f"src/{folder}/a.h", line))
                self.assertEqual(len(found), 1, line)
                self.assertIn(f"src/{folder}/a.h:2: protocol code touches a {thing}", found[0])

    def test_other_folders_comments_strings_and_launchers_may_name_a_thread(self):
        for name, line in [("src/io/a.h", "std::thread t;"), ("src/store/a.h", "// std::thread"),
                           ("src/store/a.h", "/* std::thread */"), ("src/store/a.h", 'auto s = "std::thread";'),
                           ("src/store/a.h", 'auto s = R"(a " std::thread)";'),
                           ("src/train/launch.h", "std::thread t;"),
                           ("src/store/a.h", "auto n = 1'000; // rand('a')")]:
            self.assert_complains(self.one(name, line))

    def test_a_file_that_nobody_builds_is_told(self):
        files = {
            "src/io/a.cc": OPENING, "src/io/b.cc": OPENING,
            "src/store/a.proto": "", "src/store/b.proto": "",
            "tests/fuzz/a_fuzz.cc": OPENING, "tests/fuzz/b_fuzz.cc": OPENING,
            "tests/fuzz/CMakeLists.txt": "talweg_fuzz(a io/a.cc)\n",
        }
        self.assert_complains(files, *(f"{name}:1: no target builds this file" for name in
                                       ["src/io/b.cc", "src/store/b.proto", "tests/fuzz/b_fuzz.cc"]),
                              built=["src/io/a.cc", "build/release/generated/store/a.pb.cc"])

    def test_a_file_opens_with_a_comment_unless_its_header_does(self):
        complaint = "does not open with a comment on what it is for"
        self.assert_complains({"src/io/a.h": "#pragma once\n", "src/io/a.cc": "", "src/io/a_test.cc": "",
                               "src/io/b.cc": "", "src/io/c_test.cc": ""},
                              *(f"src/io/{name}:1: {complaint}" for name in ["a.h", "b.cc", "c_test.cc"]))

    def test_a_folder_needs_a_readme(self):
        self.assert_complains({"README": "", "src/io/a.h": OPENING}, "src/io:1: has no README.md")

    def test_tabs_trailing_blanks_and_long_lines_are_told(self):
        for name in ["src/io/a.h", "bench/a.py", "tools/a.sh", ".ci/run"]:
            self.assert_complains(self.one(name, "a\tb"), f"{name}:2: a tab")
            self.assert_complains(self.one(name, "a "), f"{name}:2: blanks at the end of the line")
            self.assert_complains(self.one(name, "a" * 121), f"{name}:2: 121 columns, at most 120 are allowed")
            self.assert_complains(self.one(name, "a" * 120))
        self.assert_complains(self.one("docs/a.md", "a" * 121))

    def test_code_is_ascii_and_comments_need_not_be(self):
        complaint = "src/io/a.h:2: a character outside ASCII, which only comments may have"
        self.assert_complains(self.one("src/io/a.h", 'auto s = "\u00b5s";'), complaint)
        self.assert_complains(self.one("src/io/a.h", "int \u00e9;"), complaint)
        self.assert_complains(self.one("src/io/a.h", "// \u00b5s"))

    def test_nothing_is_left_for_later(self):
        for word in ["TO" "DO", "FIX" "ME", "X" "XX"]:
            for name in ["src/io/a.h", "docs/a.md", "run"]:
                self.assert_complains(self.one(name, f"// {word}: later"),
                                      f"{name}:2: '{word}': do it, or open an issue")
        self.assert_complains(self.one("src/io/a.h", '"/tmp/aXXXXXX"'))

    def test_no_test_is_skipped(self):
        for name, line in [("src/io/a.h", "GTEST_" "SKIP();"), ("src/io/a.h", "TEST(A, DISABLED" "_b) {}"),
                           ("tests/CMakeLists.txt", "set_tests_properties(a PROPERTIES DISABLED" " TRUE)"),
                           ("tests/a.py", "@unittest." "skip"), ("src/io/a.h", "#if" " 0")]:
            self.assert_complains(self.one(name, line), f"{name}:2: a test or code that is switched off")

    def test_an_include_by_absolute_path_is_told(self):
        self.assert_complains(self.one("src/io/a.h", "#include </usr/include/stdio.h>"),
                              "src/io/a.h:2: an include by absolute path")


if __name__ == "__main__":
    unittest.main()
