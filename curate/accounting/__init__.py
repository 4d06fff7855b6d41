"""The books of a task: every document and code point that went in came out, was dropped, cut or quarantined.

`accountant` runs transforms and writes what they did, `ledger` and `samples` have the columns, `statistics` the numbers
that merge, `kept` and `measures` what is counted of what stays, `conservation` the identity, `quarantine` its list.
"""
