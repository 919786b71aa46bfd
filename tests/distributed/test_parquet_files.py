"""Trees on Dask in directories of Parquet: they come back as they were, and damage is noticed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

import evertree as et
from evertree.errors import CorruptFileError, FileFormatError, NewerFormatError, StoreError
from evertree.io.json_values import to_json
from evertree.tree.scheme import Scheme

distributed = pytest.importorskip("distributed", reason="distributed trees need Dask")
pd = pytest.importorskip("pandas")
files = pytest.importorskip("evertree.distributed.parquet_files")
generations = pytest.importorskip("evertree.distributed.generations")


def points(n: int = 80) -> np.ndarray:
    rng = np.random.default_rng(0)
    return 5 * rng.normal(size=(6, 3))[rng.integers(6, size=n)] + rng.normal(size=(n, 3))


@pytest.fixture(scope="module")
def original(client, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("original") / "tree"
    et.distributed.cluster(points(), client, part_size=25).save(path)
    return path


@pytest.fixture
def saved(original, tmp_path) -> Path:
    """A saved tree, to be damaged or written over."""
    return Path(shutil.copytree(original, tmp_path / "tree"))


def named(saved: Path, name: str) -> Path:
    """The file of a saved tree that has this name, and the generation in it."""
    start, _, end = name.rpartition("-") if name.startswith("part") else (name.removesuffix(".parquet"), "", ".parquet")
    (path,) = saved.glob(f"{start}-*{end}")
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("linkage", "metric", "params", "dtype"),
    [
        ("ward", "euclidean", None, np.float64),
        ("ward", "seuclidean", {"V": [1.0, 2.0, 1 / 3]}, np.float64),
        ("average", "cosine", None, np.float32),
    ],
)
def test_a_tree_comes_back_as_it_was(client, tmp_path, linkage, metric, params, dtype):
    x = points().astype(dtype)
    t = et.distributed.cluster(
        x, client, linkage=linkage, metric=metric, metric_params=params, part_size=25, search_width=3, seed=7
    )
    t.remove([5, 6])
    t.save(tmp_path / "tree")
    u = et.distributed.load(tmp_path / "tree", client)
    assert repr(u) == repr(t)
    u.validate()
    np.testing.assert_array_equal(u.linkage_matrix(77), t.linkage_matrix(77))
    np.testing.assert_array_equal(u.cut(n_clusters=9).compute(), t.cut(n_clusters=9).compute())
    np.testing.assert_array_equal(u.keys().compute(), t.keys().compute())
    np.testing.assert_array_equal(u.to_hierarchy().points(), np.delete(x, [5, 6], axis=0))
    assert u._header() == t._header()
    assert u.report.stopped_by is None
    more = points(30) + 1
    assert u.insert(more) == t.insert(more) == range(80, 110)
    u.validate()
    assert u.is_monotone()


@pytest.mark.slow
@pytest.mark.parametrize("n", [0, 1])
def test_small_trees(client, tmp_path, n):
    et.distributed.cluster(points(n), client).save(tmp_path / "tree")
    t = et.distributed.load(tmp_path / "tree", client)
    assert len(t) == n
    t.validate()
    t.insert(points(4))
    t.validate()


@pytest.mark.slow
def test_other_programs_can_read_the_points(saved):
    parts = [pd.read_parquet(path) for path in sorted(saved.glob("*-points.parquet"))]
    assert len(parts) > 1
    table = pd.concat(parts).sort_values("key")
    assert table["key"].tolist() == list(range(80))
    np.testing.assert_array_equal(np.stack(table["point"]), points())


@pytest.mark.slow
def test_saving_over_the_directory_that_it_was_read_from(client, saved):
    before = sorted(saved.parent.iterdir())
    t = et.distributed.load(saved, client)
    t.insert(points(40))
    t.save(saved)
    assert sorted(saved.parent.iterdir()) == before  # and nothing beside it
    t.validate()
    u = et.distributed.load(saved, client)
    np.testing.assert_array_equal(u.linkage_matrix(119), t.linkage_matrix(119))
    t.insert(points(5))
    t.validate()


@pytest.mark.slow
def test_nothing_refers_to_files_that_were_written_over(client, saved):
    """Or a worker that is lost later could not be made up for."""

    def tasks() -> set[str]:
        return {key for key in client.cluster.scheduler.tasks if str(key).startswith("load-")}

    before = tasks()
    t = et.distributed.load(saved, client)
    assert t.is_monotone()
    old = tasks() - before
    assert old
    t.save(saved)
    t.validate()
    for _ in range(100):
        if not old & tasks():
            break
        time.sleep(0.05)
    assert not old & tasks()


@pytest.mark.slow
def test_a_link_stays_a_link(client, saved):
    link = saved.with_name("link")
    link.symlink_to(saved)
    t = et.distributed.load(link, client)
    t.remove([0])
    t.save(link)
    assert link.is_symlink()
    assert len(et.distributed.load(saved, client)) == 79
    assert sorted(path.name for path in saved.parent.iterdir()) == ["link", "tree"]


def test_places_that_cannot_be_saved_to(client, tmp_path):
    t = et.distributed.cluster(points(10), client)
    with pytest.raises(FileNotFoundError, match="no such folder"):
        t.save(tmp_path / "nowhere" / "tree")
    (tmp_path / "file").write_text("a file")
    with pytest.raises(NotADirectoryError, match="must be a folder"):
        t.save(tmp_path / "file")
    (tmp_path / "mine").mkdir()
    t.save(tmp_path / "mine")  # an empty folder will do
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("years of work")
    with pytest.raises(FileExistsError, match="holds something else"):
        t.save(tmp_path / "other")
    assert (tmp_path / "other" / "thesis.txt").read_text() == "years of work"


class Faults:
    """From one call that changes a folder on, lets all of them fail, in the driver and in workers of this process."""

    def __init__(self, monkeypatch, folder, at):
        self.n_calls, self.has_failed = 0, False
        for name in ("mkdir", "open", "replace"):
            monkeypatch.setattr(Path, name, self._counting(getattr(Path, name), folder, at))
        monkeypatch.setattr(os, "fsync", self._counting(os.fsync, folder, at))

    def _counting(self, call, folder, at):
        def counted(*args, **kwargs):
            is_here = isinstance(args[0], int) or args[0].is_relative_to(folder)
            is_reading = "rb" in (*args[1:], kwargs.get("mode"))
            if is_here and not is_reading:
                self.n_calls += 1
                if self.n_calls > at:
                    self.has_failed = True
                    raise OSError("the disk is full")
            return call(*args, **kwargs)

        return counted


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_save_that_fails_anywhere_leaves_a_tree(client, tmp_path, monkeypatch, is_killed):
    """Without a trace, or, if the process dies, with files that the next save removes."""
    before, after = et.distributed.cluster(points(10), client), et.distributed.cluster(points(9), client)
    lengths = []
    for step in range(100):
        path = tmp_path / f"{step}"
        before.save(path)
        with monkeypatch.context() as patch:
            if is_killed:
                patch.setattr(generations, "_remove", lambda files: None)
            faults = Faults(patch, tmp_path, step)
            with contextlib.suppress(OSError):
                after.save(path)
        found = et.distributed.load(path, client)
        found.validate()
        lengths.append(len(found))
        n_files = len(list(path.iterdir()))
        assert n_files >= 4 if is_killed else n_files == 4
        after.save(path)
        assert len(et.distributed.load(path, client)) == 9
        assert len(list(path.iterdir())) == 4
        if not faults.has_failed:
            break
    assert lengths == sorted(lengths, reverse=True)  # the old tree up to one step, and then the new one
    assert lengths.count(10) > 5
    assert lengths.count(9) > 1


def test_a_first_save_that_fails_leaves_nothing(client, tmp_path, monkeypatch):
    t = et.distributed.cluster(points(10), client)
    for step in (1, 3, 6):
        with monkeypatch.context() as patch:
            Faults(patch, tmp_path, step)
            with pytest.raises(OSError, match="disk is full"):
                t.save(tmp_path / "tree")
        assert list(tmp_path.iterdir()) == []


def test_what_is_left_of_a_first_save_is_no_obstacle(client, tmp_path, monkeypatch):
    t = et.distributed.cluster(points(10), client)
    with monkeypatch.context() as patch:
        patch.setattr(generations, "_remove", lambda files: None)
        Faults(patch, tmp_path, 6)
        with pytest.raises(OSError, match="disk is full"):
            t.save(tmp_path / "tree")
    assert list((tmp_path / "tree").iterdir())
    with pytest.raises(FileFormatError, match=r"no metadata\.json"):
        et.distributed.load(tmp_path / "tree", client)
    t.save(tmp_path / "tree")
    assert len(et.distributed.load(tmp_path / "tree", client)) == 10
    assert len(list((tmp_path / "tree").iterdir())) == 4


def test_ctrl_c_when_the_new_tree_is_in_place(client, tmp_path, monkeypatch):
    t = et.distributed.cluster(points(10), client)
    t.save(tmp_path / "tree")
    t.remove([0])
    replace = Path.replace

    def interrupted(self, target):
        replace(self, target)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            t.save(tmp_path / "tree")
    assert len(et.distributed.load(tmp_path / "tree", client)) == 9


def test_other_files_in_the_directory_are_kept(client, tmp_path):
    t = et.distributed.cluster(points(10), client)
    t.save(tmp_path / "tree")
    (tmp_path / "tree" / "notes.txt").write_text("years of work")
    t.save(tmp_path / "tree")
    assert (tmp_path / "tree" / "notes.txt").read_text() == "years of work"
    assert len(list((tmp_path / "tree").iterdir())) == 5


def test_a_directory_of_version_1_is_read_and_replaced(client, tmp_path):
    path = tmp_path / "tree"
    t = et.distributed.cluster(points(10), client)
    t.save(path)
    metadata = json.loads((path / "metadata.json").read_text())["metadata"]
    generation = metadata.pop("generation")
    metadata["version"] = 1
    for name in list(metadata["sha256"]):
        old = name.replace(f"-{generation}", "")
        (path / name).rename(path / old)
        metadata["sha256"][old] = metadata["sha256"].pop(name)
    seal(path, metadata)
    u = et.distributed.load(path, client)
    assert len(u) == 10
    u.remove([0])
    u.save(path)
    assert len(et.distributed.load(path, client)) == 9
    assert len(list(path.iterdir())) == 4


def _write_elsewhere(*_):
    return {"part-00000-points.parquet": "elsewhere"}


def _find_no_folder(_part, folder, _number):
    raise FileNotFoundError(2, "No such file or directory", f"{folder}/part-00000-points.parquet")


@pytest.mark.parametrize("write_part", [_write_elsewhere, _find_no_folder])
def test_a_disk_that_workers_have_to_themselves(client, tmp_path, monkeypatch, write_part):
    monkeypatch.setattr("evertree.distributed.parquet_files.write_part", write_part)
    with pytest.raises(StoreError, match="a disk that all workers and the driver see"):
        et.distributed.cluster(points(10), client).save(tmp_path / "tree")
    assert list(tmp_path.iterdir()) == []


def test_foreign_directories_are_refused(client, tmp_path):
    with pytest.raises(FileNotFoundError, match="no such directory"):
        et.distributed.load(tmp_path / "nothing", client)
    with pytest.raises(FileFormatError, match=r"not a directory written by DistributedHierarchy\.save"):
        et.distributed.load(tmp_path, client)
    (tmp_path / "metadata.json").write_text('{"metadata": {"format": "other"}, "sha256": ""}')
    with pytest.raises(FileFormatError, match="not a directory written by"):
        et.distributed.load(tmp_path, client)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["part-00000-points.parquet", "part-00001-unions.parquet", "top.parquet"])
@pytest.mark.parametrize("damage", ["changed", "cut off", "gone"])
def test_damaged_files_are_noticed(client, saved, name, damage):
    path = named(saved, name)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(content if damage == "changed" else content[:-10])
    with pytest.raises(CorruptFileError, match="is damaged"):
        et.distributed.load(saved, client)


@pytest.mark.slow
def test_damage_that_shows_when_a_part_is_read_again(saved):
    scheme = Scheme("ward", "euclidean")
    digests = {named(saved, f"part-00000-{what}.parquet").name: "another" for what in ("points", "unions")}
    loaded = files.read_part(str(saved), 0, digests, scheme, (3, "float64"))
    with pytest.raises(CorruptFileError, match="does not have its checksum"):
        files.checked_part(loaded)


@pytest.mark.slow
def test_damaged_metadata_are_noticed(client, saved):
    path = saved / "metadata.json"
    text = path.read_text()
    for broken in (text[:-5], "[]", text.replace('"n_points": 80', '"n_points": 81')):
        path.write_text(broken)
        with pytest.raises(CorruptFileError, match="is damaged"):
            et.distributed.load(saved, client)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        *({"parts": value} for value in (None, 3, [0], [0, 0], [-1], ["../x"], [0.5], [10**12])),
        *({"sha256": value} for value in (None, [], {}, {"top.parquet": 3})),
        *({"dtype": value} for value in (None, "int8", "object", "<U1000000000", 7)),
        *({"n_columns": value} for value in (None, 2, 10**12, "3")),
        *({"n_points": value} for value in (None, 79, -1, 1e300)),
        *({name: value} for name in ("next_key", "seed", "part_size", "largest") for value in (None, -1, "x", [])),
        *({"search_width": value} for value in (None, 0, 2**60)),
        *({"linkage": value} for value in (None, "single", "wart", [])),
        *({"metric": value} for value in (None, "cityblock", "precomputed", {})),
        *({"metric_params": value} for value in (3, [1], {"V": [1.0]}, {"w": None})),
        *({"generation": value} for value in (None, "../tree", "0" * 8, 3, "*")),
        {"next_key": 79},
        {"version": None},
    ],
)
def test_forged_metadata_are_refused(client, saved, change):
    """With right checksums."""
    path = saved / "metadata.json"
    seal(saved, {**json.loads(path.read_text())["metadata"], **change})
    with pytest.raises(CorruptFileError, match="is damaged"):
        et.distributed.load(saved, client)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["part-00000-points.parquet", "part-00001-unions.parquet", "top.parquet"])
def test_forged_files_are_refused(client, saved, name):
    """With right checksums: columns that are missing, of other types, with gaps or other values, in all files."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = named(saved, name)
    table = pq.read_table(path)
    for column in table.column_names:
        place, values = table.column_names.index(column), table[column]
        n = len(values)
        others = [
            pa.array(["x"] * n),
            pa.array([None] * n, values.type),
            pa.array([-1.5] * n),
            pa.array([-7] * n, pa.int64()),
            pa.array([np.nan] * n),
            pa.array([[1.0]] * n),
        ]
        changed = [table.set_column(place, column, other) for other in others]
        for wrong in (*changed, table.drop_columns([column]), table.slice(0, n - 2), pa.concat_tables([table, table])):
            pq.write_table(wrong, path)
            reseal(saved, path.name)
            with pytest.raises(CorruptFileError, match="is damaged"):
                et.distributed.load(saved, client)


def reseal(saved: Path, name: str) -> None:
    """Make the checksums right again."""
    path = saved / "metadata.json"
    metadata = json.loads(path.read_text())["metadata"]
    metadata["sha256"][name] = hashlib.sha256((saved / name).read_bytes()).hexdigest()
    seal(saved, metadata)


def seal(saved: Path, metadata: dict[str, object]) -> None:
    """Write metadata with the right checksum."""
    sealed = {"metadata": metadata, "sha256": hashlib.sha256(to_json(metadata)).hexdigest()}
    (saved / "metadata.json").write_text(json.dumps(sealed))


@pytest.mark.slow
def test_directories_of_newer_versions_are_refused(client, saved):
    path = saved / "metadata.json"
    sealed = json.loads(path.read_text())
    sealed["metadata"]["version"] = 99
    path.write_text(json.dumps(sealed))
    with pytest.raises(NewerFormatError, match=r"version 99.*upgrade evertree"):
        et.distributed.load(saved, client)
