#!/usr/bin/env python3
"""Vulkan under the probe, on whatever device there is (lavapipe in the tests): vulkan.py PROGRAM"""
import json
import pathlib
import sys
import tempfile

from running import MIB, Case, main, manifest_folder, probe

PROGRAM = ""


class Vulkan(Case):
    def test_a_healthy_program_holds_nothing_at_its_end(self):
        ring = self.run_program([PROGRAM, "healthy"]).ring
        self.assertEqual([record.bytes for record in ring.of("alloc")], [MIB] * 20)
        self.assertEqual(ring.live(), {})

    def test_what_leaks_is_live(self):
        outcome = self.run_program([PROGRAM, "leak"])
        self.assertEqual(outcome.live_sizes(), [MIB] * 10)
        self.assertEqual(len(outcome.ring.of("alloc")), 30)

    def test_a_program_of_vulkan_1_0(self):
        self.assertEqual(self.run_program([PROGRAM, "old"]).live_sizes(), [MIB] * 10)

    def test_each_allocation_has_its_call_path(self):
        outcome = self.run_program([PROGRAM, "leak"])
        for record in outcome.ring.live().values():
            self.assertIn("leak_memory", outcome.functions(record, PROGRAM))
        released = [record for record in outcome.ring.of("alloc") if record.address not in outcome.ring.live()]
        self.assertEqual({"leak_memory" in outcome.functions(record, PROGRAM) for record in released} - {False}, set())

    def test_the_device_is_told_once_with_its_uuid_name_and_size(self):
        ring = self.run_program([PROGRAM, "leak"]).ring
        devices = ring.of("device")
        self.assertEqual(len(devices), 1)
        self.assertRegex(ring.texts[devices[0].number], r"^(GPU-)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
        self.assertTrue(ring.texts[devices[0].bytes])
        self.assertGreater(devices[0].address, 64 * MIB)
        self.assertEqual({record.device for record in ring.of("alloc")}, {devices[0].device})

    def test_what_is_bound_is_a_block_of_the_memory(self):
        outcome = self.run_program([PROGRAM, "blocks"])
        image_bytes = int(outcome.output.split()[1])
        self.assertEqual(outcome.live_sizes(), [16 * MIB])
        base, = outcome.ring.live()
        self.assertGreaterEqual(base, 1 << 60)
        blocks = outcome.ring.live(level="block")
        self.assertEqual({address - base: (record.call, record.bytes) for address, record in blocks.items()},
                         {0: ("vk_bind_buffer", MIB), 2 * MIB: ("vk_bind_buffer", MIB), 8 * MIB: ("vk_bind_buffer", 2 * MIB),
                          12 * MIB: ("vk_bind_image", image_bytes)})

    def test_what_shares_bytes_counts_once(self):
        outcome = self.run_program([PROGRAM, "aliases"])
        base, = outcome.ring.live()
        self.assertEqual({address - base: record.bytes for address, record in outcome.ring.live(level="block").items()},
                         {0: 5 * MIB, 8 * MIB: MIB})
        most = held = 0
        for record in outcome.ring.of("alloc", "free"):
            if record.level == "block":
                held += record.bytes if record.kind == "alloc" else -record.bytes
                most = max(most, held)
        self.assertEqual(most, 6 * MIB)

    def test_freed_memory_takes_its_blocks_along(self):
        outcome = self.run_program([PROGRAM, "freed"])
        self.assertEqual(outcome.live_sizes(), [8 * MIB])
        self.assertEqual(outcome.live_sizes(level="block"), [2 * MIB])

    def test_a_destroyed_device_holds_nothing(self):
        outcome = self.run_program([PROGRAM, "destroy"])
        self.assertEqual(len(outcome.ring.of("alloc")), len(outcome.ring.of("free")))
        self.assertEqual((outcome.ring.live(), outcome.ring.live(level="block")), ({}, {}))

    def test_a_limit_is_refused_as_vulkan_does_and_the_budget_says_so(self):
        outcome = self.run_program([PROGRAM, "limit"], limit_bytes=10 * MIB)
        budget, *rest = outcome.output.splitlines()
        self.assertEqual(budget, f"budget {10 * MIB}")
        self.assertEqual(rest, [f"refused {6 * MIB}: -2", "again 1"])
        self.assertEqual([(record.bytes, record.address) for record in outcome.ring.of("refused")], [(6 * MIB, 6 * MIB)])

    def test_without_a_folder_for_the_ring_nothing_changes(self):
        outcome = self.run_program([PROGRAM, "limit"], env={"VRAMTRACK_PROBE_DIR": None})
        self.assertEqual(outcome.rings, [])
        self.assertEqual(outcome.output.splitlines()[1:], ["again 1"])

    def test_each_way_of_naming_the_layer(self):
        with tempfile.TemporaryDirectory() as data:
            layers = pathlib.Path(data, "vulkan/implicit_layer.d")
            layers.mkdir(parents=True)
            manifest = json.loads((manifest_folder() / "VkLayer_vramtrack_probe.json").read_text())
            manifest["layer"]["library_path"] = str(probe())
            (layers / "layer.json").write_text(json.dumps(manifest))
            ways = {
                "VK_LAYER_PATH": {"VK_LAYER_PATH": str(manifest_folder()), "VK_ADD_LAYER_PATH": None},
                "VK_ADD_LAYER_PATH": {},
                "not preloaded": {"LD_PRELOAD": None},
                "implicit": {"XDG_DATA_HOME": data, "VK_ADD_LAYER_PATH": None, "VK_INSTANCE_LAYERS": None},
            }
            for name, env in ways.items():
                with self.subTest(name):
                    outcome = self.run_program([PROGRAM, "leak"], env=env)
                    self.assertEqual(len(outcome.rings), 1)
                    self.assertEqual(outcome.live_sizes(), [MIB] * 10)

    def test_the_manifest_is_read_without_a_complaint(self):
        outcome = self.run_program([PROGRAM, "leak"], env={"VK_LOADER_DEBUG": "error,warn"})
        self.assertEqual([line for line in outcome.errors.splitlines()
                          if "vramtrack" in line.lower() and "defined and adding layers" not in line], [])


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    main("Vulkan")
