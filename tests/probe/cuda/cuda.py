#!/usr/bin/env python3
"""The CUDA driver's hooks, on the fake driver: cuda.py PROGRAMS PROBE DRIVER ARCHIVE

Each scenario of program.cpp runs with and without the probe, and prints the same. The program compares what the probe counts with
what it holds; the driver's own trace says what was handed out.
"""
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from ring import rings  # noqa: E402

PROGRAMS, PROBE, DRIVER, ARCHIVE = (pathlib.Path(path).resolve() for path in sys.argv[1:5])
SOURCE = HERE.parents[2]
HOOKED = set(re.findall(r"^VRAMTRACK_CUDA_HOOK\(\w+, \d+, \d, (\w+)\)", (SOURCE / "src/probe/cuda/hooks.def").read_text(), re.M))
SCENARIOS = ("plain", "ordered", "virtual", "arrays", "host", "imports", "contexts", "graphs", "code", "threads", "forks")
MIB = 2**20
#: Calls of the fake driver's trace, and what they do to the memory of devices.
TAKES = {"cuMemAlloc", "cuMemAllocPitch", "cuMemAllocManaged", "cuMemAllocAsync", "cuMemAllocFromPoolAsync", "cuArrayCreate", "cuArray3DCreate",
         "cuMipmappedArrayCreate"}  # fmt: skip
GIVES = {"cuMemFree", "cuMemFreeAsync", "cuArrayDestroy", "cuMipmappedArrayDestroy", "context ends"}


class Run:
    """One run of a program, and what it left."""

    def __init__(self, *command, probe=True, **environment):
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder, "trace")
            mine = {"LD_LIBRARY_PATH": str(DRIVER.parent), "VRAMTRACK_FAKE_GPU_DEVICES": "2", "VRAMTRACK_FAKE_GPU_TRACE": str(trace),
                    "VRAMTRACK_FAKE_GPU_MODULE_MIB": "5", "VRAMTRACK_FAKE_GPU_GRAPH_MIB": "3"}  # fmt: skip
            if probe:
                mine.update(LD_PRELOAD=str(PROBE), VRAMTRACK_PROBE_DIR=folder, VRAMTRACK_PROBE_DRIVER=str(DRIVER))
            kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
            done = subprocess.run(list(map(str, command)), env={**kept, **mine, **environment}, capture_output=True, text=True, timeout=120)
            self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
            self.rings = rings(folder)
            self.trace = trace.read_text() if trace.exists() else ""

    @property
    def ring(self):
        assert len(self.rings) == 1, self.rings
        return self.rings[0]

    def handed_out(self, pid):
        """By device, what the driver handed out and did not get back: of plain and pooled memory and arrays."""
        held = {}
        for line in self.trace.splitlines():
            who, call, device, address, size, code = re.fullmatch(r"(\d+) (.+) device=(-?\d+) address=(\w+) bytes=(\d+) code=(\d+)", line).groups()
            if int(who) != pid or code != "0":
                continue
            if call in TAKES and int(size):
                held[address] = int(device), int(size)
            elif call in GIVES:
                held.pop(address, None)
        return collections.Counter({device: sum(size for d, size in held.values() if d == device) for device in (0, 1)})


def programs(scenario):
    yield PROGRAMS / "probe_cuda_linked", scenario
    yield PROGRAMS / "probe_cuda_resolved", scenario
    yield PROGRAMS / "probe_cuda_resolved", scenario, "ptsz"


