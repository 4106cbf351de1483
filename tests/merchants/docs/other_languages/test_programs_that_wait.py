"""The tests of the file of the same name, with the fixture `program` of this folder."""

from tests.merchants.docs.test_programs_that_wait import *  # noqa: F403
