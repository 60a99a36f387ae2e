#!/usr/bin/env python3
"""OpenCL under the probe, on whatever device there is (pocl in the tests): opencl.py PROGRAM"""
import sys

from running import MIB, Case, main

PROGRAM = ""


class OpenCL(Case):
    def test_a_healthy_program_holds_nothing_at_its_end(self):
        ring = self.run_program([PROGRAM, "healthy"]).ring
        self.assertEqual([record.bytes for record in ring.of("alloc")], [MIB] * 20)
        self.assertEqual(ring.live(), {})

    def test_what_leaks_is_live(self):
        outcome = self.run_program([PROGRAM, "leak"])
        self.assertEqual(outcome.live_sizes(), [MIB] * 10)
        self.assertEqual(len(outcome.ring.of("alloc")), 30)

    def test_each_allocation_has_its_call_path(self):
        outcome = self.run_program([PROGRAM, "leak"])
        for record in outcome.ring.live().values():
            self.assertIn("leak_a_buffer", outcome.functions(record, PROGRAM))
        released = [record for record in outcome.ring.of("alloc") if record.address not in outcome.ring.live()]
        self.assertEqual({"leak_a_buffer" in outcome.functions(record, PROGRAM) for record in released} - {False}, set())

    def test_the_device_is_told_once_and_before_its_memory(self):
        ring = self.run_program([PROGRAM, "leak"]).ring
        devices = ring.of("device")
        self.assertEqual(len(devices), 1)
        self.assertTrue(ring.texts[devices[0].bytes])
        self.assertGreater(devices[0].address, 64 * MIB)
        self.assertEqual({record.device for record in ring.of("alloc")}, {devices[0].device})
        self.assertLess(ring.records.index(devices[0]), ring.records.index(ring.of("alloc")[0]))

    def test_memory_lives_until_its_last_reference(self):
        outcome = self.run_program([PROGRAM, "references"])
        self.assertEqual(outcome.live_sizes(), [2 * MIB, 4 * MIB])
        self.assertEqual(sorted(record.bytes for record in outcome.ring.of("alloc")), [2 * MIB, 3 * MIB, 4 * MIB, 5 * MIB],
                         "a sub-buffer owns nothing")
        self.assertIn("unknown -38", outcome.output)

    def test_each_kind_of_memory(self):
        outcome = self.run_program([PROGRAM, "kinds"])
        by_call = {}
        for record in outcome.ring.of("alloc"):
            by_call.setdefault(record.call, []).append(record.bytes)
        self.assertEqual(by_call, {"cl_create_buffer_host": [MIB], "cl_create_buffer": [3 * MIB],
                                   "cl_create_image": [2 * MIB, 256 * 1024, MIB], "cl_svm_alloc": [7 * MIB, 9 * MIB, 11 * MIB]})
        self.assertEqual([record.bytes for record in outcome.ring.live(memory=("managed",)).values()], [7 * MIB])

    def test_a_limit_is_refused_as_opencl_does(self):
        outcome = self.run_program([PROGRAM, "limit"], limit_bytes=10 * MIB)
        self.assertEqual(outcome.output.splitlines(), [f"refused {6 * MIB}: -4", "again 1", "shared 0"])
        self.assertEqual([(record.call, record.bytes, record.address) for record in outcome.ring.of("refused")],
                         [("cl_create_buffer", 6 * MIB, 6 * MIB), ("cl_svm_alloc", 6 * MIB, 6 * MIB)])

    def test_a_library_that_the_program_opened_is_seen_through_the_layer(self):
        outcome = self.run_program([PROGRAM, "opened"])
        self.assertEqual(outcome.live_sizes(), [2 * MIB, 4 * MIB])
        self.assertEqual(len(outcome.ring.of("alloc")), 3, "what layer and preloaded functions both see counts once")

    def test_without_the_layer_the_preloaded_functions_see_the_rest(self):
        outcome = self.run_program([PROGRAM, "opened"], env={"OPENCL_LAYERS": None})
        self.assertEqual(outcome.live_sizes(), [4 * MIB])

    def test_references_are_counted_once_with_and_without_the_layer(self):
        outcome = self.run_program([PROGRAM, "references"], env={"OPENCL_LAYERS": None})
        self.assertEqual(outcome.live_sizes(), [2 * MIB, 4 * MIB])

    def test_without_a_folder_for_the_ring_nothing_changes(self):
        outcome = self.run_program([PROGRAM, "limit"], env={"VRAMTRACK_PROBE_DIR": None})
        self.assertEqual(outcome.rings, [])
        self.assertEqual(outcome.output.splitlines(), ["again 1", "shared 1"])


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    main("OpenCL")
