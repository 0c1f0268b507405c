"""Any history of deeds on a tree, beside a model of what a tree is."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from backendai_hub.core.errors import HubError
from backendai_hub.safefs.archives import ArchiveKind, extract, stream_archive
from backendai_hub.safefs.listing import Listing
from backendai_hub.safefs.opening import Way, choose_way
from backendai_hub.safefs.paths import Parts
from backendai_hub.safefs.placing import Conflict, other_names
from backendai_hub.safefs.tree import Tree
from tests.unit.safefs_trees import HAS_OPENAT2

# Few names, so that they meet.
NAMES = st.sampled_from(["a", "b", "c.d"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(tuple)
CONTENTS = st.binary(max_size=2)
CONFLICTS = st.sampled_from(Conflict)
FOLDER = None

Model = dict[Parts, bytes | None]
"""What is under each path: the content of a file, or None for a folder."""


class RefusedError(Exception):
    """The model does not allow it."""


def below(parts: Parts, top: Parts) -> bool:
    return parts[: len(top)] == top


class Trees(RuleBasedStateMachine):
    """Each deed is done to the tree and to the model; both agree on what is allowed."""

    @initialize(
        way=st.sampled_from([Way.KERNEL, Way.STEPS] if HAS_OPENAT2 else [Way.STEPS]),
        staged=st.booleans(),
    )
    def begin(self, way, staged):
        choose_way(way)
        self.place = tempfile.TemporaryDirectory(dir="/tmp")
        top = Path(self.place.name)
        (top / "tree").mkdir()
        (top / "staging").mkdir()
        self.staging = Tree.at(top / "staging")
        self.tree = Tree.at(top / "tree", staging=self.staging if staged else None)
        self.model: Model = {}

    def teardown(self):
        choose_way(None)
        if hasattr(self, "tree"):
            self.tree.close()
            self.staging.close()
            self.place.cleanup()

    def agree(self, deed, in_model) -> None:
        """Do it to both; where one refuses, the other does, and nothing changes."""
        after = dict(self.model)
        try:
            expected = in_model(after)
        except RefusedError:
            try:
                found = deed()
            except HubError:
                return
            raise AssertionError(f"allowed although it is not: {found}") from None
        assert deed() == expected
        self.model = after

    # What a tree is, once more.

    def in_folder(self, model: Model, parts: Parts) -> None:
        for depth in range(1, len(parts)):
            if model.get(parts[:depth], b"") is not FOLDER:
                raise RefusedError

    def taken(self, model: Model, parts: Parts) -> bool:
        return parts in model

    def put(self, model: Model, branch: Model, target: Parts, conflict: Conflict):
        """Add *branch*, whose top is ``()``, under *target*."""
        self.in_folder(model, target)
        if conflict is Conflict.RENAME:
            names = other_names(target[-1])
            target = next(
                p for p in ((*target[:-1], n) for n in names) if p not in model
            )
        elif target in model:
            if conflict is Conflict.FAIL:
                raise RefusedError
            if (model[target] is FOLDER) != (branch[()] is FOLDER):
                raise RefusedError
            if any(below(p, target) and p != target for p in model):
                raise RefusedError
        model.update({target + p: content for p, content in branch.items()})
        return target

    def branch(self, model: Model, source: Parts) -> Model:
        if source not in model:
            raise RefusedError
        return {p[len(source) :]: c for p, c in model.items() if below(p, source)}

    # The deeds.

    @rule(parts=PATHS, content=CONTENTS)
    def create(self, parts, content):
        def deed():
            made = self.tree.create(parts)
            try:
                os.write(made, content)
            finally:
                os.close(made)

        def in_model(model):
            self.put(model, {(): content}, parts, Conflict.FAIL)

        self.agree(deed, in_model)

    @rule(parts=PATHS, parents=st.booleans(), exist_ok=st.booleans())
    def make_folder(self, parts, parents, exist_ok):
        def in_model(model):
            before = len(model)
            if parents:
                for depth in range(1, len(parts)):
                    if model.setdefault(parts[:depth], FOLDER) is not FOLDER:
                        raise RefusedError
            if not (exist_ok and model.get(parts, b"") is FOLDER):
                self.put(model, {(): FOLDER}, parts, Conflict.FAIL)
            return len(model) - before  # so many folders were made

        self.agree(
            lambda: self.tree.make_folder(parts, parents=parents, exist_ok=exist_ok),
            in_model,
        )

    @rule(source=PATHS, goal=PATHS, conflict=CONFLICTS)
    def move(self, source, goal, conflict):
        def in_model(model):
            branch = self.branch(model, source)
            if source == goal:
                if conflict is Conflict.FAIL:
                    raise RefusedError
                if conflict is Conflict.REPLACE:
                    return goal
            elif below(goal, source):
                raise RefusedError
            placed = self.put(dict(model), branch, goal, conflict)
            for parts in list(model):
                if below(parts, source):
                    del model[parts]
            model.update({placed + p: content for p, content in branch.items()})
            return placed

        self.agree(lambda: self.tree.move(source, goal, conflict=conflict), in_model)

    @rule(source=PATHS, goal=PATHS, conflict=CONFLICTS)
    def copy(self, source, goal, conflict):
        def in_model(model):
            return self.put(model, self.branch(model, source), goal, conflict)

        self.agree(
            lambda: self.tree.copy(source, goal, conflict=conflict).parts, in_model
        )

    @rule(content=CONTENTS, goal=PATHS, conflict=CONFLICTS)
    def publish(self, content, goal, conflict):
        def deed():
            name = ("upload",)
            made = self.staging.create(name)
            os.write(made, content)
            os.close(made)
            try:
                return self.staging.publish(name, goal, conflict=conflict, to=self.tree)
            except HubError:
                self.staging.remove(name)
                raise

        def in_model(model):
            return self.put(model, {(): content}, goal, conflict)

        self.agree(deed, in_model)

    @rule(parts=PATHS)
    def remove(self, parts):
        def in_model(model):
            branch = self.branch(model, parts)
            for name in branch:
                del model[parts + name]
            return len(branch)

        self.agree(lambda: self.tree.remove(parts), in_model)

    @rule(source=PATHS, goal=PATHS, kind=st.sampled_from(ArchiveKind))
    def pack_and_unpack(self, source, goal, kind):
        def deed():
            made = os.memfd_create("archive")
            try:
                stream_archive(self.tree, [source], kind, lambda p: os.write(made, p))
                return extract(self.tree, made, goal).parts
            finally:
                os.close(made)

        def in_model(model):
            branch = self.branch(model, source)
            if model.get(goal, b"") is FOLDER:
                self.put(model, branch, (*goal, source[-1]), Conflict.FAIL)
                return goal
            inner = {(source[-1], *p): content for p, content in branch.items()}
            return self.put(model, {(): FOLDER, **inner}, goal, Conflict.FAIL)

        self.agree(deed, in_model)

    # What is always true.

    @invariant()
    def the_tree_is_the_model(self):
        if not hasattr(self, "tree"):
            return
        found: Model = {}
        top = Path(self.place.name, "tree")
        for entry in sorted(top.rglob("*")):
            parts = entry.relative_to(top).parts
            found[parts] = FOLDER if entry.is_dir() else entry.read_bytes()
        assert found == self.model
        assert not any(Path(self.place.name, "staging").iterdir())

    @invariant()
    def what_it_tells_is_true(self):
        if not hasattr(self, "tree"):
            return
        listed = {entry.name for entry in self.tree.list((), Listing()).entries}
        assert listed == {parts[0] for parts in self.model}
        usage = self.tree.usage()
        contents = [c for c in self.model.values() if c is not FOLDER]
        assert usage.bytes == sum(map(len, contents))
        assert usage.entries == len(self.model)


TestTrees = Trees.TestCase
TestTrees.settings = settings(max_examples=40, stateful_step_count=25)
