"""The paper, rerun: the only room that knows its numbers, and that only the command line needs.

`experiments` reruns it and sets our numbers beside the printed ones, `datasets` brings its data, `rivals` are the
methods that it compares with. Each has a door of its own; this one stays empty, so that listing datasets loads no model.
"""
