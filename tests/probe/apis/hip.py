#!/usr/bin/env python3
"""HIP under the probe, on the double of tests/fake/hip: hip.py PROGRAM"""
import sys

from running import MIB, Case, main

PROGRAM = ""


class Hip(Case):
    def test_a_healthy_program_holds_nothing_at_its_end(self):
        ring = self.run_program([PROGRAM, "healthy"]).ring
        self.assertEqual([record.bytes for record in ring.of("alloc")], [MIB] * 20)
        self.assertEqual(ring.live(), {})

    def test_what_leaks_is_live(self):
        self.assertEqual(self.run_program([PROGRAM, "leak"]).live_sizes(), [MIB] * 10)

    def test_each_allocation_has_its_call_path(self):
        outcome = self.run_program([PROGRAM, "leak"])
        for record in outcome.ring.live().values():
            self.assertIn("leak_memory", outcome.functions(record, PROGRAM))
        released = [record for record in outcome.ring.of("alloc") if record.address not in outcome.ring.live()]
        self.assertEqual({"leak_memory" in outcome.functions(record, PROGRAM) for record in released} - {False}, set())

    def test_each_kind_of_memory(self):
        outcome = self.run_program([PROGRAM, "kinds"])
        by_call = {}
        for memory in ("device", "managed", "host"):
            for record in outcome.ring.live(memory=(memory,)).values():
                by_call.setdefault(record.call, []).append((record.bytes, record.flags))
        self.assertEqual(by_call, {"hip_malloc": [(MIB, 0), (MIB, 0), (2 * MIB, 0)], "hip_malloc_managed": [(2 * MIB, 0)],
                                   "hip_malloc_async": [(3 * MIB, 0), (4 * MIB, 0)], "hip_array_create": [(MIB, 1), (2 * MIB, 1)],
                                   "hip_host_malloc": [(5 * MIB, 0), (6 * MIB, 0)]})

    def test_mapped_memory_is_known_by_where_and_lives_until_released_and_unmapped(self):
        outcome = self.run_program([PROGRAM, "virtual"])
        live = outcome.ring.live()
        self.assertEqual(live[0x700000000000].bytes, 2 * MIB)
        self.assertEqual(outcome.live_sizes(), [2 * MIB, 8 * MIB])
        self.assertEqual({record.device for record in live.values()}, {1})

    def test_a_limit_is_refused_as_hip_does_and_the_free_memory_agrees(self):
        outcome = self.run_program([PROGRAM, "limit"], limit_bytes=10 * MIB)
        self.assertEqual(outcome.output.splitlines(), [f"refused {6 * MIB}: 2", f"free {4 * MIB} of {10 * MIB}", "again 1"])

    def test_devices_are_told_a_reset_frees_and_a_full_device_is_recorded(self):
        ring = self.run_program([PROGRAM, "devices"]).ring
        self.assertEqual([(record.device, ring.texts[record.number], ring.texts[record.bytes], record.address) for record in ring.of("device")],
                         [(0, "a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0", "Fake MI300X", 1024 * MIB),
                          (1, "a1a1a1a1-a1a1-a1a1-a1a1-a1a1a1a1a1a1", "Fake MI300X", 1024 * MIB)])
        self.assertEqual(sorted((record.device, record.bytes) for record in ring.live().values()), [(0, MIB), (1, 4 * MIB)])
        self.assertEqual([record.bytes for record in ring.of("failed")], [2048 * MIB])

    def test_a_function_that_the_program_asked_for_by_name(self):
        outcome = self.run_program([PROGRAM, "by name"])
        self.assertEqual((outcome.live_sizes(), outcome.output), ([MIB], "1 500 1\n"))

    def test_without_a_folder_for_the_ring_nothing_changes(self):
        outcome = self.run_program([PROGRAM, "limit"], env={"VRAMTRACK_PROBE_DIR": None})
        self.assertEqual(outcome.output.splitlines(), [f"free {1012 * MIB} of {1024 * MIB}", "again 1"])


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    main("HIP")
