"""What a dump of callgrind says."""

import unittest

from .callgrind import parse

DUMP = """\
# callgrind format
desc: Trigger: --dump-after=instructions::counted_by_callgrind
events: Ir
summary: 5000

fn=(10) quenda_frontend::connection::Connection::receive
0 3000
cfn=(12) __rustc::__rust_alloc
calls=7 0
0 700
cfn=(14) quenda_proto::frame::split
calls=90 0
0 900

fn=(14)
0 900
cfn=(12)
calls=2 0
0 200
cfn=(16) __rustc::__rust_realloc
calls=1 0
0 200

fn=(12)
0 900
calls=50 0
"""


class Parsed(unittest.TestCase):
    def test_instructions_and_allocations_are_summed(self):
        self.assertEqual(parse(DUMP), (5000, 10))

    def test_a_program_without_the_function_is_told(self):
        with self.assertRaises(SystemExit):
            parse("events: Ir\nsummary: 0\n")