class Scenarios(unittest.TestCase):
    def test_a_program_sees_the_same_and_the_probe_counts_right(self):
        for scenario in SCENARIOS:
            for command in programs(scenario):
                with self.subTest(command=command[0].name, arguments=command[1:]):
                    bare, probed = Run(*command, probe=False), Run(*command)
                    self.assertEqual((bare.code, bare.err), (0, ""))
                    self.assertEqual((probed.code, probed.err), (0, ""))
                    self.assertEqual(probed.out, bare.out)
                    self.assertEqual([ring.lost for ring in probed.rings], [0] * (2 if scenario == "forks" else 1))

    def test_the_drivers_own_account_agrees(self):
        # Not that of the threads: at their rate, sampling begins. What is held is exact all the same.
        for scenario in ("plain", "arrays", "contexts"):
            for command in programs(scenario):
                run = Run(*command)
                live = collections.Counter()
                for record in run.ring.live().values():
                    live[record.device] += record.bytes if record.call != "cu_context" else 0
                expected = run.handed_out(run.ring.pid)
                self.assertEqual({d: live[d] for d in (0, 1)}, {d: expected[d] for d in (0, 1)}, command)

    def test_devices_are_introduced_once_by_uuid_name_and_size(self):
        ring = Run(PROGRAMS / "probe_cuda_linked", "plain").ring
        devices = ring.of("device")
        self.assertEqual([device.device for device in devices], [0, 1])
        for device in devices:
            self.assertRegex(ring.texts[device.number], r"^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
            self.assertEqual(ring.texts[device.bytes], "Fake GPU")
            self.assertEqual(device.address, 8192 * MIB)

    def test_a_free_that_fails_is_undone(self):
        ring = Run(PROGRAMS / "probe_cuda_linked", "plain").ring
        pinned = ring.live(memory=("host",))
        self.assertEqual([(record.call, record.bytes) for record in pinned.values()], [("cu_mem_host_alloc", MIB)])
        self.assertEqual([record.kind for record in ring.of("alloc", "free") if record.memory == "host"], ["alloc", "free", "alloc"])

    def test_what_the_driver_refuses_is_recorded_with_what_was_free(self):
        ring = Run(PROGRAMS / "probe_cuda_linked", "plain").ring
        failed, = ring.of("failed")
        self.assertEqual((failed.call, failed.bytes), ("cu_mem_alloc", 2**40))
        self.assertGreater(failed.address, 7000 * MIB)

    def test_each_call_has_its_name(self):
        expected = {
            "plain": "cu_mem_alloc cu_mem_alloc_pitch cu_mem_alloc_managed cu_mem_host_alloc",
            "ordered": "cu_mem_alloc_async cu_mem_alloc_from_pool_async cu_mem_pool_import_pointer",
            "virtual": "cu_mem_create cu_mem_create_host cu_mem_import cu_multicast_create",
            "arrays": "cu_array_create cu_mipmapped_array_create",
            "host": "cu_mem_alloc_host cu_mem_host_alloc cu_mem_host_register",
            "imports": "cu_mem_alloc cu_ipc_open_mem_handle cu_import_external_memory",
            "graphs": "cu_graph_memory",
            "code": "cu_mem_alloc cu_module cu_graph_exec cu_context",
        }
        for scenario, calls in expected.items():
            for command in programs(scenario):
                self.assertEqual({record.call for record in Run(*command).ring.of("alloc")}, set(calls.split()), command)

    def test_what_a_pool_uses_and_reserves_is_told(self):
        first = {}
        for record in Run(PROGRAMS / "probe_cuda_linked", "ordered").ring.of("totals"):
            first.setdefault(record.device, (record.call, record.address, record.bytes))
        self.assertEqual(first, {0: ("cu_mem_alloc_async", 5 * MIB, 32 * MIB), 1: ("cu_mem_alloc_from_pool_async", 6 * MIB, 32 * MIB)})

    def test_a_pool_that_was_trimmed_tells_its_reserve_at_once(self):
        totals = [(record.address, record.bytes) for record in Run(PROGRAMS / "probe_cuda_linked", "ordered").ring.of("totals") if record.device == 0]
        self.assertEqual(totals[-1], (0, 0))

    def test_sizes_that_were_computed_say_so(self):
        arrays = Run(PROGRAMS / "probe_cuda_linked", "arrays").ring.of("alloc")
        self.assertEqual([(record.bytes, record.flags) for record in arrays], [(4 * MIB, 1), (4 * MIB, 0), (MIB + MIB // 4, 1)])

    def test_memory_is_held_where_it_is_mapped(self):
        ring = Run(PROGRAMS / "probe_cuda_linked", "virtual").ring
        created = [record for record in ring.of("alloc") if record.call == "cu_mem_create" and record.device == 0]
        unmapped = [record.address >> 63 for record in created]
        self.assertEqual(unmapped[:5], [1, 0, 1, 0, 0], "created, mapped, unmapped, mapped elsewhere, and there only")
        self.assertEqual(unmapped[5:], [1, 1, 0, 1], "two that are bound: created, the second one mapped and unmapped")
        self.assertEqual(ring.live(), {})

    def test_what_is_another_processs_is_not_owned_and_stays_until_it_is_closed(self):
        mapped = Run(PROGRAMS / "probe_cuda_linked", "imports").ring.live(memory=("mapped",)).values()
        self.assertEqual(sorted((record.call, record.bytes) for record in mapped),
                         [("cu_import_external_memory", 3 * MIB), ("cu_ipc_open_mem_handle", 4 * MIB)])  # fmt: skip
        mapped = Run(PROGRAMS / "probe_cuda_linked", "virtual").ring.live(memory=("mapped",)).values()
        self.assertEqual([(record.call, record.bytes) for record in mapped], [("cu_mem_import", 2 * MIB)])

    def test_pinned_memory_goes_with_its_context(self):
        self.assertEqual(Run(PROGRAMS / "probe_cuda_linked", "contexts").ring.live(memory=("host",)), {})

    def test_a_child_has_a_ring_of_its_own(self):
        run = Run(PROGRAMS / "probe_cuda_linked", "forks")
        parent, child = run.rings
        self.assertEqual((parent.live_bytes(), child.live_bytes()), (0, 5 * MIB))
        self.assertEqual(len(child.of("device")), 1)

    def test_a_limit_is_refused_as_the_driver_refuses(self):
        for command in programs("limit"):
            run = Run(*command)
            self.assertEqual((run.code, run.err), (0, ""))
            said = run.out.splitlines()[4:]
            self.assertEqual(said, [
                "info: 0", "free 54 of 64", "info without room for it: 0", "within: 0", *["beyond: 2"] * 5, "the host is not limited: 0",
                "another device has a limit of its own: 0", "free: 0", "fits again: 0", "no limit: 0"])  # fmt: skip
            refused = run.ring.of("refused")
            self.assertEqual([record.call for record in refused],
                             ["cu_mem_alloc", "cu_mem_alloc_async", "cu_mem_alloc_managed", "cu_mem_create", "cu_array_create"])  # fmt: skip
            self.assertEqual({record.address for record in refused}, {50 * MIB})
            self.assertEqual(run.ring.live_bytes(), (10 + 20 + 60 + 100) * MIB)


class Lookups(unittest.TestCase):
    def lines(self, **options):
        run = Run(PROGRAMS / "probe_cuda_lookups", HERE / "lookups.txt", **options)
        self.assertEqual(run.code, 0, run.err)
        return [line.split(" ", 6) for line in run.out.splitlines()]

    def test_all_440_of_the_cuda_runtime(self):
        bare, probed = self.lines(probe=False), self.lines()
        self.assertEqual(len(bare), 440)
        hooked = set()
        for before, after in zip(bare, probed):
            self.assertEqual(after[:5], before[:5])
            name, symbol, library = before[0], before[5], after[6]
            if after == before:
                self.assertFalse(symbol in HOOKED and not symbol.startswith("cuGet"), f"{before} is not hooked")
                continue
            self.assertEqual(pathlib.Path(library).name, PROBE.name)
            self.assertIn(after[5], HOOKED)
            # The fake driver gives the newest form for each version; ours are what the version asked for.
            self.assertEqual(re.sub(r"_v\d", "", after[5]), re.sub(r"_v\d", "", symbol), f"{name}: {before} became {after}")
            hooked.add(after[5])
        # The runtime asks for these, and never for virtual memory management.
        self.assertGreaterEqual(hooked, {
            "cuGetProcAddress", "cuGetProcAddress_v2", "cuMemAlloc_v2", "cuMemAllocPitch_v2", "cuMemAllocManaged", "cuMemFree_v2", "cuMemGetInfo_v2",
            "cuMemHostAlloc", "cuMemFreeHost", "cuMemHostRegister_v2", "cuMemHostUnregister", "cuMemAllocAsync", "cuMemAllocAsync_ptsz",
            "cuMemAllocFromPoolAsync", "cuMemAllocFromPoolAsync_ptsz", "cuMemFreeAsync", "cuMemFreeAsync_ptsz", "cuArrayCreate_v2", "cuArray3DCreate_v2",
            "cuArrayDestroy", "cuMipmappedArrayCreate", "cuMipmappedArrayDestroy", "cuImportExternalMemory", "cuDestroyExternalMemory",
            "cuIpcOpenMemHandle", "cuIpcOpenMemHandle_v2", "cuIpcCloseMemHandle", "cuGraphAddMemAllocNode", "cuGraphLaunch", "cuGraphLaunch_ptsz",
            "cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxReset", "cuCtxCreate_v2"})  # fmt: skip

    def test_by_whatever_name_the_driver_is_opened(self):
        names = ["libcuda.so.1", "libcuda.so", DRIVER, f"{DRIVER.parent}/../driver/libcuda.so.1"]
        run = Run(PROGRAMS / "probe_cuda_opens", *names, "libm.so.6", "libcudart-not-there.so")
        self.assertEqual([line.rsplit(" ", 1)[1] for line in run.out.splitlines()], [str(PROBE)] * 4 + ["-"] * 2)


class Libraries(unittest.TestCase):
    def exports(self, library):
        listing = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
        return {line.split()[2] for line in listing.splitlines()}

    def test_the_library_has_every_name_of_the_driver_and_few_others(self):
        names = set((SOURCE / "src/probe/cuda/symbols.txt").read_text().split())
        exported = self.exports(PROBE)
        self.assertLessEqual(names, exported)
        self.assertLessEqual(HOOKED, exported)
        self.assertEqual({name for name in exported - names if not re.match(r"_ZN3c10|hip|cl[A-Z]|ze[A-Z]|vk|vramtrack_|__st(art|op)_vramtrack_", name)}, {"dlopen"})

    def test_both_load_into_a_system_with_glibc_2_17(self):
        for probe in PROBE.parent.glob("libvramtrack_probe*.so"):
            floor = subprocess.run([SOURCE / "scripts/glibc_floor.sh", probe], check=True, capture_output=True, text=True).stdout.strip()
            self.assertLessEqual([int(part) for part in floor.split(".")], [2, 17], probe)
            needed = subprocess.run(["readelf", "-d", probe], check=True, capture_output=True, text=True).stdout
            self.assertLessEqual(set(re.findall(r"NEEDED.*\[(.*)\]", needed)), {"libc.so.6", "ld-linux-aarch64.so.1", "ld-linux-x86-64.so.2"}, probe)

    def test_without_a_driver_there_is_no_device(self):
        for driver, said in (("/nonexistent/libcuda.so.1", "/nonexistent/libcuda.so.1 cannot be opened"), ("", "the CUDA driver libcuda.so.1 cannot be opened")):
            run = Run(PROGRAMS / "probe_cuda_linked", "plain", VRAMTRACK_PROBE_DRIVER=driver)
            self.assertEqual(run.out.splitlines()[0], "init: 100")
            self.assertEqual(set(re.findall(r": (\d+)", run.out)), {"100"})
            words, = re.findall("^vramtrack: .*", run.err, re.M)
            self.assertIn(said, words)

    def test_an_older_driver_lacks_names(self):
        with tempfile.TemporaryDirectory() as folder:
            older = pathlib.Path(folder, "libcuda.so.1")
            subprocess.run([sys.executable, HERE / "link_driver.py", ARCHIVE, SOURCE / "src/probe/cuda/symbols.txt", older, "cuMemcpyDtoD_v2"], check=True)
            run = Run(PROGRAMS / "probe_cuda_linked", "plain", VRAMTRACK_PROBE_DRIVER=str(older))
            self.assertIn("copy: 500\n", run.out)
            self.assertEqual((run.code, run.err), (0, ""))

    def test_a_program_that_uses_no_gpu_has_no_ring(self):
        run = Run("/bin/sh", "-c", "echo done")
        self.assertEqual((run.code, run.out, run.err, run.rings), (0, "done\n", "", []))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])
