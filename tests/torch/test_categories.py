"""What memory is, by stacks and by what the program tells: PyTorch's own sums, exactly (programs/categorized.py)."""
import json
import os
import pathlib
import subprocess
import sys

import pytest
from started import BUILD, HERE

sys.path.insert(0, str(HERE.parent / "probe"))
from ring import rings  # noqa: E402

KINDS = ("weights", "gradients", "optimizer_state")
SITUATIONS = ("sgd", "adam", "adam_foreach", "transformer", "accumulation", "closure")
PROBE = BUILD / "probe/libvramtrack_probe_cuda.so"
DRIVER = pathlib.Path(os.environ["VRAMTRACK_TORCH_LANE"]) / "libcuda.so.1"


def run(situation, folder, **environment):
    machine = {"VRAMTRACK_FAKE_GPU_DEVICES": "1", "VRAMTRACK_FAKE_GPU_MIB": "4096", "VRAMTRACK_FAKE_GPU_STATE": f"{folder}/state"}
    done = subprocess.run([sys.executable, HERE / "programs/categorized.py", situation, folder], env={**os.environ, **machine, **environment},
                          capture_output=True, text=True, timeout=300)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "moments.json").read_text())


@pytest.fixture(scope="module", params=SITUATIONS)
def moments(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    found = run(request.param, folder)
    paths = [folder / f"{moment['name']}.{how}.pickle" for moment in found for how in ("stacks", "told")]
    out = subprocess.run([BUILD / "vramtrack", "snapshot", "summary", "--json", *paths], capture_output=True, text=True, check=True).stdout
    summaries = iter(json.loads(out)["snapshots"])
    for moment in found:
        for how in ("stacks", "told"):
            device = next(summaries)["devices"][0]
            moment[how] = {each["category"]: each for each in device["categories"]}
            assert sum(each["bytes"] for each in device["categories"]) == device["requested_bytes"], "every byte is in one category"
    return found


def bytes_of(categories, kind):
    return categories.get(kind, {"bytes": 0})["bytes"]


@pytest.mark.parametrize("how", ["stacks", "told"])
def test_the_sums_are_those_of_torch(moments, how):
    for moment in moments:
        for kind in KINDS:
            assert bytes_of(moment[how], kind) == moment["bytes"][kind], (moment["name"], kind, moment[how])
    assert max(moment["bytes"]["optimizer_state"] for moment in moments) > 0 and max(moment["bytes"]["gradients"] for moment in moments) > 0


@pytest.mark.parametrize("how", ["stacks", "told"])
def test_little_is_unknown(moments, how):
    for moment in moments:
        whole = sum(each["bytes"] for each in moment[how].values())
        assert bytes_of(moment[how], "unknown") <= whole / 10, (moment["name"], moment[how])
    assert any(bytes_of(moment[how], "activations") > 0 for moment in moments), "after forward()"
    assert any(bytes_of(moment[how], "inputs") > 0 for moment in moments)


def test_the_program_is_told_the_same(moments):
    for moment in moments:
        for kind in KINDS:
            assert moment["found"].get(kind, 0) == moment["bytes"][kind]
            assert moment["told"].get(kind, {"told_bytes": 0})["told_bytes"] == moment["bytes"][kind]
        assert moment["allocated"] >= sum(moment["bytes"].values())
    names = moments[-2]["names"]
    assert any(name.endswith(".weight") for name in names) and any(".exp_avg" in name or ".momentum_buffer" in name for name in names), names


@pytest.mark.parametrize("how", ["told", "stacks"])
@pytest.mark.parametrize("situation", ["sgd", "transformer"])
def test_a_trace_has_the_same(tmp_path, situation, how):
    program = [sys.executable, HERE / "programs/categorized.py", situation, tmp_path]
    command = [BUILD / "vramtrack", "run", "--output", tmp_path / "trace", "--", *program]
    machine = {"VRAMTRACK_FAKE_GPU_DEVICES": "1", "VRAMTRACK_FAKE_GPU_MIB": "4096", "VRAMTRACK_FAKE_GPU_STATE": f"{tmp_path}/state"}
    environment = {**os.environ, **machine, **({} if how == "told" else {"VRAMTRACK_PROBE_CATEGORIES": "0"})}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    moments = json.loads((tmp_path / "moments.json").read_text())
    out = subprocess.run([BUILD / "vramtrack", "trace", "report", "--format", "json", tmp_path / "trace"], capture_output=True, text=True, check=True)
    found = {each["category"]: each for each in json.loads(out.stdout)["verdict"]["categories"]}
    none = {"bytes": 0, "told_bytes": 0}
    assert {kind: found.get(kind, none)["bytes"] for kind in KINDS} == moments[-1]["block_bytes"]
    told = moments[-1]["block_bytes"] if how == "told" else dict.fromkeys(KINDS, 0)
    assert {kind: found.get(kind, none)["told_bytes"] for kind in KINDS} == told
    whole = sum(each["bytes"] for each in found.values())
    assert found.get("unknown", {"bytes": 0})["bytes"] <= whole / 10 and found["activations"]["bytes"] > 0, found


def test_under_the_probe_the_ring_has_it(tmp_path):
    moments = run("sgd", tmp_path, LD_PRELOAD=str(PROBE), VRAMTRACK_PROBE_DIR=str(tmp_path), VRAMTRACK_PROBE_DRIVER=str(DRIVER))
    ring = rings(tmp_path)[0]
    assert ring.lost == 0
    live, names, marks = {}, set(), 0
    for record in ring.of("alloc", "free", "label", "mark"):
        if record.kind == "alloc" and record.level == "block":
            live[record.address] = [record.bytes, "", ""]
        elif record.kind == "free" and record.level == "block":
            live.pop(record.address, None)
        elif record.kind == "label":
            live[record.address][1:] = [ring.texts[record.bytes], ring.texts[record.number]]  # KeyError: of no live block
            names.add(ring.texts[record.number])
        elif record.kind == "mark" and ring.texts.get(record.number) == "step":
            for kind in KINDS:
                held = sum(size for size, category, _ in live.values() if category == kind)
                assert held == moments[marks]["block_bytes"][kind], (moments[marks]["name"], kind)
            marks += 1
    assert marks == len(moments)
    assert {"Net.layers.0.weight", "Net.layers.0.weight.grad", "Net.layers.0.weight.momentum_buffer", "Net.layers.1.running_mean"} <= names
