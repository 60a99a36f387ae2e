"""The ranks of one job: two processes and more with torchrun's variables, and folders with anything in them."""
import json
import os
import subprocess
import sys

import pytest

import vramtrack
from vramtrack import loggers, rank_summary, ranks
from vramtrack.evidence import write_evidence

MIB, GIB = 2**20, 2**30
NOW = 1_750_000_000.0
#: A rank of a job on PyTorch's stand-in: argv has its leak in MiB per second and when it begins. It says "done" and waits for the
#: others before it looks at them.
RANK = """
import sys
sys.path.insert(0, sys.argv[1])
from fake_torch import FakeTorch, GIB, MIB, nested
torch = sys.modules["torch"] = FakeTorch()
import vramtrack
now, used, leak, since = 1_750_000_000.0, 4 * GIB, float(sys.argv[2]), int(sys.argv[3])
torch.cuda.memory_stats_as_nested_dict = lambda index: nested(used, used, used, used, used, 0, 1)
watch = vramtrack.Watch(clock=lambda: now, driver_library=None, evidence=False, directory=sys.argv[4] or None)
for n in range(0, 2400, 5):
    now += 5
    used += int(5 * leak * MIB) if n >= since else 0
    watch.sample()
    if n % 60 == 0:
        watch.check()
watch.check()
print("done", flush=True)
sys.stdin.readline()
print(watch.rank_words())
watch.check()
print(str(watch.verdict()).splitlines()[-1])
print([rank.rank for rank in watch.ranks()], watch.errors, flush=True)
sys.stdin.readline()
watch.stop()
"""


def environment(rank, size, **more):
    return {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500",
            "TORCHELASTIC_RUN_ID": "none", **more}  # fmt: skip


