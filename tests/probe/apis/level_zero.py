#!/usr/bin/env python3
"""Level Zero under the probe, on the double of tests/fake/level_zero: level_zero.py PROGRAM"""
import sys

from running import MIB, Case, main

PROGRAM = ""


class LevelZero(Case):
    def test_a_healthy_program_holds_nothing_at_its_end(self):
        ring = self.run_program([PROGRAM, "healthy"]).ring
        self.assertEqual(len(ring.of("alloc")), 20)
        self.assertEqual(ring.live(), {})

    def test_what_leaks_is_live(self):
        self.assertEqual(self.run_program([PROGRAM, "leak"]).live_sizes(), [MIB] * 10)

    def test_each_kind_of_memory(self):
        outcome = self.run_program([PROGRAM, "kinds"])
        ring = outcome.ring
        live = [record for memory in ("device", "managed", "host") for record in ring.live(memory=(memory,)).values()]
        device = ring.of("device")[0]
        self.assertEqual([(record.call, record.device, record.bytes) for record in live],
                         [("ze_mem_alloc_device", device.device, MIB), ("ze_mem_alloc_shared", device.device, 2 * MIB),
                          ("ze_mem_alloc_shared", -1, 3 * MIB), ("ze_mem_alloc_host", -1, 4 * MIB)])
        self.assertEqual((ring.texts[device.number], ring.texts[device.bytes], device.address),
                         ("b7b7b7b7-b7b7-b7b7-b7b7-b7b7b7b7b7b7", "Fake Data Center GPU Max", 1024 * MIB))
        self.assertEqual(outcome.output.splitlines(), ["78000007", f"refused {2048 * MIB}: 70000003"])
        self.assertEqual([record.bytes for record in ring.of("failed")], [2048 * MIB])

    def test_a_limit_is_refused_as_level_zero_does(self):
        outcome = self.run_program([PROGRAM, "limit"], limit_bytes=10 * MIB)
        self.assertEqual(outcome.output.splitlines(), [f"refused {6 * MIB}: 70000003", "again 1"])


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    main("Level Zero")
