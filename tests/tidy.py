#!/usr/bin/env python3
"""Checks what a reviewer should not have to: layers, stray clocks and sockets, files nobody builds, plain form.

tidy.py [--root FOLDER] [--compile-commands FILE]
Prints `file:line: complaint` for each violation and fails if there is any. Each rule is one function that yields
(file, line, complaint); tidy_test.py breaks each of them once.
"""
import argparse
import json
import re
import sys
from pathlib import Path

# docs/architecture.md: a folder of src/ includes only from itself and from folders before it. bench/ is beside src/.
LAYERS = ("base math io sim cluster codec comm optim store data model train tasks matrix federated plan serve bench "
          "cli").split()
KNOW_NO_NETWORK = {"math", "optim", "data", "model"}
NETWORK = {"io", "sim", "cluster", "codec", "comm", "store"}

PROTOCOL_FOLDERS = {"cluster", "codec", "comm", "store", "train"}
# The edges of train/, where nodes become threads and processes.
MAY_TOUCH_THE_WORLD = ("src/train/launch",)
WORLD = [
    (r"std::(jthread|thread|async|this_thread)\b|#include <(thread|future)>", "a thread: use Io::compute"),
    (r"std::\w*mutex\b|std::condition_variable|#include <(mutex|shared_mutex|condition_variable)>",
     "a lock: a node is single-threaded"),
    (r"\b(steady|system|high_resolution)_clock\b|\b(clock_gettime|gettimeofday)\b", "a clock: use Io::now"),
    (r"#include <(sys/socket|sys/epoll|sys/un|netinet/.*|arpa/.*|netdb|poll)\.h>|#include <boost/asio",
     "a socket: use Io::send and Io::recv"),
    (r"#include <random>|std::random_device|\bs?rand\(", "a random source: use Io::rng"),
    (r"\bu?sleep\(|\bsleep_(for|until)\(|\bnanosleep\b", "a sleep: use Io::sleep"),
]
# `co_await io.sleep(...)` is the very thing to use.
THROUGH_IO = re.compile(r"(\.|->)sleep(_until)?\(")

NOT_SOURCE = {".git", "build", "data", "runs"}
SCRIPTS = {"run", "test", ".ci/run"}
SOURCE_SUFFIXES = {".h", ".cc", ".cu", ".py", ".sh"}
TEXT_SUFFIXES = SOURCE_SUFFIXES | {".md", ".cmake", ".txt", ".proto", ".yaml", ".json"}
COLUMNS = 120

# Raw strings, strings, characters (not the ' in 1'000) and comments, in the order the language finds them.
LITERAL_OR_COMMENT = re.compile(
    r'R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"' r'|"(?:\\.|[^"\\\n])*"' r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"
    r"|(?P<comment>//[^\n]*|/\*.*?\*/)", re.DOTALL)


class Tree:
    """The files of the repository, by path relative to its root."""

    def __init__(self, root, compile_commands=None):
        self.root = Path(root).resolve()
        self.compile_commands = compile_commands
        self.files = sorted(p.relative_to(self.root) for p in self.root.rglob("*")
                            if p.is_file() and p.relative_to(self.root).parts[0] not in NOT_SOURCE)

    def text(self, path):
        return (self.root / path).read_text(encoding="utf-8", errors="replace")

    def lines(self, path):
        return list(enumerate(self.text(path).split("\n"), 1))

    def code_lines(self, path, keep_strings=False):
        """The lines of a C++ file with its comments blanked, and its literals too unless they are kept."""
        def blank(match):
            if keep_strings and not match["comment"]:
                return match[0]
            return re.sub(r"[^\n]", " ", match[0])
        return list(enumerate(LITERAL_OR_COMMENT.sub(blank, self.text(path)).split("\n"), 1))

    def cpp(self):
        return [p for p in self.files if p.suffix in {".h", ".cc", ".cu"}]

    def source(self):
        return [p for p in self.files if p.suffix in SOURCE_SUFFIXES or str(p) in SCRIPTS]

    def prose_and_source(self):
        return [p for p in self.files if p.suffix in TEXT_SUFFIXES or str(p) in SCRIPTS]


def folder_of(path):
    """X for src/X/...; None elsewhere."""
    return path.parts[1] if path.parts[0] == "src" and len(path.parts) > 2 else None


