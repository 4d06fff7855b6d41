"""Commands of `curate` that need more than a line of parsing: each is a thin layer over a library call.

`curate.command_line` has the parser. `look` prints records, `store_options` says how commands are told of a store.
"""