def run_job(leaks, folder, **more):
    """What each rank says of all: its sentence, the last line of its verdict, and whom it saw."""
    tests = os.path.dirname(__file__)
    started = [
        subprocess.Popen([sys.executable, "-c", RANK, tests, str(mib), str(since), folder], env={**os.environ, **environment(rank, len(leaks), **more)},
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for rank, (mib, since) in enumerate(leaks)
    ]  # fmt: skip
    try:
        for one in started:
            assert one.stdout.readline() == "done\n"
        said = []
        for one in started:
            one.stdin.write("\n")
            one.stdin.flush()
            said.append([one.stdout.readline().rstrip("\n") for _ in range(3)])
        for one in started:
            one.communicate("\n", timeout=60)
            assert one.returncode == 0
        return said
    finally:
        for one in started:
            one.kill()
            one.wait()


def test_one_rank_of_three_grows(tmp_path):
    said = run_job([(0, 0), (0, 0), (2, 900)], str(tmp_path))
    assert len({sentence for sentence, _, _ in said}) == 1, "all ranks say the same"
    sentence, last_line, seen = said[0]
    assert sentence.startswith("rank 2 of 3 grows by 120 MiB/min since 2025-06-15 15:") and sentence.endswith(" UTC; the others do not grow")
    assert last_line == f"  ranks        {sentence}" and seen == "[0, 1, 2] []"
    (folder,) = tmp_path.iterdir()
    assert sorted(file.name for file in folder.iterdir()) == ["rank-0.json", "rank-1.json", "rank-2.json"]


def test_which_rank_grew_first_in_a_folder_of_this_machine(tmp_path):
    said = run_job([(4, 1500), (2, 600)], "", TMPDIR=str(tmp_path))
    assert said[0][0].startswith("all 2 ranks grow, rank 1 first: 120 MiB/min since ") and "; rank 0 fastest: 240 MiB/min" in said[0][0]
    assert list(tmp_path.iterdir()) == [], "the last rank removes the folder"


def rank(number, mib_per_min=0.0, onset=None, size=4, **more):
    return rank_summary.Rank(number, size, NOW, "node", 1, "allocator_allocated", GIB, mib_per_min > 0, False, "steady",
                      mib_per_min * MIB / 60, onset, None)._replace(**more)  # fmt: skip


def test_words():
    still = [rank(0), rank(1), rank(2), rank(3)]
    assert ranks.words([], 4) == "none of the 4 ranks has been seen yet"
    assert ranks.words(still, 4) == "none of the 4 ranks grows"
    assert ranks.words(still[:3], 4) == "none of the 3 ranks seen of 4 grows; nothing is known about 1 other"
    one = [rank(0), rank(1, 5.5, NOW), rank(2)]
    assert ranks.words(one, 4) == "rank 1 of 4 grows by 5.5 MiB/min since 2025-06-15 15:06:40 UTC; the others do not grow; nothing is known about 1 other"
    far = [rank(0, host="a"), rank(1, 5.5, host="b")]
    assert ranks.words(far, 2) == "rank 1 of 2 (b) grows by 5.5 MiB/min; the other does not grow"
    together = [rank(0), rank(1, 50, NOW), rank(2, 70, NOW + 30), rank(3)]
    assert ranks.words(together, 4) == "ranks 1 and 2 of 4 grow, most of all rank 2, by 70.0 MiB/min; the others do not grow"
    first = [rank(0), rank(1, 50, NOW), rank(2, 7000, NOW + 90), rank(3)]
    assert ranks.words(first, 4) == (
        "ranks 1 and 2 of 4 grow, rank 1 first: 50.0 MiB/min since 2025-06-15 15:06:40 UTC; rank 2 fastest: 7000 MiB/min; the others do not grow"
    )
    many = [rank(n, 10, NOW - n, 100) for n in range(20)] + [rank(n, size=100) for n in range(20, 100)]
    assert ranks.words(many, 100).startswith("20 of 100 ranks grow, most of all rank 0, by 10.0 MiB/min; ")


@pytest.mark.parametrize("changed", [
    {"RANK": "x"}, {"RANK": "-1"}, {"RANK": "8"}, {"WORLD_SIZE": "1"}, {"WORLD_SIZE": "99999999999"}, {"WORLD_SIZE": ""},
])  # fmt: skip
def test_variables_that_are_no_job(changed):
    assert ranks.job_of(environment(3, 8)) is not None
    assert ranks.job_of(environment(3, 8, **changed)) is None


def test_jobs_are_told_apart():
    ids = {ranks.job_of(environment(1, 8, **more)).id
           for more in ({}, {"MASTER_PORT": "1"}, {"TORCHELASTIC_RUN_ID": "../../x\x1b"}, {"TORCHELASTIC_RESTART_COUNT": "1"})}  # fmt: skip
    assert len(ids) == 4 and all(one.isalnum() for one in ids)
    assert ranks.job_of(environment(0, 8)).id == ranks.job_of(environment(7, 8)).id


@pytest.fixture
def folder(tmp_path):
    return ranks.Ranks(ranks.job_of(environment(0, 4)), str(tmp_path), lambda: NOW)


def test_damaged_and_hostile_files_are_left_out(folder, tmp_path):
    folder.put(rank(0))
    path = os.path.join(folder.folder, "rank-1.json")
    good = rank(1)._asdict()

    def seen(text):
        with open(path, "w") as file:
            file.write(text if isinstance(text, str) else json.dumps(text))
        folder._seen = {}
        return folder.look()

    assert seen(good) == [rank(1)]
    assert seen({**good, "host": "n\x1b[31m" + "x" * 99})[0].host == "n?[31m" + "x" * 58
    assert seen({**good, "more": 1}) == [rank(1)], "of a newer version"
    assert seen({name: value for name, value in good.items() if name != "status"}) == [rank(1)], "of an older version"
    for text in ("", "{", json.dumps(good)[:-9], "[" * 4000, "9" * 4000, "null", json.dumps(good) + " " * 4096, "\x00\xff"):
        assert seen(text) == [], text[:20]
    for field, value in (("rank", 2), ("rank", True), ("world_size", 8), ("time_s", NOW - 3600), ("time_s", "x"), ("time_s", float("nan")), ("host", None),
                         ("used_bytes", -1), ("used_bytes", 2**70), ("pid", 1.5), ("grows", 1), ("growth_bytes_per_s", 1e300),
                         ("growth_bytes_per_s", 10**400), ("state", []), ("status", "silent"), ("status", 1)):  # fmt: skip
        assert seen({**good, field: value}) == [], field
    assert seen({**good, "onset_s": 10**400})[0].onset_s is None
    assert ranks.words([rank(1, 5, 1e14)], 4), "a year that no calendar has"
    folder._seen = {}
    os.unlink(path)
    os.mkfifo(path)
    assert folder.look() == [], "it does not wait for a writer"
    os.unlink(path)
    (tmp_path / "elsewhere").write_text(json.dumps(good))
    os.symlink(tmp_path / "elsewhere", path)
    assert folder.look() == []
    os.unlink(path)
    os.mkdir(path)
    assert folder.look() == []


def test_a_summary_that_is_gone_stays_known(folder):
    other = ranks.Ranks(folder.job._replace(rank=1), os.path.dirname(folder.folder), lambda: NOW)
    other.put(rank(1, 7))
    assert [one.rank for one in folder.look()] == [1]
    os.unlink(os.path.join(folder.folder, "rank-1.json"))
    assert [one.rank for one in folder.look()] == [1]


class Clock:
    now = NOW

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def two_ranks(folder, clock):
    job = ranks.job_of(environment(0, 2))
    return [ranks.Ranks(job._replace(rank=n), folder, clock, 60.0) for n in (0, 1)]


def test_a_rank_that_hangs_or_was_killed_is_silent(tmp_path, clock):
    """The rank that grows is the one that ended, as one without memory does."""
    us, them = two_ranks(str(tmp_path), clock)
    them.put(rank(1, 120, NOW - 1200, 2, time_s=NOW - 30))
    us.note(rank(0, size=2))
    for passed, status in ((0, "running"), (59, "running"), (61, "silent")):
        clock.now = NOW + passed
        assert us.look()[1].status == status, passed
    assert ranks.words(us.known(), 2) == (
        "rank 1 of 2 grows by 120 MiB/min since 2025-06-15 14:46:40 UTC; the other does not grow; "
        "rank 1 has been silent since 2025-06-15 15:06:10 UTC: killed or hung"
    )
    them.put(rank(1, 120, NOW - 1200, 2, time_s=NOW - 20))
    assert us.look()[1].status == "running", "it came back"


def test_a_rank_whose_clock_is_behind_is_not_silent(tmp_path, clock):
    us, them = two_ranks(str(tmp_path), clock)
    for n in range(20):
        clock.now = NOW + 15 * n
        them.put(rank(1, size=2, time_s=clock.now - 50))
        assert us.look()[0].status == "running"


@pytest.mark.parametrize("is_own", [True, False])
def test_a_rank_whose_watch_was_stopped_has_ended(tmp_path, clock, monkeypatch, is_own):
    monkeypatch.setattr(ranks.tempfile, "gettempdir", lambda: str(tmp_path))
    us, them = two_ranks(None if is_own else str(tmp_path), clock)
    us.put(rank(0, size=2))
    them.put(rank(1, size=2))
    assert us.look()[1].status == "running"
    clock.now += 5
    them.leave()
    clock.now += 1000
    assert us.look()[1].status == "ended"
    assert ranks.words(us.known(), 2).startswith("none of the 2 ranks grows; rank 1 ended at 2025-06-15 15:06:4")
    them.put(rank(1, size=2, time_s=clock.now))
    assert us.look()[1].status == "running", "it was started again"


def test_the_verdict_names_a_silent_rank(device, tmp_path, monkeypatch, clock):
    as_rank(monkeypatch)
    watch = vramtrack.Watch(device, directory=str(tmp_path), clock=clock, evidence=False)
    ranks.Ranks(watch._ranks.job._replace(rank=1), str(tmp_path), clock).put(rank(1, size=2))
    for _ in range(10):
        clock.now += 15
        watch.sample()
        verdict = watch.check()
    assert verdict.ranks == "none of the 2 ranks grows; rank 1 has been silent since 2025-06-15 15:06:40 UTC: killed or hung"
    assert [one.status for one in watch.ranks()] == ["running", "silent"]


def test_words_of_several_that_are_gone():
    some = [rank(0), rank(1, status="silent"), rank(2, status="silent", time_s=NOW - 60), rank(3, status="ended")]
    assert ranks.words(some, 4) == "none of the 4 ranks grows; ranks 1 and 2 have been silent since 2025-06-15 15:05:40 UTC: killed or hung; rank 3 ended at 2025-06-15 15:06:40 UTC"
    assert ranks.words([rank(0, 60), *some[1:]], 4).startswith("rank 0 of 4 grows by 60.0 MiB/min; ranks 1 and 2 have"), "which grow"


def test_large_jobs_are_read_in_turns(tmp_path, monkeypatch):
    many = ranks.Ranks(ranks.job_of(environment(0, 150)), str(tmp_path), lambda: NOW)
    read = []
    monkeypatch.setattr(many, "_read", lambda number: read.append(number))
    many.look()
    assert read == list(range(1, 64))
    many.look()
    many.look()
    assert set(read) == set(range(1, 150))
    del read[:]
    many.look(all_of_them=True)
    assert len(read) == 149


def as_rank(monkeypatch, number=0, size=2):
    for name, value in environment(number, size).items():
        monkeypatch.setenv(name, value)


def test_a_folder_for_temporary_files_that_somebody_else_prepared(device, tmp_path, monkeypatch):
    as_rank(monkeypatch)
    monkeypatch.setattr(ranks.tempfile, "gettempdir", lambda: str(tmp_path))
    watch = vramtrack.Watch(device)
    os.mkdir(watch._ranks.folder, 0o777)
    os.chmod(watch._ranks.folder, 0o777)
    watch.sample()
    watch.check()
    assert watch.errors == [f"ranks: {watch._ranks.folder} is not a folder that only this user can write"]
    os.rmdir(watch._ranks.folder)
    os.symlink(tmp_path, watch._ranks.folder)
    watch.check()
    assert os.listdir(tmp_path) == [os.path.basename(watch._ranks.folder)]


def test_without_a_job_or_switched_off(device, tmp_path, monkeypatch):
    for watch in (vramtrack.Watch(device, directory=str(tmp_path)), as_rank(monkeypatch) or vramtrack.Watch(device, directory=str(tmp_path), ranks=False)):
        watch.sample()
        watch.check()
        assert watch.ranks() == [] and watch.rank_words() == "" and os.listdir(tmp_path) == []


def test_a_worker_of_a_loader_is_not_the_rank(device, monkeypatch):
    as_rank(monkeypatch)
    monkeypatch.setattr(ranks, "dataloader_worker", lambda: "DataLoader worker 1 of 2")
    assert vramtrack.Watch(device)._ranks is None


def test_loggers_and_the_evidence_have_them(device, tmp_path, monkeypatch):
    as_rank(monkeypatch)
    watch = vramtrack.Watch(device, directory=str(tmp_path), ranks=str(tmp_path / "shared"), clock=lambda: NOW)
    watch.sample()
    ranks.Ranks(watch._ranks.job._replace(rank=1), str(tmp_path / "shared"), lambda: NOW).put(rank(1, 60, NOW, 2))
    watch.check()
    found = loggers.scalars(watch)
    assert found["vramtrack/ranks_growing"] == 1 and found["vramtrack/first_growing_rank"] == 1
    document = json.load(open(write_evidence(watch, MIB, 0)))
    assert [one["grows"] for one in document["ranks"]] == [False, True]
    assert "rank 1 of 2 (node) grows by 60.0 MiB/min" in document["words"]