def layers_hold(tree):
    for path in tree.cpp():
        folder = folder_of(path)
        if folder is None:
            continue
        if folder not in LAYERS:
            yield path, 1, f"src/{folder} is not among the layers in tests/tidy.py"
            continue
        for line, text in tree.lines(path):
            match = re.match(r'\s*#\s*include "([^"]*)"', text)
            if not match:
                continue
            used = match[1].split("/")[0]
            if used not in LAYERS or "/" not in match[1]:
                yield path, line, f'"{match[1]}" does not start with a folder of src/'
            elif LAYERS.index(used) > LAYERS.index(folder):
                yield path, line, f"{folder}/ may not use {used}/, which is a later layer"
            elif folder in KNOW_NO_NETWORK and used in NETWORK:
                yield path, line, f"{folder}/ knows nothing of networks, so it may not use {used}/"


def protocols_see_only_io(tree):
    for path in tree.cpp():
        if folder_of(path) not in PROTOCOL_FOLDERS or path.as_posix().startswith(MAY_TOUCH_THE_WORLD):
            continue
        for line, text in tree.code_lines(path):
            for pattern, complaint in WORLD:
                if re.search(pattern, THROUGH_IO.sub("", text)):
                    yield path, line, f"protocol code touches {complaint}"


def every_source_is_built(tree):
    if tree.compile_commands is None:
        return
    commands = json.loads(Path(tree.compile_commands).read_text())
    built = {(Path(c["directory"]) / c["file"]).resolve().as_posix() for c in commands}
    fuzz_list = tree.root / "tests/fuzz/CMakeLists.txt"
    fuzz_names = re.findall(r"^talweg_fuzz\((\w+)", fuzz_list.read_text(), re.M) if fuzz_list.exists() else []
    built |= {(tree.root / f"tests/fuzz/{name}_fuzz.cc").as_posix() for name in fuzz_names}
    for path in tree.files:
        if path.suffix == ".cc" and (tree.root / path).as_posix() not in built:
            yield path, 1, "no target builds this file"
        if path.suffix == ".proto":
            generated = path.relative_to("src").with_suffix(".pb.cc").as_posix() if folder_of(path) else path.name
            if not any(file.endswith("/generated/" + generated) for file in built):
                yield path, 1, "no target builds this file"


def files_say_what_they_are_for(tree):
    """A source is introduced by its header; every other file introduces itself."""
    for path in tree.cpp():
        header = tree.root / path.parent / (path.stem.removesuffix("_test") + ".h")
        if path.suffix != ".h" and header.exists():
            continue
        if not tree.text(path).startswith("//"):
            yield path, 1, "does not open with a comment on what it is for"


def folders_have_a_readme(tree):
    for folder in sorted({folder_of(path) for path in tree.files} - {None}):
        if Path("src", folder, "README.md") not in tree.files:
            yield Path("src", folder), 1, "has no README.md"


def form_is_plain(tree):
    for path in tree.source():
        for line, text in tree.lines(path):
            if "\t" in text:
                yield path, line, "a tab"
            if text != text.rstrip():
                yield path, line, "blanks at the end of the line"
            if len(text) > COLUMNS:
                yield path, line, f"{len(text)} columns, at most {COLUMNS} are allowed"


def code_is_ascii(tree):
    for path in tree.cpp():
        for line, text in tree.code_lines(path, keep_strings=True):
            if not text.isascii():
                yield path, line, "a character outside ASCII, which only comments may have"


def nothing_is_left_for_later(tree):
    words = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b")
    for path in tree.prose_and_source():
        for line, text in tree.lines(path):
            if match := words.search(text):
                yield path, line, f"'{match[0]}': do it, or open an issue"


def no_test_is_skipped(tree):
    skips = re.compile(r"\bGTEST_" r"SKIP\b|\bDISABLED" r"_\w|\bDISABLED" r"\s+(TRUE|ON|1)\b|unittest\." r"skip"
                       r"|^\s*#\s*if" r" 0\b")
    for path in tree.prose_and_source():
        for line, text in tree.lines(path):
            if path.suffix != ".md" and skips.search(text):
                yield path, line, "a test or code that is switched off"


def includes_are_relative(tree):
    for path in tree.cpp():
        for line, text in tree.lines(path):
            if re.match(r'\s*#\s*include\s*["<]/', text):
                yield path, line, "an include by absolute path"


RULES = [layers_hold, protocols_see_only_io, every_source_is_built, files_say_what_they_are_for,
         folders_have_a_readme, form_is_plain, code_is_ascii, nothing_is_left_for_later, no_test_is_skipped,
         includes_are_relative]


def violations(tree, rules=RULES):
    return [f"{path.as_posix()}:{line}: {complaint}" for rule in rules for path, line, complaint in rule(tree)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--compile-commands")
    arguments = parser.parse_args()
    found = violations(Tree(arguments.root, arguments.compile_commands))
    print("\n".join(found) or "tidy")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
