"""The parts of reference.py, one file each.

A part has `missing()`, the registered names without a case, and `cases(room)`, which yields (name of a case, function that
computes its values). `room.Room` has the inputs; `library.py` the calls that several parts make.
"""
