"""What a difference to the record leads to."""

import unittest

from . import record
from .callgrind import Counts


class Compared(unittest.TestCase):
    def verdict(self, before, now):
        recorded = {"work": before} if before else {}
        measured = {"work": now} if now else {}
        (row,) = record.compare(recorded, measured, 0.03)
        return row.verdict

    def test_a_difference_within_the_tolerance_passes(self):
        for instructions in (971, 1000, 1029):
            self.assertEqual(self.verdict(Counts(1000, 2), Counts(instructions, 2)), record.SAME)

    def test_more_instructions_are_a_fault(self):
        self.assertEqual(self.verdict(Counts(1000, 2), Counts(1031, 2)), record.SLOWER)
        self.assertTrue(record.is_fault(record.SLOWER))

    def test_an_allocation_more_is_a_fault(self):
        self.assertEqual(self.verdict(Counts(1000, 0), Counts(1000, 1)), record.ALLOCATES)
        self.assertTrue(record.is_fault(record.ALLOCATES))

    def test_fewer_instructions_are_told(self):
        self.assertEqual(self.verdict(Counts(1000, 2), Counts(969, 2)), record.FASTER)
        self.assertFalse(record.is_fault(record.FASTER))

    def test_work_that_comes_or_goes_is_a_fault(self):
        self.assertEqual(self.verdict(None, Counts(1, 0)), record.NEW)
        self.assertEqual(self.verdict(Counts(1, 0), None), record.GONE)

    def test_a_record_is_read_as_it_was_written(self):
        counts = {"get, 128 in a batch": Counts(1432, 0.25), "set": Counts(18640, 12)}
        self.assertEqual(record.read(record.write("rustc 1", counts)), ("rustc 1", counts))
